"""ListOffsets' searches that look into records: by time, and the greatest timestamp."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable
from contextlib import aclosing
from typing import Final, NamedTuple, Protocol

from aiokafka.errors import KafkaError
from aiokafka.record.memory_records import MemoryRecords

from handler.errors import EntryUnreadable
from handler.partition.log.port import EntryLog
from handler.partition.read.fetch_cache import FetchedRun
from handler.partition.read.partition_times import PartitionTimes
from handler.partition.read.read_entries import ReadEntry, entries_from
from handler.partition.read.time_index import Stretch
from handler.pulsar.entry import Position
from handler.pulsar.errors import Unavailable
from handler.tasks import Pace, Shared, within
from handler.telemetry.limits import RateLimitedLog
from handler.wire.compression import without_compression
from handler.wire.control_records import is_placeholder
from handler.wire.error_code import ErrorCode
from handler.wire.records import BatchHeader, BatchInvalid, BatchMalformed, read_header

limited = RateLimitedLog(logging.getLogger(__name__))


class TimestampAndOffset(NamedTuple):
    """A record, or where it would be."""

    offset: int
    timestamp: int


NOT_FOUND: Final = TimestampAndOffset(-1, -1)


class Searched(NamedTuple):
    """What a search has found before the end that was confirmed to it."""

    found: TimestampAndOffset
    end: int


# A record's CreateTime is its producer's clock, the search goes by the broker's. A producer may be
# ahead by this much and its records are still found.
CLOCK_SKEW_MS: Final = 5_000
# Without an index so much is looked through for records of clocks that are ahead: about as many milliseconds of the sidecar's.
AHEAD_ENTRIES: Final = 2_000
AHEAD_BYTES: Final = 64 * 1024 * 1024
# For an index that has to be read first. What Kafka clients wait for (request.timeout.ms) is several times that.
WAIT_FOR_INDEX_SECONDS: Final = 5.0
# A scan may need all that comes.
SCAN_PERMITS: Final = 256
# A stored batch may unfold to thirty thousand times its size. What a producer puts into one message of Pulsar's stays below this.
MAX_UNFOLDED: Final = 128 * 1024 * 1024
# Consumers do not get the record at such an offset. Any other error says that nobody can tell now.
NOT_SERVED: Final = frozenset({ErrorCode.OFFSET_OUT_OF_RANGE, ErrorCode.CORRUPT_MESSAGE})
MAX_TIMESTAMP: Final = -3  # as ListOffsets asks for it; times are not negative


class PartitionForSearch(Protocol):
    """The partition, as far as searches need it."""

    @property
    def searches(self) -> Shared[int, Searched]: ...
    @property
    def entry_log(self) -> EntryLog: ...
    @property
    def last_position(self) -> Position | None: ...
    @property
    def times(self) -> PartitionTimes: ...
    @property
    def name(self) -> str: ...
    @property
    def max_ahead_ms(self) -> int:
        """How far a record's time may be ahead of when it was written."""
        ...

    @property
    def moved_start(self) -> Position | None: ...
    def read(self, offset: int, max_bytes: int, at_least_one: bool, since: float) -> FetchedRun | None: ...
    def watch(self, watcher: _News) -> None: ...
    async def confirmed_end(self) -> int: ...
    async def confirmed_start(self) -> int: ...


async def _records(entry: ReadEntry, timestamp: int) -> AsyncGenerator[TimestampAndOffset, None]:
    """Offset and timestamp of every record in those batches of an entry that reach `timestamp`."""
    if entry.content is None:
        return
    data = entry.content.with_offsets(entry.base_offset)
    reaching = ((header, data[at : at + header.size]) for header, at in entry.content.batches if header.max_timestamp >= timestamp)
    try:
        async with aclosing(_records_of(reaching)) as records:
            async for record in records:
                yield record
    except (BatchInvalid, BatchMalformed, KafkaError, ValueError, RuntimeError) as error:
        raise EntryUnreadable(f"the records of entry {entry.position} can't be read: {error}") from error


