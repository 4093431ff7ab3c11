"""Control records: what ends a transaction in a partition's log (KIP-98).

A marker is the one record of a batch with the control bit. Its key says which kind it is, its value which coordinator
wrote it.

Control records are also what consumers of any kind step over. So offsets without records are served as a batch with
one.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from kafka_sidecar.wire.crc import crc32c
from kafka_sidecar.wire.records import (
    CONTROL,
    HEADER,
    HEADER_SIZE,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    TRANSACTIONAL,
    BatchHeader,
    BatchMalformed,
    read_header,
)
from kafka_sidecar.wire.varint import unsigned_varint

_KEY: Final = struct.Struct(">hh")  # key of a control record: version, type
_VALUE: Final = struct.Struct(">hi")  # value of an end transaction marker: version, coordinator epoch
# Types of control records, as in Kafka's ControlRecordType.
ABORT: Final = 0
COMMIT: Final = 1
# A control record before its key: attributes, timestamp delta, offset delta and key length. Each takes one byte.
_KEY_SIZE: Final = bytes((2 * _KEY.size,))
_BEFORE_KEY: Final = b"\x00\x00\x00" + _KEY_SIZE
_BEFORE_VALUE: Final = bytes((2 * _VALUE.size,))
_NO_HEADERS: Final = b"\x00"
_OVERHEAD: Final = 12
_CHECKED: Final = struct.Struct(">hiqqqhii")


class EndTransactionMarker(NamedTuple):
    committed: bool
    coordinator_epoch: int


def write_marker(producer_id: int, epoch: int, marker: EndTransactionMarker, timestamp: int) -> bytes:
    """The control batch, as Kafka's brokers write it (MemoryRecords.withEndTransactionMarker)."""
    record = _BEFORE_KEY + _KEY.pack(0, COMMIT if marker.committed else ABORT)
    record += _BEFORE_VALUE + _VALUE.pack(0, marker.coordinator_epoch) + _NO_HEADERS
    return _batch_of_one(
        0, _CHECKED.pack(TRANSACTIONAL | CONTROL, 0, timestamp, timestamp, producer_id, epoch, NO_SEQUENCE, 1), record
    )


def placeholder(base_offset: int, offset_count: int, timestamp: int = NO_TIMESTAMP) -> bytes:
    """A batch for offsets without records, which every consumer steps over: one control record, at the last of them.

    With no record at all librdkafka takes the answer for one that did not fit, and asks for twice as many bytes each
    time; kafkajs asks for the same offset again, sarama and aiokafka fail. The record is a commit of nobody: librdkafka
    reads its key, old versions of sarama its value first, Java looks for aborts.
    """
    last = offset_count - 1
    record = bytearray(b"\x00\x00")
    unsigned_varint(record, 2 * last)
    record += _KEY_SIZE + _KEY.pack(0, COMMIT) + _BEFORE_VALUE + _VALUE.pack(0, 0) + _NO_HEADERS
    return _batch_of_one(
        base_offset, _CHECKED.pack(CONTROL, last, timestamp, timestamp, NO_PRODUCER_ID, -1, NO_SEQUENCE, 1), record
    )


def is_placeholder(header: BatchHeader) -> bool:
    """Whether it stands for offsets without records. The marker of a transaction names a producer, a placeholder
    none.
    """
    return bool(header.attributes & CONTROL) and header.producer_id == NO_PRODUCER_ID


def _batch_of_one(base_offset: int, header: bytes, record: bytes | bytearray) -> bytes:
    checked = header + bytes((2 * len(record),)) + record
    size = HEADER_SIZE + len(checked) - _CHECKED.size
    return struct.pack(">qiibI", base_offset, size - _OVERHEAD, 0, 2, crc32c(checked)) + checked


def read_marker(batch: bytes | bytearray | memoryview) -> EndTransactionMarker | None:
    """What a control batch says; None where it is of another kind or has no record any more. BatchMalformed where it is
    neither.
    """
    header = read_header(batch)
    if not header.record_count:
        return None
    record = bytes(batch[HEADER_SIZE : header.size])
    if len(record) < 2 + len(_BEFORE_KEY) + _KEY.size or record[0] & 0x80:
        raise BatchMalformed("a control record is cut off")
    # The one record of a batch has deltas of 0 and sizes below 64, so each varint takes one byte. Markers written by
    # other brokers have this form too.
    if record[4] != _BEFORE_KEY[-1]:
        raise BatchMalformed(f"a control record with a key of {record[4] >> 1} bytes")
    _, kind = _KEY.unpack_from(record, 5)
    if kind not in (ABORT, COMMIT):
        return None
    at = 5 + _KEY.size
    if len(record) < at + 1 + _VALUE.size:
        raise BatchMalformed("a control record without a value")
    _, coordinator_epoch = _VALUE.unpack_from(record, at + 1)
    return EndTransactionMarker(kind == COMMIT, coordinator_epoch)


PLACEHOLDER_SIZE: Final = len(placeholder(0, 2**31))  # size with the longest offset delta

assert HEADER.size == struct.calcsize(">qiibI") + _CHECKED.size
