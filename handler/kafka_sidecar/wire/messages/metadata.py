"""Made by `make messages` from Kafka's schemas: not to be edited."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as Layout
from typing import ClassVar, Final
from uuid import UUID

from kafka_sidecar.wire.buffers import Reader, Writer
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.message import Message, Struct

_HII: Final = Layout(">hii")


class MetadataRequestTopic(Struct):
    __slots__ = ("topic_id", "name")

    def __init__(
        self,
        *,
        topic_id: UUID | None = None,  # version >= 10
        name: str | None = None,
    ) -> None:
        self.topic_id = topic_id
        self.name = name

    @classmethod
    def decode(cls, reader: Reader, version: int) -> MetadataRequestTopic:
        one = cls.__new__(cls)
        if version >= 10:
            one.topic_id = reader.uuid()
        else:
            one.topic_id = None
        one.name = reader.nullable_string() if version >= 10 else reader.string()
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        if version >= 10:
            writer.uuid(self.topic_id)
        writer.nullable_string(self.name) if version >= 10 else writer.string(self.name or "")
        writer.tagged_fields()


class MetadataRequest(Message):
    __slots__ = (
        "topics",
        "allow_auto_topic_creation",
        "include_cluster_authorized_operations",
        "include_topic_authorized_operations",
    )

    KEY: ClassVar[int] = 3
    FLEXIBLE_SINCE: ClassVar[int] = 9

    def __init__(
        self,
        *,
        topics: Sequence[MetadataRequestTopic] | None = (),
        allow_auto_topic_creation: bool = True,  # version >= 4
        include_cluster_authorized_operations: bool = False,  # 8 <= version <= 10
        include_topic_authorized_operations: bool = False,  # version >= 8
    ) -> None:
        self.topics = topics
        self.allow_auto_topic_creation = allow_auto_topic_creation
        self.include_cluster_authorized_operations = include_cluster_authorized_operations
        self.include_topic_authorized_operations = include_topic_authorized_operations

    @classmethod
    def decode(cls, reader: Reader, version: int) -> MetadataRequest:
        one = cls.__new__(cls)
        one.topics = reader.nullable_array(MetadataRequestTopic.decode, version) if version >= 1 else reader.array(MetadataRequestTopic.decode, version)
        if version >= 4:
            one.allow_auto_topic_creation = reader.bool_()
        else:
            one.allow_auto_topic_creation = True
        if 8 <= version <= 10:
            one.include_cluster_authorized_operations = reader.bool_()
        else:
            one.include_cluster_authorized_operations = False
        if version >= 8:
            one.include_topic_authorized_operations = reader.bool_()
        else:
            one.include_topic_authorized_operations = False
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.nullable_array(self.topics, version) if version >= 1 else writer.array(self.topics or (), version)
        if version >= 4:
            writer.bool_(self.allow_auto_topic_creation)
        if 8 <= version <= 10:
            writer.bool_(self.include_cluster_authorized_operations)
        if version >= 8:
            writer.bool_(self.include_topic_authorized_operations)
        writer.tagged_fields()


class MetadataResponsePartition(Struct):
    __slots__ = (
        "error_code",
        "partition_index",
        "leader_id",
        "leader_epoch",
        "replica_nodes",
        "isr_nodes",
        "offline_replicas",
    )

    def __init__(
        self,
        *,
        error_code: ErrorCode = ErrorCode.NONE,
        partition_index: int = 0,
        leader_id: int = 0,
        leader_epoch: int = -1,  # version >= 7
        replica_nodes: Sequence[int] = (),
        isr_nodes: Sequence[int] = (),
        offline_replicas: Sequence[int] = (),  # version >= 5
    ) -> None:
        self.error_code = error_code
        self.partition_index = partition_index
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.replica_nodes = replica_nodes
        self.isr_nodes = isr_nodes
        self.offline_replicas = offline_replicas

    @classmethod
    def decode(cls, reader: Reader, version: int) -> MetadataResponsePartition:
        one = cls.__new__(cls)
        one.error_code, one.partition_index, one.leader_id = reader.unpack(_HII)
        one.error_code = ErrorCode(one.error_code)
        if version >= 7:
            one.leader_epoch = reader.int32()
        else:
            one.leader_epoch = -1
        one.replica_nodes = reader.int32_array()
        one.isr_nodes = reader.int32_array()
        if version >= 5:
            one.offline_replicas = reader.int32_array()
        else:
            one.offline_replicas = ()
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.out += _HII.pack(self.error_code, self.partition_index, self.leader_id)
        if version >= 7:
            writer.int32(self.leader_epoch)
        writer.int32_array(self.replica_nodes)
        writer.int32_array(self.isr_nodes)
        if version >= 5:
            writer.int32_array(self.offline_replicas)
        writer.tagged_fields()


class MetadataResponseTopic(Struct):
    __slots__ = ("error_code", "name", "topic_id", "is_internal", "partitions", "topic_authorized_operations")

    def __init__(
        self,
        *,
        error_code: ErrorCode = ErrorCode.NONE,
        name: str | None = None,
        topic_id: UUID | None = None,  # version >= 10
        is_internal: bool = False,  # version >= 1
        partitions: Sequence[MetadataResponsePartition] = (),
        topic_authorized_operations: int = -2147483648,  # version >= 8
    ) -> None:
        self.error_code = error_code
        self.name = name
        self.topic_id = topic_id
        self.is_internal = is_internal
        self.partitions = partitions
        self.topic_authorized_operations = topic_authorized_operations

    @classmethod
    def decode(cls, reader: Reader, version: int) -> MetadataResponseTopic:
        one = cls.__new__(cls)
        one.error_code = ErrorCode(reader.int16())
        one.name = reader.nullable_string() if version >= 12 else reader.string()
        if version >= 10:
            one.topic_id = reader.uuid()
        else:
            one.topic_id = None
        if version >= 1:
            one.is_internal = reader.bool_()
        else:
            one.is_internal = False
        one.partitions = reader.array(MetadataResponsePartition.decode, version)
        if version >= 8:
            one.topic_authorized_operations = reader.int32()
        else:
            one.topic_authorized_operations = -2147483648
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.int16(self.error_code)
        writer.nullable_string(self.name) if version >= 12 else writer.string(self.name or "")
        if version >= 10:
            writer.uuid(self.topic_id)
        if version >= 1:
            writer.bool_(self.is_internal)
        writer.array(self.partitions, version)
        if version >= 8:
            writer.int32(self.topic_authorized_operations)
        writer.tagged_fields()


class MetadataResponseBroker(Struct):
    __slots__ = ("node_id", "host", "port", "rack")

    def __init__(
        self,
        *,
        node_id: int = 0,
        host: str = "",
        port: int = 0,
        rack: str | None = None,  # version >= 1
    ) -> None:
        self.node_id = node_id
        self.host = host
        self.port = port
        self.rack = rack

    @classmethod
    def decode(cls, reader: Reader, version: int) -> MetadataResponseBroker:
        one = cls.__new__(cls)
        one.node_id = reader.int32()
        one.host = reader.string()
        one.port = reader.int32()
        if version >= 1:
            one.rack = reader.nullable_string()
        else:
            one.rack = None
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.node_id)
        writer.string(self.host)
        writer.int32(self.port)
        if version >= 1:
            writer.nullable_string(self.rack)
        writer.tagged_fields()


class MetadataResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "brokers",
        "cluster_id",
        "controller_id",
        "topics",
        "cluster_authorized_operations",
        "error_code",
    )

    KEY: ClassVar[int] = 3
    FLEXIBLE_SINCE: ClassVar[int] = 9

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,  # version >= 3
        brokers: Sequence[MetadataResponseBroker] = (),
        cluster_id: str | None = None,  # version >= 2
        controller_id: int = -1,  # version >= 1
        topics: Sequence[MetadataResponseTopic] = (),
        cluster_authorized_operations: int = -2147483648,  # 8 <= version <= 10
        error_code: ErrorCode = ErrorCode.NONE,  # version >= 13
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.brokers = brokers
        self.cluster_id = cluster_id
        self.controller_id = controller_id
        self.topics = topics
        self.cluster_authorized_operations = cluster_authorized_operations
        self.error_code = error_code

    @classmethod
    def decode(cls, reader: Reader, version: int) -> MetadataResponse:
        one = cls.__new__(cls)
        if version >= 3:
            one.throttle_time_ms = reader.int32()
        else:
            one.throttle_time_ms = 0
        one.brokers = reader.array(MetadataResponseBroker.decode, version)
        if version >= 2:
            one.cluster_id = reader.nullable_string()
        else:
            one.cluster_id = None
        if version >= 1:
            one.controller_id = reader.int32()
        else:
            one.controller_id = -1
        one.topics = reader.array(MetadataResponseTopic.decode, version)
        if 8 <= version <= 10:
            one.cluster_authorized_operations = reader.int32()
        else:
            one.cluster_authorized_operations = -2147483648
        if version >= 13:
            one.error_code = ErrorCode(reader.int16())
        else:
            one.error_code = ErrorCode.NONE
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        if version >= 3:
            writer.int32(self.throttle_time_ms)
        writer.array(self.brokers, version)
        if version >= 2:
            writer.nullable_string(self.cluster_id)
        if version >= 1:
            writer.int32(self.controller_id)
        writer.array(self.topics, version)
        if 8 <= version <= 10:
            writer.int32(self.cluster_authorized_operations)
        if version >= 13:
            writer.int16(self.error_code)
        writer.tagged_fields()
