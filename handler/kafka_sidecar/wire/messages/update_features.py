"""Made by `make messages` from Kafka's schemas: not to be edited."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as Layout
from typing import ClassVar, Final

from kafka_sidecar.wire.buffers import Reader, Writer
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.message import Message, Struct

_IH: Final = Layout(">ih")


class FeatureUpdateKey(Struct):
    __slots__ = ("feature", "max_version_level", "allow_downgrade", "upgrade_type")

    def __init__(
        self,
        *,
        feature: str = "",
        max_version_level: int = 0,
        allow_downgrade: bool = False,  # version <= 0
        upgrade_type: int = 1,  # version >= 1
    ) -> None:
        self.feature = feature
        self.max_version_level = max_version_level
        self.allow_downgrade = allow_downgrade
        self.upgrade_type = upgrade_type

    @classmethod
    def decode(cls, reader: Reader, version: int) -> FeatureUpdateKey:
        one = cls.__new__(cls)
        one.feature = reader.string()
        one.max_version_level = reader.int16()
        if version <= 0:
            one.allow_downgrade = reader.bool_()
        else:
            one.allow_downgrade = False
        if version >= 1:
            one.upgrade_type = reader.int8()
        else:
            one.upgrade_type = 1
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.string(self.feature)
        writer.int16(self.max_version_level)
        if version <= 0:
            writer.bool_(self.allow_downgrade)
        if version >= 1:
            writer.int8(self.upgrade_type)
        writer.tagged_fields()


class UpdateFeaturesRequest(Message):
    __slots__ = ("timeout_ms", "feature_updates", "validate_only")

    KEY: ClassVar[int] = 57
    FLEXIBLE_SINCE: ClassVar[int] = 0

    def __init__(
        self,
        *,
        timeout_ms: int = 60000,
        feature_updates: Sequence[FeatureUpdateKey] = (),
        validate_only: bool = False,  # version >= 1
    ) -> None:
        self.timeout_ms = timeout_ms
        self.feature_updates = feature_updates
        self.validate_only = validate_only

    @classmethod
    def decode(cls, reader: Reader, version: int) -> UpdateFeaturesRequest:
        one = cls.__new__(cls)
        one.timeout_ms = reader.int32()
        one.feature_updates = reader.array(FeatureUpdateKey.decode, version)
        if version >= 1:
            one.validate_only = reader.bool_()
        else:
            one.validate_only = False
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.timeout_ms)
        writer.array(self.feature_updates, version)
        if version >= 1:
            writer.bool_(self.validate_only)
        writer.tagged_fields()


class UpdatableFeatureResult(Struct):
    __slots__ = ("feature", "error_code", "error_message")

    def __init__(
        self,
        *,
        feature: str = "",
        error_code: ErrorCode = ErrorCode.NONE,
        error_message: str | None = None,
    ) -> None:
        self.feature = feature
        self.error_code = error_code
        self.error_message = error_message

    @classmethod
    def decode(cls, reader: Reader, version: int) -> UpdatableFeatureResult:
        one = cls.__new__(cls)
        one.feature = reader.string()
        one.error_code = ErrorCode(reader.int16())
        one.error_message = reader.nullable_string()
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.string(self.feature)
        writer.int16(self.error_code)
        writer.nullable_message(self.error_message)
        writer.tagged_fields()


class UpdateFeaturesResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "error_message", "results")

    KEY: ClassVar[int] = 57
    FLEXIBLE_SINCE: ClassVar[int] = 0

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: ErrorCode = ErrorCode.NONE,
        error_message: str | None = None,
        results: Sequence[UpdatableFeatureResult] = (),  # version <= 1
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.results = results

    @classmethod
    def decode(cls, reader: Reader, version: int) -> UpdateFeaturesResponse:
        one = cls.__new__(cls)
        one.throttle_time_ms, one.error_code = reader.unpack(_IH)
        one.error_code = ErrorCode(one.error_code)
        one.error_message = reader.nullable_string()
        if version <= 1:
            one.results = reader.array(UpdatableFeatureResult.decode, version)
        else:
            one.results = ()
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.out += _IH.pack(self.throttle_time_ms, self.error_code)
        writer.nullable_message(self.error_message)
        if version <= 1:
            writer.array(self.results, version)
        writer.tagged_fields()
