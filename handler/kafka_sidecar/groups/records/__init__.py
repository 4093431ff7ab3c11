"""The records of `__consumer_offsets` as Kafka encodes them (group-coordinator/…/common/message).

A key begins with its kind as an int16, a value with its version.

codec         the records as the log has them
offsets       committed offsets: key kinds 0 and 1
classic       classic groups: key kind 2
consumer      groups of KIP-848: key kinds 3 to 8, and 16
pending       offsets of open transactions: a key kind of our own
subscription  what members of classic groups subscribe to and are assigned
translated    records with other names for their topics
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from kafka_sidecar.groups.records import consumer
from kafka_sidecar.groups.records.classic import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberValue,
    read_group,
    write_group,
)
from kafka_sidecar.groups.records.consumer import ConsumerKey, ConsumerValue
from kafka_sidecar.groups.records.offsets import OffsetCommitKey, OffsetCommitValue, read_offset, write_offset
from kafka_sidecar.groups.records.pending import (
    KIND as PENDING_KIND,
)
from kafka_sidecar.groups.records.pending import (
    PendingOffsetKey,
    PendingOffsetValue,
    read_pending_key,
    read_pending_value,
    write_pending_key,
    write_pending_value,
)
from kafka_sidecar.groups.records.subscription import subscribed_topics
from kafka_sidecar.wire.primitives import NEVER_FLEXIBLE, RecordUnreadable, reading, text, versioned

__all__ = [
    "GroupMetadataKey",
    "GroupMetadataValue",
    "Key",
    "MemberValue",
    "OffsetCommitKey",
    "OffsetCommitValue",
    "OffsetKey",
    "PendingOffsetKey",
    "PendingOffsetValue",
    "Record",
    "RecordUnreadable",
    "Value",
    "read_key",
    "read_record",
    "subscribed_topics",
    "write_key",
    "write_value",
]

OffsetKey = OffsetCommitKey | PendingOffsetKey  # each has a group, a topic and a partition
Key = OffsetKey | GroupMetadataKey | ConsumerKey
Value = OffsetCommitValue | GroupMetadataValue | ConsumerValue | PendingOffsetValue


class Record(NamedTuple):
    key: Key
    value: Value | None  # None: a tombstone


def read_key(data: bytes) -> Key | None:
    """The key, or None for a kind that is not one of these."""
    kind, reader = versioned(data, NEVER_FLEXIBLE)
    if kind in consumer.KINDS:
        return consumer.read_key(kind, reader)
    match kind:
        case 0 | 1:
            return OffsetCommitKey(reader.string(), reader.string(), reader.int32())
        case 2:
            return GroupMetadataKey(reader.string())
        case _ if kind == PENDING_KIND:
            return read_pending_key(reader)
        case _:
            return None


def read_record(key_data: bytes, value_data: bytes | None) -> Record | None:
    """A record, None for a kind of key that is not known; RecordUnreadable for bytes that make no sense."""
    with reading("a record of __consumer_offsets"):
        key = read_key(key_data)
        if key is None or value_data is None:
            return None if key is None else Record(key, None)
        return Record(key, _read_value(key, value_data))


def _read_value(key: Key, value: bytes) -> Value | None:
    if isinstance(key, OffsetCommitKey):
        return read_offset(value)
    if isinstance(key, PendingOffsetKey):
        return read_pending_value(value)
    return read_group(value) if isinstance(key, GroupMetadataKey) else consumer.read_value(key, value)


def write_key(key: Key) -> bytes:
    if isinstance(key, OffsetCommitKey):
        return struct.pack(">h", 1) + text(key.group) + text(key.topic) + struct.pack(">i", key.partition)
    if isinstance(key, PendingOffsetKey):
        return write_pending_key(key)
    return struct.pack(">h", 2) + text(key.group) if isinstance(key, GroupMetadataKey) else consumer.write_key(key)


def write_value(value: Value) -> bytes:
    if isinstance(value, OffsetCommitValue):
        return write_offset(value)
    if isinstance(value, PendingOffsetValue):
        return write_pending_value(value)
    return write_group(value) if isinstance(value, GroupMetadataValue) else consumer.write_value(value)
