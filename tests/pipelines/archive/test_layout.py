"""What is where in an archive: names, offsets, and what the next batch takes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_sidecar.pipelines.archive.layout import (
    BatchRange,
    Contents,
    Ranges,
    SizedRange,
    batch_ranges,
    decode,
    encode,
    next_ranges,
    read_directory,
    remade,
    to_compact,
    united,
)

PARTITIONS = st.tuples(st.text(min_size=1, max_size=5), st.integers(0, 9))
OFFSETS = st.integers(0, 2**50)


@given(st.integers(0, 10**9), st.integers(0, 1_000))
def test_a_directory_says_which_batches_it_has(first: int, more: int) -> None:
    one = BatchRange(first, first + more)
    assert read_directory(one.directory) == one


def test_other_names_are_passed_over() -> None:
    assert batch_ranges(["_staging", "batch=1", "batch=0000000002", "batch=0000000000-0000000001", "x"]) == [
        BatchRange(0, 1),
        BatchRange(2, 2),
    ]


@given(
    st.dictionaries(PARTITIONS, st.tuples(OFFSETS, OFFSETS)), st.dictionaries(st.text(max_size=3), st.text(max_size=3))
)
def test_contents_are_read_as_they_were_written(ranges: Ranges, ids: dict[str, str]) -> None:
    assert decode(encode(Contents(ranges, ids))) == Contents(ranges, ids)


def test_a_topic_that_was_made_anew_is_not_gone_on_with() -> None:
    assert remade({"t": "1", "u": "2"}, {"t": "3", "u": "2", "new": "4"}) == ["t"]
    assert remade({"t": "1"}, {"t": ""}) == remade({}, {"t": "1"}) == []  # an id that is not known says nothing


@pytest.mark.parametrize("text", ["{}", "[]", '{"format":1,"offsets":{"t":[1]},"ids":{}}', '{"format":1,"offsets":{}}'])
def test_what_others_wrote_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no offsets of an archive"):
        decode(text)
    with pytest.raises(ValueError, match="a newer version"):
        decode('{"format":2}')


@given(st.dictionaries(PARTITIONS, st.tuples(st.integers(0, 50), st.integers(0, 200)), min_size=1), st.integers(1, 300))
def test_batches_take_each_offset_once(bounds: dict[tuple[str, int], tuple[int, int]], most: int) -> None:
    firsts = {at: first for at, (first, _) in bounds.items()}
    ends = {at: first + length for at, (first, length) in bounds.items()}
    taken: list[Ranges] = []
    while True:
        archived = united(Contents(one, {}) for one in taken).ranges
        batch, lost = next_ranges({at: end for at, (_, end) in archived.items()}, firsts, ends, most)
        assert not lost
        if not batch:
            break
        for at, (begin, end) in batch.items():
            assert begin == (archived[at][1] if at in archived else firsts[at])
            assert begin < end <= ends[at]
        assert sum(end - begin for begin, end in batch.values()) <= most + len(batch)
        taken.append(batch)
    assert united(Contents(one, {}) for one in taken).ranges == {
        at: (firsts[at], ends[at]) for at in ends if ends[at] > firsts[at]
    }


def test_what_the_source_has_removed_is_named() -> None:
    taken, lost = next_ranges({("t", 0): 5}, {("t", 0): 8}, {("t", 0): 20}, 100)
    assert (taken, lost) == ({("t", 0): (8, 20)}, {("t", 0): (5, 8)})


def test_neighbours_are_put_together_up_to_a_size() -> None:
    sizes = [SizedRange(BatchRange(number, number), size) for number, size in enumerate((10, 10, 90, 50, 60, 5))]
    assert to_compact(sizes, 100) == [[BatchRange(0, 0), BatchRange(1, 1)], [BatchRange(4, 4), BatchRange(5, 5)]]
    assert to_compact([], 100) == []
