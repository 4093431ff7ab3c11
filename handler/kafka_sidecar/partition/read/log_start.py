"""Where a partition begins. Retention moves it forward, a whole ledger at a time, and clients may; it never moves
back.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Coroutine
from typing import Final, Protocol

from kafka_sidecar.internal_topics.moved_start import MovedStart
from kafka_sidecar.partition.follow.read_entries import NothingToRead, first_entry, first_indexed_entry, holds_records
from kafka_sidecar.partition.log.port import EntryLog
from kafka_sidecar.pulsar.entry import LogStats, Position
from kafka_sidecar.pulsar.errors import Unavailable
from kafka_sidecar.pulsar.raw_entries import NoEntryCame

log = logging.getLogger(__name__)

# Retention moves the start every few minutes, so an answer of a second ago is as good as a new one.
FRESH_SECONDS: Final = 1.0
# Opening a partition waits at most 1 s for the log start offset: the first ledger may lie in slow or unavailable
# storage.
BEGIN_SECONDS: Final = 1.0
# A client waits at most 15 s for the log start offset, half of its request.timeout.ms. The lookup goes on after that.
CONFIRM_SECONDS: Final = 15.0
# A partition that is read checks at this interval, in seconds, whether retention has moved its log start offset. A
# consumer that waits at the log end only reports the offset, so a longer interval is enough there.
STALE_SECONDS: Final = 10.0
STALE_AT_END_SECONDS: Final = 30.0


class PartitionForLogStart(Protocol):
    """The partition, as far as its log start needs it."""

    async def confirmed_end(self) -> int: ...
    def changed(self) -> None: ...
    def note_stats(self, stats: LogStats) -> None:
        """What the broker says of the log now."""
        ...


class LogStart:
    def __init__(self, log_: EntryLog, partition: PartitionForLogStart) -> None:
        self.offset = 0  # The log start offset, or a lower bound of it while it is not known yet
        # No entry is left below this offset. Records that clients have deleted (DeleteRecords) may still be stored
        # above it. The fold reads them to judge later entries.
        self.gone_before = 0
        self._log = log_
        self._partition = partition
        self._loop = asyncio.get_running_loop()
        self._first: Position | None = None  # The first entry according to the broker's list of ledgers
        self._known_of: Position | None = None  # The first entry of the log when `offset` was determined
        self._learnt_at = -STALE_SECONDS
        self.moved: MovedStart | None = None  # The furthest DeleteRecords by a client
        # Ledger → the last moved start within it, for the ledgers that are left.
        self._moves: dict[int, MovedStart] = {}
        self._task: asyncio.Task[object] | None = None

    async def begin(self, stats: LogStats, first_offset: int | None, asked_at: float) -> None:
        """The start of a log that is opened. `first_offset`: that of its first entry, or of its end if it has none,
        where it is known.
        """
        self._begins_at(stats.first)
        if first_offset is None:
            await asyncio.wait({self._ask(self._learn(stats, asked_at))}, timeout=BEGIN_SECONDS)
        else:
            self._move_to_first(first_offset)
            self._known_of, self._learnt_at = stats.first, asked_at

    def note(self, moved: MovedStart | None) -> None:
        """Where clients have moved it to, for a log that is being opened. Of two moves the greater counts."""
        if moved is not None:
            self.moved = moved if self.moved is None else max(self.moved, moved)

    def move_to(self, moved: MovedStart) -> None:
        """A client has moved it."""
        self.note(moved)
        self._obey()
        if self._first is None:  # The log was empty when it was last checked
            self._learnt_at = -math.inf
            self.refresh_soon()

    def _obey(self) -> None:
        """A move that lies before the first entry is that of a topic of the same name, or retention has taken more."""
        if self.moved is not None and self._first is not None and self.moved.position >= self._first:
            self._moves[self.moved.position.ledger] = self.moved
            self.move(self.moved.offset)

    def _begins_at(self, first: Position | None) -> None:
        """The first entry, by the broker's ledgers."""
        self._first = first
        self._obey()
        for ledger in [ledger for ledger in self._moves if first is not None and ledger < first.ledger]:
            self.gone_before = max(self.gone_before, self._moves.pop(ledger).offset)

    def _move_to_first(self, offset: int) -> None:
        """That of the first entry, or of the end where there is none."""
        self.gone_before = max(self.gone_before, offset)
        self.move(offset)

    def move(self, offset: int) -> None:
        if offset > self.offset:
            self.offset = offset
            self._partition.changed()

    async def confirmed(self) -> int:
        """The start, asked for a moment ago at most. Raises PulsarError."""
        if self._loop.time() - self._learnt_at > FRESH_SECONDS:
            asking = self.refresh_soon()
            await asyncio.wait({asking}, timeout=CONFIRM_SECONDS)
            if not asking.done():
                raise Unavailable(f"nothing came of the log's first ledger within {CONFIRM_SECONDS:.0f} s")
            if asking.cancelled():
                raise Unavailable("the partition is closed")
            asking.result()
        return self.offset

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def refresh_if_stale(self, at_end: bool) -> None:
        if self._loop.time() - self._learnt_at > (STALE_AT_END_SECONDS if at_end else STALE_SECONDS):
            self.refresh_soon()

    def refresh_soon(self) -> asyncio.Task[object]:
        """Ask the broker; those who want to know at the same time share the question."""
        return self._ask(self.refresh()) if self._task is None or self._task.done() else self._task

    def _ask(self, asking: Coroutine[None, None, object]) -> asyncio.Task[object]:
        self._task = asyncio.create_task(asking)
        self._task.add_done_callback(_log_failure)
        return self._task

    async def refresh(self) -> int:
        begun = self._loop.time()
        stats = await self._log.stats()
        self._partition.note_stats(stats)
        await self._learn(stats, begun)
        return self.offset

    async def _learn(self, stats: LogStats, asked_at: float) -> None:
        self._begins_at(stats.first)
        if stats.first is None:
            # Everything is trimmed, or nothing was ever written, so the log starts at its end. This counts only if the
            # log is still empty after the end was confirmed, for a record may have been appended in between.
            end = await self._partition.confirmed_end()
            now = await self._log.stats()
            if now.first is not None:
                await self._learn(now, asked_at)
                return
            self._move_to_first(end)
        elif self.moved is not None and self.moved.position > stats.first:
            self._known_of = stats.first  # A client has moved the log start beyond the first entry (DeleteRecords)
        elif stats.first != self._known_of:
            try:
                first = await first_entry(self._log)
            except NoEntryCame:
                if self.moved is None or self.moved.position != stats.first:
                    raise
                # The log start is where a client has moved it, or a little further. The next refresh looks it up again.
                self._learnt_at = asked_at
                return
            except NothingToRead:
                # If the log end has moved without readable entries, this call ends the partition, which is then opened
                # again.
                end = await self._partition.confirmed_end()
                if await holds_records(self._log):
                    return  # Records that were appended in the meantime lie before that end
                self._move_to_first(end)
                self._known_of, self._learnt_at = stats.first, asked_at
                return
            if first is None:
                self._log.note_entries_without_index()
                first = await first_indexed_entry(self._log)
            if first is not None:  # None: no entry that the broker hands to readers has an index yet
                self._move_to_first(first.base_offset)
                self._known_of = stats.first
        self._learnt_at = asked_at


def _log_failure(task: asyncio.Task[object]) -> None:
    if not task.cancelled() and task.exception() is not None:
        log.info("the log start could not be refreshed: %s", task.exception())
