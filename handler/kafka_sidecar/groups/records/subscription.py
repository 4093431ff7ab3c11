"""Subscriptions and assignments of members of the classic protocol (ConsumerProtocolSubscription,
ConsumerProtocolAssignment).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from kafka_sidecar.wire.buffers import Reader
from kafka_sidecar.wire.primitives import NEVER_FLEXIBLE, RecordUnreadable, array, data, reading, text, versioned

HIGHEST: Final = 3
OWNED_SINCE: Final = 1
GENERATION_SINCE: Final = 2
RACK_SINCE: Final = 3

Partitions = dict[str, frozenset[int]]


class Subscription(NamedTuple):
    version: int
    topics: tuple[str, ...]
    owned: Partitions
    rack_id: str | None


class Parts(NamedTuple):
    partitions: Partitions
    user_data: bytes


def read_subscription(value: bytes) -> Subscription:
    with reading("a subscription"):
        version, reader = versioned(value, NEVER_FLEXIBLE)
        topics = tuple(reader.string_array())
        reader.nullable_bytes()
        owned = _partitions(reader) if version >= OWNED_SINCE else {}
        if version >= GENERATION_SINCE:
            reader.int32()
        return Subscription(version, topics, owned, reader.nullable_string() if version >= RACK_SINCE else None)


def subscribed_topics(value: bytes) -> tuple[str, ...]:
    """The topics alone: every version begins with them."""
    with reading("a subscription"):
        return tuple(versioned(value, NEVER_FLEXIBLE)[1].string_array())


def read_parts(value: bytes) -> Parts:
    """A member's assignment. One that has never had any has no bytes at all."""
    if not value:
        return Parts({}, b"")
    with reading("an assignment"):
        _, reader = versioned(value, NEVER_FLEXIBLE)
        return Parts(_partitions(reader), reader.nullable_bytes() or b"")


def write_parts(partitions: Mapping[str, frozenset[int]], version: int) -> bytes:
    """In the version of the member's own subscription."""
    topics = (
        text(name) + array(struct.pack(">i", index) for index in sorted(indexes))
        for name, indexes in sorted(partitions.items())
    )
    return struct.pack(">h", max(0, min(version, HIGHEST))) + array(topics) + b"\xff\xff\xff\xff"


def renamed_subscription(value: bytes, rename: Callable[[str], str]) -> bytes:
    """A subscription with other names for its topics. What can't be read stays as it is. (kafka-go says version 1, and
    does not write what is owned.)
    """
    try:
        with reading("a subscription"):
            version, reader = versioned(value, NEVER_FLEXIBLE)
            topics = reader.string_array()
    except RecordUnreadable:
        return value
    if not topics:
        return value
    behind = reader.rest()
    owned = _renamed_owned(behind, rename) if version >= OWNED_SINCE else behind
    return struct.pack(">h", version) + array(text(rename(topic)) for topic in topics) + owned


def _renamed_owned(value: bytes, rename: Callable[[str], str]) -> bytes:
    """What stands behind the topics: user data, and what is owned."""
    reader = Reader(memoryview(value))
    try:
        with reading("what a member owns"):
            return _data(reader.nullable_bytes()) + _renamed_partitions(reader, rename) + reader.rest()
    except RecordUnreadable:
        return value


def renamed_parts(value: bytes, rename: Callable[[str], str]) -> bytes:
    """The same of an assignment. Those of other protocols, of Kafka Connect for example, are no such bytes."""
    try:
        with reading("an assignment"):
            version, reader = versioned(value, NEVER_FLEXIBLE)
            partitions, user_data = _renamed_partitions(reader, rename), reader.nullable_bytes()
            is_one = 0 <= version <= HIGHEST and not reader.rest()
            return struct.pack(">h", version) + partitions + _data(user_data) if is_one else value
    except RecordUnreadable:
        return value


def _renamed_partitions(reader: Reader, rename: Callable[[str], str]) -> bytes:
    found = reader.array(_topic, 0)
    return array(text(rename(topic)) + array(struct.pack(">i", index) for index in indexes) for topic, indexes in found)


def _data(value: bytes | None) -> bytes:
    return b"\xff\xff\xff\xff" if value is None else data(value)


def _partitions(reader: Reader) -> Partitions:
    found: Partitions = {}
    for name, indexes in reader.array(_topic, 0):
        found[name] = found.get(name, frozenset()) | frozenset(indexes)
    return found


def _topic(reader: Reader, _: int) -> tuple[str, list[int]]:
    return reader.string(), reader.int32_array()
