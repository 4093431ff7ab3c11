"""ListOffsets' searches that look into records: by time, and the greatest timestamp."""

from __future__ import annotations

import asyncio
import heapq
import logging
import sys
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable
from contextlib import aclosing
from typing import Final, NamedTuple, Protocol

from aiokafka.errors import KafkaError
from aiokafka.record.memory_records import MemoryRecords

from kafka_sidecar.errors import EntryUnreadable
from kafka_sidecar.loop.pace import Pace
from kafka_sidecar.loop.single_flight import SingleFlight
from kafka_sidecar.loop.waiting import within
from kafka_sidecar.partition.follow.read_entries import ReadEntry, entries_from
from kafka_sidecar.partition.log.opened_batch import size_if_small
from kafka_sidecar.partition.log.port import EntryLog
from kafka_sidecar.partition.log.unfolding import LARGE_BYTES, unfolding
from kafka_sidecar.partition.read.fetch_cache import FetchedRun
from kafka_sidecar.partition.search.partition_times import PartitionTimes
from kafka_sidecar.partition.search.time_index import Stretch
from kafka_sidecar.pulsar.entry import Position
from kafka_sidecar.pulsar.errors import Unavailable
from kafka_sidecar.telemetry.limits import RateLimitedLog
from kafka_sidecar.wire.compression import without_compression
from kafka_sidecar.wire.control_records import is_placeholder
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.records import CODEC_MASK, BatchHeader, BatchInvalid, BatchMalformed, read_header

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
# Without an index, a search scans this much of the log for records of producers whose clocks are further ahead. That
# takes the sidecar about 2 s.
AHEAD_ENTRIES: Final = 2_000
AHEAD_BYTES: Final = 64 * 1024 * 1024
# A search waits this long for an index that must be read first. Kafka clients wait several times longer
# (request.timeout.ms).
WAIT_FOR_INDEX_SECONDS: Final = 5.0
# A search that found nothing and took longer than 1 s is repeated once for records that were written meanwhile.
LASTING_SECONDS: Final = 1.0
# Flow permits of a scan, which may need every entry that the broker delivers.
SCAN_PERMITS: Final = 256
# A stored batch may decompress to thirty thousand times its size. The limit is above what a producer puts into one
# Pulsar message.
MAX_UNFOLDED: Final = 128 * 1024 * 1024
# With these fetch errors consumers get no record at the offset. Any other error leaves that open for now.
NOT_SERVED: Final = frozenset({ErrorCode.OFFSET_OUT_OF_RANGE, ErrorCode.CORRUPT_MESSAGE})
# Batches of a stretch that are examined at a time for its greatest timestamp. Further batches are examined only if
# consumers get no records from these.
MOST_CANDIDATES: Final = 1_000
# ListOffsets requests the greatest timestamp by this value (KIP-734); real timestamps are not negative.
MAX_TIMESTAMP: Final = -3


class PartitionForSearch(Protocol):
    """The partition, as far as searches need it."""

    @property
    def searches(self) -> SingleFlight[int, Searched]: ...
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
    @property
    def log_start(self) -> int: ...
    def read(self, offset: int, max_bytes: int, at_least_one: bool, since: float) -> FetchedRun | None: ...
    def watch(self, watcher: _News) -> None: ...
    async def confirmed_end(self) -> int: ...
    async def confirmed_start(self) -> int: ...


async def _records(entry: ReadEntry, timestamp: int) -> AsyncGenerator[TimestampAndOffset, None]:
    """Offset and timestamp of every record in those batches of an entry that reach `timestamp`."""
    if entry.content is None:
        return
    data = entry.content.with_offsets(entry.base_offset)
    reaching = (
        (header, data[at : at + header.size])
        for header, at in entry.content.batches
        if header.max_timestamp >= timestamp
    )
    async with aclosing(_records_of(reaching, f"entry {entry.position}")) as records:
        async for record in records:
            yield record


async def _records_of(
    batches: Iterable[tuple[BatchHeader, bytes | bytearray]], where: str
) -> AsyncGenerator[TimestampAndOffset, None]:
    pace = Pace()
    try:
        for header, data in batches:
            batch = MemoryRecords(await _unfolded(header, data)).next_batch()
            assert batch is not None
            for record in batch:
                await pace.maybe_yield()
                yield TimestampAndOffset(record.offset, record.timestamp)
    except (BatchInvalid, BatchMalformed, KafkaError, ValueError, RuntimeError) as error:
        raise EntryUnreadable(f"the records of {where} can't be read: {error}") from error


