"""Format pulsar: what a Kafka producer wrote comes back to a Kafka consumer, whatever was in it, and natives see
messages.
"""

from __future__ import annotations

import base64
from typing import NamedTuple

import pytest
from aiokafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder
from hypothesis import given
from hypothesis import strategies as st

from kafka_sidecar.partition.log.entries import read_entry, read_headers
from kafka_sidecar.partition.log.formats import PULSAR, EncodedEntry
from kafka_sidecar.pulsar.entry import Position, RawEntry
from kafka_sidecar.pulsar.messages import Message, read_messages
from kafka_sidecar.pulsar.pulsar_api_pb2 import MessageMetadata
from kafka_sidecar.wire.records import BatchInvalid, BatchMalformed, read_header, with_earlier_timestamps
from tests.support.batches import batch

CODECS = {0: "none", 1: "gzip", 2: "snappy", 3: "lz4", 4: "zstd"}


class Record(NamedTuple):
    key: bytes | None
    value: bytes | None
    timestamp: int
    headers: list[tuple[str, bytes | None]]


BYTES = st.one_of(st.none(), st.binary(max_size=20), st.text(max_size=10).map(str.encode))
NAMES = st.one_of(st.text(max_size=8), st.sampled_from(["a", "a", "kafka.headers", ""]))
RECORDS = st.builds(
    Record,
    BYTES,
    BYTES,
    st.one_of(st.integers(-1, 5), st.integers(0, 2**45)),
    st.lists(st.tuples(NAMES, BYTES), max_size=4),
)


def produced(records: list[Record], codec: int = 0, producer: tuple[int, int, int] = (-1, -1, -1)) -> bytes:
    producer_id, epoch, sequence = producer
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=codec,
        is_transactional=0,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=sequence,
        batch_size=2**30,
    )
    for number, record in enumerate(records):
        builder.append(number, record.timestamp + 1, record.key, record.value, record.headers)
    return with_earlier_timestamps(bytes(builder.build()), 1)  # the builder can't begin with −1


def encoded_as_it_comes(data: bytes | bytearray) -> EncodedEntry:
    return PULSAR.encode(data, None, log_append_time=False)


def stored(encoded: EncodedEntry) -> RawEntry:
    metadata = MessageMetadata(producer_name=b"kafka-sidecar-x", sequence_id=3, publish_time=77)
    return RawEntry(
        Position(1, 0), 99, 1_000, metadata.SerializeToString() + encoded.fields, memoryview(bytes(encoded.payload))
    )


def records_of(data: bytes | bytearray) -> list[Record]:
    return [Record(one.key, one.value, one.timestamp, list(one.headers)) for one in DefaultRecordBatch(bytes(data))]


def native(encoded: EncodedEntry) -> list[Message]:
    """What a native consumer makes of it."""
    entry = stored(encoded)
    return read_messages(entry.message_metadata, entry.payload)


@given(
    st.lists(RECORDS, min_size=1, max_size=12),
    st.sampled_from(sorted(CODECS)),
    st.tuples(st.integers(0, 2**62), st.integers(0, 9), st.integers(0, 2**31 - 20)),
)
def test_every_record_comes_back_as_it_was(records: list[Record], codec: int, producer: tuple[int, int, int]) -> None:
    data = produced(records, codec, producer)
    encoded = encoded_as_it_comes(data)
    content = read_entry(stored(encoded))
    assert records_of(content.data) == records
    (header, _) = content.batches[0]
    before = read_header(data)
    for name in (
        "producer_id",
        "producer_epoch",
        "base_sequence",
        "record_count",
        "last_offset_delta",
        "max_timestamp",
    ):
        assert getattr(header, name) == getattr(before, name), name
    assert content.offset_count == len(records)
    ((light, _),) = read_headers(stored(encoded)).batches
    for name in (
        "producer_id",
        "producer_epoch",
        "base_sequence",
        "record_count",
        "last_offset_delta",
        "max_timestamp",
        "last_sequence",
    ):
        assert getattr(light, name) == getattr(header, name), name


def test_native_consumers_see_keys_values_headers_and_times() -> None:
    records = [
        Record(b"key", b"value", 1_700_000_000_000, [("h", b"text"), ("umlaut", "ü".encode())]),
        Record(b"\xff\x00", None, 1_700_000_000_001, [("h", b"\xff"), ("plain", b"1"), ("plain", b"2")]),
        Record(None, b"", 1_700_000_000_002, []),
    ]
    encoded = encoded_as_it_comes(produced(records))
    first, second, third = native(encoded)
    assert (first.key, first.value, first.timestamp) == (b"key", b"value", 1_700_000_000_000)
    assert first.properties == [("h", b"text"), ("umlaut", "ü".encode())]
    assert (second.key, second.value) == (b"\xff\x00", None)
    assert ("plain", b"2") in second.properties
    assert "h" not in dict(second.properties)
    assert (third.key, third.value, third.properties) == (None, b"", [])
    metadata = MessageMetadata.FromString(stored(encoded).metadata)
    assert metadata.num_messages_in_batch == 3


def test_a_key_that_is_no_text_is_marked_as_clients_do() -> None:
    encoded = encoded_as_it_comes(produced([Record(b"\xfe", b"v", 1, [])]))
    assert base64.b64encode(b"\xfe") in bytes(encoded.payload)


@pytest.mark.parametrize("codec", sorted(CODECS), ids=CODECS.get)
def test_what_was_compressed_stays_compressed(codec: int) -> None:
    encoded = encoded_as_it_comes(produced([Record(b"k", b"v" * 5_000, 1, [])] * 20, codec))
    assert (len(encoded.payload) < 10_000) == (codec != 0)
    assert len(native(encoded)) == 20


@pytest.mark.parametrize("codec", sorted(set(CODECS) - {0}), ids=CODECS.get)
def test_records_that_can_not_be_decompressed_are_malformed(codec: int) -> None:
    data = bytearray(produced([Record(b"k", b"v" * 50, 1, [])] * 20, codec))
    data[61:] = data[61:-4] + b"\xff\xff\xff\xff"
    with pytest.raises((BatchMalformed, BatchInvalid)):
        encoded_as_it_comes(data)


def test_a_batch_that_says_more_records_than_it_has_is_refused() -> None:
    data = bytearray(batch(b"a", b"b"))
    data[57:61] = (3).to_bytes(4, "big")
    with pytest.raises((BatchMalformed, BatchInvalid)):
        encoded_as_it_comes(data)


def test_a_batch_of_garbage_is_refused() -> None:
    data = bytearray(batch(b"a" * 30, b"b" * 30))
    data[70:100] = b"\x7f" * 30
    with pytest.raises((BatchMalformed, BatchInvalid)):
        encoded_as_it_comes(data)
