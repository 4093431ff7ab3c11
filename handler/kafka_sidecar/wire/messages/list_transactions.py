"""Made by `make messages` from Kafka's schemas: not to be edited."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as Layout
from typing import ClassVar, Final

from kafka_sidecar.wire.buffers import Reader, Writer
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.message import Message, Struct

_IH: Final = Layout(">ih")


class ListTransactionsRequest(Message):
    __slots__ = ("state_filters", "producer_id_filters", "duration_filter", "transactional_id_pattern")

    KEY: ClassVar[int] = 66
    FLEXIBLE_SINCE: ClassVar[int] = 0

    def __init__(
        self,
        *,
        state_filters: Sequence[str] = (),
        producer_id_filters: Sequence[int] = (),
        duration_filter: int = -1,  # version >= 1
        transactional_id_pattern: str | None = None,  # version >= 2
    ) -> None:
        self.state_filters = state_filters
        self.producer_id_filters = producer_id_filters
        self.duration_filter = duration_filter
        self.transactional_id_pattern = transactional_id_pattern

    @classmethod
    def decode(cls, reader: Reader, version: int) -> ListTransactionsRequest:
        one = cls.__new__(cls)
        one.state_filters = reader.string_array()
        one.producer_id_filters = reader.int64_array()
        if version >= 1:
            one.duration_filter = reader.int64()
        else:
            one.duration_filter = -1
        if version >= 2:
            one.transactional_id_pattern = reader.nullable_string()
        else:
            one.transactional_id_pattern = None
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.string_array(self.state_filters)
        writer.int64_array(self.producer_id_filters)
        if version >= 1:
            writer.int64(self.duration_filter)
        if version >= 2:
            writer.nullable_string(self.transactional_id_pattern)
        writer.tagged_fields()


class TransactionState(Struct):
    __slots__ = ("transactional_id", "producer_id", "transaction_state")

    def __init__(
        self,
        *,
        transactional_id: str = "",
        producer_id: int = 0,
        transaction_state: str = "",
    ) -> None:
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.transaction_state = transaction_state

    @classmethod
    def decode(cls, reader: Reader, version: int) -> TransactionState:
        one = cls.__new__(cls)
        one.transactional_id = reader.string()
        one.producer_id = reader.int64()
        one.transaction_state = reader.string()
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.string(self.transactional_id)
        writer.int64(self.producer_id)
        writer.string(self.transaction_state)
        writer.tagged_fields()


class ListTransactionsResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "unknown_state_filters", "transaction_states")

    KEY: ClassVar[int] = 66
    FLEXIBLE_SINCE: ClassVar[int] = 0

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: ErrorCode = ErrorCode.NONE,
        unknown_state_filters: Sequence[str] = (),
        transaction_states: Sequence[TransactionState] = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.unknown_state_filters = unknown_state_filters
        self.transaction_states = transaction_states

    @classmethod
    def decode(cls, reader: Reader, version: int) -> ListTransactionsResponse:
        one = cls.__new__(cls)
        one.throttle_time_ms, one.error_code = reader.unpack(_IH)
        one.error_code = ErrorCode(one.error_code)
        one.unknown_state_filters = reader.string_array()
        one.transaction_states = reader.array(TransactionState.decode, version)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.out += _IH.pack(self.throttle_time_ms, self.error_code)
        writer.string_array(self.unknown_state_filters)
        writer.array(self.transaction_states, version)
        writer.tagged_fields()
