"""What is found by its producer, against a plain list."""

from __future__ import annotations

from copy import copy

from hypothesis import given
from hypothesis import strategies as st

from kafka_sidecar.partition.fold.left_open import ByProducer, Undone

_undone = st.builds(
    lambda producer_id, first, length: Undone(producer_id, first, first + length),
    st.integers(1, 3),
    st.integers(0, 20),
    st.integers(1, 5),
)


@given(st.lists(_undone, max_size=20), st.data())
def test_it_knows_what_a_list_knows(those: list[Undone], data: st.DataObject) -> None:
    known = ByProducer(those)
    before = copy(known)
    for one in data.draw(st.permutations(those))[: len(those) // 2]:
        known.remove(one)
        those = those.copy()
        those.remove(one)
        assert len(known) == len(those)
        assert not those or known.first_offset() == min(one.first_offset for one in those)
    assert sorted(known) == sorted(those)
    assert sorted(known.that(lambda one: one.behind > 10)) == sorted(one for one in those if one.behind > 10)
    for producer_id in (1, 2, 3):
        of_producer = [one for one in those if one.producer_id == producer_id]
        assert list(known.of(producer_id)) == sorted(of_producer)
        for offset in range(25):
            begun = [one for one in of_producer if one.first_offset <= offset]
            last = max((one.first_offset for one in begun), default=None)
            longest = max((one for one in begun if one.first_offset == last), default=None)
            assert known.at(producer_id, offset) == longest
    assert len(before) >= len(known), "a copy is its own"


def test_those_that_come_and_go_behind_one_that_stays_leave_nothing() -> None:
    known = ByProducer([Undone(1, 0, 1)])
    for first in range(1, 10_000):
        known.add(Undone(2, first, first + 1))
        known.remove(Undone(2, first, first + 1))
    assert (known.first_offset(), len(known)) == (0, 1)
    assert len(known._first_offsets) + len(known._removed) < 1_000
    known.remove(Undone(1, 0, 1))
    known.add(Undone(3, 7, 8))
    assert known.first_offset() == 7
