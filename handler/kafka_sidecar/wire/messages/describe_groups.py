"""Made by `make messages` from Kafka's schemas: not to be edited."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from kafka_sidecar.wire.buffers import Reader, Writer
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.message import Message, Struct


class DescribeGroupsRequest(Message):
    __slots__ = ("groups", "include_authorized_operations")

    KEY: ClassVar[int] = 15
    FLEXIBLE_SINCE: ClassVar[int] = 5

    def __init__(
        self,
        *,
        groups: Sequence[str] = (),
        include_authorized_operations: bool = False,  # version >= 3
    ) -> None:
        self.groups = groups
        self.include_authorized_operations = include_authorized_operations

    @classmethod
    def decode(cls, reader: Reader, version: int) -> DescribeGroupsRequest:
        one = cls.__new__(cls)
        one.groups = reader.string_array()
        if version >= 3:
            one.include_authorized_operations = reader.bool_()
        else:
            one.include_authorized_operations = False
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.string_array(self.groups)
        if version >= 3:
            writer.bool_(self.include_authorized_operations)
        writer.tagged_fields()


class DescribedGroupMember(Struct):
    __slots__ = ("member_id", "group_instance_id", "client_id", "client_host", "member_metadata", "member_assignment")

    def __init__(
        self,
        *,
        member_id: str = "",
        group_instance_id: str | None = None,  # version >= 4
        client_id: str = "",
        client_host: str = "",
        member_metadata: bytes = b"",
        member_assignment: bytes = b"",
    ) -> None:
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.member_metadata = member_metadata
        self.member_assignment = member_assignment

    @classmethod
    def decode(cls, reader: Reader, version: int) -> DescribedGroupMember:
        one = cls.__new__(cls)
        one.member_id = reader.string()
        if version >= 4:
            one.group_instance_id = reader.nullable_string()
        else:
            one.group_instance_id = None
        one.client_id = reader.string()
        one.client_host = reader.string()
        one.member_metadata = reader.bytes_()
        one.member_assignment = reader.bytes_()
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.string(self.member_id)
        if version >= 4:
            writer.nullable_string(self.group_instance_id)
        writer.string(self.client_id)
        writer.string(self.client_host)
        writer.bytes_(self.member_metadata)
        writer.bytes_(self.member_assignment)
        writer.tagged_fields()


class DescribedGroup(Struct):
    __slots__ = (
        "error_code",
        "error_message",
        "group_id",
        "group_state",
        "protocol_type",
        "protocol_data",
        "members",
        "authorized_operations",
    )

    def __init__(
        self,
        *,
        error_code: ErrorCode = ErrorCode.NONE,
        error_message: str | None = None,  # version >= 6
        group_id: str = "",
        group_state: str = "",
        protocol_type: str = "",
        protocol_data: str = "",
        members: Sequence[DescribedGroupMember] = (),
        authorized_operations: int = -2147483648,  # version >= 3
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.group_id = group_id
        self.group_state = group_state
        self.protocol_type = protocol_type
        self.protocol_data = protocol_data
        self.members = members
        self.authorized_operations = authorized_operations

    @classmethod
    def decode(cls, reader: Reader, version: int) -> DescribedGroup:
        one = cls.__new__(cls)
        one.error_code = ErrorCode(reader.int16())
        if version >= 6:
            one.error_message = reader.nullable_string()
        else:
            one.error_message = None
        one.group_id = reader.string()
        one.group_state = reader.string()
        one.protocol_type = reader.string()
        one.protocol_data = reader.string()
        one.members = reader.array(DescribedGroupMember.decode, version)
        if version >= 3:
            one.authorized_operations = reader.int32()
        else:
            one.authorized_operations = -2147483648
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.int16(self.error_code)
        if version >= 6:
            writer.nullable_message(self.error_message)
        writer.string(self.group_id)
        writer.string(self.group_state)
        writer.string(self.protocol_type)
        writer.string(self.protocol_data)
        writer.array(self.members, version)
        if version >= 3:
            writer.int32(self.authorized_operations)
        writer.tagged_fields()


class DescribeGroupsResponse(Message):
    __slots__ = ("throttle_time_ms", "groups")

    KEY: ClassVar[int] = 15
    FLEXIBLE_SINCE: ClassVar[int] = 5

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,  # version >= 1
        groups: Sequence[DescribedGroup] = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.groups = groups

    @classmethod
    def decode(cls, reader: Reader, version: int) -> DescribeGroupsResponse:
        one = cls.__new__(cls)
        if version >= 1:
            one.throttle_time_ms = reader.int32()
        else:
            one.throttle_time_ms = 0
        one.groups = reader.array(DescribedGroup.decode, version)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        if version >= 1:
            writer.int32(self.throttle_time_ms)
        writer.array(self.groups, version)
        writer.tagged_fields()
