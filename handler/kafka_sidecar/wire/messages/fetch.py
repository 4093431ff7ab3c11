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
_IIIB: Final = Layout(">iiib")
_IQ: Final = Layout(">iq")
_QI: Final = Layout(">qi")
_QQ: Final = Layout(">qq")


class ReplicaState(Struct):
    __slots__ = ("replica_id", "replica_epoch")

    def __init__(
        self,
        *,
        replica_id: int = -1,
        replica_epoch: int = -1,
    ) -> None:
        self.replica_id = replica_id
        self.replica_epoch = replica_epoch

    @classmethod
    def decode(cls, reader: Reader, version: int) -> ReplicaState:
        one = cls.__new__(cls)
        one.replica_id, one.replica_epoch = reader.unpack(_IQ)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.out += _IQ.pack(self.replica_id, self.replica_epoch)
        writer.tagged_fields()


class ForgottenTopic(Struct):
    __slots__ = ("topic", "topic_id", "partitions")

    def __init__(
        self,
        *,
        topic: str = "",  # version <= 12
        topic_id: UUID | None = None,  # version >= 13
        partitions: Sequence[int] = (),
    ) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.partitions = partitions

    @classmethod
    def decode(cls, reader: Reader, version: int) -> ForgottenTopic:
        one = cls.__new__(cls)
        if version <= 12:
            one.topic = reader.string()
        else:
            one.topic = ""
        if version >= 13:
            one.topic_id = reader.uuid()
        else:
            one.topic_id = None
        one.partitions = reader.int32_array()
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        if version <= 12:
            writer.string(self.topic)
        if version >= 13:
            writer.uuid(self.topic_id)
        writer.int32_array(self.partitions)
        writer.tagged_fields()


class FetchPartition(Struct):
    __slots__ = (
        "partition",
        "current_leader_epoch",
        "fetch_offset",
        "last_fetched_epoch",
        "log_start_offset",
        "partition_max_bytes",
        "replica_directory_id",
        "high_watermark",
    )

    def __init__(
        self,
        *,
        partition: int = 0,
        current_leader_epoch: int = -1,  # version >= 9
        fetch_offset: int = 0,
        last_fetched_epoch: int = -1,  # version >= 12
        log_start_offset: int = -1,  # version >= 5
        partition_max_bytes: int = 0,
        replica_directory_id: UUID | None = None,  # version >= 17
        high_watermark: int = 9223372036854775807,  # version >= 18
    ) -> None:
        self.partition = partition
        self.current_leader_epoch = current_leader_epoch
        self.fetch_offset = fetch_offset
        self.last_fetched_epoch = last_fetched_epoch
        self.log_start_offset = log_start_offset
        self.partition_max_bytes = partition_max_bytes
        self.replica_directory_id = replica_directory_id
        self.high_watermark = high_watermark

    @classmethod
    def decode(cls, reader: Reader, version: int) -> FetchPartition:
        one = cls.__new__(cls)
        one.partition = reader.int32()
        if version >= 9:
            one.current_leader_epoch = reader.int32()
        else:
            one.current_leader_epoch = -1
        one.fetch_offset = reader.int64()
        if version >= 12:
            one.last_fetched_epoch = reader.int32()
        else:
            one.last_fetched_epoch = -1
        if version >= 5:
            one.log_start_offset = reader.int64()
        else:
            one.log_start_offset = -1
        one.partition_max_bytes = reader.int32()
        one.replica_directory_id = None
        one.high_watermark = 9223372036854775807
        for tag, field in reader.tagged_fields():
            if tag == 0 and version >= 17:
                one.replica_directory_id = field.uuid()
            if tag == 1 and version >= 18:
                one.high_watermark = field.int64()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.partition)
        if version >= 9:
            writer.int32(self.current_leader_epoch)
        writer.int64(self.fetch_offset)
        if version >= 12:
            writer.int32(self.last_fetched_epoch)
        if version >= 5:
            writer.int64(self.log_start_offset)
        writer.int32(self.partition_max_bytes)
        tagged: dict[int, FlexibleWriter] = {}
        if self.replica_directory_id is not None and version >= 17:
            field = tagged[0] = FlexibleWriter(bytearray())
            field.uuid(self.replica_directory_id)
        if self.high_watermark != 9223372036854775807 and version >= 18:
            field = tagged[1] = FlexibleWriter(bytearray())
            field.int64(self.high_watermark)
        writer.tagged_fields(tagged)


