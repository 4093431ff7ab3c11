"""Made by `make messages` from Kafka's schemas: not to be edited."""

from __future__ import annotations

from struct import Struct as Layout
from typing import ClassVar, Final

from kafka_sidecar.wire.buffers import Reader, Writer
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.message import Message

_XX: Final = Layout(">??")
_IHQH: Final = Layout(">ihqh")
_QH: Final = Layout(">qh")


class InitProducerIdRequest(Message):
    __slots__ = (
        "transactional_id",
        "transaction_timeout_ms",
        "producer_id",
        "producer_epoch",
        "enable2_pc",
        "keep_prepared_txn",
    )

    KEY: ClassVar[int] = 22
    FLEXIBLE_SINCE: ClassVar[int] = 2

    def __init__(
        self,
        *,
        transactional_id: str | None = None,
        transaction_timeout_ms: int = 0,
        producer_id: int = -1,  # version >= 3
        producer_epoch: int = -1,  # version >= 3
        enable2_pc: bool = False,  # version >= 6
        keep_prepared_txn: bool = False,  # version >= 6
    ) -> None:
        self.transactional_id = transactional_id
        self.transaction_timeout_ms = transaction_timeout_ms
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.enable2_pc = enable2_pc
        self.keep_prepared_txn = keep_prepared_txn

    @classmethod
    def decode(cls, reader: Reader, version: int) -> InitProducerIdRequest:
        one = cls.__new__(cls)
        one.transactional_id = reader.nullable_string()
        one.transaction_timeout_ms = reader.int32()
        if version >= 3:
            one.producer_id, one.producer_epoch = reader.unpack(_QH)
        else:
            one.producer_id = -1
            one.producer_epoch = -1
        if version >= 6:
            one.enable2_pc, one.keep_prepared_txn = reader.unpack(_XX)
        else:
            one.enable2_pc = False
            one.keep_prepared_txn = False
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.nullable_string(self.transactional_id)
        writer.int32(self.transaction_timeout_ms)
        if version >= 3:
            writer.out += _QH.pack(self.producer_id, self.producer_epoch)
        if version >= 6:
            writer.out += _XX.pack(self.enable2_pc, self.keep_prepared_txn)
        writer.tagged_fields()


class InitProducerIdResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "producer_id",
        "producer_epoch",
        "ongoing_txn_producer_id",
        "ongoing_txn_producer_epoch",
    )

    KEY: ClassVar[int] = 22
    FLEXIBLE_SINCE: ClassVar[int] = 2

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: ErrorCode = ErrorCode.NONE,
        producer_id: int = -1,
        producer_epoch: int = 0,
        ongoing_txn_producer_id: int = -1,  # version >= 6
        ongoing_txn_producer_epoch: int = -1,  # version >= 6
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.ongoing_txn_producer_id = ongoing_txn_producer_id
        self.ongoing_txn_producer_epoch = ongoing_txn_producer_epoch

    @classmethod
    def decode(cls, reader: Reader, version: int) -> InitProducerIdResponse:
        one = cls.__new__(cls)
        one.throttle_time_ms, one.error_code, one.producer_id, one.producer_epoch = reader.unpack(_IHQH)
        one.error_code = ErrorCode(one.error_code)
        if version >= 6:
            one.ongoing_txn_producer_id, one.ongoing_txn_producer_epoch = reader.unpack(_QH)
        else:
            one.ongoing_txn_producer_id = -1
            one.ongoing_txn_producer_epoch = -1
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.out += _IHQH.pack(self.throttle_time_ms, self.error_code, self.producer_id, self.producer_epoch)
        if version >= 6:
            writer.out += _QH.pack(self.ongoing_txn_producer_id, self.ongoing_txn_producer_epoch)
        writer.tagged_fields()
