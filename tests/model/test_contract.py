"""The model as unit tests script it keeps the contract that real brokers keep (integration/test_contract.py)."""

from __future__ import annotations

import pytest

from handler.partition.log.port import EntryLog
from tests.contract.all_cases import CASES
from tests.contract.case import Case
from tests.support.memory_log import MemoryLog


class Scripted:
    """A topic at which nothing takes time and nothing goes wrong."""

    def __init__(self, *, deduplicates: bool, names_markers: bool) -> None:
        self.names_markers = names_markers
        self._log = MemoryLog(deduplicates=deduplicates, names_markers=names_markers)

    def log(self, writer: str) -> EntryLog:
        return self._log.named(writer)

    async def unload(self) -> None:
        self._log.unload()

    async def roll(self) -> None:
        self._log.roll()

    async def make_anew(self) -> None:
        self._log.make_anew()

    async def mark(self) -> None:
        self._log.mark()

    async def trim(self) -> None:
        self._log.trim(sum(entry.position.ledger < self._log.ledger for entry in self._log.entries))


@pytest.mark.parametrize("names_markers", [False, True], ids=["newer", "older"])
@pytest.mark.parametrize("one", CASES, ids=[one.name for one in CASES])
async def test_the_model_keeps_the_contract(one: Case, names_markers: bool) -> None:
    await one.play(Scripted(deduplicates=one.deduplicates, names_markers=names_markers))
