"""Made by `make messages` from Kafka's schemas: not to be edited."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as Layout
from typing import ClassVar, Final

from kafka_sidecar.wire.buffers import Reader, Writer
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.message import Message, Struct

_IQQX: Final = Layout(">iqq?")
_QQ: Final = Layout(">qq")


class DescribableLogDirTopic(Struct):
    __slots__ = ("topic", "partitions")

    def __init__(
        self,
        *,
        topic: str = "",
        partitions: Sequence[int] = (),
    ) -> None:
        self.topic = topic
        self.partitions = partitions

    @classmethod
    def decode(cls, reader: Reader, version: int) -> DescribableLogDirTopic:
        one = cls.__new__(cls)
        one.topic = reader.string()
        one.partitions = reader.int32_array()
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.string(self.topic)
        writer.int32_array(self.partitions)
        writer.tagged_fields()


class DescribeLogDirsRequest(Message):
    __slots__ = ("topics",)

    KEY: ClassVar[int] = 35
    FLEXIBLE_SINCE: ClassVar[int] = 2

    def __init__(
        self,
        *,
        topics: Sequence[DescribableLogDirTopic] | None = (),
    ) -> None:
        self.topics = topics

    @classmethod
    def decode(cls, reader: Reader, version: int) -> DescribeLogDirsRequest:
        one = cls.__new__(cls)
        one.topics = reader.nullable_array(DescribableLogDirTopic.decode, version)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.nullable_array(self.topics, version)
        writer.tagged_fields()


class DescribeLogDirsPartition(Struct):
    __slots__ = ("partition_index", "partition_size", "offset_lag", "is_future_key")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        partition_size: int = 0,
        offset_lag: int = 0,
        is_future_key: bool = False,
    ) -> None:
        self.partition_index = partition_index
        self.partition_size = partition_size
        self.offset_lag = offset_lag
        self.is_future_key = is_future_key

    @classmethod
    def decode(cls, reader: Reader, version: int) -> DescribeLogDirsPartition:
        one = cls.__new__(cls)
        one.partition_index, one.partition_size, one.offset_lag, one.is_future_key = reader.unpack(_IQQX)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.out += _IQQX.pack(self.partition_index, self.partition_size, self.offset_lag, self.is_future_key)
        writer.tagged_fields()


class DescribeLogDirsTopic(Struct):
    __slots__ = ("name", "partitions")

    def __init__(
        self,
        *,
        name: str = "",
        partitions: Sequence[DescribeLogDirsPartition] = (),
    ) -> None:
        self.name = name
        self.partitions = partitions

    @classmethod
    def decode(cls, reader: Reader, version: int) -> DescribeLogDirsTopic:
        one = cls.__new__(cls)
        one.name = reader.string()
        one.partitions = reader.array(DescribeLogDirsPartition.decode, version)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.string(self.name)
        writer.array(self.partitions, version)
        writer.tagged_fields()


class DescribeLogDirsResult(Struct):
    __slots__ = ("error_code", "log_dir", "topics", "total_bytes", "usable_bytes", "is_cordoned")

    def __init__(
        self,
        *,
        error_code: ErrorCode = ErrorCode.NONE,
        log_dir: str = "",
        topics: Sequence[DescribeLogDirsTopic] = (),
        total_bytes: int = -1,  # version >= 4
        usable_bytes: int = -1,  # version >= 4
        is_cordoned: bool = False,  # version >= 5
    ) -> None:
        self.error_code = error_code
        self.log_dir = log_dir
        self.topics = topics
        self.total_bytes = total_bytes
        self.usable_bytes = usable_bytes
        self.is_cordoned = is_cordoned

    @classmethod
    def decode(cls, reader: Reader, version: int) -> DescribeLogDirsResult:
        one = cls.__new__(cls)
        one.error_code = ErrorCode(reader.int16())
        one.log_dir = reader.string()
        one.topics = reader.array(DescribeLogDirsTopic.decode, version)
        if version >= 4:
            one.total_bytes, one.usable_bytes = reader.unpack(_QQ)
        else:
            one.total_bytes = -1
            one.usable_bytes = -1
        if version >= 5:
            one.is_cordoned = reader.bool_()
        else:
            one.is_cordoned = False
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.int16(self.error_code)
        writer.string(self.log_dir)
        writer.array(self.topics, version)
        if version >= 4:
            writer.out += _QQ.pack(self.total_bytes, self.usable_bytes)
        if version >= 5:
            writer.bool_(self.is_cordoned)
        writer.tagged_fields()


class DescribeLogDirsResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "results")

    KEY: ClassVar[int] = 35
    FLEXIBLE_SINCE: ClassVar[int] = 2

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: ErrorCode = ErrorCode.NONE,  # version >= 3
        results: Sequence[DescribeLogDirsResult] = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.results = results

    @classmethod
    def decode(cls, reader: Reader, version: int) -> DescribeLogDirsResponse:
        one = cls.__new__(cls)
        one.throttle_time_ms = reader.int32()
        if version >= 3:
            one.error_code = ErrorCode(reader.int16())
        else:
            one.error_code = ErrorCode.NONE
        one.results = reader.array(DescribeLogDirsResult.decode, version)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.throttle_time_ms)
        if version >= 3:
            writer.int16(self.error_code)
        writer.array(self.results, version)
        writer.tagged_fields()
