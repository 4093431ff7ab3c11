"""What producers wrote before the fold began: known before the first append to which it matters, and further back when
a verdict needs it.

A partition that is only read begins to fold a little before its last entry. What its producer wrote before
shows whether an append is a retry. So the first append with a producer waits for the first of these that is there:

    what was kept of the producers ──▶ a fold that goes on from there to where the partition's began
    others than sidecars have written very much behind that ──▶ the same without reading it
    retention has taken what stood behind that ──▶ a fold of all that is left
    nothing was kept ──▶ folds of what lies before, piece by piece, until the window is read

What such an earlier fold knows the partition's fold learns. A producer about which the window says too little waits:
its append has another piece read, until its verdict is certain, or the log has no more.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import aclosing
from typing import Final, Protocol

from kafka_sidecar.errors import EntryUnreadable, SidecarError
from kafka_sidecar.loop.supervised import SupervisedTask
from kafka_sidecar.partition.fold.extent import Extent
from kafka_sidecar.partition.fold.fold import BEFORE_ALL, Fold, IndexAlarm, index_of
from kafka_sidecar.partition.fold.known_producers import KnownProducers
from kafka_sidecar.partition.fold.producers import ProducerTable
from kafka_sidecar.partition.fold.transactions import KnownVerdicts, TransactionTable
from kafka_sidecar.partition.follow.entry_contents import EntryContents
from kafka_sidecar.partition.follow.read_entries import begins_right_behind, begins_with, end_before
from kafka_sidecar.partition.log.entries import is_from_before_index
from kafka_sidecar.partition.log.errors import PartitionEnded
from kafka_sidecar.partition.log.large_entries import look_beforehand
from kafka_sidecar.partition.log.port import EntryLog
from kafka_sidecar.pulsar.entry import LogStats, Position, RawEntry
from kafka_sidecar.pulsar.errors import Unavailable
from kafka_sidecar.pulsar.raw_entries import NoEntryCame, permits_of, raw_entries_from
from kafka_sidecar.telemetry import metrics
from kafka_sidecar.telemetry.limits import RateLimitedLog

log = RateLimitedLog(logging.getLogger(__name__))

# Entries of the first piece. Each further piece has four times as many, up to MOST_ENTRIES and PIECE_BYTES.
FIRST_ENTRIES: Final = 16
PIECE_BYTES: Final = 4 * 1024 * 1024
# Entries that are read back for producers of another cluster, whatever their size. They hold the batches that were in
# flight together with a batch which the other cluster hides.
LEAST_REPLICATED_ENTRIES: Final = 64
# The window ends at this many unjudged batches, some 10 MB of memory.
MOST_UNJUDGED: Final = 20_000
PARTS_UNJUDGED: Final = 256
# Flow permits of a reader: while the size of entries is unknown, for pieces of the window, and behind a snapshot.
FIRST_PERMITS: Final = 4
PIECE_PERMITS: Final = 100
PERMITS: Final = 1_000
MOST_ENTRIES: Final = 1_000
# Entries behind a snapshot that are read only if there is no other way: folding them takes half a minute.
TOO_FAR_ENTRIES: Final = 2_000_000


class PartitionForReplay(Protocol):
    """The partition, as far as its replay needs it."""

    transactions: TransactionTable

    def on_replayed(self) -> None:
        """The partition's fold knows what its producers wrote before."""
        ...

    async def read_to_end(self) -> None:
        """Until all is folded that the broker holds now. Raises SidecarError."""
        ...

    def lacks(self, position: Position) -> None:
        """The broker holds this entry, and reading to the end has not brought it."""
        ...

    def end_for(self, error: SidecarError) -> None:
        """Trying again won't help."""
        ...

    def fail_at(self, position: Position) -> None:
        """The sidecar itself failed at an entry. The partition ends."""
        ...

    def alarm(self, alarm: IndexAlarm) -> None:
        """The log contradicts itself. The partition ends."""
        ...


class SnapshotsForReplay(Protocol):
    async def look_up(self) -> KnownProducers | None:
        """The surest of all that was stored of this log. May raise PulsarError."""
        ...

    async def tells_all(self) -> bool:
        """Whether what was kept has all that sidecars have written. May raise PulsarError."""
        ...

    def has_learnt(self) -> None:
        """The partition's fold knows what was kept."""
        ...

    def leave(self) -> None:
        """The one that was found tells nothing that is not known."""
        ...

    def pass_over(self, *, is_gone: bool) -> None:
        """Look for another value than the one that was found. `is_gone`: no sidecar can use that one, for retention has
        taken entries behind it.
        """
        ...

    def throw_away(self, why: str) -> None:
        """It is not of this log."""
        ...


