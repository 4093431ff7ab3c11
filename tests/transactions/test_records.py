"""The records of `__transaction_state`, as Kafka writes and reads them."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_sidecar.errors import ProtocolError
from kafka_sidecar.transactions.metadata import TransactionMetadata, TransactionState
from kafka_sidecar.transactions.records import TransactionRecord, TransactionRecords, read_value, write_value

CODEC = TransactionRecords()
_epochs = st.integers(-1, 2**15 - 1)
_ids = st.integers(-1, 2**63 - 1)
_times = st.integers(-1, 2**50)


@st.composite
def metadatas(draw: st.DrawFn) -> TransactionMetadata:
    state = draw(st.sampled_from(TransactionState))
    partitions = draw(st.frozensets(st.tuples(st.text(min_size=1, max_size=5), st.integers(0, 9))))
    return TransactionMetadata(
        transactional_id=draw(st.text(max_size=20)),
        producer_id=draw(_ids),
        producer_epoch=draw(_epochs),
        timeout_ms=draw(st.integers(1, 2**31 - 1)),
        state=state,
        last_update_timestamp=draw(_times),
        previous_producer_id=draw(_ids),
        next_producer_id=draw(_ids),
        last_producer_epoch=draw(_epochs),
        partitions=frozenset() if state is TransactionState.EMPTY else partitions,
        start_timestamp=draw(_times),
        client_version=draw(st.integers(0, 2)),
        number=draw(st.integers(0, 2**50)),
        marked_from=draw(st.integers(0, 2**50)),
    )


@given(metadatas())
def test_a_record_comes_back_as_it_was_written(metadata: TransactionMetadata) -> None:
    key, value = CODEC.write(TransactionRecord(metadata.transactional_id, metadata))
    assert CODEC.read(key, value) == TransactionRecord(metadata.transactional_id, metadata)
    assert CODEC.read(key, None) == TransactionRecord(metadata.transactional_id, None)
    assert CODEC.write(TransactionRecord(metadata.transactional_id, None)) == (key, None)


def test_the_key_is_kafkas() -> None:
    assert CODEC.write(TransactionRecord("tx", None))[0] == b"\x00\x00\x00\x02tx"


def test_a_value_of_version_0_is_read() -> None:
    """As Kafka before 4 and Kafka-on-Pulsar write it (TransactionLogValue.json)."""
    value = (
        struct.pack(">hqhib", 0, 77, 5, 60_000, 1)
        + struct.pack(">i", 1)
        + struct.pack(">h", 1)
        + b"t"
        + struct.pack(">iii", 2, 0, 3)
    )
    value += struct.pack(">qq", 1_000, 900)
    metadata = read_value("tx", value)
    assert (metadata.producer_id, metadata.producer_epoch, metadata.timeout_ms, metadata.state) == (
        77,
        5,
        60_000,
        TransactionState.ONGOING,
    )
    assert metadata.partitions == {("t", 0), ("t", 3)}
    assert (metadata.last_update_timestamp, metadata.start_timestamp, metadata.number, metadata.client_version) == (
        1_000,
        900,
        0,
        0,
    )


def test_a_value_of_version_0_without_partitions_is_read() -> None:
    value = struct.pack(">hqhib", 0, 77, 5, 60_000, 0) + struct.pack(">i", -1) + struct.pack(">qq", 1_000, -1)
    assert read_value("tx", value).partitions == frozenset()


def test_the_flexible_form_is_kafkas() -> None:
    metadata = TransactionMetadata(
        transactional_id="tx",
        producer_id=77,
        producer_epoch=5,
        timeout_ms=60_000,
        state=TransactionState.ONGOING,
        last_update_timestamp=1_000,
        partitions=frozenset({("t", 3)}),
        start_timestamp=900,
        client_version=2,
    )
    value = write_value(metadata)
    head = struct.pack(">hqhib", 1, 77, 5, 60_000, 1)
    topics = b"\x02" + b"\x02t" + b"\x02" + struct.pack(">i", 3) + b"\x00"
    assert value.startswith(head + topics + struct.pack(">qq", 1_000, 900) + b"\x02" + b"\x02\x02\x00\x02")


@pytest.mark.parametrize("cut", [0, 1, 5, 14, 17, 20, 30])
def test_what_is_cut_off_is_refused(cut: int) -> None:
    metadata = TransactionMetadata(
        transactional_id="tx",
        producer_id=77,
        producer_epoch=5,
        timeout_ms=60_000,
        state=TransactionState.ONGOING,
        last_update_timestamp=1_000,
        partitions=frozenset({("t", 3)}),
        start_timestamp=900,
    )
    with pytest.raises(ProtocolError):
        read_value("tx", write_value(metadata)[:cut])


def test_a_state_that_is_not_known_is_refused() -> None:
    with pytest.raises(ProtocolError):
        read_value(
            "tx", struct.pack(">hqhib", 0, 77, 5, 60_000, 99) + struct.pack(">i", -1) + struct.pack(">qq", 1, -1)
        )


def test_another_kind_of_key_is_passed_over() -> None:
    assert CODEC.read(b"\x00\x07tx", b"") is None
