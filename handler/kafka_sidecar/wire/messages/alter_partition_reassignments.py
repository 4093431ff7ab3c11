"""Made by `make messages` from Kafka's schemas: not to be edited."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as Layout
from typing import ClassVar, Final

from kafka_sidecar.wire.buffers import Reader, Writer
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.message import Message, Struct

_IH: Final = Layout(">ih")


class ReassignablePartition(Struct):
    __slots__ = ("partition_index", "replicas")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        replicas: Sequence[int] | None = None,
    ) -> None:
        self.partition_index = partition_index
        self.replicas = replicas

    @classmethod
    def decode(cls, reader: Reader, version: int) -> ReassignablePartition:
        one = cls.__new__(cls)
        one.partition_index = reader.int32()
        one.replicas = reader.nullable_int32_array()
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.partition_index)
        writer.nullable_int32_array(self.replicas)
        writer.tagged_fields()


class ReassignableTopic(Struct):
    __slots__ = ("name", "partitions")

    def __init__(
        self,
        *,
        name: str = "",
        partitions: Sequence[ReassignablePartition] = (),
    ) -> None:
        self.name = name
        self.partitions = partitions

    @classmethod
    def decode(cls, reader: Reader, version: int) -> ReassignableTopic:
        one = cls.__new__(cls)
        one.name = reader.string()
        one.partitions = reader.array(ReassignablePartition.decode, version)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.string(self.name)
        writer.array(self.partitions, version)
        writer.tagged_fields()


class AlterPartitionReassignmentsRequest(Message):
    __slots__ = ("timeout_ms", "allow_replication_factor_change", "topics")

    KEY: ClassVar[int] = 45
    FLEXIBLE_SINCE: ClassVar[int] = 0

    def __init__(
        self,
        *,
        timeout_ms: int = 60000,
        allow_replication_factor_change: bool = True,  # version >= 1
        topics: Sequence[ReassignableTopic] = (),
    ) -> None:
        self.timeout_ms = timeout_ms
        self.allow_replication_factor_change = allow_replication_factor_change
        self.topics = topics

    @classmethod
    def decode(cls, reader: Reader, version: int) -> AlterPartitionReassignmentsRequest:
        one = cls.__new__(cls)
        one.timeout_ms = reader.int32()
        if version >= 1:
            one.allow_replication_factor_change = reader.bool_()
        else:
            one.allow_replication_factor_change = True
        one.topics = reader.array(ReassignableTopic.decode, version)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.timeout_ms)
        if version >= 1:
            writer.bool_(self.allow_replication_factor_change)
        writer.array(self.topics, version)
        writer.tagged_fields()


class ReassignablePartitionResponse(Struct):
    __slots__ = ("partition_index", "error_code", "error_message")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: ErrorCode = ErrorCode.NONE,
        error_message: str | None = None,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.error_message = error_message

    @classmethod
    def decode(cls, reader: Reader, version: int) -> ReassignablePartitionResponse:
        one = cls.__new__(cls)
        one.partition_index, one.error_code = reader.unpack(_IH)
        one.error_code = ErrorCode(one.error_code)
        one.error_message = reader.nullable_string()
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.out += _IH.pack(self.partition_index, self.error_code)
        writer.nullable_message(self.error_message)
        writer.tagged_fields()


class ReassignableTopicResponse(Struct):
    __slots__ = ("name", "partitions")

    def __init__(
        self,
        *,
        name: str = "",
        partitions: Sequence[ReassignablePartitionResponse] = (),
    ) -> None:
        self.name = name
        self.partitions = partitions

    @classmethod
    def decode(cls, reader: Reader, version: int) -> ReassignableTopicResponse:
        one = cls.__new__(cls)
        one.name = reader.string()
        one.partitions = reader.array(ReassignablePartitionResponse.decode, version)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.string(self.name)
        writer.array(self.partitions, version)
        writer.tagged_fields()


class AlterPartitionReassignmentsResponse(Message):
    __slots__ = ("throttle_time_ms", "allow_replication_factor_change", "error_code", "error_message", "responses")

    KEY: ClassVar[int] = 45
    FLEXIBLE_SINCE: ClassVar[int] = 0

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        allow_replication_factor_change: bool = True,  # version >= 1
        error_code: ErrorCode = ErrorCode.NONE,
        error_message: str | None = None,
        responses: Sequence[ReassignableTopicResponse] = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.allow_replication_factor_change = allow_replication_factor_change
        self.error_code = error_code
        self.error_message = error_message
        self.responses = responses

    @classmethod
    def decode(cls, reader: Reader, version: int) -> AlterPartitionReassignmentsResponse:
        one = cls.__new__(cls)
        one.throttle_time_ms = reader.int32()
        if version >= 1:
            one.allow_replication_factor_change = reader.bool_()
        else:
            one.allow_replication_factor_change = True
        one.error_code = ErrorCode(reader.int16())
        one.error_message = reader.nullable_string()
        one.responses = reader.array(ReassignableTopicResponse.decode, version)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.throttle_time_ms)
        if version >= 1:
            writer.bool_(self.allow_replication_factor_change)
        writer.int16(self.error_code)
        writer.nullable_message(self.error_message)
        writer.array(self.responses, version)
        writer.tagged_fields()