async def _records_of(batches: Iterable[tuple[BatchHeader, bytes | bytearray]]) -> AsyncGenerator[TimestampAndOffset, None]:
    pace = Pace()
    for header, data in batches:
        batch = MemoryRecords(bytes(without_compression(header, data, MAX_UNFOLDED))).next_batch()
        assert batch is not None
        for record in batch:
            await pace.rest()
            yield TimestampAndOffset(record.offset, record.timestamp)


async def by_time(partition: PartitionForSearch, timestamp: int) -> TimestampAndOffset:
    """The first record whose timestamp is `timestamp` or later: by broker time to near it, then record by record."""
    return await _search(partition, timestamp, lambda end: _by_time(partition, timestamp, end))


async def greatest_timestamp(partition: PartitionForSearch) -> TimestampAndOffset:
    """The record with the greatest timestamp (KIP-734), the first of several.

    All of the log is looked at for it, once (see `partition_times`).
    """
    return await _search(partition, MAX_TIMESTAMP, lambda end: _greatest_timestamp(partition, end))


async def _search(
    partition: PartitionForSearch, key: int, search: Callable[[int], Coroutine[None, None, TimestampAndOffset]]
) -> TimestampAndOffset:
    """Several that ask the same share a search, and none misses what was acknowledged before it asked."""

    async def searched() -> Searched:
        end = await partition.confirmed_end()
        return Searched(await search(end), end)

    if key not in partition.searches:
        return (await partition.searches.call(key, searched)).found
    end = await partition.confirmed_end()
    shared = await partition.searches.call(key, searched)
    if shared.end < end and (shared.found == NOT_FOUND or key == MAX_TIMESTAMP):
        shared = await partition.searches.call(key, searched)  # it had begun before; this one begins now, or did since
    return shared.found


async def _by_time(partition: PartitionForSearch, timestamp: int, end: int) -> TimestampAndOffset:
    log_start = await partition.confirmed_start()
    if log_start >= end:
        return NOT_FOUND
    sought = _Sought(timestamp, log_start, end)
    likely, earliest = await _where_it_may_be(partition, timestamp)
    last = partition.last_position
    if last is None or earliest > last:
        return NOT_FOUND
    index = await partition.times.at_hand(earliest)
    if index is None:
        ahead, size = (await partition.entry_log.stats()).between(earliest, likely)
        if ahead <= AHEAD_ENTRIES and size <= AHEAD_BYTES:
            likely = earliest
        else:
            try:
                index = await within(WAIT_FOR_INDEX_SECONDS, partition.times.whole(earliest))
            except TimeoutError:
                limited.info(
                    "partition %s: %d entries may have records of clocks that are ahead of a search by time. They are being read; "
                    "until that is done such records are not found", partition.name, ahead,
                )  # fmt: skip
    if index is None:
        found = await _scan(partition, likely, sought, AHEAD_ENTRIES, AHEAD_BYTES)
        if found is not None:
            return found
        index = await partition.times.whole(earliest)
    for stretch in index.reaching(timestamp, log_start):
        found = await _scan(partition, stretch.start, sought._replace(end=min(end, stretch.next_offset)))
        if found is not None and found is not NOT_FOUND:
            return found
    return NOT_FOUND


class _Sought(NamedTuple):
    """The first record of a time or later, between two offsets."""

    timestamp: int
    log_start: int
    end: int


async def _scan(
    partition: PartitionForSearch, start: Position, sought: _Sought, max_entries: int = sys.maxsize, max_bytes: int = sys.maxsize
) -> TimestampAndOffset | None:
    """The record that is sought, in the entries from `start` on; None where it is not in so many of them."""
    last = partition.last_position
    if last is None or start > last:
        return NOT_FOUND
    async with aclosing(entries_from(partition.entry_log, start, SCAN_PERMITS)) as entries:
        async for entry in entries:
            if entry.content is not None:
                max_bytes -= len(entry.content.data)
                if entry.content.max_timestamp >= sought.timestamp:
                    async with aclosing(_records(entry, sought.timestamp)) as records:
                        async for record in records:
                            reaches = record.timestamp >= sought.timestamp and record.offset >= sought.log_start
                            if reaches and await _is_served(partition, record.offset):
                                return record
            if entry.next_offset >= sought.end:
                break
            max_entries -= 1
            if max_entries <= 0 or max_bytes <= 0:
                return None
    return NOT_FOUND


