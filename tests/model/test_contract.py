"""The model as unit tests script it keeps the contract that real brokers keep (integration/test_contract.py)."""

from __future__ import annotations

import pytest

from kafka_sidecar.partition.log.port import EntryLog
from tests.contract.all_cases import CASES
from tests.contract.case import Case, World
from tests.contract.copies import COPIES, Clusters
from tests.support.memory_log import MemoryLog
from tests.support.replicator import Replicator


class Scripted:
    """A topic at which nothing takes time and nothing goes wrong."""

    def __init__(self, *, deduplicates: bool, names_markers: bool) -> None:
        self.names_markers = names_markers
        self.topic = MemoryLog(deduplicates=deduplicates, names_markers=names_markers)

    def log(self, writer: str) -> EntryLog:
        return self.topic.named(writer)

    async def unload(self) -> None:
        self.topic.unload()

    async def roll(self) -> None:
        self.topic.roll()

    async def make_anew(self) -> None:
        self.topic.make_anew()

    async def mark(self) -> None:
        self.topic.mark()

    async def trim(self) -> None:
        self.topic.trim(sum(entry.position.ledger < self.topic.ledger for entry in self.topic.entries))


@pytest.mark.parametrize("names_markers", [False, True], ids=["newer", "older"])
@pytest.mark.parametrize("one", CASES, ids=[one.name for one in CASES])
async def test_the_model_keeps_the_contract(one: Case[World], names_markers: bool) -> None:
    await one.play(Scripted(deduplicates=one.deduplicates, names_markers=names_markers))


class ScriptedClusters:
    source = "east"

    def __init__(self, *, names_entries: bool) -> None:
        self.names_entries = names_entries
        self.here, self.there = (Scripted(deduplicates=False, names_markers=False) for _ in range(2))
        here, there = self.here.topic, self.there.topic
        self._replicators = [
            Replicator(origin, source, target, names_entries=names_entries)
            for origin, source, target in ((here, "east", there), (there, "west", here))
        ]

    async def replicate(self) -> None:
        for one in self._replicators:
            one.go_on()


@pytest.mark.parametrize("names_entries", [True, False], ids=["newer", "older"])
@pytest.mark.parametrize("one", COPIES, ids=[one.name for one in COPIES])
async def test_the_model_keeps_the_contract_of_copies(one: Case[Clusters], names_entries: bool) -> None:
    await one.play(ScriptedClusters(names_entries=names_entries))
