"""Control records: what ends a transaction in a partition's log (KIP-98).

A marker is the one record of a batch with the control bit. Its key says of which kind it is, its value who has written it.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from handler.wire.crc import crc32c
from handler.wire.records import CONTROL, HEADER, HEADER_SIZE, NO_SEQUENCE, TRANSACTIONAL, BatchMalformed, read_header

_KEY: Final = struct.Struct(">hh")  # version, kind
_VALUE: Final = struct.Struct(">hi")  # version, coordinator epoch
# ControlRecordType.
ABORT: Final = 0
COMMIT: Final = 1
# Of the record: attributes, the deltas of its timestamp and its offset, and then the key with its size. All are varints of one byte.
_BEFORE_KEY: Final = b"\x00\x00\x00" + bytes((2 * _KEY.size,))
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
    record = bytes((2 * len(record),)) + record
    checked = _CHECKED.pack(TRANSACTIONAL | CONTROL, 0, timestamp, timestamp, producer_id, epoch, NO_SEQUENCE, 1) + record
    return struct.pack(">qiibI", 0, HEADER_SIZE + len(record) - _OVERHEAD, 0, 2, crc32c(checked)) + checked


def read_marker(batch: bytes | bytearray | memoryview) -> EndTransactionMarker | None:
    """What a control batch says; None where it is of another kind or has no record any more. BatchMalformed where it is neither."""
    header = read_header(batch)
    if not header.record_count:
        return None
    record = bytes(batch[HEADER_SIZE : header.size])
    if len(record) < 2 + len(_BEFORE_KEY) + _KEY.size or record[0] & 0x80:
        raise BatchMalformed("a control record is cut off")
    # Deltas are 0 in the one record of a batch, and sizes below 64: what another broker writes has this form as well.
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


assert HEADER.size == struct.calcsize(">qiibI") + _CHECKED.size
