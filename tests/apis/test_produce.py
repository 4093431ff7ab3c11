"""Produce: what is refused before anything is written, and how the answers of partitions come together."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any, cast

import pytest
from kio.schema.errors import ErrorCode

from handler.apis.a00_produce import MAX_AHEAD_MS, handle
from handler.apis.answer_share import AnswerShare
from handler.apis.api import Call, Services
from handler.apis.fetch_sessions import FetchSessions
from handler.apis.promise import Promise
from handler.config import KafkaConfig
from handler.partition.partition import PartitionLimits
from handler.partition.table import PartitionTable
from handler.topics.catalog import Catalog, Topic
from handler.topics.names import TopicName, TopicNames
from handler.wire.produce import ProducedPartition, ProducedTopic, ProduceRequest
from tests.support.batches import batch
from tests.support.memory_log import MemoryLog

NAME = TopicName("public", "default", "t")
TOPIC_ID = uuid.UUID(int=77)


@dataclass
class Setup:
    logs: dict[str, MemoryLog] = field(default_factory=dict)
    aborted: int = 0

    def __post_init__(self) -> None:
        catalog = Catalog(cast(Any, None), TopicNames("public/default", "public/__kafka"), lambda: 0.0)
        catalog._remember(Topic(NAME, 2, TOPIC_ID, 0.0))
        self.table = PartitionTable(
            lambda topic, name: self.logs.setdefault(topic, MemoryLog()).named(name), "kafka-sidecar-t", 10**6, PartitionLimits()
        )
        self.services = Services(
            config=KafkaConfig(), catalog=catalog, partitions=self.table, sessions=FetchSessions(),
            groups=cast(Any, None), peers=cast(Any, None), mirror=cast(Any, None), order=cast(Any, None), answers=AnswerShare(2**30),
            clock=asyncio.get_running_loop().time, wall_clock=lambda: int(time.time() * 1000),
        )  # fmt: skip

    def begin(self, *records: bytes | None, acks: int = -1, version: int = 13, topic: ProducedTopic | None = None) -> Any:
        partitions = [ProducedPartition(index, data) for index, data in enumerate(records)]
        topics = [topic or ProducedTopic(None, TOPIC_ID, partitions)]
        request = ProduceRequest(None, acks, 5_000, topics)
        return handle(self.services, Call(0, version, request, "test", cast(Any, self), memoryview(b"")))

    def abort(self) -> None:
        self.aborted += 1

    async def produce(self, *records: bytes | None, **how: Any) -> list[tuple[ErrorCode, int]]:
        promise: Promise[Any] = self.begin(*records, **how)
        told: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        promise.then(told.set_result)
        async with asyncio.timeout(5):
            answer = await told
        return [(part["error_code"], part["base_offset"]) for topic in answer["responses"] for part in topic["partition_responses"]]

    @property
    def written(self) -> int:
        return sum(len(log.entries) for log in self.logs.values())


@pytest.fixture
async def setup() -> AsyncIterator[Setup]:
    made = Setup()
    yield made
    await made.table.close()


async def test_partitions_are_answered_together_in_the_order_asked(setup: Setup) -> None:
    assert await setup.produce(batch(b"a", b"b"), batch(b"c")) == [(ErrorCode.none, 0), (ErrorCode.none, 0)]
    assert await setup.produce(batch(b"d"), batch(b"e")) == [(ErrorCode.none, 2), (ErrorCode.none, 1)]


async def test_one_bad_partition_does_not_hold_the_others_up(setup: Setup) -> None:
    assert await setup.produce(b"garbage" * 20, batch(b"good")) == [(ErrorCode.invalid_record, -1), (ErrorCode.none, 0)]


async def test_acks_0_writes_and_answers_nothing_when_it_is_written(setup: Setup) -> None:
    told: list[Any] = []
    promise = setup.begin(batch(b"a"), acks=0)
    promise.then(told.append)
    assert not promise.resolved, "the request holds its bytes of the budget until it is written"
    assert await setup.produce(batch(b"b")) == [(ErrorCode.none, 1)]
    assert told == [None]
    assert setup.aborted == 0


async def test_a_client_of_acks_0_learns_of_an_error_by_losing_its_connection(setup: Setup) -> None:
    setup.begin(b"garbage" * 20, acks=0)
    assert setup.aborted == 1


@pytest.mark.parametrize(
    ("records", "how", "error"),
    [
        (batch(b"a"), {"acks": 2}, ErrorCode.invalid_required_acks),
        (None, {}, ErrorCode.invalid_record),
        (b"", {}, ErrorCode.invalid_record),
        (batch(b"a")[:-3], {}, ErrorCode.corrupt_message),
        (batch(b"a")[:-1] + b"!", {}, ErrorCode.corrupt_message),
        (batch(b"a") * 2, {}, ErrorCode.invalid_record),
        (batch(b"a" * 100, codec=4), {"version": 6}, ErrorCode.unsupported_compression_type),
        (batch(b"a", timestamp=int(time.time() * 1000) + 2 * MAX_AHEAD_MS), {}, ErrorCode.invalid_timestamp),
        (batch(b"a"), {"topic": ProducedTopic(None, uuid.UUID(int=1), [ProducedPartition(0, b"")])}, ErrorCode.unknown_topic_id),
        (batch(b"a"), {"topic": ProducedTopic("no/such", None, [ProducedPartition(0, b"")])}, ErrorCode.invalid_topic_exception),
    ],
)
async def test_what_is_known_to_be_bad_is_not_written(setup: Setup, records: bytes | None, how: dict[str, Any], error: ErrorCode) -> None:
    assert await setup.produce(records, **how) == [(error, -1)]
    assert setup.written == 0
