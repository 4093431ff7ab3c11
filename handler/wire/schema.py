"""Kafka's message schemas: kio reads requests, compiled writers encode answers.

An answer is a plain dict in the newest version's words. The writer of a version takes from it the
fields which that version has and leaves the rest, so a handler is written once for all versions;
a field left out takes the schema's default. kio's own writer would want one dataclass tree per
version and is several times slower; the property tests hold the two against each other.
"""

from __future__ import annotations

import datetime
import struct
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, fields
from functools import cache
from typing import Any, Final, get_type_hints

from kio.index import load_request_schema, load_response_schema
from kio.serial import entity_reader
from kio.serial.errors import SerialError

from handler.errors import ProtocolError
from handler.wire.bounds import Cut, checker, without
from handler.wire.types import split_type
from handler.wire.varint import unsigned_varint

Answer = Mapping[str, Any]
Write = Callable[[bytearray, Any], None]

_ZERO_UUID: Final = bytes(16)


# --- requests


@cache
def request_reader(key: int, version: int) -> Callable[[memoryview, int], Any]:
    """Reads a body as kio's dataclass of that version; ProtocolError for anything that is not one."""
    check = checker(key, version)
    native: Callable[[memoryview, int], tuple[Any, int]] = entity_reader(load_request_schema(key, version))

    def read(body: memoryview, _version: int) -> Any:
        cuts: list[Cut] = []
        check(body, 0, cuts)
        try:
            return native(memoryview(without(body, 0, len(body), cuts)), 0)[0]
        except (SerialError, KeyError, ValueError, TypeError, OverflowError, UnicodeDecodeError, MemoryError) as error:
            raise ProtocolError(f"a request of API {key} version {version} can't be read: {error}") from error

    return read


def read_request(key: int, version: int, body: memoryview) -> Any:
    return request_reader(key, version)(body, version)


def request_is_flexible(key: int, version: int) -> bool:
    return bool(load_request_schema(key, version).__flexible__)


# --- answers


@cache
def answer_writer(key: int, version: int) -> Write:
    return _entity_writer(load_response_schema(key, version))


@cache
def answer_is_flexible(key: int, version: int) -> bool:
    return bool(load_response_schema(key, version).__flexible__)


def encode_answer(key: int, version: int, answer: Answer) -> bytearray:
    out = bytearray()
    answer_writer(key, version)(out, answer)
    return out


def _fixed(layout: str) -> Write:
    pack = struct.Struct(">" + layout).pack

    def write(out: bytearray, value: int) -> None:
        out += pack(value)

    return write


def _milliseconds(layout: str) -> Write:
    pack = struct.Struct(">" + layout).pack

    def write(out: bytearray, value: int | datetime.timedelta) -> None:
        if isinstance(value, datetime.timedelta):
            value = round(value.total_seconds() * 1000)
        out += pack(value)

    return write


def _instant(out: bytearray, value: int | None) -> None:
    out += struct.pack(">q", -1 if value is None else value)


def _uuid(out: bytearray, value: uuid.UUID | None) -> None:
    out += _ZERO_UUID if value is None else value.bytes


def _sized(flexible: bool, layout: str) -> Write:
    pack = struct.Struct(">" + layout).pack

    def write(out: bytearray, value: str | bytes | None) -> None:
        data = value.encode() if isinstance(value, str) else value
        if flexible:
            unsigned_varint(out, 0 if data is None else len(data) + 1)
        else:
            out += pack(-1 if data is None else len(data))
        if data is not None:
            out += data

    return write


def _records(flexible: bool) -> Write:
    """Record batches as bytes, or as a sequence of them: those are copied once, into the answer."""
    write_whole = _sized(flexible, "i")

    def write(out: bytearray, value: bytes | Sequence[bytes] | None) -> None:
        if value is None or isinstance(value, bytes):
            write_whole(out, value)
            return
        size = sum(map(len, value))
        if flexible:
            unsigned_varint(out, size + 1)
        else:
            out += struct.pack(">i", size)
        for part in value:
            out += part

    return write


def _primitive(kafka_type: str, flexible: bool) -> Write:
    match kafka_type:
        case "int8" | "bool":
            return _fixed("?" if kafka_type == "bool" else "b")
        case "int16" | "error_code":
            return _fixed("h")
        case "int32":
            return _fixed("i")
        case "int64":
            return _fixed("q")
        case "uint16":
            return _fixed("H")
        case "uint32":
            return _fixed("I")
        case "float64":
            return _fixed("d")
        case "timedelta_i32":
            return _milliseconds("i")
        case "timedelta_i64":
            return _milliseconds("q")
        case "datetime_i64":
            return _instant
        case "uuid":
            return _uuid
        case "string":
            return _sized(flexible, "h")
        case "bytes":
            return _sized(flexible, "i")
        case "records":
            return _records(flexible)
    raise NotImplementedError(f"no writer for Kafka type {kafka_type}")


def _array(item: Write, flexible: bool) -> Write:
    def write(out: bytearray, values: Sequence[Any] | None) -> None:
        if flexible:
            unsigned_varint(out, 0 if values is None else len(values) + 1)
        else:
            out += struct.pack(">i", -1 if values is None else len(values))
        for value in values or ():
            item(out, value)

    return write


def _nullable_entity(item: Write) -> Write:
    """A struct that may be null has a marker byte before it (KIP-893)."""

    def write(out: bytearray, value: Any) -> None:
        out += b"\xff" if value is None else b"\x01"
        if value is not None:
            item(out, value)

    return write


def _default(field: Any, array: bool, optional: bool, kafka_type: str | None) -> Any:
    if field.default is not MISSING:
        return field.default
    if array:
        return ()
    if optional:
        return None
    return {"string": "", "bytes": b"", "records": None, "bool": False}.get(kafka_type or "", 0)


@cache
def _entity_writer(entity: type[Any]) -> Write:
    flexible: bool = entity.__flexible__
    hints = get_type_hints(entity)
    plain: list[tuple[str, Write, Any]] = []
    tagged: list[tuple[int, str, Write, Any]] = []
    for field in fields(entity):
        bare, array, optional = split_type(hints[field.name])
        kafka_type = field.metadata.get("kafka_type")
        if kafka_type is None:
            write = _entity_writer(bare)
            if optional and not array:
                write = _nullable_entity(write)
        else:
            write = _primitive(kafka_type, flexible)
        if array:
            write = _array(write, flexible)
        default = _default(field, array, optional, kafka_type)
        tag = field.metadata.get("tag")
        if tag is None:
            plain.append((field.name, write, default))
        else:
            tagged.append((tag, field.name, write, default))
    tagged.sort(key=lambda item: item[0])

    def write_entity(out: bytearray, value: Answer) -> None:
        get = value.get
        for name, write, default in plain:
            write(out, get(name, default))
        if flexible:
            _write_tagged(out, [(tag, write, value[name]) for tag, name, write, default in tagged if get(name, default) != default])

    return write_entity


def _write_tagged(out: bytearray, present: list[tuple[int, Write, Any]]) -> None:
    unsigned_varint(out, len(present))
    for tag, write, value in present:
        body = bytearray()
        write(body, value)
        unsigned_varint(out, tag)
        unsigned_varint(out, len(body))
        out += body