class FetchTopic(Struct):
    __slots__ = ("topic", "topic_id", "partitions")

    def __init__(
        self,
        *,
        topic: str = "",  # version <= 12
        topic_id: UUID | None = None,  # version >= 13
        partitions: Sequence[FetchPartition] = (),
    ) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.partitions = partitions

    @classmethod
    def decode(cls, reader: Reader, version: int) -> FetchTopic:
        one = cls.__new__(cls)
        if version <= 12:
            one.topic = reader.string()
        else:
            one.topic = ""
        if version >= 13:
            one.topic_id = reader.uuid()
        else:
            one.topic_id = None
        one.partitions = reader.array(FetchPartition.decode, version)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        if version <= 12:
            writer.string(self.topic)
        if version >= 13:
            writer.uuid(self.topic_id)
        writer.array(self.partitions, version)
        writer.tagged_fields()


class FetchRequest(Message):
    __slots__ = (
        "replica_id",
        "max_wait_ms",
        "min_bytes",
        "max_bytes",
        "isolation_level",
        "session_id",
        "session_epoch",
        "topics",
        "forgotten_topics_data",
        "rack_id",
        "cluster_id",
        "replica_state",
    )

    KEY: ClassVar[int] = 1
    FLEXIBLE_SINCE: ClassVar[int] = 12

    def __init__(
        self,
        *,
        replica_id: int = -1,  # version <= 14
        max_wait_ms: int = 0,
        min_bytes: int = 0,
        max_bytes: int = 2147483647,
        isolation_level: int = 0,
        session_id: int = 0,  # version >= 7
        session_epoch: int = -1,  # version >= 7
        topics: Sequence[FetchTopic] = (),
        forgotten_topics_data: Sequence[ForgottenTopic] = (),  # version >= 7
        rack_id: str = "",  # version >= 11
        cluster_id: str | None = None,  # version >= 12
        replica_state: ReplicaState | None = None,  # version >= 15
    ) -> None:
        self.replica_id = replica_id
        self.max_wait_ms = max_wait_ms
        self.min_bytes = min_bytes
        self.max_bytes = max_bytes
        self.isolation_level = isolation_level
        self.session_id = session_id
        self.session_epoch = session_epoch
        self.topics = topics
        self.forgotten_topics_data = forgotten_topics_data
        self.rack_id = rack_id
        self.cluster_id = cluster_id
        self.replica_state = replica_state

    @classmethod
    def decode(cls, reader: Reader, version: int) -> FetchRequest:
        one = cls.__new__(cls)
        if version <= 14:
            one.replica_id = reader.int32()
        else:
            one.replica_id = -1
        one.max_wait_ms, one.min_bytes, one.max_bytes, one.isolation_level = reader.unpack(_IIIB)
        if version >= 7:
            one.session_id, one.session_epoch = reader.unpack(_II)
        else:
            one.session_id = 0
            one.session_epoch = -1
        one.topics = reader.array(FetchTopic.decode, version)
        if version >= 7:
            one.forgotten_topics_data = reader.array(ForgottenTopic.decode, version)
        else:
            one.forgotten_topics_data = ()
        if version >= 11:
            one.rack_id = reader.string()
        else:
            one.rack_id = ""
        one.cluster_id = None
        one.replica_state = None
        for tag, field in reader.tagged_fields():
            if tag == 0 and version >= 12:
                one.cluster_id = field.nullable_string()
            if tag == 1 and version >= 15:
                one.replica_state = ReplicaState.decode(field, version)
        return one

    def encode(self, writer: Writer, version: int) -> None:
        if version <= 14:
            writer.int32(self.replica_id)
        writer.out += _IIIB.pack(self.max_wait_ms, self.min_bytes, self.max_bytes, self.isolation_level)
        if version >= 7:
            writer.out += _II.pack(self.session_id, self.session_epoch)
        writer.array(self.topics, version)
        if version >= 7:
            writer.array(self.forgotten_topics_data, version)
        if version >= 11:
            writer.string(self.rack_id)
        tagged: dict[int, FlexibleWriter] = {}
        if self.cluster_id is not None and version >= 12:
            field = tagged[0] = FlexibleWriter(bytearray())
            field.nullable_string(self.cluster_id)
        if self.replica_state is not None and version >= 15:
            field = tagged[1] = FlexibleWriter(bytearray())
            self.replica_state.encode(field, version)
        writer.tagged_fields(tagged)


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


