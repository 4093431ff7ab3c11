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
_IQ: Final = Layout(">iq")


class OffsetCommitRequestPartition(Struct):
    __slots__ = ("partition_index", "committed_offset", "committed_leader_epoch", "committed_metadata")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        committed_offset: int = 0,
        committed_leader_epoch: int = -1,  # version >= 6
        committed_metadata: str | None = None,
    ) -> None:
        self.partition_index = partition_index
        self.committed_offset = committed_offset
        self.committed_leader_epoch = committed_leader_epoch
        self.committed_metadata = committed_metadata

    @classmethod
    def decode(cls, reader: Reader, version: int) -> OffsetCommitRequestPartition:
        one = cls.__new__(cls)
        one.partition_index, one.committed_offset = reader.unpack(_IQ)
        if version >= 6:
            one.committed_leader_epoch = reader.int32()
        else:
            one.committed_leader_epoch = -1
        one.committed_metadata = reader.nullable_string()
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.out += _IQ.pack(self.partition_index, self.committed_offset)
        if version >= 6:
            writer.int32(self.committed_leader_epoch)
        writer.nullable_string(self.committed_metadata)
        writer.tagged_fields()


class OffsetCommitRequestTopic(Struct):
    __slots__ = ("name", "topic_id", "partitions")

    def __init__(
        self,
        *,
        name: str = "",  # version <= 9
        topic_id: UUID | None = None,  # version >= 10
        partitions: Sequence[OffsetCommitRequestPartition] = (),
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partitions = partitions

    @classmethod
    def decode(cls, reader: Reader, version: int) -> OffsetCommitRequestTopic:
        one = cls.__new__(cls)
        if version <= 9:
            one.name = reader.string()
        else:
            one.name = ""
        if version >= 10:
            one.topic_id = reader.uuid()
        else:
            one.topic_id = None
        one.partitions = reader.array(OffsetCommitRequestPartition.decode, version)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        if version <= 9:
            writer.string(self.name)
        if version >= 10:
            writer.uuid(self.topic_id)
        writer.array(self.partitions, version)
        writer.tagged_fields()


class OffsetCommitRequest(Message):
    __slots__ = (
        "group_id",
        "generation_id_or_member_epoch",
        "member_id",
        "retention_time_ms",
        "group_instance_id",
        "topics",
    )

    KEY: ClassVar[int] = 8
    FLEXIBLE_SINCE: ClassVar[int] = 8

    def __init__(
        self,
        *,
        group_id: str = "",
        generation_id_or_member_epoch: int = -1,
        member_id: str = "",
        retention_time_ms: int = -1,  # version <= 4
        group_instance_id: str | None = None,  # version >= 7
        topics: Sequence[OffsetCommitRequestTopic] = (),
    ) -> None:
        self.group_id = group_id
        self.generation_id_or_member_epoch = generation_id_or_member_epoch
        self.member_id = member_id
        self.retention_time_ms = retention_time_ms
        self.group_instance_id = group_instance_id
        self.topics = topics

    @classmethod
    def decode(cls, reader: Reader, version: int) -> OffsetCommitRequest:
        one = cls.__new__(cls)
        one.group_id = reader.string()
        one.generation_id_or_member_epoch = reader.int32()
        one.member_id = reader.string()
        if version <= 4:
            one.retention_time_ms = reader.int64()
        else:
            one.retention_time_ms = -1
        if version >= 7:
            one.group_instance_id = reader.nullable_string()
        else:
            one.group_instance_id = None
        one.topics = reader.array(OffsetCommitRequestTopic.decode, version)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.string(self.group_id)
        writer.int32(self.generation_id_or_member_epoch)
        writer.string(self.member_id)
        if version <= 4:
            writer.int64(self.retention_time_ms)
        if version >= 7:
            writer.nullable_string(self.group_instance_id)
        writer.array(self.topics, version)
        writer.tagged_fields()


class OffsetCommitResponsePartition(Struct):
    __slots__ = ("partition_index", "error_code")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: ErrorCode = ErrorCode.NONE,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code

    @classmethod
    def decode(cls, reader: Reader, version: int) -> OffsetCommitResponsePartition:
        one = cls.__new__(cls)
        one.partition_index, one.error_code = reader.unpack(_IH)
        one.error_code = ErrorCode(one.error_code)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.out += _IH.pack(self.partition_index, self.error_code)
        writer.tagged_fields()


class OffsetCommitResponseTopic(Struct):
    __slots__ = ("name", "topic_id", "partitions")

    def __init__(
        self,
        *,
        name: str = "",  # version <= 9
        topic_id: UUID | None = None,  # version >= 10
        partitions: Sequence[OffsetCommitResponsePartition] = (),
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partitions = partitions

    @classmethod
    def decode(cls, reader: Reader, version: int) -> OffsetCommitResponseTopic:
        one = cls.__new__(cls)
        if version <= 9:
            one.name = reader.string()
        else:
            one.name = ""
        if version >= 10:
            one.topic_id = reader.uuid()
        else:
            one.topic_id = None
        one.partitions = reader.array(OffsetCommitResponsePartition.decode, version)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        if version <= 9:
            writer.string(self.name)
        if version >= 10:
            writer.uuid(self.topic_id)
        writer.array(self.partitions, version)
        writer.tagged_fields()


class OffsetCommitResponse(Message):
    __slots__ = ("throttle_time_ms", "topics")

    KEY: ClassVar[int] = 8
    FLEXIBLE_SINCE: ClassVar[int] = 8

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,  # version >= 3
        topics: Sequence[OffsetCommitResponseTopic] = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = topics

    @classmethod
    def decode(cls, reader: Reader, version: int) -> OffsetCommitResponse:
        one = cls.__new__(cls)
        if version >= 3:
            one.throttle_time_ms = reader.int32()
        else:
            one.throttle_time_ms = 0
        one.topics = reader.array(OffsetCommitResponseTopic.decode, version)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        if version >= 3:
            writer.int32(self.throttle_time_ms)
        writer.array(self.topics, version)
        writer.tagged_fields()
