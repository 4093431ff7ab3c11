"""The batches of an entry, as the log holds them.

It shares no code with the product. Headers are taken apart here, and a transaction's number is read from the property
that says it.
"""

from __future__ import annotations

import gzip
import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from kafka_sidecar.pulsar.entry import RawEntry
from kafka_sidecar.pulsar.pulsar_api_pb2 import MessageMetadata, SingleMessageMetadata

SEQUENCES: Final = 2**31
_HEADER: Final = struct.Struct(">qiibIhiqqqhii")
_TRANSACTIONAL: Final = 0x10
_CONTROL: Final = 0x20
_CODEC: Final = 0x7
_GZIP: Final = 1  # Kafka's
LZ4: Final = 1  # Pulsar's: it is never unfolded here
_ZLIB: Final = 2  # Pulsar's
NATIVE: Final = b"native"  # producer of what another program has written


@dataclass(frozen=True, slots=True)
class Batch:
    offset: int
    count: int
    producer: int
    epoch: int
    first: int
    is_transactional: bool
    is_control: bool
    codec: int
    data: bytes  # behind the header
    has_messages: bool = False  # of Pulsar's, not Kafka's records
    max_timestamp: int = 0  # of Kafka's

    @property
    def last(self) -> int:
        return (self.first + self.count - 1) % SEQUENCES


def batches_of(entry: RawEntry) -> Iterator[Batch]:
    metadata = entry.message_metadata
    facts = next((bytes(pair.value) for pair in metadata.properties if pair.key == b"kafka.batch"), None)
    if metadata.producer_name == NATIVE:
        return _native_batches(entry)
    return _kafka_batches(entry) if facts is None else iter((_pulsar_batch(entry, metadata, facts),))


def is_unreadable(entry: RawEntry) -> bool:
    metadata = entry.message_metadata
    return metadata.producer_name == NATIVE and metadata.compression == LZ4


def ledgers_that_begin_falsely(entries: Sequence[RawEntry]) -> set[int]:
    """Those whose first entry nobody can read, and says that it holds more messages than the broker has counted."""
    found = set()
    for before, entry in pairwise(entries):
        is_first = before.position.ledger != entry.position.ledger
        if is_first and is_unreadable(entry) and entry.last_index is not None and before.last_index is not None:
            counted = entry.last_index - before.last_index
            if entry.message_metadata.num_messages_in_batch > counted:
                found.add(entry.position.ledger)
    return found


def _native_batches(entry: RawEntry) -> Iterator[Batch]:
    """Of another program: one of messages, or none where nobody can read it."""
    if not is_unreadable(entry):
        count = entry.message_metadata.num_messages_in_batch
        assert entry.last_index is not None
        yield Batch(
            entry.last_index + 1 - count, count, -1, 0, 0, False, False, 0, bytes(entry.payload), has_messages=True
        )


def _pulsar_batch(entry: RawEntry, metadata: MessageMetadata, facts: bytes) -> Batch:
    """Of format pulsar."""
    producer, epoch, first, _, attributes, *_ = (*map(int, facts.split()), 0)
    assert entry.last_index is not None
    count = metadata.num_messages_in_batch
    offset = entry.last_index + 1 - count
    is_transactional = bool(attributes & _TRANSACTIONAL)
    return Batch(
        offset,
        count,
        producer,
        epoch,
        first,
        is_transactional,
        False,
        metadata.compression,
        bytes(entry.payload),
        has_messages=True,
    )


def _kafka_batches(entry: RawEntry) -> Iterator[Batch]:
    data = bytes(entry.payload)
    headers = []
    at = 0
    while at < len(data):
        header = _HEADER.unpack_from(data, at)
        size = 12 + header[1]
        headers.append((header, data[at + _HEADER.size : at + size]))
        at += size
    assert entry.last_index is not None
    offset = entry.last_index + 1 - sum(header[6] + 1 for header, _ in headers)
    for header, part in headers:
        count = header[6] + 1
        is_transactional, is_control, codec = (
            bool(header[5] & _TRANSACTIONAL),
            bool(header[5] & _CONTROL),
            header[5] & _CODEC,
        )
        yield Batch(
            offset,
            count,
            header[9],
            header[10],
            header[11],
            is_transactional,
            is_control,
            codec,
            part,
            max_timestamp=header[8],
        )
        offset += count


def values_in(batch: Batch) -> list[bytes]:
    return list(_in_messages(batch) if batch.has_messages else _in_records(batch))


def _in_messages(batch: Batch) -> Iterator[bytes]:
    """`Commands.deSerializeSingleMessageInBatch`"""
    assert batch.codec in (0, _ZLIB)
    data = zlib.decompress(batch.data) if batch.codec else batch.data
    at = 0
    for _ in range(batch.count):
        begin = at + 4 + int.from_bytes(data[at : at + 4], "big")
        at = begin + SingleMessageMetadata.FromString(data[at + 4 : begin]).payload_size
        yield data[begin:at]


def _in_records(batch: Batch) -> Iterator[bytes]:
    assert batch.codec in (0, _GZIP)
    data = gzip.decompress(batch.data) if batch.codec else batch.data
    at = 0
    for _ in range(batch.count):
        _, at = _varint(data, at)  # length
        at += 1  # attributes
        _, at = _varint(data, at)  # time
        _, at = _varint(data, at)  # offset
        key, at = _varint(data, at)
        at += max(0, key)
        size, at = _varint(data, at)
        yield data[at : at + size]
        at += max(0, size)
        headers, at = _varint(data, at)
        assert headers == 0


def _varint(data: bytes, at: int) -> tuple[int, int]:
    result = shift = 0
    while True:
        byte = data[at]
        at += 1
        result |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return (result >> 1) ^ -(result & 1), at


def numbers_of(metadata: MessageMetadata, count: int) -> list[int]:
    """Of the transaction of each batch; −1 for none."""
    for pair in metadata.properties:
        if pair.key in (b"basis", b"bases"):
            lasts = bytes(pair.value).split()[2::2]
            return [int(number) if number else -1 for _, _, number in (last.partition(b"/") for last in lasts)]
    return [-1] * count
