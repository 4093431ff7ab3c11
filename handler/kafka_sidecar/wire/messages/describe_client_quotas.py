"""Made by `make messages` from Kafka's schemas: not to be edited."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as Layout
from typing import ClassVar, Final

from kafka_sidecar.wire.buffers import Reader, Writer
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.message import Message, Struct

_IH: Final = Layout(">ih")


class ComponentData(Struct):
    __slots__ = ("entity_type", "match_type", "match")

    def __init__(
        self,
        *,
        entity_type: str = "",
        match_type: int = 0,
        match: str | None = None,
    ) -> None:
        self.entity_type = entity_type
        self.match_type = match_type
        self.match = match

    @classmethod
    def decode(cls, reader: Reader, version: int) -> ComponentData:
        one = cls.__new__(cls)
        one.entity_type = reader.string()
        one.match_type = reader.int8()
        one.match = reader.nullable_string()
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.string(self.entity_type)
        writer.int8(self.match_type)
        writer.nullable_string(self.match)
        writer.tagged_fields()


class DescribeClientQuotasRequest(Message):
    __slots__ = ("components", "strict")

    KEY: ClassVar[int] = 48
    FLEXIBLE_SINCE: ClassVar[int] = 1

    def __init__(
        self,
        *,
        components: Sequence[ComponentData] = (),
        strict: bool = False,
    ) -> None:
        self.components = components
        self.strict = strict

    @classmethod
    def decode(cls, reader: Reader, version: int) -> DescribeClientQuotasRequest:
        one = cls.__new__(cls)
        one.components = reader.array(ComponentData.decode, version)
        one.strict = reader.bool_()
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.array(self.components, version)
        writer.bool_(self.strict)
        writer.tagged_fields()


class ValueData(Struct):
    __slots__ = ("key", "value")

    def __init__(
        self,
        *,
        key: str = "",
        value: float = 0.0,
    ) -> None:
        self.key = key
        self.value = value

    @classmethod
    def decode(cls, reader: Reader, version: int) -> ValueData:
        one = cls.__new__(cls)
        one.key = reader.string()
        one.value = reader.float64()
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.string(self.key)
        writer.float64(self.value)
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
    __slots__ = ("entity", "values")

    def __init__(
        self,
        *,
        entity: Sequence[EntityData] = (),
        values: Sequence[ValueData] = (),
    ) -> None:
        self.entity = entity
        self.values = values

    @classmethod
    def decode(cls, reader: Reader, version: int) -> EntryData:
        one = cls.__new__(cls)
        one.entity = reader.array(EntityData.decode, version)
        one.values = reader.array(ValueData.decode, version)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.array(self.entity, version)
        writer.array(self.values, version)
        writer.tagged_fields()


class DescribeClientQuotasResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "error_message", "entries")

    KEY: ClassVar[int] = 48
    FLEXIBLE_SINCE: ClassVar[int] = 1

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: ErrorCode = ErrorCode.NONE,
        error_message: str | None = None,
        entries: Sequence[EntryData] | None = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.entries = entries

    @classmethod
    def decode(cls, reader: Reader, version: int) -> DescribeClientQuotasResponse:
        one = cls.__new__(cls)
        one.throttle_time_ms, one.error_code = reader.unpack(_IH)
        one.error_code = ErrorCode(one.error_code)
        one.error_message = reader.nullable_string()
        one.entries = reader.nullable_array(EntryData.decode, version)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.out += _IH.pack(self.throttle_time_ms, self.error_code)
        writer.nullable_message(self.error_message)
        writer.nullable_array(self.entries, version)
        writer.tagged_fields()
