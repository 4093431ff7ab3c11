"""Kafka's records of `__consumer_offsets`: bytes as Kafka writes them, in every version."""

from __future__ import annotations

import struct
import uuid

import pytest
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from hypothesis import given
from hypothesis import strategies as st

from kafka_sidecar.coordination.shards import shard_of
from kafka_sidecar.groups.legacy import LegacyBatches
from kafka_sidecar.groups.records import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberValue,
    OffsetCommitKey,
    OffsetCommitValue,
    Record,
    RecordUnreadable,
    read_record,
    subscribed_topics,
    write_key,
    write_value,
)

TEXT = st.text(max_size=20).filter(lambda text: text < "\ud800" or text.isprintable())
I32 = st.integers(0, 2**31 - 1)
I64 = st.integers(-1, 2**63 - 1)
IDS = st.none() | st.uuids().filter(lambda one: one.int != 0)
OFFSETS = st.builds(OffsetCommitValue, I64, st.integers(-1, 100), TEXT, I64, st.just(-1), IDS) | st.builds(
    OffsetCommitValue, I64, st.just(-1), TEXT, I64, st.integers(0, 2**62), st.none()
)
MEMBERS = st.builds(
    MemberValue, TEXT, st.none() | TEXT, TEXT, TEXT, I32, I32, st.binary(max_size=30), st.binary(max_size=30)
)
GROUPS = st.builds(
    GroupMetadataValue, TEXT, I32, st.none() | TEXT, st.none() | TEXT, I64, st.lists(MEMBERS, max_size=3).map(tuple)
)


RECORDS = st.builds(Record, st.builds(OffsetCommitKey, TEXT, TEXT, I32), st.none() | OFFSETS)
RECORDS |= st.builds(Record, st.builds(GroupMetadataKey, TEXT), st.none() | GROUPS)


@given(RECORDS)
def test_what_is_written_is_read(record: Record) -> None:
    value = None if record.value is None else write_value(record.value)
    assert read_record(write_key(record.key), value) == record


@given(st.binary(max_size=80), st.binary(max_size=80))
def test_nonsense_is_refused_and_nothing_worse(key: bytes, value: bytes) -> None:
    try:
        read_record(key, value)
    except RecordUnreadable:
        pass


def test_an_offset_with_the_id_of_its_topic_as_kafka_4_2_writes_it() -> None:
    topic_id = uuid.UUID("00010203-0405-0607-0809-0a0b0c0d0e0f")
    value = bytes.fromhex(
        "0004 000000000000002a 00000007 02 6d 0000000000000064 01 00 10 000102030405060708090a0b0c0d0e0f"
    )
    record = Record(OffsetCommitKey("g", "t", 5), OffsetCommitValue(42, 7, "m", 100, -1, topic_id))
    assert write_value(record.value) == value  # type: ignore[arg-type]
    assert read_record(write_key(record.key), value) == record
    unknown_tag = bytes.fromhex("0004 000000000000002a 00000007 02 6d 0000000000000064 01 05 01 ff")
    assert read_record(write_key(record.key), unknown_tag) == Record(record.key, OffsetCommitValue(42, 7, "m", 100, -1))


def test_an_offset_as_kafka_4_writes_it() -> None:
    key = bytes.fromhex("0001 0001 67 0001 74 00000005")
    value = bytes.fromhex("0003 000000000000002a 00000007 0001 6d 0000000000000064")
    record = Record(OffsetCommitKey("g", "t", 5), OffsetCommitValue(42, 7, "m", 100, -1))
    assert read_record(key, value) == record
    assert (write_key(record.key), write_value(OffsetCommitValue(42, 7, "m", 100, -1))) == (key, value)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("0000 0000000000000001 0000 0000000000000002", OffsetCommitValue(1, -1, "", 2, -1)),
        ("0001 0000000000000001 0000 0000000000000002 0000000000000003", OffsetCommitValue(1, -1, "", 2, 3)),
        ("0002 0000000000000001 0000 0000000000000002", OffsetCommitValue(1, -1, "", 2, -1)),
        ("0004 0000000000000001 00000009 02 6d 0000000000000002 00", OffsetCommitValue(1, 9, "m", 2, -1)),
        # A tagged field of a later Kafka.
        ("0004 0000000000000001 00000009 02 6d 0000000000000002 01 00 02 ffff", OffsetCommitValue(1, 9, "m", 2, -1)),
    ],
)
def test_offsets_of_every_version_are_read(value: str, expected: OffsetCommitValue) -> None:
    assert read_record(write_key(OffsetCommitKey("g", "t", 0)), bytes.fromhex(value)) == Record(
        OffsetCommitKey("g", "t", 0), expected
    )


def test_kinds_of_later_versions_are_passed_over() -> None:
    assert read_record(struct.pack(">h", 9) + b"anything", b"") is None


@pytest.mark.parametrize(
    ("group", "expected"),
    # Java's hashes: 0, 98, −2147483648, −1906497762, 17317530.
    [("", 0), ("b", 48), ("polygenelubricants", 2), ("my-group", 38), ("ü€𝄞", 30)],
)
def test_a_group_has_the_partition_that_kafka_on_pulsar_gave_it(group: str, expected: int) -> None:
    assert shard_of(group, 50) == expected


def test_the_topics_of_a_subscription() -> None:
    subscription = struct.pack(">hi", 3, 2) + b"\0\x01a\0\x02bc" + struct.pack(">i", -1) + b"more of later versions"
    assert subscribed_topics(subscription) == ("a", "bc")


def _kop(pairs: list[tuple[bytes, bytes | None]], *, producer_id: int = -1, transactional: bool = False) -> bytes:
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=0,
        is_transactional=int(transactional),
        producer_id=producer_id,
        producer_epoch=0 if producer_id >= 0 else -1,
        base_sequence=0 if producer_id >= 0 else -1,
        batch_size=10**6,
    )
    for delta, (key, value) in enumerate(pairs):
        builder.append(delta, 1_000, key, value, [])
    return bytes(builder.build())


def test_what_kafka_on_pulsar_wrote_is_found_in_its_batches() -> None:
    pairs: list[tuple[bytes, bytes | None]] = [
        (write_key(OffsetCommitKey("g", "t", index)), b"v%d" % index) for index in range(3)
    ]
    assert LegacyBatches().records(_kop(pairs)) == pairs


def test_offsets_of_a_transaction_count_when_it_is_committed() -> None:
    from kafka_sidecar.wire.crc import crc32c

    def marker(kind: int) -> bytes:
        batch = bytearray(_kop([(struct.pack(">hh", 0, kind), b"\0\0\0\0\0\0")], producer_id=7, transactional=True))
        batch[22] |= 0x20
        batch[17:21] = crc32c(bytes(batch[21:])).to_bytes(4, "big")
        return bytes(batch)

    adopted = LegacyBatches()
    assert adopted.records(_kop([(b"k", b"lost")], producer_id=7, transactional=True)) == []
    assert adopted.records(marker(0)) == []
    assert adopted.records(_kop([(b"k", b"kept")], producer_id=7, transactional=True)) == []
    assert adopted.records(marker(1)) == [(b"k", b"kept")]


@given(st.binary(max_size=100))
def test_a_value_that_is_no_batch_is_itself(value: bytes) -> None:
    assert LegacyBatches().records(value) is None


@given(OFFSETS)
def test_our_own_values_are_never_taken_for_batches(value: OffsetCommitValue) -> None:
    assert LegacyBatches().records(write_value(value)) is None
