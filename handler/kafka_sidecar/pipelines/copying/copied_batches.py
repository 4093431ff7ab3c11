"""The record batches of a Fetch answer, as they are produced again. Pure.

A batch is passed on as its bytes where that gives the same records. Its records are put together again where it begins
before the first wanted offset, lacks records that compaction has removed (a produced batch must be full), carries the
broker's time instead of its records' (LogAppendTime), is of an old magic, or is so small that requests would be the
cost: many small ones become one.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.memory_records import MemoryRecords

from kafka_sidecar.wire.control_records import read_marker
from kafka_sidecar.wire.crc import crc32c
from kafka_sidecar.wire.messages.fetch import AbortedTransaction
from kafka_sidecar.wire.records import (
    CHECKED_FROM,
    CODEC_MASK,
    CONTROL,
    HEADER,
    LOG_APPEND_TIME,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    TRANSACTIONAL,
    BatchHeader,
    BatchMalformed,
)

_MAGIC_AT: Final = 16
_LENGTH_AT: Final = 8
_OVERHEAD: Final = 12
_I32: Final = struct.Struct(">i")
# Attribute bit of a record batch whose base timestamp compaction has replaced with the delete horizon (KIP-534).
DELETE_HORIZON: Final = 0x40
# A Produce request takes one batch per partition and costs a round trip. From 16 KiB on a batch is worth its own
# request; smaller batches are merged.
SMALL_BYTES: Final = 16_384
# Below the max.message.bytes of practically every topic (by default 1 MiB).
MERGED_BYTES: Final = 65_536


class Span(NamedTuple):
    """Source offsets that follow each other."""

    source: int
    length: int


class CopiedBatch(NamedTuple):
    data: bytearray  # a whole record batch, without a producer id
    spans: tuple[Span, ...]  # the source offsets of its records, in order
    record_count: int


class FetchedRecords(NamedTuple):
    batches: list[CopiedBatch]
    next_offset: int  # where the next Fetch begins: behind everything that was fetched, copied or not


def copied_batches(data: bytes, first: int, aborted: Iterable[AbortedTransaction]) -> FetchedRecords:
    """`data` may begin before `first` and end in the middle of a batch, as Fetch gives it. BatchMalformed where it was
    damaged.
    """
    filtered = _AbortedFilter(aborted)
    made: list[CopiedBatch] = []
    merging = _Merging(first)
    next_offset = first
    for batch in _whole_batches(data):
        if batch[_MAGIC_AT] < 2:
            merging.add_legacy(batch)
            made += merging.full()
            next_offset = max(next_offset, merging.next_offset)
            continue
        header = BatchHeader._make(HEADER.unpack_from(batch))
        if crc32c(batch[CHECKED_FROM:]) != header.crc:  # checked here, because the copy gets a new checksum
            raise BatchMalformed(f"the record batch at offset {header.base_offset} has a wrong checksum")
        end = header.base_offset + header.last_offset_delta + 1
        next_offset = max(next_offset, end)
        if filtered.leaves_out(header, batch) or end <= first or not header.record_count:
            continue
        if _can_be_passed_on(header, first) and header.size >= SMALL_BYTES:
            made += merging.flush()
            made.append(_passed_on(header, batch))
        else:
            merging.add(header, batch)
            made += merging.full()
    made += merging.flush()
    return FetchedRecords(made, next_offset)


def with_producer(batch: CopiedBatch, producer_id: int, epoch: int, sequence: int, attributes: int) -> bytes:
    """The batch as this producer sends it; `attributes` are added to its own."""
    data = batch.data
    header = BatchHeader._make(HEADER.unpack_from(data))
    header = header._replace(
        base_offset=0,
        leader_epoch=-1,
        attributes=header.attributes | attributes,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
    )
    HEADER.pack_into(data, 0, *header)
    HEADER.pack_into(data, 0, *header._replace(crc=crc32c(memoryview(data)[CHECKED_FROM:])))
    return bytes(data)


def _whole_batches(data: bytes) -> Iterator[memoryview]:
    view, at = memoryview(data), 0
    while len(data) - at > _MAGIC_AT:
        size = _I32.unpack_from(data, at + _LENGTH_AT)[0] + _OVERHEAD
        if size > len(data) - at:
            return
        yield view[at : at + size]
        at += size


class _AbortedFilter:
    """Leaves out what Kafka's consumer leaves out (CompletedFetch.nextFetchedRecord)."""

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        self._to_come = deque(sorted(aborted, key=lambda one: one.first_offset))
        self._producers: set[int] = set()

    def leaves_out(self, header: BatchHeader, batch: memoryview) -> bool:
        last = header.base_offset + header.last_offset_delta
        while self._to_come and self._to_come[0].first_offset <= last:
            self._producers.add(self._to_come.popleft().producer_id)
        if header.attributes & CONTROL:
            marker = read_marker(batch)
            if marker is not None and not marker.committed:
                self._producers.discard(header.producer_id)
            return True
        return bool(header.attributes & TRANSACTIONAL) and header.producer_id in self._producers


