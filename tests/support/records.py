"""Records in what a Fetch answer holds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from aiokafka.record.memory_records import MemoryRecords


def records_in(parts: Iterable[bytes | bytearray]) -> Iterator[tuple[int, bytes | None]]:
    """Offset and value of each that a consumer gives to its application: not those of control batches."""
    batches = MemoryRecords(b"".join(parts))
    while batches.has_next():
        batch = batches.next_batch()
        if not batch.is_control_batch:
            yield from ((record.offset, record.value) for record in batch)
