"""Kafka's primitive types: fixed lengths, and compact ones where a version is flexible."""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable, Iterable
from typing import TypeVar

from kafka_sidecar.errors import ProtocolError

T = TypeVar("T")
NO_TAGS = b"\x00"


class RecordUnreadable(ProtocolError):
    """Not a record that Kafka would write."""


class Reader:
    __slots__ = ("_at", "_data", "flexible")

    def __init__(self, data: bytes, *, flexible: bool = False) -> None:
        self._data = data
        self._at = 0
        self.flexible = flexible

    def take(self, size: int) -> bytes:
        end = self._at + size
        if size < 0 or end > len(self._data):
            raise RecordUnreadable("a record is shorter than it says")
        taken = self._data[self._at : end]
        self._at = end
        return taken

    def rest(self) -> bytes:
        return self.take(len(self._data) - self._at)

    def number(self, layout: str) -> int:
        return int(struct.unpack(layout, self.take(struct.calcsize(layout)))[0])

    def varint(self) -> int:
        value = shift = 0
        while True:
            (byte,) = self.take(1)
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7
            if shift > 28:
                raise RecordUnreadable("a varint is too long")

    def nullable_text(self) -> str | None:
        size = self.varint() - 1 if self.flexible else self.number(">h")
        return None if size < 0 else self.take(size).decode()

    def text(self) -> str:
        return self.nullable_text() or ""

    def nullable_data(self) -> bytes | None:
        size = self.varint() - 1 if self.flexible else self.number(">i")
        return None if size < 0 else self.take(size)

    def data(self) -> bytes:
        return self.nullable_data() or b""

    def uuid(self) -> uuid.UUID:
        return uuid.UUID(bytes=self.take(16))

    def array(self, item: Callable[[], T]) -> list[T]:
        size = self.varint() - 1 if self.flexible else self.number(">i")
        if size > len(self._data):
            raise RecordUnreadable("an array is longer than its record")
        return [item() for _ in range(size)]

    def numbers(self) -> frozenset[int]:
        return frozenset(self.array(lambda: self.number(">i")))

    def tags(self) -> dict[int, bytes]:
        if not self.flexible:
            return {}
        return {self.varint(): self.take(self.varint()) for _ in range(self.varint())}


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
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
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
