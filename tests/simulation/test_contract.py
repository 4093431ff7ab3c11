"""The model of Pulsar keeps the contract that real brokers keep (integration/test_contract.py)."""

from __future__ import annotations

import asyncio
from contextvars import Context, copy_context

import pytest

from kafka_sidecar.partition.log.port import EntryLog
from tests.contract.all_cases import CASES
from tests.contract.case import Case, World
from tests.contract.internal import INTERNAL, Internal
from tests.model.cluster import Cluster, ClusterAdmin, ClusterClient, Obliging
from tests.model.internal_log import InternalLog
from tests.simulation.chance import Chance
from tests.simulation.conduct import DrawnCaller, DrawnConduct, DrawnWay
from tests.simulation.plan import Bounds
from tests.simulation.topic import LEAST_RETENTION_SECONDS, SimulatedTopic
from tests.support.virtual_time import in_virtual_time


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

        async def play(seed: int = seed) -> None:
            await one.play(Model(seed, deduplicates=one.deduplicates, names_markers=names_markers))

        in_virtual_time(play())


def test_there_are_cases_enough() -> None:
    assert len(CASES) >= 60
    assert len({one.name for one in CASES}) == len(CASES)


class ModelInternal:
    """A topic of the simulated cluster, and a process for each name."""

    def __init__(self, seed: int) -> None:
        loop, chance = asyncio.get_running_loop(), Chance(seed)
        conduct = DrawnConduct(loop, chance, Bounds())
        self._cluster = Cluster(lambda _, partition: InternalLog(conduct, loop, partition), Obliging())
        self._conduct = conduct
        self._contexts: dict[str, Context] = {}
        self.topic = "persistent://public/default/t"
        self.partition = f"{self.topic}-partition-0"
        self.admin = ClusterAdmin(self._cluster, DrawnCaller(conduct, "admin", copy_context()))
        self._cluster.create(self.topic, 1)

    def client(self, name: str) -> ClusterClient:
        context = self._contexts.setdefault(name, copy_context())
        return ClusterClient(self._cluster, name, DrawnCaller(self._conduct, name, context))

    def roll(self) -> None:
        self._cluster.log(self.partition).roll()

    async def cut(self, name: str) -> None:
        for connection in list(self._cluster.log(self.partition).connections):
            if isinstance(connection.way, DrawnWay) and connection.way.context is self._contexts[name]:
                connection.cut()


@pytest.mark.parametrize("one", INTERNAL, ids=[one.name for one in INTERNAL])
def test_the_model_keeps_the_contract_of_internal_topics(one: Case[Internal]) -> None:
    for seed in range(5):

        async def play(seed: int = seed) -> None:
            await one.play(ModelInternal(seed))

        in_virtual_time(play())
