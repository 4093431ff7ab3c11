"""Made by `make messages` from Kafka's schemas: not to be edited."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as Layout
from typing import ClassVar, Final

from kafka_sidecar.wire.buffers import Reader, Writer
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.message import Message, Struct

_IQ: Final = Layout(">iq")
_IQH: Final = Layout(">iqh")


class DeleteRecordsPartition(Struct):
    __slots__ = ("partition_index", "offset")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        offset: int = 0,
    ) -> None:
        self.partition_index = partition_index
        self.offset = offset

    @classmethod
    def decode(cls, reader: Reader, version: int) -> DeleteRecordsPartition:
        one = cls.__new__(cls)
        one.partition_index, one.offset = reader.unpack(_IQ)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.out += _IQ.pack(self.partition_index, self.offset)
        writer.tagged_fields()


class DeleteRecordsTopic(Struct):
    __slots__ = ("name", "partitions")

    def __init__(
        self,
        *,
        name: str = "",
        partitions: Sequence[DeleteRecordsPartition] = (),
    ) -> None:
        self.name = name
        self.partitions = partitions

    @classmethod
    def decode(cls, reader: Reader, version: int) -> DeleteRecordsTopic:
        one = cls.__new__(cls)
        one.name = reader.string()
        one.partitions = reader.array(DeleteRecordsPartition.decode, version)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.string(self.name)
        writer.array(self.partitions, version)
        writer.tagged_fields()


class DeleteRecordsRequest(Message):
    __slots__ = ("topics", "timeout_ms")

    KEY: ClassVar[int] = 21
    FLEXIBLE_SINCE: ClassVar[int] = 2

    def __init__(
        self,
        *,
        topics: Sequence[DeleteRecordsTopic] = (),
        timeout_ms: int = 0,
    ) -> None:
        self.topics = topics
        self.timeout_ms = timeout_ms

    @classmethod
    def decode(cls, reader: Reader, version: int) -> DeleteRecordsRequest:
        one = cls.__new__(cls)
        one.topics = reader.array(DeleteRecordsTopic.decode, version)
        one.timeout_ms = reader.int32()
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.array(self.topics, version)
        writer.int32(self.timeout_ms)
        writer.tagged_fields()


class DeleteRecordsPartitionResult(Struct):
    __slots__ = ("partition_index", "low_watermark", "error_code")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        low_watermark: int = 0,
        error_code: ErrorCode = ErrorCode.NONE,
    ) -> None:
        self.partition_index = partition_index
        self.low_watermark = low_watermark
        self.error_code = error_code

    @classmethod
    def decode(cls, reader: Reader, version: int) -> DeleteRecordsPartitionResult:
        one = cls.__new__(cls)
        one.partition_index, one.low_watermark, one.error_code = reader.unpack(_IQH)
        one.error_code = ErrorCode(one.error_code)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.out += _IQH.pack(self.partition_index, self.low_watermark, self.error_code)
        writer.tagged_fields()


class DeleteRecordsTopicResult(Struct):
    __slots__ = ("name", "partitions")

    def __init__(
        self,
        *,
        name: str = "",
        partitions: Sequence[DeleteRecordsPartitionResult] = (),
    ) -> None:
        self.name = name
        self.partitions = partitions

    @classmethod
    def decode(cls, reader: Reader, version: int) -> DeleteRecordsTopicResult:
        one = cls.__new__(cls)
        one.name = reader.string()
        one.partitions = reader.array(DeleteRecordsPartitionResult.decode, version)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.string(self.name)
        writer.array(self.partitions, version)
        writer.tagged_fields()


class DeleteRecordsResponse(Message):
    __slots__ = ("throttle_time_ms", "topics")

    KEY: ClassVar[int] = 21
    FLEXIBLE_SINCE: ClassVar[int] = 2

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: Sequence[DeleteRecordsTopicResult] = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = topics

    @classmethod
    def decode(cls, reader: Reader, version: int) -> DeleteRecordsResponse:
        one = cls.__new__(cls)
        one.throttle_time_ms = reader.int32()
        one.topics = reader.array(DeleteRecordsTopicResult.decode, version)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.throttle_time_ms)
        writer.array(self.topics, version)
        writer.tagged_fields()
