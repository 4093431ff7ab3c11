"""Records of groups, and what classic members say, with other names for their topics."""

from __future__ import annotations

import struct

import pytest

from kafka_sidecar.coordination.home import Translation
from kafka_sidecar.groups.records import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberValue,
    OffsetCommitKey,
    PendingOffsetKey,
    Record,
)
from kafka_sidecar.groups.records.consumer import (
    ClassicMemberMetadata,
    MemberMetadataKey,
    MemberMetadataValue,
    RegularExpressionKey,
    RegularExpressionValue,
)
from kafka_sidecar.groups.records.subscription import (
    read_parts,
    read_subscription,
    renamed_parts,
    renamed_subscription,
    write_parts,
)
from kafka_sidecar.groups.records.translated import translated

NAMES = Translation(lambda name: f"team/{name}", lambda expression: f"team/:{expression}")


def subscription(version: int, *topics: str) -> bytes:
    """As Kafka's clients write it, with user data, what is owned, a generation and a rack."""

    def text(value: str) -> bytes:
        return struct.pack(">h", len(value)) + value.encode()

    said = struct.pack(">hi", version, len(topics)) + b"".join(map(text, topics)) + struct.pack(">i", 4) + b"user"
    if version >= 1:
        said += struct.pack(">i", 1) + text(topics[0]) + struct.pack(">iii", 2, 4, 5)
    if version >= 2:
        said += struct.pack(">i", 7)
    return said + (text("rack") if version >= 3 else b"")


@pytest.mark.parametrize("version", range(4))
def test_a_subscription_keeps_all_but_its_names(version: int) -> None:
    told = renamed_subscription(subscription(version, "a", "b"), NAMES.name)
    found = read_subscription(told)
    assert found.topics == ("team/a", "team/b")
    assert found.owned == ({"team/a": frozenset({4, 5})} if version else {})
    assert found.rack_id == ("rack" if version >= 3 else None)
    assert renamed_subscription(told, lambda name: name.removeprefix("team/")) == subscription(version, "a", "b")


def test_a_subscription_may_end_behind_its_topics_whatever_version_it_says() -> None:
    """kafka-go (groupMetadata) says version 1, and writes nothing of what is owned."""
    said = subscription(0, "a", "b")
    for version in range(4):
        head = struct.pack(">h", version)
        assert renamed_subscription(head + said[2:], NAMES.name) == head + subscription(0, "team/a", "team/b")[2:]


def test_so_does_an_assignment() -> None:
    parts = write_parts({"a": frozenset({1, 2}), "b": frozenset({0})}, 3)
    told = renamed_parts(parts, NAMES.name)
    assert read_parts(told).partitions == {"team/a": frozenset({1, 2}), "team/b": frozenset({0})}
    assert renamed_parts(told, lambda name: name.removeprefix("team/")) == parts


@pytest.mark.parametrize(
    "data",
    [b"", b"\0", b"\0\1\0\0", b"not kafka's at all", b"\0\0\xff\xff\xff\xff" + b"?" * 9, b"\0\1\0\0\0\1\0\2\xff\xfe"],
)
def test_other_bytes_stay_as_they_are(data: bytes) -> None:
    assert renamed_subscription(data, NAMES.name) == data
    assert renamed_parts(data, NAMES.name) == data


def test_the_records_of_a_group_name_their_topics_in_many_places() -> None:
    said, parts = subscription(1, "a"), write_parts({"a": frozenset({0})}, 1)
    member = MemberValue("m", None, "c", "h", 1, 1, said, parts)
    group = GroupMetadataValue("consumer", 1, "range", "m", 0, (member,))
    of_consumer = MemberMetadataValue(
        None, None, "c", "h", ("a", "other/b"), "x.*", 1, None, ClassicMemberMetadata(1, (("range", said),))
    )
    renamed = translated(Record(GroupMetadataKey("g"), group), NAMES).value
    assert renamed == group, "what its members say to each other names topics in full"
    told = translated(Record(MemberMetadataKey("g", "m"), of_consumer), NAMES).value
    assert isinstance(told, MemberMetadataValue)
    assert (told.topics, told.regex) == (("team/a", "other/b"), "team/:x.*")
    assert translated(
        Record(MemberMetadataKey("g", "m"), of_consumer._replace(classic=None)), NAMES
    ).value == told._replace(topics=("team/a", "team/other/b"), classic=None)
    assert translated(Record(OffsetCommitKey("g", "a", 0), None), NAMES) == Record(
        OffsetCommitKey("g", "team/a", 0), None
    )
    assert translated(Record(PendingOffsetKey(7, "g", "a", 0), None), NAMES) == Record(
        PendingOffsetKey(7, "g", "team/a", 0), None
    )
    resolved = Record(RegularExpressionKey("g", "x.*"), RegularExpressionValue(frozenset({"xa"}), 1, 2))
    assert translated(resolved, NAMES) == Record(
        RegularExpressionKey("g", "team/:x.*"), RegularExpressionValue(frozenset({"team/xa"}), 1, 2)
    )
