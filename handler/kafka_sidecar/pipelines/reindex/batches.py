"""Rows of entries as the batches that are written, with the places of their records in their spans. Pure.

An entry's batches are passed on as their bytes; small ones are put together again, many entries in one. What is not
compressed is now: the messages of native producers were, as a whole.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from aiokafka.record.memory_records import MemoryRecords

from kafka_sidecar.errors import CommandFailed
from kafka_sidecar.pipelines.copying.copied_batches import CopiedBatch, Span, built, copied_batches
from kafka_sidecar.pipelines.copying.places import number_of, record_place, shown
from kafka_sidecar.pipelines.copying.reading import SourceRecord
from kafka_sidecar.pipelines.copying.writing import LeaveOut
from kafka_sidecar.pulsar.entry import Position
from kafka_sidecar.wire.compression import with_compression
from kafka_sidecar.wire.records import CODEC_MASK, LZ4, with_base_offsets

if TYPE_CHECKING:
    from pyspark.sql import Row

# Entries are opened in chunks of 1 MiB, so that small ones become one batch.
CHUNK_BYTES: Final = 1_024 * 1_024
SCHEMA: Final = (
    "topic string, partition int, ledger bigint, entry bigint, records int, data binary, problem string, "
    "is_lasting boolean"
)


_ATTRIBUTES_AT: Final = 21
_I16: Final = struct.Struct(">h")


class _Chunk:
    """Entries that follow each other, and where their records are when those are counted from 0 on."""

    def __init__(self) -> None:
        self._begin = 0
        self._parts: list[bytearray] = []
        self._starts: list[int] = []
        self._numbers: list[int] = []
        self._next = 0
        self.size = 0

    def add(self, number: int, data: bytearray, records: int, begin: int = 0) -> None:
        """`begin`: how many of the records are left out, of the first entry alone."""
        assert not begin or not self._parts
        self._begin = self._begin or begin
        self._parts.append(with_base_offsets(data, self._next))
        self._starts.append(self._next)
        self._numbers.append(number)
        self._next += records
        self.size += len(data)

    def entries(self) -> Iterator[_Chunk]:
        """Each alone."""
        ends = [*self._starts[1:], self._next]
        for number, data, start, end in zip(self._numbers, self._parts, self._starts, ends, strict=True):
            one = _Chunk()
            one.add(number, data, end - start, self._begin if start == 0 else 0)
            yield one

    @property
    def position(self) -> Position:
        """Of its first entry."""
        place = record_place(self._numbers[0])
        assert place is not None
        return place.position

    def batches(self) -> Iterator[CopiedBatch]:
        for batch in copied_batches(b"".join(self._parts), self._begin, ()).batches:
            yield batch._replace(spans=tuple(one for span in batch.spans for one in self._placed(span)))

    def _placed(self, span: Span) -> Iterator[Span]:
        at, end = span.source, span.source + span.length
        while at < end:
            entry = bisect_right(self._starts, at) - 1
            entry_end = self._starts[entry + 1] if entry + 1 < len(self._starts) else self._next
            until = min(end, entry_end)
            yield Span(self._numbers[entry] + at - self._starts[entry], until - at)
            at = until


@dataclass(frozen=True, slots=True)
class EntryBatches:
    """For a WritingTask."""

    accept_loss: bool
    limits: Mapping[str, int]  # by topic: the largest batch in bytes that the target takes

    def __call__(self, rows: Iterator[Row], begin: int, leave_out: LeaveOut) -> Iterator[CopiedBatch]:
        """From this source number on. CommandFailed at what can't be copied, ConnectionError at what can't be read
        now.
        """
        begin_place = record_place(begin)
        if begin_place is None:
            return
        chunk, topic = _Chunk(), ""
        for row in rows:
            position = Position(row.ledger, row.entry)
            if position < begin_place.position:
                continue
            if row.problem:
                yield from self._ready(chunk, row.topic, leave_out)
                chunk = _Chunk()
                if not row.is_lasting:
                    raise ConnectionError(row.problem)
                self._without(row.problem, leave_out)
            elif row.records:
                chunk.add(
                    number_of(position),
                    row.data,
                    row.records,
                    begin_place.in_entry if position == begin_place.position else 0,
                )
            if chunk.size >= CHUNK_BYTES:
                yield from self._ready(chunk, row.topic, leave_out)
                chunk = _Chunk()
            topic = row.topic
        yield from self._ready(chunk, topic, leave_out)

    def _without(self, problem: str, leave_out: LeaveOut) -> None:
        if not self.accept_loss:
            raise CommandFailed(f"{problem}. Go on without it with --accept-loss")
        leave_out(problem)

    def _ready(self, chunk: _Chunk, topic: str, leave_out: LeaveOut) -> Iterator[CopiedBatch]:
        try:
            ready = [_compressed(batch) for batch in chunk.batches()]
        except Exception:  # any client may have written the entries, so every kind of error is possible
            yield from self._one_by_one(chunk, topic, leave_out)
            return
        for batch in ready:
            yield from self._fitting(batch, self.limits[topic], leave_out)

    def _one_by_one(self, chunk: _Chunk, topic: str, leave_out: LeaveOut) -> Iterator[CopiedBatch]:
        """Which entry it is that can't be read."""
        for one in chunk.entries():
            try:
                ready = [_compressed(batch) for batch in one.batches()]
            except Exception as error:
                self._without(f"entry {one.position} can't be read as Kafka records: {error}", leave_out)
                continue
            for batch in ready:
                yield from self._fitting(batch, self.limits[topic], leave_out)

    def _fitting(self, batch: CopiedBatch, limit: int, leave_out: LeaveOut) -> Iterator[CopiedBatch]:
        """The batch as the target takes it: native batches, and messages in chunks, may be larger than Kafka's of this
        topic.
        """
        if len(batch.data) <= limit:
            yield batch
        elif batch.record_count > 1:
            for one in built(list(_records(batch)), LZ4, limit // 2):
                yield from self._fitting(one, limit, leave_out)
        else:
            text = (
                f"record {shown(batch.spans[0].source)} takes {len(batch.data)} bytes, and the topic takes {limit}: "
                "raise max.message.bytes"
            )
            self._without(text, leave_out)


def _compressed(batch: CopiedBatch) -> CopiedBatch:
    (attributes,) = _I16.unpack_from(batch.data, _ATTRIBUTES_AT)
    return batch if attributes & CODEC_MASK else batch._replace(data=with_compression(batch.data, LZ4))


def _records(batch: CopiedBatch) -> Iterator[SourceRecord]:
    opened = MemoryRecords(bytes(batch.data)).next_batch()
    assert opened is not None
    numbers = (span.source + number for span in batch.spans for number in range(span.length))
    for number, record in zip(numbers, opened, strict=True):
        yield SourceRecord(number, record.timestamp, record.key, record.value, tuple(record.headers))
