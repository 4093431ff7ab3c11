"""What stored entries of every kind become, and which are refused by name."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import cramjam
import pytest
from aiokafka.record.default_records import DefaultRecordBatch
from aiokafka.record.memory_records import MemoryRecords
from hypothesis import given
from hypothesis import strategies as st

from kafka_sidecar.errors import EntryUnreadable
from kafka_sidecar.partition.fold.producers import Verdict
from kafka_sidecar.partition.log.basis import BASIS_PROPERTY, KnownProducer
from kafka_sidecar.partition.log.entries import read_entry, read_headers, served_data
from kafka_sidecar.partition.log.formats import PULSAR
from kafka_sidecar.pulsar.entry import Position, RawEntry
from kafka_sidecar.pulsar.pulsar_api_pb2 import MessageMetadata, SingleMessageMetadata
from kafka_sidecar.pulsar.raw_entries import permits_of
from kafka_sidecar.wire.control_records import placeholder
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.records import empty_batch, with_base_offsets
from tests.support.batches import batch
from tests.support.records import records_in

PLAIN: dict[int, Callable[[bytes], Any]] = {
    0: bytes,
    1: cramjam.lz4.compress_block,
    2: cramjam.zlib.compress,
    3: cramjam.zstd.compress,
    4: cramjam.snappy.compress_raw,
}


def _metadata(**fields: object) -> MessageMetadata:
    return MessageMetadata(**{"producer_name": b"p", "sequence_id": 0, "publish_time": 1_234, **fields})  # type: ignore[arg-type]


def _entry(metadata: MessageMetadata, payload: bytes) -> RawEntry:
    return RawEntry(Position(1, 0), 9, None, metadata.SerializeToString(), memoryview(payload))


def _kafka(**fields: object) -> MessageMetadata:
    metadata = _metadata(**fields)
    metadata.properties.add(key=b"entry.format", value=b"kafka")
    return metadata


def _records(data: bytes | bytearray) -> list[tuple[int, bytes | None, bytes | None, int]]:
    found = []
    batches = MemoryRecords(bytes(data))
    while (next_one := batches.next_batch()) is not None:
        found += [(record.offset, record.key, record.value, record.timestamp) for record in next_one]
    return found


def _native_batch(*values: bytes | None) -> bytes:
    out = bytearray()
    for number, value in enumerate(values):
        single = SingleMessageMetadata(
            payload_size=len(value or b""), partition_key=b"k%d" % number, null_value=value is None
        )
        encoded = single.SerializeToString()
        out += struct.pack(">I", len(encoded)) + encoded + (value or b"")
    return bytes(out)


def test_an_entry_of_ours_is_its_batch_untouched() -> None:
    data = batch(b"a", b"b")
    content = read_entry(_entry(_kafka(producer_name=b"kafka-sidecar-x-1", sequence_id=7), data))
    assert (content.data, content.offset_count, content.writer, content.writer_sequence) == (
        data,
        2,
        b"kafka-sidecar-x-1",
        7,
    )
    assert [record[:3] for record in _records(content.with_offsets(40))] == [(40, None, b"a"), (41, None, b"b")]


def test_an_entry_of_kop_may_hold_several_batches() -> None:
    first, second = batch(b"a", b"b"), batch(b"c")
    entry = _entry(_kafka(num_messages_in_batch=3), first + second)
    content = read_entry(entry)
    assert content.offset_count == 3
    assert content.writer is None, "its sequence is not a sidecar's"
    assert [record[:3:2] for record in _records(content.with_offsets(10))] == [(10, b"a"), (11, b"b"), (12, b"c")]
    assert permits_of(entry) == 3, "the broker counts messages, not entries"


@pytest.mark.parametrize("codec", PLAIN)
def test_a_native_message_is_one_record(codec: int) -> None:
    payload = PLAIN[codec](b"value" * 50)
    metadata = _metadata(compression=codec, uncompressed_size=250, partition_key=b"key", event_time=77)
    content = read_entry(_entry(metadata, bytes(payload)))
    assert _records(content.with_offsets(5)) == [(5, b"key", b"value" * 50, 77)]


@pytest.mark.parametrize("codec", PLAIN)
def test_a_native_batch_is_as_many_records(codec: int) -> None:
    plain = _native_batch(b"one", None, b"three")
    metadata = _metadata(compression=codec, uncompressed_size=len(plain), num_messages_in_batch=3)
    content = read_entry(_entry(metadata, bytes(PLAIN[codec](plain))))
    assert content.offset_count == 3
    assert _records(content.with_offsets(5)) == [
        (5, b"k0", b"one", 1_234),
        (6, b"k1", None, 1_234),
        (7, b"k2", b"three", 1_234),
    ]


def test_a_batch_that_compaction_has_thinned_keeps_its_offsets() -> None:
    out = bytearray()
    for number, gone in enumerate((False, False, True)):
        encoded = SingleMessageMetadata(payload_size=1, compacted_out=gone).SerializeToString()
        out += struct.pack(">I", len(encoded)) + encoded + b"%d" % number
    content = read_entry(_entry(_metadata(num_messages_in_batch=3), bytes(out)))
    assert content.offset_count == 3
    assert [record[0] for record in _records(content.with_offsets(20))] == [20, 21]


KEYS = [{"key": b"first", "value": b"v"}, {"key": b"second", "value": b"w"}]


def test_what_is_encrypted_is_one_record_of_the_stored_bytes_that_says_how() -> None:
    metadata = _metadata(
        encryption_keys=KEYS,
        encryption_algo=b"RSA",
        encryption_param=b"iv",
        compression=1,
        uncompressed_size=9,
        num_messages_in_batch=3,
    )
    metadata.properties.add(key=b"mine", value=b"text")
    content = read_entry(_entry(metadata, b"secret"))
    assert content.offset_count == read_headers(_entry(metadata, b"secret")).offset_count == 3
    (record,) = DefaultRecordBatch(bytes(content.with_offsets(5)))
    assert (record.offset, record.key, record.value, record.timestamp) == (7, None, b"secret", 1_234)
    headers = dict(record.headers)
    assert MessageMetadata.FromString(headers.pop("pulsar.metadata")) == metadata
    assert headers == {
        "mine": b"text",
        "pulsar.encryption.keys": b"first,second",
        "pulsar.encryption.algorithm": b"RSA",
    }


def test_a_part_of_a_message_that_is_encrypted_says_which_it_is() -> None:
    metadata = _metadata(encryption_keys=KEYS, num_chunks_from_msg=3, chunk_id=1, uuid=b"u", partition_key=b"key")
    (record,) = DefaultRecordBatch(bytes(read_entry(_entry(metadata, b"part")).data))
    assert (record.key, dict(record.headers)["pulsar.chunk"]) == (b"key", b"1/3")


@pytest.mark.parametrize("batched", [False, True])
def test_what_pulsar_knows_of_a_native_message_is_in_headers(batched: bool) -> None:
    metadata = _metadata(schema_version=b"\0\1", replicated_from=b"elsewhere")
    payload = b"value"
    if batched:
        metadata.num_messages_in_batch = 1
        payload = _native_batch(b"value")
    (record,) = DefaultRecordBatch(bytes(read_entry(_entry(metadata, payload)).data))
    assert list(record.headers) == [("pulsar.schema.version", b"\0\1"), ("pulsar.replicated.from", b"elsewhere")]


def test_what_a_sidecar_of_another_cluster_wrote_is_judged_by_no_place_of_this_one() -> None:
    metadata = _kafka(producer_name=b"kafka-sidecar-x-1", sequence_id=7, replicated_from=b"elsewhere")
    metadata.properties.add(key=BASIS_PROPERTY, value=b"5:7 0 3")
    content = read_entry(_entry(metadata, batch(b"a", producer_id=3, epoch=0, sequence=4)))
    assert (content.writer, content.writer_sequence, content.basis) == (b"elsewhere/kafka-sidecar-x-1", 7, None)
    assert content.known_there == [KnownProducer(0, 3)]
    assert content.is_foreign


@pytest.mark.parametrize(
    ("metadata", "payload", "why"),
    [
        (_kafka(), b"not a batch", "shorter than its header"),
        (_kafka(), b"", "no record batch"),
        (_kafka(), batch(b"a")[:-1], "a record batch says"),
        (_metadata(compression=9, uncompressed_size=3), b"abc", "unknown Pulsar compression"),
        (_metadata(compression=3, uncompressed_size=3), b"abc", "compression 3"),
        (_metadata(compression=1, uncompressed_size=2**31), b"abc", "over the limit"),
        (_metadata(num_messages_in_batch=2), b"abc", "broken batch"),
        (_metadata(num_messages_in_batch=1_000_000_000), b"abc", "can be opened"),
    ],
)
def test_what_can_not_be_read_says_why(metadata: MessageMetadata, payload: bytes, why: str) -> None:
    with pytest.raises(EntryUnreadable, match=why):
        read_entry(_entry(metadata, payload))


@given(metadata=st.binary(max_size=80), payload=st.binary(max_size=200))
def test_any_bytes_are_an_entry_or_unreadable(metadata: bytes, payload: bytes) -> None:
    entry = RawEntry(Position(1, 0), 9, None, metadata, memoryview(payload))
    assert permits_of(entry) >= 1
    try:
        assert read_entry(entry).offset_count >= 1
    except EntryUnreadable:
        pass


_far = st.integers(-2, 5) | st.sampled_from(
    [2**15 - 1, 2**15, 2**31 - 1, 2**31, 2**60, 2**60 + 1, 2**63 - 1, 2**63, -(2**31), -(2**63) - 1]
)


_writers = st.sampled_from([b"kafka-sidecar-1", b"native"])
_counts = st.none() | st.integers(-3, 3) | st.just(250_001)


@given(_writers, _far, _far, _far, _far, st.none() | st.integers(0, 64), _counts)
def test_who_reads_headers_alone_believes_what_who_reads_all_believes(
    writer: bytes, producer_id: int, epoch: int, sequence: int, time: int, attributes: int | None, count: int | None
) -> None:
    """Else a fold would know a batch that others can't read: anybody may have written the entry."""
    facts = b"%d %d %d %d" % (producer_id, epoch, sequence, time) + (b"" if attributes is None else b" %d" % attributes)
    metadata = _metadata(producer_name=writer)
    if count is not None:
        metadata.num_messages_in_batch = count
    metadata.properties.add(key=b"kafka.batch", value=facts)
    entry = _entry(metadata, _native_batch(*[b"value"] * max(1, min(count or 1, 5))))
    try:
        whole = read_entry(entry)
    except EntryUnreadable:
        with pytest.raises(EntryUnreadable):
            read_headers(entry)
        return
    ((header, _),), ((read, _),) = read_headers(entry).batches, whole.batches
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (
        read.producer_id,
        read.producer_epoch,
        read.base_sequence,
    )
    assert (header.max_timestamp, header.offset_count, header.attributes) == (
        read.max_timestamp,
        read.offset_count,
        read.attributes,
    )


