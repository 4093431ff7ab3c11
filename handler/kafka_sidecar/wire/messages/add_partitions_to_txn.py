"""Made by `make messages` from Kafka's schemas: not to be edited."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as Layout
from typing import ClassVar, Final

from kafka_sidecar.wire.buffers import Reader, Writer
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.message import Message, Struct

_IH: Final = Layout(">ih")
_QH: Final = Layout(">qh")
_QHX: Final = Layout(">qh?")


class AddPartitionsToTxnTransaction(Struct):
    __slots__ = ("transactional_id", "producer_id", "producer_epoch", "verify_only", "topics")

    def __init__(
        self,
        *,
        transactional_id: str = "",
        producer_id: int = 0,
        producer_epoch: int = 0,
        verify_only: bool = False,
        topics: Sequence[AddPartitionsToTxnTopic] = (),
    ) -> None:
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.verify_only = verify_only
        self.topics = topics

    @classmethod
    def decode(cls, reader: Reader, version: int) -> AddPartitionsToTxnTransaction:
        one = cls.__new__(cls)
        one.transactional_id = reader.string()
        one.producer_id, one.producer_epoch, one.verify_only = reader.unpack(_QHX)
        one.topics = reader.array(AddPartitionsToTxnTopic.decode, version)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.string(self.transactional_id)
        writer.out += _QHX.pack(self.producer_id, self.producer_epoch, self.verify_only)
        writer.array(self.topics, version)
        writer.tagged_fields()


class AddPartitionsToTxnTopic(Struct):
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
    def decode(cls, reader: Reader, version: int) -> AddPartitionsToTxnTopic:
        one = cls.__new__(cls)
        one.name = reader.string()
        one.partitions = reader.int32_array()
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.string(self.name)
        writer.int32_array(self.partitions)
        writer.tagged_fields()


class AddPartitionsToTxnRequest(Message):
    __slots__ = (
        "v3_and_below_transactional_id",
        "v3_and_below_producer_id",
        "v3_and_below_producer_epoch",
        "v3_and_below_topics",
        "transactions",
    )

    KEY: ClassVar[int] = 24
    FLEXIBLE_SINCE: ClassVar[int] = 3

    def __init__(
        self,
        *,
        v3_and_below_transactional_id: str = "",  # version <= 3
        v3_and_below_producer_id: int = 0,  # version <= 3
        v3_and_below_producer_epoch: int = 0,  # version <= 3
        v3_and_below_topics: Sequence[AddPartitionsToTxnTopic] = (),  # version <= 3
        transactions: Sequence[AddPartitionsToTxnTransaction] = (),  # version >= 4
    ) -> None:
        self.v3_and_below_transactional_id = v3_and_below_transactional_id
        self.v3_and_below_producer_id = v3_and_below_producer_id
        self.v3_and_below_producer_epoch = v3_and_below_producer_epoch
        self.v3_and_below_topics = v3_and_below_topics
        self.transactions = transactions

    @classmethod
    def decode(cls, reader: Reader, version: int) -> AddPartitionsToTxnRequest:
        one = cls.__new__(cls)
        if version <= 3:
            one.v3_and_below_transactional_id = reader.string()
            one.v3_and_below_producer_id, one.v3_and_below_producer_epoch = reader.unpack(_QH)
            one.v3_and_below_topics = reader.array(AddPartitionsToTxnTopic.decode, version)
        else:
            one.v3_and_below_transactional_id = ""
            one.v3_and_below_producer_id = 0
            one.v3_and_below_producer_epoch = 0
            one.v3_and_below_topics = ()
        if version >= 4:
            one.transactions = reader.array(AddPartitionsToTxnTransaction.decode, version)
        else:
            one.transactions = ()
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        if version <= 3:
            writer.string(self.v3_and_below_transactional_id)
            writer.out += _QH.pack(self.v3_and_below_producer_id, self.v3_and_below_producer_epoch)
            writer.array(self.v3_and_below_topics, version)
        if version >= 4:
            writer.array(self.transactions, version)
        writer.tagged_fields()


class AddPartitionsToTxnResult(Struct):
    __slots__ = ("transactional_id", "topic_results")

    def __init__(
        self,
        *,
        transactional_id: str = "",
        topic_results: Sequence[AddPartitionsToTxnTopicResult] = (),
    ) -> None:
        self.transactional_id = transactional_id
        self.topic_results = topic_results

    @classmethod
    def decode(cls, reader: Reader, version: int) -> AddPartitionsToTxnResult:
        one = cls.__new__(cls)
        one.transactional_id = reader.string()
        one.topic_results = reader.array(AddPartitionsToTxnTopicResult.decode, version)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.string(self.transactional_id)
        writer.array(self.topic_results, version)
        writer.tagged_fields()


class AddPartitionsToTxnPartitionResult(Struct):
    __slots__ = ("partition_index", "partition_error_code")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        partition_error_code: ErrorCode = ErrorCode.NONE,
    ) -> None:
        self.partition_index = partition_index
        self.partition_error_code = partition_error_code

    @classmethod
    def decode(cls, reader: Reader, version: int) -> AddPartitionsToTxnPartitionResult:
        one = cls.__new__(cls)
        one.partition_index, one.partition_error_code = reader.unpack(_IH)
        one.partition_error_code = ErrorCode(one.partition_error_code)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.out += _IH.pack(self.partition_index, self.partition_error_code)
        writer.tagged_fields()


class AddPartitionsToTxnTopicResult(Struct):
    __slots__ = ("name", "results_by_partition")

    def __init__(
        self,
        *,
        name: str = "",
        results_by_partition: Sequence[AddPartitionsToTxnPartitionResult] = (),
    ) -> None:
        self.name = name
        self.results_by_partition = results_by_partition

    @classmethod
    def decode(cls, reader: Reader, version: int) -> AddPartitionsToTxnTopicResult:
        one = cls.__new__(cls)
        one.name = reader.string()
        one.results_by_partition = reader.array(AddPartitionsToTxnPartitionResult.decode, version)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.string(self.name)
        writer.array(self.results_by_partition, version)
        writer.tagged_fields()


class AddPartitionsToTxnResponse(Message):
    __slots__ = ("throttle_time_ms", "results_by_topic_v3_and_below", "error_code", "results_by_transaction")

    KEY: ClassVar[int] = 24
    FLEXIBLE_SINCE: ClassVar[int] = 3

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        results_by_topic_v3_and_below: Sequence[AddPartitionsToTxnTopicResult] = (),  # version <= 3
        error_code: ErrorCode = ErrorCode.NONE,  # version >= 4
        results_by_transaction: Sequence[AddPartitionsToTxnResult] = (),  # version >= 4
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results_by_topic_v3_and_below = results_by_topic_v3_and_below
        self.error_code = error_code
        self.results_by_transaction = results_by_transaction

    @classmethod
    def decode(cls, reader: Reader, version: int) -> AddPartitionsToTxnResponse:
        one = cls.__new__(cls)
        one.throttle_time_ms = reader.int32()
        if version <= 3:
            one.results_by_topic_v3_and_below = reader.array(AddPartitionsToTxnTopicResult.decode, version)
        else:
            one.results_by_topic_v3_and_below = ()
        if version >= 4:
            one.error_code = ErrorCode(reader.int16())
            one.results_by_transaction = reader.array(AddPartitionsToTxnResult.decode, version)
        else:
            one.error_code = ErrorCode.NONE
            one.results_by_transaction = ()
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.throttle_time_ms)
        if version <= 3:
            writer.array(self.results_by_topic_v3_and_below, version)
        if version >= 4:
            writer.int16(self.error_code)
            writer.array(self.results_by_transaction, version)
        writer.tagged_fields()
