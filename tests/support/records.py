"""Records in what a Fetch answer holds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from aiokafka.record.memory_records import MemoryRecords

from kafka_sidecar.partition.fold.transactions import AbortedTransaction

_ABORT: Final = b"\0\0\0\0"


def records_in(parts: Iterable[bytes | bytearray]) -> Iterator[tuple[int, bytes | None]]:
    """Offset and value of each that a consumer gives to its application: not those of control batches."""
    batches = MemoryRecords(b"".join(parts))
    while batches.has_next():
        batch = batches.next_batch()
        if not batch.is_control_batch:
            yield from ((record.offset, record.value) for record in batch)


def committed_in(
    parts: Iterable[bytes | bytearray], aborted: Iterable[AbortedTransaction]
) -> Iterator[tuple[int, bytes | None]]:
    """The same for a consumer of read_committed, which is told what was aborted (CompletedFetch.nextFetchedRecord of
    Java's).
    """
    waiting = sorted(aborted, key=lambda one: one.first_offset)
    aborted_now: set[int] = set()
    batches = MemoryRecords(b"".join(parts))
    while batches.has_next():
        batch = batches.next_batch()
        while waiting and waiting[0].first_offset <= batch.next_offset - 1:
            aborted_now.add(waiting.pop(0).producer_id)
        if batch.is_control_batch:
            (record,) = batch
            if record.key == _ABORT:
                aborted_now.discard(batch.producer_id)
        elif not (batch.is_transactional and batch.producer_id in aborted_now):
            yield from ((record.offset, record.value) for record in batch)
