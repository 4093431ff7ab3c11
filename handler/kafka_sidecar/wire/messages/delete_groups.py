"""Made by `make messages` from Kafka's schemas: not to be edited."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from kafka_sidecar.wire.buffers import Reader, Writer
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.message import Message, Struct


class DeleteGroupsRequest(Message):
    __slots__ = ("groups_names",)

    KEY: ClassVar[int] = 42
    FLEXIBLE_SINCE: ClassVar[int] = 2

    def __init__(
        self,
        *,
        groups_names: Sequence[str] = (),
    ) -> None:
        self.groups_names = groups_names

    @classmethod
    def decode(cls, reader: Reader, version: int) -> DeleteGroupsRequest:
        one = cls.__new__(cls)
        one.groups_names = reader.string_array()
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.string_array(self.groups_names)
        writer.tagged_fields()


class DeletableGroupResult(Struct):
    __slots__ = ("group_id", "error_code")

    def __init__(
        self,
        *,
        group_id: str = "",
        error_code: ErrorCode = ErrorCode.NONE,
    ) -> None:
        self.group_id = group_id
        self.error_code = error_code

    @classmethod
    def decode(cls, reader: Reader, version: int) -> DeletableGroupResult:
        one = cls.__new__(cls)
        one.group_id = reader.string()
        one.error_code = ErrorCode(reader.int16())
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.string(self.group_id)
        writer.int16(self.error_code)
        writer.tagged_fields()


class DeleteGroupsResponse(Message):
    __slots__ = ("throttle_time_ms", "results")

    KEY: ClassVar[int] = 42
    FLEXIBLE_SINCE: ClassVar[int] = 2

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        results: Sequence[DeletableGroupResult] = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results = results

    @classmethod
    def decode(cls, reader: Reader, version: int) -> DeleteGroupsResponse:
        one = cls.__new__(cls)
        one.throttle_time_ms = reader.int32()
        one.results = reader.array(DeletableGroupResult.decode, version)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.throttle_time_ms)
        writer.array(self.results, version)
        writer.tagged_fields()