class SnapshotId(Struct):
    __slots__ = ("end_offset", "epoch")

    def __init__(
        self,
        *,
        end_offset: int = -1,
        epoch: int = -1,
    ) -> None:
        self.end_offset = end_offset
        self.epoch = epoch

    @classmethod
    def decode(cls, reader: Reader, version: int) -> SnapshotId:
        one = cls.__new__(cls)
        one.end_offset, one.epoch = reader.unpack(_QI)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.out += _QI.pack(self.end_offset, self.epoch)
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


class EpochEndOffset(Struct):
    __slots__ = ("epoch", "end_offset")

    def __init__(
        self,
        *,
        epoch: int = -1,
        end_offset: int = -1,
    ) -> None:
        self.epoch = epoch
        self.end_offset = end_offset

    @classmethod
    def decode(cls, reader: Reader, version: int) -> EpochEndOffset:
        one = cls.__new__(cls)
        one.epoch, one.end_offset = reader.unpack(_IQ)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.out += _IQ.pack(self.epoch, self.end_offset)
        writer.tagged_fields()


class AbortedTransaction(Struct):
    __slots__ = ("producer_id", "first_offset")

    def __init__(
        self,
        *,
        producer_id: int = 0,
        first_offset: int = 0,
    ) -> None:
        self.producer_id = producer_id
        self.first_offset = first_offset

    @classmethod
    def decode(cls, reader: Reader, version: int) -> AbortedTransaction:
        one = cls.__new__(cls)
        one.producer_id, one.first_offset = reader.unpack(_QQ)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.out += _QQ.pack(self.producer_id, self.first_offset)
        writer.tagged_fields()


