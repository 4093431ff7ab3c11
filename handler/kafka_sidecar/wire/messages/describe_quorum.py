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
_IIQ: Final = Layout(">iiq")
_QQ: Final = Layout(">qq")


class PartitionData(Struct):
    __slots__ = ("partition_index",)

    def __init__(
        self,
        *,
        partition_index: int = 0,
    ) -> None:
        self.partition_index = partition_index

    @classmethod
    def decode(cls, reader: Reader, version: int) -> PartitionData:
        one = cls.__new__(cls)
        one.partition_index = reader.int32()
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.partition_index)
        writer.tagged_fields()


class TopicData(Struct):
    __slots__ = ("topic_name", "partitions")

    def __init__(
        self,
        *,
        topic_name: str = "",
        partitions: Sequence[PartitionData] = (),
    ) -> None:
        self.topic_name = topic_name
        self.partitions = partitions

    @classmethod
    def decode(cls, reader: Reader, version: int) -> TopicData:
        one = cls.__new__(cls)
        one.topic_name = reader.string()
        one.partitions = reader.array(PartitionData.decode, version)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.string(self.topic_name)
        writer.array(self.partitions, version)
        writer.tagged_fields()


class DescribeQuorumRequest(Message):
    __slots__ = ("topics",)

    KEY: ClassVar[int] = 55
    FLEXIBLE_SINCE: ClassVar[int] = 0

    def __init__(
        self,
        *,
        topics: Sequence[TopicData] = (),
    ) -> None:
        self.topics = topics

    @classmethod
    def decode(cls, reader: Reader, version: int) -> DescribeQuorumRequest:
        one = cls.__new__(cls)
        one.topics = reader.array(TopicData.decode, version)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.array(self.topics, version)
        writer.tagged_fields()


class Listener(Struct):
    __slots__ = ("name", "host", "port")

    def __init__(
        self,
        *,
        name: str = "",
        host: str = "",
        port: int = 0,
    ) -> None:
        self.name = name
        self.host = host
        self.port = port

    @classmethod
    def decode(cls, reader: Reader, version: int) -> Listener:
        one = cls.__new__(cls)
        one.name = reader.string()
        one.host = reader.string()
        one.port = reader.uint16()
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.string(self.name)
        writer.string(self.host)
        writer.uint16(self.port)
        writer.tagged_fields()


class Node(Struct):
    __slots__ = ("node_id", "listeners")

    def __init__(
        self,
        *,
        node_id: int = 0,
        listeners: Sequence[Listener] = (),
    ) -> None:
        self.node_id = node_id
        self.listeners = listeners

    @classmethod
    def decode(cls, reader: Reader, version: int) -> Node:
        one = cls.__new__(cls)
        one.node_id = reader.int32()
        one.listeners = reader.array(Listener.decode, version)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.node_id)
        writer.array(self.listeners, version)
        writer.tagged_fields()


class ReplicaState(Struct):
    __slots__ = (
        "replica_id",
        "replica_directory_id",
        "log_end_offset",
        "last_fetch_timestamp",
        "last_caught_up_timestamp",
    )

    def __init__(
        self,
        *,
        replica_id: int = 0,
        replica_directory_id: UUID | None = None,  # version >= 2
        log_end_offset: int = 0,
        last_fetch_timestamp: int = -1,  # version >= 1
        last_caught_up_timestamp: int = -1,  # version >= 1
    ) -> None:
        self.replica_id = replica_id
        self.replica_directory_id = replica_directory_id
        self.log_end_offset = log_end_offset
        self.last_fetch_timestamp = last_fetch_timestamp
        self.last_caught_up_timestamp = last_caught_up_timestamp

    @classmethod
    def decode(cls, reader: Reader, version: int) -> ReplicaState:
        one = cls.__new__(cls)
        one.replica_id = reader.int32()
        if version >= 2:
            one.replica_directory_id = reader.uuid()
        else:
            one.replica_directory_id = None
        one.log_end_offset = reader.int64()
        if version >= 1:
            one.last_fetch_timestamp, one.last_caught_up_timestamp = reader.unpack(_QQ)
        else:
            one.last_fetch_timestamp = -1
            one.last_caught_up_timestamp = -1
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.replica_id)
        if version >= 2:
            writer.uuid(self.replica_directory_id)
        writer.int64(self.log_end_offset)
        if version >= 1:
            writer.out += _QQ.pack(self.last_fetch_timestamp, self.last_caught_up_timestamp)
        writer.tagged_fields()


