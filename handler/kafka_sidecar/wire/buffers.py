"""The primitive types of Kafka's protocol, read with their bounds checked and written.

`Reader` and `Writer` are for the versions before KIP-482, `FlexibleReader` and `FlexibleWriter` for those since: there
lengths are varints and each struct ends with tagged fields. A message's code is the same for both.

No length is believed: memory is taken only for bytes that the buffer has. Anything unreadable is a ProtocolError.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from struct import Struct
from typing import Any, Final, TypeVar
from uuid import UUID

from kafka_sidecar.errors import ProtocolError
from kafka_sidecar.wire.varint import MAX_TAGS, read_varint, unsigned_varint

T = TypeVar("T")
R = TypeVar("R", bound="Reader")

# Limit of elements in all arrays of a message together, since each becomes an object, however few bytes it has. No
# regular request comes close.
MAX_ELEMENTS: Final = 200_000
# Numbers take less memory, so eight of them count as one array element.
_NUMBERS: Final = 8
# Longest string in bytes, as in Kafka's parser. Flexible versions could encode longer ones, but stored records have
# 16-bit lengths.
MAX_STRING: Final = 32_767
# Longest error message in a response.
MESSAGE_CHARACTERS: Final = 2_000
# Records with fewer bytes are copied into the response, which is cheaper than a separate write.
COPIED_BYTES: Final = 8 * 1024

_INT8: Final = Struct(">b")
_INT16: Final = Struct(">h")
_UINT16: Final = Struct(">H")
_INT32: Final = Struct(">i")
_INT64: Final = Struct(">q")
_FLOAT64: Final = Struct(">d")
_ZEROS: Final = bytes(16)


class Reader:
    """From `at` on; moves forward as it reads. A buffer that ends too early is a struct.error or an IndexError: see
    `Message.read`.
    """

    __slots__ = ("at", "data", "elements_left", "end")

    def __init__(self, data: memoryview, max_elements: int = MAX_ELEMENTS) -> None:
        self.data = data
        self.at = 0
        self.end = len(data)
        self.elements_left = max_elements

    # --- of fixed size

    def unpack(self, layout: Struct) -> tuple[Any, ...]:
        """Several values at once."""
        at = self.at
        self.at = at + layout.size
        return layout.unpack_from(self.data, at)

    def bool_(self) -> bool:
        return self.int8() != 0

    def int8(self) -> int:
        at = self.at
        self.at = at + 1
        return _INT8.unpack_from(self.data, at)[0]  # type: ignore[no-any-return]

    def int16(self) -> int:
        at = self.at
        self.at = at + 2
        return _INT16.unpack_from(self.data, at)[0]  # type: ignore[no-any-return]

    def uint16(self) -> int:
        at = self.at
        self.at = at + 2
        return _UINT16.unpack_from(self.data, at)[0]  # type: ignore[no-any-return]

    def int32(self) -> int:
        at = self.at
        self.at = at + 4
        return _INT32.unpack_from(self.data, at)[0]  # type: ignore[no-any-return]

    def int64(self) -> int:
        at = self.at
        self.at = at + 8
        return _INT64.unpack_from(self.data, at)[0]  # type: ignore[no-any-return]

    def float64(self) -> float:
        at = self.at
        self.at = at + 8
        return _FLOAT64.unpack_from(self.data, at)[0]  # type: ignore[no-any-return]

    def uuid(self) -> UUID | None:
        raw = self._take(16)
        return None if raw == _ZEROS else UUID(bytes=raw)

    def rest(self) -> bytes:
        """All that has not been read."""
        return self._take(self.end - self.at)

    # --- with a length

    def nullable_string(self) -> str | None:
        return self._text(self.int16())

    def string(self) -> str:
        return _given(self.nullable_string())

    def nullable_bytes(self) -> bytes | None:
        size = self._size()
        return None if size < 0 else self._take(size)

    def bytes_(self) -> bytes:
        return _given(self.nullable_bytes())

    def records(self) -> Sequence[bytes] | None:
        whole = self.nullable_bytes()
        return None if whole is None else (whole,)

    # --- arrays

    def nullable_array(self: R, element: Callable[[R, int], T], version: int) -> list[T] | None:
        count = self._count()
        return None if count < 0 else [element(self, version) for _ in range(count)]

    def array(self: R, element: Callable[[R, int], T], version: int) -> list[T]:
        return _given(self.nullable_array(element, version))

    def nullable_string_array(self) -> list[str] | None:
        count = self._count()
        return None if count < 0 else [self.string() for _ in range(count)]

    def string_array(self) -> list[str]:
        return _given(self.nullable_string_array())

    def nullable_int32_array(self) -> list[int] | None:
        count = self._size()
        if count < 0:
            return None
        at = self.at
        self._advance(4 * count)
        self._spend(count // _NUMBERS)
        return list(struct.unpack_from(f">{count}i", self.data, at))

    def int32_array(self) -> list[int]:
        return _given(self.nullable_int32_array())

    def int64_array(self) -> list[int]:
        count = self._size()
        if count < 0:
            return _given(None)
        at = self.at
        self._advance(8 * count)
        self._spend(count // _NUMBERS)
        return list(struct.unpack_from(f">{count}q", self.data, at))

    def int8_array(self) -> list[int]:
        # An int8 array has the same encoding as bytes.
        return [byte - 256 if byte > 127 else byte for byte in self.bytes_()]

    # --- structs

    def nullable_struct(self: R, element: Callable[[R, int], T], version: int) -> T | None:
        """A struct that may be null has a byte before it (KIP-893)."""
        return element(self, version) if self.int8() == 1 else None

    def tagged_fields(self) -> Iterable[tuple[int, FlexibleReader]]:
        """The end of a struct: tags, each with a reader of its content. There are none before KIP-482."""
        return ()

    def skip_tagged_fields(self) -> None:
        """The same for a struct that knows no tags."""

    # --- how lengths are written

    def _size(self) -> int:
        return self.int32()

    def _count(self) -> int:
        count = self._size()
        if count > self.end - self.at:
            raise ProtocolError(f"an array of {count} elements in {self.end - self.at} bytes")
        self._spend(count)
        return count

    def _spend(self, elements: int) -> None:
        if elements > self.elements_left:
            raise ProtocolError(f"the arrays of a message have no more than {MAX_ELEMENTS} elements: this one has more")
        if elements > 0:
            self.elements_left -= elements

    def _text(self, size: int) -> str | None:
        if size < 0:
            return None
        if size > MAX_STRING:
            raise ProtocolError(f"a string of {size} bytes: no more than {MAX_STRING} are taken")
        at = self.at
        self._advance(size)
        return str(self.data[at : at + size], "utf-8")

    def _take(self, size: int) -> bytes:
        at = self.at
        self._advance(size)
        return bytes(self.data[at : at + size])

    def _advance(self, size: int) -> None:
        at = self.at + size
        if at > self.end:
            raise ProtocolError(f"the message ends {at - self.end} bytes before a value of {size} bytes does")
        self.at = at


class FlexibleReader(Reader):
    __slots__ = ()

    def nullable_string(self) -> str | None:
        return self._text(self._size())

    def tagged_fields(self) -> Iterable[tuple[int, FlexibleReader]]:
        """A message leaves those alone that it does not know (KIP-482)."""
        count = self._tags()
        return self._each_tagged_field(count) if count else ()

    def skip_tagged_fields(self) -> None:
        for _ in range(self._tags()):
            self._size()
            self._advance(self._size() + 1)

    def _tags(self) -> int:
        count = self._size() + 1
        if count > MAX_TAGS:
            raise ProtocolError(f"{count} tagged fields: no more than {MAX_TAGS} are taken in one struct")
        return count

    def _each_tagged_field(self, count: int) -> Iterator[tuple[int, FlexibleReader]]:
        for _ in range(count):
            tag, size = self._size() + 1, self._size() + 1
            at = self.at
            self._advance(size)
            content = FlexibleReader(self.data[at : at + size], self.elements_left)
            yield tag, content
            self.elements_left = content.elements_left

    def _size(self) -> int:
        """A varint: the size and one, so that 0 is null."""
        byte = self.data[self.at]
        if byte < 0x80:
            self.at += 1
            return byte - 1
        value, self.at = read_varint(self.data, self.at)
        return value - 1


def _given(value: T | None) -> T:
    if value is None:
        raise ProtocolError("a value is null that must not be")
    return value


class Writer:
    """Appends to `out`. Large records stay as they are: `pieces` then has what comes before them, and them."""

    __slots__ = ("out", "pieces")

    def __init__(self, out: bytearray) -> None:
        self.out = out
        self.pieces: list[bytes | bytearray] = []

    # --- of fixed size

    def bool_(self, value: bool) -> None:
        self.out.append(value)

    def int8(self, value: int) -> None:
        self.out += _INT8.pack(value)

    def int16(self, value: int) -> None:
        self.out += _INT16.pack(value)

    def uint16(self, value: int) -> None:
        self.out += _UINT16.pack(value)

    def int32(self, value: int) -> None:
        self.out += _INT32.pack(value)

    def int64(self, value: int) -> None:
        self.out += _INT64.pack(value)

    def float64(self, value: float) -> None:
        self.out += _FLOAT64.pack(value)

    def uuid(self, value: UUID | None) -> None:
        self.out += _ZEROS if value is None else value.bytes

    # --- with a length

    def string(self, value: str) -> None:
        data = value.encode()
        self._string_size(len(data))
        self.out += data

    def nullable_string(self, value: str | None) -> None:
        if value is None:
            self._string_size(-1)
        else:
            self.string(value)

    def message(self, value: str) -> None:
        """What is said of an error. It may repeat what the client sent, and older versions have room for 32,767
        bytes.
        """
        self.string(value if len(value) <= MESSAGE_CHARACTERS else f"{value[:MESSAGE_CHARACTERS]} ...")

    def nullable_message(self, value: str | None) -> None:
        if value is None:
            self._string_size(-1)
        else:
            self.message(value)

    def bytes_(self, value: bytes) -> None:
        self._size(len(value))
        self.out += value

    def nullable_bytes(self, value: bytes | None) -> None:
        if value is None:
            self._size(-1)
        else:
            self.bytes_(value)

    def records(self, parts: Sequence[bytes | bytearray] | None) -> None:
        """Record batches. Many of them are not copied."""
        if parts is None:
            self._size(-1)
            return
        size = sum(map(len, parts))
        self._size(size)
        if size > COPIED_BYTES:
            self.pieces.append(self.out)
            self.pieces += parts
            self.out = bytearray()
            return
        for part in parts:
            self.out += part

    # --- arrays

    def nullable_array(self, values: Sequence[Any] | None, version: int) -> None:
        if values is None:
            self._size(-1)
        else:
            self.array(values, version)

    def array(self, values: Sequence[Any], version: int) -> None:
        self._size(len(values))
        for value in values:
            value.encode(self, version)

    def nullable_string_array(self, values: Sequence[str] | None) -> None:
        if values is None:
            self._size(-1)
        else:
            self.string_array(values)

    def string_array(self, values: Sequence[str]) -> None:
        self._size(len(values))
        for value in values:
            self.string(value)

    def nullable_int32_array(self, values: Sequence[int] | None) -> None:
        if values is None:
            self._size(-1)
        else:
            self.int32_array(values)

    def int32_array(self, values: Sequence[int]) -> None:
        self._size(len(values))
        self.out += struct.pack(f">{len(values)}i", *values)

    def int64_array(self, values: Sequence[int]) -> None:
        self._size(len(values))
        self.out += struct.pack(f">{len(values)}q", *values)

    def int8_array(self, values: Sequence[int]) -> None:
        self._size(len(values))
        self.out += struct.pack(f">{len(values)}b", *values)

    # --- structs

    def nullable_struct(self, value: Any, version: int) -> None:
        self.int8(-1 if value is None else 1)
        if value is not None:
            value.encode(self, version)

    def tagged_fields(self, fields: dict[int, FlexibleWriter] | None = None) -> None:
        """The end of a struct; tags in ascending order."""

    # --- how lengths are written

    def _string_size(self, size: int) -> None:
        self.int16(size)

    def _size(self, size: int) -> None:
        self.int32(size)


class FlexibleWriter(Writer):
    __slots__ = ()

    def _size(self, size: int) -> None:
        if size < 0x7F:
            self.out.append(size + 1)
        else:
            unsigned_varint(self.out, size + 1)

    def _string_size(self, size: int) -> None:
        self._size(size)

    def tagged_fields(self, fields: dict[int, FlexibleWriter] | None = None) -> None:
        if not fields:
            self.out.append(0)
            return
        unsigned_varint(self.out, len(fields))
        for tag, content in fields.items():
            assert not content.pieces, "no tagged field has records"
            unsigned_varint(self.out, tag)
            unsigned_varint(self.out, len(content.out))
            self.out += content.out
