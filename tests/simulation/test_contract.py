"""The model of Pulsar keeps the contract that real brokers keep (integration/test_contract.py)."""

from __future__ import annotations

import asyncio
from contextvars import copy_context

import pytest

from handler.partition.log.port import EntryLog
from tests.contract.all_cases import CASES
from tests.contract.case import Case, World
from tests.simulation.chance import Chance
from tests.simulation.loop import SimulatedLoop
from tests.simulation.plan import Bounds
from tests.simulation.topic import LEAST_RETENTION_SECONDS, SimulatedTopic


class Model:
    """The topic without faults: what it does wrong, it does where a seed says so."""

    def __init__(self, seed: int, *, deduplicates: bool, names_markers: bool) -> None:
        self.names_markers = names_markers
        chance = Chance(seed)
        bounds = Bounds(deduplicates=deduplicates, names_markers=names_markers)
        self._topic = SimulatedTopic(asyncio.get_running_loop(), chance, bounds)

    def log(self, writer: str) -> EntryLog:
        return self._topic.seen_by(writer, copy_context())

    async def unload(self) -> None:
        self._topic.unload()

    async def roll(self) -> None:
        self._topic.roll()

    async def make_anew(self) -> None:
        self._topic.make_anew()

    async def mark(self) -> None:
        self._topic.mark()

    async def trim(self) -> None:
        await asyncio.sleep(LEAST_RETENTION_SECONDS + 1)
        while True:
            before = self._topic.trimmed
            self._topic.trim()
            if self._topic.trimmed == before:
                return


@pytest.mark.parametrize("names_markers", [False, True], ids=["newer", "older"])
@pytest.mark.parametrize("one", CASES, ids=[one.name for one in CASES])
def test_the_model_keeps_the_contract(one: Case[World], names_markers: bool) -> None:
    for seed in range(5):
        loop = SimulatedLoop(lambda: 0.0)
        asyncio.set_event_loop(loop)

        async def play(seed: int = seed) -> None:
            await one.play(Model(seed, deduplicates=one.deduplicates, names_markers=names_markers))

        try:
            loop.run_until_complete(play())
            assert not loop.failures
        finally:
            loop.bury()
            asyncio.set_event_loop(None)
            loop.close()


def test_there_are_cases_enough() -> None:
    assert len(CASES) >= 60
    assert len({one.name for one in CASES}) == len(CASES)
