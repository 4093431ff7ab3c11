"""Offsets that are committed in a transaction which has not ended: a kind of key of our own.

In Kafka's log they are ordinary records of a transactional batch. A log that is compacted by key can't have them so:
they would take the place of what is committed. Kafka's tools pass over kinds that they do not know.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from kafka_sidecar.groups.records.offsets import OffsetCommitKey, OffsetCommitValue, read_offset, write_offset
from kafka_sidecar.wire.buffers import Reader
from kafka_sidecar.wire.primitives import text

KIND: Final = 0x7F01
_NUMBER: Final = struct.Struct(">q")


class PendingOffsetKey(NamedTuple):
    producer_id: int
    group: str
    topic: str
    partition: int

    @property
    def committed(self) -> OffsetCommitKey:
        return OffsetCommitKey(self.group, self.topic, self.partition)


class PendingOffsetValue(NamedTuple):
    transaction: int  # transaction number: how many transactions the transactional id has begun
    value: OffsetCommitValue


def read_pending_key(reader: Reader) -> PendingOffsetKey:
    return PendingOffsetKey(reader.int64(), reader.string(), reader.string(), reader.int32())


def write_pending_key(key: PendingOffsetKey) -> bytes:
    return (
        struct.pack(">hq", KIND, key.producer_id) + text(key.group) + text(key.topic) + struct.pack(">i", key.partition)
    )


def read_pending_value(data: bytes) -> PendingOffsetValue:
    return PendingOffsetValue(_NUMBER.unpack_from(data)[0], read_offset(data[_NUMBER.size :]))


def write_pending_value(value: PendingOffsetValue) -> bytes:
    return _NUMBER.pack(value.transaction) + write_offset(value.value)
