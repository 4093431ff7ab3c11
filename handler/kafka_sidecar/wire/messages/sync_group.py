"""Made by `make messages` from Kafka's schemas: not to be edited."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from kafka_sidecar.wire.buffers import Reader, Writer
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.message import Message, Struct


class SyncGroupRequestAssignment(Struct):
    __slots__ = ("member_id", "assignment")

    def __init__(
        self,
        *,
        member_id: str = "",
        assignment: bytes = b"",
    ) -> None:
        self.member_id = member_id
        self.assignment = assignment

    @classmethod
    def decode(cls, reader: Reader, version: int) -> SyncGroupRequestAssignment:
        one = cls.__new__(cls)
        one.member_id = reader.string()
        one.assignment = reader.bytes_()
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.string(self.member_id)
        writer.bytes_(self.assignment)
        writer.tagged_fields()


class SyncGroupRequest(Message):
    __slots__ = (
        "group_id",
        "generation_id",
        "member_id",
        "group_instance_id",
        "protocol_type",
        "protocol_name",
        "assignments",
    )

    KEY: ClassVar[int] = 14
    FLEXIBLE_SINCE: ClassVar[int] = 4

    def __init__(
        self,
        *,
        group_id: str = "",
        generation_id: int = 0,
        member_id: str = "",
        group_instance_id: str | None = None,  # version >= 3
        protocol_type: str | None = None,  # version >= 5
        protocol_name: str | None = None,  # version >= 5
        assignments: Sequence[SyncGroupRequestAssignment] = (),
    ) -> None:
        self.group_id = group_id
        self.generation_id = generation_id
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.protocol_type = protocol_type
        self.protocol_name = protocol_name
        self.assignments = assignments

    @classmethod
    def decode(cls, reader: Reader, version: int) -> SyncGroupRequest:
        one = cls.__new__(cls)
        one.group_id = reader.string()
        one.generation_id = reader.int32()
        one.member_id = reader.string()
        if version >= 3:
            one.group_instance_id = reader.nullable_string()
        else:
            one.group_instance_id = None
        if version >= 5:
            one.protocol_type = reader.nullable_string()
            one.protocol_name = reader.nullable_string()
        else:
            one.protocol_type = None
            one.protocol_name = None
        one.assignments = reader.array(SyncGroupRequestAssignment.decode, version)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.string(self.group_id)
        writer.int32(self.generation_id)
        writer.string(self.member_id)
        if version >= 3:
            writer.nullable_string(self.group_instance_id)
        if version >= 5:
            writer.nullable_string(self.protocol_type)
            writer.nullable_string(self.protocol_name)
        writer.array(self.assignments, version)
        writer.tagged_fields()


class SyncGroupResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "protocol_type", "protocol_name", "assignment")

    KEY: ClassVar[int] = 14
    FLEXIBLE_SINCE: ClassVar[int] = 4

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,  # version >= 1
        error_code: ErrorCode = ErrorCode.NONE,
        protocol_type: str | None = None,  # version >= 5
        protocol_name: str | None = None,  # version >= 5
        assignment: bytes = b"",
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.protocol_type = protocol_type
        self.protocol_name = protocol_name
        self.assignment = assignment

    @classmethod
    def decode(cls, reader: Reader, version: int) -> SyncGroupResponse:
        one = cls.__new__(cls)
        if version >= 1:
            one.throttle_time_ms = reader.int32()
        else:
            one.throttle_time_ms = 0
        one.error_code = ErrorCode(reader.int16())
        if version >= 5:
            one.protocol_type = reader.nullable_string()
            one.protocol_name = reader.nullable_string()
        else:
            one.protocol_type = None
            one.protocol_name = None
        one.assignment = reader.bytes_()
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        if version >= 1:
            writer.int32(self.throttle_time_ms)
        writer.int16(self.error_code)
        if version >= 5:
            writer.nullable_string(self.protocol_type)
            writer.nullable_string(self.protocol_name)
        writer.bytes_(self.assignment)
        writer.tagged_fields()
