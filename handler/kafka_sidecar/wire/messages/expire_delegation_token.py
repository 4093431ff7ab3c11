"""Made by `make messages` from Kafka's schemas: not to be edited."""

from __future__ import annotations

from struct import Struct as Layout
from typing import ClassVar, Final

from kafka_sidecar.wire.buffers import Reader, Writer
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.message import Message

_HQI: Final = Layout(">hqi")


class ExpireDelegationTokenRequest(Message):
    __slots__ = ("hmac", "expiry_time_period_ms")

    KEY: ClassVar[int] = 40
    FLEXIBLE_SINCE: ClassVar[int] = 2

    def __init__(
        self,
        *,
        hmac: bytes = b"",
        expiry_time_period_ms: int = 0,
    ) -> None:
        self.hmac = hmac
        self.expiry_time_period_ms = expiry_time_period_ms

    @classmethod
    def decode(cls, reader: Reader, version: int) -> ExpireDelegationTokenRequest:
        one = cls.__new__(cls)
        one.hmac = reader.bytes_()
        one.expiry_time_period_ms = reader.int64()
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.bytes_(self.hmac)
        writer.int64(self.expiry_time_period_ms)
        writer.tagged_fields()


class ExpireDelegationTokenResponse(Message):
    __slots__ = ("error_code", "expiry_timestamp_ms", "throttle_time_ms")

    KEY: ClassVar[int] = 40
    FLEXIBLE_SINCE: ClassVar[int] = 2

    def __init__(
        self,
        *,
        error_code: ErrorCode = ErrorCode.NONE,
        expiry_timestamp_ms: int = 0,
        throttle_time_ms: int = 0,
    ) -> None:
        self.error_code = error_code
        self.expiry_timestamp_ms = expiry_timestamp_ms
        self.throttle_time_ms = throttle_time_ms

    @classmethod
    def decode(cls, reader: Reader, version: int) -> ExpireDelegationTokenResponse:
        one = cls.__new__(cls)
        one.error_code, one.expiry_timestamp_ms, one.throttle_time_ms = reader.unpack(_HQI)
        one.error_code = ErrorCode(one.error_code)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.out += _HQI.pack(self.error_code, self.expiry_timestamp_ms, self.throttle_time_ms)
        writer.tagged_fields()
