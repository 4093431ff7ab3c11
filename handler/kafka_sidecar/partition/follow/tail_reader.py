"""The one reader at the end of a partition. It hands entries to the fold and survives its broker.

It reads what receipts do not tell. While the receipts of this sidecar's own appends come one after another, nobody else
can have written in between, and it is given no permits: the broker would hand out a second time what is folded already.
It goes on when a receipt does not follow, when none has come for some milliseconds, and when somebody waits for the
log's end; from the last folded entry on, so that the broker's index proves the count of all before it. After an entry
of another writer it reads everything for some seconds.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Protocol

from kafka_sidecar.errors import SidecarError
from kafka_sidecar.loop.supervised import SupervisedTask
from kafka_sidecar.partition.log.large_entries import LargeEntries
from kafka_sidecar.partition.log.port import EntryLog, LogReader
from kafka_sidecar.pulsar.entry import Position, RawEntry
from kafka_sidecar.pulsar.errors import PulsarError, Unavailable
from kafka_sidecar.pulsar.events import ConsumerEvents

PERMITS: Final = 1_000  # Pulsar's receiverQueueSize
# Flow permits while only this sidecar writes: enough for the first entries of another writer, after which more are
# granted. If the broker delivers the sidecar's own entries again, they use up the permits, and reading pauses.
QUIET_PERMITS: Final = 16
# The tail reader looks for entries of other writers this long after the last receipt. A broker dispatches a new entry
# after 10 ms itself (managedLedgerNewEntriesCheckDelayInMillis).
QUIET_SECONDS: Final = 0.01
# Pause before a request that was lost with its connection is repeated. The reader is reopened in about this time.
ASK_AGAIN_SECONDS: Final = 0.05


class PartitionForTail(Protocol):
    """The partition, as far as its tail reader needs it."""

    def tail_from(self) -> Position | None:
        """From where to read on; None for the beginning."""
        ...

    def on_tail_entry(self, entry: RawEntry) -> int:
        """Returns the flow permits that the entry cost."""
        ...

    def others_write(self) -> bool:
        """Whether another writer's entry has come lately."""
        ...

    def seconds_since_receipt(self) -> float: ...

    def last_but_one(self) -> Position | None:
        """The entry before the last that is folded; None where that is not known."""
        ...

    def end_for(self, error: SidecarError) -> None:
        """Trying again won't help."""
        ...


