"""Made by `make messages` from Kafka's schemas: not to be edited."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from kafka_sidecar.wire.buffers import Reader, Writer
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.message import Message


class SaslHandshakeRequest(Message):
    __slots__ = ("mechanism",)

    KEY: ClassVar[int] = 17
    FLEXIBLE_SINCE: ClassVar[int] = 32767

    def __init__(
        self,
        *,
        mechanism: str = "",
    ) -> None:
        self.mechanism = mechanism

    @classmethod
    def decode(cls, reader: Reader, version: int) -> SaslHandshakeRequest:
        one = cls.__new__(cls)
        one.mechanism = reader.string()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.string(self.mechanism)


class SaslHandshakeResponse(Message):
    __slots__ = ("error_code", "mechanisms")

    KEY: ClassVar[int] = 17
    FLEXIBLE_SINCE: ClassVar[int] = 32767

    def __init__(
        self,
        *,
        error_code: ErrorCode = ErrorCode.NONE,
        mechanisms: Sequence[str] = (),
    ) -> None:
        self.error_code = error_code
        self.mechanisms = mechanisms

    @classmethod
    def decode(cls, reader: Reader, version: int) -> SaslHandshakeResponse:
        one = cls.__new__(cls)
        one.error_code = ErrorCode(reader.int16())
        one.mechanisms = reader.string_array()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.int16(self.error_code)
        writer.string_array(self.mechanisms)
