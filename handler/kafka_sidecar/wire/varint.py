"""Kafka's unsigned varints and the tagged fields counted with them (KIP-482)."""

from __future__ import annotations

from typing import Final

from kafka_sidecar.errors import ProtocolError

# Limit of tagged fields in one struct. Kafka's messages have at most ten.
MAX_TAGS: Final = 1_000


def read_varint(data: memoryview, at: int) -> tuple[int, int]:
    """An unsigned number of at most five bytes, and the place after it."""
    try:
        value = data[at]
        if value < 0x80:
            return value, at + 1
        value &= 0x7F
        for shift in range(7, 35, 7):
            at += 1
            byte = data[at]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value, at + 1
    except IndexError:
        raise ProtocolError("the request ends inside a number") from None
    raise ProtocolError("a number in the request is too long")


def unsigned_varint(out: bytearray, value: int) -> None:
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def skip_tagged_fields(data: memoryview, at: int) -> int:
    """The place after the tagged fields at `at`, whatever they are."""
    count, at = read_varint(data, at)
    if count > MAX_TAGS:
        raise ProtocolError(f"{count} tagged fields: no more than {MAX_TAGS} are taken in one struct")
    for _ in range(count):
        _, at = read_varint(data, at)
        size, at = read_varint(data, at)
        at += size
        if at > len(data):
            raise ProtocolError("a tagged field is longer than the request")
    return at
