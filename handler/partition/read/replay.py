"""What producers wrote before the fold began: folded once, and not before somebody appends to whom it matters.

A partition that is only read begins to fold a little before its last entry. Whether an append is a retry is told by what its producer
wrote before, so the first append with a producer waits until a second fold has come from further back to where the partition is,
and the partition has taken over what that one knows.
"""

from __future__ import annotations

import asyncio
from typing import Final, Protocol

from handler.errors import EntryUnreadable, SidecarError
from handler.partition.errors import PartitionEnded
from handler.partition.fold.fold import Fold, IndexAlarm, index_of
from handler.partition.fold.transactions import KnownVerdicts, TransactionTable
from handler.partition.log.entries import is_from_before_index
from handler.partition.log.port import EntryLog, LogReader
from handler.partition.read.entry_contents import EntryContents
from handler.pulsar.entry import LogStats, Position, RawEntry
from handler.pulsar.errors import PulsarError, Unavailable
from handler.pulsar.events import ConsumerEvents
from handler.pulsar.raw_entries import ENTRY_SECONDS, NoEntryCame, permits_of
from handler.tasks import KeptAlive

# As many as the tail reader's: with fewer it would not catch up with it while others write.
PERMITS: Final = 1_000


class PartitionForReplay(Protocol):
    """The partition, as far as its replay needs it."""

    transactions: TransactionTable

    def on_replayed(self) -> None:
        """The partition's fold knows what its producers wrote before."""
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


class Replay(ConsumerEvents):
    def __init__(
        self, name: str, log_: EntryLog, fold: Fold, contents: EntryContents, partition: PartitionForReplay, max_entries: int,
        max_bytes: int,
    ) -> None:  # fmt: skip
        self._log = log_
        self._fold = fold
        self._contents = contents
        self._partition = partition
        self._max_entries = max_entries
        self._max_bytes = max_bytes
        self.done = False
        self._earlier = Fold(transactions=KnownVerdicts(partition.transactions))
        self._reader: LogReader | None = None
        self._permits = 0  # granted and not used
        self._entries = 0  # that have come
        self._reached: asyncio.Future[None] | None = None
        self._waiting: list[asyncio.Future[None]] = []
        self._task = KeptAlive("replay", name, self._run, on_final=partition.end_for)

    def first_entry(self, stats: LogStats, last: Position) -> Position:
        """Where a fold begins that is to know who wrote up to `last`."""
        return stats.before(last, self._max_entries, self._max_bytes)

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

    async def _run(self) -> None:
        stats = await self._log.stats()
        last, known_from = self._fold.last_position, self._fold.replayed_from
        if last is not None and known_from is not None:
            start = self.first_entry(stats, last)
            if start < known_from:  # else others have written so much that the partition knows more itself
                await self._read_from(None if start == stats.first else start)
        self.done = True
        self._partition.on_replayed()
        waiting, self._waiting = self._waiting, []
        for waiter in waiting:
            if not waiter.done():
                waiter.set_result(None)

    async def _read_from(self, start: Position | None) -> None:
        """Until the earlier fold has come to where the partition's is."""
        self._earlier = Fold(start, KnownVerdicts(self._partition.transactions))
        reached = self._reached = asyncio.get_running_loop().create_future()
        self._reader = reader = await self._log.reader(start, self)
        try:
            self._permits = PERMITS
            reader.grant(PERMITS)
            while not reached.done():
                entries = self._entries
                await asyncio.wait({reached}, timeout=ENTRY_SECONDS)
                if entries == self._entries and not reached.done():
                    raise NoEntryCame(f"no entry came within {ENTRY_SECONDS:.0f} s")
            reached.result()
        finally:
            self._reached = self._reader = None
            reader.close()

    # --- from the reader

    def on_entry(self, entry: RawEntry) -> None:
        if self._reached is None or self._reached.done():
            return
        self._entries += 1
        try:
            self._take(entry, self._reached)
        except IndexAlarm as alarm:
            self._partition.alarm(alarm)
        except PartitionEnded:
            return
        except Exception:
            self._partition.fail_at(entry.position)
        self._permits -= permits_of(entry)
        if self._permits <= PERMITS // 2 and self._reader is not None:
            self._reader.grant(PERMITS - self._permits)
            self._permits = PERMITS

    def on_end(self, reason: PulsarError) -> None:
        if self._reached is not None and not self._reached.done():
            self._reached.set_exception(reason)

    def _take(self, entry: RawEntry, reached: asyncio.Future[None]) -> None:
        position, earlier, fold = entry.position, self._earlier, self._fold
        if earlier.last_position is not None and position <= earlier.last_position:
            return  # a rewind of the dispatcher
        assert fold.last_position is not None
        if position > fold.last_position:  # retention took all that was before
            reached.set_result(None)
            return
        if not earlier.knows_next_offset and is_from_before_index(entry):
            return
        last_index = index_of(entry)
        try:
            content = self._contents.read_headers(entry)
            if earlier.knows_next_offset and last_index - content.offset_count + 1 < earlier.next_offset:
                content = self._contents.read(entry)  # its headers say more than is in it
        except EntryUnreadable:
            earlier.unreadable(position, last_index)
        else:
            earlier.by_reading(position, last_index, content)
        if position == fold.last_position:
            fold.take_over(earlier)
            reached.set_result(None)