class PartitionDataResult(Struct):
    __slots__ = (
        "partition_index",
        "error_code",
        "error_message",
        "leader_id",
        "leader_epoch",
        "high_watermark",
        "current_voters",
        "observers",
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: ErrorCode = ErrorCode.NONE,
        error_message: str | None = None,  # version >= 2
        leader_id: int = 0,
        leader_epoch: int = 0,
        high_watermark: int = 0,
        current_voters: Sequence[ReplicaState] = (),
        observers: Sequence[ReplicaState] = (),
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.error_message = error_message
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.high_watermark = high_watermark
        self.current_voters = current_voters
        self.observers = observers

    @classmethod
    def decode(cls, reader: Reader, version: int) -> PartitionDataResult:
        one = cls.__new__(cls)
        one.partition_index, one.error_code = reader.unpack(_IH)
        one.error_code = ErrorCode(one.error_code)
        if version >= 2:
            one.error_message = reader.nullable_string()
        else:
            one.error_message = None
        one.leader_id, one.leader_epoch, one.high_watermark = reader.unpack(_IIQ)
        one.current_voters = reader.array(ReplicaState.decode, version)
        one.observers = reader.array(ReplicaState.decode, version)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.out += _IH.pack(self.partition_index, self.error_code)
        if version >= 2:
            writer.nullable_message(self.error_message)
        writer.out += _IIQ.pack(self.leader_id, self.leader_epoch, self.high_watermark)
        writer.array(self.current_voters, version)
        writer.array(self.observers, version)
        writer.tagged_fields()


class TopicDataResult(Struct):
    __slots__ = ("topic_name", "partitions")

    def __init__(
        self,
        *,
        topic_name: str = "",
        partitions: Sequence[PartitionDataResult] = (),
    ) -> None:
        self.topic_name = topic_name
        self.partitions = partitions

    @classmethod
    def decode(cls, reader: Reader, version: int) -> TopicDataResult:
        one = cls.__new__(cls)
        one.topic_name = reader.string()
        one.partitions = reader.array(PartitionDataResult.decode, version)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.string(self.topic_name)
        writer.array(self.partitions, version)
        writer.tagged_fields()


class DescribeQuorumResponse(Message):
    __slots__ = ("error_code", "error_message", "topics", "nodes")

    KEY: ClassVar[int] = 55
    FLEXIBLE_SINCE: ClassVar[int] = 0

    def __init__(
        self,
        *,
        error_code: ErrorCode = ErrorCode.NONE,
        error_message: str | None = None,  # version >= 2
        topics: Sequence[TopicDataResult] = (),
        nodes: Sequence[Node] = (),  # version >= 2
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.topics = topics
        self.nodes = nodes

    @classmethod
    def decode(cls, reader: Reader, version: int) -> DescribeQuorumResponse:
        one = cls.__new__(cls)
        one.error_code = ErrorCode(reader.int16())
        if version >= 2:
            one.error_message = reader.nullable_string()
        else:
            one.error_message = None
        one.topics = reader.array(TopicDataResult.decode, version)
        if version >= 2:
            one.nodes = reader.array(Node.decode, version)
        else:
            one.nodes = ()
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.int16(self.error_code)
        if version >= 2:
            writer.nullable_message(self.error_message)
        writer.array(self.topics, version)
        if version >= 2:
            writer.array(self.nodes, version)
        writer.tagged_fields()
