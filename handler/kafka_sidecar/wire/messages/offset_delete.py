"""Made by `make messages` from Kafka's schemas: not to be edited."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as Layout
from typing import ClassVar, Final

from kafka_sidecar.wire.buffers import Reader, Writer
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.message import Message, Struct

_HI: Final = Layout(">hi")
_IH: Final = Layout(">ih")


class OffsetDeleteRequestPartition(Struct):
    __slots__ = ("partition_index",)

    def __init__(
        self,
        *,
        partition_index: int = 0,
    ) -> None:
        self.partition_index = partition_index

    @classmethod
    def decode(cls, reader: Reader, version: int) -> OffsetDeleteRequestPartition:
        one = cls.__new__(cls)
        one.partition_index = reader.int32()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.partition_index)


class OffsetDeleteRequestTopic(Struct):
    __slots__ = ("name", "partitions")

    def __init__(
        self,
        *,
        name: str = "",
        partitions: Sequence[OffsetDeleteRequestPartition] = (),
    ) -> None:
        self.name = name
        self.partitions = partitions

    @classmethod
    def decode(cls, reader: Reader, version: int) -> OffsetDeleteRequestTopic:
        one = cls.__new__(cls)
        one.name = reader.string()
        one.partitions = reader.array(OffsetDeleteRequestPartition.decode, version)
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.string(self.name)
        writer.array(self.partitions, version)


class OffsetDeleteRequest(Message):
    __slots__ = ("group_id", "topics")

    KEY: ClassVar[int] = 47
    FLEXIBLE_SINCE: ClassVar[int] = 32767

    def __init__(
        self,
        *,
        group_id: str = "",
        topics: Sequence[OffsetDeleteRequestTopic] = (),
    ) -> None:
        self.group_id = group_id
        self.topics = topics

    @classmethod
    def decode(cls, reader: Reader, version: int) -> OffsetDeleteRequest:
        one = cls.__new__(cls)
        one.group_id = reader.string()
        one.topics = reader.array(OffsetDeleteRequestTopic.decode, version)
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.string(self.group_id)
        writer.array(self.topics, version)


class OffsetDeleteResponsePartition(Struct):
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
    def decode(cls, reader: Reader, version: int) -> OffsetDeleteResponsePartition:
        one = cls.__new__(cls)
        one.partition_index, one.error_code = reader.unpack(_IH)
        one.error_code = ErrorCode(one.error_code)
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.out += _IH.pack(self.partition_index, self.error_code)


class OffsetDeleteResponseTopic(Struct):
    __slots__ = ("name", "partitions")

    def __init__(
        self,
        *,
        name: str = "",
        partitions: Sequence[OffsetDeleteResponsePartition] = (),
    ) -> None:
        self.name = name
        self.partitions = partitions

    @classmethod
    def decode(cls, reader: Reader, version: int) -> OffsetDeleteResponseTopic:
        one = cls.__new__(cls)
        one.name = reader.string()
        one.partitions = reader.array(OffsetDeleteResponsePartition.decode, version)
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.string(self.name)
        writer.array(self.partitions, version)


class OffsetDeleteResponse(Message):
    __slots__ = ("error_code", "throttle_time_ms", "topics")

    KEY: ClassVar[int] = 47
    FLEXIBLE_SINCE: ClassVar[int] = 32767

    def __init__(
        self,
        *,
        error_code: ErrorCode = ErrorCode.NONE,
        throttle_time_ms: int = 0,
        topics: Sequence[OffsetDeleteResponseTopic] = (),
    ) -> None:
        self.error_code = error_code
        self.throttle_time_ms = throttle_time_ms
        self.topics = topics

    @classmethod
    def decode(cls, reader: Reader, version: int) -> OffsetDeleteResponse:
        one = cls.__new__(cls)
        one.error_code, one.throttle_time_ms = reader.unpack(_HI)
        one.error_code = ErrorCode(one.error_code)
        one.topics = reader.array(OffsetDeleteResponseTopic.decode, version)
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.out += _HI.pack(self.error_code, self.throttle_time_ms)
        writer.array(self.topics, version)
