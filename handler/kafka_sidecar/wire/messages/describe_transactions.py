"""Made by `make messages` from Kafka's schemas: not to be edited."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as Layout
from typing import ClassVar, Final

from kafka_sidecar.wire.buffers import Reader, Writer
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.message import Message, Struct

_IQQH: Final = Layout(">iqqh")


class DescribeTransactionsRequest(Message):
    __slots__ = ("transactional_ids",)

    KEY: ClassVar[int] = 65
    FLEXIBLE_SINCE: ClassVar[int] = 0

    def __init__(
        self,
        *,
        transactional_ids: Sequence[str] = (),
    ) -> None:
        self.transactional_ids = transactional_ids

    @classmethod
    def decode(cls, reader: Reader, version: int) -> DescribeTransactionsRequest:
        one = cls.__new__(cls)
        one.transactional_ids = reader.string_array()
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.string_array(self.transactional_ids)
        writer.tagged_fields()


class TopicData(Struct):
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
    def decode(cls, reader: Reader, version: int) -> TopicData:
        one = cls.__new__(cls)
        one.topic = reader.string()
        one.partitions = reader.int32_array()
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.string(self.topic)
        writer.int32_array(self.partitions)
        writer.tagged_fields()


class TransactionState(Struct):
    __slots__ = (
        "error_code",
        "transactional_id",
        "transaction_state",
        "transaction_timeout_ms",
        "transaction_start_time_ms",
        "producer_id",
        "producer_epoch",
        "topics",
    )

    def __init__(
        self,
        *,
        error_code: ErrorCode = ErrorCode.NONE,
        transactional_id: str = "",
        transaction_state: str = "",
        transaction_timeout_ms: int = 0,
        transaction_start_time_ms: int = 0,
        producer_id: int = 0,
        producer_epoch: int = 0,
        topics: Sequence[TopicData] = (),
    ) -> None:
        self.error_code = error_code
        self.transactional_id = transactional_id
        self.transaction_state = transaction_state
        self.transaction_timeout_ms = transaction_timeout_ms
        self.transaction_start_time_ms = transaction_start_time_ms
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.topics = topics

    @classmethod
    def decode(cls, reader: Reader, version: int) -> TransactionState:
        one = cls.__new__(cls)
        one.error_code = ErrorCode(reader.int16())
        one.transactional_id = reader.string()
        one.transaction_state = reader.string()
        one.transaction_timeout_ms, one.transaction_start_time_ms, one.producer_id, one.producer_epoch = reader.unpack(_IQQH)
        one.topics = reader.array(TopicData.decode, version)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.int16(self.error_code)
        writer.string(self.transactional_id)
        writer.string(self.transaction_state)
        writer.out += _IQQH.pack(self.transaction_timeout_ms, self.transaction_start_time_ms, self.producer_id, self.producer_epoch)
        writer.array(self.topics, version)
        writer.tagged_fields()


class DescribeTransactionsResponse(Message):
    __slots__ = ("throttle_time_ms", "transaction_states")

    KEY: ClassVar[int] = 65
    FLEXIBLE_SINCE: ClassVar[int] = 0

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        transaction_states: Sequence[TransactionState] = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.transaction_states = transaction_states

    @classmethod
    def decode(cls, reader: Reader, version: int) -> DescribeTransactionsResponse:
        one = cls.__new__(cls)
        one.throttle_time_ms = reader.int32()
        one.transaction_states = reader.array(TransactionState.decode, version)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.throttle_time_ms)
        writer.array(self.transaction_states, version)
        writer.tagged_fields()
