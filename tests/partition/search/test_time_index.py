"""The index of greatest timestamps: never misses an entry, whatever it was merged to, and comes back as it was
stored.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_sidecar.partition.search import time_index
from kafka_sidecar.partition.search.time_index import MAX_STRETCHES, TimeIndex
from kafka_sidecar.partition.snapshot_pb2 import TimeIndex as StoredTimeIndex
from kafka_sidecar.pulsar.entry import Position

BEGIN = Position(3, 0)
Entry = tuple[Position, int, int, int, int]


def entries_of(steps: list[tuple[int, int, int, bool]]) -> list[Entry]:
    """Timestamp, offsets, size, and whether the ledger ends before it."""
    entries: list[Entry] = []
    position, offset = BEGIN, 0
    for greatest, count, size, rolls in steps:
        position = Position(position.ledger + 1, 0) if rolls else position
        entries.append((position, offset, offset + count, greatest, size))
        position, offset = position.after(), offset + count
    return entries


def index_of(entries: list[Entry]) -> TimeIndex:
    index = TimeIndex(BEGIN)
    for entry in entries:
        index.add(*entry)
    return index


_steps = st.lists(
    st.tuples(st.integers(-1, 30), st.integers(1, 5), st.integers(0, 600_000), st.booleans()), min_size=1, max_size=60
)


@given(_steps, st.integers(0, 31), st.integers(0, 150))
def test_every_entry_that_reaches_a_time_is_in_a_stretch_that_does(
    steps: list[tuple[int, int, int, bool]], timestamp: int, log_start: int
) -> None:
    entries = entries_of(steps)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(time_index, "MAX_STRETCHES", 8)
        index = index_of(entries)
        assert len(index) <= 8
        index.drop_before(log_start)
    reaching = index.reaching(timestamp, log_start)
    assert [one.base_offset for one in reaching] == sorted(one.base_offset for one in reaching)
    for position, base, end, greatest, _ in entries:
        if greatest >= timestamp and end > log_start:
            assert any(one.start <= position and one.base_offset <= base and end <= one.next_offset for one in reaching)


@given(_steps)
def test_it_comes_back_as_it_was_stored(steps: list[tuple[int, int, int, bool]]) -> None:
    entries = entries_of(steps)
    index = index_of(entries[: len(entries) // 2 + 1])
    back = TimeIndex.decode(index.encode())
    for one in (index, back):
        for entry in entries[len(entries) // 2 + 1 :]:
            one.add(*entry)
    assert back.encode() == index.encode()
    assert (back.begin, back.last, back.next_offset) == (index.begin, entries[-1][0], entries[-1][2])


def test_a_large_log_takes_no_more_stretches_than_there_may_be() -> None:
    index = index_of([(Position(3, entry), entry, entry + 1, entry % 1_000, 200_000) for entry in range(100_000)])
    assert MAX_STRETCHES // 2 <= len(index) <= MAX_STRETCHES
    assert len(index.encode()) < 32 * 1024
    assert index.bytes_covered > 0.9 * 100_000 * 200_000


def test_the_greatest_comes_first_and_the_earlier_of_two() -> None:
    index = index_of(
        [(Position(3, entry), entry, entry + 1, greatest, 10**6) for entry, greatest in enumerate((4, 9, 9, 1))]
    )
    assert [one.base_offset for one in index.greatest_first(0)] == [1, 2, 0, 3]
    assert [one.base_offset for one in index.greatest_first(2)] == [2, 3]


def kept(bases: list[int], entries: list[int], *, last: int = 9, end: int = 2) -> bytes:
    ledgers, greatest = [3] + [0] * (len(bases) - 1), [1] * len(bases)
    return StoredTimeIndex(
        base_offsets=bases,
        ledgers=ledgers,
        entries=entries,
        greatest_timestamps=greatest,
        last_ledger=3,
        last_entry=last,
        next_offset=end,
    ).SerializeToString()


@pytest.mark.parametrize(
    ("stored", "says"),
    [
        (b"\xff\xff", "."),
        (b"", "stretches"),
        (kept([0], []), "stretches"),
        (kept([0, 0], [0, 1]), "offsets"),
        (kept([0, 1], [5, -1]), "order"),
        (kept([0], [5], last=4), "order"),
        (kept([2**63 - 1, 5], [5, 1]), "."),
    ],
)
def test_what_is_no_index_is_refused(stored: bytes, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        TimeIndex.decode(stored)


def test_an_entry_that_another_has_added_before_is_passed_over() -> None:
    entries = [(Position(3, entry), entry, entry + 1, entry, 200_000) for entry in range(10)]
    once, twice = index_of(entries), index_of(entries)
    for entry in entries[4:]:
        twice.add(*entry)
    assert twice.encode() == once.encode()
