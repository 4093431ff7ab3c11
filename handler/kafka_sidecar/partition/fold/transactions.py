"""Transactions of one partition: which are open, which were aborted and where, and what came too late. Pure.

Each transaction of a producer has a number, greater than those before it, that its batches and its marker carry. What
comes behind its marker is known by it, by any writer and however late. What others than sidecars wrote has none: it is
believed.

A producer has one open transaction. If the next one begins in this log, and no marker has ended the one before, that
one is left open: its marker went to another log, or was never written (docs/adr/0028-names-of-two-namespaces.md). It
ends by its own marker alone.
"""

from __future__ import annotations

import bisect
from array import array
from collections import OrderedDict
from collections.abc import Mapping
from copy import copy
from enum import Enum
from typing import Final, NamedTuple, Protocol

from kafka_sidecar.partition.fold.left_open import ByProducer, LeftOpen, Undone
from kafka_sidecar.partition.log.basis import NO_TRANSACTION
from kafka_sidecar.pulsar.entry import Position

# The number of producers whose last ended transaction is remembered; the one that ended longest ago is dropped.
MAX_ENDED: Final = 10_000
ENDED_BYTES: Final = 150
ABORTED_BYTES: Final = 32
HIDDEN_BYTES: Final = 100
LEFT_BYTES: Final = 250


class OpenTransaction(NamedTuple):
    number: int
    first_offset: int


class AbortedTransaction(NamedTuple):
    producer_id: int
    first_offset: int


class BatchIs(Enum):
    """What a batch of a transaction is for its partition."""

    GOOD = "good"
    # The batch counted when it came. Its transaction was aborted later, so the batch is hidden (see `Undone`), but
    # later batches of its producer still count.
    UNDONE = "undone"
    LATE = "late"  # the batch came behind its transaction's marker, so it is hidden


class MarkerIs(Enum):
    """What a marker is for its partition."""

    GOOD = "good"
    # Hidden: consumers would take this marker for the end of the producer's next transaction.
    FOR_ONE_LEFT_OPEN = "for one left open"
    # Hidden: the transaction has already ended, and consumers would take this marker for the end of the next one.
    LATE = "late"


class TransactionVerdicts(Protocol):
    """What a fold asks about a batch or a marker: whether anybody may see it."""

    def append(self, producer_id: int, number: int, offset: int) -> BatchIs: ...
    def end(self, producer_id: int, number: int, committed: bool, offset: int) -> MarkerIs: ...
    def note_copy(self, producer_id: int, number: int, offset: int) -> None:
        """At `offset` stands another copy of a batch, or of a marker, that counts already."""
        ...

    def is_open(self, producer_id: int) -> bool: ...


class KnownVerdicts(TransactionVerdicts):
    """For a fold that began in the middle: another has been there, and says what it has hidden."""

    __slots__ = ("_table",)

    def __init__(self, table: TransactionTable) -> None:
        self._table = table

    def append(self, producer_id: int, number: int, offset: int) -> BatchIs:
        if offset in self._table.hidden:
            return BatchIs.LATE
        return BatchIs.UNDONE if self._table.is_undone(producer_id, offset) else BatchIs.GOOD

    def end(self, producer_id: int, number: int, committed: bool, offset: int) -> MarkerIs:
        return MarkerIs.LATE if offset in self._table.hidden else MarkerIs.GOOD

    def note_copy(self, producer_id: int, number: int, offset: int) -> None: ...

    def is_open(self, producer_id: int) -> bool:
        return producer_id in self._table.open


