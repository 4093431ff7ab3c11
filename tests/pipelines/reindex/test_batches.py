"""Rows of entries, as the batches that a reindex writes."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import pytest
from aiokafka.record.memory_records import MemoryRecords
from hypothesis import given
from hypothesis import strategies as st

from kafka_sidecar.errors import CommandFailed
from kafka_sidecar.pipelines.copying.copied_batches import CopiedBatch
from kafka_sidecar.pipelines.copying.places import RecordPlace, number_of, record_place
from kafka_sidecar.pipelines.reindex.batches import EntryBatches
from kafka_sidecar.pulsar.entry import Position
from tests.support.batches import records_batch


@dataclass
class Row:
    ledger: int
    entry: int
    records: int
    data: bytearray
    problem: str = ""
    is_lasting: bool = False
    topic: str = "t"
    partition: int = 0


def row(ledger: int, entry: int, *batches_of: Sequence[bytes]) -> Row:
    """An entry with batches of these values."""
    data = b"".join(records_batch([(None, value, 1_000) for value in values]) for values in batches_of)
    return Row(ledger, entry, sum(len(values) for values in batches_of), bytearray(data))


def problem(ledger: int, entry: int, is_lasting: bool = True) -> Row:
    return Row(ledger, entry, 0, bytearray(), "it is broken", is_lasting)


LIMIT = 100_000
FIRST = number_of(Position(0, 0))


def made(rows: Sequence[Row], begin: int = FIRST, accept_loss: bool = False) -> list[CopiedBatch]:
    left_out: list[str] = []
    found = list(EntryBatches(accept_loss, {"t": LIMIT})(iter(cast(Any, rows)), begin, left_out.append))
    assert left_out == [one.problem for one in rows if one.problem]
    assert all(len(one.data) <= LIMIT for one in found)
    return found


def records(found: Sequence[CopiedBatch]) -> list[tuple[RecordPlace | None, bytes]]:
    """With their places."""
    listed = []
    for batch in found:
        opened = MemoryRecords(bytes(batch.data)).next_batch()
        assert opened is not None
        numbers = [span.source + one for span in batch.spans for one in range(span.length)]
        listed += [(record_place(number), record.value) for number, record in zip(numbers, opened, strict=True)]
    return listed


def place(ledger: int, entry: int, in_entry: int) -> RecordPlace:
    return RecordPlace(Position(ledger, entry), in_entry)


def test_small_entries_become_one_batch_and_each_record_has_its_place() -> None:
    found = made([row(1, 0, [b"a"]), row(1, 1, [b"b", b"c"], [b"d"]), row(1, 3), row(2, 0, [b"e"])])
    assert len(found) == 1
    assert records(found) == [
        (place(1, 0, 0), b"a"),
        (place(1, 1, 0), b"b"),
        (place(1, 1, 1), b"c"),
        (place(1, 1, 2), b"d"),
        (place(2, 0, 0), b"e"),
    ]


def test_it_goes_on_in_the_middle_of_an_entry() -> None:
    rows = [row(1, 0, [b"a"]), row(1, 1, [b"b", b"c"], [b"d"]), row(2, 0, [b"e"])]
    assert [value for _, value in records(made(rows, number_of(Position(1, 1), 1)))] == [b"c", b"d", b"e"]
    assert [value for _, value in records(made(rows, number_of(Position(1, 1), 3)))] == [b"e"]
    assert [value for _, value in records(made(rows, number_of(Position(1, 2), 0)))] == [b"e"]
    assert made(rows, 0) == []


def test_what_can_not_be_read_stops_it_behind_what_can() -> None:
    rows = [row(1, 0, [b"a"]), problem(1, 1), row(1, 2, [b"b"])]
    found = EntryBatches(False, {"t": LIMIT})(iter(cast(Any, rows)), FIRST, pytest.fail)
    assert records([next(found)]) == [(place(1, 0, 0), b"a")]
    with pytest.raises(CommandFailed, match=r"it is broken\. Go on without it with --accept-loss"):
        next(found)
    assert [value for _, value in records(made(rows, accept_loss=True))] == [b"a", b"b"]


def test_a_damaged_entry_is_said_by_its_position_and_keeps_nobody_but_itself() -> None:
    damaged = row(1, 1, [b"b"])
    damaged.data[-1] ^= 1
    rows = [row(1, 0, [b"a", b"c"]), damaged, row(1, 2, [b"d"])]
    left_out: list[str] = []
    found = list(EntryBatches(True, {"t": LIMIT})(iter(cast(Any, rows)), number_of(Position(1, 0), 1), left_out.append))
    assert [value for _, value in records(found)] == [b"c", b"d"]
    assert [text[:48] for text in left_out] == ["entry 1:1 can't be read as Kafka records: the re"]
    reading = EntryBatches(False, {"t": LIMIT})(iter(cast(Any, rows)), FIRST, pytest.fail)
    assert [value for _, value in records([next(reading)])] == [b"a", b"c"]
    with pytest.raises(CommandFailed, match="entry 1:1"):
        next(reading)


def test_an_entry_that_has_no_records_any_more_takes_none_of_the_next() -> None:
    """It was copied; then retention has removed the first parts of its message."""
    rows = [Row(1, 0, 0, bytearray()), row(1, 1, [b"a"]), row(1, 2, [b"b"])]
    assert [value for _, value in records(made(rows, number_of(Position(1, 0), 1)))] == [b"a", b"b"]


def test_what_can_not_be_read_now_is_tried_again_even_where_loss_is_accepted() -> None:
    found = EntryBatches(True, {"t": LIMIT})(iter(cast(Any, [problem(1, 0, is_lasting=False)])), FIRST, pytest.fail)
    with pytest.raises(ConnectionError, match="it is broken"):
        next(found)


def noise(size: int) -> bytes:
    return random.Random(size).randbytes(size)


def test_a_batch_that_is_too_large_for_the_target_becomes_several() -> None:
    values = [noise(30_000 + number) for number in range(10)]
    found = made([row(1, 0, values)])
    assert len(found) > 3
    assert records(found) == [(place(1, 0, number), value) for number, value in enumerate(values)]


def test_what_is_too_large_only_without_compression_is_written() -> None:
    assert [value for _, value in records(made([row(1, 0, [b"v" * 5 * LIMIT])]))] == [b"v" * 5 * LIMIT]


def test_a_record_that_is_too_large_is_said_and_left_out_where_loss_is_accepted() -> None:
    rows = [row(1, 0, [b"a"]), row(1, 1, [noise(LIMIT)]), row(1, 2, [b"b"])]
    with pytest.raises(CommandFailed, match=r"record 1:1:0 takes 100\d+ bytes, and the topic takes 100000"):
        made(rows)
    left_out: list[str] = []
    found = list(EntryBatches(True, {"t": LIMIT})(iter(cast(Any, rows)), FIRST, left_out.append))
    assert [value for _, value in records(found)] == [b"a", b"b"]
    assert len(left_out) == 1


@st.composite
def logs(draw: st.DrawFn) -> list[Row]:
    rows, number = [], 0
    for ledger in range(draw(st.integers(1, 3))):
        for entry in range(draw(st.integers(0, 6))):
            sizes = draw(st.lists(st.integers(1, 4), max_size=3))
            values = []
            for size in sizes:
                values.append(
                    [b"%d" % (number + one) + b"v" * draw(st.sampled_from((0, 30_000))) for one in range(size)]
                )
                number += size
            rows.append(row(ledger, 2 * entry, *values))
    return rows


@given(logs(), st.data())
def test_wherever_it_was_stopped_nothing_is_missing_and_nothing_is_there_twice(
    rows: list[Row], data: st.DataObject
) -> None:
    wanted = [
        (place(one.ledger, one.entry, number), value)
        for one in rows
        for number, value in enumerate(value for _, value in records(made([one])))
    ]
    assert records(made(rows)) == wanted
    copied: list[CopiedBatch] = []
    begin = FIRST
    for _ in range(3):
        found = made(rows, begin)
        copied += found[: data.draw(st.integers(0, len(found)))]
        if copied:
            begin = copied[-1].spans[-1].source + copied[-1].spans[-1].length
    assert records([*copied, *made(rows, begin)]) == wanted
