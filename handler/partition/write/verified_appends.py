"""Batches of transactions, which wait until the coordinator has said which transaction they belong to (KIP-890).

Of each producer the first batch of a transaction is asked about, and those behind it wait in their order. What is known is good until the
partition's log has the marker of that transaction. Before the first of all is sent, everybody can know that the log has transactions.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple, Protocol

from handler.errors import SidecarError
from handler.partition.fold.fold import BEFORE_ALL, Fold
from handler.partition.log.port import EntryLog
from handler.partition.write.append import Append, expire
from handler.telemetry import metrics
from handler.telemetry.limits import RateLimitedLog
from handler.wire.error_code import ErrorCode

limited = RateLimitedLog(logging.getLogger(__name__))

# Of producers that write transactions to one partition; each has one at a time.
MAX_KNOWN: Final = 10_000

# The number of the transaction that is ongoing, or why there is none.
Verify = Callable[[], Awaitable[int | ErrorCode]]


class _Known(NamedTuple):
    epoch: int
    number: int


class PartitionForVerified(Protocol):
    """The partition, as far as batches of transactions need it."""

    async def opened(self) -> ErrorCode: ...
    def append(self, append: Append) -> None: ...


class VerifiedAppends:
    def __init__(self, log_: EntryLog, fold: Fold, partition: PartitionForVerified) -> None:
        self._log = log_
        self._fold = fold
        self._partition = partition
        self._known: OrderedDict[int, _Known] = OrderedDict()  # by producer id
        self._waiting: dict[int, list[tuple[Append, Verify]]] = {}  # likewise, while its coordinator is asked
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_announced = False

    def append(self, append: Append, verify: Verify) -> None:
        """A batch of a transaction. Its request gets the outcome, maybe before this returns."""
        waiting = self._waiting.get(append.producer_id)
        if waiting is not None:
            waiting.append((append, verify))
            return
        number = self._number_of(append)
        if number is not None:
            append.transaction = number
            self._partition.append(append)
            return
        self._waiting[append.producer_id] = [(append, verify)]
        task = asyncio.create_task(self._ask(append.producer_id, append.epoch, verify))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _number_of(self, append: Append) -> int | None:
        known = self._known.get(append.producer_id)
        assert self._fold.transactions is not None
        if known is None or known.epoch != append.epoch or self._fold.transactions.has_ended(append.producer_id, known.number):
            return None
        return known.number

    async def _ask(self, producer_id: int, epoch: int, verify: Verify) -> None:
        try:
            answer: int | ErrorCode = await self._partition.opened()
            if answer is ErrorCode.NONE:
                await self._announce()
                answer = await verify()
        except SidecarError as error:
            limited.info("a batch of a transaction has to be sent again: %s", error)
            answer = ErrorCode.NOT_ENOUGH_REPLICAS
        except Exception:
            metrics.INTERNAL_ERRORS.labels("verification").inc()
            limited.exception("a batch of a transaction could not be verified")
            answer = ErrorCode.NOT_ENOUGH_REPLICAS
        waiting = self._waiting.pop(producer_id, [])
        if isinstance(answer, ErrorCode):
            for append, _ in waiting:
                append.refuse(answer)
            return
        self._known[producer_id] = _Known(epoch, answer)
        self._known.move_to_end(producer_id)
        if len(self._known) > MAX_KNOWN:
            self._known.popitem(last=False)
        for append, verify in waiting:
            self._go_on(append, verify, epoch, answer)

    def _go_on(self, append: Append, verify: Verify, epoch: int, number: int) -> None:
        if append.epoch == epoch and append.producer_id not in self._waiting:
            append.transaction = number
            self._partition.append(append)
        else:  # its producer has begun anew meanwhile
            self.append(append, verify)

    async def _announce(self) -> None:
        if not self._is_announced:
            await self._log.begin_transactions(self._fold.reached or BEFORE_ALL)
            self._is_announced = True

    def tick(self, now: float) -> None:
        """Once a second: what has waited too long is refused."""
        for producer_id, waiting in list(self._waiting.items()):
            kept = set(map(id, expire([append for append, _ in waiting], now)))
            self._waiting[producer_id] = [item for item in waiting if id(item[0]) in kept]

    @property
    def is_at_work(self) -> bool:
        return bool(self._waiting)

    def fail(self, code: ErrorCode) -> None:
        """The partition ends."""
        for task in self._tasks:
            task.cancel()
        waiting, self._waiting = self._waiting, {}
        for items in waiting.values():
            for append, _ in items:
                append.refuse(code)
