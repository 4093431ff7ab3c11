"""Made by `make messages` from Kafka's schemas: not to be edited."""

from __future__ import annotations

from struct import Struct as Layout
from typing import ClassVar, Final

from kafka_sidecar.wire.buffers import Reader, Writer
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.message import Message

_IH: Final = Layout(">ih")
_QH: Final = Layout(">qh")
_QHX: Final = Layout(">qh?")


class EndTxnRequest(Message):
    __slots__ = ("transactional_id", "producer_id", "producer_epoch", "committed")

    KEY: ClassVar[int] = 26
    FLEXIBLE_SINCE: ClassVar[int] = 3

    def __init__(
        self,
        *,
        transactional_id: str = "",
        producer_id: int = 0,
        producer_epoch: int = 0,
        committed: bool = False,
    ) -> None:
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.committed = committed

    @classmethod
    def decode(cls, reader: Reader, version: int) -> EndTxnRequest:
        one = cls.__new__(cls)
        one.transactional_id = reader.string()
        one.producer_id, one.producer_epoch, one.committed = reader.unpack(_QHX)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.string(self.transactional_id)
        writer.out += _QHX.pack(self.producer_id, self.producer_epoch, self.committed)
        writer.tagged_fields()


class EndTxnResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "producer_id", "producer_epoch")

    KEY: ClassVar[int] = 26
    FLEXIBLE_SINCE: ClassVar[int] = 3

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: ErrorCode = ErrorCode.NONE,
        producer_id: int = -1,  # version >= 5
        producer_epoch: int = -1,  # version >= 5
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch

    @classmethod
    def decode(cls, reader: Reader, version: int) -> EndTxnResponse:
        one = cls.__new__(cls)
        one.throttle_time_ms, one.error_code = reader.unpack(_IH)
        one.error_code = ErrorCode(one.error_code)
        if version >= 5:
            one.producer_id, one.producer_epoch = reader.unpack(_QH)
        else:
            one.producer_id = -1
            one.producer_epoch = -1
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.out += _IH.pack(self.throttle_time_ms, self.error_code)
        if version >= 5:
            writer.out += _QH.pack(self.producer_id, self.producer_epoch)
        writer.tagged_fields()
