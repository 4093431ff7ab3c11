"""Tasks that go on for as long as they are wanted, whatever happens in them.

A task that ends with an unforeseen exception is a partition that nobody reads any more. So each task is supervised: it
has a name, a back-off and a counter.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
from collections.abc import Awaitable, Callable

from kafka_sidecar.errors import SidecarError
from kafka_sidecar.loop.backoff import Backoff
from kafka_sidecar.telemetry import metrics
from kafka_sidecar.telemetry.limits import RateLimitedLog

log = RateLimitedLog(logging.getLogger(__name__))


class SupervisedTask:
    """`work` returns when there is nothing left to do; after an exception it is called again, after a pause.

    An error that trying again can't mend ends the task where `on_final` is given, which gets the error.
    """

    def __init__(
        self,
        kind: str,
        subject: str,
        work: Callable[[], Awaitable[None]],
        *,
        on_final: Callable[[SidecarError], None] | None = None,
        backoff: Backoff | None = None,
    ) -> None:
        self._kind = kind.replace("_", " ")
        self._where = kind  # label of the error counter, so only a few values may exist
        self._subject = subject
        self._work = work
        self._on_final = on_final
        self.backoff = backoff or Backoff()
        self._task: asyncio.Task[None] | None = None

    @property
    def running(self) -> bool:
        return self._task is not None

    def start(self) -> None:
        """Begin, if it is not under way."""
        if self._task is None:
            self.backoff.reset()
            self._task = asyncio.create_task(self._run())

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            self._task = None

    async def stopped(self) -> None:
        """Stop, and wait until it has."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def _run(self) -> None:
        try:
            while True:
                try:
                    await self._work()
                    return
                except SidecarError as error:
                    if not error.retriable and self._on_final is not None:
                        self._forget()
                        self._on_final(error)
                        return
                    log.info(f"the {self._kind} of %s is tried again: %s", self._subject, error)
                except (Exception, asyncio.CancelledError) as error:
                    if isinstance(error, asyncio.CancelledError) and self._is_stopped():
                        raise
                    metrics.INTERNAL_ERRORS.labels(self._where).inc()
                    log.exception(f"the {self._kind} of %s failed and is begun again", self._subject)
                await self.backoff.pause()
        finally:
            self._forget()

    def _is_stopped(self) -> bool:
        """Whether this task was cancelled itself, and not only something that it waited for."""
        task = asyncio.current_task()
        return self._task is not task or task is None or task.cancelling() > 0

    def _forget(self) -> None:
        """The task is no more: `start` begins another."""
        if self._task is asyncio.current_task():
            self._task = None


def every(seconds: float, kind: str, work: Callable[[], object]) -> SupervisedTask:
    """`work`, a function or a coroutine function, each so many seconds; one that fails does not stop the next."""

    async def go_on() -> None:
        while True:
            await asyncio.sleep(seconds)
            result = work()
            if inspect.isawaitable(result):
                await result

    return SupervisedTask(kind, "this sidecar", go_on, backoff=Backoff(seconds, seconds))
