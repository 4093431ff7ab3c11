"""Which records of a Fetch answer are copied, and in which batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pytest
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.legacy_records import LegacyRecordBatchBuilder
from aiokafka.record.memory_records import MemoryRecords
from hypothesis import given
from hypothesis import strategies as st

from kafka_sidecar.pipelines.copying.copied_batches import (
    DELETE_HORIZON,
    MERGED_BYTES,
    SMALL_BYTES,
    CopiedBatch,
    Span,
    copied_batches,
    with_producer,
)
from kafka_sidecar.wire.control_records import EndTransactionMarker, placeholder, write_marker
from kafka_sidecar.wire.messages.fetch import AbortedTransaction
from kafka_sidecar.wire.records import LOG_APPEND_TIME, TRANSACTIONAL, BatchMalformed, read_header, read_produced
from tests.support.batches import with_header

VALUE = b"v" * (SMALL_BYTES // 2)


class Record(NamedTuple):
    offset: int
    timestamp: int | None
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


def batch(
    records: Sequence[Record],
    codec: int = 0,
    base: int | None = None,
    producer_id: int = -1,
    transactional: bool = False,
) -> bytes:
    """As a log has it: offsets may be missing."""
    base = records[0].offset if base is None else base
    builder = DefaultRecordBatchBuilder(
        2, codec, int(transactional), producer_id, 0, 0 if producer_id >= 0 else -1, 1 << 30
    )
    for record in records:
        assert (
            builder.append(record.offset - base, record.timestamp, record.key, record.value, list(record.headers))
            is not None
        )
    return moved(bytes(builder.build()), base)


def moved(data: bytes, base: int) -> bytes:
    return base.to_bytes(8, "big") + data[8:]


def records_of(batches: Sequence[CopiedBatch]) -> list[Record]:
    """With their source offsets."""
    found = []
    for one in batches:
        read_produced(with_producer(one, 7, 1, 0, 0))  # a broker takes it
        offsets = [span.source + number for span in one.spans for number in range(span.length)]
        opened = MemoryRecords(bytes(one.data)).next_batch()
        assert opened is not None
        records = list(opened)
        assert len(records) == len(offsets) == one.record_count
        for offset, record in zip(offsets, records, strict=True):
            found.append(Record(offset, record.timestamp, record.key, record.value, tuple(record.headers)))
    return found


def of(*offsets: int, value: bytes = VALUE) -> list[Record]:
    return [Record(offset, 1_000 + offset, b"k%d" % offset, value, (("h", b"1"), ("n", None))) for offset in offsets]


def test_a_whole_batch_keeps_its_records_as_bytes() -> None:
    large = b"v" * SMALL_BYTES
    first, second = batch(of(5, 6, value=large), base=5), batch(of(7, 8, value=large), base=7)
    found = copied_batches(first + second, 5, ())
    assert found.next_offset == 9
    assert [bytes(one.data[61:]) for one in found.batches] == [first[61:], second[61:]]
    assert records_of(found.batches) == of(5, 6, 7, 8, value=large)


def test_a_damaged_batch_gets_no_new_checksum() -> None:
    data = bytearray(batch(of(0, 1, 2)))
    data[-1] ^= 1
    with pytest.raises(BatchMalformed, match="offset 0 has a wrong checksum"):
        copied_batches(bytes(data), 0, ())


def test_what_the_end_of_an_answer_has_cut_off_is_left() -> None:
    data = batch(of(0, 1, 2)) + batch(of(3, 4, 5))[:-1]
    found = copied_batches(data, 0, ())
    assert found.next_offset == 3
    assert records_of(found.batches) == of(0, 1, 2)
    assert copied_batches(b"\0" * 10, 4, ()) == ([], 4)


def test_records_before_the_first_wanted_offset_are_left_out() -> None:
    found = copied_batches(batch(of(0, 1, 2)), 2, ())
    assert records_of(found.batches) == of(2)
    assert found.next_offset == 3


def test_what_compaction_has_removed_stays_removed() -> None:
    found = copied_batches(batch(of(3, 5, 6, 9), base=2), 0, ())
    assert found.batches[0].spans == (Span(3, 1), Span(5, 2), Span(9, 1))
    assert records_of(found.batches) == of(3, 5, 6, 9)
    assert found.next_offset == 10


def test_a_batch_without_records_is_passed_over() -> None:
    emptied = with_header(batch(of(4)), record_count=0, last_offset_delta=3)
    assert copied_batches(emptied, 4, ()) == ([], 8)


def test_offsets_without_records_are_passed_over() -> None:
    """A sidecar serves a batch with one record of its own for them (`placeholder`)."""
    before, behind = of(0, 1), of(7, 8)
    data = batch(before, base=0) + placeholder(2, 5, 1_000) + batch(behind, base=7)
    found = copied_batches(data, 0, ())
    assert records_of(found.batches) == before + behind
    assert found.next_offset == 9
    assert copied_batches(placeholder(2, 5), 2, ()) == ([], 7)


def test_the_brokers_time_becomes_the_records() -> None:
    stamped = with_header(batch(of(0, 1, 2)), attributes=LOG_APPEND_TIME, max_timestamp=5_000)
    assert {record.timestamp for record in records_of(copied_batches(stamped, 0, ()).batches)} == {5_000}


def test_small_batches_become_one() -> None:
    small = [of(offset, value=b"x") for offset in range(100)]
    data = b"".join(batch(one, codec=number % 5) for number, one in enumerate(small))
    found = copied_batches(data, 0, ())
    assert len(found.batches) == 1
    assert records_of(found.batches) == of(*range(100), value=b"x")


def test_a_merged_batch_has_a_bound() -> None:
    data = b"".join(batch(of(offset, value=b"x" * 3_000)) for offset in range(100))
    found = copied_batches(data, 0, ())
    assert len(found.batches) > 1
    assert max(len(one.data) for one in found.batches) <= MERGED_BYTES + 4_000
    assert records_of(found.batches) == of(*range(100), value=b"x" * 3_000)


def test_a_record_larger_than_a_merged_batch_is_one() -> None:
    large = of(1, 2, value=b"x" * (2 * MERGED_BYTES))
    assert records_of(copied_batches(batch(large, base=0), 0, ()).batches) == large


@pytest.mark.parametrize("magic", [0, 1])
def test_old_messages_are_copied(magic: int) -> None:
    builder = LegacyRecordBatchBuilder(magic, 0, 1 << 20)
    for offset in range(3):
        builder.append(offset, 1_000 + offset, b"k%d" % offset, VALUE)
    found = copied_batches(bytes(builder.build()), 1, ())
    times = [None if magic == 0 else 1_001, None if magic == 0 else 1_002]
    assert [(one.offset, one.key) for one in records_of(found.batches)] == [(1, b"k1"), (2, b"k2")]
    assert [one.timestamp for one in records_of(found.batches)] == [-1 if time is None else time for time in times]
    assert found.next_offset == 3


def marker(offset: int, producer_id: int, committed: bool) -> bytes:
    return moved(write_marker(producer_id, 0, EndTransactionMarker(committed, 0), 1), offset)


def test_aborted_transactions_are_left_out() -> None:
    data = (
        batch(of(0, 1, 2), producer_id=1, transactional=True)
        + batch(of(3, 4, 5), producer_id=2, transactional=True)
        + marker(6, 1, False)
        + batch(of(7, 8, 9), producer_id=1, transactional=True)
        + marker(10, 1, True)
        + marker(11, 2, True)
    )
    found = copied_batches(data, 0, [AbortedTransaction(producer_id=1, first_offset=0)])
    assert records_of(found.batches) == of(3, 4, 5, 7, 8, 9)
    assert found.next_offset == 12
    assert all(not read_header(one.data).attributes & TRANSACTIONAL for one in found.batches)


def test_a_producer_states_itself_in_the_batch() -> None:
    (one,) = copied_batches(batch(of(0, 1, 2), producer_id=3), 0, ()).batches
    header = read_header(with_producer(one, 9, 4, 17, TRANSACTIONAL))
    assert (header.base_offset, header.producer_id, header.producer_epoch, header.base_sequence) == (0, 9, 4, 17)
    assert header.attributes & TRANSACTIONAL


BYTES = st.none() | st.binary(max_size=60) | st.just(VALUE)


@st.composite
def logs(draw: st.DrawFn) -> tuple[bytes, list[Record], int]:
    offset = draw(st.integers(0, 3))
    data, all_records = b"", []
    for _ in range(draw(st.integers(1, 6))):
        base, records = offset, []
        for _ in range(draw(st.integers(1, 5))):
            offset += draw(st.integers(0, 1))
            headers = draw(st.lists(st.tuples(st.text(max_size=3), st.none() | st.binary(max_size=3)), max_size=2))
            records.append(Record(offset, draw(st.integers(0, 2**40)), draw(BYTES), draw(BYTES), tuple(headers)))
            offset += 1
        one = batch(records, codec=draw(st.integers(0, 4)), base=base)
        if draw(st.booleans()):
            one = with_header(one, attributes=read_header(one).attributes | DELETE_HORIZON)
        data += one
        all_records += records
    return data, all_records, offset


@given(logs(), st.integers(0, 12))
def test_every_record_from_the_first_on_is_copied_as_it_is(log: tuple[bytes, list[Record], int], first: int) -> None:
    data, records, end = log
    found = copied_batches(data, first, ())
    assert records_of(found.batches) == [record for record in records if record.offset >= first]
    assert found.next_offset == max(first, end)
