"""A Pulsar reader of old data for Fetch. It starts a little before the wanted offset and reads ahead of the consumer.
It ends at the last entry that the partition has folded. Consumers close to each other share it.

What it has read ahead it holds itself, so no other consumer's data can push it out before it is
read; what was taken moves to the shared cache, for those that follow.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from dataclasses import dataclass
from typing import Final, Protocol

from kafka_sidecar.errors import EntryUnreadable, SidecarError
from kafka_sidecar.loop.supervised import SupervisedTask
from kafka_sidecar.partition.fold.fold import Fold, Folded, IndexAlarm
from kafka_sidecar.partition.fold.producer_state import THE_PAST
from kafka_sidecar.partition.fold.producer_states import ProducerMemory
from kafka_sidecar.partition.fold.producers import ProducerTable
from kafka_sidecar.partition.fold.transactions import KnownVerdicts, TransactionTable
from kafka_sidecar.partition.follow.alarms import raise_alarm
from kafka_sidecar.partition.follow.entry_contents import EntryContents
from kafka_sidecar.partition.follow.read_entries import begins_with, end_before
from kafka_sidecar.partition.log.entries import is_from_before_index, served_data
from kafka_sidecar.partition.log.errors import PartitionEnded, error_code
from kafka_sidecar.partition.log.large_entries import LargeEntries
from kafka_sidecar.partition.log.port import EntryLog, LogReader
from kafka_sidecar.partition.read.chunked_messages import read_chunked
from kafka_sidecar.partition.read.fetch_cache import ENTRY_OVERHEAD, CachedEntry, FetchCache, FetchedRun, PartitionCache
from kafka_sidecar.pulsar.entry import LogStats, Position, RawEntry
from kafka_sidecar.pulsar.errors import PulsarError, Unavailable
from kafka_sidecar.pulsar.events import ConsumerEvents
from kafka_sidecar.pulsar.raw_entries import permits_of
from kafka_sidecar.telemetry import metrics
from kafka_sidecar.wire.error_code import ErrorCode

log = logging.getLogger(__name__)

# A catch-up reader begins to fold this far before the wanted offset. Appends in flight seldom reach further back, so
# few entries need an earlier begin to be judged.
ENTRIES_BEFORE: Final = 64
BYTES_BEFORE: Final = 4 * 1024 * 1024
ENTRIES_AT_ONCE: Final = 256
# A consumer at most 20,000 offsets ahead of a catch-up reader shares that reader if an entry has come within the last
# second.
SHARED_DISTANCE: Final = 20_000
MOVES_SECONDS: Final = 1.0


class PartitionForCatchUp(Protocol):
    """The partition, as far as its readers of old data need it."""

    transactions: TransactionTable
    producer_memory: ProducerMemory

    def has_reached_fold_end(self, position: Position) -> bool:
        """Whether `position` is the last entry that the partition has folded, or behind it."""
        ...

    def fail_at(self, position: Position) -> None:
        """The sidecar itself failed at an entry. The partition ends."""
        ...

    def changed(self) -> None:
        """There is something new to read."""
        ...

    def begin_of_window(self, stats: LogStats, position: Position) -> Position:
        """What stands from there on to `position` is enough to judge an entry that was replicated."""
        ...

    async def ask_log_start(self) -> int: ...
    def ask_log_start_soon(self) -> None: ...


@dataclass(frozen=True, slots=True)
class _ReachedFoldEnd:
    """The partition has folded nothing behind the last entry."""


@dataclass(frozen=True, slots=True)
class _Gap:
    """Offsets are missing before an entry, and nobody has asked yet if retention took them."""

    position: Position
    base_offset: int


@dataclass(frozen=True, slots=True)
class _BeginsLater:
    """The first entry is of a later ledger than the one where folding was to begin."""


@dataclass(frozen=True, slots=True)
class _LacksProof:
    """Only another writer's word tells where this entry begins, the first that has come."""

    position: Position


@dataclass(frozen=True, slots=True)
class _MayBeWhole:
    """The first entry that has come is not the first of the log: what stands before it may be markers of Pulsar's."""


@dataclass(frozen=True, slots=True)
class _ReadFrom:
    """An entry can be judged only by a fold that began at this position."""

    position: Position


@dataclass(frozen=True, slots=True)
class _Chunked:
    """An entry is the last part of a message."""

    last: RawEntry
    folded: Folded


