"""A consumer group (KIP-848): key kinds 3 to 8 and 16. All values are version 0 and flexible."""

from __future__ import annotations

import struct
import uuid
from collections.abc import Mapping
from dataclasses import astuple, dataclass, fields
from typing import Final, NamedTuple

from handler.groups.records.primitives import (
    NO_TAGS,
    Reader,
    compact_array,
    compact_data,
    compact_text,
    tagged,
    text,
)  # fmt: skip

VERSION: Final = b"\x00\x00"
METADATA_HASH_TAG: Final = 0
CLASSIC_TAG: Final = 0

# Partitions by topic id. Never changed in place.
Assignment = Mapping[uuid.UUID, frozenset[int]]


# Keys are no tuples: those of one member, or one group, differ by their kind alone.


@dataclass(frozen=True, slots=True)
class EpochKey:
    """A group is there as long as this is."""

    group: str


@dataclass(frozen=True, slots=True)
class TopicsKey:
    """Before Kafka 4.1. Only to be deleted."""

    group: str


@dataclass(frozen=True, slots=True)
class MemberKey:
    group: str
    member: str


@dataclass(frozen=True, slots=True)
class TargetEpochKey:
    group: str


@dataclass(frozen=True, slots=True)
class TargetKey:
    group: str
    member: str


@dataclass(frozen=True, slots=True)
class CurrentKey:
    group: str
    member: str


@dataclass(frozen=True, slots=True)
class RegexKey:
    group: str
    regex: str


class EpochValue(NamedTuple):
    epoch: int
    basis: int  # Kafka's metadata hash: of what the group is assigned by, 0 where that is not known


class ClassicValue(NamedTuple):
    """What a member told when it joined by the classic protocol."""

    session_timeout: int
    protocols: tuple[tuple[str, bytes], ...]


class SubscriptionValue(NamedTuple):
    """A member, as it described itself."""

    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    topics: tuple[str, ...]
    regex: str | None
    rebalance_timeout: int
    assignor: str | None
    classic: ClassicValue | None


class TargetEpochValue(NamedTuple):
    epoch: int


class TargetValue(NamedTuple):
    partitions: Assignment


class CurrentValue(NamedTuple):
    epoch: int
    previous_epoch: int
    state: int
    assigned: Assignment
    revoking: Assignment


class RegexValue(NamedTuple):
    topics: frozenset[str]
    version: int
    resolved_at: int


ConsumerKey = EpochKey | TopicsKey | MemberKey | TargetEpochKey | TargetKey | CurrentKey | RegexKey
ConsumerValue = EpochValue | SubscriptionValue | TargetEpochValue | TargetValue | CurrentValue | RegexValue

KINDS: Final[dict[int, type[ConsumerKey]]] = {
    3: EpochKey, 4: TopicsKey, 5: MemberKey, 6: TargetEpochKey, 7: TargetKey, 8: CurrentKey, 16: RegexKey,
}  # fmt: skip
_KIND_OF: Final = {key: kind for kind, key in KINDS.items()}


# --- reading


def read_key(kind: int, reader: Reader) -> ConsumerKey:
    key = KINDS[kind]
    return key(*(reader.text() for _ in fields(key)))


def read_value(key: ConsumerKey, value: bytes) -> ConsumerValue | None:
    """None for a kind that is not looked at any more."""
    if isinstance(key, TopicsKey):
        return None
    reader = Reader(value, flexible=True)
    reader.number(">h")
    return _value(key, reader)


def _value(key: ConsumerKey, reader: Reader) -> ConsumerValue:
    found: ConsumerValue
    match key:
        case EpochKey():
            epoch = reader.number(">i")
            hashed = reader.tags().get(METADATA_HASH_TAG)
            return EpochValue(epoch, 0 if hashed is None else Reader(hashed).number(">q"))
        case MemberKey():
            return _subscription(reader)
        case TargetEpochKey():
            found = TargetEpochValue(reader.number(">i"))
        case TargetKey():
            found = TargetValue(_assignment(reader))
        case CurrentKey():
            numbers = reader.number(">i"), reader.number(">i"), reader.number(">b")
            found = CurrentValue(*numbers, _assignment(reader), _assignment(reader))
        case _:
            found = RegexValue(frozenset(reader.array(reader.text)), reader.number(">q"), reader.number(">q"))
    reader.tags()
    return found


def _subscription(reader: Reader) -> SubscriptionValue:
    names = reader.nullable_text(), reader.nullable_text(), reader.text(), reader.text()
    topics, regex = tuple(reader.array(reader.text)), reader.nullable_text()
    rebalance_timeout, assignor = reader.number(">i"), reader.nullable_text()
    classic = reader.tags().get(CLASSIC_TAG)
    return SubscriptionValue(*names, topics, regex, rebalance_timeout, assignor, None if classic is None else _classic(classic))


def _classic(value: bytes) -> ClassicValue | None:
    reader = Reader(value, flexible=True)
    if not reader.varint():  # a nullable struct in a tagged field says so itself
        return None

    def protocol() -> tuple[str, bytes]:
        name, metadata = reader.text(), reader.data()
        reader.tags()
        return name, metadata

    return ClassicValue(reader.number(">i"), tuple(reader.array(protocol)))


def _assignment(reader: Reader) -> Assignment:
    def topic() -> tuple[uuid.UUID, frozenset[int]]:
        found = reader.uuid(), reader.numbers()
        reader.tags()
        return found

    return dict(reader.array(topic))


# --- writing


def write_key(key: ConsumerKey) -> bytes:
    return struct.pack(">h", _KIND_OF[type(key)]) + b"".join(map(text, astuple(key)))


def write_value(value: ConsumerValue) -> bytes:
    match value:
        case EpochValue():
            tags = tagged(METADATA_HASH_TAG, struct.pack(">q", value.basis)) if value.basis else NO_TAGS
            return VERSION + struct.pack(">i", value.epoch) + tags
        case SubscriptionValue():
            return VERSION + _write_subscription(value)
        case TargetEpochValue():
            return VERSION + struct.pack(">i", value.epoch) + NO_TAGS
        case TargetValue():
            return VERSION + _write_assignment(value.partitions) + NO_TAGS
        case CurrentValue():
            numbers = struct.pack(">iib", value.epoch, value.previous_epoch, value.state)
            return VERSION + numbers + _write_assignment(value.assigned) + _write_assignment(value.revoking) + NO_TAGS
        case RegexValue():
            topics = compact_array(map(compact_text, sorted(value.topics)))
            return VERSION + topics + struct.pack(">qq", value.version, value.resolved_at) + NO_TAGS


def _write_subscription(value: SubscriptionValue) -> bytes:
    out = b"".join(map(compact_text, (value.instance_id, value.rack_id, value.client_id, value.client_host)))
    out += compact_array(map(compact_text, value.topics)) + compact_text(value.regex)
    out += struct.pack(">i", value.rebalance_timeout) + compact_text(value.assignor)
    return out + (NO_TAGS if value.classic is None else tagged(CLASSIC_TAG, _write_classic(value.classic)))


def _write_classic(value: ClassicValue) -> bytes:
    protocols = (compact_text(name) + compact_data(metadata) + NO_TAGS for name, metadata in value.protocols)
    return b"\x01" + struct.pack(">i", value.session_timeout) + compact_array(protocols) + NO_TAGS


def _write_assignment(assignment: Assignment) -> bytes:
    return compact_array(
        topic_id.bytes + compact_array(struct.pack(">i", index) for index in sorted(indexes)) + NO_TAGS
        for topic_id, indexes in sorted(assignment.items())
    )