class _TrimmedMeanwhile(Unavailable):
    """Retention took what was to be read."""


class _PieceTooLarge(Exception):
    """Read it in smaller ones."""


class Replay:
    def __init__(
        self,
        name: str,
        log_: EntryLog,
        fold: Fold,
        contents: EntryContents,
        kept: SnapshotsForReplay,
        partition: PartitionForReplay,
        max_entries: int,
        max_bytes: int,
    ) -> None:
        self._name = name
        self._log = log_
        self._fold = fold
        self._contents = contents
        self._snapshots = kept
        self._partition = partition
        self._turn = asyncio.Lock()
        self._max_entries = max_entries
        self._max_bytes = max_bytes
        self.begin_again()
        self._waiting: list[asyncio.Future[None]] = []
        self._task = SupervisedTask("replay", name, self._run, on_final=partition.end_for)

    def begin_again(self) -> None:
        """Of what was known before the partition's fold began nothing is left."""
        # Fold that continues from a snapshot; it continues after a lost connection too.
        self._going_on: Fold | None = None
        self._was_trimmed = False  # retention has removed entries behind the snapshot
        # Fold of all entries left behind those removed; it continues after a lost connection too.
        self._left: Fold | None = None
        self._has_read_left = False  # all entries left are read, up to where the partition's fold began
        # The first entry left in the log, perhaps one of Pulsar's own markers, and its index.
        self._left_behind: tuple[Position, int | None] | None = None
        self._entries_left = self._max_entries  # entries of the window that may still be read
        self._least_left = LEAST_REPLICATED_ENTRIES
        self._bytes_left = self._max_bytes
        self._has_begun_window = False
        self._has_window_alone = False
        self._piece = FIRST_ENTRIES
        self._permits = FIRST_PERMITS

    @property
    def done(self) -> bool:
        return self._fold.producers.knows_the_past

    @property
    def is_at_work(self) -> bool:
        return self._task.running or self._turn.locked()

    def producer_tables(self) -> Iterator[ProducerTable]:
        """What is known to folds that go on after a lost connection."""
        return (fold.producers for fold in (self._going_on, self._left) if fold is not None)

    def start(self) -> None:
        """Begin, if it is not under way. `on_replayed` tells when it is done."""
        self._task.start()

    def stop(self) -> None:
        self._task.stop()
        waiting, self._waiting = self._waiting, []
        for waiter in waiting:
            if not waiter.done():
                waiter.set_exception(Unavailable("the partition is closed"))

    async def over(self) -> None:
        """Wait until it is done. May raise PulsarError."""
        if not self.done:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(waiter)
            self.start()
            await waiter

    async def read_back(self) -> None:
        """Know what stands in one more piece of the log, before all that is known. May raise SidecarError."""
        if not self.done:
            await self.over()
            return
        async with self._turn:
            if not self._fold.has_all:
                metrics.READ_FURTHER_BACK.inc()
                await self._read_piece()
                self._fold.producers.settle_fenced()

    async def _run(self) -> None:
        async with self._turn:
            await self._learn()
        self._fold.producers.knows_the_past = True
        self._fold.producers.settle_fenced()
        self._fold.producers.settle_replicated()
        self._partition.on_replayed()
        waiting, self._waiting = self._waiting, []
        for waiter in waiting:
            if not waiter.done():
                waiter.set_result(None)

    async def _learn(self) -> None:
        if self._fold.last_position is None:
            await self._partition.read_to_end()
        # If the entries left were read, a newer snapshot is still to be looked up.
        has_all = self._fold.has_all and not self._has_read_left
        if has_all or self._has_window_alone or not await self._learn_more_than_the_window():
            self._has_window_alone = True
            await self._read_window()

    async def _learn_more_than_the_window(self) -> bool:
        if not self._has_read_left and await self._resume_from_snapshot():
            return True
        return self._was_trimmed and await self._fold_all_that_is_left()

    async def _read_window(self) -> None:
        if not self._has_begun_window:
            self._has_begun_window = True
            await self._leave_out_what_is_folded()
        while not self._fold.has_all and self._wants_more:
            await self._read_piece(self._entries_left if self._entries_left > 0 else self._least_left)

    @property
    def _wants_more(self) -> bool:
        if self._entries_left > 0 and self._bytes_left > 0 and self._fold.producers.unjudged <= MOST_UNJUDGED:
            return True
        return self._least_left > 0 and self._fold.producers.has_replicated

    async def _leave_out_what_is_folded(self) -> None:
        """The window ends at the log's end, and the partition has folded a part of it."""
        begin, last = self._fold.replayed_from, self._fold.last_position
        if begin is not None and last is not None:
            self._entries_left -= (await self._log.stats()).between(begin, last.after())[0]

    # --- from what was kept

    async def _resume_from_snapshot(self) -> bool:
        """False where nothing was that is of use."""
        while self._left is None or self._going_on is not None:
            if self._going_on is None:
                self._going_on = await self._fold_snapshots()
            earlier = self._going_on
            if earlier is None or earlier.last_position is None:
                break
            has_gone_on = await self._go_on_from_one(earlier)
            if has_gone_on is not None:
                return has_gone_on
        return False

    async def _go_on_from_one(self, earlier: Fold) -> bool | None:
        """Whether the partition's fold has learnt it; None where it is of no use."""
        try:
            if not await self._goes_on_at_once(earlier):
                if self._fold.replayed_from is None:
                    return False
                if not await self._goes_on_when_read(earlier):
                    return None
            self._learn_snapshot(earlier)
            return True
        except NoEntryCame:
            self._going_on = None  # the log may have been emptied since the snapshot was found
            raise
        except IndexAlarm as alarm:
            self._going_on = None
            self._snapshots.throw_away(str(alarm))
            return None

    async def _goes_on_when_read(self, earlier: Fold) -> bool:
        """Read what stands between. False where retention has taken some of it."""
        last = earlier.last_position
        assert last is not None
        try:
            await self._read_to(last)  # the sidecar that stored the snapshot had read further than this one
            await self._read_on(earlier)
            return True
        except _TrimmedMeanwhile:
            stats = await self._log.stats()
            if await self._goes_on_at_once(earlier):  # the partition's fold has read the missing entries meanwhile
                return True
            self._was_trimmed, self._going_on = True, None
            self._snapshots.pass_over(is_gone=stats.first is not None and last < stats.first)
            return False

    async def _read_to(self, last: Position) -> None:
        """Raises IndexAlarm where the log ends before that, by the broker's word."""
        if self._has_folded(last):
            return
        await self._partition.read_to_end()
        if self._has_folded(last):
            return
        end = (await self._log.stats()).last
        if end is None or end < last:
            raise IndexAlarm(f"it ends at entry {last}, and the log at {end}")
        self._partition.lacks(end)
        raise Unavailable(f"{self._name} is read to entry {self._fold.last_position} alone, and ends at {end}")

    def _has_folded(self, position: Position) -> bool:
        return self._fold.last_position is not None and self._fold.last_position >= position

    def _learn_snapshot(self, earlier: Fold) -> None:
        self._fold.learn(earlier)
        self._going_on = None  # `learn` has moved its contents into the partition's fold
        self._snapshots.has_learnt()

    async def _read_on(self, earlier: Fold) -> None:
        """Fold what stands between where `earlier` has come and where the partition's fold began."""
        begin, reached = self._fold.replayed_from, earlier.last_position
        assert begin is not None
        assert reached is not None
        # The last entry of the earlier fold is read again, and its index is compared with the known one. If retention
        # has removed that entry, the first entry left must continue at its end offset.
        first = (await self._log.stats()).first
        if first is None:
            raise _TrimmedMeanwhile(f"{self._name} was emptied")
        if max(begin, reached) < first:
            raise _TrimmedMeanwhile(
                f"{self._name} was trimmed up to {first}"
            )  # only Pulsar's own markers may be left, and a reader would wait for them in vain
        await self._fold_up_to(earlier, max(reached, first), begin, reached, PERMITS)

    async def _fold_all_that_is_left(self) -> bool:
        """Where retention has taken entries behind what was kept. A value that another sidecar has kept meanwhile
        judges what is left. Where there is none, what stood before is gone. False where nothing is left that readers
        are given.
        """
        if not self._has_read_left:
            await self._read_what_is_left()
            self._has_read_left = True
        if await self._look_once_more():
            return True
        if self._fold.last_position is None:
            return False
        await self._end_the_past(await self._log.stats())
        return True

    async def _read_what_is_left(self) -> None:
        """From the first entry on, so that retention takes as little as it can. The partition's fold learns it: no
        failure loses it.
        """
        first, end = (await self._log.stats()).first, self._fold.replayed_from
        if end is None or first is None or end <= first:
            self._left = self._left_behind = None  # retention has also removed the entries that were read
            return
        left = self._left = self._left or self._new_fold(first)
        last = left.last_position
        try:
            if last is not None and last < first and not await self._begins_right_behind(left):
                raise _TrimmedMeanwhile(f"{self._name} was trimmed up to {first}")
            if last is None:
                self._left_behind = first, await self._log.index_of(first)
            place = first if last is None else max(last, first)
            await self._fold_up_to(left, place, end, place, PERMITS)
            if left.last_position is None:
                # If the entry is still there, only Pulsar's own markers are left.
                await self._check_holds(left.replayed_from or first)
        except _TrimmedMeanwhile:
            self._left = None
            raise
        except IndexAlarm as alarm:
            self._partition.alarm(alarm)
            raise PartitionEnded(str(alarm)) from alarm
        if left.knows_next_offset:
            self._fold.learn(left)
        self._left = None

    async def _look_once_more(self) -> bool:
        """Another sidecar may have kept what it knew of the entries that are gone, while all that is left was read. A
        value counts that began before that. Whether there was one.
        """
        while True:
            if self._going_on is None:
                began, last = self._fold.replayed_from, self._fold.last_position
                if began is None or last is None:
                    return False
                self._going_on = await self._fold_snapshots(Extent(began, last))
            earlier = self._going_on
            if earlier is None or earlier.last_position is None:
                return False
            has_gone_on = await self._go_on_from_one(earlier)
            if has_gone_on is not None:
                return has_gone_on

    def _new_fold(self, begin: Position | None) -> Fold:
        return Fold(begin, KnownVerdicts(self._partition.transactions), self._fold.memory)

    async def _goes_on_at_once(self, earlier: Fold) -> bool:
        """Whether nothing has to be read in between. The partition's fold has read the entry at which it was kept. Or
        retention has taken all up to there, and nothing behind that: the log begins with the next offset, or with a
        marker of Pulsar's that has it.
        """
        fold, last = self._fold, earlier.last_position
        if last is None or fold.end_of(last) == earlier.next_offset:
            return last is not None
        stats = await self._log.stats()
        if (stats.first is None or last < stats.first) and has_read_on(fold, earlier, last, stats):
            return True
        began, index = self._left_behind or (last, None)
        if self._has_read_left and last < began and index == earlier.next_offset:
            # The entries left began with one of Pulsar's own markers, which retention may have removed since.
            return True
        if not fold.begins_at_first or fold.has_all:
            return False
        if fold.begins_where_ends(earlier):
            return True
        seen_from = fold.seen_from
        if seen_from is None or earlier.next_offset > seen_from or not await self._begins_right_behind(earlier):
            return False
        # A different offset: the first entry of an empty log came during the request.
        return fold.seen_from == seen_from

    async def _fold_snapshots(self, known: Extent | None = None) -> Fold | None:
        """Of the surest value that is of use, and began before what is `known`."""
        while (kept := await self._snapshots.look_up()) is not None:
            if known is not None and not kept.extent.began_earlier(known):
                self._snapshots.leave()
                return None
            stats = await self._log.stats()
            earlier = self._fold_of(kept)
            if await self._goes_on_at_once(earlier):
                return earlier
            if stats.may_hold(kept.last) or (stats.first is not None and kept.last <= stats.first):
                is_far = not self._has_read_left and stats.last is not None and is_too_far(kept.last, stats.last, stats)
                return (await self._old_snapshot() or earlier) if is_far else earlier
            self._snapshots.pass_over(
                is_gone=await self._has_lost_what_followed(kept, stats)
            )  # if not, the snapshot belongs to a deleted topic of the same name
        return None

    async def _has_lost_what_followed(self, kept: KnownProducers, stats: LogStats) -> bool:
        """Whether retention has emptied the log, which ends behind what was kept."""
        if (
            stats.first is not None
            or self._fold.last_position is not None
            or kept.next_offset >= self._fold.next_offset
        ):
            return False
        last_index = await self._log.index_property()  # the topic may have been recreated under this name
        return last_index is not None and kept.next_offset <= last_index

    def _fold_of(self, kept: KnownProducers) -> Fold:
        return kept.fold(KnownVerdicts(self._partition.transactions), self._fold.memory)

    async def _old_snapshot(self) -> Fold | None:
        """A fold of what was kept that passes over what stands behind it: no sidecar has written there. None where one
        may have.

        A sidecar that puts no mark, of 0.2 or one that may not, is seen by what it wrote within the window.
        """
        fold = self._fold
        is_replicated = fold.producers.has_replicated or await self._log.counts_records()
        if fold.knows_next_offset and not is_replicated and await self._snapshots.tells_all():
            await self._read_window()
            if not len(fold.producers):
                # A sidecar that put a mark before may have stored a newer snapshot.
                kept = await self._snapshots.look_up()
                stats, begin = await self._log.stats(), fold.replayed_from
                if kept is None or begin is None:
                    raise Unavailable(f"the snapshot of {self._name} was deleted while it was looked at")
                before = stats.entry_before(begin)
                if before is not None and kept.last < before:
                    earlier = self._fold_of(kept)
                    earlier.pass_over_to(before, fold.first_offset)
                    return earlier
                return self._fold_of(kept)
        log.warning(
            "partition %s: the snapshot of its producers is more than %d entries old, and a sidecar may have written "
            "since: all of it is read before producers may write",
            self._name,
            TOO_FAR_ENTRIES,
        )
        return None

    # --- piece by piece

    async def _read_piece(self, most: int | None = None) -> None:
        """Fold what lies before all that is known: one piece, of so many entries at the most."""
        fold = self._fold
        end = fold.replayed_from
        if end is None or fold.last_position is None:
            await self._end_where_nothing_is()
            return
        stats = await self._log.stats()
        before = stats.entry_before(end)
        if before is None or stats.first is None or before < stats.first:
            await self._end_the_past(stats)
            return
        entries = self._piece if most is None else min(self._piece, most)
        begin = stats.before(before, entries, 2**63)
        earlier = self._new_fold(None if begin == stats.first else begin)
        try:
            size = await self._fold_up_to(
                earlier, begin, end, begin, self._permits, PIECE_BYTES if entries > 1 else None
            )
            if begin == stats.first and not earlier.knows_next_offset:
                await self._end_the_past(stats)  # the piece holds only Pulsar's own markers
            else:
                fold.learn(earlier)
        except _PieceTooLarge:
            self._piece, self._permits = max(1, entries // 4), FIRST_PERMITS
            return
        except IndexAlarm as alarm:
            self._partition.alarm(alarm)
            raise PartitionEnded(str(alarm)) from alarm
        self._entries_left -= entries
        self._least_left -= entries
        self._bytes_left -= size
        fitting = max(1, entries * PIECE_BYTES // max(1, size))
        self._piece = min(4 * entries, MOST_ENTRIES, fitting)
        self._permits = min(PIECE_PERMITS, fitting)

    async def _end_where_nothing_is(self) -> None:
        """Nothing was left when the log was opened, or nothing that readers are given. Others may have written since,
        and kept more.
        """
        await self._partition.read_to_end()
        if self._fold.last_position is not None and not self._fold.has_all:
            self._has_window_alone = self._has_begun_window = False
            raise Unavailable(f"{self._name} held nothing when it was opened, and holds something now")
        self._fold.end_of_the_past(is_whole=False)

    async def _end_the_past(self, stats: LogStats) -> None:
        self._fold.end_of_the_past(is_whole=await begins_with(self._log, stats.first))

    async def _fold_up_to(
        self, earlier: Fold, begin: Position, end: Position, reached: Position, permits: int, most: int | None = None
    ) -> int:
        """Fold what stands from `begin` to before `end`, and on to `reached`, and say how many bytes that was."""
        size = taken = 0
        last = self._fold.last_position
        assert last is not None
        stop = max(min(end, last), reached)  # no entry may have been written at `end` yet
        async with aclosing(raw_entries_from(self._log, begin, permits)) as entries:
            async for entry in entries:
                position = entry.position
                await look_beforehand(entry, self._log.patience.note_delay, headers_alone=True)
                if position < end or position == earlier.last_position:
                    size += len(entry.payload)
                    if most is not None and size > most:
                        raise _PieceTooLarge
                    await self._check_gap(entry, earlier)
                    await self._ask_where_it_begins(entry, earlier, begin)
                    self._take(entry, earlier)
                    is_counted = earlier is self._left and not taken % (
                        MOST_UNJUDGED // PARTS_UNJUDGED + 1
                    )  # counting the unjudged batches takes a while, so it is not done for every entry
                    taken += 1
                    if is_counted and earlier.producers.unjudged > MOST_UNJUDGED:
                        # Too many unjudged batches to remember: a snapshot found later can no longer judge them.
                        earlier.end_of_the_past(is_whole=False)
                if position >= stop:
                    break
        if (
            earlier.knows_next_offset
            and earlier.next_offset < self._fold.first_offset
            and not self._fold.begins_where_ends(earlier)
        ):
            await self._check_trimmed(earlier)
        return size

    async def _check_gap(self, entry: RawEntry, earlier: Fold) -> None:
        last, began = earlier.last_position, earlier.replayed_from
        if last is None and began is not None and began.ledger != entry.position.ledger:
            await self._check_holds(began)
        if last is None or last.ledger == entry.position.ledger or stands_before_indexes(entry, earlier):
            return
        try:
            count = self._contents.read_headers(entry).offset_count
        except EntryUnreadable:
            count = permits_of(entry)
        last_index = index_of(entry)
        if earlier.is_gap(entry.position, earlier.base_by(last_index - count + 1, last_index)):
            await self._check_trimmed(earlier)

    async def _ask_where_it_begins(self, entry: RawEntry, earlier: Fold, begin: Position) -> None:
        """Its first entry, where another writer's word is not enough, or what stood before it."""
        if earlier.follows_offset is not None or earlier.knows_next_offset or is_from_before_index(entry):
            return
        if earlier.begins_at_first and entry.position != begin:
            earlier.is_of_the_whole_log = await begins_with(self._log, begin)
        try:
            content = self._contents.read_headers(entry)
        except EntryUnreadable:
            return
        if earlier.lacks_proof(content):
            earlier.follows_offset = await end_before(self._log, entry.position)

    async def _check_trimmed(self, earlier: Fold) -> None:
        """What a fold knows of producers is of no use where entries behind it were gone before it read them."""
        if earlier.last_position is not None and not await self._begins_right_behind(earlier):
            await self._check_holds(earlier.last_position)

    async def _begins_right_behind(self, earlier: Fold) -> bool:
        last = earlier.last_position
        return last is not None and await begins_right_behind(self._log, last, earlier.next_offset)

    async def _check_holds(self, position: Position) -> None:
        if not (await self._log.stats()).may_hold(position):
            raise _TrimmedMeanwhile(f"{self._name} was trimmed while it was read")

    def _take(self, entry: RawEntry, earlier: Fold) -> None:
        try:
            self._fold_one(entry, earlier)
        except SidecarError:
            raise
        except Exception as error:
            self._partition.fail_at(entry.position)
            raise PartitionEnded(f"entry {entry.position} could not be folded") from error

    def _fold_one(self, entry: RawEntry, earlier: Fold) -> None:
        position = entry.position
        if earlier.last_position is not None and position <= earlier.last_position:
            # The last entry of the snapshot, or one that the broker's dispatcher delivers again after a rewind.
            earlier.check_again(position, index_of(entry))
            return
        if stands_before_indexes(entry, earlier):
            return
        last_index = index_of(entry)
        try:
            content = self._contents.read_headers(entry)
            if earlier.knows_next_offset and last_index - content.offset_count + 1 < earlier.next_offset:
                content = self._contents.read(entry)  # the headers of its batches may claim more records than it holds
            earlier.check_count(position, last_index, content)
        except EntryUnreadable as error:
            earlier.unreadable(position, last_index, error, permits_of(entry))
        else:
            earlier.by_reading(position, last_index, content)
            earlier.note_time(entry)


def stands_before_indexes(entry: RawEntry, earlier: Fold) -> bool:
    """Whether an entry was written before the interceptor was on: also behind what was kept when no entry had an
    index.
    """
    return is_from_before_index(entry) and (not earlier.knows_next_offset or earlier.last_position == BEFORE_ALL)


def is_too_far(reached: Position, end: Position, stats: LogStats) -> bool:
    """Whether reading from one to the other takes too long."""
    return stats.between(reached, end)[0] > TOO_FAR_ENTRIES


def has_read_on(fold: Fold, earlier: Fold, last: Position, stats: LogStats) -> bool:
    """Whether a fold has read on from `last`, where `earlier` ends, before retention took that."""
    begin = fold.replayed_from
    if begin is None or not fold.knows_next_offset:
        return False
    if last < begin:
        before = stats.entry_before(begin)
        is_gone = (
            before is None or stats.first is None or before < stats.first
        )  # otherwise there are entries between the two, and the snapshot belongs to another topic of this name
        return is_gone and fold.begins_where_ends(earlier)
    has_folded = fold.last_position is not None and fold.last_position >= last
    return has_folded and earlier.next_offset <= fold.next_offset and fold.end_of(last) in (None, earlier.next_offset)
