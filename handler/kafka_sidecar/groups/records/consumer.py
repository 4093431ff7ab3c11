"""A consumer group (KIP-848): key kinds 3 to 8 and 16. All values are version 0 and flexible."""

from __future__ import annotations

import struct
import uuid
from collections.abc import Mapping
from dataclasses import astuple, dataclass, fields
from typing import Final, NamedTuple

from kafka_sidecar.wire.buffers import Reader
from kafka_sidecar.wire.primitives import NO_TAGS, compact_array, compact_data, compact_text, tagged, text, versioned

VERSION: Final = b"\x00\x00"
# All versions of these records use the flexible encoding.
FLEXIBLE_SINCE: Final = 0
METADATA_HASH_TAG: Final = 0
CLASSIC_TAG: Final = 0
_UUID: Final = struct.Struct("16s")

# Partitions by topic id. Never changed in place.
Assignment = Mapping[uuid.UUID, frozenset[int]]


# Keys are no tuples: tuples of one member, or of one group, would be equal even if their record types differ.


@dataclass(frozen=True, slots=True)
class ConsumerGroupMetadataKey:
    """A group is there as long as this is."""

    group: str


@dataclass(frozen=True, slots=True)
class PartitionMetadataKey:
    """Before Kafka 4.1. Only to be deleted."""

    group: str


@dataclass(frozen=True, slots=True)
class MemberMetadataKey:
    group: str
    member: str


@dataclass(frozen=True, slots=True)
class TargetAssignmentMetadataKey:
    group: str


@dataclass(frozen=True, slots=True)
class TargetAssignmentMemberKey:
    group: str
    member: str


@dataclass(frozen=True, slots=True)
class CurrentMemberAssignmentKey:
    group: str
    member: str


@dataclass(frozen=True, slots=True)
class RegularExpressionKey:
    group: str
    regex: str


class ConsumerGroupMetadataValue(NamedTuple):
    epoch: int
    metadata_hash: int  # Kafka's MetadataHash of all inputs of the assignment; 0 if unknown


class ClassicMemberMetadata(NamedTuple):
    """A member's JoinGroup, if it joined by the classic protocol."""

    session_timeout: int
    protocols: tuple[tuple[str, bytes], ...]


class MemberMetadataValue(NamedTuple):
    """A member, as it described itself."""

    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    topics: tuple[str, ...]
    regex: str | None
    rebalance_timeout: int
    assignor: str | None
    classic: ClassicMemberMetadata | None


class TargetAssignmentMetadataValue(NamedTuple):
    epoch: int


class TargetAssignmentMemberValue(NamedTuple):
    partitions: Assignment


class CurrentMemberAssignmentValue(NamedTuple):
    epoch: int
    previous_epoch: int
    state: int
    assigned: Assignment
    revoking: Assignment


class RegularExpressionValue(NamedTuple):
    topics: frozenset[str]
    version: int
    resolved_at: int


ConsumerKey = (
    ConsumerGroupMetadataKey
    | PartitionMetadataKey
    | MemberMetadataKey
    | TargetAssignmentMetadataKey
    | TargetAssignmentMemberKey
    | CurrentMemberAssignmentKey
    | RegularExpressionKey
)
ConsumerValue = (
    ConsumerGroupMetadataValue
    | MemberMetadataValue
    | TargetAssignmentMetadataValue
    | TargetAssignmentMemberValue
    | CurrentMemberAssignmentValue
    | RegularExpressionValue
)

KINDS: Final[dict[int, type[ConsumerKey]]] = {
    3: ConsumerGroupMetadataKey,
    4: PartitionMetadataKey,
    5: MemberMetadataKey,
    6: TargetAssignmentMetadataKey,
    7: TargetAssignmentMemberKey,
    8: CurrentMemberAssignmentKey,
    16: RegularExpressionKey,
}
_KIND_OF: Final = {key: kind for kind, key in KINDS.items()}


# --- reading


def read_key(kind: int, reader: Reader) -> ConsumerKey:
    key = KINDS[kind]
    return key(*(reader.string() for _ in fields(key)))


def read_value(key: ConsumerKey, value: bytes) -> ConsumerValue | None:
    """None for a kind that is not looked at any more."""
    if isinstance(key, PartitionMetadataKey):
        return None
    return _value(key, versioned(value, FLEXIBLE_SINCE)[1])


