"""Control batches: what Kafka's own reader takes them for, and what is refused."""

from __future__ import annotations

import pytest
from aiokafka.record.memory_records import MemoryRecords
from hypothesis import given
from hypothesis import strategies as st

from kafka_sidecar.errors import ProtocolError
from kafka_sidecar.wire.control_records import (
    PLACEHOLDER_SIZE,
    EndTransactionMarker,
    is_placeholder,
    placeholder,
    read_marker,
    write_marker,
)
from kafka_sidecar.wire.records import CONTROL, NO_PRODUCER_ID, TRANSACTIONAL, empty_batch, read_header
from tests.support.batches import batch

_markers = st.builds(EndTransactionMarker, st.booleans(), st.integers(-1, 2**31 - 1))


@given(_markers, st.integers(0, 2**63 - 1), st.integers(0, 2**15 - 1), st.integers(0, 2**50))
def test_a_marker_comes_back_as_it_was_written(
    marker: EndTransactionMarker, producer_id: int, epoch: int, timestamp: int
) -> None:
    data = write_marker(producer_id, epoch, marker, timestamp)
    header = read_header(data)
    assert header.size == len(data)
    assert header.attributes == CONTROL | TRANSACTIONAL
    assert (header.producer_id, header.producer_epoch, header.base_sequence, header.max_timestamp) == (
        producer_id,
        epoch,
        -1,
        timestamp,
    )
    assert (header.record_count, header.offset_count) == (1, 1)
    assert read_marker(data) == marker
    assert not is_placeholder(header)


def test_a_consumer_takes_it_for_what_it_is() -> None:
    for committed, kind in ((True, b"\0\0\0\1"), (False, b"\0\0\0\0")):
        records = MemoryRecords(write_marker(7, 3, EndTransactionMarker(committed, 5), 1_000))
        read = records.next_batch()
        assert read is not None
        assert read.is_control_batch
        assert read.is_transactional
        assert read.validate_crc()
        (record,) = read
        assert (record.key, record.value) == (kind, b"\0\0\0\0\0\5")
        assert not records.has_next()


@given(st.integers(0, 2**40), st.integers(1, 2**31 - 1), st.integers(-1, 2**50))
def test_a_placeholder_leads_a_consumer_over_its_offsets(base: int, offsets: int, timestamp: int) -> None:
    data = placeholder(base, offsets, timestamp)
    header = read_header(data)
    assert header.size == len(data) <= PLACEHOLDER_SIZE
    assert (header.base_offset, header.offset_count, header.record_count) == (base, offsets, 1)
    assert (header.attributes, header.producer_id, header.producer_epoch, header.base_sequence) == (
        CONTROL,
        NO_PRODUCER_ID,
        -1,
        -1,
    )
    assert (header.base_timestamp, header.max_timestamp) == (timestamp, timestamp)
    assert is_placeholder(header)
    read = MemoryRecords(data).next_batch()
    assert read is not None
    assert read.is_control_batch
    assert not read.is_transactional
    assert read.validate_crc()
    (record,) = read
    assert (record.offset, record.key, record.value) == (base + offsets - 1, b"\0\0\0\1", b"\0\0\0\0\0\0")
    assert read.next_offset == base + offsets


def test_an_empty_control_batch_says_nothing() -> None:
    assert read_marker(empty_batch(1)) is None


def test_another_kind_of_control_record_is_passed_over() -> None:
    data = bytearray(write_marker(1, 0, EndTransactionMarker(True, 0), 1))
    data[61 + 1 + 4 + 3] = 2  # a leader change, of KRaft
    assert read_marker(data) is None


@pytest.mark.parametrize("at", range(61, 77))
def test_what_is_cut_off_is_refused(at: int) -> None:
    data = bytearray(write_marker(1, 0, EndTransactionMarker(True, 0), 1)[:at])
    data[8:12] = (at - 12).to_bytes(4, "big")
    with pytest.raises(ProtocolError):
        read_marker(data)


def test_a_record_that_is_no_marker_is_refused() -> None:
    with pytest.raises(ProtocolError):
        read_marker(batch(b"value"))
