"""Transactions that are open in the log although they have ended: their batches landed behind their markers.

A fold that has seen the marker hides such a batch. If retention has taken the marker, and no sidecar remembers it, the
batch opens its transaction once more. Nobody would end it, and consumers of read_committed would wait until retention
takes the batch, too. But the coordinator knows that the transaction has ended, and that its marker was in this log.

partition opens, or a minute passes ─▶ which transactions have long been open? ─▶ coordinators: which have ended?
                                              those still open are hidden ◀─ the log is read to its end ◀─┘
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, NamedTuple, Protocol

from kafka_sidecar.errors import SidecarError
from kafka_sidecar.loop.waiting import within
from kafka_sidecar.partition.fold.transactions import TransactionTable
from kafka_sidecar.partition.log.basis import NO_TRANSACTION
from kafka_sidecar.telemetry import metrics
from kafka_sidecar.telemetry.limits import RateLimitedLog

log = logging.getLogger(__name__)
limited = RateLimitedLog(log)

# Most transactions end within a minute (transaction.timeout.ms is 60 s by default), so only older ones are checked.
LOOK_SECONDS: Final = 60.0
ANSWER_SECONDS: Final = 10.0


class EndedTransactions(NamedTuple):
    """Of one producer: its transactions up to `number` have ended. From `marked_from` on their markers were written to
    the topics of the producer. With a sidecar of 0.2 in between, a marker may have gone to a topic of the same name in
    another namespace.
    """

    number: int
    marked_from: int

    def has_marked(self, number: int) -> bool:
        return self.marked_from <= number <= self.number


# Looks up the ended transactions of these producer ids at their coordinators. The result lacks producers that no
# coordinator knows. May raise SidecarError.
AskEnded = Callable[[Sequence[int]], Awaitable[Mapping[int, EndedTransactions]]]


class PartitionForLate(Protocol):
    """The partition, as far as this needs it."""

    async def confirmed_end(self) -> int: ...
    def on_late_hidden(self) -> None:
        """Batches that were served are hidden from now on."""
        ...


class LateTransactions:
    def __init__(
        self, name: str, transactions: TransactionTable, partition: PartitionForLate, ask: AskEnded | None
    ) -> None:
        self._name = name
        self._transactions = transactions
        self._partition = partition
        self._ask = ask
        self._seen: frozenset[tuple[int, int]] = (
            frozenset()
        )  # producer id and number of the transactions that were undecided at the last check
        self._look_at = 0.0
        self._looking: asyncio.Task[None] | None = None

    def begin(self, now: float) -> None:
        """The partition has opened: nobody knows how long its transactions have been open."""
        self._seen = self._undecided()
        self.tick(now)

    def tick(self, now: float) -> None:
        if now < self._look_at:
            return
        self._look_at = now + LOOK_SECONDS
        undecided = self._undecided()
        old = sorted(self._seen & undecided)
        self._seen = undecided
        if self._transactions.left_open:
            self._complain()
        if old and self._ask is not None and self._looking is None:
            self._looking = asyncio.create_task(self._look(old, self._ask))

    def _complain(self) -> None:
        left_open = self._transactions.left_open
        first = min(left_open, key=lambda left: left.first_offset)
        limited.warning(
            "partition %s: %d transactions have no marker, though their producers have gone on; the first is of "
            "producer %d, at offset %d. They hold back consumers of read_committed: end each with "
            "kafka-transactions.sh abort",
            self._name,
            len(left_open),
            first.producer_id,
            first.first_offset,
        )

    def stop(self) -> None:
        if self._looking is not None:
            self._looking.cancel()

    def _undecided(self) -> frozenset[tuple[int, int]]:
        """What others than sidecars wrote has no number, and no coordinator."""
        transactions = self._transactions
        if not transactions.open and not transactions.left_open:
            return frozenset()
        return frozenset(
            (producer_id, one.number) for producer_id, one in transactions.undecided if one.number != NO_TRANSACTION
        )

    async def _look(self, undecided: Sequence[tuple[int, int]], ask: AskEnded) -> None:
        try:
            await self._hide_late(undecided, ask)
        except (SidecarError, TimeoutError) as error:
            limited.info(
                "partition %s: which of its transactions have ended is asked again: %s",
                self._name,
                str(error) or "no answer",
            )
        except Exception:
            metrics.INTERNAL_ERRORS.labels("late_transactions").inc()
            limited.exception("partition %s: late transactions could not be looked for", self._name)
        finally:
            self._looking = None

    async def _hide_late(self, undecided: Sequence[tuple[int, int]], ask: AskEnded) -> None:
        ended = await within(ANSWER_SECONDS, ask([producer_id for producer_id, _ in undecided]))
        late = [one for one in undecided if one[0] in ended and ended[one[0]].has_marked(one[1])]
        if not late:
            return
        next_offset = await self._partition.confirmed_end()  # all markers written so far are folded when this returns
        hidden = [
            producer_id
            for producer_id, number in late
            if self._transactions.hide_late(producer_id, number, next_offset)
        ]
        if hidden:
            log.warning(
                "partition %s: batches that came behind the end of their transactions are hidden: producers %s",
                self._name,
                hidden,
            )
            self._partition.on_late_hidden()
