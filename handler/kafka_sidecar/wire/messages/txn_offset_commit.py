"""Made by `make messages` from Kafka's schemas: not to be edited."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as Layout
from typing import ClassVar, Final

from kafka_sidecar.wire.buffers import Reader, Writer
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.message import Message, Struct

_IH: Final = Layout(">ih")
_IQ: Final = Layout(">iq")
_QH: Final = Layout(">qh")


class TxnOffsetCommitRequestPartition(Struct):
    __slots__ = ("partition_index", "committed_offset", "committed_leader_epoch", "committed_metadata")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        committed_offset: int = 0,
        committed_leader_epoch: int = -1,  # version >= 2
        committed_metadata: str | None = None,
    ) -> None:
        self.partition_index = partition_index
        self.committed_offset = committed_offset
        self.committed_leader_epoch = committed_leader_epoch
        self.committed_metadata = committed_metadata

    @classmethod
    def decode(cls, reader: Reader, version: int) -> TxnOffsetCommitRequestPartition:
        one = cls.__new__(cls)
        one.partition_index, one.committed_offset = reader.unpack(_IQ)
        if version >= 2:
            one.committed_leader_epoch = reader.int32()
        else:
            one.committed_leader_epoch = -1
        one.committed_metadata = reader.nullable_string()
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.out += _IQ.pack(self.partition_index, self.committed_offset)
        if version >= 2:
            writer.int32(self.committed_leader_epoch)
        writer.nullable_string(self.committed_metadata)
        writer.tagged_fields()


class TxnOffsetCommitRequestTopic(Struct):
    __slots__ = ("name", "partitions")

    def __init__(
        self,
        *,
        name: str = "",
        partitions: Sequence[TxnOffsetCommitRequestPartition] = (),
    ) -> None:
        self.name = name
        self.partitions = partitions

    @classmethod
    def decode(cls, reader: Reader, version: int) -> TxnOffsetCommitRequestTopic:
        one = cls.__new__(cls)
        one.name = reader.string()
        one.partitions = reader.array(TxnOffsetCommitRequestPartition.decode, version)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.string(self.name)
        writer.array(self.partitions, version)
        writer.tagged_fields()


class TxnOffsetCommitRequest(Message):
    __slots__ = (
        "transactional_id",
        "group_id",
        "producer_id",
        "producer_epoch",
        "generation_id",
        "member_id",
        "group_instance_id",
        "topics",
    )

    KEY: ClassVar[int] = 28
    FLEXIBLE_SINCE: ClassVar[int] = 3

    def __init__(
        self,
        *,
        transactional_id: str = "",
        group_id: str = "",
        producer_id: int = 0,
        producer_epoch: int = 0,
        generation_id: int = -1,  # version >= 3
        member_id: str = "",  # version >= 3
        group_instance_id: str | None = None,  # version >= 3
        topics: Sequence[TxnOffsetCommitRequestTopic] = (),
    ) -> None:
        self.transactional_id = transactional_id
        self.group_id = group_id
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.generation_id = generation_id
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.topics = topics

    @classmethod
    def decode(cls, reader: Reader, version: int) -> TxnOffsetCommitRequest:
        one = cls.__new__(cls)
        one.transactional_id = reader.string()
        one.group_id = reader.string()
        one.producer_id, one.producer_epoch = reader.unpack(_QH)
        if version >= 3:
            one.generation_id = reader.int32()
            one.member_id = reader.string()
            one.group_instance_id = reader.nullable_string()
        else:
            one.generation_id = -1
            one.member_id = ""
            one.group_instance_id = None
        one.topics = reader.array(TxnOffsetCommitRequestTopic.decode, version)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.string(self.transactional_id)
        writer.string(self.group_id)
        writer.out += _QH.pack(self.producer_id, self.producer_epoch)
        if version >= 3:
            writer.int32(self.generation_id)
            writer.string(self.member_id)
            writer.nullable_string(self.group_instance_id)
        writer.array(self.topics, version)
        writer.tagged_fields()


class TxnOffsetCommitResponsePartition(Struct):
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
    def decode(cls, reader: Reader, version: int) -> TxnOffsetCommitResponsePartition:
        one = cls.__new__(cls)
        one.partition_index, one.error_code = reader.unpack(_IH)
        one.error_code = ErrorCode(one.error_code)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.out += _IH.pack(self.partition_index, self.error_code)
        writer.tagged_fields()


class TxnOffsetCommitResponseTopic(Struct):
    __slots__ = ("name", "partitions")

    def __init__(
        self,
        *,
        name: str = "",
        partitions: Sequence[TxnOffsetCommitResponsePartition] = (),
    ) -> None:
        self.name = name
        self.partitions = partitions

    @classmethod
    def decode(cls, reader: Reader, version: int) -> TxnOffsetCommitResponseTopic:
        one = cls.__new__(cls)
        one.name = reader.string()
        one.partitions = reader.array(TxnOffsetCommitResponsePartition.decode, version)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.string(self.name)
        writer.array(self.partitions, version)
        writer.tagged_fields()


class TxnOffsetCommitResponse(Message):
    __slots__ = ("throttle_time_ms", "topics")

    KEY: ClassVar[int] = 28
    FLEXIBLE_SINCE: ClassVar[int] = 3

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: Sequence[TxnOffsetCommitResponseTopic] = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = topics

    @classmethod
    def decode(cls, reader: Reader, version: int) -> TxnOffsetCommitResponse:
        one = cls.__new__(cls)
        one.throttle_time_ms = reader.int32()
        one.topics = reader.array(TxnOffsetCommitResponseTopic.decode, version)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.throttle_time_ms)
        writer.array(self.topics, version)
        writer.tagged_fields()
