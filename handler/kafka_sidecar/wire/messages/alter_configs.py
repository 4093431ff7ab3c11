"""Made by `make messages` from Kafka's schemas: not to be edited."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from kafka_sidecar.wire.buffers import Reader, Writer
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.message import Message, Struct


class AlterableConfig(Struct):
    __slots__ = ("name", "value")

    def __init__(
        self,
        *,
        name: str = "",
        value: str | None = None,
    ) -> None:
        self.name = name
        self.value = value

    @classmethod
    def decode(cls, reader: Reader, version: int) -> AlterableConfig:
        one = cls.__new__(cls)
        one.name = reader.string()
        one.value = reader.nullable_string()
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.string(self.name)
        writer.nullable_string(self.value)
        writer.tagged_fields()


class AlterConfigsResource(Struct):
    __slots__ = ("resource_type", "resource_name", "configs")

    def __init__(
        self,
        *,
        resource_type: int = 0,
        resource_name: str = "",
        configs: Sequence[AlterableConfig] = (),
    ) -> None:
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.configs = configs

    @classmethod
    def decode(cls, reader: Reader, version: int) -> AlterConfigsResource:
        one = cls.__new__(cls)
        one.resource_type = reader.int8()
        one.resource_name = reader.string()
        one.configs = reader.array(AlterableConfig.decode, version)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.int8(self.resource_type)
        writer.string(self.resource_name)
        writer.array(self.configs, version)
        writer.tagged_fields()


class AlterConfigsRequest(Message):
    __slots__ = ("resources", "validate_only")

    KEY: ClassVar[int] = 33
    FLEXIBLE_SINCE: ClassVar[int] = 2

    def __init__(
        self,
        *,
        resources: Sequence[AlterConfigsResource] = (),
        validate_only: bool = False,
    ) -> None:
        self.resources = resources
        self.validate_only = validate_only

    @classmethod
    def decode(cls, reader: Reader, version: int) -> AlterConfigsRequest:
        one = cls.__new__(cls)
        one.resources = reader.array(AlterConfigsResource.decode, version)
        one.validate_only = reader.bool_()
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.array(self.resources, version)
        writer.bool_(self.validate_only)
        writer.tagged_fields()


class AlterConfigsResourceResponse(Struct):
    __slots__ = ("error_code", "error_message", "resource_type", "resource_name")

    def __init__(
        self,
        *,
        error_code: ErrorCode = ErrorCode.NONE,
        error_message: str | None = None,
        resource_type: int = 0,
        resource_name: str = "",
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.resource_type = resource_type
        self.resource_name = resource_name

    @classmethod
    def decode(cls, reader: Reader, version: int) -> AlterConfigsResourceResponse:
        one = cls.__new__(cls)
        one.error_code = ErrorCode(reader.int16())
        one.error_message = reader.nullable_string()
        one.resource_type = reader.int8()
        one.resource_name = reader.string()
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.int16(self.error_code)
        writer.nullable_message(self.error_message)
        writer.int8(self.resource_type)
        writer.string(self.resource_name)
        writer.tagged_fields()


class AlterConfigsResponse(Message):
    __slots__ = ("throttle_time_ms", "responses")

    KEY: ClassVar[int] = 33
    FLEXIBLE_SINCE: ClassVar[int] = 2

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        responses: Sequence[AlterConfigsResourceResponse] = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.responses = responses

    @classmethod
    def decode(cls, reader: Reader, version: int) -> AlterConfigsResponse:
        one = cls.__new__(cls)
        one.throttle_time_ms = reader.int32()
        one.responses = reader.array(AlterConfigsResourceResponse.decode, version)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.throttle_time_ms)
        writer.array(self.responses, version)
        writer.tagged_fields()
