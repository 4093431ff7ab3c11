"""Made by `make messages` from Kafka's schemas: not to be edited."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as Layout
from typing import ClassVar, Final

from kafka_sidecar.wire.buffers import Reader, Writer
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.message import Message, Struct

_XBX: Final = Layout(">?b?")


class DescribeConfigsResource(Struct):
    __slots__ = ("resource_type", "resource_name", "configuration_keys")

    def __init__(
        self,
        *,
        resource_type: int = 0,
        resource_name: str = "",
        configuration_keys: Sequence[str] | None = (),
    ) -> None:
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.configuration_keys = configuration_keys

    @classmethod
    def decode(cls, reader: Reader, version: int) -> DescribeConfigsResource:
        one = cls.__new__(cls)
        one.resource_type = reader.int8()
        one.resource_name = reader.string()
        one.configuration_keys = reader.nullable_string_array()
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.int8(self.resource_type)
        writer.string(self.resource_name)
        writer.nullable_string_array(self.configuration_keys)
        writer.tagged_fields()


class DescribeConfigsRequest(Message):
    __slots__ = ("resources", "include_synonyms", "include_documentation")

    KEY: ClassVar[int] = 32
    FLEXIBLE_SINCE: ClassVar[int] = 4

    def __init__(
        self,
        *,
        resources: Sequence[DescribeConfigsResource] = (),
        include_synonyms: bool = False,
        include_documentation: bool = False,  # version >= 3
    ) -> None:
        self.resources = resources
        self.include_synonyms = include_synonyms
        self.include_documentation = include_documentation

    @classmethod
    def decode(cls, reader: Reader, version: int) -> DescribeConfigsRequest:
        one = cls.__new__(cls)
        one.resources = reader.array(DescribeConfigsResource.decode, version)
        one.include_synonyms = reader.bool_()
        if version >= 3:
            one.include_documentation = reader.bool_()
        else:
            one.include_documentation = False
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.array(self.resources, version)
        writer.bool_(self.include_synonyms)
        if version >= 3:
            writer.bool_(self.include_documentation)
        writer.tagged_fields()


class DescribeConfigsSynonym(Struct):
    __slots__ = ("name", "value", "source")

    def __init__(
        self,
        *,
        name: str = "",
        value: str | None = None,
        source: int = 0,
    ) -> None:
        self.name = name
        self.value = value
        self.source = source

    @classmethod
    def decode(cls, reader: Reader, version: int) -> DescribeConfigsSynonym:
        one = cls.__new__(cls)
        one.name = reader.string()
        one.value = reader.nullable_string()
        one.source = reader.int8()
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.string(self.name)
        writer.nullable_string(self.value)
        writer.int8(self.source)
        writer.tagged_fields()


class DescribeConfigsResourceResult(Struct):
    __slots__ = (
        "name",
        "value",
        "read_only",
        "config_source",
        "is_sensitive",
        "synonyms",
        "config_type",
        "documentation",
    )

    def __init__(
        self,
        *,
        name: str = "",
        value: str | None = None,
        read_only: bool = False,
        config_source: int = -1,
        is_sensitive: bool = False,
        synonyms: Sequence[DescribeConfigsSynonym] = (),
        config_type: int = 0,  # version >= 3
        documentation: str | None = None,  # version >= 3
    ) -> None:
        self.name = name
        self.value = value
        self.read_only = read_only
        self.config_source = config_source
        self.is_sensitive = is_sensitive
        self.synonyms = synonyms
        self.config_type = config_type
        self.documentation = documentation

    @classmethod
    def decode(cls, reader: Reader, version: int) -> DescribeConfigsResourceResult:
        one = cls.__new__(cls)
        one.name = reader.string()
        one.value = reader.nullable_string()
        one.read_only, one.config_source, one.is_sensitive = reader.unpack(_XBX)
        one.synonyms = reader.array(DescribeConfigsSynonym.decode, version)
        if version >= 3:
            one.config_type = reader.int8()
            one.documentation = reader.nullable_string()
        else:
            one.config_type = 0
            one.documentation = None
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.string(self.name)
        writer.nullable_string(self.value)
        writer.out += _XBX.pack(self.read_only, self.config_source, self.is_sensitive)
        writer.array(self.synonyms, version)
        if version >= 3:
            writer.int8(self.config_type)
            writer.nullable_string(self.documentation)
        writer.tagged_fields()


class DescribeConfigsResult(Struct):
    __slots__ = ("error_code", "error_message", "resource_type", "resource_name", "configs")

    def __init__(
        self,
        *,
        error_code: ErrorCode = ErrorCode.NONE,
        error_message: str | None = None,
        resource_type: int = 0,
        resource_name: str = "",
        configs: Sequence[DescribeConfigsResourceResult] = (),
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.configs = configs

    @classmethod
    def decode(cls, reader: Reader, version: int) -> DescribeConfigsResult:
        one = cls.__new__(cls)
        one.error_code = ErrorCode(reader.int16())
        one.error_message = reader.nullable_string()
        one.resource_type = reader.int8()
        one.resource_name = reader.string()
        one.configs = reader.array(DescribeConfigsResourceResult.decode, version)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.int16(self.error_code)
        writer.nullable_message(self.error_message)
        writer.int8(self.resource_type)
        writer.string(self.resource_name)
        writer.array(self.configs, version)
        writer.tagged_fields()


class DescribeConfigsResponse(Message):
    __slots__ = ("throttle_time_ms", "results")

    KEY: ClassVar[int] = 32
    FLEXIBLE_SINCE: ClassVar[int] = 4

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        results: Sequence[DescribeConfigsResult] = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results = results

    @classmethod
    def decode(cls, reader: Reader, version: int) -> DescribeConfigsResponse:
        one = cls.__new__(cls)
        one.throttle_time_ms = reader.int32()
        one.results = reader.array(DescribeConfigsResult.decode, version)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.throttle_time_ms)
        writer.array(self.results, version)
        writer.tagged_fields()
