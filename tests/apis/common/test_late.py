"""Questions that take too long: what clients are told, and that who asks again joins the work."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kafka_sidecar.pulsar.errors import Unavailable
from kafka_sidecar.topics.description import FRESH_SECONDS
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kafka_sidecar.wire.messages.describe_topic_partitions import Cursor, DescribeTopicPartitionsRequest
from kafka_sidecar.wire.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from tests.apis.test_offsets_of_groups import commit, fetched
from tests.apis.test_topics import described
from tests.support.batches import batch
from tests.support.memory_log import MemoryLog
from tests.support.services import NAMESPACE, Sidecar, errors

LATE = ErrorCode.LEADER_NOT_AVAILABLE


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafka_sidecar.apis.common.late.LATE_AFTER_SECONDS", 0.05)


async def test_a_topic_that_is_described_late_has_no_leader_yet_and_who_asks_again_joins(sidecar: Sidecar) -> None:
    sidecar.admin.make("t")
    await sidecar.catalog.cluster_id()
    sidecar.admin.hold = asyncio.Event()
    assert errors(await described(sidecar, "t")) == [LATE]
    questions = sidecar.admin.calls
    assert errors(await described(sidecar, "t")) == [LATE]
    assert sidecar.admin.calls == questions
    sidecar.admin.hold.set()
    assert errors(await described(sidecar, "t")) == [ErrorCode.NONE]
    assert sidecar.admin.calls == questions


async def test_a_listing_leaves_out_no_topic_because_it_is_slow(
    sidecar: Sidecar, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b", "c"):
        sidecar.admin.make(name)
    await described(sidecar, "a")
    sidecar.skew += FRESH_SECONDS
    created_at = sidecar.admin.created_at

    async def slow(partition: str) -> str:
        if not partition.startswith(NAMESPACE + "c"):
            await asyncio.sleep(60)
        return await created_at(partition)

    monkeypatch.setattr(sidecar.admin, "created_at", slow)
    listed = await described(sidecar)
    assert [(topic.name, topic.error_code) for topic in listed] == [
        ("a", ErrorCode.NONE),
        ("b", LATE),
        ("c", ErrorCode.NONE),
    ]
    page = await sidecar.ask(DescribeTopicPartitionsRequest(response_partition_limit=100), 0)
    assert [topic.name for topic in page.topics] == ["a"]
    assert page.next_cursor == Cursor(topic_name="b")


async def list_offsets(sidecar: Sidecar, timestamp: int) -> ErrorCode:
    topic = ListOffsetsTopic(name="t", partitions=[ListOffsetsPartition(timestamp=timestamp)])
    answer = await sidecar.ask(ListOffsetsRequest(topics=[topic]), 7)
    (error,) = errors(answer.topics[0].partitions)
    return error


@pytest.mark.parametrize("timestamp", [-1, -2, -3, 5])
async def test_offsets_that_are_found_late(sidecar: Sidecar, timestamp: int, monkeypatch: pytest.MonkeyPatch) -> None:
    sidecar.admin.make("t")
    log = sidecar.logs["persistent://public/default/t-partition-0"] = MemoryLog()
    log.write(batch(b"x"))
    go = asyncio.Event()
    stats = MemoryLog.stats

    async def slow(self: MemoryLog) -> Any:
        await go.wait()
        return await stats(self)

    monkeypatch.setattr(MemoryLog, "stats", slow)
    assert await list_offsets(sidecar, timestamp) is LATE
    go.set()
    monkeypatch.setattr("kafka_sidecar.apis.common.late.LATE_AFTER_SECONDS", 5.0)
    assert await list_offsets(sidecar, timestamp) is ErrorCode.NONE


async def test_a_search_by_time_is_made_once_for_all_who_ask_and_ends_when_nobody_does(
    sidecar: Sidecar, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kafka_sidecar.partition.partition.SEARCH_LINGER_SECONDS", 0.2)
    sidecar.admin.make("t")
    log = sidecar.logs["persistent://public/default/t-partition-0"] = MemoryLog()
    log.write(batch(b"x"))
    searches, ended = 0, asyncio.Event()

    async def endless(self: MemoryLog, _: int) -> Any:
        nonlocal searches
        searches += 1
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    monkeypatch.setattr(MemoryLog, "find_time", endless)
    for _ in range(3):
        assert await list_offsets(sidecar, 5) is LATE
    assert searches == 1
    await asyncio.wait_for(ended.wait(), 2)


async def test_offsets_of_a_group_that_are_told_late_are_asked_for_again(sidecar: Sidecar) -> None:
    sidecar.admin.make("t")
    sidecar.offsets.hold_receipts = True
    committing = asyncio.ensure_future(commit(sidecar, 7))
    await asyncio.sleep(0.01)
    assert await fetched(sidecar) == (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, {})
    assert sidecar.offsets.owner is not None
    sidecar.offsets.hold_receipts = False
    sidecar.offsets.owner.let_go()
    await committing
    assert await fetched(sidecar) == (ErrorCode.NONE, {"t": 7})


async def test_what_changes_something_has_no_limit(sidecar: Sidecar) -> None:
    sidecar.admin.make("t")
    await described(sidecar, "t")
    sidecar.admin.hold = asyncio.Event()
    deleting = asyncio.ensure_future(sidecar.ask(DeleteTopicsRequest(topics=[DeleteTopicState(name="t")]), 6))
    await asyncio.sleep(0.2)
    assert not deleting.done()
    sidecar.admin.hold.set()
    assert errors((await deleting).responses) == [ErrorCode.NONE]


async def test_offsets_that_pulsar_can_not_tell_now_are_asked_for_again(
    sidecar: Sidecar, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NOT_LEADER_OR_FOLLOWER would be the end of it for librdkafka."""
    sidecar.admin.make("t")

    async def away(self: MemoryLog) -> Any:
        raise Unavailable("no broker")

    monkeypatch.setattr(MemoryLog, "stats", away)
    assert await list_offsets(sidecar, -2) is LATE
