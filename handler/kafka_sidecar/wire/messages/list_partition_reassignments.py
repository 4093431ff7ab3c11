"""Made by `make messages` from Kafka's schemas: not to be edited."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as Layout
from typing import ClassVar, Final

from kafka_sidecar.wire.buffers import Reader, Writer
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.message import Message, Struct

_IH: Final = Layout(">ih")


class ListPartitionReassignmentsTopics(Struct):
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
    def decode(cls, reader: Reader, version: int) -> ListPartitionReassignmentsTopics:
        one = cls.__new__(cls)
        one.name = reader.string()
        one.partition_indexes = reader.int32_array()
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.string(self.name)
        writer.int32_array(self.partition_indexes)
        writer.tagged_fields()


class ListPartitionReassignmentsRequest(Message):
    __slots__ = ("timeout_ms", "topics")

    KEY: ClassVar[int] = 46
    FLEXIBLE_SINCE: ClassVar[int] = 0

    def __init__(
        self,
        *,
        timeout_ms: int = 60000,
        topics: Sequence[ListPartitionReassignmentsTopics] | None = (),
    ) -> None:
        self.timeout_ms = timeout_ms
        self.topics = topics

    @classmethod
    def decode(cls, reader: Reader, version: int) -> ListPartitionReassignmentsRequest:
        one = cls.__new__(cls)
        one.timeout_ms = reader.int32()
        one.topics = reader.nullable_array(ListPartitionReassignmentsTopics.decode, version)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.timeout_ms)
        writer.nullable_array(self.topics, version)
        writer.tagged_fields()


class OngoingPartitionReassignment(Struct):
    __slots__ = ("partition_index", "replicas", "adding_replicas", "removing_replicas")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        replicas: Sequence[int] = (),
        adding_replicas: Sequence[int] = (),
        removing_replicas: Sequence[int] = (),
    ) -> None:
        self.partition_index = partition_index
        self.replicas = replicas
        self.adding_replicas = adding_replicas
        self.removing_replicas = removing_replicas

    @classmethod
    def decode(cls, reader: Reader, version: int) -> OngoingPartitionReassignment:
        one = cls.__new__(cls)
        one.partition_index = reader.int32()
        one.replicas = reader.int32_array()
        one.adding_replicas = reader.int32_array()
        one.removing_replicas = reader.int32_array()
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.partition_index)
        writer.int32_array(self.replicas)
        writer.int32_array(self.adding_replicas)
        writer.int32_array(self.removing_replicas)
        writer.tagged_fields()


class OngoingTopicReassignment(Struct):
    __slots__ = ("name", "partitions")

    def __init__(
        self,
        *,
        name: str = "",
        partitions: Sequence[OngoingPartitionReassignment] = (),
    ) -> None:
        self.name = name
        self.partitions = partitions

    @classmethod
    def decode(cls, reader: Reader, version: int) -> OngoingTopicReassignment:
        one = cls.__new__(cls)
        one.name = reader.string()
        one.partitions = reader.array(OngoingPartitionReassignment.decode, version)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.string(self.name)
        writer.array(self.partitions, version)
        writer.tagged_fields()


class ListPartitionReassignmentsResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "error_message", "topics")

    KEY: ClassVar[int] = 46
    FLEXIBLE_SINCE: ClassVar[int] = 0

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: ErrorCode = ErrorCode.NONE,
        error_message: str | None = None,
        topics: Sequence[OngoingTopicReassignment] = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.topics = topics

    @classmethod
    def decode(cls, reader: Reader, version: int) -> ListPartitionReassignmentsResponse:
        one = cls.__new__(cls)
        one.throttle_time_ms, one.error_code = reader.unpack(_IH)
        one.error_code = ErrorCode(one.error_code)
        one.error_message = reader.nullable_string()
        one.topics = reader.array(OngoingTopicReassignment.decode, version)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.out += _IH.pack(self.throttle_time_ms, self.error_code)
        writer.nullable_message(self.error_message)
        writer.array(self.topics, version)
        writer.tagged_fields()
