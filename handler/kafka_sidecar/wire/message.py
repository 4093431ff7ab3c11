"""The base of all messages and their parts."""

from __future__ import annotations

import struct
from typing import Any, ClassVar, Self

from kafka_sidecar.errors import ProtocolError
from kafka_sidecar.wire.buffers import MAX_ELEMENTS, FlexibleReader, FlexibleWriter, Reader, Writer


class Struct:
    """A message, or a part of one."""

    __slots__ = ()

    @classmethod
    def decode(cls, reader: Reader, version: int) -> Self:
        raise NotImplementedError

    def encode(self, writer: Writer, version: int) -> None:
        raise NotImplementedError

    def fields(self) -> list[tuple[str, Any]]:
        names = (name for kind in reversed(type(self).__mro__) for name in getattr(kind, "__slots__", ()))
        return [(name, getattr(self, name)) for name in names]

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.fields() == other.fields()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.fields())})"


class Encoded(Struct):
    """A struct that was written already, for the message and the version that it is a part of.

    A message of many parts would hold the event loop while it is written at once.
    """

    __slots__ = ("_written",)

    def __init__(self, struct_: Struct, message: type[Message], version: int) -> None:
        self._written = bytearray()
        writer = message.writer(version, self._written)
        struct_.encode(writer, version)
        assert not writer.pieces, "records are written with their message"

    def encode(self, writer: Writer, version: int) -> None:
        writer.out += self._written


class Message(Struct):
    __slots__ = ()

    KEY: ClassVar[int]
    FLEXIBLE_SINCE: ClassVar[int]

    @classmethod
    def is_flexible(cls, version: int) -> bool:
        return version >= cls.FLEXIBLE_SINCE

    @classmethod
    def read(cls, version: int, body: memoryview, max_elements: int = MAX_ELEMENTS) -> Self:
        """The message at the beginning of `body`; ProtocolError for anything that is not one."""
        reader = FlexibleReader if version >= cls.FLEXIBLE_SINCE else Reader
        try:
            return cls.decode(reader(body, max_elements), version)
        except (struct.error, IndexError, UnicodeDecodeError) as error:
            raise ProtocolError(f"a {cls.__name__} of version {version} can't be read: {error}") from error

    @classmethod
    def writer(cls, version: int, out: bytearray) -> Writer:
        return FlexibleWriter(out) if version >= cls.FLEXIBLE_SINCE else Writer(out)

    def write(self, version: int, out: bytearray) -> None:
        for piece in self.write_pieces(version, out)[1:]:
            out += piece

    def write_pieces(self, version: int, out: bytearray) -> list[bytes | bytearray]:
        """Write into `out`, and what can't be copied cheaply behind it: the pieces; `out` is the first."""
        writer = self.writer(version, out)
        self.encode(writer, version)
        return [*writer.pieces, writer.out]