class PartitionData(Struct):
    __slots__ = (
        "partition_index",
        "error_code",
        "high_watermark",
        "last_stable_offset",
        "log_start_offset",
        "aborted_transactions",
        "preferred_read_replica",
        "records",
        "diverging_epoch",
        "current_leader",
        "snapshot_id",
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: ErrorCode = ErrorCode.NONE,
        high_watermark: int = 0,
        last_stable_offset: int = -1,
        log_start_offset: int = -1,  # version >= 5
        aborted_transactions: Sequence[AbortedTransaction] | None = (),
        preferred_read_replica: int = -1,  # version >= 11
        records: Sequence[bytes | bytearray] | None = (),
        diverging_epoch: EpochEndOffset | None = None,  # version >= 12
        current_leader: LeaderIdAndEpoch | None = None,  # version >= 12
        snapshot_id: SnapshotId | None = None,  # version >= 12
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.high_watermark = high_watermark
        self.last_stable_offset = last_stable_offset
        self.log_start_offset = log_start_offset
        self.aborted_transactions = aborted_transactions
        self.preferred_read_replica = preferred_read_replica
        self.records = records
        self.diverging_epoch = diverging_epoch
        self.current_leader = current_leader
        self.snapshot_id = snapshot_id

    @classmethod
    def decode(cls, reader: Reader, version: int) -> PartitionData:
        one = cls.__new__(cls)
        one.partition_index, one.error_code, one.high_watermark, one.last_stable_offset = reader.unpack(_IHQQ)
        one.error_code = ErrorCode(one.error_code)
        if version >= 5:
            one.log_start_offset = reader.int64()
        else:
            one.log_start_offset = -1
        one.aborted_transactions = reader.nullable_array(AbortedTransaction.decode, version)
        if version >= 11:
            one.preferred_read_replica = reader.int32()
        else:
            one.preferred_read_replica = -1
        one.records = reader.records()
        one.diverging_epoch = None
        one.current_leader = None
        one.snapshot_id = None
        for tag, field in reader.tagged_fields():
            if tag == 0 and version >= 12:
                one.diverging_epoch = EpochEndOffset.decode(field, version)
            if tag == 1 and version >= 12:
                one.current_leader = LeaderIdAndEpoch.decode(field, version)
            if tag == 2 and version >= 12:
                one.snapshot_id = SnapshotId.decode(field, version)
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.out += _IHQQ.pack(self.partition_index, self.error_code, self.high_watermark, self.last_stable_offset)
        if version >= 5:
            writer.int64(self.log_start_offset)
        writer.nullable_array(self.aborted_transactions, version)
        if version >= 11:
            writer.int32(self.preferred_read_replica)
        writer.records(self.records)
        tagged: dict[int, FlexibleWriter] = {}
        if self.diverging_epoch is not None and version >= 12:
            field = tagged[0] = FlexibleWriter(bytearray())
            self.diverging_epoch.encode(field, version)
        if self.current_leader is not None and version >= 12:
            field = tagged[1] = FlexibleWriter(bytearray())
            self.current_leader.encode(field, version)
        if self.snapshot_id is not None and version >= 12:
            field = tagged[2] = FlexibleWriter(bytearray())
            self.snapshot_id.encode(field, version)
        writer.tagged_fields(tagged)


class FetchableTopicResponse(Struct):
    __slots__ = ("topic", "topic_id", "partitions")

    def __init__(
        self,
        *,
        topic: str = "",  # version <= 12
        topic_id: UUID | None = None,  # version >= 13
        partitions: Sequence[PartitionData] = (),
    ) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.partitions = partitions

    @classmethod
    def decode(cls, reader: Reader, version: int) -> FetchableTopicResponse:
        one = cls.__new__(cls)
        if version <= 12:
            one.topic = reader.string()
        else:
            one.topic = ""
        if version >= 13:
            one.topic_id = reader.uuid()
        else:
            one.topic_id = None
        one.partitions = reader.array(PartitionData.decode, version)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        if version <= 12:
            writer.string(self.topic)
        if version >= 13:
            writer.uuid(self.topic_id)
        writer.array(self.partitions, version)
        writer.tagged_fields()


class FetchResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "session_id", "responses", "node_endpoints")

    KEY: ClassVar[int] = 1
    FLEXIBLE_SINCE: ClassVar[int] = 12

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: ErrorCode = ErrorCode.NONE,  # version >= 7
        session_id: int = 0,  # version >= 7
        responses: Sequence[FetchableTopicResponse] = (),
        node_endpoints: Sequence[NodeEndpoint] = (),  # version >= 16
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.session_id = session_id
        self.responses = responses
        self.node_endpoints = node_endpoints

    @classmethod
    def decode(cls, reader: Reader, version: int) -> FetchResponse:
        one = cls.__new__(cls)
        one.throttle_time_ms = reader.int32()
        if version >= 7:
            one.error_code, one.session_id = reader.unpack(_HI)
            one.error_code = ErrorCode(one.error_code)
        else:
            one.error_code = ErrorCode.NONE
            one.session_id = 0
        one.responses = reader.array(FetchableTopicResponse.decode, version)
        one.node_endpoints = ()
        for tag, field in reader.tagged_fields():
            if tag == 0 and version >= 16:
                one.node_endpoints = field.array(NodeEndpoint.decode, version)
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.throttle_time_ms)
        if version >= 7:
            writer.out += _HI.pack(self.error_code, self.session_id)
        writer.array(self.responses, version)
        tagged: dict[int, FlexibleWriter] = {}
        if self.node_endpoints and version >= 16:
            field = tagged[0] = FlexibleWriter(bytearray())
            field.array(self.node_endpoints, version)
        writer.tagged_fields(tagged)
