"""Made by `make messages` from Kafka's schemas: not to be edited."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as Layout
from typing import ClassVar, Final
from uuid import UUID

from kafka_sidecar.wire.buffers import Reader, Writer
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.message import Message, Struct

_IH: Final = Layout(">ih")
_II: Final = Layout(">ii")


class TopicPartitions(Struct):
    __slots__ = ("topic_id", "partitions")

    def __init__(
        self,
        *,
        topic_id: UUID | None = None,
        partitions: Sequence[int] = (),
    ) -> None:
        self.topic_id = topic_id
        self.partitions = partitions

    @classmethod
    def decode(cls, reader: Reader, version: int) -> TopicPartitions:
        one = cls.__new__(cls)
        one.topic_id = reader.uuid()
        one.partitions = reader.int32_array()
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.uuid(self.topic_id)
        writer.int32_array(self.partitions)
        writer.tagged_fields()


class ConsumerGroupHeartbeatRequest(Message):
    __slots__ = (
        "group_id",
        "member_id",
        "member_epoch",
        "instance_id",
        "rack_id",
        "rebalance_timeout_ms",
        "subscribed_topic_names",
        "subscribed_topic_regex",
        "server_assignor",
        "topic_partitions",
    )

    KEY: ClassVar[int] = 68
    FLEXIBLE_SINCE: ClassVar[int] = 0

    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
        member_epoch: int = 0,
        instance_id: str | None = None,
        rack_id: str | None = None,
        rebalance_timeout_ms: int = -1,
        subscribed_topic_names: Sequence[str] | None = None,
        subscribed_topic_regex: str | None = None,  # version >= 1
        server_assignor: str | None = None,
        topic_partitions: Sequence[TopicPartitions] | None = (),
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.member_epoch = member_epoch
        self.instance_id = instance_id
        self.rack_id = rack_id
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.subscribed_topic_names = subscribed_topic_names
        self.subscribed_topic_regex = subscribed_topic_regex
        self.server_assignor = server_assignor
        self.topic_partitions = topic_partitions

    @classmethod
    def decode(cls, reader: Reader, version: int) -> ConsumerGroupHeartbeatRequest:
        one = cls.__new__(cls)
        one.group_id = reader.string()
        one.member_id = reader.string()
        one.member_epoch = reader.int32()
        one.instance_id = reader.nullable_string()
        one.rack_id = reader.nullable_string()
        one.rebalance_timeout_ms = reader.int32()
        one.subscribed_topic_names = reader.nullable_string_array()
        if version >= 1:
            one.subscribed_topic_regex = reader.nullable_string()
        else:
            one.subscribed_topic_regex = None
        one.server_assignor = reader.nullable_string()
        one.topic_partitions = reader.nullable_array(TopicPartitions.decode, version)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.string(self.group_id)
        writer.string(self.member_id)
        writer.int32(self.member_epoch)
        writer.nullable_string(self.instance_id)
        writer.nullable_string(self.rack_id)
        writer.int32(self.rebalance_timeout_ms)
        writer.nullable_string_array(self.subscribed_topic_names)
        if version >= 1:
            writer.nullable_string(self.subscribed_topic_regex)
        writer.nullable_string(self.server_assignor)
        writer.nullable_array(self.topic_partitions, version)
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


class ConsumerGroupHeartbeatResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "error_message",
        "member_id",
        "member_epoch",
        "heartbeat_interval_ms",
        "assignment",
    )

    KEY: ClassVar[int] = 68
    FLEXIBLE_SINCE: ClassVar[int] = 0

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: ErrorCode = ErrorCode.NONE,
        error_message: str | None = None,
        member_id: str | None = None,
        member_epoch: int = 0,
        heartbeat_interval_ms: int = 0,
        assignment: Assignment | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.member_id = member_id
        self.member_epoch = member_epoch
        self.heartbeat_interval_ms = heartbeat_interval_ms
        self.assignment = assignment

    @classmethod
    def decode(cls, reader: Reader, version: int) -> ConsumerGroupHeartbeatResponse:
        one = cls.__new__(cls)
        one.throttle_time_ms, one.error_code = reader.unpack(_IH)
        one.error_code = ErrorCode(one.error_code)
        one.error_message = reader.nullable_string()
        one.member_id = reader.nullable_string()
        one.member_epoch, one.heartbeat_interval_ms = reader.unpack(_II)
        one.assignment = reader.nullable_struct(Assignment.decode, version)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.out += _IH.pack(self.throttle_time_ms, self.error_code)
        writer.nullable_message(self.error_message)
        writer.nullable_string(self.member_id)
        writer.out += _II.pack(self.member_epoch, self.heartbeat_interval_ms)
        writer.nullable_struct(self.assignment, version)
        writer.tagged_fields()
