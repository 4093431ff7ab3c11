"""Who is elected, and what topic stats say of it."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from kafka_sidecar.coordination.directory import active_consumer
from kafka_sidecar.coordination.election import Election
from kafka_sidecar.model.sidecar import SidecarInfo

SUBSCRIPTION = "leaders"


def _stats(active: str, *consumers: dict[str, Any]) -> dict[str, Any]:
    return {"subscriptions": {SUBSCRIPTION: {"activeConsumerName": active, "consumers": list(consumers)}}}


def test_the_active_consumer_s_metadata_say_where_it_is() -> None:
    metadata = {"kafka.advertised": "host:9092", "kafka.node": "3", "kafka.control": "host:9094"}
    stats = _stats("b", {"consumerName": "a", "metadata": {}}, {"consumerName": "b", "metadata": metadata})
    assert active_consumer(stats, SUBSCRIPTION) == SidecarInfo("b", 3, "host:9092", "host:9094")


def test_stats_without_a_leader_name_none() -> None:
    assert active_consumer({}, SUBSCRIPTION) is None
    assert active_consumer({"subscriptions": {}}, SUBSCRIPTION) is None
    assert active_consumer(_stats("gone", {"consumerName": "a"}), SUBSCRIPTION) is None
    assert active_consumer(_stats("a", {"consumerName": "a", "metadata": None}), SUBSCRIPTION) == SidecarInfo(
        "a", 0, "", ""
    )


class _Candidate:
    def __init__(self, priority: int) -> None:
        self.priority = priority
        self.open = True

    def close(self) -> None:
        self.open = False


class _Broker:
    """Lets candidates in one by one."""

    def __init__(self) -> None:
        self.candidates: list[_Candidate] = []
        self.let_in = asyncio.Event()

    async def candidate(
        self, topic: str, subscription: str, name: str, priority: int, events: Election, metadata: Any
    ) -> _Candidate:
        await self.let_in.wait()
        self.candidates.append(_Candidate(priority))
        return self.candidates[-1]


class _Shard:
    def __init__(self) -> None:
        self.said: list[str] = []

    def elect(self) -> None:
        self.said.append("elect")

    def depose(self, reason: str) -> None:
        self.said.append("depose")


@pytest.mark.parametrize("while_it_joins", [False, True])
async def test_who_claims_a_shard_has_one_candidate_for_it(
    while_it_joins: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kafka_sidecar.coordination.election.FIRST_DELAY", 0.001)
    broker, shard = _Broker(), _Shard()
    election = Election(cast(Any, broker), "t", SUBSCRIPTION, "me", {}, cast(Any, shard), lambda: 1_800_000_000_000)
    if not while_it_joins:
        broker.let_in.set()
    await asyncio.sleep(0.02)
    election.claim()
    broker.let_in.set()
    await asyncio.sleep(0.05)
    assert [candidate.open for candidate in broker.candidates] == [*[False] * (len(broker.candidates) - 1), True]
    assert broker.candidates[-1].priority < 2**30
    election.close()
    await asyncio.sleep(0.01)
    assert not any(candidate.open for candidate in broker.candidates)


async def test_who_is_not_listed_for_a_while_stands_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker that closed the topic let this candidate in, and told it that it leads. Nobody else knows it."""
    monkeypatch.setattr("kafka_sidecar.coordination.election.FIRST_DELAY", 0.001)
    monkeypatch.setattr("kafka_sidecar.coordination.election.FORGOTTEN_SECONDS", 0.02)
    broker, shard = _Broker(), _Shard()
    election = Election(cast(Any, broker), "t", SUBSCRIPTION, "me", {}, cast(Any, shard), lambda: 1_800_000_000_000)
    election.note_listed(False)
    await asyncio.sleep(0.03)
    election.note_listed(False)
    broker.let_in.set()
    await asyncio.sleep(0.01)
    assert len(broker.candidates) == 1, "who has not joined yet is not missed"
    for is_listed in (False, True, False, None):  # None: the broker has said nothing
        election.note_listed(is_listed)
        await asyncio.sleep(0.01)
    assert shard.said == []
    election.note_listed(False)
    await asyncio.sleep(0.02)
    election.note_listed(False)
    await asyncio.sleep(0.02)
    assert [candidate.open for candidate in broker.candidates] == [False, True]
    assert shard.said == ["depose"]
    election.close()
    await asyncio.sleep(0.01)
