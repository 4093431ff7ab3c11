"""What producers wrote before the fold began: folded once, and not before somebody appends to whom it matters.

A partition that is only read begins to fold at its last entry. Whether an append is a retry is told by what its producer
wrote before, so the first append with a producer waits until a second fold has come from further back to where the partition is,
and the partition has taken over what that one knows.
"""

from __future__ import annotations

from contextlib import aclosing
from typing import Final, Protocol

from handler.errors import EntryUnreadable
from handler.partition.fold.fold import Fold, IndexAlarm, index_of
from handler.partition.log.entries import Content
from handler.partition.log.port import EntryLog
from handler.partition.read.read_entries import raw_entries_from
from handler.pulsar.entry import LogStats, Position, RawEntry
from handler.tasks import KeptAlive

# What is read has its bound in bytes (limits.replay_bytes); more permits than these save no time.
PERMITS: Final = 256


class PartitionForReplay(Protocol):
    """The partition, as far as its replay needs it."""

    async def confirm_end(self) -> None:
        """Until everything is folded that the broker held when this was called. Raises PulsarError."""
        ...

    def read_entry(self, entry: RawEntry) -> Content:
        """The content of an entry, or EntryUnreadable."""
        ...

    def on_replayed(self) -> None:
        """The partition's fold knows what its producers wrote before."""
        ...

    def fail_at(self, position: Position) -> None:
        """The sidecar itself failed at an entry. The partition ends."""
        ...

    def alarm(self, alarm: IndexAlarm) -> None:
        """The log contradicts itself. The partition ends."""
        ...


class Replay:
    def __init__(self, name: str, log_: EntryLog, fold: Fold, partition: PartitionForReplay, max_entries: int, max_bytes: int) -> None:
        self._log = log_
        self._fold = fold
        self._partition = partition
        self._max_entries = max_entries
        self._max_bytes = max_bytes
        self.done = False
        self._task = KeptAlive("replay", name, self._run)

    def first_entry(self, stats: LogStats) -> Position | None:
        """Where a fold begins that is to know the producers; None where the log has no entry."""
        return None if stats.last is None else stats.before(stats.last, self._max_entries, self._max_bytes)

    def start(self) -> None:
        """Begin, if it is not under way. `on_replayed` tells when it is done."""
        self._task.start()

    def stop(self) -> None:
        self._task.stop()

    async def _run(self) -> None:
        try:
            await self._catch_up()
        except IndexAlarm as alarm:
            self._partition.alarm(alarm)
        else:
            self.done = True
            self._partition.on_replayed()

    async def _catch_up(self) -> None:
        await self._partition.confirm_end()  # a partition that nobody used for long is far behind
        stats = await self._log.stats()
        start = self.first_entry(stats)
        if start is None or self._fold.last_position is None:
            return  # retention took all that was before
        earlier = Fold(None if start == stats.first else start)
        async with aclosing(raw_entries_from(self._log, start, PERMITS)) as entries:
            async for entry in entries:
                if entry.position > self._fold.last_position:
                    await self._partition.confirm_end()
                try:
                    self._take(earlier, entry)
                except IndexAlarm:
                    raise
                except Exception:
                    self._partition.fail_at(entry.position)
                    return
                if earlier.last_position == self._fold.last_position:
                    self._fold.take_over(earlier)
                    return

    def _take(self, fold: Fold, entry: RawEntry) -> None:
        if fold.last_position is not None and entry.position <= fold.last_position:
            return  # a rewind of the dispatcher
        last_index = index_of(entry)
        try:
            content = self._partition.read_entry(entry)
        except EntryUnreadable:
            fold.unreadable(entry.position, last_index)
        else:
            fold.by_reading(entry.position, last_index, content)
