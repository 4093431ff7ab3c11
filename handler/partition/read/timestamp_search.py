"""ListOffsets' searches that look into records: by time, and the greatest timestamp."""

from __future__ import annotations

import logging
from contextlib import aclosing
from typing import Final, NamedTuple, Protocol

from aiokafka.errors import KafkaError
from aiokafka.record.memory_records import MemoryRecords

from handler.errors import EntryUnreadable
from handler.partition.log.port import EntryLog
from handler.partition.read.read_entries import ReadEntry, entries_from
from handler.pulsar.entry import Position
from handler.tasks import Shared
from handler.telemetry.limits import RateLimitedLog

limited = RateLimitedLog(logging.getLogger(__name__))


class TimestampAndOffset(NamedTuple):
    """A record, or where it would be."""

    offset: int
    timestamp: int


NOT_FOUND: Final = TimestampAndOffset(-1, -1)

# A record's CreateTime is its producer's clock, the search goes by the broker's. A producer may be
# ahead by this much and its records are still found.
CLOCK_SKEW_MS: Final = 5_000
# So many entries more are looked through for records of clocks that are ahead: about as many milliseconds of the sidecar's.
AHEAD_ENTRIES: Final = 2_000
AHEAD_BYTES: Final = 64 * 1024 * 1024
# A scan may need all that comes.
SCAN_PERMITS: Final = 256
MAX_TIMESTAMP: Final = -3  # as ListOffsets asks for it; times are not negative


class PartitionForSearch(Protocol):
    """The partition, as far as searches need it."""

    @property
    def searches(self) -> Shared[int, TimestampAndOffset]: ...
    @property
    def entry_log(self) -> EntryLog: ...
    @property
    def last_position(self) -> Position | None: ...
    @property
    def end_offset(self) -> int: ...
    @property
    def timestamps_known_from(self) -> int: ...
    @property
    def max_timestamp_known(self) -> TimestampAndOffset: ...
    @property
    def max_ahead_ms(self) -> int:
        """How far a record's time may be ahead of when it was written."""
        ...

    @property
    def moved_start(self) -> Position | None: ...
    def greatest_found(self, start: int, end: int) -> TimestampAndOffset | None: ...
    def remember_greatest(self, start: int, end: int, found: TimestampAndOffset) -> None: ...
    async def confirmed_end(self) -> int: ...
    async def confirmed_start(self) -> int: ...


def _records(entry: ReadEntry, timestamp: int) -> list[TimestampAndOffset]:
    """Offset and timestamp of every record in those batches of an entry that reach `timestamp`."""
    if entry.content is None:
        return []
    found = []
    data = entry.content.with_offsets(entry.base_offset)
    reaching = [data[at : at + header.size] for header, at in entry.content.batches if header.max_timestamp >= timestamp]
    try:
        batches = MemoryRecords(b"".join(reaching))
        while batches.has_next():
            batch = batches.next_batch()
            assert batch is not None
            found += [TimestampAndOffset(record.offset, record.timestamp) for record in batch]
    except (KafkaError, ValueError, RuntimeError) as error:
        raise EntryUnreadable(f"the records of entry {entry.position} can't be read: {error}") from error
    return found


async def by_time(partition: PartitionForSearch, timestamp: int) -> TimestampAndOffset:
    """The first record whose timestamp is `timestamp` or later: by broker time to near it, then record by record."""
    return await partition.searches.call(timestamp, lambda: _by_time(partition, timestamp))


async def greatest_timestamp(partition: PartitionForSearch) -> TimestampAndOffset:
    """The record with the greatest timestamp (KIP-734), the first of several.

    The fold knows it for the entries it has folded. Those before are read once, from the log start on.
    """
    return await partition.searches.call(MAX_TIMESTAMP, lambda: _greatest_timestamp(partition))


