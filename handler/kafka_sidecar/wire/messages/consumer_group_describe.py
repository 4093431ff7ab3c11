"""Made by `make messages` from Kafka's schemas: not to be edited."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as Layout
from typing import ClassVar, Final
from uuid import UUID

from kafka_sidecar.wire.buffers import Reader, Writer
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.message import Message, Struct

_II: Final = Layout(">ii")


class ConsumerGroupDescribeRequest(Message):
    __slots__ = ("group_ids", "include_authorized_operations")

    KEY: ClassVar[int] = 69
    FLEXIBLE_SINCE: ClassVar[int] = 0

    def __init__(
        self,
        *,
        group_ids: Sequence[str] = (),
        include_authorized_operations: bool = False,
    ) -> None:
        self.group_ids = group_ids
        self.include_authorized_operations = include_authorized_operations

    @classmethod
    def decode(cls, reader: Reader, version: int) -> ConsumerGroupDescribeRequest:
        one = cls.__new__(cls)
        one.group_ids = reader.string_array()
        one.include_authorized_operations = reader.bool_()
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.string_array(self.group_ids)
        writer.bool_(self.include_authorized_operations)
        writer.tagged_fields()


class TopicPartitions(Struct):
    __slots__ = ("topic_id", "topic_name", "partitions")

    def __init__(
        self,
        *,
        topic_id: UUID | None = None,
        topic_name: str = "",
        partitions: Sequence[int] = (),
    ) -> None:
        self.topic_id = topic_id
        self.topic_name = topic_name
        self.partitions = partitions

    @classmethod
    def decode(cls, reader: Reader, version: int) -> TopicPartitions:
        one = cls.__new__(cls)
        one.topic_id = reader.uuid()
        one.topic_name = reader.string()
        one.partitions = reader.int32_array()
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.uuid(self.topic_id)
        writer.string(self.topic_name)
        writer.int32_array(self.partitions)
        writer.tagged_fields()


class Assignment(Struct):
    __slots__ = ("topic_partitions",)

    def __init__(
        self,
        *,
        topic_partitions: Sequence[TopicPartitions] = (),
    ) -> None:
        self.topic_partitions = topic_partitions

    @classmethod
    def decode(cls, reader: Reader, version: int) -> Assignment:
        one = cls.__new__(cls)
        one.topic_partitions = reader.array(TopicPartitions.decode, version)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.array(self.topic_partitions, version)
        writer.tagged_fields()


class Member(Struct):
    __slots__ = (
        "member_id",
        "instance_id",
        "rack_id",
        "member_epoch",
        "client_id",
        "client_host",
        "subscribed_topic_names",
        "subscribed_topic_regex",
        "assignment",
        "target_assignment",
        "member_type",
    )

    def __init__(
        self,
        *,
        member_id: str = "",
        instance_id: str | None = None,
        rack_id: str | None = None,
        member_epoch: int = 0,
        client_id: str = "",
        client_host: str = "",
        subscribed_topic_names: Sequence[str] = (),
        subscribed_topic_regex: str | None = None,
        assignment: Assignment,
        target_assignment: Assignment,
        member_type: int = -1,  # version >= 1
    ) -> None:
        self.member_id = member_id
        self.instance_id = instance_id
        self.rack_id = rack_id
        self.member_epoch = member_epoch
        self.client_id = client_id
        self.client_host = client_host
        self.subscribed_topic_names = subscribed_topic_names
        self.subscribed_topic_regex = subscribed_topic_regex
        self.assignment = assignment
        self.target_assignment = target_assignment
        self.member_type = member_type

    @classmethod
    def decode(cls, reader: Reader, version: int) -> Member:
        one = cls.__new__(cls)
        one.member_id = reader.string()
        one.instance_id = reader.nullable_string()
        one.rack_id = reader.nullable_string()
        one.member_epoch = reader.int32()
        one.client_id = reader.string()
        one.client_host = reader.string()
        one.subscribed_topic_names = reader.string_array()
        one.subscribed_topic_regex = reader.nullable_string()
        one.assignment = Assignment.decode(reader, version)
        one.target_assignment = Assignment.decode(reader, version)
        if version >= 1:
            one.member_type = reader.int8()
        else:
            one.member_type = -1
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.string(self.member_id)
        writer.nullable_string(self.instance_id)
        writer.nullable_string(self.rack_id)
        writer.int32(self.member_epoch)
        writer.string(self.client_id)
        writer.string(self.client_host)
        writer.string_array(self.subscribed_topic_names)
        writer.nullable_string(self.subscribed_topic_regex)
        self.assignment.encode(writer, version)
        self.target_assignment.encode(writer, version)
        if version >= 1:
            writer.int8(self.member_type)
        writer.tagged_fields()


class DescribedGroup(Struct):
    __slots__ = (
        "error_code",
        "error_message",
        "group_id",
        "group_state",
        "group_epoch",
        "assignment_epoch",
        "assignor_name",
        "members",
        "authorized_operations",
    )

    def __init__(
        self,
        *,
        error_code: ErrorCode = ErrorCode.NONE,
        error_message: str | None = None,
        group_id: str = "",
        group_state: str = "",
        group_epoch: int = 0,
        assignment_epoch: int = 0,
        assignor_name: str = "",
        members: Sequence[Member] = (),
        authorized_operations: int = -2147483648,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.group_id = group_id
        self.group_state = group_state
        self.group_epoch = group_epoch
        self.assignment_epoch = assignment_epoch
        self.assignor_name = assignor_name
        self.members = members
        self.authorized_operations = authorized_operations

    @classmethod
    def decode(cls, reader: Reader, version: int) -> DescribedGroup:
        one = cls.__new__(cls)
        one.error_code = ErrorCode(reader.int16())
        one.error_message = reader.nullable_string()
        one.group_id = reader.string()
        one.group_state = reader.string()
        one.group_epoch, one.assignment_epoch = reader.unpack(_II)
        one.assignor_name = reader.string()
        one.members = reader.array(Member.decode, version)
        one.authorized_operations = reader.int32()
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.int16(self.error_code)
        writer.nullable_message(self.error_message)
        writer.string(self.group_id)
        writer.string(self.group_state)
        writer.out += _II.pack(self.group_epoch, self.assignment_epoch)
        writer.string(self.assignor_name)
        writer.array(self.members, version)
        writer.int32(self.authorized_operations)
        writer.tagged_fields()


class ConsumerGroupDescribeResponse(Message):
    __slots__ = ("throttle_time_ms", "groups")

    KEY: ClassVar[int] = 69
    FLEXIBLE_SINCE: ClassVar[int] = 0

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        groups: Sequence[DescribedGroup] = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.groups = groups

    @classmethod
    def decode(cls, reader: Reader, version: int) -> ConsumerGroupDescribeResponse:
        one = cls.__new__(cls)
        one.throttle_time_ms = reader.int32()
        one.groups = reader.array(DescribedGroup.decode, version)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.throttle_time_ms)
        writer.array(self.groups, version)
        writer.tagged_fields()
