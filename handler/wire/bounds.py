"""Looks a request over before it is read: every length and count must fit into the bytes there are.

kio's native reader takes memory for as many elements as a request announces; a few bytes of garbage
could so end the process. A checker per API and version, compiled from kio's schema, walks the bytes
first. Consecutive fields of fixed size are one step.

The same walk finds tagged fields that this version does not know. Kafka ignores them (KIP-482) and
kio refuses them, so they are cut out before kio reads the request.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import fields
from functools import cache
from typing import Any, Final, get_type_hints

from kio.index import load_request_schema

from handler.errors import ProtocolError
from handler.wire.types import split_type
from handler.wire.varint import read_varint, unsigned_varint

# Bytes that are to stand in place of those from one place to another.
Cut = tuple[int, int, bytes]
# From a place in the bytes to the place after one value; what must be cut on the way is added to the list.
Walk = Callable[[memoryview, int, list[Cut]], int]

_FIXED: Final = {
    "int8": 1, "bool": 1, "int16": 2, "uint16": 2, "error_code": 2, "int32": 4, "uint32": 4, "timedelta_i32": 4,
    "int64": 8, "uint64": 8, "float64": 8, "timedelta_i64": 8, "datetime_i64": 8, "uuid": 16,
}  # fmt: skip
# Every element becomes objects and work, however few its bytes; no honest request is near this.
MAX_ELEMENTS: Final = 50_000
# As Kafka's parser, in the versions too that could say more: what is stored has 16 bits for it.
MAX_STRING: Final = 32_767
_I16: Final = struct.Struct(">h")
_I32: Final = struct.Struct(">i")


def _within(data: memoryview, at: int, size: int) -> int:
    end = at + size
    if end > len(data):
        raise ProtocolError(f"the request ends {end - len(data)} bytes before a value of {size} bytes does")
    return end


def _fixed(size: int) -> Walk:
    def walk(data: memoryview, at: int, cuts: list[Cut]) -> int:
        return _within(data, at, size)

    return walk


def _compact_size(data: memoryview, at: int) -> tuple[int, int]:
    size, at = read_varint(data, at)
    return size - 1, at


def _legacy_size(layout: struct.Struct) -> Callable[[memoryview, int], tuple[int, int]]:
    def read(data: memoryview, at: int) -> tuple[int, int]:
        end = _within(data, at, layout.size)
        (size,) = layout.unpack_from(data, at)
        return size, end

    return read


_SIZE_16: Final = _legacy_size(_I16)
_SIZE_32: Final = _legacy_size(_I32)


def _sized(kafka_type: str, flexible: bool) -> Walk:
    read_size = _compact_size if flexible else _SIZE_16 if kafka_type == "string" else _SIZE_32

    most = MAX_STRING if kafka_type == "string" else 2**31

    def walk(data: memoryview, at: int, cuts: list[Cut]) -> int:
        size, at = read_size(data, at)
        if size > most:
            raise ProtocolError(f"a string of {size} bytes: no more than {most} are taken")
        return _within(data, at, max(size, 0))

    return walk


def _array(item: Walk, item_size: int | None, flexible: bool) -> Walk:
    read_count = _compact_size if flexible else _SIZE_32

    def walk(data: memoryview, at: int, cuts: list[Cut]) -> int:
        count, at = read_count(data, at)
        if count <= 0:
            return at
        if item_size is not None:
            return _within(data, at, count * item_size)
        if count > len(data) - at:
            raise ProtocolError(f"an array of {count} elements in {len(data) - at} bytes")
        if count > MAX_ELEMENTS:
            raise ProtocolError(f"an array of {count} elements: no more than {MAX_ELEMENTS} are taken in one request")
        for _ in range(count):
            at = item(data, at, cuts)
        return at

    return walk


def _nullable(item: Walk) -> Walk:
    def walk(data: memoryview, at: int, cuts: list[Cut]) -> int:
        end = _within(data, at, 1)
        return item(data, end, cuts) if data[at] == 1 else end

    return walk


def _field(field: Any, hint: Any, flexible: bool) -> tuple[Walk, int | None]:
    """The walk over a field, and its size where that is fixed."""
    bare, array, optional = split_type(hint)
    kafka_type = field.metadata.get("kafka_type")
    size = _FIXED.get(kafka_type) if kafka_type else None
    if size is not None:
        walk = _fixed(size)
    elif kafka_type is not None:
        walk = _sized(kafka_type, flexible)
    else:
        walk = _entity(bare)
        if optional and not array:
            walk = _nullable(walk)
    return (_array(walk, size, flexible), None) if array else (walk, size)


@cache
def _entity(entity: type[Any]) -> Walk:
    flexible: bool = entity.__flexible__
    hints = get_type_hints(entity)
    steps: list[Walk] = []
    tagged: dict[int, Walk] = {}
    run = 0
    for field in fields(entity):
        walk, size = _field(field, hints[field.name], flexible)
        if "tag" in field.metadata:
            tagged[field.metadata["tag"]] = walk
        elif size is not None:
            run += size
        else:
            steps += [_fixed(run), walk] if run else [walk]
            run = 0
    if run:
        steps.append(_fixed(run))
    if flexible:
        steps.append(_tagged(tagged))

    def walk_entity(data: memoryview, at: int, cuts: list[Cut]) -> int:
        for step in steps:
            at = step(data, at, cuts)
        return at

    return walk_entity


def _tagged(known: dict[int, Walk]) -> Walk:
    def walk(data: memoryview, at: int, cuts: list[Cut]) -> int:
        start = at
        count, at = read_varint(data, at)
        if count > len(data) - at:
            raise ProtocolError(f"{count} tagged fields in {len(data) - at} bytes")
        kept: list[tuple[int, bytes | memoryview]] = []
        changed = False
        for _ in range(count):
            tag, at = read_varint(data, at)
            size, at = read_varint(data, at)
            end = _within(data, at, size)
            if tag in known:
                inner: list[Cut] = []
                known[tag](data[:end], at, inner)
                kept.append((tag, without(data, at, end, inner)))
                changed = changed or bool(inner)
            else:
                changed = True
            at = end
        if changed:
            cuts.append((start, at, _tagged_section(kept)))
        return at

    return walk


def _tagged_section(fields_: list[tuple[int, bytes | memoryview]]) -> bytes:
    out = bytearray()
    unsigned_varint(out, len(fields_))
    for tag, value in fields_:
        unsigned_varint(out, tag)
        unsigned_varint(out, len(value))
        out += value
    return bytes(out)


def without(data: memoryview, start: int, end: int, cuts: list[Cut]) -> bytes | memoryview:
    """The bytes from `start` to `end` with the cuts made."""
    if not cuts:
        return data[start:end]
    parts: list[bytes | memoryview] = []
    for cut_from, cut_to, instead in cuts:
        parts += (data[start:cut_from], instead)
        start = cut_to
    return b"".join((*parts, data[start:end]))


@cache
def checker(key: int, version: int) -> Walk:
    return _entity(load_request_schema(key, version))
