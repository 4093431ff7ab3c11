"""Record batches seen from outside, held against aiokafka's codec."""

from __future__ import annotations

import pytest
from aiokafka.record.memory_records import MemoryRecords
from hypothesis import given
from hypothesis import strategies as st

from kafka_sidecar.errors import ProtocolError
from kafka_sidecar.wire.records import (
    MAX_SEQUENCE,
    BatchInvalid,
    BatchMalformed,
    empty_batch,
    next_sequence,
    read_ordinary,
    read_produced,
    with_base_offsets,
    with_last_offset,
)
from tests.support.batches import batch


def _offsets(data: bytes | bytearray) -> list[int]:
    records = MemoryRecords(bytes(data))
    found = []
    while records.has_next():
        one = records.next_batch()
        assert one is not None
        assert one.validate_crc()
        found += [record.offset for record in one]
    return found


@given(st.lists(st.binary(max_size=20), min_size=1, max_size=5), st.integers(0, 2**40))
def test_a_placed_batch_has_its_offsets_and_a_true_checksum(values: list[bytes], base: int) -> None:
    data = batch(*values)
    header = read_produced(data)
    assert header.offset_count == len(values)
    assert _offsets(with_base_offsets(data, base)) == list(range(base, base + len(values)))


def test_several_batches_of_an_entry_follow_each_other() -> None:
    data = batch(b"a", b"b") + batch(b"c") + batch(b"d", b"e")
    assert _offsets(with_base_offsets(data, 10)) == [10, 11, 12, 13, 14]


def test_a_batch_can_take_offsets_behind_its_last_record() -> None:
    records = MemoryRecords(with_last_offset(batch(b"a", b"b"), 9))
    one = records.next_batch()
    assert one is not None
    assert one.validate_crc()
    assert one.next_offset == 10


@given(st.integers(1, 1000))
def test_an_empty_batch_leads_over_its_offsets(offsets: int) -> None:
    one = MemoryRecords(empty_batch(offsets)).next_batch()
    assert one is not None
    assert one.validate_crc()
    assert list(one) == []
    assert one.next_offset == offsets


@given(st.binary(max_size=200))
def test_any_bytes_are_a_batch_or_a_protocol_error(data: bytes) -> None:
    with pytest.raises(ProtocolError):
        read_produced(data)


@pytest.mark.parametrize(("producer_id", "epoch", "sequence"), [(-2, 0, 0), (5, -1, 0), (5, 0, -1)])
def test_a_producer_has_an_id_an_epoch_and_a_sequence(producer_id: int, epoch: int, sequence: int) -> None:
    data = batch(b"a", producer_id=producer_id, epoch=epoch, sequence=sequence)
    with pytest.raises(BatchInvalid):
        read_produced(data)
    assert read_ordinary(memoryview(data), 0, len(data), 2**62, 4) is None


@given(st.integers(0, 90), st.integers(0, 255))
def test_a_changed_byte_is_noticed(at: int, value: int) -> None:
    data = bytearray(batch(b"value" * 10, producer_id=5, epoch=1, sequence=3))
    at %= len(data)
    # Leader epoch and base offset are not covered by the checksum; the latter must be 0.
    if data[at] == value or 12 <= at < 16:
        return
    data[at] = value
    with pytest.raises(ProtocolError):
        read_produced(bytes(data))


def test_two_batches_in_one_request_are_refused() -> None:
    with pytest.raises(BatchInvalid, match="exactly one"):
        read_produced(batch(b"a") + batch(b"b"))


def test_a_batch_cut_short_is_corrupt() -> None:
    with pytest.raises(BatchMalformed):
        read_produced(batch(b"a")[:-1])


@pytest.mark.parametrize(("sequence", "by", "expected"), [(0, 1, 1), (MAX_SEQUENCE, 1, 0), (MAX_SEQUENCE - 1, 3, 1)])
def test_sequences_wrap_to_zero(sequence: int, by: int, expected: int) -> None:
    assert next_sequence(sequence, by) == expected
