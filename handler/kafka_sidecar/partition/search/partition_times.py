"""The index of a partition's greatest timestamps: read from the log when a search first needs it, then kept up by the
fold.

It begins where searches have needed it so far. A large one is stored in Pulsar (`snapshot_topic`), so that the next
sidecar need not read the same again. It takes its bytes from the cache's budget; one that is let go is made again when
it is needed.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import aclosing
from typing import Final, Protocol

from kafka_sidecar.errors import EntryUnreadable
from kafka_sidecar.internal_topics.snapshot_topic import SnapshotTopic
from kafka_sidecar.loop.clock import Clock
from kafka_sidecar.loop.single_flight import SingleFlight
from kafka_sidecar.partition.fold.fold import Folded
from kafka_sidecar.partition.log.entries import Content, CountedFewer, is_from_before_index, read_headers
from kafka_sidecar.partition.log.large_entries import look_beforehand
from kafka_sidecar.partition.log.port import EntryLog
from kafka_sidecar.partition.read.fetch_cache import FetchCache
from kafka_sidecar.partition.search.time_index import MAX_BYTES, TimeIndex
from kafka_sidecar.pulsar.entry import Position, RawEntry
from kafka_sidecar.pulsar.errors import Unavailable
from kafka_sidecar.pulsar.raw_entries import raw_entries_from
from kafka_sidecar.wire.records import NO_TIMESTAMP

log = logging.getLogger(__name__)

# Flow permits of a reader that may have to read the whole log.
PERMITS: Final = 256
# At most four partitions read their index at the same time; the others wait.
AT_A_TIME: Final = 4
# An index that was read within a second or two is not worth storing. A stored index is replaced only when its coverage
# in bytes has changed by more than 1/16.
STORED_FROM_BYTES: Final = 64 * 1024 * 1024
STORED_ANEW_AFTER: Final = 1 / 16
# A search loads a stored index if at most this much was written since, and reads the rest from the log.
LITTLE_ENTRIES: Final = 2_000
LITTLE_BYTES: Final = 64 * 1024 * 1024
_KEY: Final = b"time-index:"


class TimeIndexes:
    """What the indexes of all partitions share."""

    def __init__(self, cache: FetchCache, states: SnapshotTopic | None) -> None:
        self.cache = cache
        self.states = states
        self.reading = asyncio.Semaphore(AT_A_TIME)


class PartitionForTimes(Protocol):
    """The partition, as far as its index needs it."""

    @property
    def last_position(self) -> Position | None:
        """The last entry that was folded."""
        ...


class PartitionTimes:
    def __init__(
        self, name: str, log_: EntryLog, partition: PartitionForTimes, indexes: TimeIndexes, clock: Clock
    ) -> None:
        self._name = name
        self._log = log_
        self._partition = partition
        self._indexes = indexes
        self._clock = clock
        self.index: TimeIndex | None = None  # The fold adds each entry that it has folded
        self._calls: SingleFlight[Position, TimeIndex] = SingleFlight()
        self._turn = asyncio.Lock()
        self._storing: asyncio.Task[None] | None = None
        self._stored_bytes = 0
        self._looked_for_stored = False

    # --- from the fold

    def add(self, folded: Folded, content: Content) -> None:
        """An entry was folded, right after the one before."""
        given = [
            header
            for (header, _), verdict in zip(content.batches, folded.verdicts, strict=True)
            if not verdict.is_hidden
        ]
        self._add(folded, max((header.max_timestamp for header in given), default=NO_TIMESTAMP), len(content.data))

    def add_unreadable(self, folded: Folded, size: int) -> None:
        self._add(folded, NO_TIMESTAMP, size)

    def _add(self, folded: Folded, greatest: int, size: int) -> None:
        if self.index is not None:
            self.index.add(folded.position, folded.base_offset, folded.next_offset, greatest, size)

    # --- for searches

    async def at_hand(self, begin: Position) -> TimeIndex | None:
        """An index from `begin` on to the end of the fold, if it is there or almost. May raise PulsarError."""
        if self.index is not None and self.index.begin <= begin:
            return await self.whole(begin)
        if self.index is None and not self._looked_for_stored:
            self._looked_for_stored = True
            stored = await self._stored()
            last = self._partition.last_position
            if stored is not None and stored.last is not None and last is not None and stored.begin <= begin:
                entries, size = (await self._log.stats()).between(stored.last, last)
                if entries <= LITTLE_ENTRIES and size <= LITTLE_BYTES:
                    return await self.whole(begin, stored)
        return None

    async def whole(self, begin: Position, known: TimeIndex | None = None) -> TimeIndex:
        """An index from `begin` on to the end of the fold: read, where it isn't there. May raise PulsarError."""
        index = self.index
        if index is not None and index.begin <= begin:
            self._indexes.cache.hold_index(self.let_go, MAX_BYTES)
            return index
        return await self._calls.call(begin, lambda: self._read(begin, known))

    def let_go(self) -> None:
        """Its bytes are wanted."""
        self.index = None

    def tick(self, log_start: int) -> None:
        """Once in some seconds."""
        index = self.index
        if index is None:
            return
        index.drop_before(log_start)
        if self._is_worth_storing(index) and (self._storing is None or self._storing.done()):
            self._storing = asyncio.create_task(self._store(index))

    def stop(self) -> None:
        self._calls.stop()
        self._indexes.cache.release_index(self.let_go)
        self.index = None

    # --- reading the log

    async def _read(self, begin: Position, known: TimeIndex | None) -> TimeIndex:
        try:
            async with self._turn, self._indexes.reading:
                if self.index is not None and self.index.begin <= begin:
                    return self.index
                if known is None:
                    known = await self._stored()
                index = known if known is not None and known.begin <= begin else TimeIndex(begin)
                began = asyncio.get_running_loop().time()
                entries = await self._read_on(index)
                took = asyncio.get_running_loop().time() - began
                log.info("partition %s: %d entries were read for their timestamps in %.1f s", self._name, entries, took)
        except asyncio.CancelledError as error:
            raise Unavailable("the partition is closed") from error
        # From here on the fold adds its entries to the index. None is missing, because nothing was folded since the
        # index reached the fold's last entry.
        self.index = index
        self._indexes.cache.hold_index(self.let_go, MAX_BYTES)
        return index

    async def _read_on(self, index: TimeIndex) -> int:
        """To the fold's last entry; returns how many were read."""
        if self._is_complete(index):
            return 0
        read = 0
        start = index.begin if index.last is None else index.last.after()
        async with aclosing(raw_entries_from(self._log, start, PERMITS)) as entries:
            async for entry in entries:
                await look_beforehand(entry, self._log.patience.note_delay, headers_alone=True)
                _add(index, entry)
                read += 1
                if self._is_complete(index):
                    break
        return read

    def _is_complete(self, index: TimeIndex) -> bool:
        last = self._partition.last_position
        return last is None or last < index.begin or (index.last is not None and index.last >= last)

    # --- what is stored

    @property
    def _key(self) -> bytes:
        return _KEY + self._name.encode()

    async def _stored(self) -> TimeIndex | None:
        states = self._indexes.states
        kept = None if states is None else await states.find(self._key)
        if kept is None:
            return None
        try:
            index = TimeIndex.decode(kept.value)
        except ValueError as error:
            log.warning(
                "partition %s: the stored index of its timestamps makes no sense, the log is read: %s",
                self._name,
                error,
            )
            return None
        if index.last is None or not (await self._log.stats()).may_hold(index.last):
            return None
        self._stored_bytes = 0 if kept.is_old(self._clock.wall()) else index.bytes_covered
        return index

    def _is_worth_storing(self, index: TimeIndex) -> bool:
        if self._indexes.states is None or index.bytes_covered < STORED_FROM_BYTES:
            return False
        return abs(index.bytes_covered - self._stored_bytes) > index.bytes_covered * STORED_ANEW_AFTER

    async def _store(self, index: TimeIndex) -> None:
        assert self._indexes.states is not None
        self._stored_bytes = index.bytes_covered
        await self._indexes.states.keep(self._key, index.encode())


def _add(index: TimeIndex, entry: RawEntry) -> None:
    if entry.last_index is None:
        if len(index) or not is_from_before_index(entry):
            raise Unavailable(
                f"entry {entry.position} has no index: it was written without AppendIndexMetadataInterceptor"
            )
        return
    next_offset = entry.last_index + 1
    try:
        content = read_headers(entry)
        base, greatest = next_offset - content.offset_count, content.max_timestamp
        if base < index.next_offset:
            raise CountedFewer(entry.position, content)
    except EntryUnreadable:
        base, greatest = entry.last_index, NO_TIMESTAMP
    index.add(entry.position, base, next_offset, greatest, len(entry.payload))
