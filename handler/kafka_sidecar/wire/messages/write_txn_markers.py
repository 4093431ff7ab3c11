"""Made by `make messages` from Kafka's schemas: not to be edited."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as Layout
from typing import ClassVar, Final

from kafka_sidecar.wire.buffers import Reader, Writer
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.message import Message, Struct

_IH: Final = Layout(">ih")
_QHX: Final = Layout(">qh?")


class WritableTxnMarkerTopic(Struct):
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
    def decode(cls, reader: Reader, version: int) -> WritableTxnMarkerTopic:
        one = cls.__new__(cls)
        one.name = reader.string()
        one.partition_indexes = reader.int32_array()
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.string(self.name)
        writer.int32_array(self.partition_indexes)
        writer.tagged_fields()


class WritableTxnMarker(Struct):
    __slots__ = (
        "producer_id",
        "producer_epoch",
        "transaction_result",
        "topics",
        "coordinator_epoch",
        "transaction_version",
    )

    def __init__(
        self,
        *,
        producer_id: int = 0,
        producer_epoch: int = 0,
        transaction_result: bool = False,
        topics: Sequence[WritableTxnMarkerTopic] = (),
        coordinator_epoch: int = 0,
        transaction_version: int = 0,  # version >= 2
    ) -> None:
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.transaction_result = transaction_result
        self.topics = topics
        self.coordinator_epoch = coordinator_epoch
        self.transaction_version = transaction_version

    @classmethod
    def decode(cls, reader: Reader, version: int) -> WritableTxnMarker:
        one = cls.__new__(cls)
        one.producer_id, one.producer_epoch, one.transaction_result = reader.unpack(_QHX)
        one.topics = reader.array(WritableTxnMarkerTopic.decode, version)
        one.coordinator_epoch = reader.int32()
        if version >= 2:
            one.transaction_version = reader.int8()
        else:
            one.transaction_version = 0
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.out += _QHX.pack(self.producer_id, self.producer_epoch, self.transaction_result)
        writer.array(self.topics, version)
        writer.int32(self.coordinator_epoch)
        if version >= 2:
            writer.int8(self.transaction_version)
        writer.tagged_fields()


class WriteTxnMarkersRequest(Message):
    __slots__ = ("markers",)

    KEY: ClassVar[int] = 27
    FLEXIBLE_SINCE: ClassVar[int] = 1

    def __init__(
        self,
        *,
        markers: Sequence[WritableTxnMarker] = (),
    ) -> None:
        self.markers = markers

    @classmethod
    def decode(cls, reader: Reader, version: int) -> WriteTxnMarkersRequest:
        one = cls.__new__(cls)
        one.markers = reader.array(WritableTxnMarker.decode, version)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.array(self.markers, version)
        writer.tagged_fields()


class WritableTxnMarkerPartitionResult(Struct):
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
    def decode(cls, reader: Reader, version: int) -> WritableTxnMarkerPartitionResult:
        one = cls.__new__(cls)
        one.partition_index, one.error_code = reader.unpack(_IH)
        one.error_code = ErrorCode(one.error_code)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.out += _IH.pack(self.partition_index, self.error_code)
        writer.tagged_fields()


class WritableTxnMarkerTopicResult(Struct):
    __slots__ = ("name", "partitions")

    def __init__(
        self,
        *,
        name: str = "",
        partitions: Sequence[WritableTxnMarkerPartitionResult] = (),
    ) -> None:
        self.name = name
        self.partitions = partitions

    @classmethod
    def decode(cls, reader: Reader, version: int) -> WritableTxnMarkerTopicResult:
        one = cls.__new__(cls)
        one.name = reader.string()
        one.partitions = reader.array(WritableTxnMarkerPartitionResult.decode, version)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.string(self.name)
        writer.array(self.partitions, version)
        writer.tagged_fields()


class WritableTxnMarkerResult(Struct):
    __slots__ = ("producer_id", "topics")

    def __init__(
        self,
        *,
        producer_id: int = 0,
        topics: Sequence[WritableTxnMarkerTopicResult] = (),
    ) -> None:
        self.producer_id = producer_id
        self.topics = topics

    @classmethod
    def decode(cls, reader: Reader, version: int) -> WritableTxnMarkerResult:
        one = cls.__new__(cls)
        one.producer_id = reader.int64()
        one.topics = reader.array(WritableTxnMarkerTopicResult.decode, version)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.int64(self.producer_id)
        writer.array(self.topics, version)
        writer.tagged_fields()


class WriteTxnMarkersResponse(Message):
    __slots__ = ("markers",)

    KEY: ClassVar[int] = 27
    FLEXIBLE_SINCE: ClassVar[int] = 1

    def __init__(
        self,
        *,
        markers: Sequence[WritableTxnMarkerResult] = (),
    ) -> None:
        self.markers = markers

    @classmethod
    def decode(cls, reader: Reader, version: int) -> WriteTxnMarkersResponse:
        one = cls.__new__(cls)
        one.markers = reader.array(WritableTxnMarkerResult.decode, version)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.array(self.markers, version)
        writer.tagged_fields()
