"""The table of a partition's transactions against a plain list of what happened."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from kafka_sidecar.partition.fold.left_open import LeftOpen
from kafka_sidecar.partition.fold.transactions import (
    ENDED_BYTES,
    MAX_ENDED,
    AbortedTransaction,
    BatchIs,
    MarkerIs,
    TransactionTable,
)
from kafka_sidecar.partition.log.basis import NO_TRANSACTION

# Of a few producers: a batch or a marker, of the present transaction, of one some numbers before, or of the next one.
Step = tuple[int, str, int]
_steps = st.lists(
    st.tuples(
        st.integers(1, 3), st.sampled_from(("batch", "commit", "abort")), st.sampled_from((0, 0, 0, 0, -1, 1, 2))
    ),
    max_size=60,
)


@dataclass
class Transaction:
    batches: list[int] = field(default_factory=list)  # their offsets
    has_ended: bool = False


@dataclass
class Model:
    """What a reader of the whole log would say, the slow way."""

    transactions: dict[tuple[int, int], Transaction] = field(default_factory=dict)  # by producer and number
    aborted: list[tuple[int, int, int]] = field(default_factory=list)  # producer, first offset, offset of the marker
    undone: set[int] = field(default_factory=set)  # offsets of batches
    hidden: set[int] = field(default_factory=set)

    def stable(self, end: int) -> int:
        return min((one.batches[0] for one in self.transactions.values() if not one.has_ended), default=end)

    def present(self, producer: int) -> int:
        """The number of the transaction that its producer has open, or begins next."""
        last, transaction = max(
            ((number, one) for (of, number), one in self.transactions.items() if of == producer), default=(3, None)
        )
        return last + 1 if transaction is None or transaction.has_ended else last

    def batch(self, producer: int, number: int, offset: int) -> BatchIs:
        if self._is_behind_later(producer, number) or self._has_ended(producer, number):
            self.hidden.add(offset)
            return BatchIs.LATE
        self.transactions.setdefault((producer, number), Transaction()).batches.append(offset)
        return BatchIs.GOOD

    def marker(self, producer: int, number: int, is_committed: bool, offset: int) -> MarkerIs:
        is_behind_later = self._is_behind_later(producer, number)
        transaction = self.transactions.setdefault(
            (producer, number), Transaction(has_ended=is_behind_later or number <= 3)
        )
        if transaction.has_ended:
            self.hidden.add(offset)
            return MarkerIs.LATE
        transaction.has_ended = True
        if is_behind_later:
            self.hidden.add(offset)
            self.undone.update(() if is_committed else transaction.batches)
            return MarkerIs.FOR_ONE_LEFT_OPEN
        if transaction.batches and not is_committed:
            self.aborted.append((producer, transaction.batches[0], offset))
        return MarkerIs.GOOD

    def _is_behind_later(self, producer: int, number: int) -> bool:
        return any(of == producer and other > number for of, other in self.transactions)

    def _has_ended(self, producer: int, number: int) -> bool:
        return number <= 3 or (
            (producer, number) in self.transactions and self.transactions[producer, number].has_ended
        )


def play(steps: list[Step]) -> tuple[TransactionTable, Model]:
    """All producers had ended their third transaction."""
    table, model = TransactionTable(), Model()
    table.ended.update(dict.fromkeys((1, 2, 3), 3))
    stable = 0
    for offset, (producer, what, late) in enumerate(steps):
        number = model.present(producer) - late
        if what == "batch":
            assert table.append(producer, number, offset) is model.batch(producer, number, offset)
        else:
            assert table.end(producer, number, what == "commit", offset) is model.marker(
                producer, number, what == "commit", offset
            )
        assert table.hidden == model.hidden
        assert table.last_stable_offset(offset + 1) == model.stable(offset + 1) >= stable
        stable = model.stable(offset + 1)
    for (producer, _), transaction in model.transactions.items():
        for offset in transaction.batches:
            assert table.is_undone(producer, offset) is (offset in model.undone)
    return table, model


@given(_steps)
def test_the_last_stable_offset_never_goes_back_and_late_ones_change_nothing(steps: list[Step]) -> None:
    play(steps)


@given(_steps, st.integers(0, 60), st.integers(0, 60))
def test_a_consumer_hears_of_every_aborted_transaction_that_it_reads(steps: list[Step], one: int, other: int) -> None:
    table, model = play(steps)
    begin, end = sorted((one, other))
    stable = model.stable(len(steps))
    end = min(end, stable)
    wanted = {
        AbortedTransaction(producer, first) for producer, first, last in model.aborted if last >= begin and first < end
    }
    assert set(table.aborted_between(begin, end)) == wanted


@given(_steps, st.integers(0, 60), st.integers(0, 60))
def test_what_is_behind_the_log_start_stays(steps: list[Step], one: int, other: int) -> None:
    table, model = play(steps)
    gone_before, log_start = sorted((one, other))  # clients may move the start further than retention has come
    hidden = set(table.hidden)
    table.drop_before(log_start, gone_before)
    assert table.aborted_count == sum(1 for _, _, last in model.aborted if last >= log_start)
    assert table.hidden == {offset for offset in hidden if offset >= gone_before}
    wanted = {AbortedTransaction(producer, first) for producer, first, last in model.aborted if last >= log_start}
    assert set(table.aborted_between(log_start, len(steps))) == wanted


def test_what_others_wrote_without_numbers_is_believed() -> None:
    table = TransactionTable()
    assert table.append(1, NO_TRANSACTION, 0) is BatchIs.GOOD
    assert table.last_stable_offset(5) == 0
    assert table.end(1, NO_TRANSACTION, False, 5) is MarkerIs.GOOD
    assert table.append(1, NO_TRANSACTION, 6) is BatchIs.GOOD
    assert table.aborted_between(0, 6) == [AbortedTransaction(1, 0)]
    assert not table.hidden


def test_a_marker_of_an_earlier_transaction_ends_none() -> None:
    table = TransactionTable()
    table.append(1, 5, 0)
    assert table.end(1, 4, False, 1) is MarkerIs.LATE
    assert table.last_stable_offset(2) == 0
    assert table.end(1, 5, True, 2) is MarkerIs.GOOD
    assert table.last_stable_offset(3) == 3
    assert table.end(1, 5, False, 3) is MarkerIs.LATE
    assert table.aborted_count == 0


def test_one_left_open_ends_by_its_own_marker_alone() -> None:
    table = TransactionTable()
    table.append(1, 5, 0)
    table.append(1, 6, 1)
    assert table.end(1, 6, True, 2) is MarkerIs.GOOD
    assert (list(table.left_open), table.last_stable_offset(3)) == ([LeftOpen(1, 5, 0, 1)], 0)
    assert table.first_undecided(1) == (5, 0)
    assert table.end(1, 5, False, 3) is MarkerIs.FOR_ONE_LEFT_OPEN
    assert (table.last_stable_offset(4), table.aborted_between(0, 4)) == (4, [])
    assert [table.is_undone(1, offset) for offset in (0, 1)] == [True, False], "the sixth is committed"


def test_a_marker_of_a_later_one_without_a_batch_leaves_one_open() -> None:
    table = TransactionTable()
    table.append(1, 5, 0)
    assert table.end(1, 6, False, 1) is MarkerIs.GOOD
    assert (list(table.left_open), table.aborted_count) == ([LeftOpen(1, 5, 0, 1)], 0)


def test_one_that_has_ended_unseen_is_hidden_with_all_that_comes_later() -> None:
    table = TransactionTable()
    table.append(1, 5, 0)
    assert table.hide_late(1, 5, 3)
    assert (table.last_stable_offset(3), table.is_undone(1, 0)) == (3, True)
    assert table.append(1, 5, 3) is BatchIs.LATE
    assert table.append(1, 6, 4) is BatchIs.GOOD
    assert not table.hide_late(1, 7, 5), "it is not there"


def test_what_is_remembered_of_producers_is_counted() -> None:
    table = TransactionTable()
    before = table.size
    for producer_id in range(MAX_ENDED + 10):
        table.append(producer_id, 1, producer_id)
        table.end(producer_id, 1, True, MAX_ENDED + 10 + producer_id)
    assert table.size - before == ENDED_BYTES * MAX_ENDED


def test_what_a_sidecar_has_hidden_that_has_come_less_far_is_hidden_up_to_here() -> None:
    elsewhere, table = TransactionTable(), TransactionTable()
    for one in (elsewhere, table):
        one.append(1, 5, 0)
    assert elsewhere.hide_late(1, 5, 1)
    table.append(1, 5, 1)  # it lands later still
    assert table.hide_what_is_hidden(elsewhere, 2)
    assert [table.is_undone(1, offset) for offset in (0, 1)] == [True, True]
    assert table.last_stable_offset(2) == 2
    assert not table.hide_what_is_hidden(elsewhere, 2), "it is known"


def test_another_transaction_is_not_hidden_for_one_of_another_log() -> None:
    elsewhere, table = TransactionTable(), TransactionTable()
    elsewhere.append(1, 5, 0)
    assert elsewhere.hide_late(1, 5, 1)
    table.append(1, 6, 0)
    assert not table.hide_what_is_hidden(elsewhere, 1)
    assert table.first_undecided(1) == (6, 0)
