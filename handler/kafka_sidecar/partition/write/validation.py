"""Batches whose records have to be looked into, in the order in which they came.

Most are of topics that ask for nothing, and pass. A small one is looked into at once, by the appender. One that may
take long goes to a thread (`unfolding`), and all that come behind it in its partition wait for it: a batch never
overtakes another.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from functools import partial
from typing import Final, Protocol

from kafka_sidecar.loop.clock import Clock
from kafka_sidecar.partition.log.errors import SENT_AGAIN
from kafka_sidecar.partition.log.log_config import LogConfig
from kafka_sidecar.partition.log.opened_batch import MAX_BYTES, size_if_small
from kafka_sidecar.partition.log.unfolding import LARGE_BYTES, unfolding
from kafka_sidecar.partition.write.append import Append, expire
from kafka_sidecar.partition.write.log_validator import BatchRefused, opens, validate
from kafka_sidecar.telemetry import metrics
from kafka_sidecar.telemetry.limits import RateLimitedLog
from kafka_sidecar.wire.error_code import ErrorCode

limited = RateLimitedLog(logging.getLogger(__name__))

# Memory reserved for the validation of one batch: up to 16 MiB of decompressed data, its records as Python objects, and
# the new entry.
MOST_BYTES: Final = 4 * MAX_BYTES


class PartitionForValidation(Protocol):
    """The partition, as far as this needs it."""

    @property
    def config(self) -> LogConfig: ...
    def append_validated(self, append: Append) -> None: ...
    def refuse_waiting(self, producer_id: int, error: ErrorCode) -> None:
        """A batch of this producer is refused for a moment, and so is what has come behind it, here and to the
        partition.
        """
        ...

    def refuse_not_here_yet(self, producer_id: int, error: ErrorCode) -> None:
        """The same of what has not come here yet."""
        ...


class Validation:
    def __init__(self, name: str, partition: PartitionForValidation, clock: Clock) -> None:
        self._name = name
        self._partition = partition
        self._unfolding = unfolding()
        self._clock = clock
        self.waiting: deque[Append] = deque()
        self._looking: asyncio.Task[None] | None = None

    def holds(self, append: Append) -> bool:
        """Whether an append waits here. It goes on in its turn."""
        if not self.waiting and not self._takes_long(append):
            return False
        self.waiting.append(append)
        if self._looking is None:
            self._looking = asyncio.create_task(self._look())
        return True

    def _takes_long(self, append: Append) -> bool:
        if append.is_marker or append.is_validated or not opens(append.data, self._partition.config):
            return False
        if self._unfolding.is_spent:
            return True
        size = size_if_small(append.data, LARGE_BYTES)
        return not self._unfolding.has_time_for(LARGE_BYTES + 1 if size is None else size, append.offset_count)

    async def _look(self) -> None:
        try:
            while self.waiting:
                append = self.waiting[0]
                await self._look_into(append)
                if self.waiting and self.waiting[0] is append:  # else the append was refused meanwhile
                    self.waiting.popleft()
                    self._go_on(append)
        finally:
            self._looking = None

    async def _look_into(self, append: Append) -> None:
        config = self._partition.config
        if append.is_marker or append.is_validated or not opens(append.data, config):
            return
        try:
            work = partial(validate, append.data, config, self._clock.wall())
            encoded = await self._unfolding.batches.look_into(MOST_BYTES, work, lambda: append.is_awaited)
            if encoded is not None:
                append.become(encoded)
        except BatchRefused as refused:
            refuse_records(self._name, append, refused)
        except Exception:
            metrics.INTERNAL_ERRORS.labels("validation").inc()
            limited.exception("a batch could not be looked into")
            append.refuse(ErrorCode.UNKNOWN_SERVER_ERROR)

    def _go_on(self, append: Append) -> None:
        if append.is_awaited:
            self._partition.append_validated(append)
        if append.has_producer and append.error in SENT_AGAIN:
            self._partition.refuse_waiting(append.producer_id, append.error)

    def expire(self, now: float) -> None:
        if self.waiting:
            kept, late = expire(list(self.waiting), now)
            self.waiting = deque(kept)
            for producer_id in late:
                self._partition.refuse_not_here_yet(producer_id, ErrorCode.REQUEST_TIMED_OUT)

    def refuse_of(self, producer_id: int, error: ErrorCode) -> None:
        """What a producer has sent behind a batch that is refused."""
        refused = [append for append in self.waiting if append.producer_id == producer_id]
        if refused:
            self.waiting = deque(append for append in self.waiting if append.producer_id != producer_id)
            for append in refused:
                append.refuse(error)

    def fail(self, error: ErrorCode) -> None:
        """The partition ends."""
        waiting, self.waiting = self.waiting, deque()
        for append in waiting:
            append.refuse(error)


def refuse_records(name: str, append: Append, refused: BatchRefused) -> None:
    limited.info("a batch for %s was refused: %s", name, refused)
    append.refuse_records(refused)