@pytest.mark.parametrize("producer", [(-1, -1, -2), (-1, -3, 5)])
def test_a_batch_without_a_producer_may_say_any_epoch_and_sequence(producer: tuple[int, int, int]) -> None:
    """Clients have always been let write them, and releases before this one stored what they said."""
    producer_id, epoch, sequence = producer
    encoded = PULSAR.encode(
        batch(b"a", producer_id=producer_id, epoch=epoch, sequence=sequence), None, log_append_time=False
    )
    old = _metadata(producer_name=b"kafka-sidecar-1", num_messages_in_batch=1)
    old.properties.add(key=b"kafka.batch", value=b"%d %d %d 1000" % producer)
    new = MessageMetadata.FromString(_metadata(producer_name=b"kafka-sidecar-1").SerializeToString() + encoded.fields)
    for metadata, payload in ((new, encoded.payload), (old, _native_batch(b"a"))):
        ((header, _),) = read_entry(_entry(metadata, bytes(payload))).batches
        assert (header.producer_id, header.producer_epoch, header.base_sequence) == (-1, -1, -1)


def test_facts_of_a_batch_count_from_a_sidecar_alone() -> None:
    """A native entry with this property could tell of a batch that its payload does not hold."""
    metadata = _metadata(num_messages_in_batch=2)
    metadata.properties.add(key=b"kafka.batch", value=b"5 0 0 0")
    ((header, _),) = read_headers(_entry(metadata, _native_batch(b"a", b"b"))).batches
    assert not header.has_producer
    with pytest.raises(EntryUnreadable):
        read_headers(_entry(metadata, b"\xff\xff"))


