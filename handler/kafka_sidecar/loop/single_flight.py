"""Calls that several callers share."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Hashable
from functools import partial
from typing import Any, Generic, TypeVar

from kafka_sidecar.errors import SidecarError
from kafka_sidecar.telemetry import metrics
from kafka_sidecar.telemetry.limits import RateLimitedLog

log = RateLimitedLog(logging.getLogger(__name__))

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


class _Call(Generic[T]):
    __slots__ = ("task", "waiting")

    def __init__(self, task: asyncio.Task[T]) -> None:
        self.task = task
        self.waiting = 0


class SingleFlight(Generic[K, T]):
    """Calls under way, one for each key: callers of the same key wait for the same call.

    A call goes on when its callers give up, so that the next caller finds it further on; with `linger` for
    so many seconds.
    """

    def __init__(self, linger: float | None = None) -> None:
        self._linger = linger
        self._calls: dict[K, _Call[T]] = {}
        self._is_closed = False

    def __len__(self) -> int:
        return len(self._calls)

    def __contains__(self, key: K) -> bool:
        """Whether a call with this key is under way."""
        call = self._calls.get(key)
        return call is not None and not call.task.done()

    def begin(self, key: K, work: Callable[[], Coroutine[Any, Any, T]]) -> None:
        """Begin a call, if it is not under way, and let nobody wait for it."""
        self._begun(key, work)

    async def call(self, key: K, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        call = self._begun(key, work)
        call.waiting += 1
        try:
            return await asyncio.shield(call.task)
        finally:
            call.waiting -= 1
            if not call.waiting and self._linger is not None and not call.task.done():
                asyncio.get_running_loop().call_later(self._linger, self._end_if_unwanted, key, call)

    async def call_after(self, key: K, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """The result of a call that begins no sooner than this one: what was begun before may tell of what was
        before.
        """
        if key in self:
            before = self._calls[key].task
            await asyncio.wait([before])
            if self._is_closed:
                raise asyncio.CancelledError
        return await self.call(key, work)

    def _begun(self, key: K, work: Callable[[], Coroutine[Any, Any, T]]) -> _Call[T]:
        call = self._calls.get(key)
        if call is None or call.task.done():  # a finished call stays in the table until its done callback runs
            call = self._calls[key] = _Call(asyncio.create_task(work()))
            call.task.add_done_callback(partial(self._done, key))
        return call

    def _done(self, key: K, task: asyncio.Task[T]) -> None:
        if (call := self._calls.get(key)) is not None and call.task is task:
            del self._calls[key]
        if task.cancelled():
            return
        failure = task.exception()  # the exception is read here, because all callers may have been cancelled
        if failure is not None and not isinstance(failure, SidecarError):
            metrics.INTERNAL_ERRORS.labels("shared_call").inc()
            log.warning("a shared call failed: %r", failure)

    def _end_if_unwanted(self, key: K, call: _Call[T]) -> None:
        if not call.waiting and self._calls.get(key) is call:
            del self._calls[key]  # the next caller starts a new call instead of joining the cancelled one
            call.task.cancel()

    async def finished(self, seconds: float) -> None:
        """Wait for what is under way, for a while."""
        tasks = [call.task for call in self._calls.values()]
        if tasks:
            await asyncio.wait(tasks, timeout=seconds)

    def stop(self) -> None:
        for call in self._calls.values():
            call.task.cancel()

    async def close(self) -> None:
        self._is_closed = True
        tasks = [call.task for call in self._calls.values()]
        self.stop()
        await asyncio.gather(*tasks, return_exceptions=True)
