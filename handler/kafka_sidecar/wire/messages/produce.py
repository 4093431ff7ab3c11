"""Made by `make messages` from Kafka's schemas: not to be edited."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as Layout
from typing import ClassVar, Final
from uuid import UUID

from kafka_sidecar.wire.buffers import FlexibleWriter, Reader, Writer
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.message import Message, Struct

_HI: Final = Layout(">hi")
_IHQQ: Final = Layout(">ihqq")
_II: Final = Layout(">ii")


class PartitionProduceData(Struct):
    __slots__ = ("index", "records")

    def __init__(
        self,
        *,
        index: int = 0,
        records: bytes | None = None,
    ) -> None:
        self.index = index
        self.records = records

    @classmethod
    def decode(cls, reader: Reader, version: int) -> PartitionProduceData:
        one = cls.__new__(cls)
        one.index = reader.int32()
        one.records = reader.nullable_bytes()
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.index)
        writer.nullable_bytes(self.records)
        writer.tagged_fields()


class TopicProduceData(Struct):
    __slots__ = ("name", "topic_id", "partition_data")

    def __init__(
        self,
        *,
        name: str = "",  # version <= 12
        topic_id: UUID | None = None,  # version >= 13
        partition_data: Sequence[PartitionProduceData] = (),
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partition_data = partition_data

    @classmethod
    def decode(cls, reader: Reader, version: int) -> TopicProduceData:
        one = cls.__new__(cls)
        if version <= 12:
            one.name = reader.string()
        else:
            one.name = ""
        if version >= 13:
            one.topic_id = reader.uuid()
        else:
            one.topic_id = None
        one.partition_data = reader.array(PartitionProduceData.decode, version)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        if version <= 12:
            writer.string(self.name)
        if version >= 13:
            writer.uuid(self.topic_id)
        writer.array(self.partition_data, version)
        writer.tagged_fields()


class ProduceRequest(Message):
    __slots__ = ("transactional_id", "acks", "timeout_ms", "topic_data")

    KEY: ClassVar[int] = 0
    FLEXIBLE_SINCE: ClassVar[int] = 9

    def __init__(
        self,
        *,
        transactional_id: str | None = None,
        acks: int = 0,
        timeout_ms: int = 0,
        topic_data: Sequence[TopicProduceData] = (),
    ) -> None:
        self.transactional_id = transactional_id
        self.acks = acks
        self.timeout_ms = timeout_ms
        self.topic_data = topic_data

    @classmethod
    def decode(cls, reader: Reader, version: int) -> ProduceRequest:
        one = cls.__new__(cls)
        one.transactional_id = reader.nullable_string()
        one.acks, one.timeout_ms = reader.unpack(_HI)
        one.topic_data = reader.array(TopicProduceData.decode, version)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.nullable_string(self.transactional_id)
        writer.out += _HI.pack(self.acks, self.timeout_ms)
        writer.array(self.topic_data, version)
        writer.tagged_fields()


class NodeEndpoint(Struct):
    __slots__ = ("node_id", "host", "port", "rack")

    def __init__(
        self,
        *,
        node_id: int = 0,
        host: str = "",
        port: int = 0,
        rack: str | None = None,
    ) -> None:
        self.node_id = node_id
        self.host = host
        self.port = port
        self.rack = rack

    @classmethod
    def decode(cls, reader: Reader, version: int) -> NodeEndpoint:
        one = cls.__new__(cls)
        one.node_id = reader.int32()
        one.host = reader.string()
        one.port = reader.int32()
        one.rack = reader.nullable_string()
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.node_id)
        writer.string(self.host)
        writer.int32(self.port)
        writer.nullable_string(self.rack)
        writer.tagged_fields()


class LeaderIdAndEpoch(Struct):
    __slots__ = ("leader_id", "leader_epoch")

    def __init__(
        self,
        *,
        leader_id: int = -1,
        leader_epoch: int = -1,
    ) -> None:
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch

    @classmethod
    def decode(cls, reader: Reader, version: int) -> LeaderIdAndEpoch:
        one = cls.__new__(cls)
        one.leader_id, one.leader_epoch = reader.unpack(_II)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.out += _II.pack(self.leader_id, self.leader_epoch)
        writer.tagged_fields()


class BatchIndexAndErrorMessage(Struct):
    __slots__ = ("batch_index", "batch_index_error_message")

    def __init__(
        self,
        *,
        batch_index: int = 0,
        batch_index_error_message: str | None = None,
    ) -> None:
        self.batch_index = batch_index
        self.batch_index_error_message = batch_index_error_message

    @classmethod
    def decode(cls, reader: Reader, version: int) -> BatchIndexAndErrorMessage:
        one = cls.__new__(cls)
        one.batch_index = reader.int32()
        one.batch_index_error_message = reader.nullable_string()
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.batch_index)
        writer.nullable_message(self.batch_index_error_message)
        writer.tagged_fields()


class PartitionProduceResponse(Struct):
    __slots__ = (
        "index",
        "error_code",
        "base_offset",
        "log_append_time_ms",
        "log_start_offset",
        "record_errors",
        "error_message",
        "current_leader",
    )

    def __init__(
        self,
        *,
        index: int = 0,
        error_code: ErrorCode = ErrorCode.NONE,
        base_offset: int = 0,
        log_append_time_ms: int = -1,
        log_start_offset: int = -1,  # version >= 5
        record_errors: Sequence[BatchIndexAndErrorMessage] = (),  # version >= 8
        error_message: str | None = None,  # version >= 8
        current_leader: LeaderIdAndEpoch | None = None,  # version >= 10
    ) -> None:
        self.index = index
        self.error_code = error_code
        self.base_offset = base_offset
        self.log_append_time_ms = log_append_time_ms
        self.log_start_offset = log_start_offset
        self.record_errors = record_errors
        self.error_message = error_message
        self.current_leader = current_leader

    @classmethod
    def decode(cls, reader: Reader, version: int) -> PartitionProduceResponse:
        one = cls.__new__(cls)
        one.index, one.error_code, one.base_offset, one.log_append_time_ms = reader.unpack(_IHQQ)
        one.error_code = ErrorCode(one.error_code)
        if version >= 5:
            one.log_start_offset = reader.int64()
        else:
            one.log_start_offset = -1
        if version >= 8:
            one.record_errors = reader.array(BatchIndexAndErrorMessage.decode, version)
            one.error_message = reader.nullable_string()
        else:
            one.record_errors = ()
            one.error_message = None
        one.current_leader = None
        for tag, field in reader.tagged_fields():
            if tag == 0 and version >= 10:
                one.current_leader = LeaderIdAndEpoch.decode(field, version)
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.out += _IHQQ.pack(self.index, self.error_code, self.base_offset, self.log_append_time_ms)
        if version >= 5:
            writer.int64(self.log_start_offset)
        if version >= 8:
            writer.array(self.record_errors, version)
            writer.nullable_message(self.error_message)
        tagged: dict[int, FlexibleWriter] = {}
        if self.current_leader is not None and version >= 10:
            field = tagged[0] = FlexibleWriter(bytearray())
            self.current_leader.encode(field, version)
        writer.tagged_fields(tagged)


class TopicProduceResponse(Struct):
    __slots__ = ("name", "topic_id", "partition_responses")

    def __init__(
        self,
        *,
        name: str = "",  # version <= 12
        topic_id: UUID | None = None,  # version >= 13
        partition_responses: Sequence[PartitionProduceResponse] = (),
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partition_responses = partition_responses

    @classmethod
    def decode(cls, reader: Reader, version: int) -> TopicProduceResponse:
        one = cls.__new__(cls)
        if version <= 12:
            one.name = reader.string()
        else:
            one.name = ""
        if version >= 13:
            one.topic_id = reader.uuid()
        else:
            one.topic_id = None
        one.partition_responses = reader.array(PartitionProduceResponse.decode, version)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        if version <= 12:
            writer.string(self.name)
        if version >= 13:
            writer.uuid(self.topic_id)
        writer.array(self.partition_responses, version)
        writer.tagged_fields()


class ProduceResponse(Message):
    __slots__ = ("responses", "throttle_time_ms", "node_endpoints")

    KEY: ClassVar[int] = 0
    FLEXIBLE_SINCE: ClassVar[int] = 9

    def __init__(
        self,
        *,
        responses: Sequence[TopicProduceResponse] = (),
        throttle_time_ms: int = 0,
        node_endpoints: Sequence[NodeEndpoint] = (),  # version >= 10
    ) -> None:
        self.responses = responses
        self.throttle_time_ms = throttle_time_ms
        self.node_endpoints = node_endpoints

    @classmethod
    def decode(cls, reader: Reader, version: int) -> ProduceResponse:
        one = cls.__new__(cls)
        one.responses = reader.array(TopicProduceResponse.decode, version)
        one.throttle_time_ms = reader.int32()
        one.node_endpoints = ()
        for tag, field in reader.tagged_fields():
            if tag == 0 and version >= 10:
                one.node_endpoints = field.array(NodeEndpoint.decode, version)
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.array(self.responses, version)
        writer.int32(self.throttle_time_ms)
        tagged: dict[int, FlexibleWriter] = {}
        if self.node_endpoints and version >= 10:
            field = tagged[0] = FlexibleWriter(bytearray())
            field.array(self.node_endpoints, version)
        writer.tagged_fields(tagged)
