"""Made by `make messages` from Kafka's schemas: not to be edited."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as Layout
from typing import ClassVar, Final

from kafka_sidecar.wire.buffers import Reader, Writer
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.message import Message, Struct

_BB: Final = Layout(">bb")
_IH: Final = Layout(">ih")


class DescribeAclsRequest(Message):
    __slots__ = (
        "resource_type_filter",
        "resource_name_filter",
        "pattern_type_filter",
        "principal_filter",
        "host_filter",
        "operation",
        "permission_type",
    )

    KEY: ClassVar[int] = 29
    FLEXIBLE_SINCE: ClassVar[int] = 2

    def __init__(
        self,
        *,
        resource_type_filter: int = 0,
        resource_name_filter: str | None = None,
        pattern_type_filter: int = 3,
        principal_filter: str | None = None,
        host_filter: str | None = None,
        operation: int = 0,
        permission_type: int = 0,
    ) -> None:
        self.resource_type_filter = resource_type_filter
        self.resource_name_filter = resource_name_filter
        self.pattern_type_filter = pattern_type_filter
        self.principal_filter = principal_filter
        self.host_filter = host_filter
        self.operation = operation
        self.permission_type = permission_type

    @classmethod
    def decode(cls, reader: Reader, version: int) -> DescribeAclsRequest:
        one = cls.__new__(cls)
        one.resource_type_filter = reader.int8()
        one.resource_name_filter = reader.nullable_string()
        one.pattern_type_filter = reader.int8()
        one.principal_filter = reader.nullable_string()
        one.host_filter = reader.nullable_string()
        one.operation, one.permission_type = reader.unpack(_BB)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.int8(self.resource_type_filter)
        writer.nullable_string(self.resource_name_filter)
        writer.int8(self.pattern_type_filter)
        writer.nullable_string(self.principal_filter)
        writer.nullable_string(self.host_filter)
        writer.out += _BB.pack(self.operation, self.permission_type)
        writer.tagged_fields()


class AclDescription(Struct):
    __slots__ = ("principal", "host", "operation", "permission_type")

    def __init__(
        self,
        *,
        principal: str = "",
        host: str = "",
        operation: int = 0,
        permission_type: int = 0,
    ) -> None:
        self.principal = principal
        self.host = host
        self.operation = operation
        self.permission_type = permission_type

    @classmethod
    def decode(cls, reader: Reader, version: int) -> AclDescription:
        one = cls.__new__(cls)
        one.principal = reader.string()
        one.host = reader.string()
        one.operation, one.permission_type = reader.unpack(_BB)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.string(self.principal)
        writer.string(self.host)
        writer.out += _BB.pack(self.operation, self.permission_type)
        writer.tagged_fields()


class DescribeAclsResource(Struct):
    __slots__ = ("resource_type", "resource_name", "pattern_type", "acls")

    def __init__(
        self,
        *,
        resource_type: int = 0,
        resource_name: str = "",
        pattern_type: int = 3,
        acls: Sequence[AclDescription] = (),
    ) -> None:
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.pattern_type = pattern_type
        self.acls = acls

    @classmethod
    def decode(cls, reader: Reader, version: int) -> DescribeAclsResource:
        one = cls.__new__(cls)
        one.resource_type = reader.int8()
        one.resource_name = reader.string()
        one.pattern_type = reader.int8()
        one.acls = reader.array(AclDescription.decode, version)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.int8(self.resource_type)
        writer.string(self.resource_name)
        writer.int8(self.pattern_type)
        writer.array(self.acls, version)
        writer.tagged_fields()


class DescribeAclsResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "error_message", "resources")

    KEY: ClassVar[int] = 29
    FLEXIBLE_SINCE: ClassVar[int] = 2

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: ErrorCode = ErrorCode.NONE,
        error_message: str | None = None,
        resources: Sequence[DescribeAclsResource] = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.resources = resources

    @classmethod
    def decode(cls, reader: Reader, version: int) -> DescribeAclsResponse:
        one = cls.__new__(cls)
        one.throttle_time_ms, one.error_code = reader.unpack(_IH)
        one.error_code = ErrorCode(one.error_code)
        one.error_message = reader.nullable_string()
        one.resources = reader.array(DescribeAclsResource.decode, version)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.out += _IH.pack(self.throttle_time_ms, self.error_code)
        writer.nullable_message(self.error_message)
        writer.array(self.resources, version)
        writer.tagged_fields()
