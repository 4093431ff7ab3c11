"""Made by `make messages` from Kafka's schemas: not to be edited."""

from __future__ import annotations

from struct import Struct as Layout
from typing import ClassVar, Final

from kafka_sidecar.wire.buffers import Reader, Writer
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.message import Message

_IH: Final = Layout(">ih")
_QH: Final = Layout(">qh")


class AddOffsetsToTxnRequest(Message):
    __slots__ = ("transactional_id", "producer_id", "producer_epoch", "group_id")

    KEY: ClassVar[int] = 25
    FLEXIBLE_SINCE: ClassVar[int] = 3

    def __init__(
        self,
        *,
        transactional_id: str = "",
        producer_id: int = 0,
        producer_epoch: int = 0,
        group_id: str = "",
    ) -> None:
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.group_id = group_id

    @classmethod
    def decode(cls, reader: Reader, version: int) -> AddOffsetsToTxnRequest:
        one = cls.__new__(cls)
        one.transactional_id = reader.string()
        one.producer_id, one.producer_epoch = reader.unpack(_QH)
        one.group_id = reader.string()
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.string(self.transactional_id)
        writer.out += _QH.pack(self.producer_id, self.producer_epoch)
        writer.string(self.group_id)
        writer.tagged_fields()


class AddOffsetsToTxnResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code")

    KEY: ClassVar[int] = 25
    FLEXIBLE_SINCE: ClassVar[int] = 3

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: ErrorCode = ErrorCode.NONE,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code

    @classmethod
    def decode(cls, reader: Reader, version: int) -> AddOffsetsToTxnResponse:
        one = cls.__new__(cls)
        one.throttle_time_ms, one.error_code = reader.unpack(_IH)
        one.error_code = ErrorCode(one.error_code)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.out += _IH.pack(self.throttle_time_ms, self.error_code)
        writer.tagged_fields()
