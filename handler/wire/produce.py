"""Produce requests and their answers by hand: the one message that is read for every batch written.

What this reads and writes is what `schema` would; the tests hold the two against each other.

    transactional_id (v3+)  acks i16  timeout i32  [ topic name | topic id (v13+)  [ index i32  records ] ]
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final, NamedTuple

from handler.errors import ProtocolError
from handler.wire.varint import read_varint, skip_tagged_fields, unsigned_varint

FLEXIBLE_SINCE: Final = 9
TOPIC_IDS_SINCE: Final = 13
RECORD_ERRORS_SINCE: Final = 8
LOG_START_SINCE: Final = 5

_ACKS_AND_TIMEOUT: Final = struct.Struct(">hi")
_I16: Final = struct.Struct(">h")
_I32: Final = struct.Struct(">i")
_TWO_I32: Final = struct.Struct(">ii")


class ProducedPartition(NamedTuple):
    partition: int
    records: bytes | None


class ProducedTopic(NamedTuple):
    name: str | None
    topic_id: uuid.UUID | None
    partition_data: list[ProducedPartition]


class ProduceRequest(NamedTuple):
    transactional_id: str | None
    acks: int
    timeout_ms: int
    topic_data: list[ProducedTopic]


def read_produce(body: memoryview, version: int) -> ProduceRequest:
    try:
        return _read_flexible(body, version) if version >= FLEXIBLE_SINCE else _read_fixed(body)
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise ProtocolError(f"a Produce request of version {version} can't be read: {error}") from error


def _take(body: memoryview, at: int, size: int) -> bytes:
    if at + size > len(body):
        raise ProtocolError(f"a Produce request ends {at + size - len(body)} bytes before a value of {size} bytes does")
    return bytes(body[at : at + size])


def _read_flexible(body: memoryview, version: int) -> ProduceRequest:
    size, at = read_varint(body, 0)
    transactional_id = _take(body, at, size - 1).decode() if size else None
    at += max(size - 1, 0)
    acks, timeout = _ACKS_AND_TIMEOUT.unpack_from(body, at)
    topics, at = read_varint(body, at + 6)
    found = []
    for _ in range(topics - 1):
        name: str | None = None
        topic_id: uuid.UUID | None = None
        if version >= TOPIC_IDS_SINCE:
            topic_id = uuid.UUID(bytes=_take(body, at, 16))
            at += 16
        else:
            size, at = read_varint(body, at)
            if not size:
                raise ProtocolError("a Produce request names no topic")
            name = _take(body, at, size - 1).decode()
            at += size - 1
        count, at = read_varint(body, at)
        partitions = []
        for _ in range(count - 1):
            (index,) = _I32.unpack_from(body, at)
            size, at = read_varint(body, at + 4)
            partitions.append(ProducedPartition(index, _take(body, at, size - 1) if size else None))
            at = skip_tagged_fields(body, at + max(size - 1, 0))
        at = skip_tagged_fields(body, at)
        found.append(ProducedTopic(name, topic_id, partitions))
    skip_tagged_fields(body, at)
    return ProduceRequest(transactional_id, acks, timeout, found)


def _read_fixed(body: memoryview) -> ProduceRequest:
    (size,) = _I16.unpack_from(body, 0)
    transactional_id = _take(body, 2, size).decode() if size >= 0 else None
    at = 2 + max(size, 0)
    acks, timeout = _ACKS_AND_TIMEOUT.unpack_from(body, at)
    (topics,) = _I32.unpack_from(body, at + 6)
    at += 10
    found = []
    for _ in range(topics):
        (size,) = _I16.unpack_from(body, at)
        if size < 0:
            raise ProtocolError("a Produce request names no topic")
        name = _take(body, at + 2, size).decode()
        (count,) = _I32.unpack_from(body, at + 2 + size)
        at += 6 + size
        partitions = []
        for _ in range(count):
            index, size = _TWO_I32.unpack_from(body, at)
            partitions.append(ProducedPartition(index, _take(body, at + 8, size) if size >= 0 else None))
            at += 8 + max(size, 0)
        found.append(ProducedTopic(name, None, partitions))
    return ProduceRequest(transactional_id, acks, timeout, found)


def _partition_layout(version: int) -> tuple[struct.Struct, bytes]:
    """The fixed part of a partition's answer, and what follows it where there is nothing to tell."""
    layout = ">ihqq" + ("q" if version >= LOG_START_SINCE else "")
    if version >= FLEXIBLE_SINCE:
        return struct.Struct(layout), b"\x01\x00\x00"  # no record errors, no message, no tagged fields
    return struct.Struct(layout), b"\0\0\0\0\xff\xff" if version >= RECORD_ERRORS_SINCE else b""


@cache
def produce_answer_writer(version: int) -> Callable[[bytearray, Mapping[str, Any]], None]:
    layout, rest = _partition_layout(version)
    flexible = version >= FLEXIBLE_SINCE
    with_log_start = version >= LOG_START_SINCE

    def count(out: bytearray, number: int) -> None:
        if flexible:
            unsigned_varint(out, number + 1)
        else:
            out += _I32.pack(number)

    def write(out: bytearray, answer: Mapping[str, Any]) -> None:
        topics = answer["responses"]
        count(out, len(topics))
        for topic in topics:
            if version >= TOPIC_IDS_SINCE:
                out += topic["topic_id"].bytes
            elif flexible:
                name = topic["name"].encode()
                unsigned_varint(out, len(name) + 1)
                out += name
            else:
                name = topic["name"].encode()
                out += _I16.pack(len(name))
                out += name
            partitions = topic["partition_responses"]
            count(out, len(partitions))
            for told in partitions:
                facts = (told["index"], told["error_code"], told["base_offset"], told["log_append_time"], told["log_start_offset"])
                out += layout.pack(*(facts if with_log_start else facts[:4]))
                out += rest
            if flexible:
                out.append(0)
        out += _I32.pack(answer["throttle_time"])
        if flexible:
            out.append(0)

    return write