async def _where_it_may_be(partition: PartitionForSearch, timestamp: int) -> tuple[Position, Position]:
    """Where the record is if its producer's clock was right, and from where on it may be if that was ahead.

    It may be ahead by `message.timestamp.after.max.ms`.
    """
    log_ = partition.entry_log
    begin = partition.moved_start or (await log_.stats()).first or Position(0, 0)
    likely = await log_.find_time(max(0, timestamp - CLOCK_SKEW_MS)) or begin
    earliest = await log_.find_time(max(0, timestamp - partition.max_ahead_ms)) or begin
    return max(begin, likely), max(begin, min(earliest, likely))


async def _greatest_timestamp(partition: PartitionForSearch, end: int) -> TimestampAndOffset:
    log_start = await partition.confirmed_start()
    if log_start >= end:
        return NOT_FOUND
    begin = partition.moved_start or (await partition.entry_log.stats()).first or Position(0, 0)
    best = NOT_FOUND
    index = await partition.times.whole(begin)
    for stretch in index.greatest_first(log_start):
        # The greatest of a stretch may be that of a record before the log start, or of a batch that was refused.
        if stretch.greatest < best.timestamp or (stretch.greatest == best.timestamp and stretch.base_offset > best.offset):
            break
        best = max(best, await _greatest_in(partition, stretch, log_start), key=lambda one: (one.timestamp, -one.offset))
    return best


async def _greatest_in(partition: PartitionForSearch, stretch: Stretch, log_start: int) -> TimestampAndOffset:
    hidden: set[int] = set()
    while True:
        best = await _greatest_but(partition, stretch, log_start, hidden)
        if best is NOT_FOUND or await _is_served(partition, best.offset):
            return best
        hidden.add(best.offset)


async def _greatest_but(partition: PartitionForSearch, stretch: Stretch, log_start: int, hidden: set[int]) -> TimestampAndOffset:
    best = NOT_FOUND
    async with aclosing(entries_from(partition.entry_log, stretch.start, SCAN_PERMITS)) as entries:
        async for entry in entries:
            if entry.next_offset > log_start and entry.content is not None and entry.content.max_timestamp > best.timestamp:
                async for record in _records(entry, best.timestamp + 1):
                    if record.timestamp > best.timestamp and record.offset >= log_start and record.offset not in hidden:
                        best = record
            if entry.next_offset >= stretch.next_offset:
                break
    return best


async def _is_served(partition: PartitionForSearch, offset: int) -> bool:
    """Whether consumers get the record at this offset: that of a batch which was refused they do not."""
    since = asyncio.get_running_loop().time()
    while True:
        run = partition.read(offset, 1, at_least_one=True, since=since)
        if run is not None:
            break
        news = _News()
        partition.watch(news)
        await news.came.wait()
    if run.error in NOT_SERVED:
        return False
    if run.error is not ErrorCode.NONE:
        raise Unavailable(f"{partition.name} can't be searched now: {run.error.name}")
    async with aclosing(_records_of(_batches_to(offset, b"".join(run.parts)))) as records:
        async for record in records:
            if record.offset >= offset:
                return record.offset == offset
    return False


def _batches_to(offset: int, data: bytes) -> Iterable[tuple[BatchHeader, bytes]]:
    """The first of these batches that goes as far as `offset`, unless it has no record."""
    at = 0
    while at < len(data):
        header = read_header(data, at)
        if header.base_offset + header.last_offset_delta >= offset:
            if not is_placeholder(header):
                yield header, data[at : at + header.size]
            return
        at += header.size


class _News:
    """Somebody who waits for what a partition reads."""

    def __init__(self) -> None:
        self.came = asyncio.Event()

    def on_partition_changed(self, partition: object) -> None:
        self.came.set()
