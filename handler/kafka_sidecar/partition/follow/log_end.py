"""The end of the log as the broker has it, asked for one question at a time.

A question answers everybody who asked before it began, and nobody who asked later: another sidecar may
have written in between. So requests that come while one is under way share the next.
"""

from __future__ import annotations

import asyncio
import logging
import math
from typing import Protocol

from kafka_sidecar.pulsar.errors import PulsarError, Unavailable
from kafka_sidecar.telemetry import metrics
from kafka_sidecar.telemetry.limits import RateLimitedLog

log = RateLimitedLog(logging.getLogger(__name__))


class PartitionForLogEnd(Protocol):
    """The partition, as far as its end needs it."""

    async def read_to_end(self) -> None:
        """Fold everything up to the broker's last entry. May raise PulsarError."""
        ...

    def changed(self) -> None: ...


class LogEnd:
    def __init__(self, partition: PartitionForLogEnd) -> None:
        self._partition = partition
        self._loop = asyncio.get_running_loop()
        self._confirmed_at = -math.inf  # loop time at which the last successful request for the log end began
        self._waiting: list[asyncio.Future[None]] = []
        self._asking: list[asyncio.Future[None]] = []  # callers that the request in flight answers
        self._readers_wait = False
        self._task: asyncio.Task[None] | None = None

    async def confirmed(self) -> None:
        """Return when everything is folded that the broker held when this was called. Raises PulsarError."""
        waiter: asyncio.Future[None] = self._loop.create_future()
        self._waiting.append(waiter)
        self._begin()
        await waiter

    def is_confirmed_since(self, moment: float) -> bool:
        """Whether the broker answered a question that began after `moment`. If not, one is sent, and its answer calls
        `changed`.

        A failure calls nothing: the fetch asks again when its time is up.
        """
        if self._confirmed_at > moment:
            return True
        self._readers_wait = True
        self._begin()
        return False

    def fail(self, reason: PulsarError) -> None:
        """The partition serves no more."""
        if self._task is not None:
            self._task.cancel()
            self._task = None
        self._readers_wait = False
        _settle(self._asking + self._waiting, reason)
        self._asking, self._waiting = [], []

    def _begin(self) -> None:
        if self._task is None:
            self._task = asyncio.create_task(self._ask())

    async def _ask(self) -> None:
        try:
            while self._waiting or self._readers_wait:
                self._asking, self._waiting = self._waiting, []
                self._readers_wait = False
                begun = self._loop.time()
                failure = await self._attempt()
                if failure is None:
                    self._confirmed_at = begun
                answered, self._asking = self._asking, []
                _settle(answered, failure)
                if failure is None:
                    self._partition.changed()
        finally:
            if self._task is asyncio.current_task():
                self._task = None

    async def _attempt(self) -> PulsarError | None:
        try:
            await self._partition.read_to_end()
        except PulsarError as error:
            log.info("the end of a partition could not be confirmed: %s", error)
            return error
        except Exception as error:
            metrics.INTERNAL_ERRORS.labels("log_end").inc()
            log.exception("the end of a partition could not be confirmed")
            return Unavailable(str(error))
        return None


def _settle(waiting: list[asyncio.Future[None]], failure: PulsarError | None) -> None:
    for waiter in waiting:
        if waiter.done():  # the caller has already given up
            continue
        if failure is None:
            waiter.set_result(None)
        else:
            waiter.set_exception(failure)
