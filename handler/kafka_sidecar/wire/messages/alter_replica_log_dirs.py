"""Made by `make messages` from Kafka's schemas: not to be edited."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as Layout
from typing import ClassVar, Final

from kafka_sidecar.wire.buffers import Reader, Writer
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.message import Message, Struct

_IH: Final = Layout(">ih")


class AlterReplicaLogDirTopic(Struct):
    __slots__ = ("name", "partitions")

    def __init__(
        self,
        *,
        name: str = "",
        partitions: Sequence[int] = (),
    ) -> None:
        self.name = name
        self.partitions = partitions

    @classmethod
    def decode(cls, reader: Reader, version: int) -> AlterReplicaLogDirTopic:
        one = cls.__new__(cls)
        one.name = reader.string()
        one.partitions = reader.int32_array()
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.string(self.name)
        writer.int32_array(self.partitions)
        writer.tagged_fields()


class AlterReplicaLogDir(Struct):
    __slots__ = ("path", "topics")

    def __init__(
        self,
        *,
        path: str = "",
        topics: Sequence[AlterReplicaLogDirTopic] = (),
    ) -> None:
        self.path = path
        self.topics = topics

    @classmethod
    def decode(cls, reader: Reader, version: int) -> AlterReplicaLogDir:
        one = cls.__new__(cls)
        one.path = reader.string()
        one.topics = reader.array(AlterReplicaLogDirTopic.decode, version)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.string(self.path)
        writer.array(self.topics, version)
        writer.tagged_fields()


class AlterReplicaLogDirsRequest(Message):
    __slots__ = ("dirs",)

    KEY: ClassVar[int] = 34
    FLEXIBLE_SINCE: ClassVar[int] = 2

    def __init__(
        self,
        *,
        dirs: Sequence[AlterReplicaLogDir] = (),
    ) -> None:
        self.dirs = dirs

    @classmethod
    def decode(cls, reader: Reader, version: int) -> AlterReplicaLogDirsRequest:
        one = cls.__new__(cls)
        one.dirs = reader.array(AlterReplicaLogDir.decode, version)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.array(self.dirs, version)
        writer.tagged_fields()


class AlterReplicaLogDirPartitionResult(Struct):
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
    def decode(cls, reader: Reader, version: int) -> AlterReplicaLogDirPartitionResult:
        one = cls.__new__(cls)
        one.partition_index, one.error_code = reader.unpack(_IH)
        one.error_code = ErrorCode(one.error_code)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.out += _IH.pack(self.partition_index, self.error_code)
        writer.tagged_fields()


class AlterReplicaLogDirTopicResult(Struct):
    __slots__ = ("topic_name", "partitions")

    def __init__(
        self,
        *,
        topic_name: str = "",
        partitions: Sequence[AlterReplicaLogDirPartitionResult] = (),
    ) -> None:
        self.topic_name = topic_name
        self.partitions = partitions

    @classmethod
    def decode(cls, reader: Reader, version: int) -> AlterReplicaLogDirTopicResult:
        one = cls.__new__(cls)
        one.topic_name = reader.string()
        one.partitions = reader.array(AlterReplicaLogDirPartitionResult.decode, version)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.string(self.topic_name)
        writer.array(self.partitions, version)
        writer.tagged_fields()


class AlterReplicaLogDirsResponse(Message):
    __slots__ = ("throttle_time_ms", "results")

    KEY: ClassVar[int] = 34
    FLEXIBLE_SINCE: ClassVar[int] = 2

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        results: Sequence[AlterReplicaLogDirTopicResult] = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results = results

    @classmethod
    def decode(cls, reader: Reader, version: int) -> AlterReplicaLogDirsResponse:
        one = cls.__new__(cls)
        one.throttle_time_ms = reader.int32()
        one.results = reader.array(AlterReplicaLogDirTopicResult.decode, version)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.throttle_time_ms)
        writer.array(self.results, version)
        writer.tagged_fields()
