"""Kafka record batches of magic 2, looked at from outside: headers are read, records are not.

    0  base offset       i64      23 last offset delta   i32      51 producer epoch i16
    8  batch length      i32      27 base timestamp      i64      53 base sequence  i32
    12 leader epoch      i32      35 greatest timestamp  i64      57 record count   i32
    16 magic             i8       43 producer id         i64      61 records
    17 crc32c            u32
    21 attributes        i16

The checksum covers everything from the attributes on, so base offset and leader epoch can be
written again without touching the rest.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

from kafka_sidecar.errors import ProtocolError
from kafka_sidecar.wire.crc import crc32c

HEADER: Final = struct.Struct(">qiibIhiqqqhii")
HEADER_SIZE: Final = HEADER.size
_LENGTH_AT: Final = 8
_OVERHEAD: Final = 12  # bytes of base offset and batch length, which the batch length does not count
CHECKED_FROM: Final = 21
_MAGIC_AT: Final = 16
_LAST_OFFSET_DELTA_AT: Final = 23
_MAX_TIMESTAMP_AT: Final = 35

CODEC_MASK: Final = 0x07
LZ4: Final = 3
ZSTD: Final = 4
LOG_APPEND_TIME: Final = 0x08
TRANSACTIONAL: Final = 0x10
CONTROL: Final = 0x20

NO_PRODUCER_ID: Final = -1
NO_TIMESTAMP: Final = -1
NO_SEQUENCE: Final = -1
MAX_SEQUENCE: Final = 2**31 - 1

assert HEADER_SIZE == 61


class BatchHeader(NamedTuple):
    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size(self) -> int:
        return self.length + _OVERHEAD

    @property
    def offset_count(self) -> int:
        """How many offsets the batch takes; more than its records after compaction."""
        return self.last_offset_delta + 1

    @property
    def has_producer(self) -> bool:
        return self.producer_id != NO_PRODUCER_ID

    @property
    def last_sequence(self) -> int:
        return next_sequence(self.base_sequence, self.last_offset_delta)


def next_sequence(sequence: int, by: int) -> int:
    """`sequence` + `by`; after 2^31−1 comes 0 (DefaultRecordBatch.incrementSequence)."""
    return sequence + by if sequence + by <= MAX_SEQUENCE else sequence + by - MAX_SEQUENCE - 1


class BatchMalformed(ProtocolError):
    """The bytes are not one whole batch of magic 2: Kafka's CORRUPT_MESSAGE."""


class BatchInvalid(ProtocolError):
    """A whole batch that a client must not send: Kafka's INVALID_RECORD."""


def read_header(data: bytes | bytearray | memoryview, at: int = 0) -> BatchHeader:
    if len(data) - at < HEADER_SIZE:
        raise BatchMalformed(f"a record batch of {len(data) - at} bytes is shorter than its header")
    header = BatchHeader._make(HEADER.unpack_from(data, at))
    if header.magic != 2:
        raise BatchInvalid(f"record batches of magic {header.magic} are not supported, only magic 2")
    if header.length < HEADER_SIZE - _OVERHEAD or header.size > len(data) - at:
        raise BatchMalformed(f"a record batch says {header.length} bytes and has {len(data) - at - _OVERHEAD}")
    return header


def read_produced(data: bytes) -> BatchHeader:
    """The header of what a client wants to append, checked as Kafka checks it without opening the records.

    The rules are ProduceRequest.validateRecords (one batch, magic 2), DefaultRecordBatch.ensureValid
    and LogValidator.validateBatch.
    """
    if len(data) > _MAGIC_AT and data[_MAGIC_AT] < 2:
        raise BatchInvalid("record batches must be of magic 2: a producer of Kafka 0.11 or later")
    header = read_header(data)
    if header.size != len(data):
        raise BatchInvalid("a produce request must hold exactly one record batch per partition")
    if crc32c(memoryview(data)[CHECKED_FROM:]) != header.crc:
        raise BatchMalformed("the record batch has a wrong checksum")
    if header.base_offset != 0:
        raise BatchInvalid(f"the base offset of a produced batch must be 0, not {header.base_offset}")
    if header.record_count <= 0 or header.record_count != header.offset_count:
        raise BatchInvalid(f"{header.record_count} records do not fill {header.offset_count} offsets")
    if header.attributes & CONTROL:
        raise BatchInvalid("clients must not write control batches")
    if header.attributes & LOG_APPEND_TIME:
        raise BatchInvalid("clients must not send the timestamp type LogAppendTime")
    if header.attributes & CODEC_MASK > ZSTD:
        raise BatchInvalid(f"unknown compression codec {header.attributes & CODEC_MASK}")
    if header.producer_id < NO_PRODUCER_ID:
        raise BatchInvalid(f"no producer has the id {header.producer_id}")
    if header.producer_id != NO_PRODUCER_ID and (header.base_sequence < 0 or header.producer_epoch < 0):
        raise BatchInvalid("a batch with a producer id needs a sequence and an epoch")
    return header


