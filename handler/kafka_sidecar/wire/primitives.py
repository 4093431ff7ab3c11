"""The parts of what Kafka stores: keys and values that begin with a version, in Kafka's primitive types.

They are read as messages are (`buffers`), and written as bytes that are put together.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from types import TracebackType
from typing import Final

from kafka_sidecar.errors import ProtocolError
from kafka_sidecar.wire.buffers import FlexibleReader, Reader
from kafka_sidecar.wire.varint import unsigned_varint

NO_TAGS: Final = b"\x00"
# First flexible version of a record that has none: no version is so high.
NEVER_FLEXIBLE: Final = 2**15
_VERSION: Final = struct.Struct(">h")


class RecordUnreadable(ProtocolError):
    """Not a record that Kafka would write."""


class reading:
    """What goes wrong within is a RecordUnreadable. A log has millions of records, for which a generator costs too
    much.
    """

    __slots__ = ("_what",)

    def __init__(self, what: str) -> None:
        self._what = what

    def __enter__(self) -> None: ...

    def __exit__(self, _: type[BaseException] | None, error: BaseException | None, __: TracebackType | None) -> None:
        if isinstance(error, (struct.error, IndexError, ValueError, ProtocolError)):
            raise RecordUnreadable(f"{self._what} can't be read: {error}") from error


def versioned(value: bytes, flexible_since: int) -> tuple[int, Reader]:
    """The version that a value begins with, and a reader of the rest. What is stored may have as many elements as it
    has bytes.
    """
    version = int(_VERSION.unpack_from(value)[0])
    reader = FlexibleReader if version >= flexible_since else Reader
    return version, reader(memoryview(value)[_VERSION.size :], max_elements=len(value))


def text(value: str | None) -> bytes:
    if value is None:
        return b"\xff\xff"
    data = value.encode()
    return struct.pack(">h", len(data)) + data


def data(value: bytes) -> bytes:
    return struct.pack(">i", len(value)) + value


def array(items: Iterable[bytes]) -> bytes:
    listed = list(items)
    return struct.pack(">i", len(listed)) + b"".join(listed)


def varint(value: int) -> bytes:
    out = bytearray()
    unsigned_varint(out, value)
    return bytes(out)


def compact_data(value: bytes) -> bytes:
    return varint(len(value) + 1) + value


def compact_text(value: str | None) -> bytes:
    return varint(0) if value is None else compact_data(value.encode())


def compact_array(items: Iterable[bytes]) -> bytes:
    listed = list(items)
    return varint(len(listed) + 1) + b"".join(listed)


def tagged(tag: int, value: bytes) -> bytes:
    """The tagged fields of a struct that has one of them."""
    return varint(1) + varint(tag) + varint(len(value)) + value