@dataclass(frozen=True, slots=True)
class _Full:
    """Entries are larger than those before them were: more have come than there is room for, and others are on their
    way.
    """

    position: Position


@dataclass(frozen=True, slots=True)
class _Lost:
    """The reader is gone, or the log contradicts itself."""

    reason: SidecarError


# Why a reader has ended.
_Outcome = _ReachedFoldEnd | _Gap | _BeginsLater | _LacksProof | _MayBeWhole | _ReadFrom | _Chunked | _Full | _Lost


class CatchUpReader(ConsumerEvents):
    def __init__(
        self,
        name: str,
        log_: EntryLog,
        cache: PartitionCache,
        wanted: int,
        read_ahead: int,
        contents: EntryContents,
        partition: PartitionForCatchUp,
    ) -> None:
        self._name = name
        self._contents = contents
        self._partition = partition
        self._log = log_
        self._cache = cache
        self._read_ahead = read_ahead
        self._first: Position | None = None  # The first entry of the log when its stats were last read
        # True once the fold begins at the window that the partition reads to judge replicated entries.
        self._knows_the_past = False
        # Confirmed: the log has no readable entry between the fold's begin and the first entry delivered.
        self._begin_is_known = False
        self._gap_known_to = -1  # Missing offsets below this one are confirmed to be missing in the log itself
        self._verdicts = KnownVerdicts(partition.transactions)
        self._fold = Fold(None, self._verdicts, partition.producer_memory)
        self._reader: LogReader | None = None
        self._entries: LargeEntries | None = None
        self._ended: asyncio.Future[_Outcome] = asyncio.get_running_loop().create_future()
        self._ahead: deque[CachedEntry] = deque()  # entries that no consumer has taken yet
        self._account = cache.read_ahead(self._evicted)
        self._has_passed_over = False  # True once entries without an index were skipped
        # Without a limit of its own, since `_account` limits what the reader holds.
        self._held = FetchCache(budget=2**62).partition()
        # Flow permits granted and not used yet; negative if entries cost more permits than were granted.
        self._permits = 0
        self._enough = 0  # Further permits are granted only when at most this many are left
        self._cost = 1  # permits of the most expensive entry so far: a native batch costs as many as it has messages
        self._largest = 0  # bytes that the largest entry so far takes
        self.wanted = wanted
        self.next_offset = wanted
        self.done = False
        self.error: ErrorCode = ErrorCode.NONE
        self._loop = asyncio.get_running_loop()
        self.touched_at = self._moved_at = self._loop.time()
        # The state of the current Pulsar reader.
        self._begun_at: Position | None = None
        self._reached: Position | None = None
        self._asked_at: float | None = None  # Since when the first entry is awaited; None once it has come
        self.is_stuck = False  # The reader was opened again because no entry came, and none has come since
        # It fires if a reader with permits delivers no entry for too long. The broker may have closed the topic
        # instance that the reader is attached to (see `TailWatch`).
        self._silence: asyncio.TimerHandle | None = None
        self._task = SupervisedTask("catch_up_reader", name, self._read, on_final=self._fail_for)
        self._task.start()

    # --- from the partition

    def will_bring(self, offset: int, now: float) -> bool:
        """Whether it comes to `offset` by itself. A reader that has read as far ahead as it may waits for a consumer of
        its own. The storage of one that brings nothing is slow, or away, and `offset` may lie in a ledger that can be
        read.
        """
        if self.done or not self.next_offset <= offset <= self.next_offset + SHARED_DISTANCE:
            return False
        if offset == self.next_offset:
            return True
        return (self._room > 0 or not self._ahead) and now - self._moved_at < MOVES_SECONDS

    def touch(self, offset: int, now: float) -> None:
        """A consumer has come to `offset`: what lies before it no longer counts as read ahead."""
        self.touched_at = now
        self._account.touch()
        self.wanted = max(self.wanted, offset)
        while self._ahead and self._ahead[0].next_offset <= offset:
            taken = self._ahead.popleft()
            self._account.release(self._held.drop(taken.base_offset))
            self._cache.put(taken)
        self._grant()

    def run(self, offset: int, max_bytes: int, at_least_one: bool) -> FetchedRun | None:
        return self._held.run(offset, max_bytes, at_least_one)

    def is_near(self, offset: int) -> bool:
        """Whether a consumer at `offset` is one that this reader reads for."""
        return self.wanted <= offset <= self.next_offset

    @property
    def has_brought(self) -> bool:
        """Whether what its consumer came for is here, or was."""
        return self.done or self.next_offset > self.wanted

    @property
    def drained(self) -> bool:
        """Ended, and everything it brought was taken."""
        return self.done and not self._ahead

    def close(self) -> None:
        self._task.stop()
        self._account.close()
        self._finish(ErrorCode.NONE)

    def _evicted(self) -> None:
        """Others need the room: what nobody has taken is dropped. A fetch that comes for it gets another reader."""
        self._task.stop()
        self._ahead.clear()
        self._held.clear()
        self._account.close()
        self.done = True
        self._let_go()
        asyncio.get_running_loop().call_soon(self._partition.changed)

    # --- its life

    async def _read(self) -> None:
        await self._read_once()
        self._finish(ErrorCode.NONE)

    def _fail_for(self, reason: SidecarError) -> None:
        if isinstance(reason, IndexAlarm):
            raise_alarm(f"{self._name}, catch-up reader at offset {self.next_offset}", self._log, reason)
            self._finish(ErrorCode.KAFKA_STORAGE_ERROR)
        else:
            log.warning("partition %s: catch-up reader at offset %d ended: %s", self._name, self.next_offset, reason)
            self._finish(error_code(reason))

    async def _read_once(self) -> None:
        """Stream from the wanted offset to the tail; once more from further back when an entry asks for it."""
        position = await self._log.find_index(self.next_offset)
        if position is None:
            # The offset lies behind the last index that the broker found. That index may be slightly outdated, so the
            # fetch has to be retried later.
            raise Unavailable(f"no entry holds offset {self.next_offset}")
        stats = await self._log.stats()
        before = stats.before(position, ENTRIES_BEFORE, BYTES_BEFORE)
        if self.is_stuck:  # The previous ledger may lie in storage that is unavailable
            before = max(before, Position(position.ledger, 0))
        start = None if before == stats.first else before
        self._first = stats.first
        self._knows_the_past = self._begin_is_known = False
        self._fold = self._new_fold(start)
        while True:
            self._ended = asyncio.get_running_loop().create_future()
            self._permits = 0
            self._begun_at, self._reached = start, None
            self._entries = LargeEntries(self)
            self._reader = await self._log.reader(start, self._entries)
            self._asked_at = self._loop.time()
            self._grant()
            try:
                outcome = await self._ended
            finally:
                self._let_go()
            match outcome:
                case _ReachedFoldEnd():
                    return
                case _Lost(reason):
                    raise reason
                case _Gap(start, base_offset):
                    if await self._partition.ask_log_start() > self.next_offset:
                        return  # retention made the gap: this offset is out of range
                    last = self._fold.last_position
                    if last is not None and not (await self._log.stats()).may_hold(last):
                        # Retention removed entries that this fold has not seen, so its producer states are outdated.
                        start = None
                        self._fold = self._new_fold(start)
                        continue
                    if (
                        self._has_passed_over and not self._fold.knows_next_offset
                    ):  # The wanted offset may belong to an entry that was skipped for its missing index
                        raise IndexAlarm(
                            f"offsets {self.next_offset} to {base_offset - 1}: entries without an index stand there"
                        )
                    self._gap_known_to = base_offset
                case _BeginsLater():
                    if start is not None and not (await self._log.stats()).may_hold(start):
                        start = None  # Retention removed the start position after it was looked up
                        self._fold = self._new_fold(start)
                    self._begin_is_known = True
                case _MayBeWhole():
                    self._fold.is_of_the_whole_log = await begins_with(self._log, self._first)
                case _LacksProof(first_position):
                    self._fold.follows_offset = await end_before(self._log, first_position)
                case _ReadFrom(folded_to):
                    begun = self._fold.replayed_from, self._knows_the_past
                    start = await self._begin_of_what_judges(folded_to)
                    if begun == (start, True) and self._fold.last_position is not None:
                        raise Unavailable(
                            f"the entry at offset {self.next_offset} can't be judged by what stands from {start} on"
                        )
                    self._fold = self._new_fold(start)
                case _Full(start):
                    pass  # The next reader resumes at this position when a consumer has taken enough entries
                case _Chunked(last, folded):
                    await self._put_chunked(last, folded)
                    start = last.position
                    if self._partition.has_reached_fold_end(start):
                        return

    def _new_fold(self, start: Position | None) -> Fold:
        fold = Fold(start, self._verdicts, self._partition.producer_memory)
        fold.producers.knows_the_past = self._knows_the_past
        return fold

    async def _begin_of_what_judges(self, folded_to: Position) -> Position | None:
        """Where a fold begins that can judge the next entry, which needs what stands behind `folded_to`. None: at the
        log's start.
        """
        self._begin_is_known = False
        stats = await self._log.stats()
        self._first = stats.first
        wanted = await self._log.find_index(self.next_offset)
        if wanted is None:
            raise Unavailable(f"no entry holds offset {self.next_offset}")
        if folded_to == THE_PAST:
            self._knows_the_past = True
        if self._knows_the_past:
            window = self._partition.begin_of_window(stats, wanted)
            folded_to = window if folded_to == THE_PAST else min(window, folded_to)
        if self._first is None or folded_to <= self._first:
            return None
        # Entry −1 stands for an empty ledger, and no reader can begin there.
        return max(folded_to, Position(folded_to.ledger, 0))

    async def _put_chunked(self, last: RawEntry, folded: Folded) -> None:
        """Hold the message that this is the last part of."""
        try:
            data = await read_chunked(self._log, last)
        except EntryUnreadable as error:
            self._put_unreadable_or_skipped(last.position, folded, error)
        else:
            if data is None:
                metrics.UNREADABLE_ENTRIES.inc()
                log.warning("partition %s: entry %s ends a message with missing parts", self._name, last.position)
            self._put(CachedEntry(folded.base_offset, folded.next_offset, data, ErrorCode.NONE))
        self._partition.changed()

    def _finish(self, error: ErrorCode) -> None:
        if not self.done:
            self.done = True
            self.error = error
            self._let_go()
            # The partition is notified in the next turn of the event loop. A waiting fetch may then open another
            # reader, which closes this one, and this method has to be finished by then.
            asyncio.get_running_loop().call_soon(self._partition.changed)

    def _await_entry(self) -> None:
        if self._silence is None:
            seconds = self._log.patience.at(self._begun_at, self._reached)
            self._silence = self._loop.call_later(seconds, self._on_silence, seconds)

    def _on_silence(self, waited: float) -> None:
        self._silence = None
        if self._permits <= 0:
            return  # The read-ahead is full, so the reader has no permits and must be silent
        if self._loop.time() - self._moved_at < waited:
            self._await_entry()
            return
        metrics.SILENT_READERS.inc()
        self.is_stuck = True
        self._log.patience.was_too_short(self._begun_at, self._reached, waited)
        self.on_end(Unavailable(f"no entry came within {waited:.0f} s"))

    def _end_silence(self) -> None:
        if self._silence is not None:
            self._silence.cancel()
            self._silence = None

    def _let_go(self) -> None:
        self._end_silence()
        if self._reader is not None:
            self._reader.close()
            self._reader = None
        if self._entries is not None:
            self._entries.close()
            self._entries = None

    @property
    def _room(self) -> int:
        return min(self._read_ahead, self._account.allowance) - self._account.held

    def _grant(self) -> None:
        """Ask for more while there is room ahead, in steps that fit the size of these entries."""
        if self._reader is None or self._permits > self._enough:
            return
        room = self._room
        if room <= 0 and self._ahead:
            return  # The consumer already has entries to take, so no more are read ahead
        # The size of the entries is unknown until the first has come, so the first grant is for one entry.
        entries = max(1, min(ENTRIES_AT_ONCE, room // self._largest)) if self._largest else 1
        step = entries * self._cost
        self._enough = step // 2
        if self._permits <= self._enough:
            if self._asked_at is not None:
                # The reader had no permits before, so the wait for its first entry begins here.
                self._asked_at = self._loop.time()
            self._reader.grant(step - self._permits)
            self._permits = step
            self._await_entry()

    # --- from the reader

    def _note_progress(self, position: Position) -> None:
        now, patience = self._loop.time(), self._log.patience
        waited = now - (self._moved_at if self._asked_at is None else self._asked_at)
        if self._asked_at is not None:
            patience.has_begun(waited)
            self._asked_at = None
        patience.has_come(self._begun_at, self._reached, waited)
        self._moved_at, self._reached = now, position

    def on_entry(self, entry: RawEntry) -> None:
        if self._ended.done():
            return
        self.is_stuck = False
        position = entry.position
        self._note_progress(position)
        cost = permits_of(entry)
        self._permits -= cost
        self._cost = max(self._cost, cost)
        # A decompressed entry takes more: see _put.
        self._largest = max(self._largest, len(entry.payload) + ENTRY_OVERHEAD)
        if self._fold.last_position is not None and position <= self._fold.last_position:
            self._grant()
            return  # a rewind of the dispatcher
        try:
            outcome: _Outcome | None = self._take(entry)
        except IndexAlarm as alarm:
            self._ended.set_result(_Lost(alarm))
            return
        except PartitionEnded:
            return
        except Exception:
            self._partition.fail_at(position)
            return
        self._partition.changed()
        if outcome is None and self._partition.has_reached_fold_end(position):
            outcome = _ReachedFoldEnd()
        if outcome is None and self._permits > 0 and self._room < -self._largest:
            outcome = _Full(position)
        if outcome is not None:
            self._ended.set_result(outcome)
            return
        self._grant()

    def _take(self, entry: RawEntry) -> _Gap | _BeginsLater | _LacksProof | _MayBeWhole | _ReadFrom | _Chunked | None:
        """Fold one entry and hold what it has for Kafka clients, or say why that can't be done."""
        position = entry.position
        if not self._fold.knows_next_offset and is_from_before_index(entry):
            self._has_passed_over = True
            return None
        if entry.last_index is None:
            raise IndexAlarm(
                f"entry {position} has no index: the broker wrote it without AppendIndexMetadataInterceptor"
            )
        began = self._fold.replayed_from
        if (
            self._fold.last_position is None
            and began is not None
            and began.ledger != position.ledger
            and not self._begin_is_known
        ):
            return _BeginsLater()
        if (
            self._fold.last_position is None
            and began is None
            and self._fold.is_of_the_whole_log is None
            and position != self._first
        ):
            return _MayBeWhole()
        try:
            content = self._contents.read(entry)
            if self._fold.lacks_proof(content):
                return _LacksProof(position)
            self._fold.check_count(position, entry.last_index, content)
        except EntryUnreadable as error:
            if self._is_gap(position, entry.last_index):
                return _Gap(position, entry.last_index)
            folded = self._fold.unreadable(position, entry.last_index, error)
            if folded.next_offset > self.next_offset:
                self._put_unreadable_or_skipped(position, folded, error)
            return None
        base_offset = entry.last_index - content.offset_count + 1
        if self._is_gap(position, base_offset):
            return _Gap(position, base_offset)
        folded = self._fold.by_reading(position, entry.last_index, content)
        self._fold.note_time(entry)
        if folded.next_offset > self.next_offset:
            if folded.sure_from is not None:
                return _ReadFrom(folded.sure_from)
            if folded.base_offset > self.next_offset:
                self._put(CachedEntry.hole(self.next_offset, folded.base_offset))
            if content.lacks_chunks:
                return _Chunked(entry, folded)
            data = served_data(content, folded.verdicts)
            self._put(CachedEntry(folded.base_offset, folded.next_offset, data, ErrorCode.NONE))
        return None

    def _put_unreadable_or_skipped(self, position: Position, folded: Folded, error: EntryUnreadable) -> None:
        if position in self._contents.skipped:
            self._put(CachedEntry.hole(min(folded.base_offset, self.next_offset), folded.next_offset))
            return
        metrics.UNREADABLE_ENTRIES.inc()
        log.error("partition %s: %s", self._name, error)
        self._put(
            CachedEntry(min(folded.base_offset, self.next_offset), folded.next_offset, None, ErrorCode.CORRUPT_MESSAGE)
        )

    def _is_gap(self, position: Position, base_offset: int) -> bool:
        """Whether offsets are missing before this one that it looks for, or that its fold should have seen."""
        return base_offset > self._gap_known_to and (
            base_offset > self.next_offset or self._fold.is_gap(position, base_offset)
        )

    def _put(self, entry: CachedEntry) -> None:
        self.next_offset = entry.next_offset
        self._held.put(entry)
        self._ahead.append(entry)
        self._largest = max(self._largest, entry.size + ENTRY_OVERHEAD)
        self._account.take(entry.size + ENTRY_OVERHEAD)

    @property
    def producers(self) -> ProducerTable:
        return self._fold.producers

    def on_delayed(self) -> None:
        self._moved_at = self._loop.time()

    def on_end(self, reason: PulsarError) -> None:
        if not self._ended.done():
            self._ended.set_result(_Lost(reason))
