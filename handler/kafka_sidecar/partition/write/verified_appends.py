"""Batches of transactions, which wait until the coordinator has said which transaction they belong to (KIP-890).

Of each producer the first batch of a transaction is asked about, and those behind it wait in their order. What is known
is good until the partition's log has the marker of that transaction. Before the first of all is sent, everybody can
know that the log has transactions.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple, Protocol

from kafka_sidecar.errors import SidecarError
from kafka_sidecar.loop.waiting import within
from kafka_sidecar.partition.fold.fold import NOTHING_WRITTEN, Fold
from kafka_sidecar.partition.fold.transactions import TransactionTable
from kafka_sidecar.partition.log.port import EntryLog
from kafka_sidecar.partition.write.append import Append, expire, pass_on
from kafka_sidecar.pulsar.entry import Position
from kafka_sidecar.telemetry import metrics
from kafka_sidecar.telemetry.limits import RateLimitedLog
from kafka_sidecar.wire.error_code import ErrorCode

limited = RateLimitedLog(logging.getLogger(__name__))

# Limit for the producers of a partition whose transaction is remembered. Each producer has one transaction at a time.
MAX_KNOWN: Final = 10_000

# Long enough to find a transaction coordinator that has just moved to another sidecar.
VERIFY_SECONDS: Final = 10.0


class Verification(NamedTuple):
    # Asks the coordinator for the number of the ongoing transaction; an error code where there is none.
    ask: Callable[[], Awaitable[int | ErrorCode]]
    # True where each transaction has its own epoch (KIP-890): then one verification holds for the whole epoch.
    # Otherwise it holds only while the producer has a batch in flight. The next batch may belong to a new transaction,
    # and this sidecar may not know that it has begun.
    once_an_epoch: bool


class _Known(NamedTuple):
    epoch: int
    number: int


class PartitionForVerified(Protocol):
    """The partition, as far as batches of transactions need it."""

    @property
    def no_transactions_up_to(self) -> Position | None:
        """Nobody had announced any there, or before, when the partition was opened."""
        ...

    async def opened(self) -> ErrorCode: ...
    def append(self, append: Append) -> None: ...
    def is_in_flight(self, producer_id: int) -> bool:
        """Whether a batch of this producer is on its way to the log."""
        ...


class VerifiedAppends:
    def __init__(
        self, log_: EntryLog, fold: Fold, transactions: TransactionTable, partition: PartitionForVerified
    ) -> None:
        self._log = log_
        self._fold = fold
        self._transactions = transactions
        self._partition = partition
        self._known: OrderedDict[int, _Known] = OrderedDict()  # verified transactions, by producer id
        # Batches whose transaction is being verified with the coordinator, by producer id.
        self._waiting: dict[int, list[tuple[Append, Verification]]] = {}
        self._tasks: dict[asyncio.Task[None], None] = {}  # in the order in which they were started
        self._is_announced = False

    def append(self, append: Append, verify: Verification) -> None:
        """A batch of a transaction. Its request gets the outcome, maybe before this returns."""
        waiting = self._waiting.get(append.producer_id)
        if waiting is not None:
            waiting.append((append, verify))
            return
        number = self._number_of(append, verify)
        if number is not None:
            append.transaction = number
            self._partition.append(append)
            return
        self._waiting[append.producer_id] = [(append, verify)]
        task = asyncio.create_task(self._ask(append.producer_id, append.epoch, verify))
        self._tasks[task] = None
        task.add_done_callback(self._tasks.pop)

    def _number_of(self, append: Append, verify: Verification) -> int | None:
        known = self._known.get(append.producer_id)
        if (
            known is None
            or known.epoch != append.epoch
            or self._transactions.has_ended(append.producer_id, known.number)
        ):
            return None
        return known.number if verify.once_an_epoch or self._partition.is_in_flight(append.producer_id) else None

    async def _ask(self, producer_id: int, epoch: int, verify: Verification) -> None:
        try:
            answer: int | ErrorCode = await self._partition.opened()
            if answer is ErrorCode.NONE:
                await self._announce()
                answer = await within(VERIFY_SECONDS, verify.ask())
        except (SidecarError, TimeoutError) as error:
            limited.info(
                "a batch of a transaction has to be sent again: %s", str(error) or "its coordinator gave no answer"
            )
            answer = ErrorCode.NOT_ENOUGH_REPLICAS
        except Exception:
            metrics.INTERNAL_ERRORS.labels("verification").inc()
            limited.exception("a batch of a transaction could not be verified")
            answer = ErrorCode.NOT_ENOUGH_REPLICAS
        waiting = self._waiting.pop(producer_id, [])
        if isinstance(answer, ErrorCode):
            self._refuse(waiting, epoch, answer)
            return
        self._known[producer_id] = _Known(epoch, answer)
        self._known.move_to_end(producer_id)
        if len(self._known) > MAX_KNOWN:
            self._known.popitem(last=False)
        pass_on(waiting, lambda append, verify: self._go_on(append, verify, epoch, answer))

    def _refuse(self, waiting: list[tuple[Append, Verification]], epoch: int, answer: ErrorCode) -> None:
        """The coordinator was asked about this epoch. For a producer that has begun again meanwhile it is asked
        again.
        """
        for append, verify in waiting:
            if append.epoch == epoch:
                append.refuse(answer)
            else:
                self.append(append, verify)

    def _go_on(self, append: Append, verify: Verification, epoch: int, number: int) -> None:
        if append.epoch == epoch and append.producer_id not in self._waiting:
            append.transaction = number
            self._partition.append(append)
        else:  # the producer has begun a new epoch meanwhile
            self.append(append, verify)

    async def _announce(self) -> None:
        if not self._is_announced:
            behind = self._fold.reached or NOTHING_WRITTEN
            await self._log.begin_transactions(behind)
            self._is_announced = True
            # Another sidecar may have announced an earlier start of transactions meanwhile.
            if self._transactions.known_from is None:
                self._transactions.known_from = min(behind, self._partition.no_transactions_up_to or behind)

    def tick(self, now: float) -> None:
        """Once a second: what has waited too long is refused."""
        for waiting in list(self._waiting.values()):
            kept, _ = expire([append for append, _ in waiting], now)
            del waiting[len(kept) :]  # all appends are of one producer, so expire() keeps the first ones

    def refuse_of(self, producer_id: int, error: ErrorCode) -> None:
        """Refuse what a producer sent behind a batch that is refused for a moment. The coordinator is still asked, for
        what is next.
        """
        behind = self._waiting.get(producer_id, [])
        refused = behind.copy()
        behind.clear()
        for append, _ in refused:
            append.refuse(error)

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
