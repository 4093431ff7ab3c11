"""Made by `make messages` from Kafka's schemas: not to be edited."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as Layout
from typing import ClassVar, Final
from uuid import UUID

from kafka_sidecar.wire.buffers import Reader, Writer
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.message import Message, Struct

_HIII: Final = Layout(">hiii")


class Cursor(Struct):
    __slots__ = ("topic_name", "partition_index")

    def __init__(
        self,
        *,
        topic_name: str = "",
        partition_index: int = 0,
    ) -> None:
        self.topic_name = topic_name
        self.partition_index = partition_index

    @classmethod
    def decode(cls, reader: Reader, version: int) -> Cursor:
        one = cls.__new__(cls)
        one.topic_name = reader.string()
        one.partition_index = reader.int32()
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.string(self.topic_name)
        writer.int32(self.partition_index)
        writer.tagged_fields()


class TopicRequest(Struct):
    __slots__ = ("name",)

    def __init__(
        self,
        *,
        name: str = "",
    ) -> None:
        self.name = name

    @classmethod
    def decode(cls, reader: Reader, version: int) -> TopicRequest:
        one = cls.__new__(cls)
        one.name = reader.string()
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.string(self.name)
        writer.tagged_fields()


class DescribeTopicPartitionsRequest(Message):
    __slots__ = ("topics", "response_partition_limit", "cursor")

    KEY: ClassVar[int] = 75
    FLEXIBLE_SINCE: ClassVar[int] = 0

    def __init__(
        self,
        *,
        topics: Sequence[TopicRequest] = (),
        response_partition_limit: int = 2000,
        cursor: Cursor | None = None,
    ) -> None:
        self.topics = topics
        self.response_partition_limit = response_partition_limit
        self.cursor = cursor

    @classmethod
    def decode(cls, reader: Reader, version: int) -> DescribeTopicPartitionsRequest:
        one = cls.__new__(cls)
        one.topics = reader.array(TopicRequest.decode, version)
        one.response_partition_limit = reader.int32()
        one.cursor = reader.nullable_struct(Cursor.decode, version)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.array(self.topics, version)
        writer.int32(self.response_partition_limit)
        writer.nullable_struct(self.cursor, version)
        writer.tagged_fields()


class DescribeTopicPartitionsResponsePartition(Struct):
    __slots__ = (
        "error_code",
        "partition_index",
        "leader_id",
        "leader_epoch",
        "replica_nodes",
        "isr_nodes",
        "eligible_leader_replicas",
        "last_known_elr",
        "offline_replicas",
    )

    def __init__(
        self,
        *,
        error_code: ErrorCode = ErrorCode.NONE,
        partition_index: int = 0,
        leader_id: int = 0,
        leader_epoch: int = -1,
        replica_nodes: Sequence[int] = (),
        isr_nodes: Sequence[int] = (),
        eligible_leader_replicas: Sequence[int] | None = None,
        last_known_elr: Sequence[int] | None = None,
        offline_replicas: Sequence[int] = (),
    ) -> None:
        self.error_code = error_code
        self.partition_index = partition_index
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.replica_nodes = replica_nodes
        self.isr_nodes = isr_nodes
        self.eligible_leader_replicas = eligible_leader_replicas
        self.last_known_elr = last_known_elr
        self.offline_replicas = offline_replicas

    @classmethod
    def decode(cls, reader: Reader, version: int) -> DescribeTopicPartitionsResponsePartition:
        one = cls.__new__(cls)
        one.error_code, one.partition_index, one.leader_id, one.leader_epoch = reader.unpack(_HIII)
        one.error_code = ErrorCode(one.error_code)
        one.replica_nodes = reader.int32_array()
        one.isr_nodes = reader.int32_array()
        one.eligible_leader_replicas = reader.nullable_int32_array()
        one.last_known_elr = reader.nullable_int32_array()
        one.offline_replicas = reader.int32_array()
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.out += _HIII.pack(self.error_code, self.partition_index, self.leader_id, self.leader_epoch)
        writer.int32_array(self.replica_nodes)
        writer.int32_array(self.isr_nodes)
        writer.nullable_int32_array(self.eligible_leader_replicas)
        writer.nullable_int32_array(self.last_known_elr)
        writer.int32_array(self.offline_replicas)
        writer.tagged_fields()


class DescribeTopicPartitionsResponseTopic(Struct):
    __slots__ = ("error_code", "name", "topic_id", "is_internal", "partitions", "topic_authorized_operations")

    def __init__(
        self,
        *,
        error_code: ErrorCode = ErrorCode.NONE,
        name: str | None = None,
        topic_id: UUID | None = None,
        is_internal: bool = False,
        partitions: Sequence[DescribeTopicPartitionsResponsePartition] = (),
        topic_authorized_operations: int = -2147483648,
    ) -> None:
        self.error_code = error_code
        self.name = name
        self.topic_id = topic_id
        self.is_internal = is_internal
        self.partitions = partitions
        self.topic_authorized_operations = topic_authorized_operations

    @classmethod
    def decode(cls, reader: Reader, version: int) -> DescribeTopicPartitionsResponseTopic:
        one = cls.__new__(cls)
        one.error_code = ErrorCode(reader.int16())
        one.name = reader.nullable_string()
        one.topic_id = reader.uuid()
        one.is_internal = reader.bool_()
        one.partitions = reader.array(DescribeTopicPartitionsResponsePartition.decode, version)
        one.topic_authorized_operations = reader.int32()
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.int16(self.error_code)
        writer.nullable_string(self.name)
        writer.uuid(self.topic_id)
        writer.bool_(self.is_internal)
        writer.array(self.partitions, version)
        writer.int32(self.topic_authorized_operations)
        writer.tagged_fields()


class DescribeTopicPartitionsResponse(Message):
    __slots__ = ("throttle_time_ms", "topics", "next_cursor")

    KEY: ClassVar[int] = 75
    FLEXIBLE_SINCE: ClassVar[int] = 0

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: Sequence[DescribeTopicPartitionsResponseTopic] = (),
        next_cursor: Cursor | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = topics
        self.next_cursor = next_cursor

    @classmethod
    def decode(cls, reader: Reader, version: int) -> DescribeTopicPartitionsResponse:
        one = cls.__new__(cls)
        one.throttle_time_ms = reader.int32()
        one.topics = reader.array(DescribeTopicPartitionsResponseTopic.decode, version)
        one.next_cursor = reader.nullable_struct(Cursor.decode, version)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.throttle_time_ms)
        writer.array(self.topics, version)
        writer.nullable_struct(self.next_cursor, version)
        writer.tagged_fields()
