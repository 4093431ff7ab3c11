"""The one reader at the end of a partition. It hands every entry to the fold and survives its broker."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Protocol

from handler.errors import SidecarError
from handler.partition.log.port import EntryLog, LogReader
from handler.pulsar.entry import Position, RawEntry
from handler.pulsar.errors import PulsarError, Unavailable
from handler.pulsar.events import ConsumerEvents
from handler.tasks import KeptAlive

PERMITS: Final = 1_000  # Pulsar's receiverQueueSize
# After a question that went down with its connection: the reader is opened again in about as much.
ASK_AGAIN_SECONDS: Final = 0.05


class PartitionForTail(Protocol):
    """The partition, as far as its tail reader needs it."""

    def tail_start(self) -> Position | None:
        """From where to read on; None for the beginning."""
        ...

    def on_tail_entry(self, entry: RawEntry) -> int:
        """Returns the flow permits that the entry cost."""
        ...

    def end_for(self, error: SidecarError) -> None:
        """Trying again won't help."""
        ...


class TailReader(ConsumerEvents):
    """Opened by `want`, closed by `stop`; in between it reads on from `tail_start()` after every interruption."""

    def __init__(self, name: str, log_: EntryLog, partition: PartitionForTail) -> None:
        self._log = log_
        self._partition = partition
        self._reader: LogReader | None = None
        self._task = KeptAlive("tail_reader", name, self._read, on_final=partition.end_for)
        self._ended: asyncio.Future[PulsarError] | None = None
        self._opened = asyncio.Event()
        self._taken = 0
        self._holders = 0
        self.wanted_at = 0.0

    @property
    def running(self) -> bool:
        return self._task.running

    def want(self) -> None:
        self.wanted_at = asyncio.get_running_loop().time()
        self._task.start()

    def stop(self) -> None:
        self._task.stop()
        self._let_go()

    def _let_go(self) -> None:
        self._opened.clear()
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    async def _read(self) -> None:
        """From where the fold is, until the broker ends it."""
        ended = self._ended = asyncio.get_running_loop().create_future()
        self._taken = 0
        try:
            self._reader = await self._log.reader(self._partition.tail_start(), self)
            self._reader.grant(PERMITS)
            self._opened.set()
            self._task.backoff.reset()
            raise await ended
        finally:
            if self._ended is ended:  # else another has begun since this one was stopped
                self._let_go()

    @contextmanager
    def held_open(self) -> Iterator[None]:
        """Somebody waits for what it reads."""
        self._holders += 1
        try:
            yield
        finally:
            self._holders -= 1

    def stop_unless_held(self) -> None:
        if not self._holders:
            self.stop()

    async def last_position(self) -> Position | None:
        """The broker's last entry, asked through the open reader; waits for it to open first. Call it while it is held open."""
        while True:
            self.want()
            await self._opened.wait()
            if self._reader is None:
                continue
            try:
                return await self._reader.last_position()
            except Unavailable:
                await asyncio.sleep(ASK_AGAIN_SECONDS)

    # --- from the reader

    def on_entry(self, entry: RawEntry) -> None:
        self._taken += self._partition.on_tail_entry(entry)
        if self._taken >= PERMITS // 2 and self._reader is not None:
            self._reader.grant(self._taken)
            self._taken = 0

    def on_end(self, reason: PulsarError) -> None:
        if self._ended is not None and not self._ended.done():
            self._ended.set_result(reason)