async def _unfolded(header: BatchHeader, data: bytes | bytearray) -> bytes:
    if not header.attributes & CODEC_MASK:
        return bytes(data)
    size = size_if_small(data, LARGE_BYTES)
    if size is not None and unfolding().has_time_for(size, header.record_count):
        return bytes(without_compression(header, data, LARGE_BYTES))
    unfolded = await unfolding().questions.look_into(
        len(data), lambda: bytes(without_compression(header, data, MAX_UNFOLDED))
    )
    assert unfolded is not None, "it is wanted"
    return unfolded


async def by_time(partition: PartitionForSearch, timestamp: int) -> TimestampAndOffset:
    """The first record whose timestamp is `timestamp` or later: by broker time to near it, then record by record."""
    return await _search(partition, timestamp, lambda start, end: _by_time(partition, _Sought(timestamp, start, end)))


async def greatest_timestamp(partition: PartitionForSearch) -> TimestampAndOffset:
    """The record with the greatest timestamp (KIP-734), the first of several.

    All of the log is looked at for it, once (see `partition_times`).
    """
    return await _search(partition, MAX_TIMESTAMP, lambda start, _: _greatest_timestamp(partition, start))


async def _search(
    partition: PartitionForSearch, key: int, search: Callable[[int, int], Coroutine[None, None, TimestampAndOffset]]
) -> TimestampAndOffset:
    """Several that ask the same share a search, and none misses what was acknowledged before it asked.

    The answer is that of the log as it was up to one place: its end when it was confirmed.
    """
    loop = asyncio.get_running_loop()

    async def searched() -> Searched:
        start, has_lasted = await partition.confirmed_start(), False
        searched_to = start  # No record before this offset matches
        while True:
            begun, end = loop.time(), await partition.confirmed_end()
            found = await search(searched_to, end) if searched_to < end else NOT_FOUND
            began, start = start, await partition.confirmed_start()
            if found != NOT_FOUND and found.offset >= start and start != began and key == MAX_TIMESTAMP:
                # The log start moved during the search and may have trimmed the greatest record. A record written
                # before that may be the greatest now, so the entries from the searched end on are searched too.
                behind, end = end, await partition.confirmed_end()
                later = await search(behind, end) if behind < end else NOT_FOUND
                found, start = max(found, later, key=_by_greatness), await partition.confirmed_start()
            if found != NOT_FOUND and found.offset >= start:
                return Searched(found, end)
            # If the start has moved, the log is searched again: the record that was found may be gone. If a search
            # without a result has lasted for long, what was written meanwhile is searched, too: a client that hears of
            # no such record passes over it.
            if start == began and (has_lasted or loop.time() - begun <= LASTING_SECONDS):
                return Searched(found, end)
            has_lasted = start == began
            searched_to = max(start, end) if found == NOT_FOUND else start

    if key not in partition.searches:
        return (await partition.searches.call(key, searched)).found
    end = await partition.confirmed_end()
    shared = await partition.searches.call(key, searched)
    if shared.end < end and (shared.found == NOT_FOUND or key == MAX_TIMESTAMP):
        # The shared search began before this request. This call begins a new search, or joins one that began since.
        shared = await partition.searches.call(key, searched)
    return shared.found


async def _by_time(partition: PartitionForSearch, sought: _Sought) -> TimestampAndOffset:
    likely, earliest = await _where_it_may_be(partition, sought.timestamp)
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
                    "partition %s: %d entries may have records of clocks that are ahead of a search by time. They are "
                    "being read; until that is done such records are not found",
                    partition.name,
                    ahead,
                )
    if index is None:
        found = await _scan(partition, likely, sought, AHEAD_ENTRIES, AHEAD_BYTES)
        if found is not None and (found is not NOT_FOUND or likely == earliest):
            return found
        index = await partition.times.whole(earliest)
    for stretch in index.reaching(sought.timestamp, sought.log_start):
        found = await _scan(partition, stretch.start, sought._replace(end=min(sought.end, stretch.next_offset)))
        if found is not None and found is not NOT_FOUND:
            return found
    return NOT_FOUND


class _Sought(NamedTuple):
    """The first record of a time or later, between two offsets."""

    timestamp: int
    log_start: int
    end: int


