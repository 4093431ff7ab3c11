"""Produce requests of the ordinary shape, read and answered without an object for each part of them.

The generated classes of `messages.produce` know every field of every version. Most requests have the same few: no
transaction, no tagged field. Those are found here by their places in the frame, which is left as it is; anything else
is None, and read by the generated class.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final, NamedTuple
from uuid import UUID

from kafka_sidecar.errors import ProtocolError
from kafka_sidecar.wire.varint import read_varint, unsigned_varint

PRODUCE: Final = b"\0\0"  # API key 0, the first two bytes of a Produce request
LOWEST: Final = 3
HIGHEST: Final = 13
RECORD_ERRORS_SINCE: Final = 8
LOG_START_SINCE: Final = 5
FLEXIBLE_SINCE: Final = 9
TOPIC_IDS_SINCE: Final = 13

_HEADER: Final = struct.Struct(">hhih")  # request header: API key, API version, correlation id, client id length
_ACKS: Final = struct.Struct(">hi")
_I16: Final = struct.Struct(">h")
_I32: Final = struct.Struct(">i")
_HEAD: Final = struct.Struct(">iB")
# Partition index, error code, base offset, log append time, log start offset.
_APPENDED: Final = struct.Struct(">ihqqq")
_NO_RECORD_ERRORS: Final = _I32.pack(0) + _I16.pack(-1)
_NO_APPEND_TIME: Final = -1
_LONG_VARINT: Final = 0x80
# The whole Produce response for one batch, except its topic, from version 9 on. produce_answer names the fields.
_ONE_HEAD: Final = struct.Struct(">iiBB")
_ONE_BATCH: Final = struct.Struct(">BihqqqBBBBiB")
# Limit of batches in a Produce request, since all are located before the first is validated. Kafka's producers send one
# batch per partition, and a broker leads a few thousand partitions.
MAX_BATCHES: Final = 10_000


class ProduceFrame(NamedTuple):
    version: int
    correlation_id: int
    acks: int
    timeout_ms: int
    batches: Sequence[
        tuple[bytes, int, int, int]
    ]  # topic as encoded in the frame, partition, begin and end of its records


def topic_key(version: int, name: str, topic_id: UUID | None) -> bytes:
    """A topic as it stands in a Produce request. No id looks like a name: its ninth byte is none of a name's."""
    if version >= TOPIC_IDS_SINCE:
        return bytes(16) if topic_id is None else topic_id.bytes
    encoded = name.encode()
    if version < FLEXIBLE_SINCE:
        return _I16.pack(len(encoded)) + encoded
    key = bytearray()
    unsigned_varint(key, len(encoded) + 1)
    return bytes(key + encoded)


def read_produce_frame(frame: memoryview) -> ProduceFrame | None:
    """Where everything stands, or None if the request is not of the ordinary shape."""
    try:
        _, version, correlation_id, length = _HEADER.unpack_from(frame)
        if not LOWEST <= version <= HIGHEST:
            return None
        at = _HEADER.size + max(length, 0)
        if version >= FLEXIBLE_SINCE:
            return _flexible(frame, at, version, correlation_id)
        return _older(frame, at, version, correlation_id)
    except (struct.error, IndexError, ProtocolError):
        return None  # the generated class finds and reports the error


def _flexible(frame: memoryview, at: int, version: int, correlation_id: int) -> ProduceFrame | None:
    if frame[at] or frame[at + 1]:
        return None  # the header has tagged fields, or the request a transactional id
    acks, timeout_ms = _ACKS.unpack_from(frame, at + 2)
    topics = frame[at + 8]
    if topics >= _LONG_VARINT:
        return None
    at += 9
    batches: list[tuple[bytes, int, int, int]] = []
    for _ in range(topics - 1):
        size = 16
        if version < TOPIC_IDS_SINCE:
            size, begin = read_varint(frame, at)
            if size <= 1:
                return None
            size += begin - at - 1
        key = bytes(frame[at : at + size])
        at += size
        partitions = frame[at]
        if partitions < _LONG_VARINT:
            at += 1
        else:
            partitions, at = read_varint(frame, at)
        if not 1 < partitions <= MAX_BATCHES - len(batches) or (batches and batches[-1][0] == key):
            return None
        for _ in range(partitions - 1):
            (index,) = _I32.unpack_from(frame, at)
            size, begin = read_varint(frame, at + 4)
            at = begin + size  # behind the byte 0 that stands for no tagged fields
            if not size or frame[at - 1]:
                return None
            batches.append((key, index, begin, at - 1))
        if frame[at]:
            return None
        at += 1
    if frame[at] or at + 1 != len(frame):
        return None
    return ProduceFrame(version, correlation_id, acks, timeout_ms, batches)


