"""Made by `make messages` from Kafka's schemas: not to be edited."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as Layout
from typing import ClassVar, Final

from kafka_sidecar.wire.buffers import Reader, Writer
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.message import Message, Struct

_IH: Final = Layout(">ih")


class ListConfigResourcesRequest(Message):
    __slots__ = ("resource_types",)

    KEY: ClassVar[int] = 74
    FLEXIBLE_SINCE: ClassVar[int] = 0

    def __init__(
        self,
        *,
        resource_types: Sequence[int] = (),  # version >= 1
    ) -> None:
        self.resource_types = resource_types

    @classmethod
    def decode(cls, reader: Reader, version: int) -> ListConfigResourcesRequest:
        one = cls.__new__(cls)
        if version >= 1:
            one.resource_types = reader.int8_array()
        else:
            one.resource_types = ()
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        if version >= 1:
            writer.int8_array(self.resource_types)
        writer.tagged_fields()


class ConfigResource(Struct):
    __slots__ = ("resource_name", "resource_type")

    def __init__(
        self,
        *,
        resource_name: str = "",
        resource_type: int = 16,  # version >= 1
    ) -> None:
        self.resource_name = resource_name
        self.resource_type = resource_type

    @classmethod
    def decode(cls, reader: Reader, version: int) -> ConfigResource:
        one = cls.__new__(cls)
        one.resource_name = reader.string()
        if version >= 1:
            one.resource_type = reader.int8()
        else:
            one.resource_type = 16
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.string(self.resource_name)
        if version >= 1:
            writer.int8(self.resource_type)
        writer.tagged_fields()


class ListConfigResourcesResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "config_resources")

    KEY: ClassVar[int] = 74
    FLEXIBLE_SINCE: ClassVar[int] = 0

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: ErrorCode = ErrorCode.NONE,
        config_resources: Sequence[ConfigResource] = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.config_resources = config_resources

    @classmethod
    def decode(cls, reader: Reader, version: int) -> ListConfigResourcesResponse:
        one = cls.__new__(cls)
        one.throttle_time_ms, one.error_code = reader.unpack(_IH)
        one.error_code = ErrorCode(one.error_code)
        one.config_resources = reader.array(ConfigResource.decode, version)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.out += _IH.pack(self.throttle_time_ms, self.error_code)
        writer.array(self.config_resources, version)
        writer.tagged_fields()
