"""The records of a partition, in order, as a consumer that reads committed ones sees them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Final, NamedTuple

from aiokafka.record.memory_records import MemoryRecords

from kafka_sidecar.kafka_client.client import KafkaClient, Refused, check
from kafka_sidecar.kafka_client.topics import READ_COMMITTED
from kafka_sidecar.pipelines.copying.copied_batches import FetchedRecords, copied_batches
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)

# 8 MiB: large enough that reading does not spend most of its time on round trips.
FETCH_BYTES: Final = 8 * 1_024 * 1_024
WAIT_MS: Final = 500
EMPTY_SECONDS: Final = 30.0
EMPTY_PAUSE_SECONDS: Final = 0.05


async def fetch(
    kafka: KafkaClient, leader: int, topic: str, partition: int, offset: int, max_bytes: int = FETCH_BYTES
) -> FetchedRecords:
    """What the log holds from `offset` on, without aborted transactions; nothing where nothing comes within half a
    second.
    """
    wanted = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=max_bytes)
    request = FetchRequest(
        replica_id=-1,
        max_wait_ms=WAIT_MS,
        min_bytes=1,
        max_bytes=max_bytes,
        isolation_level=READ_COMMITTED,
        session_id=0,
        session_epoch=-1,
        topics=[FetchTopic(topic=topic, partitions=[wanted])],
    )
    answer = await kafka.ask(leader, request, FetchResponse)
    check(answer.error_code, f"reading topic {topic}")
    found = _partition(answer.responses)
    if found is None:  # a broker that throttles answers without any partition
        return FetchedRecords([], offset)
    check(found.error_code, f"reading partition {partition} of topic {topic} at offset {offset}")
    return copied_batches(b"".join(found.records or ()), offset, found.aborted_transactions or ())


def _partition(topics: Any) -> PartitionData | None:
    topic: FetchableTopicResponse
    for topic in topics:
        for one in topic.partitions:
            return one
    return None


class SourceRecord(NamedTuple):
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


async def records(
    kafka: KafkaClient, topic: str, partition: int, begin: int, end: int, max_bytes: int = FETCH_BYTES
) -> AsyncIterator[SourceRecord]:
    """From `begin` to before `end`. Refused where the log gives nothing for a while."""
    leader = await kafka.leader(topic, partition)
    at, empty = begin, 0
    while at < end:
        fetched = await fetch(kafka, leader, topic, partition, at, max_bytes)
        if fetched.next_offset == at:  # the broker throttles or is busy
            empty += 1
            if empty * WAIT_MS > EMPTY_SECONDS * 1_000:
                text = f"offsets {at} to {end - 1} of partition {partition} of topic {topic} are not given"
                raise Refused(ErrorCode.REQUEST_TIMED_OUT, text)
            await asyncio.sleep(EMPTY_PAUSE_SECONDS)
            continue
        empty = 0
        for batch in fetched.batches:
            opened = MemoryRecords(bytes(batch.data)).next_batch()
            assert opened is not None
            offsets = (span.source + number for span in batch.spans for number in range(span.length))
            for offset, record in zip(offsets, opened, strict=True):
                if offset < end:
                    yield SourceRecord(offset, record.timestamp, record.key, record.value, tuple(record.headers))
        at = fetched.next_offset
