"""Made by `make messages` from Kafka's schemas: not to be edited."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as Layout
from typing import ClassVar, Final
from uuid import UUID

from kafka_sidecar.wire.buffers import Reader, Writer
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.message import Message, Struct

_IQ: Final = Layout(">iq")
_IQI: Final = Layout(">iqi")


class OffsetFetchRequestTopics(Struct):
    __slots__ = ("name", "topic_id", "partition_indexes")

    def __init__(
        self,
        *,
        name: str = "",  # version <= 9
        topic_id: UUID | None = None,  # version >= 10
        partition_indexes: Sequence[int] = (),
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partition_indexes = partition_indexes

    @classmethod
    def decode(cls, reader: Reader, version: int) -> OffsetFetchRequestTopics:
        one = cls.__new__(cls)
        if version <= 9:
            one.name = reader.string()
        else:
            one.name = ""
        if version >= 10:
            one.topic_id = reader.uuid()
        else:
            one.topic_id = None
        one.partition_indexes = reader.int32_array()
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        if version <= 9:
            writer.string(self.name)
        if version >= 10:
            writer.uuid(self.topic_id)
        writer.int32_array(self.partition_indexes)
        writer.tagged_fields()


class OffsetFetchRequestGroup(Struct):
    __slots__ = ("group_id", "member_id", "member_epoch", "topics")

    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str | None = None,  # version >= 9
        member_epoch: int = -1,  # version >= 9
        topics: Sequence[OffsetFetchRequestTopics] | None = (),
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.member_epoch = member_epoch
        self.topics = topics

    @classmethod
    def decode(cls, reader: Reader, version: int) -> OffsetFetchRequestGroup:
        one = cls.__new__(cls)
        one.group_id = reader.string()
        if version >= 9:
            one.member_id = reader.nullable_string()
            one.member_epoch = reader.int32()
        else:
            one.member_id = None
            one.member_epoch = -1
        one.topics = reader.nullable_array(OffsetFetchRequestTopics.decode, version)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.string(self.group_id)
        if version >= 9:
            writer.nullable_string(self.member_id)
            writer.int32(self.member_epoch)
        writer.nullable_array(self.topics, version)
        writer.tagged_fields()


class OffsetFetchRequestTopic(Struct):
    __slots__ = ("name", "partition_indexes")

    def __init__(
        self,
        *,
        name: str = "",
        partition_indexes: Sequence[int] = (),
    ) -> None:
        self.name = name
        self.partition_indexes = partition_indexes

    @classmethod
    def decode(cls, reader: Reader, version: int) -> OffsetFetchRequestTopic:
        one = cls.__new__(cls)
        one.name = reader.string()
        one.partition_indexes = reader.int32_array()
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.string(self.name)
        writer.int32_array(self.partition_indexes)
        writer.tagged_fields()


class OffsetFetchRequest(Message):
    __slots__ = ("group_id", "topics", "groups", "require_stable")

    KEY: ClassVar[int] = 9
    FLEXIBLE_SINCE: ClassVar[int] = 6

    def __init__(
        self,
        *,
        group_id: str = "",  # version <= 7
        topics: Sequence[OffsetFetchRequestTopic] | None = (),  # version <= 7
        groups: Sequence[OffsetFetchRequestGroup] = (),  # version >= 8
        require_stable: bool = False,  # version >= 7
    ) -> None:
        self.group_id = group_id
        self.topics = topics
        self.groups = groups
        self.require_stable = require_stable

    @classmethod
    def decode(cls, reader: Reader, version: int) -> OffsetFetchRequest:
        one = cls.__new__(cls)
        if version <= 7:
            one.group_id = reader.string()
            one.topics = reader.nullable_array(OffsetFetchRequestTopic.decode, version) if version >= 2 else reader.array(OffsetFetchRequestTopic.decode, version)
        else:
            one.group_id = ""
            one.topics = ()
        if version >= 8:
            one.groups = reader.array(OffsetFetchRequestGroup.decode, version)
        else:
            one.groups = ()
        if version >= 7:
            one.require_stable = reader.bool_()
        else:
            one.require_stable = False
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        if version <= 7:
            writer.string(self.group_id)
            writer.nullable_array(self.topics, version) if version >= 2 else writer.array(self.topics or (), version)
        if version >= 8:
            writer.array(self.groups, version)
        if version >= 7:
            writer.bool_(self.require_stable)
        writer.tagged_fields()


class OffsetFetchResponsePartitions(Struct):
    __slots__ = ("partition_index", "committed_offset", "committed_leader_epoch", "metadata", "error_code")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        committed_offset: int = 0,
        committed_leader_epoch: int = -1,
        metadata: str | None = None,
        error_code: ErrorCode = ErrorCode.NONE,
    ) -> None:
        self.partition_index = partition_index
        self.committed_offset = committed_offset
        self.committed_leader_epoch = committed_leader_epoch
        self.metadata = metadata
        self.error_code = error_code

    @classmethod
    def decode(cls, reader: Reader, version: int) -> OffsetFetchResponsePartitions:
        one = cls.__new__(cls)
        one.partition_index, one.committed_offset, one.committed_leader_epoch = reader.unpack(_IQI)
        one.metadata = reader.nullable_string()
        one.error_code = ErrorCode(reader.int16())
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.out += _IQI.pack(self.partition_index, self.committed_offset, self.committed_leader_epoch)
        writer.nullable_string(self.metadata)
        writer.int16(self.error_code)
        writer.tagged_fields()


class OffsetFetchResponseTopics(Struct):
    __slots__ = ("name", "topic_id", "partitions")

    def __init__(
        self,
        *,
        name: str = "",  # version <= 9
        topic_id: UUID | None = None,  # version >= 10
        partitions: Sequence[OffsetFetchResponsePartitions] = (),
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partitions = partitions

    @classmethod
    def decode(cls, reader: Reader, version: int) -> OffsetFetchResponseTopics:
        one = cls.__new__(cls)
        if version <= 9:
            one.name = reader.string()
        else:
            one.name = ""
        if version >= 10:
            one.topic_id = reader.uuid()
        else:
            one.topic_id = None
        one.partitions = reader.array(OffsetFetchResponsePartitions.decode, version)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        if version <= 9:
            writer.string(self.name)
        if version >= 10:
            writer.uuid(self.topic_id)
        writer.array(self.partitions, version)
        writer.tagged_fields()


class OffsetFetchResponseGroup(Struct):
    __slots__ = ("group_id", "topics", "error_code")

    def __init__(
        self,
        *,
        group_id: str = "",
        topics: Sequence[OffsetFetchResponseTopics] = (),
        error_code: ErrorCode = ErrorCode.NONE,
    ) -> None:
        self.group_id = group_id
        self.topics = topics
        self.error_code = error_code

    @classmethod
    def decode(cls, reader: Reader, version: int) -> OffsetFetchResponseGroup:
        one = cls.__new__(cls)
        one.group_id = reader.string()
        one.topics = reader.array(OffsetFetchResponseTopics.decode, version)
        one.error_code = ErrorCode(reader.int16())
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.string(self.group_id)
        writer.array(self.topics, version)
        writer.int16(self.error_code)
        writer.tagged_fields()


class OffsetFetchResponsePartition(Struct):
    __slots__ = ("partition_index", "committed_offset", "committed_leader_epoch", "metadata", "error_code")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        committed_offset: int = 0,
        committed_leader_epoch: int = -1,  # version >= 5
        metadata: str | None = None,
        error_code: ErrorCode = ErrorCode.NONE,
    ) -> None:
        self.partition_index = partition_index
        self.committed_offset = committed_offset
        self.committed_leader_epoch = committed_leader_epoch
        self.metadata = metadata
        self.error_code = error_code

    @classmethod
    def decode(cls, reader: Reader, version: int) -> OffsetFetchResponsePartition:
        one = cls.__new__(cls)
        one.partition_index, one.committed_offset = reader.unpack(_IQ)
        if version >= 5:
            one.committed_leader_epoch = reader.int32()
        else:
            one.committed_leader_epoch = -1
        one.metadata = reader.nullable_string()
        one.error_code = ErrorCode(reader.int16())
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.out += _IQ.pack(self.partition_index, self.committed_offset)
        if version >= 5:
            writer.int32(self.committed_leader_epoch)
        writer.nullable_string(self.metadata)
        writer.int16(self.error_code)
        writer.tagged_fields()


class OffsetFetchResponseTopic(Struct):
    __slots__ = ("name", "partitions")

    def __init__(
        self,
        *,
        name: str = "",
        partitions: Sequence[OffsetFetchResponsePartition] = (),
    ) -> None:
        self.name = name
        self.partitions = partitions

    @classmethod
    def decode(cls, reader: Reader, version: int) -> OffsetFetchResponseTopic:
        one = cls.__new__(cls)
        one.name = reader.string()
        one.partitions = reader.array(OffsetFetchResponsePartition.decode, version)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.string(self.name)
        writer.array(self.partitions, version)
        writer.tagged_fields()


class OffsetFetchResponse(Message):
    __slots__ = ("throttle_time_ms", "topics", "error_code", "groups")

    KEY: ClassVar[int] = 9
    FLEXIBLE_SINCE: ClassVar[int] = 6

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,  # version >= 3
        topics: Sequence[OffsetFetchResponseTopic] = (),  # version <= 7
        error_code: ErrorCode = ErrorCode.NONE,  # 2 <= version <= 7
        groups: Sequence[OffsetFetchResponseGroup] = (),  # version >= 8
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = topics
        self.error_code = error_code
        self.groups = groups

    @classmethod
    def decode(cls, reader: Reader, version: int) -> OffsetFetchResponse:
        one = cls.__new__(cls)
        if version >= 3:
            one.throttle_time_ms = reader.int32()
        else:
            one.throttle_time_ms = 0
        if version <= 7:
            one.topics = reader.array(OffsetFetchResponseTopic.decode, version)
        else:
            one.topics = ()
        if 2 <= version <= 7:
            one.error_code = ErrorCode(reader.int16())
        else:
            one.error_code = ErrorCode.NONE
        if version >= 8:
            one.groups = reader.array(OffsetFetchResponseGroup.decode, version)
        else:
            one.groups = ()
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        if version >= 3:
            writer.int32(self.throttle_time_ms)
        if version <= 7:
            writer.array(self.topics, version)
        if 2 <= version <= 7:
            writer.int16(self.error_code)
        if version >= 8:
            writer.array(self.groups, version)
        writer.tagged_fields()
