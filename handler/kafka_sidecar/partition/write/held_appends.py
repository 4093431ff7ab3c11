"""Appends that wait, in the order in which they came, until the log's end is known, or an earlier part of it.

A batch whose sequence does not follow what is folded here may follow what another sidecar has written. A
producer that gets OUT_OF_ORDER_SEQUENCE_NUMBER begins a new epoch and sends the same batch again, so
nobody gets it before the log has been read to its end. Nor does a batch get any answer while what its producer wrote is
not known: then the log is read further back. Later appends of the same producer wait behind.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final, Protocol

from kafka_sidecar.errors import SidecarError
from kafka_sidecar.loop.supervised import SupervisedTask
from kafka_sidecar.loop.waiting import within
from kafka_sidecar.partition.log.errors import error_code
from kafka_sidecar.partition.write.append import Append, expire, pass_on
from kafka_sidecar.wire.error_code import ErrorCode

# Batches in flight may be given up without a notification, so the log is checked after 1 s at the latest.
NEWS_SECONDS: Final = 1.0


class AppenderForHeld(Protocol):
    """The appender, as far as those that wait need it."""

    async def confirm_end(self) -> None: ...
    async def read_back(self) -> None: ...
    def refuse_waiting(self, producer_id: int, error: ErrorCode) -> None:
        """A batch of this producer is refused for a moment. So is what came behind it and has not come to the appender
        yet.
        """
        ...

    def append(self, append: Append, end_is_known: bool = False) -> None:
        """`end_is_known`: the log was read to its end after the append came."""
        ...


class HeldAppends:
    """Those that wait until the end is known."""

    def __init__(self, name: str, appender: AppenderForHeld) -> None:
        self._appender = appender
        # By producer id; each append with the release round in which it came.
        self.appends: dict[int, list[tuple[int, Append]]] = {}
        self._round = 0
        self._wants_the_past = False
        self._for_others: set[int] = set()  # producer ids
        self._news = asyncio.Event()  # an append has come, or a batch is no longer in flight
        self._task = SupervisedTask("held_appends", name, self._release)

    def __len__(self) -> int:
        return sum(map(len, self.appends.values()))

    def holds(self, producer_id: int) -> bool:
        return producer_id in self.appends

    def hold(self, append: Append) -> None:
        self.appends.setdefault(append.producer_id, []).append((self._round, append))
        self._news.set()
        self._task.start()

    def hold_for_the_past(self, append: Append) -> None:
        """What tells its verdict stands before all that is known."""
        self._wants_the_past = True
        self.hold(append)

    def hold_for_others(self, append: Append) -> None:
        """The end is known, and what its producer has in flight tells the verdict."""
        self._for_others.add(append.producer_id)
        self.hold(append)

    def on_resolved(self) -> None:
        """Something that was in flight is over."""
        self._news.set()

    async def _release(self) -> None:
        while self.appends:
            if self.appends.keys() <= self._for_others:
                await self._wait_for_news()
            self._for_others.clear()
            self._round += 1
            try:
                if self._wants_the_past:
                    self._wants_the_past = False
                    await self._appender.read_back()
                await self._appender.confirm_end()
            except SidecarError as error:
                self.fail(error_code(error))
                return
            held, self.appends = self.appends, {}
            for appends in held.values():
                refused = pass_on(
                    [(append, came_in < self._round) for came_in, append in appends], self._appender.append
                )
                for producer_id, told in refused.items():
                    self._appender.refuse_waiting(producer_id, told)

    async def _wait_for_news(self) -> None:
        self._news.clear()
        with contextlib.suppress(TimeoutError):
            await within(NEWS_SECONDS, self._news.wait())

    def expire(self, now: float) -> None:
        for producer_id, appends in list(self.appends.items()):
            kept, late = expire([append for _, append in appends], now)
            # expire() also refuses every later append of the same producer, so the first ones are left
            del appends[len(kept) :]
            if not appends:
                del self.appends[producer_id]
                self._news.set()
            if late:
                self._appender.refuse_waiting(producer_id, ErrorCode.REQUEST_TIMED_OUT)

    def refuse_of(self, producer_id: int, error: ErrorCode) -> None:
        """What a producer has sent behind a batch that is refused."""
        self._news.set()
        for _, append in self.appends.pop(producer_id, ()):
            append.refuse(error)

    def fail(self, error: ErrorCode) -> None:
        held, self.appends = self.appends, {}
        self._news.set()
        for producer_id, appends in held.items():
            for _, append in appends:
                append.refuse(error)
            self._appender.refuse_waiting(producer_id, error)

    def close(self) -> None:
        self._task.stop()