class TransactionTable(TransactionVerdicts):
    __slots__ = (
        "aborted_first",
        "aborted_last",
        "aborted_producers",
        "aborted_stable",
        "ended",
        "hidden",
        "known_from",
        "left_open",
        "open",
        "to_recall",
        "undone",
    )

    def __init__(self) -> None:
        # All transactions behind this entry are known; None: nobody has announced that the log has transactions.
        self.known_from: Position | None = None
        self.open: dict[int, OpenTransaction] = {}  # by producer id, in the order in which the transactions began
        self.left_open = ByProducer[LeftOpen]()
        self.undone = ByProducer[Undone]()
        # By producer id: the highest transaction number that has ended. All lower numbers have ended too, except those
        # in `left_open`.
        self.ended: OrderedDict[int, int] = OrderedDict()
        # Tables of folds that have seen a part of the log which is gone now. Each counts once this table has come to
        # its offset.
        self.to_recall: list[tuple[int, TransactionTable]] = []
        self.hidden: set[int] = (
            set()
        )  # the base offsets of batches and markers that came behind their transaction's marker
        # The aborted transactions, in the order of their markers: producer id, first offset, offset of the marker, and
        # the last stable offset at that marker.
        self.aborted_producers = array("q")
        self.aborted_first = array("q")
        self.aborted_last = array("q")
        self.aborted_stable = array("q")

    def take(self, other: TransactionTable) -> None:
        """Know what another knows."""
        for name in TransactionTable.__slots__:
            setattr(self, name, getattr(other, name))

    def copy(self) -> TransactionTable:
        """What it knows now."""
        copied = TransactionTable()
        for name in TransactionTable.__slots__:
            setattr(copied, name, copy(getattr(self, name)))
        return copied

    @property
    def aborted_count(self) -> int:
        return len(self.aborted_last)

    @property
    def size(self) -> int:
        """About how many bytes it takes, for what grows with the log and with its producers."""
        left = LEFT_BYTES * (len(self.left_open) + len(self.undone))
        return (
            ABORTED_BYTES * self.aborted_count + HIDDEN_BYTES * len(self.hidden) + ENDED_BYTES * len(self.ended) + left
        )

    def is_open(self, producer_id: int) -> bool:
        return producer_id in self.open

    @property
    def undecided(self) -> list[tuple[int, OpenTransaction]]:
        """All transactions that no marker has ended, with their producers: of one producer the earlier ones first."""
        left_open = [(left.producer_id, OpenTransaction(left.number, left.first_offset)) for left in self.left_open]
        return [*left_open, *self.open.items()]

    def first_undecided(self, producer_id: int) -> OpenTransaction | None:
        """The first of a producer's transactions that no marker has ended."""
        for left in self.left_open.of(producer_id):
            return OpenTransaction(left.number, left.first_offset)
        return self.open.get(producer_id)

    def is_undone(self, producer_id: int, offset: int) -> bool:
        """Whether the batch of a transaction at this offset is."""
        one = self.undone.at(producer_id, offset)
        return one is not None and offset < one.behind

    def last_stable_offset(self, next_offset: int) -> int:
        """Up to where every transaction is decided."""
        first = next((transaction.first_offset for transaction in self.open.values()), next_offset)
        return min(first, self.left_open.first_offset()) if self.left_open else first

    def has_ended(self, producer_id: int, number: int) -> bool:
        """Whether a batch of this transaction comes too late. Changes nothing."""
        if number == NO_TRANSACTION:
            return False
        transaction = self.open.get(producer_id)
        return number <= self.ended.get(producer_id, NO_TRANSACTION) or (
            transaction is not None and number < transaction.number
        )

    def append(self, producer_id: int, number: int, offset: int) -> BatchIs:
        """A batch is in the log at `offset`."""
        self.recall_up_to(offset)
        if self.has_ended(producer_id, number):
            self.hidden.add(offset)
            return BatchIs.LATE
        transaction = self.open.get(producer_id)
        if transaction is None:
            self.open[producer_id] = OpenTransaction(number, offset)
        elif transaction.number == NO_TRANSACTION:
            self.open[producer_id] = transaction._replace(number=number)
        elif transaction.number < number:
            self._leave_open(producer_id, offset)
            self.open[producer_id] = OpenTransaction(number, offset)
        return BatchIs.GOOD

    def _leave_open(self, producer_id: int, behind: int) -> None:
        transaction = self.open.pop(producer_id)
        self.left_open.add(LeftOpen(producer_id, transaction.number, transaction.first_offset, behind))

    def note_copy(self, producer_id: int, number: int, offset: int) -> None:
        """It opens and ends nothing. Behind its transaction's marker it is hidden, also from readers that have not seen
        the first copy.
        """
        self.recall_up_to(offset)
        if self.has_ended(producer_id, number):
            self.hidden.add(offset)

    def end(self, producer_id: int, number: int, committed: bool, offset: int) -> MarkerIs:
        """A marker is in the log at `offset`."""
        self.recall_up_to(offset)
        if self._end_left_open(producer_id, number, committed):
            self.hidden.add(offset)
            return MarkerIs.FOR_ONE_LEFT_OPEN
        if self.has_ended(producer_id, number):
            self.hidden.add(offset)
            return MarkerIs.LATE
        before = self.open.get(producer_id)
        if before is not None and NO_TRANSACTION != before.number < number:
            # The marker ends a later transaction of the producer, which has no batch in this partition.
            self._leave_open(producer_id, offset)
        transaction = self.open.pop(producer_id, None)
        if transaction is not None and not committed:
            self.aborted_producers.append(producer_id)
            self.aborted_first.append(transaction.first_offset)
            self.aborted_last.append(offset)
            self.aborted_stable.append(self.last_stable_offset(offset + 1))
        if number != NO_TRANSACTION:
            self._note_ended(producer_id, number)
        return MarkerIs.GOOD

    def _end_left_open(self, producer_id: int, number: int, committed: bool) -> bool:
        """False where it was not left open."""
        left = self.left_open.at(producer_id, number)
        if left is None or left.number != number:
            return False
        self.left_open.remove(left)
        if not committed:
            self.undone.add(Undone(producer_id, left.first_offset, left.behind))
        return True

    def hide_late(self, producer_id: int, number: int, next_offset: int) -> bool:
        """The marker of this transaction stood before its batches that are here: they came too late. False where a
        marker came behind them meanwhile.
        """
        transaction = self.open.get(producer_id)
        if transaction is not None and transaction.number == number:
            self._leave_open(producer_id, next_offset)
        self.recall_ended({producer_id: number})
        return self._end_left_open(producer_id, number, committed=False)

    def hide_what_is_hidden(self, elsewhere: TransactionTable, next_offset: int) -> bool:
        """Hide what another sidecar has hidden, up to the offset to which this one has come. False where nothing of it
        is new.
        """
        numbers = {(producer_id, one.first_offset): one.number for producer_id, one in self.undecided}
        hidden = []
        for one in elsewhere.undone:
            number = numbers.get((one.producer_id, one.first_offset), NO_TRANSACTION)
            if NO_TRANSACTION != number <= elsewhere.ended.get(one.producer_id, NO_TRANSACTION):
                hidden.append(self.hide_late(one.producer_id, number, next_offset))
        return any(hidden)

    def recall_ended(self, ended: Mapping[int, int]) -> None:
        """Of a part of the log that is gone: batches of these transactions come too late from now on."""
        for producer_id, number in ended.items():
            if number > self.ended.get(producer_id, NO_TRANSACTION):
                self._note_ended(producer_id, number)

    def recall_at(self, offset: int, earlier: TransactionTable) -> None:
        """The same of a table that has seen that part, and had come to `offset`. It counts when this one has come there
        too: before that, some transactions that it calls ended have batches that are still to be folded.
        """
        self.to_recall.append((offset, earlier))

    def recall_up_to(self, offset: int) -> None:
        """The log has come to there."""
        if self.to_recall:
            earlier = [table for at, table in self.to_recall if at <= offset]
            self.to_recall = [one for one in self.to_recall if one[0] > offset]
            for table in earlier:
                self._recall(table)

    def _recall(self, earlier: TransactionTable) -> None:
        self.recall_ended(earlier.ended)
        still_left = {(left.producer_id, left.number) for left in earlier.left_open}
        for producer_id, transaction in list(self.open.items()):
            has_ended = NO_TRANSACTION != transaction.number <= self.ended.get(producer_id, NO_TRANSACTION)
            if has_ended and (producer_id, transaction.number) not in still_left:
                del self.open[producer_id]  # the transaction had already ended: its batches came behind its marker
        ended = earlier.ended
        self.left_open = self.left_open.that(
            lambda left: (
                left.number > ended.get(left.producer_id, NO_TRANSACTION)
                or (left.producer_id, left.number) in still_left
            )
        )
        self.hidden |= earlier.hidden
        known = set(self.undone)
        for one in earlier.undone:
            if one not in known:
                self.undone.add(one)

    def _note_ended(self, producer_id: int, number: int) -> None:
        self.ended[producer_id] = number
        self.ended.move_to_end(producer_id)
        if len(self.ended) > MAX_ENDED:
            self.ended.popitem(last=False)

    def aborted_between(self, begin: int, end: int) -> list[AbortedTransaction]:
        """Those that a consumer which reads these offsets has to know, as Kafka finds them
        (TransactionIndex.collectAbortedTxns).
        """
        found = []
        for number in range(bisect.bisect_left(self.aborted_last, begin), len(self.aborted_last)):
            if self.aborted_first[number] < end:
                found.append(AbortedTransaction(self.aborted_producers[number], self.aborted_first[number]))
            # Transactions that were aborted later begin at or behind this last stable offset.
            if self.aborted_stable[number] >= end:
                break
        return found

    def drop_before(self, log_start: int, gone_before: int) -> None:
        """Forget what no consumer needs any more, and what nobody reads any more (see `LogStart.gone_before`)."""
        gone = bisect.bisect_left(self.aborted_last, log_start)
        for column in (self.aborted_producers, self.aborted_first, self.aborted_last, self.aborted_stable):
            del column[:gone]
        if self.hidden:
            self.hidden = {offset for offset in self.hidden if offset >= gone_before}
        if self.left_open or self.undone:
            self.left_open = self.left_open.that(lambda left: left.behind > gone_before)
            self.undone = self.undone.that(lambda one: one.behind > gone_before)
