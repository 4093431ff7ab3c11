"""Made by `make messages` from Kafka's schemas: not to be edited."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as Layout
from typing import ClassVar, Final

from kafka_sidecar.wire.buffers import Reader, Writer
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.message import Message, Struct

_IHQQ: Final = Layout(">ihqq")


class ListOffsetsPartition(Struct):
    __slots__ = ("partition_index", "current_leader_epoch", "timestamp")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        current_leader_epoch: int = -1,  # version >= 4
        timestamp: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.current_leader_epoch = current_leader_epoch
        self.timestamp = timestamp

    @classmethod
    def decode(cls, reader: Reader, version: int) -> ListOffsetsPartition:
        one = cls.__new__(cls)
        one.partition_index = reader.int32()
        if version >= 4:
            one.current_leader_epoch = reader.int32()
        else:
            one.current_leader_epoch = -1
        one.timestamp = reader.int64()
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.partition_index)
        if version >= 4:
            writer.int32(self.current_leader_epoch)
        writer.int64(self.timestamp)
        writer.tagged_fields()


class ListOffsetsTopic(Struct):
    __slots__ = ("name", "partitions")

    def __init__(
        self,
        *,
        name: str = "",
        partitions: Sequence[ListOffsetsPartition] = (),
    ) -> None:
        self.name = name
        self.partitions = partitions

    @classmethod
    def decode(cls, reader: Reader, version: int) -> ListOffsetsTopic:
        one = cls.__new__(cls)
        one.name = reader.string()
        one.partitions = reader.array(ListOffsetsPartition.decode, version)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.string(self.name)
        writer.array(self.partitions, version)
        writer.tagged_fields()


class ListOffsetsRequest(Message):
    __slots__ = ("replica_id", "isolation_level", "topics", "timeout_ms")

    KEY: ClassVar[int] = 2
    FLEXIBLE_SINCE: ClassVar[int] = 6

    def __init__(
        self,
        *,
        replica_id: int = 0,
        isolation_level: int = 0,  # version >= 2
        topics: Sequence[ListOffsetsTopic] = (),
        timeout_ms: int = 0,  # version >= 10
    ) -> None:
        self.replica_id = replica_id
        self.isolation_level = isolation_level
        self.topics = topics
        self.timeout_ms = timeout_ms

    @classmethod
    def decode(cls, reader: Reader, version: int) -> ListOffsetsRequest:
        one = cls.__new__(cls)
        one.replica_id = reader.int32()
        if version >= 2:
            one.isolation_level = reader.int8()
        else:
            one.isolation_level = 0
        one.topics = reader.array(ListOffsetsTopic.decode, version)
        if version >= 10:
            one.timeout_ms = reader.int32()
        else:
            one.timeout_ms = 0
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.replica_id)
        if version >= 2:
            writer.int8(self.isolation_level)
        writer.array(self.topics, version)
        if version >= 10:
            writer.int32(self.timeout_ms)
        writer.tagged_fields()


class ListOffsetsPartitionResponse(Struct):
    __slots__ = ("partition_index", "error_code", "timestamp", "offset", "leader_epoch")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: ErrorCode = ErrorCode.NONE,
        timestamp: int = -1,
        offset: int = -1,
        leader_epoch: int = -1,  # version >= 4
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.timestamp = timestamp
        self.offset = offset
        self.leader_epoch = leader_epoch

    @classmethod
    def decode(cls, reader: Reader, version: int) -> ListOffsetsPartitionResponse:
        one = cls.__new__(cls)
        one.partition_index, one.error_code, one.timestamp, one.offset = reader.unpack(_IHQQ)
        one.error_code = ErrorCode(one.error_code)
        if version >= 4:
            one.leader_epoch = reader.int32()
        else:
            one.leader_epoch = -1
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.out += _IHQQ.pack(self.partition_index, self.error_code, self.timestamp, self.offset)
        if version >= 4:
            writer.int32(self.leader_epoch)
        writer.tagged_fields()


class ListOffsetsTopicResponse(Struct):
    __slots__ = ("name", "partitions")

    def __init__(
        self,
        *,
        name: str = "",
        partitions: Sequence[ListOffsetsPartitionResponse] = (),
    ) -> None:
        self.name = name
        self.partitions = partitions

    @classmethod
    def decode(cls, reader: Reader, version: int) -> ListOffsetsTopicResponse:
        one = cls.__new__(cls)
        one.name = reader.string()
        one.partitions = reader.array(ListOffsetsPartitionResponse.decode, version)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.string(self.name)
        writer.array(self.partitions, version)
        writer.tagged_fields()


class ListOffsetsResponse(Message):
    __slots__ = ("throttle_time_ms", "topics")

    KEY: ClassVar[int] = 2
    FLEXIBLE_SINCE: ClassVar[int] = 6

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,  # version >= 2
        topics: Sequence[ListOffsetsTopicResponse] = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = topics

    @classmethod
    def decode(cls, reader: Reader, version: int) -> ListOffsetsResponse:
        one = cls.__new__(cls)
        if version >= 2:
            one.throttle_time_ms = reader.int32()
        else:
            one.throttle_time_ms = 0
        one.topics = reader.array(ListOffsetsTopicResponse.decode, version)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        if version >= 2:
            writer.int32(self.throttle_time_ms)
        writer.array(self.topics, version)
        writer.tagged_fields()
