"""Made by `make messages` from Kafka's schemas: not to be edited."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as Layout
from typing import ClassVar, Final

from kafka_sidecar.wire.buffers import Reader, Writer
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.message import Message, Struct

_BB: Final = Layout(">bb")


class DeleteAclsFilter(Struct):
    __slots__ = (
        "resource_type_filter",
        "resource_name_filter",
        "pattern_type_filter",
        "principal_filter",
        "host_filter",
        "operation",
        "permission_type",
    )

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
    def decode(cls, reader: Reader, version: int) -> DeleteAclsFilter:
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


class DeleteAclsRequest(Message):
    __slots__ = ("filters",)

    KEY: ClassVar[int] = 31
    FLEXIBLE_SINCE: ClassVar[int] = 2

    def __init__(
        self,
        *,
        filters: Sequence[DeleteAclsFilter] = (),
    ) -> None:
        self.filters = filters

    @classmethod
    def decode(cls, reader: Reader, version: int) -> DeleteAclsRequest:
        one = cls.__new__(cls)
        one.filters = reader.array(DeleteAclsFilter.decode, version)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.array(self.filters, version)
        writer.tagged_fields()


class DeleteAclsMatchingAcl(Struct):
    __slots__ = (
        "error_code",
        "error_message",
        "resource_type",
        "resource_name",
        "pattern_type",
        "principal",
        "host",
        "operation",
        "permission_type",
    )

    def __init__(
        self,
        *,
        error_code: ErrorCode = ErrorCode.NONE,
        error_message: str | None = None,
        resource_type: int = 0,
        resource_name: str = "",
        pattern_type: int = 3,
        principal: str = "",
        host: str = "",
        operation: int = 0,
        permission_type: int = 0,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.pattern_type = pattern_type
        self.principal = principal
        self.host = host
        self.operation = operation
        self.permission_type = permission_type

    @classmethod
    def decode(cls, reader: Reader, version: int) -> DeleteAclsMatchingAcl:
        one = cls.__new__(cls)
        one.error_code = ErrorCode(reader.int16())
        one.error_message = reader.nullable_string()
        one.resource_type = reader.int8()
        one.resource_name = reader.string()
        one.pattern_type = reader.int8()
        one.principal = reader.string()
        one.host = reader.string()
        one.operation, one.permission_type = reader.unpack(_BB)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.int16(self.error_code)
        writer.nullable_message(self.error_message)
        writer.int8(self.resource_type)
        writer.string(self.resource_name)
        writer.int8(self.pattern_type)
        writer.string(self.principal)
        writer.string(self.host)
        writer.out += _BB.pack(self.operation, self.permission_type)
        writer.tagged_fields()


class DeleteAclsFilterResult(Struct):
    __slots__ = ("error_code", "error_message", "matching_acls")

    def __init__(
        self,
        *,
        error_code: ErrorCode = ErrorCode.NONE,
        error_message: str | None = None,
        matching_acls: Sequence[DeleteAclsMatchingAcl] = (),
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.matching_acls = matching_acls

    @classmethod
    def decode(cls, reader: Reader, version: int) -> DeleteAclsFilterResult:
        one = cls.__new__(cls)
        one.error_code = ErrorCode(reader.int16())
        one.error_message = reader.nullable_string()
        one.matching_acls = reader.array(DeleteAclsMatchingAcl.decode, version)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.int16(self.error_code)
        writer.nullable_message(self.error_message)
        writer.array(self.matching_acls, version)
        writer.tagged_fields()


class DeleteAclsResponse(Message):
    __slots__ = ("throttle_time_ms", "filter_results")

    KEY: ClassVar[int] = 31
    FLEXIBLE_SINCE: ClassVar[int] = 2

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        filter_results: Sequence[DeleteAclsFilterResult] = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.filter_results = filter_results

    @classmethod
    def decode(cls, reader: Reader, version: int) -> DeleteAclsResponse:
        one = cls.__new__(cls)
        one.throttle_time_ms = reader.int32()
        one.filter_results = reader.array(DeleteAclsFilterResult.decode, version)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.throttle_time_ms)
        writer.array(self.filter_results, version)
        writer.tagged_fields()