def read_ordinary(
    frame: memoryview, begin: int, end: int, latest_timestamp: int, highest_codec: int
) -> tuple[int, int, int, int, int] | None:
    """Offset count, greatest timestamp, producer id, its epoch and base sequence of a batch that `read_produced` would
    take.

    None for any other: `read_produced` says what is wrong.
    """
    if end - begin < HEADER_SIZE:
        return None
    (
        base_offset,
        length,
        _,
        magic,
        crc,
        attributes,
        last_offset_delta,
        _,
        max_timestamp,
        producer_id,
        epoch,
        sequence,
        records,
    ) = HEADER.unpack_from(frame, begin)
    if (
        magic == 2
        and length + _OVERHEAD == end - begin
        and base_offset == 0
        and 0 <= attributes <= highest_codec  # the attributes have a compression codec and no other bit
        and records == last_offset_delta + 1
        and records > 0
        and max_timestamp <= latest_timestamp
        and (producer_id == NO_PRODUCER_ID or (producer_id >= 0 and sequence >= 0 and epoch >= 0))
        and crc32c(frame[begin + CHECKED_FROM : end]) == crc
    ):
        return records, max_timestamp, producer_id, epoch, sequence
    return None


def all_batches(data: bytes | bytearray) -> list[tuple[BatchHeader, int]]:
    """Headers and starts of the batches of an entry. Mostly it holds one."""
    header = read_header(data) if data else None
    if header is not None and header.size == len(data) and header.last_offset_delta >= 0:
        return [(header, 0)]
    return list(split_batches(data))


def split_batches(data: bytes | bytearray | memoryview) -> Iterator[tuple[BatchHeader, int]]:
    """Headers and starts of the batches that follow each other in `data`, to its very end."""
    at = 0
    while at < len(data):
        header = read_header(data, at)
        if header.last_offset_delta < 0:
            raise BatchMalformed("a record batch with a negative last offset")
        yield header, at
        at += header.size


def header_count(data: bytes | bytearray, record_count: int) -> int:
    """How many headers the records of a batch have that is not compressed. IndexError where they are cut off."""
    at = HEADER_SIZE
    count = 0
    for _ in range(record_count):
        size, at = _varint(data, at)
        end = at + size
        at += 1  # attributes of the record
        for _ in range(2):  # timestamp delta and offset delta
            _, at = _varint(data, at)
        for _ in range(2):  # key and value, each behind its length
            size, at = _varint(data, at)
            at += max(size, 0)
        count += _varint(data, at)[0]
        at = end
    return count


def _varint(data: bytes | bytearray, at: int) -> tuple[int, int]:
    """A signed integer of variable length, and where it ends."""
    byte = data[at]
    at += 1
    value = byte & 0x7F
    shift = 7
    while byte > 0x7F:
        if shift > 63:
            raise IndexError("a number of more than ten bytes")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
    return (value >> 1) ^ -(value & 1), at


_OFFSET: Final = struct.Struct(">q")
_I16: Final = struct.Struct(">h")
_I32: Final = struct.Struct(">i")
_OFFSET_AND_LENGTH: Final = struct.Struct(">qi")
# Leader epoch 0 for all batches: the log is never truncated, so all of it counts as one leadership.
_LEADER_EPOCH: Final = b"\0\0\0\0"