class TailReader(ConsumerEvents):
    """Opened by `want`, closed by `stop`; in between it reads on from `tail_from()` after every interruption."""

    def __init__(self, name: str, log_: EntryLog, partition: PartitionForTail) -> None:
        self._log = log_
        self._partition = partition
        self._reader: LogReader | None = None
        self._entries: LargeEntries | None = None
        self._task = SupervisedTask("tail_reader", name, self._read, on_final=partition.end_for)
        self._ended: asyncio.Future[PulsarError] | None = None
        self._opened = asyncio.Event()
        self._first_came = asyncio.Event()
        self._permits = 0  # flow permits that are granted and not used
        self._quiet_timer: asyncio.TimerHandle | None = None
        self._holders = 0
        self.wanted_at = 0.0
        self.openings = 0
        self.brought = 0  # entries received since the reader was opened
        self.delays = 0  # how often received entries had to wait in this process (see `LargeEntries`)
        self.begins_at: Position | None = None  # position from which the reader was opened

    @property
    def running(self) -> bool:
        return self._task.running

    @property
    def is_open(self) -> bool:
        return self._reader is not None

    def want(self) -> None:
        self.wanted_at = asyncio.get_running_loop().time()
        self._task.start()

    def restart(self) -> None:
        """`tail_from()` has changed."""
        self.stop()
        self.want()

    def stop(self) -> None:
        self._task.stop()
        self._let_go()

    def _let_go(self) -> None:
        self._opened.clear()
        if self._quiet_timer is not None:
            self._quiet_timer.cancel()
            self._quiet_timer = None
        if self._reader is not None:
            self._reader.close()
            self._reader = None
        if self._entries is not None:
            self._entries.close()
            self._entries = None

    async def _read(self) -> None:
        """From where the fold is, until the broker ends it."""
        ended = self._ended = asyncio.get_running_loop().create_future()
        self._permits = 0
        try:
            self.begins_at = self._partition.tail_from()
            self.brought = 0
            self._first_came.clear()
            self.openings += 1
            self._entries = LargeEntries(self)
            self._reader = await self._log.reader(self.begins_at, self._entries)
            self._top_up(self._wanted_permits())
            self._opened.set()
            self._task.backoff.reset()
            reason = await ended
            raise reason  # SupervisedTask calls `_read` again after a pause
        finally:
            if self._ended is ended:  # otherwise a newer `_read` has begun since this one was stopped
                self._let_go()

    @contextmanager
    def held_open(self) -> Iterator[None]:
        """Somebody waits for what it reads."""
        self._holders += 1
        self.read_on()
        try:
            yield
        finally:
            self._holders -= 1

    def stop_unless_held(self) -> None:
        if not self._holders:
            self.stop()

    async def last_position(self) -> Position | None:
        """The broker's last entry, asked through the open reader; waits for it to open first. Call it while it is held
        open.
        """
        while True:
            self.want()
            await self._opened.wait()
            reader = self._reader
            if reader is None:
                continue
            try:
                last = await reader.last_position()
            except Unavailable:
                await asyncio.sleep(ASK_AGAIN_SECONDS)
                continue
            # If the reader was reopened meanwhile, `brought` no longer tells anything of the one that answered.
            if reader is self._reader:
                return last

    async def named_last(self) -> Position | None:
        """What the reader that is open now names as the last entry; None where none is open. May raise PulsarError."""
        return None if self._reader is None else await self._reader.last_position()

    async def brings_something(self, seconds: float) -> bool:
        """Whether it has brought an entry since it was opened, or does so in time."""
        if not self.brought:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._first_came.wait()
        return self.brought > 0

    # --- permits

    def read_on(self) -> None:
        """Read what comes next: receipts do not tell it."""
        if self._reader is None:
            return  # the permits are granted when the reader is open
        if self._permits <= 0:
            folded = self._partition.last_but_one()
            if folded is not None:
                self._reader.skip_to(folded)
        self._top_up(self._wanted_permits())

    def _wanted_permits(self) -> int:
        return PERMITS if self._holders or self._partition.others_write() else QUIET_PERMITS

    def _top_up(self, permits: int) -> None:
        if self._reader is not None and self._permits <= permits // 2:
            self._reader.grant(permits - self._permits)
            self._permits = permits

    def _await_quiet(self) -> None:
        """Look again in a moment, if there are too few permits for what others may write meanwhile."""
        if self._quiet_timer is None and self._reader is not None and self._permits <= QUIET_PERMITS // 2:
            self._quiet_timer = asyncio.get_running_loop().call_later(QUIET_SECONDS, self._on_quiet)

    def _on_quiet(self) -> None:
        self._quiet_timer = None
        if self._partition.seconds_since_receipt() >= QUIET_SECONDS:
            self.read_on()
        else:
            self._await_quiet()

    # --- from the reader

    def on_entry(self, entry: RawEntry) -> None:
        cost = self._partition.on_tail_entry(entry)  # `on_tail_entry` may call `read_on`, which grants more permits
        self._permits -= cost
        if not self.brought:
            self._first_came.set()
        self.brought += 1
        if self._holders or self._partition.others_write():
            self._top_up(PERMITS)
        else:
            self._await_quiet()

    def on_delayed(self) -> None:
        self.delays += 1

    def on_end(self, reason: PulsarError) -> None:
        if self._ended is not None and not self._ended.done():
            self._ended.set_result(reason)
