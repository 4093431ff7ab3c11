"""Made by `make messages` from Kafka's schemas: not to be edited."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as Layout
from typing import ClassVar, Final

from kafka_sidecar.wire.buffers import Reader, Writer
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.message import Message, Struct

_HI: Final = Layout(">hi")


class JoinGroupRequestProtocol(Struct):
    __slots__ = ("name", "metadata")

    def __init__(
        self,
        *,
        name: str = "",
        metadata: bytes = b"",
    ) -> None:
        self.name = name
        self.metadata = metadata

    @classmethod
    def decode(cls, reader: Reader, version: int) -> JoinGroupRequestProtocol:
        one = cls.__new__(cls)
        one.name = reader.string()
        one.metadata = reader.bytes_()
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.string(self.name)
        writer.bytes_(self.metadata)
        writer.tagged_fields()


class JoinGroupRequest(Message):
    __slots__ = (
        "group_id",
        "session_timeout_ms",
        "rebalance_timeout_ms",
        "member_id",
        "group_instance_id",
        "protocol_type",
        "protocols",
        "reason",
    )

    KEY: ClassVar[int] = 11
    FLEXIBLE_SINCE: ClassVar[int] = 6

    def __init__(
        self,
        *,
        group_id: str = "",
        session_timeout_ms: int = 0,
        rebalance_timeout_ms: int = -1,  # version >= 1
        member_id: str = "",
        group_instance_id: str | None = None,  # version >= 5
        protocol_type: str = "",
        protocols: Sequence[JoinGroupRequestProtocol] = (),
        reason: str | None = None,  # version >= 8
    ) -> None:
        self.group_id = group_id
        self.session_timeout_ms = session_timeout_ms
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.protocol_type = protocol_type
        self.protocols = protocols
        self.reason = reason

    @classmethod
    def decode(cls, reader: Reader, version: int) -> JoinGroupRequest:
        one = cls.__new__(cls)
        one.group_id = reader.string()
        one.session_timeout_ms = reader.int32()
        if version >= 1:
            one.rebalance_timeout_ms = reader.int32()
        else:
            one.rebalance_timeout_ms = -1
        one.member_id = reader.string()
        if version >= 5:
            one.group_instance_id = reader.nullable_string()
        else:
            one.group_instance_id = None
        one.protocol_type = reader.string()
        one.protocols = reader.array(JoinGroupRequestProtocol.decode, version)
        if version >= 8:
            one.reason = reader.nullable_string()
        else:
            one.reason = None
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.string(self.group_id)
        writer.int32(self.session_timeout_ms)
        if version >= 1:
            writer.int32(self.rebalance_timeout_ms)
        writer.string(self.member_id)
        if version >= 5:
            writer.nullable_string(self.group_instance_id)
        writer.string(self.protocol_type)
        writer.array(self.protocols, version)
        if version >= 8:
            writer.nullable_string(self.reason)
        writer.tagged_fields()


class JoinGroupResponseMember(Struct):
    __slots__ = ("member_id", "group_instance_id", "metadata")

    def __init__(
        self,
        *,
        member_id: str = "",
        group_instance_id: str | None = None,  # version >= 5
        metadata: bytes = b"",
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.metadata = metadata

    @classmethod
    def decode(cls, reader: Reader, version: int) -> JoinGroupResponseMember:
        one = cls.__new__(cls)
        one.member_id = reader.string()
        if version >= 5:
            one.group_instance_id = reader.nullable_string()
        else:
            one.group_instance_id = None
        one.metadata = reader.bytes_()
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.string(self.member_id)
        if version >= 5:
            writer.nullable_string(self.group_instance_id)
        writer.bytes_(self.metadata)
        writer.tagged_fields()


class JoinGroupResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "generation_id",
        "protocol_type",
        "protocol_name",
        "leader",
        "skip_assignment",
        "member_id",
        "members",
    )

    KEY: ClassVar[int] = 11
    FLEXIBLE_SINCE: ClassVar[int] = 6

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,  # version >= 2
        error_code: ErrorCode = ErrorCode.NONE,
        generation_id: int = -1,
        protocol_type: str | None = None,  # version >= 7
        protocol_name: str | None = None,
        leader: str = "",
        skip_assignment: bool = False,  # version >= 9
        member_id: str = "",
        members: Sequence[JoinGroupResponseMember] = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.generation_id = generation_id
        self.protocol_type = protocol_type
        self.protocol_name = protocol_name
        self.leader = leader
        self.skip_assignment = skip_assignment
        self.member_id = member_id
        self.members = members

    @classmethod
    def decode(cls, reader: Reader, version: int) -> JoinGroupResponse:
        one = cls.__new__(cls)
        if version >= 2:
            one.throttle_time_ms = reader.int32()
        else:
            one.throttle_time_ms = 0
        one.error_code, one.generation_id = reader.unpack(_HI)
        one.error_code = ErrorCode(one.error_code)
        if version >= 7:
            one.protocol_type = reader.nullable_string()
        else:
            one.protocol_type = None
        one.protocol_name = reader.nullable_string() if version >= 7 else reader.string()
        one.leader = reader.string()
        if version >= 9:
            one.skip_assignment = reader.bool_()
        else:
            one.skip_assignment = False
        one.member_id = reader.string()
        one.members = reader.array(JoinGroupResponseMember.decode, version)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        if version >= 2:
            writer.int32(self.throttle_time_ms)
        writer.out += _HI.pack(self.error_code, self.generation_id)
        if version >= 7:
            writer.nullable_string(self.protocol_type)
        writer.nullable_string(self.protocol_name) if version >= 7 else writer.string(self.protocol_name or "")
        writer.string(self.leader)
        if version >= 9:
            writer.bool_(self.skip_assignment)
        writer.string(self.member_id)
        writer.array(self.members, version)
        writer.tagged_fields()
