"""Made by `make messages` from Kafka's schemas: not to be edited."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as Layout
from typing import ClassVar, Final

from kafka_sidecar.wire.buffers import Reader, Writer
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.message import Message, Struct

_BB: Final = Layout(">bb")


class AclCreation(Struct):
    __slots__ = (
        "resource_type",
        "resource_name",
        "resource_pattern_type",
        "principal",
        "host",
        "operation",
        "permission_type",
    )

    def __init__(
        self,
        *,
        resource_type: int = 0,
        resource_name: str = "",
        resource_pattern_type: int = 3,
        principal: str = "",
        host: str = "",
        operation: int = 0,
        permission_type: int = 0,
    ) -> None:
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.resource_pattern_type = resource_pattern_type
        self.principal = principal
        self.host = host
        self.operation = operation
        self.permission_type = permission_type

    @classmethod
    def decode(cls, reader: Reader, version: int) -> AclCreation:
        one = cls.__new__(cls)
        one.resource_type = reader.int8()
        one.resource_name = reader.string()
        one.resource_pattern_type = reader.int8()
        one.principal = reader.string()
        one.host = reader.string()
        one.operation, one.permission_type = reader.unpack(_BB)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.int8(self.resource_type)
        writer.string(self.resource_name)
        writer.int8(self.resource_pattern_type)
        writer.string(self.principal)
        writer.string(self.host)
        writer.out += _BB.pack(self.operation, self.permission_type)
        writer.tagged_fields()


class CreateAclsRequest(Message):
    __slots__ = ("creations",)

    KEY: ClassVar[int] = 30
    FLEXIBLE_SINCE: ClassVar[int] = 2

    def __init__(
        self,
        *,
        creations: Sequence[AclCreation] = (),
    ) -> None:
        self.creations = creations

    @classmethod
    def decode(cls, reader: Reader, version: int) -> CreateAclsRequest:
        one = cls.__new__(cls)
        one.creations = reader.array(AclCreation.decode, version)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.array(self.creations, version)
        writer.tagged_fields()


class AclCreationResult(Struct):
    __slots__ = ("error_code", "error_message")

    def __init__(
        self,
        *,
        error_code: ErrorCode = ErrorCode.NONE,
        error_message: str | None = None,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message

    @classmethod
    def decode(cls, reader: Reader, version: int) -> AclCreationResult:
        one = cls.__new__(cls)
        one.error_code = ErrorCode(reader.int16())
        one.error_message = reader.nullable_string()
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.int16(self.error_code)
        writer.nullable_message(self.error_message)
        writer.tagged_fields()


class CreateAclsResponse(Message):
    __slots__ = ("throttle_time_ms", "results")

    KEY: ClassVar[int] = 30
    FLEXIBLE_SINCE: ClassVar[int] = 2

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        results: Sequence[AclCreationResult] = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results = results

    @classmethod
    def decode(cls, reader: Reader, version: int) -> CreateAclsResponse:
        one = cls.__new__(cls)
        one.throttle_time_ms = reader.int32()
        one.results = reader.array(AclCreationResult.decode, version)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.throttle_time_ms)
        writer.array(self.results, version)
        writer.tagged_fields()
