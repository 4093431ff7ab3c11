"""Made by `make messages` from Kafka's schemas: not to be edited."""

from __future__ import annotations

from typing import ClassVar

from kafka_sidecar.wire.buffers import Reader, Writer
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.message import Message


class HeartbeatRequest(Message):
    __slots__ = ("group_id", "generation_id", "member_id", "group_instance_id")

    KEY: ClassVar[int] = 12
    FLEXIBLE_SINCE: ClassVar[int] = 4

    def __init__(
        self,
        *,
        group_id: str = "",
        generation_id: int = 0,
        member_id: str = "",
        group_instance_id: str | None = None,  # version >= 3
    ) -> None:
        self.group_id = group_id
        self.generation_id = generation_id
        self.member_id = member_id
        self.group_instance_id = group_instance_id

    @classmethod
    def decode(cls, reader: Reader, version: int) -> HeartbeatRequest:
        one = cls.__new__(cls)
        one.group_id = reader.string()
        one.generation_id = reader.int32()
        one.member_id = reader.string()
        if version >= 3:
            one.group_instance_id = reader.nullable_string()
        else:
            one.group_instance_id = None
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.string(self.group_id)
        writer.int32(self.generation_id)
        writer.string(self.member_id)
        if version >= 3:
            writer.nullable_string(self.group_instance_id)
        writer.tagged_fields()


class HeartbeatResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code")

    KEY: ClassVar[int] = 12
    FLEXIBLE_SINCE: ClassVar[int] = 4

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,  # version >= 1
        error_code: ErrorCode = ErrorCode.NONE,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code

    @classmethod
    def decode(cls, reader: Reader, version: int) -> HeartbeatResponse:
        one = cls.__new__(cls)
        if version >= 1:
            one.throttle_time_ms = reader.int32()
        else:
            one.throttle_time_ms = 0
        one.error_code = ErrorCode(reader.int16())
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        if version >= 1:
            writer.int32(self.throttle_time_ms)
        writer.int16(self.error_code)
        writer.tagged_fields()
