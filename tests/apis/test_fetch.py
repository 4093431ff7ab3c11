"""Fetch: when it answers, with how much, and what it says of offsets and topics that are not there."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from typing import Any, cast

import pytest

from kafka_sidecar.apis import api
from kafka_sidecar.apis.a01_fetch import handle
from kafka_sidecar.apis.api import Call
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, PartitionData
from tests.apis.test_produce import TOPIC_ID, Setup
from tests.support.batches import batch
from tests.support.services import Sidecar


@pytest.fixture
async def setup() -> AsyncIterator[Setup]:
    made = Setup()
    yield made
    await made.table.close()


def begin(
    setup: Setup,
    offsets: dict[int, int],
    *,
    wait: float = 5.0,
    least: int = 1,
    most: int = 10**6,
    topic: uuid.UUID = TOPIC_ID,
) -> Any:
    wanted = [
        FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=10**6)
        for index, offset in offsets.items()
    ]
    request = FetchRequest(
        topics=[FetchTopic(topic_id=topic, partitions=wanted)],
        max_wait_ms=round(wait * 1000),
        min_bytes=least,
        max_bytes=most,
    )
    return handle(setup.services, Call(13, "test", cast(Any, setup), memoryview(b""), 0), request)


async def fetch(setup: Setup, offsets: dict[int, int], **how: Any) -> dict[int, PartitionData]:
    begun = begin(setup, offsets, **how)
    async with asyncio.timeout(10):
        answer = begun if isinstance(begun, FetchResponse) else await begun
    return {part.partition_index: part for topic in answer.responses for part in topic.partitions}


def records(part: PartitionData) -> bytes:
    return b"".join(part.records or ())


async def test_what_is_there_is_answered_with_both_ends(setup: Setup) -> None:
    await setup.produce(batch(b"a", b"b"))
    answer = (await fetch(setup, {0: 0}))[0]
    assert answer.error_code is ErrorCode.NONE
    assert (answer.high_watermark, answer.last_stable_offset, answer.log_start_offset) == (2, 2, 0)
    assert len(records(answer)) == len(batch(b"a", b"b"))


@pytest.mark.parametrize(("least", "most"), [(100_000, 100_000), (200_000, 100_000)])
async def test_a_fetch_does_not_wait_for_more_than_its_answer_may_hold(setup: Setup, least: int, most: int) -> None:
    for _ in range(10):
        await setup.produce(batch(b"a" * 30_000))
    async with asyncio.timeout(2):
        answer = (await fetch(setup, {0: 0}, wait=5, least=least, most=most))[0]
    assert 60_000 < len(records(answer)) <= most


async def test_a_fetch_at_the_end_waits_for_the_next_record(setup: Setup) -> None:
    await setup.produce(batch(b"a"))
    waiting = asyncio.ensure_future(begin(setup, {0: 1}))
    await asyncio.sleep(0.05)
    assert not waiting.done()
    await setup.produce(batch(b"b"))
    answer = await asyncio.wait_for(waiting, 5)
    assert records(answer.responses[0].partitions[0])


async def test_a_fetch_ends_with_its_time_and_says_where_the_end_is(setup: Setup) -> None:
    await setup.produce(batch(b"a"))
    answer = (await fetch(setup, {0: 1}, wait=0.05))[0]
    assert (answer.error_code, records(answer), answer.high_watermark) == (ErrorCode.NONE, b"", 1)


async def test_it_waits_for_as_many_bytes_as_were_asked_for(setup: Setup) -> None:
    await setup.produce(batch(b"a"))
    waiting = asyncio.ensure_future(begin(setup, {0: 0}, least=2 * len(batch(b"a"))))
    await asyncio.sleep(0.05)
    assert not waiting.done()
    await setup.produce(batch(b"b"))
    answer = await asyncio.wait_for(waiting, 5)
    assert len(records(answer.responses[0].partitions[0])) == 2 * len(batch(b"a"))


async def test_one_batch_is_given_however_small_the_limit(setup: Setup) -> None:
    await setup.produce(batch(b"a" * 1_000), batch(b"b" * 1_000))
    answers = await fetch(setup, {0: 0, 1: 0}, most=10)
    assert sorted(len(records(answer)) > 0 for answer in answers.values()) == [False, True]


@pytest.mark.parametrize("offset", [-5, 9])
async def test_an_offset_outside_of_the_log_is_out_of_range(setup: Setup, offset: int) -> None:
    await setup.produce(batch(b"a"))
    assert (await fetch(setup, {0: offset}))[0].error_code is ErrorCode.OFFSET_OUT_OF_RANGE


async def test_a_busy_partition_does_not_keep_another_from_being_told_that_it_is_out_of_range(setup: Setup) -> None:
    for partition in (0, 1):
        await setup.produce(*[b""] * partition, batch(b"a"))
    for wait in (5.0, 0.0):
        answers = await fetch(setup, {0: 0, 1: 99}, wait=wait)
        assert answers[1].error_code is ErrorCode.OFFSET_OUT_OF_RANGE


async def test_an_offset_out_of_range_is_told_to_who_does_not_want_to_wait(setup: Setup) -> None:
    await setup.produce(batch(b"a"))
    assert (await fetch(setup, {0: 99}, wait=0))[0].error_code is ErrorCode.OFFSET_OUT_OF_RANGE


async def test_no_answer_is_made_while_others_are_not_taken(setup: Setup) -> None:
    await setup.produce(batch(b"a" * 1_000))
    answers = setup.services.answers
    answers.limit = 10_000
    answers.take(10_000)
    assert records((await fetch(setup, {0: 0}, wait=0.05))[0]) == b"", "its time was over"
    waiting = asyncio.ensure_future(begin(setup, {0: 0}))
    await asyncio.sleep(0.02)
    assert answers.is_wanted
    answers.release(9_000)
    answer = await asyncio.wait_for(waiting, 5)
    assert answer.counted_bytes == len(batch(b"a" * 1_000))
    assert answers.used == 1_000 + answer.counted_bytes
    assert not answers.is_wanted


async def test_an_answer_takes_a_quarter_of_what_is_left(setup: Setup) -> None:
    for _ in range(20):
        await setup.produce(batch(b"a" * 1_000))
    setup.services.answers.limit = 20_000
    sizes = []
    for _ in range(40):
        found = await fetch(setup, {0: 0}, wait=0.01)
        sizes.append(len(records(found[0])))
    assert sizes == sorted(sizes, reverse=True)
    assert 3_000 < sizes[0] <= 5_000
    assert sum(sizes) < 20_000 + 2_000, "one batch more than there is room for"
    assert sizes[-1] == 0


async def test_topics_and_partitions_that_are_not_there(setup: Setup) -> None:
    assert (await fetch(setup, {0: 0}, topic=uuid.UUID(int=1)))[0].error_code is ErrorCode.UNKNOWN_TOPIC_ID
    answers = await fetch(setup, {2: 0, -1: 0})
    assert {answer.error_code for answer in answers.values()} == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert not setup.logs, "nothing was opened for them"


@pytest.mark.parametrize(
    ("version", "error"), [(12, ErrorCode.INVALID_TOPIC_EXCEPTION), (13, ErrorCode.UNKNOWN_TOPIC_ID)]
)
async def test_a_topic_without_a_name_and_one_without_an_id(setup: Setup, version: int, error: ErrorCode) -> None:
    request = FetchRequest(topics=[FetchTopic(partitions=[FetchPartition()])])
    answer = handle(setup.services, Call(version, "test", cast(Any, setup), memoryview(b""), 0), request)
    assert isinstance(answer, FetchResponse)
    assert [part.error_code for part in answer.responses[0].partitions] == [error]


async def test_of_topics_that_nobody_knows_only_so_many_are_looked_for_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(api, "MOST_UNKNOWN", 10)
    sidecar = Sidecar()
    sidecar.admin.make("t", 20)
    await sidecar.catalog.find(sidecar.catalog.names.parse("t"))
    sidecar.admin.hold = asyncio.Event()
    unknown = [
        FetchTopic(topic=f"x{number}", partitions=[FetchPartition(partition_max_bytes=1)]) for number in range(50)
    ]
    there = FetchTopic(
        topic="t", partitions=[FetchPartition(partition=index, partition_max_bytes=1) for index in range(20)]
    )
    fetching = sidecar.begin(
        FetchRequest(max_wait_ms=10, min_bytes=1, max_bytes=1_000, session_epoch=-1, topics=[*unknown, there]), 12
    )
    await asyncio.sleep(0)
    assert len(sidecar.table.names()) == 10 + 20, "those that are known are opened all the same"
    sidecar.admin.hold.set()
    answer = await fetching
    errors = {topic.topic: topic.partitions[0].error_code for topic in answer.responses}
    assert errors["x49"] is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    async with asyncio.timeout(5):
        while sidecar.table.opening:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
    await sidecar.close()
