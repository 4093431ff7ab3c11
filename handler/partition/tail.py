"""The one reader at the end of a partition. It hands every entry to the fold and survives its broker."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from handler.partition.port import EntryLog, LogReader
from handler.pulsar.entry import Position, RawEntry
from handler.pulsar.errors import PulsarError, Unavailable

log = logging.getLogger(__name__)

PERMITS: Final = 1_000  # Pulsar's receiverQueueSize
FIRST_DELAY: Final = 0.05
MAX_DELAY: Final = 2.0


class TailReader:
    """Opened by `want`, closed by `stop`; in between it reads on from `start()` after every interruption."""

    def __init__(
        self, log_: EntryLog, start: Callable[[], Position | None], on_entry: Callable[[RawEntry], int],
        on_failure: Callable[[PulsarError], None],
    ) -> None:  # fmt: skip
        self._log = log_
        self._start = start
        self._deliver = on_entry
        self._on_failure = on_failure
        self._reader: LogReader | None = None
        self._task: asyncio.Task[None] | None = None
        self._ended: asyncio.Future[PulsarError] | None = None
        self._opened = asyncio.Event()
        self._taken = 0
        self._holders = 0
        self.wanted_at = 0.0

    @property
    def running(self) -> bool:
        return self._task is not None

    def want(self) -> None:
        self.wanted_at = asyncio.get_running_loop().time()
        if self._task is None:
            self._task = asyncio.create_task(self._run())

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            self._task = None
        self._let_go()

    def _let_go(self) -> None:
        self._opened.clear()
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    async def _run(self) -> None:
        delay = FIRST_DELAY
        while True:
            self._ended = asyncio.get_running_loop().create_future()
            self._taken = 0
            try:
                self._reader = await self._log.reader(self._start(), self)
                self._reader.grant(PERMITS)
                self._opened.set()
                reason = await self._ended
                delay = FIRST_DELAY
            except PulsarError as error:
                reason = error
            self._let_go()
            if not reason.retriable:
                self._task = None
                self._on_failure(reason)
                return
            log.debug("tail reader: %s", reason)
            await asyncio.sleep(delay)
            delay = min(delay * 2, MAX_DELAY)

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
                await asyncio.sleep(FIRST_DELAY)

    # --- from the reader

    def on_entry(self, entry: RawEntry) -> None:
        self._taken += self._deliver(entry)
        if self._taken >= PERMITS // 2 and self._reader is not None:
            self._reader.grant(self._taken)
            self._taken = 0

    def on_end(self, reason: PulsarError) -> None:
        if self._ended is not None and not self._ended.done():
            self._ended.set_result(reason)