def with_base_offsets(data: bytes | bytearray, base_offset: int) -> bytearray:
    """The batches of one entry, moved to follow each other from `base_offset` on: in place, where that is possible."""
    placed = data if isinstance(data, bytearray) else bytearray(data)
    at = 0
    while at < len(placed):
        (length,) = _I32.unpack_from(placed, at + _LENGTH_AT)
        (last_offset_delta,) = _I32.unpack_from(placed, at + _LAST_OFFSET_DELTA_AT)
        _OFFSET.pack_into(placed, at, base_offset)
        placed[at + _OVERHEAD : at + _MAGIC_AT] = _LEADER_EPOCH
        at += length + _OVERHEAD
        base_offset += last_offset_delta + 1
    return placed


def whole_batches(data: bytes | bytearray, offset: int, max_bytes: int) -> tuple[int, int, int]:
    """Where the batches are that begin with the one that holds `offset` and fit `max_bytes`, at least that one: begin,
    end, and the offset after them. The batches follow each other and have their offsets.
    """
    at = 0
    begin = -1
    while at < len(data):
        base_offset, length = _OFFSET_AND_LENGTH.unpack_from(data, at)
        (last_offset_delta,) = _I32.unpack_from(data, at + _LAST_OFFSET_DELTA_AT)
        end = at + length + _OVERHEAD
        if offset <= base_offset + last_offset_delta:
            if begin < 0:
                begin = at
            elif end - begin > max_bytes:
                break
            offset = base_offset + last_offset_delta + 1
        at = end
    return begin, at, offset


def header_of_native(offset_count: int, record_count: int, max_timestamp: int) -> BatchHeader:
    """The header of a batch that was not written by Kafka's producers, as far as a fold needs it."""
    return BatchHeader(
        0, 0, -1, 2, 0, 0, offset_count - 1, max_timestamp, max_timestamp, NO_PRODUCER_ID, -1, NO_SEQUENCE, record_count
    )


def empty_batch(offset_count: int) -> bytes:
    """A batch that takes offsets and holds no record, as Kafka's compaction leaves one behind."""
    checked = struct.pack(
        ">hiqqqhii", 0, offset_count - 1, NO_TIMESTAMP, NO_TIMESTAMP, NO_PRODUCER_ID, -1, NO_SEQUENCE, 0
    )
    return struct.pack(">qiibI", 0, HEADER_SIZE - _OVERHEAD, 0, 2, crc32c(checked)) + checked


def with_last_offset(data: bytes, last_offset_delta: int) -> bytes:
    """A batch that takes offsets behind its last record too."""
    head = bytearray(data[:HEADER_SIZE])
    head[23:27] = _I32.pack(last_offset_delta)
    return _with_head(head, data)


def with_earlier_timestamps(data: bytes, by: int) -> bytes:
    """A batch whose records are so many milliseconds older."""
    head = bytearray(data[:HEADER_SIZE])
    for at in (27, 35):  # base timestamp and max timestamp; a record has only a delta from the base timestamp
        _OFFSET.pack_into(head, at, _OFFSET.unpack_from(head, at)[0] - by)
    return _with_head(head, data)


def with_log_append_time(data: bytes | bytearray, timestamp: int) -> bytes:
    """A batch whose records have the time at which the broker has stored them."""
    head = bytearray(data[:HEADER_SIZE])
    (attributes,) = _I16.unpack_from(head, CHECKED_FROM)
    _I16.pack_into(head, CHECKED_FROM, attributes | LOG_APPEND_TIME)
    _OFFSET.pack_into(head, _MAX_TIMESTAMP_AT, timestamp)
    return _with_head(head, data)


def with_max_timestamp(data: bytes | bytearray, max_timestamp: int) -> bytes:
    """A batch whose header says what the greatest timestamp of its records is."""
    head = bytearray(data[:HEADER_SIZE])
    _OFFSET.pack_into(head, _MAX_TIMESTAMP_AT, max_timestamp)
    return _with_head(head, data)


def _with_head(head: bytearray, data: bytes | bytearray) -> bytes:
    head[17:21] = crc32c(memoryview(data)[HEADER_SIZE:], crc32c(head[CHECKED_FROM:])).to_bytes(4, "big")
    return bytes(head + data[HEADER_SIZE:])
