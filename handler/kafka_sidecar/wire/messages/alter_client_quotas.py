"""Made by `make messages` from Kafka's schemas: not to be edited."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as Layout
from typing import ClassVar, Final

from kafka_sidecar.wire.buffers import Reader, Writer
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.message import Message, Struct

_DX: Final = Layout(">d?")


class OpData(Struct):
    __slots__ = ("key", "value", "remove")

    def __init__(
        self,
        *,
        key: str = "",
        value: float = 0.0,
        remove: bool = False,
    ) -> None:
        self.key = key
        self.value = value
        self.remove = remove

    @classmethod
    def decode(cls, reader: Reader, version: int) -> OpData:
        one = cls.__new__(cls)
        one.key = reader.string()
        one.value, one.remove = reader.unpack(_DX)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.string(self.key)
        writer.out += _DX.pack(self.value, self.remove)
        writer.tagged_fields()


class EntityData(Struct):
    __slots__ = ("entity_type", "entity_name")

    def __init__(
        self,
        *,
        entity_type: str = "",
        entity_name: str | None = None,
    ) -> None:
        self.entity_type = entity_type
        self.entity_name = entity_name

    @classmethod
    def decode(cls, reader: Reader, version: int) -> EntityData:
        one = cls.__new__(cls)
        one.entity_type = reader.string()
        one.entity_name = reader.nullable_string()
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.string(self.entity_type)
        writer.nullable_string(self.entity_name)
        writer.tagged_fields()


class EntryData(Struct):
    __slots__ = ("entity", "ops")

    def __init__(
        self,
        *,
        entity: Sequence[EntityData] = (),
        ops: Sequence[OpData] = (),
    ) -> None:
        self.entity = entity
        self.ops = ops

    @classmethod
    def decode(cls, reader: Reader, version: int) -> EntryData:
        one = cls.__new__(cls)
        one.entity = reader.array(EntityData.decode, version)
        one.ops = reader.array(OpData.decode, version)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.array(self.entity, version)
        writer.array(self.ops, version)
        writer.tagged_fields()


class AlterClientQuotasRequest(Message):
    __slots__ = ("entries", "validate_only")

    KEY: ClassVar[int] = 49
    FLEXIBLE_SINCE: ClassVar[int] = 1

    def __init__(
        self,
        *,
        entries: Sequence[EntryData] = (),
        validate_only: bool = False,
    ) -> None:
        self.entries = entries
        self.validate_only = validate_only

    @classmethod
    def decode(cls, reader: Reader, version: int) -> AlterClientQuotasRequest:
        one = cls.__new__(cls)
        one.entries = reader.array(EntryData.decode, version)
        one.validate_only = reader.bool_()
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.array(self.entries, version)
        writer.bool_(self.validate_only)
        writer.tagged_fields()


class EntityDataResult(Struct):
    __slots__ = ("entity_type", "entity_name")

    def __init__(
        self,
        *,
        entity_type: str = "",
        entity_name: str | None = None,
    ) -> None:
        self.entity_type = entity_type
        self.entity_name = entity_name

    @classmethod
    def decode(cls, reader: Reader, version: int) -> EntityDataResult:
        one = cls.__new__(cls)
        one.entity_type = reader.string()
        one.entity_name = reader.nullable_string()
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.string(self.entity_type)
        writer.nullable_string(self.entity_name)
        writer.tagged_fields()


class EntryDataResult(Struct):
    __slots__ = ("error_code", "error_message", "entity")

    def __init__(
        self,
        *,
        error_code: ErrorCode = ErrorCode.NONE,
        error_message: str | None = None,
        entity: Sequence[EntityDataResult] = (),
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.entity = entity

    @classmethod
    def decode(cls, reader: Reader, version: int) -> EntryDataResult:
        one = cls.__new__(cls)
        one.error_code = ErrorCode(reader.int16())
        one.error_message = reader.nullable_string()
        one.entity = reader.array(EntityDataResult.decode, version)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.int16(self.error_code)
        writer.nullable_message(self.error_message)
        writer.array(self.entity, version)
        writer.tagged_fields()


class AlterClientQuotasResponse(Message):
    __slots__ = ("throttle_time_ms", "entries")

    KEY: ClassVar[int] = 49
    FLEXIBLE_SINCE: ClassVar[int] = 1

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        entries: Sequence[EntryDataResult] = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.entries = entries

    @classmethod
    def decode(cls, reader: Reader, version: int) -> AlterClientQuotasResponse:
        one = cls.__new__(cls)
        one.throttle_time_ms = reader.int32()
        one.entries = reader.array(EntryDataResult.decode, version)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.throttle_time_ms)
        writer.array(self.entries, version)
        writer.tagged_fields()