async def _by_time(partition: PartitionForSearch, timestamp: int) -> TimestampAndOffset:
    end = await partition.confirmed_end()
    log_start = await partition.confirmed_start()
    if log_start >= end:
        return NOT_FOUND
    start = await _where_to_begin(partition, timestamp)
    last = partition.last_position
    if start is not None and last is not None and start > last:
        return NOT_FOUND
    if partition.moved_start is not None and (start is None or start < partition.moved_start):
        start = partition.moved_start
    async with aclosing(entries_from(partition.entry_log, start, SCAN_PERMITS)) as entries:
        async for entry in entries:
            if entry.content is not None and entry.content.max_timestamp >= timestamp:
                for record in _records(entry, timestamp):
                    if record.timestamp >= timestamp and record.offset >= log_start:
                        return record
            if entry.next_offset >= end:
                break
    return NOT_FOUND


async def _where_to_begin(partition: PartitionForSearch, timestamp: int) -> Position | None:
    """An entry before which no record has the timestamp; None for the beginning of the log.

    A producer's clock may be ahead by `message.timestamp.after.max.ms`. What it wrote so long before is looked through as well, if
    that is not too much: else records of clocks that are ahead by more than a little may be missed.
    """
    log_ = partition.entry_log
    start = await log_.find_time(max(0, timestamp - CLOCK_SKEW_MS))
    earliest = await log_.find_time(max(0, timestamp - partition.max_ahead_ms))
    last = partition.last_position
    if start is None or earliest is None or last is None or earliest >= start:
        return start
    entries, size = (await log_.stats()).between(earliest, min(start, last.after()))
    if entries <= AHEAD_ENTRIES and size <= AHEAD_BYTES:
        return earliest
    limited.info("%d entries may have records of clocks that are ahead of a search by time, which are not looked through", entries)
    return start


async def _greatest_timestamp(partition: PartitionForSearch) -> TimestampAndOffset:
    await partition.confirmed_end()
    start = await partition.confirmed_start()
    if start >= partition.end_offset:
        return NOT_FOUND
    best = partition.max_timestamp_known
    if partition.timestamps_known_from > start or best.offset < start:
        end = partition.end_offset
        found = partition.greatest_found(start, end)
        if found is None:
            found = await _scan_greatest(partition, start, end)
            partition.remember_greatest(start, end, found)
        best = found
    return await _exact(partition, best, start)


async def _scan_greatest(partition: PartitionForSearch, log_start: int, end: int) -> TimestampAndOffset:
    best = NOT_FOUND
    async with aclosing(entries_from(partition.entry_log, partition.moved_start, SCAN_PERMITS)) as entries:
        async for entry in entries:
            if entry.next_offset > log_start and entry.content is not None and entry.content.max_timestamp > best.timestamp:
                best = max(best, _greatest_of(entry, log_start), key=lambda one: one.timestamp)
            if entry.next_offset >= end:
                break
    return best


def _greatest_of(entry: ReadEntry, log_start: int) -> TimestampAndOffset:
    """The greatest timestamp of an entry, and where to look for its record; of one that begins before the log start what is left of it."""
    assert entry.content is not None
    if entry.base_offset >= log_start:
        return TimestampAndOffset(entry.base_offset, entry.content.max_timestamp)
    left = [record for record in _records(entry, -1) if record.offset >= log_start]
    return max(left, key=lambda record: record.timestamp, default=NOT_FOUND)


async def _exact(partition: PartitionForSearch, batch: TimestampAndOffset, log_start: int) -> TimestampAndOffset:
    """The record within the batch that has its greatest timestamp."""
    if batch is NOT_FOUND or batch.offset < 0:
        return NOT_FOUND
    position = await partition.entry_log.find_index(batch.offset)
    if position is None:
        return NOT_FOUND
    async with aclosing(entries_from(partition.entry_log, position, 1)) as entries:
        async for entry in entries:
            for record in _records(entry, batch.timestamp):
                if record.timestamp == batch.timestamp and record.offset >= max(batch.offset, log_start):
                    return record
            break
    return NOT_FOUND