def test_an_entry_whose_basis_is_not_for_its_batches_can_not_be_read() -> None:
    payload = batch(b"a", producer_id=1, epoch=0, sequence=0) + batch(b"b", producer_id=2, epoch=0, sequence=0)
    for basis, readable in (
        (b"1:2 0 4 -1 -1", True),
        (b"1:2 0 4", False),
        (b"1:2 0 4 0 4 0 4", False),
        (b"1:2 0", False),
    ):
        metadata = _kafka(producer_name=b"kafka-sidecar-1")
        metadata.properties.add(key=b"bases", value=basis)
        if readable:
            content = read_entry(_entry(metadata, payload))
            assert content.basis is not None
            assert [tuple(known) for known in content.basis.producers] == [(0, 4), (-1, -1)]
        else:
            with pytest.raises(EntryUnreadable):
                read_entry(_entry(metadata, payload))


GOOD = Verdict(ErrorCode.NONE, 0)
BAD = Verdict(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)


def test_a_placeholder_stands_for_a_refused_batch_among_others() -> None:
    content = read_entry(_entry(_kafka(num_messages_in_batch=4), batch(b"a", b"b") + batch(b"c") + batch(b"d")))
    placed = with_base_offsets(served_data(content, [GOOD, BAD, GOOD]), 10)
    assert list(records_in([placed])) == [(10, b"a"), (11, b"b"), (13, b"d")]
    assert served_data(content, [GOOD] * 3) is content.data


def test_a_placeholder_has_the_time_of_the_batch_that_it_stands_for() -> None:
    content = read_entry(_entry(_kafka(num_messages_in_batch=3), batch(b"a", b"b") + batch(b"c")))
    expected = [placeholder(0, header.offset_count, header.max_timestamp) for header, _ in content.batches]
    assert served_data(content, [BAD, BAD]) == b"".join(expected)


@pytest.mark.parametrize("others", [b"", batch(b"a")])
def test_a_placeholder_stands_for_what_was_written_without_a_record(others: bytes) -> None:
    content = read_entry(_entry(_kafka(num_messages_in_batch=4), others + empty_batch(3)))
    assert bytes(served_data(content, [GOOD] * len(content.batches))) == others + placeholder(0, 3)
