"""Made by `make messages` from Kafka's schemas: not to be edited."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as Layout
from typing import ClassVar, Final

from kafka_sidecar.wire.buffers import Reader, Writer
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.message import Message, Struct

_HIIQ: Final = Layout(">hiiq")
_III: Final = Layout(">iii")


class OffsetForLeaderPartition(Struct):
    __slots__ = ("partition", "current_leader_epoch", "leader_epoch")

    def __init__(
        self,
        *,
        partition: int = 0,
        current_leader_epoch: int = -1,
        leader_epoch: int = 0,
    ) -> None:
        self.partition = partition
        self.current_leader_epoch = current_leader_epoch
        self.leader_epoch = leader_epoch

    @classmethod
    def decode(cls, reader: Reader, version: int) -> OffsetForLeaderPartition:
        one = cls.__new__(cls)
        one.partition, one.current_leader_epoch, one.leader_epoch = reader.unpack(_III)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.out += _III.pack(self.partition, self.current_leader_epoch, self.leader_epoch)
        writer.tagged_fields()


class OffsetForLeaderTopic(Struct):
    __slots__ = ("topic", "partitions")

    def __init__(
        self,
        *,
        topic: str = "",
        partitions: Sequence[OffsetForLeaderPartition] = (),
    ) -> None:
        self.topic = topic
        self.partitions = partitions

    @classmethod
    def decode(cls, reader: Reader, version: int) -> OffsetForLeaderTopic:
        one = cls.__new__(cls)
        one.topic = reader.string()
        one.partitions = reader.array(OffsetForLeaderPartition.decode, version)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.string(self.topic)
        writer.array(self.partitions, version)
        writer.tagged_fields()


class OffsetForLeaderEpochRequest(Message):
    __slots__ = ("replica_id", "topics")

    KEY: ClassVar[int] = 23
    FLEXIBLE_SINCE: ClassVar[int] = 4

    def __init__(
        self,
        *,
        replica_id: int = -2,  # version >= 3
        topics: Sequence[OffsetForLeaderTopic] = (),
    ) -> None:
        self.replica_id = replica_id
        self.topics = topics

    @classmethod
    def decode(cls, reader: Reader, version: int) -> OffsetForLeaderEpochRequest:
        one = cls.__new__(cls)
        if version >= 3:
            one.replica_id = reader.int32()
        else:
            one.replica_id = -2
        one.topics = reader.array(OffsetForLeaderTopic.decode, version)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        if version >= 3:
            writer.int32(self.replica_id)
        writer.array(self.topics, version)
        writer.tagged_fields()


class EpochEndOffset(Struct):
    __slots__ = ("error_code", "partition", "leader_epoch", "end_offset")

    def __init__(
        self,
        *,
        error_code: ErrorCode = ErrorCode.NONE,
        partition: int = 0,
        leader_epoch: int = -1,
        end_offset: int = -1,
    ) -> None:
        self.error_code = error_code
        self.partition = partition
        self.leader_epoch = leader_epoch
        self.end_offset = end_offset

    @classmethod
    def decode(cls, reader: Reader, version: int) -> EpochEndOffset:
        one = cls.__new__(cls)
        one.error_code, one.partition, one.leader_epoch, one.end_offset = reader.unpack(_HIIQ)
        one.error_code = ErrorCode(one.error_code)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.out += _HIIQ.pack(self.error_code, self.partition, self.leader_epoch, self.end_offset)
        writer.tagged_fields()


class OffsetForLeaderTopicResult(Struct):
    __slots__ = ("topic", "partitions")

    def __init__(
        self,
        *,
        topic: str = "",
        partitions: Sequence[EpochEndOffset] = (),
    ) -> None:
        self.topic = topic
        self.partitions = partitions

    @classmethod
    def decode(cls, reader: Reader, version: int) -> OffsetForLeaderTopicResult:
        one = cls.__new__(cls)
        one.topic = reader.string()
        one.partitions = reader.array(EpochEndOffset.decode, version)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.string(self.topic)
        writer.array(self.partitions, version)
        writer.tagged_fields()


class OffsetForLeaderEpochResponse(Message):
    __slots__ = ("throttle_time_ms", "topics")

    KEY: ClassVar[int] = 23
    FLEXIBLE_SINCE: ClassVar[int] = 4

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: Sequence[OffsetForLeaderTopicResult] = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = topics

    @classmethod
    def decode(cls, reader: Reader, version: int) -> OffsetForLeaderEpochResponse:
        one = cls.__new__(cls)
        one.throttle_time_ms = reader.int32()
        one.topics = reader.array(OffsetForLeaderTopicResult.decode, version)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.throttle_time_ms)
        writer.array(self.topics, version)
        writer.tagged_fields()
