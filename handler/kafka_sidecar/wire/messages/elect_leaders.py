"""Made by `make messages` from Kafka's schemas: not to be edited."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as Layout
from typing import ClassVar, Final

from kafka_sidecar.wire.buffers import Reader, Writer
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.message import Message, Struct

_IH: Final = Layout(">ih")


class TopicPartitions(Struct):
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
    def decode(cls, reader: Reader, version: int) -> TopicPartitions:
        one = cls.__new__(cls)
        one.topic = reader.string()
        one.partitions = reader.int32_array()
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.string(self.topic)
        writer.int32_array(self.partitions)
        writer.tagged_fields()


class ElectLeadersRequest(Message):
    __slots__ = ("election_type", "topic_partitions", "timeout_ms")

    KEY: ClassVar[int] = 43
    FLEXIBLE_SINCE: ClassVar[int] = 2

    def __init__(
        self,
        *,
        election_type: int = 0,  # version >= 1
        topic_partitions: Sequence[TopicPartitions] | None = (),
        timeout_ms: int = 60000,
    ) -> None:
        self.election_type = election_type
        self.topic_partitions = topic_partitions
        self.timeout_ms = timeout_ms

    @classmethod
    def decode(cls, reader: Reader, version: int) -> ElectLeadersRequest:
        one = cls.__new__(cls)
        if version >= 1:
            one.election_type = reader.int8()
        else:
            one.election_type = 0
        one.topic_partitions = reader.nullable_array(TopicPartitions.decode, version)
        one.timeout_ms = reader.int32()
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        if version >= 1:
            writer.int8(self.election_type)
        writer.nullable_array(self.topic_partitions, version)
        writer.int32(self.timeout_ms)
        writer.tagged_fields()


class PartitionResult(Struct):
    __slots__ = ("partition_id", "error_code", "error_message")

    def __init__(
        self,
        *,
        partition_id: int = 0,
        error_code: ErrorCode = ErrorCode.NONE,
        error_message: str | None = None,
    ) -> None:
        self.partition_id = partition_id
        self.error_code = error_code
        self.error_message = error_message

    @classmethod
    def decode(cls, reader: Reader, version: int) -> PartitionResult:
        one = cls.__new__(cls)
        one.partition_id, one.error_code = reader.unpack(_IH)
        one.error_code = ErrorCode(one.error_code)
        one.error_message = reader.nullable_string()
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.out += _IH.pack(self.partition_id, self.error_code)
        writer.nullable_message(self.error_message)
        writer.tagged_fields()


class ReplicaElectionResult(Struct):
    __slots__ = ("topic", "partition_result")

    def __init__(
        self,
        *,
        topic: str = "",
        partition_result: Sequence[PartitionResult] = (),
    ) -> None:
        self.topic = topic
        self.partition_result = partition_result

    @classmethod
    def decode(cls, reader: Reader, version: int) -> ReplicaElectionResult:
        one = cls.__new__(cls)
        one.topic = reader.string()
        one.partition_result = reader.array(PartitionResult.decode, version)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.string(self.topic)
        writer.array(self.partition_result, version)
        writer.tagged_fields()


class ElectLeadersResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "replica_election_results")

    KEY: ClassVar[int] = 43
    FLEXIBLE_SINCE: ClassVar[int] = 2

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: ErrorCode = ErrorCode.NONE,  # version >= 1
        replica_election_results: Sequence[ReplicaElectionResult] = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.replica_election_results = replica_election_results

    @classmethod
    def decode(cls, reader: Reader, version: int) -> ElectLeadersResponse:
        one = cls.__new__(cls)
        one.throttle_time_ms = reader.int32()
        if version >= 1:
            one.error_code = ErrorCode(reader.int16())
        else:
            one.error_code = ErrorCode.NONE
        one.replica_election_results = reader.array(ReplicaElectionResult.decode, version)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.throttle_time_ms)
        if version >= 1:
            writer.int16(self.error_code)
        writer.array(self.replica_election_results, version)
        writer.tagged_fields()
