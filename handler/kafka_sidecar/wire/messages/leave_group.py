"""Made by `make messages` from Kafka's schemas: not to be edited."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from kafka_sidecar.wire.buffers import Reader, Writer
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.message import Message, Struct


class MemberIdentity(Struct):
    __slots__ = ("member_id", "group_instance_id", "reason")

    def __init__(
        self,
        *,
        member_id: str = "",
        group_instance_id: str | None = None,
        reason: str | None = None,  # version >= 5
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.reason = reason

    @classmethod
    def decode(cls, reader: Reader, version: int) -> MemberIdentity:
        one = cls.__new__(cls)
        one.member_id = reader.string()
        one.group_instance_id = reader.nullable_string()
        if version >= 5:
            one.reason = reader.nullable_string()
        else:
            one.reason = None
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.string(self.member_id)
        writer.nullable_string(self.group_instance_id)
        if version >= 5:
            writer.nullable_string(self.reason)
        writer.tagged_fields()


class LeaveGroupRequest(Message):
    __slots__ = ("group_id", "member_id", "members")

    KEY: ClassVar[int] = 13
    FLEXIBLE_SINCE: ClassVar[int] = 4

    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",  # version <= 2
        members: Sequence[MemberIdentity] = (),  # version >= 3
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.members = members

    @classmethod
    def decode(cls, reader: Reader, version: int) -> LeaveGroupRequest:
        one = cls.__new__(cls)
        one.group_id = reader.string()
        if version <= 2:
            one.member_id = reader.string()
        else:
            one.member_id = ""
        if version >= 3:
            one.members = reader.array(MemberIdentity.decode, version)
        else:
            one.members = ()
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.string(self.group_id)
        if version <= 2:
            writer.string(self.member_id)
        if version >= 3:
            writer.array(self.members, version)
        writer.tagged_fields()


class MemberResponse(Struct):
    __slots__ = ("member_id", "group_instance_id", "error_code")

    def __init__(
        self,
        *,
        member_id: str = "",
        group_instance_id: str | None = None,
        error_code: ErrorCode = ErrorCode.NONE,
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.error_code = error_code

    @classmethod
    def decode(cls, reader: Reader, version: int) -> MemberResponse:
        one = cls.__new__(cls)
        one.member_id = reader.string()
        one.group_instance_id = reader.nullable_string()
        one.error_code = ErrorCode(reader.int16())
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.string(self.member_id)
        writer.nullable_string(self.group_instance_id)
        writer.int16(self.error_code)
        writer.tagged_fields()


class LeaveGroupResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "members")

    KEY: ClassVar[int] = 13
    FLEXIBLE_SINCE: ClassVar[int] = 4

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,  # version >= 1
        error_code: ErrorCode = ErrorCode.NONE,
        members: Sequence[MemberResponse] = (),  # version >= 3
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.members = members

    @classmethod
    def decode(cls, reader: Reader, version: int) -> LeaveGroupResponse:
        one = cls.__new__(cls)
        if version >= 1:
            one.throttle_time_ms = reader.int32()
        else:
            one.throttle_time_ms = 0
        one.error_code = ErrorCode(reader.int16())
        if version >= 3:
            one.members = reader.array(MemberResponse.decode, version)
        else:
            one.members = ()
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        if version >= 1:
            writer.int32(self.throttle_time_ms)
        writer.int16(self.error_code)
        if version >= 3:
            writer.array(self.members, version)
        writer.tagged_fields()
