"""The records of a consumer group: bytes as Kafka 4.2 writes them."""

from __future__ import annotations

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_sidecar.groups.records import Record, RecordUnreadable, read_record, write_key, write_value
from kafka_sidecar.groups.records.consumer import (
    ClassicMemberMetadata,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    CurrentMemberAssignmentKey,
    CurrentMemberAssignmentValue,
    MemberMetadataKey,
    MemberMetadataValue,
    PartitionMetadataKey,
    RegularExpressionKey,
    RegularExpressionValue,
    TargetAssignmentMemberKey,
    TargetAssignmentMemberValue,
    TargetAssignmentMetadataKey,
    TargetAssignmentMetadataValue,
)
from kafka_sidecar.groups.records.subscription import Subscription, read_parts, read_subscription, write_parts

TOPIC = uuid.UUID(int=1 << 64 | 2)
TWO = frozenset({0, 2})

# Made with the classes of Kafka 4.2 (org.apache.kafka.coordinator.group.generated).
KAFKA = {
    "epoch": (
        "0003000167",
        "0000000000070100080000000000000063",
        Record(ConsumerGroupMetadataKey("g"), ConsumerGroupMetadataValue(7, 99)),
    ),
    "epoch without a hash": (
        "0003000167",
        "00000000000700",
        Record(ConsumerGroupMetadataKey("g"), ConsumerGroupMetadataValue(7, 0)),
    ),
    "member": (
        "000500016700016d",
        "00000269000263032f68030261026204722e2a000003e80672616e676500",
        Record(
            MemberMetadataKey("g", "m"),
            MemberMetadataValue("i", None, "c", "/h", ("a", "b"), "r.*", 1000, "range", None),
        ),
    ),
    "member of the classic protocol": (
        "000500016700016d",
        "000000026b0263032f680100000003e8000100110100000009020672616e67650301020000",
        Record(
            MemberMetadataKey("g", "m"),
            MemberMetadataValue(
                None, "k", "c", "/h", (), None, 1000, None, ClassicMemberMetadata(9, (("range", b"\x01\x02"),))
            ),
        ),
    ),
    "epoch of the target": (
        "0006000167",
        "00000000000300",
        Record(TargetAssignmentMetadataKey("g"), TargetAssignmentMetadataValue(3)),
    ),
    "target": (
        "000700016700016d",
        "000002000000000000000100000000000000020300000000000000020000",
        Record(TargetAssignmentMemberKey("g", "m"), TargetAssignmentMemberValue({TOPIC: TWO})),
    ),
    "current": (
        "000800016700016d",
        "00000000000400000003010200000000000000010000000000000002020000000000020000000000000001000000000000000202000000020000",
        Record(
            CurrentMemberAssignmentKey("g", "m"),
            CurrentMemberAssignmentValue(4, 3, 1, {TOPIC: frozenset({0})}, {TOPIC: frozenset({2})}),
        ),
    ),
    "regex": (
        "00100001670003722e2a",
        "0000030372610372620000000000000005000000000000000600",
        Record(RegularExpressionKey("g", "r.*"), RegularExpressionValue(frozenset({"ra", "rb"}), 5, 6)),
    ),
}


@pytest.mark.parametrize("kind", KAFKA)
def test_a_record_is_kafkas(kind: str) -> None:
    key, value, record = KAFKA[kind]
    assert read_record(bytes.fromhex(key), bytes.fromhex(value)) == record
    assert record.value is not None
    assert write_key(record.key) == bytes.fromhex(key)
    assert write_value(record.value) == bytes.fromhex(value)


def test_the_topics_that_kafka_4_0_stored_are_known_by_their_key_and_not_read() -> None:
    assert read_record(bytes.fromhex("0004000167"), b"\0\0 anything") == Record(PartitionMetadataKey("g"), None)
    assert write_key(PartitionMetadataKey("g")) == bytes.fromhex("0004000167")


TEXT = st.text(max_size=12).filter(lambda text: text.isprintable())
I32 = st.integers(0, 2**31 - 1)
ASSIGNMENTS = st.dictionaries(st.uuids(), st.frozensets(I32, max_size=4), max_size=3)
CLASSICS = st.builds(
    ClassicMemberMetadata, I32, st.lists(st.tuples(TEXT, st.binary(max_size=9)), max_size=3).map(tuple)
)
NAMES = st.lists(TEXT, max_size=4).map(tuple)
MEMBERS = st.builds(
    MemberMetadataValue,
    st.none() | TEXT,
    st.none() | TEXT,
    TEXT,
    TEXT,
    NAMES,
    st.none() | TEXT,
    I32,
    st.none() | TEXT,
    st.none() | CLASSICS,
)
RECORDS = (
    st.builds(
        Record,
        st.builds(ConsumerGroupMetadataKey, TEXT),
        st.none() | st.builds(ConsumerGroupMetadataValue, I32, st.integers(-(2**63), 2**63 - 1)),
    )
    | st.builds(Record, st.builds(MemberMetadataKey, TEXT, TEXT), st.none() | MEMBERS)
    | st.builds(
        Record,
        st.builds(TargetAssignmentMemberKey, TEXT, TEXT),
        st.none() | st.builds(TargetAssignmentMemberValue, ASSIGNMENTS),
    )
    | st.builds(
        Record,
        st.builds(CurrentMemberAssignmentKey, TEXT, TEXT),
        st.none() | st.builds(CurrentMemberAssignmentValue, I32, I32, st.integers(0, 127), ASSIGNMENTS, ASSIGNMENTS),
    )
    | st.builds(
        Record,
        st.builds(RegularExpressionKey, TEXT, TEXT),
        st.none() | st.builds(RegularExpressionValue, st.frozensets(TEXT, max_size=4), I32, I32),
    )
)


@given(RECORDS)
def test_what_is_written_is_read(record: Record) -> None:
    assert read_record(write_key(record.key), None if record.value is None else write_value(record.value)) == record


@given(RECORDS, st.data())
def test_a_record_that_was_cut_is_refused_and_nothing_worse(record: Record, data: st.DataObject) -> None:
    if record.value is not None:
        value = write_value(record.value)
        with pytest.raises(RecordUnreadable):
            read_record(write_key(record.key), value[: data.draw(st.integers(0, len(value) - 1))])


def test_a_subscription_as_clients_write_it() -> None:
    value = bytes.fromhex("0003 00000001 0001 74 ffffffff 00000001 0001 74 00000002 00000000 00000002 00000005 0001 72")
    assert read_subscription(value) == Subscription(3, ("t",), {"t": TWO}, "r")


@given(st.dictionaries(TEXT, st.frozensets(I32, max_size=4), max_size=3), st.integers(-1, 9))
def test_an_assignment_in_the_version_of_its_member(partitions: dict[str, frozenset[int]], version: int) -> None:
    value = write_parts(partitions, version)
    assert read_parts(value).partitions == partitions
    assert 0 <= int.from_bytes(value[:2]) <= 3


def test_no_bytes_are_no_assignment() -> None:
    assert read_parts(b"").partitions == {}
