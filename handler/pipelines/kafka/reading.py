"""The records of a partition, in order, as a consumer that reads committed ones sees them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Final, NamedTuple

from aiokafka.record.memory_records import MemoryRecords

from handler.pipelines.kafka.client import KafkaClient, check
from handler.pipelines.kafka.copied_batches import Aborted, FetchedRecords, copied_batches
from handler.pipelines.kafka.topics import READ_COMMITTED
from handler.wire.messages.fetch import FetchableTopicResponse, FetchPartition, FetchRequest, FetchResponse, FetchTopic, PartitionData

# Large enough that a round trip is not the cost.
FETCH_BYTES: Final = 8 * 1_024 * 1_024
WAIT_MS: Final = 500


class Fetched(NamedTuple):
    records: FetchedRecords
    last_stable_offset: int
    log_start_offset: int


async def fetch(kafka: KafkaClient, leader: int, topic: str, partition: int, offset: int, max_bytes: int = FETCH_BYTES) -> Fetched:
    """What the log holds from `offset` on, without aborted transactions; nothing where nothing comes within half a second."""
    wanted = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=max_bytes)
    request = FetchRequest(
        replica_id=-1, max_wait_ms=WAIT_MS, min_bytes=1, max_bytes=max_bytes, isolation_level=READ_COMMITTED,
        session_id=0, session_epoch=-1, topics=[FetchTopic(topic=topic, partitions=[wanted])],
    )  # fmt: skip
    answer = await kafka.ask(leader, request, FetchResponse)
    check(answer.error_code, f"reading topic {topic}")
    found = _partition(answer.responses)
    if found is None:  # a broker that throttles says nothing of it
        return Fetched(FetchedRecords([], offset), -1, -1)
    check(found.error_code, f"reading partition {partition} of topic {topic} at offset {offset}")
    aborted = [Aborted(one.producer_id, one.first_offset) for one in found.aborted_transactions or ()]
    records = copied_batches(b"".join(found.records or ()), offset, aborted)
    return Fetched(records, found.last_stable_offset, found.log_start_offset)


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


async def records(kafka: KafkaClient, topic: str, partition: int, begin: int, end: int) -> AsyncIterator[SourceRecord]:
    """From `begin` to before `end`, or until nothing more is given."""
    leader = await kafka.leader(topic, partition)
    at = begin
    while at < end:
        fetched = (await fetch(kafka, leader, topic, partition, at)).records
        if fetched.next_offset == at:
            return
        for batch in fetched.batches:
            opened = MemoryRecords(bytes(batch.data)).next_batch()
            assert opened is not None
            offsets = (span.source + number for span in batch.spans for number in range(span.length))
            for offset, record in zip(offsets, opened, strict=True):
                if offset < end:
                    yield SourceRecord(offset, record.timestamp, record.key, record.value, tuple(record.headers))
        at = fetched.next_offset
