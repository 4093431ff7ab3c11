"""The table of a partition's transactions against a plain list of what happened."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st

from handler.partition.fold.transactions import ENDED_BYTES, MAX_ENDED, AbortedTransaction, TransactionTable
from handler.partition.log.basis import NO_TRANSACTION

# Of a few producers: a batch or a marker, of the present transaction or of one some numbers before.
Step = tuple[int, str, int]
_steps = st.lists(
    st.tuples(st.integers(1, 3), st.sampled_from(("batch", "commit", "abort")), st.sampled_from((0, 0, 0, 1, 2))), max_size=60
)


@dataclass
class Model:
    """What a reader of the whole log would say, the slow way."""

    number: dict[int, int] = field(default_factory=dict)
    ended: dict[int, int] = field(default_factory=dict)
    begun: dict[int, int] = field(default_factory=dict)
    aborted: list[tuple[int, int, int]] = field(default_factory=list)  # producer, first offset, offset of the marker

    def stable(self, end: int) -> int:
        return min(self.begun.values(), default=end)


def play(steps: list[Step]) -> tuple[TransactionTable, Model]:
    table, model = TransactionTable(), Model(ended=dict.fromkeys((1, 2, 3), 3))
    table.ended.update(model.ended)
    stable = 0
    for offset, (producer, what, late) in enumerate(steps):
        number = model.ended[producer] + 1 - late
        is_late = late > 0
        if what == "batch":
            assert table.append(producer, number, offset) is not is_late
            if not is_late:
                model.begun.setdefault(producer, offset)
        else:
            assert table.end(producer, number, what == "commit", offset) is not is_late
            if not is_late:
                first = model.begun.pop(producer, None)
                model.ended[producer] = number
                if first is not None and what == "abort":
                    model.aborted.append((producer, first, offset))
        assert (offset in table.hidden) is is_late
        assert table.last_stable_offset(offset + 1) == model.stable(offset + 1) >= stable
        stable = model.stable(offset + 1)
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
    wanted = {AbortedTransaction(producer, first) for producer, first, last in model.aborted if last >= begin and first < end}
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
    assert table.append(1, NO_TRANSACTION, 0)
    assert table.last_stable_offset(5) == 0
    assert table.end(1, NO_TRANSACTION, False, 5)
    assert table.append(1, NO_TRANSACTION, 6)
    assert table.aborted_between(0, 6) == [AbortedTransaction(1, 0)]
    assert not table.hidden


def test_a_marker_of_an_earlier_transaction_ends_none() -> None:
    table = TransactionTable()
    table.append(1, 5, 0)
    assert not table.end(1, 4, False, 1)
    assert table.last_stable_offset(2) == 0
    assert table.end(1, 5, True, 2)
    assert table.last_stable_offset(3) == 3
    assert not table.end(1, 5, False, 3)
    assert table.aborted_count == 0


def test_what_is_remembered_of_producers_is_counted() -> None:
    table = TransactionTable()
    before = table.size
    for producer_id in range(MAX_ENDED + 10):
        table.append(producer_id, 1, producer_id)
        table.end(producer_id, 1, True, MAX_ENDED + 10 + producer_id)
    assert table.size - before == ENDED_BYTES * MAX_ENDED