def _older(frame: memoryview, at: int, version: int, correlation_id: int) -> ProduceFrame | None:
    (transactional,) = _I16.unpack_from(frame, at)
    if transactional >= 0:
        return None
    acks, timeout_ms = _ACKS.unpack_from(frame, at + 2)
    (topics,) = _I32.unpack_from(frame, at + 8)
    at += 12
    batches: list[tuple[bytes, int, int, int]] = []
    for _ in range(topics):
        size = 2 + _I16.unpack_from(frame, at)[0]
        if size <= 2:
            return None
        key = bytes(frame[at : at + size])
        (partitions,) = _I32.unpack_from(frame, at + size)
        at += size + 4
        if not 0 < partitions < MAX_BATCHES - len(batches) or (batches and batches[-1][0] == key):
            return None
        for _ in range(partitions):
            (index,) = _I32.unpack_from(frame, at)
            (size,) = _I32.unpack_from(frame, at + 4)
            if size < 0:
                return None
            batches.append((key, index, at + 8, at + 8 + size))
            at += 8 + size
    return ProduceFrame(version, correlation_id, acks, timeout_ms, batches) if at == len(frame) else None


def produce_answer(requested: ProduceFrame, results: Sequence[tuple[int, int, int]]) -> bytes:
    """The response: its size, header and body. `results` has error, base offset and log start of each batch in turn."""
    version = requested.version
    flexible = version >= FLEXIBLE_SINCE
    if flexible and len(results) == 1:
        key, index, _, _ = requested.batches[0]
        error, base_offset, log_start = results[0]
        return b"".join(
            (
                _ONE_HEAD.pack(_ONE_HEAD.size - 4 + len(key) + _ONE_BATCH.size, requested.correlation_id, 0, 2),
                key,
                # One partition. Its numbers are followed by no record errors, no error message and no tagged fields,
                # then the topic's empty tagged fields, the throttle time, and the response's empty tagged fields.
                _ONE_BATCH.pack(2, index, error, base_offset, _NO_APPEND_TIME, log_start, 1, 0, 0, 0, 0, 0),
            )
        )
    out = bytearray(4)
    out += _HEAD.pack(requested.correlation_id, 0) if flexible else _I32.pack(requested.correlation_id)
    topics = _by_topic(requested.batches)
    _count(out, len(topics), flexible)
    done = 0
    for key, indexes in topics:
        out += key
        _count(out, len(indexes), flexible)
        for index in indexes:
            error, base_offset, log_start = results[done]
            done += 1
            out += _APPENDED.pack(index, error, base_offset, _NO_APPEND_TIME, log_start)
            if flexible:
                out += b"\1\0\0"  # no record errors, no message, no tagged fields
            elif version >= RECORD_ERRORS_SINCE:
                out += _NO_RECORD_ERRORS
            elif version < LOG_START_SINCE:
                del out[-8:]
        if flexible:
            out.append(0)
    out += b"\0\0\0\0\0" if flexible else b"\0\0\0\0"  # throttle time, no tagged fields
    _I32.pack_into(out, 0, len(out) - 4)
    return bytes(out)


def _by_topic(batches: Sequence[tuple[bytes, int, int, int]]) -> list[tuple[bytes, list[int]]]:
    topics: list[tuple[bytes, list[int]]] = []
    for key, index, _, _ in batches:
        if not topics or topics[-1][0] != key:
            topics.append((key, []))
        topics[-1][1].append(index)
    return topics


def _count(out: bytearray, count: int, flexible: bool) -> None:
    if flexible:
        unsigned_varint(out, count + 1)
    else:
        out += _I32.pack(count)
