"""The ends of the last entries are there to be compared, in little memory."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kafka_sidecar.partition.fold.recent_ends import MOST, RecentEnds
from kafka_sidecar.pulsar.entry import Position


@given(st.integers(0, 5), st.integers(1, 3 * MOST), st.integers(0, 2**40))
def test_the_last_entries_of_a_run_are_remembered(first: int, count: int, offset: int) -> None:
    ends = RecentEnds()
    for number in range(count):
        ends.add(Position(7, first + number), offset + 3 * number)
    known = [ends.next_offset(Position(7, first + number)) for number in range(count)]
    at_least = min(count, MOST // 2)
    assert known[-at_least:] == [offset + 3 * number for number in range(count - at_least, count)]
    assert all(end in (None, offset + 3 * number) for number, end in enumerate(known))
    assert sum(end is not None for end in known) <= MOST


def test_what_is_not_of_the_run_is_not_known() -> None:
    ends = RecentEnds()
    assert ends.next_offset(Position(0, 0)) is None
    ends.add(Position(7, 2), 5)
    for other in (Position(7, 1), Position(7, 3), Position(8, 2)):
        assert ends.next_offset(other) is None


def test_a_run_begins_with_another_ledger_and_behind_an_entry_that_no_reader_is_given() -> None:
    ends = RecentEnds()
    for position, end in (
        (Position(7, 0), 1),
        (Position(7, 1), 2),
        (Position(7, 3), 4),
        (Position(7, 4), 5),
        (Position(8, 5), 6),
    ):
        ends.add(position, end)
        assert ends.next_offset(position) == end
    assert [ends.next_offset(Position(7, entry)) for entry in range(5)] == [None] * 5
