"""The log folded from its first entry, without any bound and without what writers knew: by Kafka's rules alone.

It shares no code with the product. Headers are taken apart here, and a transaction's number is read from the property that says it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from handler.pulsar.entry import RawEntry

_HEADER: Final = struct.Struct(">qiibIhiqqqhii")
_TRANSACTIONAL: Final = 0x10
_CONTROL: Final = 0x20
_REMEMBERED: Final = 5
_SEQUENCES: Final = 2**31


@dataclass(frozen=True, slots=True)
class Batch:
    offset: int
    count: int
    producer: int
    epoch: int
    first: int
    is_transactional: bool
    is_control: bool
    data: bytes

    @property
    def last(self) -> int:
        return (self.first + self.count - 1) % _SEQUENCES


@dataclass(slots=True)
class _Producer:
    epoch: int
    last: int
    batches: list[tuple[int, int]] = field(default_factory=list)  # first and last sequence

    def takes(self, batch: Batch) -> bool:
        if batch.epoch < self.epoch:
            return False
        if batch.epoch > self.epoch:
            return batch.first == 0
        if (batch.first, batch.last) in self.batches:
            return False
        return batch.first == (self.last + 1) % _SEQUENCES


@dataclass(slots=True)
class Reference:
    """What the log holds for its readers."""

    values: dict[int, bytes] = field(default_factory=dict)
    end: int = 0


def batches_of(entry: RawEntry) -> Iterator[Batch]:
    data = bytes(entry.payload)
    headers = []
    at = 0
    while at < len(data):
        header = _HEADER.unpack_from(data, at)
        size = 12 + header[1]
        headers.append((header, data[at : at + size]))
        at += size
    assert entry.last_index is not None
    offset = entry.last_index + 1 - sum(header[6] + 1 for header, _ in headers)
    for header, part in headers:
        count = header[6] + 1
        attributes = header[5]
        yield Batch(offset, count, header[9], header[10], header[11], bool(attributes & _TRANSACTIONAL), bool(attributes & _CONTROL), part)
        offset += count


def values_in(batch: Batch) -> list[bytes]:
    """Of records without compression."""
    found = []
    at = _HEADER.size
    for _ in range(batch.count):
        _, at = _varint(batch.data, at)  # length
        at += 1  # attributes
        _, at = _varint(batch.data, at)  # time
        _, at = _varint(batch.data, at)  # offset
        key, at = _varint(batch.data, at)
        at += max(0, key)
        size, at = _varint(batch.data, at)
        found.append(batch.data[at : at + size])
        at += max(0, size)
        headers, at = _varint(batch.data, at)
        assert headers == 0
    return found


def _varint(data: bytes, at: int) -> tuple[int, int]:
    result = shift = 0
    while True:
        byte = data[at]
        at += 1
        result |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return (result >> 1) ^ -(result & 1), at


def fold(entries: Sequence[RawEntry]) -> Reference:
    """Of batches that are in no transaction; of those that are, sequences are a matter of their markers too."""
    found = Reference()
    producers: dict[int, _Producer] = {}
    written: dict[bytes, int] = {}  # by writer
    for entry in entries:
        metadata = entry.message_metadata
        if metadata.HasField("marker_type"):
            continue
        batches = list(batches_of(entry))
        is_resent = metadata.sequence_id <= written.get(metadata.producer_name, -1)
        if not is_resent:
            written[metadata.producer_name] = metadata.sequence_id + len(batches) - 1
        for batch in batches:
            found.end = batch.offset + batch.count
            if is_resent or batch.is_control or batch.is_transactional:
                continue
            if batch.producer >= 0 and not _takes(producers, batch):
                continue
            found.values.update(zip(range(batch.offset, found.end), values_in(batch), strict=True))
    return found


def _takes(producers: dict[int, _Producer], batch: Batch) -> bool:
    known = producers.get(batch.producer)
    if known is None and batch.first != 0:
        return False  # it was sent behind the first, which was refused: all producers here begin with 0, and none is forgotten
    if known is not None and not known.takes(batch):
        return False
    if known is None or known.epoch != batch.epoch:
        known = producers[batch.producer] = _Producer(batch.epoch, batch.last)
    known.last = batch.last
    known.batches = [*known.batches, (batch.first, batch.last)][-_REMEMBERED:]
    return True
