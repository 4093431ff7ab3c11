"""Made by `make messages` from Kafka's schemas: not to be edited."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as Layout
from typing import ClassVar, Final

from kafka_sidecar.wire.buffers import Reader, Writer
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.message import Message, Struct

_IH: Final = Layout(">ih")
_QIIQIQ: Final = Layout(">qiiqiq")


class TopicRequest(Struct):
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
    def decode(cls, reader: Reader, version: int) -> TopicRequest:
        one = cls.__new__(cls)
        one.name = reader.string()
        one.partition_indexes = reader.int32_array()
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.string(self.name)
        writer.int32_array(self.partition_indexes)
        writer.tagged_fields()


class DescribeProducersRequest(Message):
    __slots__ = ("topics",)

    KEY: ClassVar[int] = 61
    FLEXIBLE_SINCE: ClassVar[int] = 0

    def __init__(
        self,
        *,
        topics: Sequence[TopicRequest] = (),
    ) -> None:
        self.topics = topics

    @classmethod
    def decode(cls, reader: Reader, version: int) -> DescribeProducersRequest:
        one = cls.__new__(cls)
        one.topics = reader.array(TopicRequest.decode, version)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.array(self.topics, version)
        writer.tagged_fields()


class ProducerState(Struct):
    __slots__ = (
        "producer_id",
        "producer_epoch",
        "last_sequence",
        "last_timestamp",
        "coordinator_epoch",
        "current_txn_start_offset",
    )

    def __init__(
        self,
        *,
        producer_id: int = 0,
        producer_epoch: int = 0,
        last_sequence: int = -1,
        last_timestamp: int = -1,
        coordinator_epoch: int = 0,
        current_txn_start_offset: int = -1,
    ) -> None:
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.last_sequence = last_sequence
        self.last_timestamp = last_timestamp
        self.coordinator_epoch = coordinator_epoch
        self.current_txn_start_offset = current_txn_start_offset

    @classmethod
    def decode(cls, reader: Reader, version: int) -> ProducerState:
        one = cls.__new__(cls)
        one.producer_id, one.producer_epoch, one.last_sequence, one.last_timestamp, one.coordinator_epoch, one.current_txn_start_offset = reader.unpack(_QIIQIQ)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.out += _QIIQIQ.pack(self.producer_id, self.producer_epoch, self.last_sequence, self.last_timestamp, self.coordinator_epoch, self.current_txn_start_offset)
        writer.tagged_fields()


class PartitionResponse(Struct):
    __slots__ = ("partition_index", "error_code", "error_message", "active_producers")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: ErrorCode = ErrorCode.NONE,
        error_message: str | None = None,
        active_producers: Sequence[ProducerState] = (),
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.error_message = error_message
        self.active_producers = active_producers

    @classmethod
    def decode(cls, reader: Reader, version: int) -> PartitionResponse:
        one = cls.__new__(cls)
        one.partition_index, one.error_code = reader.unpack(_IH)
        one.error_code = ErrorCode(one.error_code)
        one.error_message = reader.nullable_string()
        one.active_producers = reader.array(ProducerState.decode, version)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.out += _IH.pack(self.partition_index, self.error_code)
        writer.nullable_message(self.error_message)
        writer.array(self.active_producers, version)
        writer.tagged_fields()


class TopicResponse(Struct):
    __slots__ = ("name", "partitions")

    def __init__(
        self,
        *,
        name: str = "",
        partitions: Sequence[PartitionResponse] = (),
    ) -> None:
        self.name = name
        self.partitions = partitions

    @classmethod
    def decode(cls, reader: Reader, version: int) -> TopicResponse:
        one = cls.__new__(cls)
        one.name = reader.string()
        one.partitions = reader.array(PartitionResponse.decode, version)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.string(self.name)
        writer.array(self.partitions, version)
        writer.tagged_fields()


class DescribeProducersResponse(Message):
    __slots__ = ("throttle_time_ms", "topics")

    KEY: ClassVar[int] = 61
    FLEXIBLE_SINCE: ClassVar[int] = 0

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: Sequence[TopicResponse] = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = topics

    @classmethod
    def decode(cls, reader: Reader, version: int) -> DescribeProducersResponse:
        one = cls.__new__(cls)
        one.throttle_time_ms = reader.int32()
        one.topics = reader.array(TopicResponse.decode, version)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.throttle_time_ms)
        writer.array(self.topics, version)
        writer.tagged_fields()
