"""Produce: what is refused before anything is written, and how the answers of partitions come together."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from kafka_sidecar.apis.a00_produce import handle
from kafka_sidecar.apis.api import Call, Services
from kafka_sidecar.apis.state.answer_share import AnswerShare
from kafka_sidecar.apis.state.fetch_session_cache import FetchSessionCache
from kafka_sidecar.apis.state.promise import Promise
from kafka_sidecar.apis.state.refused_batches import RefusedBatches
from kafka_sidecar.config import KafkaConfig
from kafka_sidecar.fleet.member import Member
from kafka_sidecar.loop.keyed_lock import KeyedLock
from kafka_sidecar.partition.log.log_config import MAX_AHEAD_MS
from kafka_sidecar.topics.catalog import Catalog, Topic
from kafka_sidecar.topics.names import TopicName, TopicNames
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.support.batches import batch
from tests.support.fleet import TestFleet
from tests.support.memory_log import MemoryLog
from tests.support.partitions import open_table

NAME = TopicName("public", "default", "t")
TOPIC_ID = uuid.UUID(int=77)
EMPTY = PartitionProduceData()


@dataclass(eq=False)
class Setup:
    logs: dict[str, MemoryLog] = field(default_factory=dict)
    aborted: int = 0
    waiting_since: float | None = None

    def __post_init__(self) -> None:
        self.refused = RefusedBatches()
        catalog = Catalog(cast(Any, None), TopicNames("public/default", "public/__kafka"), lambda: 0.0)
        catalog._remember(Topic(NAME, 2, TOPIC_ID, 0.0))
        self.table = open_table(lambda topic, name: self.logs.setdefault(topic, MemoryLog()).named(name))
        self.fleet = TestFleet(Member(0, "127.0.0.1", 9092))
        self.services = Services(
            config=KafkaConfig(),
            catalog=catalog,
            configs=cast(Any, None),
            partitions=self.table,
            sessions=FetchSessionCache(),
            groups=cast(Any, None),
            peers=cast(Any, None),
            fleet=self.fleet,
            mirror=cast(Any, None),
            in_turn=KeyedLock(),
            log_starts=cast(Any, None),
            transactions=cast(Any, None),
            answers=AnswerShare(2**30),
            clock=asyncio.get_running_loop().time,
            wall_clock=lambda: int(time.time() * 1000),
        )

    def begin(
        self, *records: bytes | None, acks: int = -1, version: int = 13, topic: TopicProduceData | None = None
    ) -> Any:
        partitions = [PartitionProduceData(index=index, records=data) for index, data in enumerate(records)]
        topics = [topic or TopicProduceData(topic_id=TOPIC_ID, partition_data=partitions)]
        request = ProduceRequest(acks=acks, timeout_ms=5_000, topic_data=topics)
        return handle(self.services, Call(version, "test", cast(Any, self), memoryview(b""), 0), request)

    def abort(self) -> None:
        self.aborted += 1

    async def produce(self, *records: bytes | None, **how: Any) -> list[tuple[ErrorCode, int]]:
        promise: Promise[Any] = self.begin(*records, **how)
        told: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        promise.then(told.set_result)
        async with asyncio.timeout(5):
            answer = await told
        return [(part.error_code, part.base_offset) for topic in answer.responses for part in topic.partition_responses]

    @property
    def written(self) -> int:
        return sum(len(log.entries) for log in self.logs.values())


@pytest.fixture
async def setup() -> AsyncIterator[Setup]:
    made = Setup()
    yield made
    await made.table.close()


async def test_partitions_are_answered_together_in_the_order_asked(setup: Setup) -> None:
    assert await setup.produce(batch(b"a", b"b"), batch(b"c")) == [(ErrorCode.NONE, 0), (ErrorCode.NONE, 0)]
    assert await setup.produce(batch(b"d"), batch(b"e")) == [(ErrorCode.NONE, 2), (ErrorCode.NONE, 1)]


async def test_one_bad_partition_does_not_hold_the_others_up(setup: Setup) -> None:
    assert await setup.produce(b"garbage" * 20, batch(b"good")) == [(ErrorCode.INVALID_RECORD, -1), (ErrorCode.NONE, 0)]


async def test_acks_0_writes_and_answers_nothing_when_it_is_written(setup: Setup) -> None:
    told: list[Any] = []
    promise = setup.begin(batch(b"a"), acks=0)
    promise.then(told.append)
    assert not promise.resolved, "the request holds its bytes of the budget until it is written"
    assert await setup.produce(batch(b"b")) == [(ErrorCode.NONE, 1)]
    assert told == [None]
    assert setup.aborted == 0


async def test_a_client_of_acks_0_learns_of_an_error_by_losing_its_connection(setup: Setup) -> None:
    setup.begin(b"garbage" * 20, acks=0)
    assert setup.aborted == 1


@pytest.mark.parametrize(
    ("records", "how", "error"),
    [
        (batch(b"a"), {"acks": 2}, ErrorCode.INVALID_REQUIRED_ACKS),
        (None, {}, ErrorCode.INVALID_RECORD),
        (b"", {}, ErrorCode.INVALID_RECORD),
        (batch(b"a")[:-3], {}, ErrorCode.CORRUPT_MESSAGE),
        (batch(b"a")[:-1] + b"!", {}, ErrorCode.CORRUPT_MESSAGE),
        (batch(b"a") * 2, {}, ErrorCode.INVALID_RECORD),
        (batch(b"a" * 100, codec=4), {"version": 6}, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        (batch(b"a", timestamp=int(time.time() * 1000) + 2 * MAX_AHEAD_MS), {}, ErrorCode.INVALID_TIMESTAMP),
        (
            batch(b"a"),
            {"topic": TopicProduceData(topic_id=uuid.UUID(int=1), partition_data=[EMPTY])},
            ErrorCode.UNKNOWN_TOPIC_ID,
        ),
        (
            batch(b"a"),
            {"topic": TopicProduceData(name="no/such", partition_data=[EMPTY])},
            ErrorCode.INVALID_TOPIC_EXCEPTION,
        ),
    ],
    ids=["acks", "null", "empty", "cut", "changed", "two batches", "zstd", "from tomorrow", "unknown id", "bad name"],
)
async def test_what_is_known_to_be_bad_is_not_written(
    setup: Setup, records: bytes | None, how: dict[str, Any], error: ErrorCode
) -> None:
    assert await setup.produce(records, **how) == [(error, -1)]
    assert setup.written == 0
