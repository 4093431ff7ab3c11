"""Rows of an archive, as the batches that a replay writes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

import pytest
from aiokafka.record.memory_records import MemoryRecords

from kafka_sidecar.errors import CommandFailed
from kafka_sidecar.pipelines.archive.replay import BATCH_BYTES, batches
from kafka_sidecar.pipelines.copying.copied_batches import CopiedBatch, Span


@dataclass
class Header:
    key: str
    value: bytearray | None


@dataclass
class Row:
    offset: int
    millis: int = 1_000
    key: bytearray | None = None
    value: bytearray | None = None
    headers: list[Header] | None = None
    topic: str = "t"
    partition: int = 0


def made(rows: Sequence[Row], begin: int = 0) -> list[CopiedBatch]:
    return list(batches(cast(Any, rows), begin, pytest.fail))


def records(batch: CopiedBatch) -> list[tuple[int, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]]:
    opened = MemoryRecords(bytes(batch.data)).next_batch()
    assert opened is not None
    return [(one.timestamp, one.key, one.value, tuple(one.headers)) for one in opened]


def test_rows_keep_everything_and_gaps_stay_gaps() -> None:
    headers = [Header("h", bytearray(b"1")), Header("n", None)]
    (batch,) = made([Row(3, 5, bytearray(b"k"), bytearray(b"v"), headers), Row(4, 7), Row(9, 6, value=bytearray())])
    assert batch.spans == (Span(3, 2), Span(9, 1))
    assert records(batch) == [(5, b"k", b"v", (("h", b"1"), ("n", None))), (7, None, None, ()), (6, None, b"", ())]


def test_what_was_written_is_passed_over() -> None:
    (batch,) = made([Row(3), Row(4), Row(9)], begin=4)
    assert batch.spans == (Span(4, 1), Span(9, 1))


def test_a_time_of_before_1970_stays_with_its_record() -> None:
    found = made([Row(0, -1), Row(1, -1), Row(2, 1_000)])
    assert [time for batch in found for time, *_ in records(batch)] == [-1, -1, 1_000]


def test_batches_have_a_bound_and_a_large_record_is_one() -> None:
    rows = [Row(number, value=bytearray(1_000)) for number in range(1_000)] + [
        Row(1_000, value=bytearray(2 * BATCH_BYTES))
    ]
    found = made(rows)
    assert len(found) > 3
    assert sum(batch.record_count for batch in found) == len(rows)
    assert [span.source for batch in found for span in batch.spans] == sorted(
        span.source for batch in found for span in batch.spans
    )


def test_an_offset_that_comes_twice_is_refused() -> None:
    with pytest.raises(CommandFailed, match="offset 4 of partition 0 of topic t twice"):
        made([Row(4), Row(4)])