def _value(key: ConsumerKey, reader: Reader) -> ConsumerValue:
    found: ConsumerValue
    match key:
        case ConsumerGroupMetadataKey():
            epoch = reader.int32()
            hashed = dict(reader.tagged_fields()).get(METADATA_HASH_TAG)
            return ConsumerGroupMetadataValue(epoch, 0 if hashed is None else hashed.int64())
        case MemberMetadataKey():
            return _subscription(reader)
        case TargetAssignmentMetadataKey():
            found = TargetAssignmentMetadataValue(reader.int32())
        case TargetAssignmentMemberKey():
            found = TargetAssignmentMemberValue(_assignment(reader))
        case CurrentMemberAssignmentKey():
            numbers = reader.int32(), reader.int32(), reader.int8()
            found = CurrentMemberAssignmentValue(*numbers, _assignment(reader), _assignment(reader))
        case _:
            found = RegularExpressionValue(frozenset(reader.string_array()), reader.int64(), reader.int64())
    reader.skip_tagged_fields()
    return found


def _subscription(reader: Reader) -> MemberMetadataValue:
    names = reader.nullable_string(), reader.nullable_string(), reader.string(), reader.string()
    topics, regex = tuple(reader.string_array()), reader.nullable_string()
    rebalance_timeout, assignor = reader.int32(), reader.nullable_string()
    field = dict(reader.tagged_fields()).get(CLASSIC_TAG)
    classic = None if field is None else field.nullable_struct(_classic, 0)
    return MemberMetadataValue(*names, topics, regex, rebalance_timeout, assignor, classic)


def _classic(reader: Reader, version: int) -> ClassicMemberMetadata:
    return ClassicMemberMetadata(reader.int32(), tuple(reader.array(_protocol, version)))


def _protocol(reader: Reader, _: int) -> tuple[str, bytes]:
    name, metadata = reader.string(), reader.bytes_()
    reader.skip_tagged_fields()
    return name, metadata


def _assignment(reader: Reader) -> Assignment:
    return dict(reader.array(_assigned, 0))


def _assigned(reader: Reader, _: int) -> tuple[uuid.UUID, frozenset[int]]:
    topic_id, partitions = uuid.UUID(bytes=reader.unpack(_UUID)[0]), frozenset(reader.int32_array())
    reader.skip_tagged_fields()
    return topic_id, partitions


# --- writing


def write_key(key: ConsumerKey) -> bytes:
    return struct.pack(">h", _KIND_OF[type(key)]) + b"".join(map(text, astuple(key)))


def write_value(value: ConsumerValue) -> bytes:
    match value:
        case ConsumerGroupMetadataValue():
            tags = tagged(METADATA_HASH_TAG, struct.pack(">q", value.metadata_hash)) if value.metadata_hash else NO_TAGS
            return VERSION + struct.pack(">i", value.epoch) + tags
        case MemberMetadataValue():
            return VERSION + _write_subscription(value)
        case TargetAssignmentMetadataValue():
            return VERSION + struct.pack(">i", value.epoch) + NO_TAGS
        case TargetAssignmentMemberValue():
            return VERSION + _write_assignment(value.partitions) + NO_TAGS
        case CurrentMemberAssignmentValue():
            numbers = struct.pack(">iib", value.epoch, value.previous_epoch, value.state)
            return VERSION + numbers + _write_assignment(value.assigned) + _write_assignment(value.revoking) + NO_TAGS
        case RegularExpressionValue():
            topics = compact_array(map(compact_text, sorted(value.topics)))
            return VERSION + topics + struct.pack(">qq", value.version, value.resolved_at) + NO_TAGS


def _write_subscription(value: MemberMetadataValue) -> bytes:
    out = b"".join(map(compact_text, (value.instance_id, value.rack_id, value.client_id, value.client_host)))
    out += compact_array(map(compact_text, value.topics)) + compact_text(value.regex)
    out += struct.pack(">i", value.rebalance_timeout) + compact_text(value.assignor)
    return out + (NO_TAGS if value.classic is None else tagged(CLASSIC_TAG, _write_classic(value.classic)))


def _write_classic(value: ClassicMemberMetadata) -> bytes:
    protocols = (compact_text(name) + compact_data(metadata) + NO_TAGS for name, metadata in value.protocols)
    return b"\x01" + struct.pack(">i", value.session_timeout) + compact_array(protocols) + NO_TAGS


def _write_assignment(assignment: Assignment) -> bytes:
    return compact_array(
        topic_id.bytes + compact_array(struct.pack(">i", index) for index in sorted(indexes)) + NO_TAGS
        for topic_id, indexes in sorted(assignment.items())
    )
