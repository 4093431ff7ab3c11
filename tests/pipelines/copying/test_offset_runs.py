"""Offset runs: what was copied where, and what a committed offset becomes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_sidecar.pipelines.copying.offset_runs import (
    Copied,
    NotReached,
    Place,
    Run,
    Translation,
    decode,
    decode_key,
    encode,
    encode_key,
    joined,
)


def test_runs_that_go_on_in_both_logs_are_one() -> None:
    assert joined([Run(0, 10, 5), Run(5, 15, 5), Run(10, 21, 1), Run(12, 22, 1)]) == (
        Run(0, 10, 10),
        Run(10, 21, 1, 2, 2),
    )


def test_runs_that_are_alike_are_one_that_is_repeated() -> None:
    transactions = [Run(11 * number, 10 * number, 10) for number in range(50)]
    assert (
        joined(transactions)
        == joined([*joined(transactions[:20]), *joined(transactions[20:])])
        == (Run(0, 0, 10, 50, 11),)
    )
    assert joined([*transactions, Run(551, 500, 3)]) == (Run(0, 0, 10, 50, 11), Run(551, 500, 3))
    translation = Translation([Copied(550, 500, joined(transactions))])
    assert translation.place_of(33) == Place(30, 33)
    assert translation.place_of(10) == Place(10, 11)  # a marker
    assert translation.place_of(549) == Place(500, None)


def test_an_offset_in_a_run_is_its_own_record() -> None:
    translation = Translation([Copied(10, 110, (Run(0, 100, 10),))])
    assert translation.place_of(7) == Place(107, 7)


def test_an_offset_between_runs_is_the_first_record_behind() -> None:
    translation = Translation([Copied(20, 121, (Run(0, 100, 10), Run(15, 116, 5)))])
    assert translation.place_of(12) == Place(116, 15)


def test_an_offset_before_all_runs_is_the_first_record() -> None:
    translation = Translation([Copied(60, 10, (Run(50, 0, 10),))])
    assert translation.place_of(3) == Place(0, 50)


def test_the_end_is_behind_the_last_record() -> None:
    translation = Translation([Copied(12, 110, (Run(0, 100, 10),))])  # 10 and 11 are markers
    assert translation.place_of(10) == translation.place_of(12) == Place(110, None)


def test_an_offset_that_is_not_copied_has_no_place() -> None:
    translation = Translation([Copied(10, 110, (Run(0, 100, 10),))])
    with pytest.raises(NotReached, match="up to source offset 10"):
        translation.place_of(11)
    with pytest.raises(NotReached):
        Translation([]).place_of(0)


def test_a_partition_without_records_has_an_end() -> None:
    assert Translation([Copied(40, 0, ())]).place_of(40) == Place(0, None)


def test_of_what_was_copied_again_the_last_copy_counts() -> None:
    translation = Translation(
        [
            Copied(10, 10, (Run(0, 0, 4), Run(6, 4, 4))),
            Copied(12, 20, (Run(3, 11, 9),)),
            Copied(7, 25, (Run(0, 20, 7),)),
        ]
    )
    assert [translation.place_of(offset).target for offset in (2, 3, 7, 11)] == [2, 11, 15, 19]
    assert translation.place_of(12) == Place(20, None)


def test_what_others_wrote_is_refused() -> None:
    for value in (b"{}", b"[]", b'{"format":1,"next":1,"end":1,"runs":[[1]]}'):
        with pytest.raises(ValueError, match="no offset runs"):
            decode(value)
    with pytest.raises(ValueError, match="a newer mirror"):
        decode(b'{"format":2}')


NUMBERS = st.integers(0, 2**62)
TEXT = st.text(max_size=5)
RUN = st.builds(Run, st.integers(-(2**127), 2**62), NUMBERS, NUMBERS, st.just(1), st.just(0))
REPEATED = st.builds(Run, NUMBERS, NUMBERS, NUMBERS, st.integers(2, 2**62), NUMBERS)
RUNS = st.lists(RUN | REPEATED, max_size=4).map(tuple)


@given(
    st.builds(
        Copied,
        NUMBERS,
        NUMBERS,
        RUNS,
        TEXT,
        TEXT,
        TEXT,
        TEXT,
        st.none() | st.tuples(NUMBERS, NUMBERS),
    ),
    st.text(),
    NUMBERS,
)
def test_what_is_written_is_read(copied: Copied, topic: str, partition: int) -> None:
    assert decode(encode(copied)) == copied
    assert decode_key(encode_key(topic, partition)) == (topic, partition)


@st.composite
def copies(draw: st.DrawFn) -> tuple[dict[int, int], list[Copied]]:
    """What was copied, record by record, and the same as transactions."""
    source = target = draw(st.integers(0, 5))
    pairs: dict[int, int] = {}
    records = []
    for _ in range(draw(st.integers(1, 5))):
        runs = []
        for _ in range(draw(st.integers(0, 4))):
            source += draw(st.integers(0, 2))
            target += draw(st.integers(0, 1))
            count = draw(st.integers(0, 4))
            runs.append(Run(source, target, count))
            pairs.update((source + one, target + one) for one in range(count))
            source, target = source + count, target + count
        end = max(pairs.values(), default=target - 1) + 1
        source += draw(st.integers(0, 2))
        records.append(Copied(source, end, joined(runs)))
        target = end + 1  # the marker
    return pairs, records


@given(st.lists(st.tuples(st.integers(1, 2), st.integers(0, 2)), max_size=12), st.integers(0, 50))
def test_what_is_before_an_offset_is_what_it_was(pieces: list[tuple[int, int]], offset: int) -> None:
    runs, source, target = [], 0, 0
    for length, gap in pieces:
        runs.append(Run(source, target, length))
        source, target = source + length + gap, target + length
    pairs = [(run.source + one, run.target + one) for run in runs for one in range(run.length)]
    left = [one for run in joined(runs) for one in run.before(offset)]
    assert [pair for run in left for pair in _pairs(run)] == [pair for pair in pairs if pair[0] < offset]


def _pairs(run: Run) -> list[tuple[int, int]]:
    return [
        (run.source + piece * run.stride + one, run.target + piece * run.length + one)
        for piece in range(run.times)
        for one in range(run.length)
    ]


@given(copies())
def test_each_offset_is_found_as_the_pairs_have_it(made: tuple[dict[int, int], list[Copied]]) -> None:
    pairs, records = made
    translation = Translation(records)
    for offset in range(records[-1].next_source + 1):
        behind = next((one for one in sorted(pairs) if one >= offset), None)
        expected = Place(records[-1].target_end, None) if behind is None else Place(pairs[behind], behind)
        assert translation.place_of(offset) == expected