def _can_be_passed_on(header: BatchHeader, first: int) -> bool:
    is_full = header.record_count == header.offset_count
    return is_full and header.base_offset >= first and not header.attributes & (LOG_APPEND_TIME | DELETE_HORIZON)


def _passed_on(header: BatchHeader, batch: memoryview) -> CopiedBatch:
    data = bytearray(batch)
    plain = header._replace(
        attributes=header.attributes & ~TRANSACTIONAL,
        producer_id=NO_PRODUCER_ID,
        producer_epoch=-1,
        base_sequence=NO_SEQUENCE,
    )
    HEADER.pack_into(data, 0, *plain)
    return CopiedBatch(data, (Span(header.base_offset, header.record_count),), header.record_count)


class _Merging:
    """Records that are put together again, until there are enough of them for a batch."""

    def __init__(self, first: int) -> None:
        self._first = first
        self._records: list[Any] = []
        self._bytes = 0
        self._codec = 0
        # The batch that all records came from, as long as it is a single one that can be copied unchanged.
        self._only: tuple[BatchHeader, memoryview] | None = None
        self.next_offset = first

    def add(self, header: BatchHeader, batch: memoryview) -> None:
        if not self._records and self._only is None and _can_be_passed_on(header, self._first):
            self._only = header, batch
            return
        self._open_only()
        self._take(batch, header.attributes & CODEC_MASK)

    def add_legacy(self, batch: memoryview) -> None:
        self._open_only()
        self._take(batch, 0)

    def _open_only(self) -> None:
        if self._only is not None:
            header, batch = self._only
            self._only = None
            self._take(batch, header.attributes & CODEC_MASK)

    def _take(self, batch: memoryview, codec: int) -> None:
        if not self._records:
            self._codec = codec
        opened = MemoryRecords(bytes(batch)).next_batch()
        assert opened is not None
        if not opened.validate_crc():
            raise BatchMalformed("an old message has a wrong checksum")
        for record in opened:
            self.next_offset = record.offset + 1
            if record.offset >= self._first:
                self._records.append(record)
                self._bytes += len(record.key or b"") + len(record.value or b"") + 32

    def full(self) -> list[CopiedBatch]:
        return self.flush() if self._bytes >= MERGED_BYTES else []

    def flush(self) -> list[CopiedBatch]:
        if self._only is not None:
            only, self._only = self._only, None
            return [_passed_on(*only)]
        records, self._records, self._bytes = self._records, [], 0
        return list(built(records, self._codec, MERGED_BYTES))


def built(records: Sequence[Any], codec: int, most_bytes: int) -> Iterator[CopiedBatch]:
    """Batches of these records; more than one where they are large."""
    at = 0
    while at < len(records):
        builder = DefaultRecordBatchBuilder(
            magic=2,
            compression_type=codec,
            is_transactional=0,
            producer_id=NO_PRODUCER_ID,
            producer_epoch=-1,
            base_sequence=NO_SEQUENCE,
            batch_size=most_bytes,
        )
        begin = at
        while at < len(records):
            record = records[at]
            timestamp = _timestamp(record)
            # aiokafka's builder takes a first timestamp of -1 for none, and uses the next record's as the base
            # timestamp.
            if (timestamp < 0) != (_timestamp(records[begin]) < 0) or builder.append(
                at - begin, timestamp, record.key, record.value, list(record.headers)
            ) is None:
                break
            at += 1
        yield CopiedBatch(
            bytearray(builder.build()), _spans([record.offset for record in records[begin:at]]), at - begin
        )


def _timestamp(record: Any) -> int:
    return NO_TIMESTAMP if record.timestamp is None else int(record.timestamp)


def _spans(offsets: Sequence[int]) -> tuple[Span, ...]:
    spans: list[Span] = []
    for offset in offsets:
        if spans and offset == spans[-1].source + spans[-1].length:
            spans[-1] = spans[-1]._replace(length=spans[-1].length + 1)
        else:
            spans.append(Span(offset, 1))
    return tuple(spans)
