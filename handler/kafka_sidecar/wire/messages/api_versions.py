"""Made by `make messages` from Kafka's schemas: not to be edited."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as Layout
from typing import ClassVar, Final

from kafka_sidecar.wire.buffers import FlexibleWriter, Reader, Writer
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.message import Message, Struct

_HH: Final = Layout(">hh")
_HHH: Final = Layout(">hhh")


class ApiVersionsRequest(Message):
    __slots__ = ("client_software_name", "client_software_version")

    KEY: ClassVar[int] = 18
    FLEXIBLE_SINCE: ClassVar[int] = 3

    def __init__(
        self,
        *,
        client_software_name: str = "",  # version >= 3
        client_software_version: str = "",  # version >= 3
    ) -> None:
        self.client_software_name = client_software_name
        self.client_software_version = client_software_version

    @classmethod
    def decode(cls, reader: Reader, version: int) -> ApiVersionsRequest:
        one = cls.__new__(cls)
        if version >= 3:
            one.client_software_name = reader.string()
            one.client_software_version = reader.string()
        else:
            one.client_software_name = ""
            one.client_software_version = ""
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        if version >= 3:
            writer.string(self.client_software_name)
            writer.string(self.client_software_version)
        writer.tagged_fields()


class FinalizedFeatureKey(Struct):
    __slots__ = ("name", "max_version_level", "min_version_level")

    def __init__(
        self,
        *,
        name: str = "",
        max_version_level: int = 0,
        min_version_level: int = 0,
    ) -> None:
        self.name = name
        self.max_version_level = max_version_level
        self.min_version_level = min_version_level

    @classmethod
    def decode(cls, reader: Reader, version: int) -> FinalizedFeatureKey:
        one = cls.__new__(cls)
        one.name = reader.string()
        one.max_version_level, one.min_version_level = reader.unpack(_HH)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.string(self.name)
        writer.out += _HH.pack(self.max_version_level, self.min_version_level)
        writer.tagged_fields()


class SupportedFeatureKey(Struct):
    __slots__ = ("name", "min_version", "max_version")

    def __init__(
        self,
        *,
        name: str = "",
        min_version: int = 0,
        max_version: int = 0,
    ) -> None:
        self.name = name
        self.min_version = min_version
        self.max_version = max_version

    @classmethod
    def decode(cls, reader: Reader, version: int) -> SupportedFeatureKey:
        one = cls.__new__(cls)
        one.name = reader.string()
        one.min_version, one.max_version = reader.unpack(_HH)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.string(self.name)
        writer.out += _HH.pack(self.min_version, self.max_version)
        writer.tagged_fields()


class ApiVersion(Struct):
    __slots__ = ("api_key", "min_version", "max_version")

    def __init__(
        self,
        *,
        api_key: int = 0,
        min_version: int = 0,
        max_version: int = 0,
    ) -> None:
        self.api_key = api_key
        self.min_version = min_version
        self.max_version = max_version

    @classmethod
    def decode(cls, reader: Reader, version: int) -> ApiVersion:
        one = cls.__new__(cls)
        one.api_key, one.min_version, one.max_version = reader.unpack(_HHH)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.out += _HHH.pack(self.api_key, self.min_version, self.max_version)
        writer.tagged_fields()


class ApiVersionsResponse(Message):
    __slots__ = (
        "error_code",
        "api_keys",
        "throttle_time_ms",
        "supported_features",
        "finalized_features_epoch",
        "finalized_features",
        "zk_migration_ready",
    )

    KEY: ClassVar[int] = 18
    FLEXIBLE_SINCE: ClassVar[int] = 3

    def __init__(
        self,
        *,
        error_code: ErrorCode = ErrorCode.NONE,
        api_keys: Sequence[ApiVersion] = (),
        throttle_time_ms: int = 0,  # version >= 1
        supported_features: Sequence[SupportedFeatureKey] = (),  # version >= 3
        finalized_features_epoch: int = -1,  # version >= 3
        finalized_features: Sequence[FinalizedFeatureKey] = (),  # version >= 3
        zk_migration_ready: bool = False,  # version >= 3
    ) -> None:
        self.error_code = error_code
        self.api_keys = api_keys
        self.throttle_time_ms = throttle_time_ms
        self.supported_features = supported_features
        self.finalized_features_epoch = finalized_features_epoch
        self.finalized_features = finalized_features
        self.zk_migration_ready = zk_migration_ready

    @classmethod
    def decode(cls, reader: Reader, version: int) -> ApiVersionsResponse:
        one = cls.__new__(cls)
        one.error_code = ErrorCode(reader.int16())
        one.api_keys = reader.array(ApiVersion.decode, version)
        if version >= 1:
            one.throttle_time_ms = reader.int32()
        else:
            one.throttle_time_ms = 0
        one.supported_features = ()
        one.finalized_features_epoch = -1
        one.finalized_features = ()
        one.zk_migration_ready = False
        for tag, field in reader.tagged_fields():
            if tag == 0 and version >= 3:
                one.supported_features = field.array(SupportedFeatureKey.decode, version)
            if tag == 1 and version >= 3:
                one.finalized_features_epoch = field.int64()
            if tag == 2 and version >= 3:
                one.finalized_features = field.array(FinalizedFeatureKey.decode, version)
            if tag == 3 and version >= 3:
                one.zk_migration_ready = field.bool_()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.int16(self.error_code)
        writer.array(self.api_keys, version)
        if version >= 1:
            writer.int32(self.throttle_time_ms)
        tagged: dict[int, FlexibleWriter] = {}
        if self.supported_features and version >= 3:
            field = tagged[0] = FlexibleWriter(bytearray())
            field.array(self.supported_features, version)
        if self.finalized_features_epoch != -1 and version >= 3:
            field = tagged[1] = FlexibleWriter(bytearray())
            field.int64(self.finalized_features_epoch)
        if self.finalized_features and version >= 3:
            field = tagged[2] = FlexibleWriter(bytearray())
            field.array(self.finalized_features, version)
        if self.zk_migration_ready and version >= 3:
            field = tagged[3] = FlexibleWriter(bytearray())
            field.bool_(self.zk_migration_ready)
        writer.tagged_fields(tagged)