async def _scan(
    partition: PartitionForSearch,
    start: Position,
    sought: _Sought,
    max_entries: int = sys.maxsize,
    max_bytes: int = sys.maxsize,
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
                            reaches = (
                                record.timestamp >= sought.timestamp and sought.log_start <= record.offset < sought.end
                            )
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


async def _greatest_timestamp(partition: PartitionForSearch, log_start: int) -> TimestampAndOffset:
    begin = partition.moved_start or (await partition.entry_log.stats()).first or Position(0, 0)
    best = NOT_FOUND
    index = await partition.times.whole(begin)
    for stretch in index.greatest_first(log_start):
        # The greatest timestamp of a stretch may belong to a record before the log start, or to a refused batch. So it
        # is only an upper bound.
        if stretch.greatest < best.timestamp or (
            stretch.greatest == best.timestamp and stretch.base_offset > best.offset
        ):
            break
        best = await _greatest_in(partition, stretch, log_start, best)
    return best


def _by_greatness(one: TimestampAndOffset) -> tuple[int, int]:
    """The first of several that are equal is the greatest."""
    return one.timestamp, -one.offset


class _Candidate(NamedTuple):
    """A batch, by what its header says. The greatest is looked at first, the first of several that are equal."""

    timestamp: int
    negated_offset: int  # Minus the offset of its first record, or minus the log start offset if that is greater


async def _greatest_in(
    partition: PartitionForSearch, stretch: Stretch, log_start: int, best: TimestampAndOffset
) -> TimestampAndOffset:
    """The greatest of a stretch that consumers are given, or `best` if that is greater."""
    below = _Candidate(sys.maxsize, 0)
    while True:
        candidates = await _greatest_batches(partition, stretch, log_start, below)
        for candidate in candidates:
            if candidate < (best.timestamp, -best.offset):
                return best
            best = max(best, await _greatest_served(partition, -candidate.negated_offset), key=_by_greatness)
        if len(candidates) < MOST_CANDIDATES:
            return best
        below = candidates[-1]


async def _greatest_batches(
    partition: PartitionForSearch, stretch: Stretch, log_start: int, below: _Candidate
) -> list[_Candidate]:
    """The greatest batches of a stretch that come behind `below`, in their order."""
    found: list[_Candidate] = []  # A heap with the least candidate first
    async with aclosing(entries_from(partition.entry_log, stretch.start, SCAN_PERMITS)) as entries:
        async for entry in entries:
            next_offset = entry.base_offset
            for header, _ in entry.content.batches if entry.content is not None else ():
                candidate = _Candidate(header.max_timestamp, -max(next_offset, log_start))
                next_offset += header.offset_count
                if next_offset <= log_start or candidate >= below:
                    continue
                if len(found) < MOST_CANDIDATES:
                    heapq.heappush(found, candidate)
                elif candidate > found[0]:
                    heapq.heapreplace(found, candidate)
            if entry.next_offset >= stretch.next_offset:
                break
    return sorted(found, reverse=True)


async def _greatest_served(partition: PartitionForSearch, offset: int) -> TimestampAndOffset:
    """Of the records from an offset on in its batch, as consumers are given them.

    Where the log starts behind that by now, of those from the log start on in theirs.
    """
    best = NOT_FOUND
    async with aclosing(_served_from(partition, max(offset, partition.log_start))) as records:
        async for record in records:
            if record.timestamp > best.timestamp:
                best = record
    return best


async def _is_served(partition: PartitionForSearch, offset: int) -> bool:
    """Whether consumers get the record at this offset: that of a batch which was refused they do not."""
    async with aclosing(_served_from(partition, offset)) as records:
        async for record in records:
            return record.offset == offset
    return False


async def _served_from(partition: PartitionForSearch, offset: int) -> AsyncGenerator[TimestampAndOffset, None]:
    """The records from an offset on to the end of the batch that has it, as consumers are given them."""
    since = asyncio.get_running_loop().time()
    while True:
        if offset < partition.log_start:
            return  # A fetch waits here until the log end is confirmed; a search does not
        run = partition.read(offset, 1, at_least_one=True, since=since)
        if run is not None:
            break
        news = _News()
        partition.watch(news)
        await news.came.wait()
    if run.error in NOT_SERVED:
        return
    if run.error is not ErrorCode.NONE:
        raise Unavailable(f"{partition.name} can't be searched now: {run.error.name}")
    async with aclosing(_records_of(_batches_to(offset, b"".join(run.parts)), f"offset {offset}")) as records:
        async for record in records:
            if record.offset >= offset:
                yield record


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
