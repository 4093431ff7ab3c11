"""Places of records that have no offset."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_sidecar.partition.log.packed_offsets import BATCH_BITS, ENTRY_BITS, Undecided
from kafka_sidecar.pipelines.copying.offset_runs import Copied, NotReached, Place, Run, Translation
from kafka_sidecar.pipelines.copying.places import RecordPlace, number_of, number_of_packed, record_place, shown
from kafka_sidecar.pulsar.entry import Position

PLACES = st.builds(
    RecordPlace, st.builds(Position, st.integers(0, 2**62), st.integers(0, 2**32 - 1)), st.integers(0, 2**32 - 1)
)


@given(PLACES, PLACES)
def test_numbers_are_ordered_as_the_log_is_and_stand_before_all_offsets(one: RecordPlace, other: RecordPlace) -> None:
    assert record_place(number_of(*one)) == one
    assert (number_of(*one) < number_of(*other)) == (one < other)
    assert number_of(*one) < 0


def test_people_see_places_and_offsets() -> None:
    assert [shown(number_of(Position(7, 3), 2)), shown(0), shown(12)] == ["7:3:2", "0", "12"]


def packed(ledger: int, entry: int, in_entry: int) -> int:
    return (ledger % 2**20) << (ENTRY_BITS + BATCH_BITS) | entry << BATCH_BITS | in_entry


def entries(ledger: int, count: int, records: int, target: int) -> list[Run]:
    return [Run(number_of(Position(ledger, entry)), target + entry * records, records) for entry in range(count)]


# Ledger 5 has 10 entries of 3 records, ledger 9 has 4 of one; behind them offsets begin.
COPIED = Translation(
    [Copied(0, 34, tuple(entries(5, 10, 3, 0) + entries(9, 4, 1, 30))), Copied(100, 134, (Run(0, 34, 100),))]
)


@pytest.mark.parametrize(
    ("committed", "target"),
    [
        (packed(5, 0, 0), 0),
        (packed(5, 4, 1), 13),
        (packed(5, 4, 3), 15),
        (packed(5, 10, 0), 30),
        (packed(9, 3, 0), 33),
        (packed(9, 3, 1), 34),
        (7, 41),
        (packed(3, 8, 0), 0),
    ],
)
def test_what_a_group_has_committed_is_found(committed: int, target: int) -> None:
    assert COPIED.place_of(number_of_packed(committed, COPIED.runs)).target == target


def test_a_ledger_that_was_not_copied_is_not_guessed() -> None:
    with pytest.raises(Undecided, match="no ledger of the log"):
        number_of_packed(packed(7, 0, 0), COPIED.runs)
    with pytest.raises(Undecided, match="only 20 bits"):
        number_of_packed(packed(5, 0, 0), [*entries(5, 1, 1, 0), *entries(5 + 2**20, 1, 1, 1)])


def test_where_the_source_itself_had_such_offsets_they_are_offsets() -> None:
    assert number_of_packed(packed(5, 0, 0), [Run(packed(5, 0, 0), 0, 10)]) == packed(5, 0, 0)


def test_each_transaction_of_a_head_counts() -> None:
    """Also while it is not copied to its end."""
    runs = entries(5, 30, 2, 0)
    records = [Copied(number_of(Position(5, end)), 2 * end, tuple(runs[end - 10 : end])) for end in (10, 20, 30)]
    for copied in (Translation(records), Translation([*records, Copied(0, 60, ())])):
        found = [copied.place_of(number_of_packed(packed(5, entry, 1), copied.runs)).target for entry in (0, 4, 15, 29)]
        assert found == [1, 9, 31, 59]
    with pytest.raises(NotReached):
        Translation(records).place_of(0)


def test_ledgers_of_one_record_each_are_found_though_their_runs_are_one() -> None:
    runs = Translation(
        [Copied(0, 3, tuple(Run(number_of(Position(ledger, 0)), ledger - 4, 1) for ledger in (4, 5, 6)))]
    )
    assert len(runs.runs) == 1
    assert [runs.place_of(number_of_packed(packed(ledger, 0, 0), runs.runs)).target for ledger in (4, 5, 6)] == [
        0,
        1,
        2,
    ]
    assert runs.place_of(number_of_packed(packed(6, 0, 1), runs.runs)) == Place(3, None)
