"""Reading up to the last entry that the broker holds now, by the tail reader."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final

from kafka_sidecar.loop.waiting import while_it_goes_on
from kafka_sidecar.partition.fold.fold import BEFORE_ALL, Fold
from kafka_sidecar.partition.follow.read_entries import holds_records
from kafka_sidecar.partition.follow.tail_reader import TailReader
from kafka_sidecar.partition.follow.tail_watch import TailWatch
from kafka_sidecar.partition.log.port import EntryLog
from kafka_sidecar.pulsar.entry import LogStats, Position
from kafka_sidecar.pulsar.errors import PulsarError, Unavailable
from kafka_sidecar.pulsar.raw_entries import NoEntryCame

# Half of a client's request.timeout.ms (30 s), so that the client still gets the error.
READ_SECONDS: Final = 15.0
# If the last entry has not arrived after this time, the sidecar checks whether readers get that entry at all. A broker
# dispatches an entry within 10 ms, a slow one within 1 s.
ARRIVAL_SECONDS: Final = 1.0
# A reader begins at an existing entry, which mostly arrives within this time. Then the last entry that the reader names
# is trusted without a stats request.
PROOF_SECONDS: Final = 0.1


class _WrittenMeanwhile(Exception):
    """Another writer has appended while the end of an emptied log was asked for. The question has to be put again."""


class MustOpenAgain(Unavailable):
    """The log ends elsewhere than the partition's fold. Its topic was deleted and made again, or retention has taken
    entries before the tail reader brought them.
    """


async def end_without_records(log: EntryLog, stats: LogStats) -> int:
    """The end of a log that holds nothing for readers: all that they were given stood before the first entry that is
    left.

    `stats` are those of a moment ago: what is written while it is asked for stands behind that end, or before it.
    """
    if stats.first is None:
        last_index = await log.index_property()  # the managed ledger's metadata holds the last index
        return 0 if last_index is None else last_index + 1
    first = await log.first_indexed()
    if first is None:  # no entry was written with an index
        return 0
    index = await log.index_of(first)
    if index is None:
        raise Unavailable("retention took the first entry while it was asked for")
    return index


class ReadToEnd:
    def __init__(self, name: str, log_: EntryLog, tail: TailReader, tail_watch: TailWatch, fold: Fold) -> None:
        self._name = name
        self._log = log_
        self._tail = tail
        self._tail_watch = tail_watch
        self._fold = fold
        self._waiting: list[tuple[Position, asyncio.Future[None]]] = []
        # The last entry, if it is a marker of Pulsar's own that no reader gets; all entries before it are folded.
        self._last_pulsar_marker: Position | None = None

    async def run(self) -> None:
        """Return when everything is folded that the broker holds now."""
        try:
            async with asyncio.timeout(READ_SECONDS):
                await self._run()
        except TimeoutError as error:
            raise Unavailable(f"the end of {self._name} was not read within {READ_SECONDS:.0f} s") from error

    async def run_first(self, if_unknown: Position | None, seconds: float = READ_SECONDS) -> None:
        """The same when a partition is opened, however long its log is. `if_unknown`: what was its last entry a moment
        ago.
        """
        try:
            async with while_it_goes_on(seconds, lambda: (self._fold.reached, self._tail.delays)):
                await self._run(if_unknown)
        except TimeoutError as error:
            raise NoEntryCame(f"nothing came of {self._name} within {seconds:.0f} s") from error

    def begin_at(self, start: Position) -> None:
        """Let the fold begin here instead: no entry has come from where it was to begin."""
        self._fold.replayed_from, self._fold.begins_at_first = start, False
        self._tail.restart()

    async def _run(self, if_unknown: Position | None = None) -> None:
        with self._tail.held_open():
            while True:
                with contextlib.suppress(_WrittenMeanwhile):
                    await self._read_up_to(await self._last(is_first=if_unknown is not None), if_unknown)
                    return

    async def _last(self, *, is_first: bool) -> Position | None:
        """The broker's last entry. A reader that has brought nothing yet may name an old one (see `TailWatch`)."""
        last = await self._tail.last_position()
        if (
            last is not None and not is_first and not await self._is_proven()
        ):  # opening a partition requests the stats anyway
            last = max(last, (await self._log.stats()).last or last)
        self._tail_watch.note(last)
        return last

    async def _is_proven(self) -> bool:
        """Whether the reader that has named the last entry brings an entry. What a reader brings that has replaced it
        proves nothing.
        """
        opening = self._tail.openings
        return await self._tail.brings_something(PROOF_SECONDS) and self._tail.openings == opening

    @property
    def is_awaited(self) -> bool:
        return bool(self._waiting)

    def reached(self, position: Position) -> None:
        """The fold has come to `position`, by reading or by a receipt."""
        if self._waiting:
            for wanted, waiter in self._waiting:
                if wanted <= position and not waiter.done():
                    waiter.set_result(None)

    def fail(self, reason: PulsarError) -> None:
        """The partition serves no more."""
        for _, waiter in self._waiting:
            if not waiter.done():
                waiter.set_exception(reason)

    async def _read_up_to(self, last: Position | None, if_unknown: Position | None) -> None:
        fold = self._fold
        if last is None:  # after a reload of the topic some brokers name entry -1 of the open ledger
            last = if_unknown
        if last is None:
            stats = await self._log.stats()
            last = stats.last
            if last is None:
                await self._find_nothing_up_to(last, stats)
                return
        if fold.reached is not None and fold.reached >= last:
            return
        if if_unknown is None and fold.last_position is None and fold.knows_next_offset:
            stats = await self._log.stats()
            # A broker may still name the last entry of an emptied log, which nobody can read any more.
            if stats.last is None:
                await self._find_nothing_up_to(None, stats)
                return
        self._go_back_to(last)
        if last == self._last_pulsar_marker:
            await self._find_nothing_up_to(last, await self._log.stats())
            return
        if await self._arrived(last, ARRIVAL_SECONDS):
            return
        # Pulsar brokers before 3.3 may name one of Pulsar's own markers as the last entry, and readers do not get
        # markers.
        behind = max(self._last_pulsar_marker or BEFORE_ALL, fold.reached or BEFORE_ALL)
        readable = await self._log.last_readable(last, behind)
        if readable is None or readable <= behind:
            await self._find_nothing_up_to(last, await self._log.stats())
        if readable is not None and readable > behind:
            self._go_back_to(readable)
            await self._arrived(readable, None)
        if readable != last:
            self._last_pulsar_marker = last

    async def _find_nothing_up_to(self, last: Position | None, stats: LogStats) -> None:
        """No reader is given anything up to `last`. That was the last entry before `stats` were asked for; None where
        there was none.
        """
        await self._check_emptied(stats)
        if self._fold.last_position is None and stats.last == last:
            self._fold.begins_behind = stats.end or BEFORE_ALL

    async def _check_emptied(self, stats: LogStats) -> None:
        """Nothing is left that readers are given. A sidecar that opens the partition now may begin at another end than
        this one knows.
        """
        fold = self._fold
        if not fold.knows_next_offset or (fold.last_position is not None and stats.may_hold(fold.last_position)):
            return
        known = fold.next_offset
        end = await end_without_records(self._log, stats)
        if end < known and await self._log.is_another():
            raise MustOpenAgain(
                f"{self._name} was made again: it ends at offset {end}, and the one before it ended at {known}"
            )
        if end > fold.next_offset:
            if await holds_records(self._log):
                raise _WrittenMeanwhile
            raise MustOpenAgain(
                f"{self._name} was emptied up to offset {end - 1}, of which {fold.next_offset} was not read"
            )

    def _go_back_to(self, last: Position) -> None:
        """Read from the last entry that readers are given, where all that was to be read behind it is markers."""
        fold = self._fold
        if fold.last_position is None and fold.replayed_from is not None and last < fold.replayed_from:
            fold.replayed_from = last
            self._tail.restart()

    async def _arrived(self, position: Position, seconds: float | None) -> bool:
        """Wait until an entry is folded; False when it was not in time."""
        if self._fold.reached is not None and self._fold.reached >= position:
            return True
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((position, waiter))
        try:
            async with asyncio.timeout(seconds) as limit:
                await waiter
        except TimeoutError:
            if not limit.expired():
                raise
            return False
        finally:
            self._waiting = [item for item in self._waiting if item[1] is not waiter]
        return True
