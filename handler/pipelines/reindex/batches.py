"""Rows of entries as the batches that are written, with the places of their records in their spans. Pure.

An entry's batches are passed on as their bytes; small ones are put together anew, many entries in one.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from handler.pipelines.kafka.copied_batches import CopiedBatch, Span, copied_batches
from handler.pipelines.mirror.places import number_of, record_place
from handler.pipelines.mirror.target import CanNotCopy
from handler.pipelines.mirror.writing import LeaveOut
from handler.pulsar.entry import Position
from handler.wire.records import with_base_offsets

if TYPE_CHECKING:
    from pyspark.sql import Row

# Entries are looked at together, so that small ones become one batch.
CHUNK_BYTES: Final = 1_024 * 1_024
SCHEMA: Final = "topic string, partition int, ledger bigint, entry bigint, records int, data binary, problem string, is_lasting boolean"


class _Chunk:
    """Entries that follow each other, and where their records are when those are counted from 0 on."""

    def __init__(self, begin: int) -> None:
        self._begin = begin  # in the first entry
        self._parts: list[bytearray] = []
        self._starts: list[int] = []
        self._numbers: list[int] = []
        self._next = 0
        self.size = 0

    def add(self, number: int, data: bytearray, records: int) -> None:
        self._parts.append(with_base_offsets(data, self._next))
        self._starts.append(self._next)
        self._numbers.append(number)
        self._next += records
        self.size += len(data)

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


def batches(rows: Iterable[Row], begin: int, leave_out: LeaveOut, accept_loss: bool) -> Iterator[CopiedBatch]:
    """From this source number on. CanNotCopy at what can't be read, ConnectionError at what can't be read now."""
    begin_place = record_place(begin)
    if begin_place is None:
        return
    chunk = _Chunk(begin_place.in_entry)
    is_first = True
    for row in rows:
        position = Position(row.ledger, row.entry)
        if position < begin_place.position:
            continue
        if is_first and position != begin_place.position:
            chunk = _Chunk(0)
        is_first = False
        if row.problem:
            yield from chunk.batches()
            chunk = _Chunk(0)
            if not row.is_lasting:
                raise ConnectionError(row.problem)
            if not accept_loss:
                raise CanNotCopy(f"{row.problem}. Go on without it with --accept-loss")
            leave_out(row.problem)
        elif row.records:
            chunk.add(number_of(position), row.data, row.records)
        if chunk.size >= CHUNK_BYTES:
            yield from chunk.batches()
            chunk = _Chunk(0)
    yield from chunk.batches()
