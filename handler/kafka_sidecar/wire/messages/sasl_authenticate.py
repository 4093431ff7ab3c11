"""Made by `make messages` from Kafka's schemas: not to be edited."""

from __future__ import annotations

from typing import ClassVar

from kafka_sidecar.wire.buffers import Reader, Writer
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.message import Message


class SaslAuthenticateRequest(Message):
    __slots__ = ("auth_bytes",)

    KEY: ClassVar[int] = 36
    FLEXIBLE_SINCE: ClassVar[int] = 2

    def __init__(
        self,
        *,
        auth_bytes: bytes = b"",
    ) -> None:
        self.auth_bytes = auth_bytes

    @classmethod
    def decode(cls, reader: Reader, version: int) -> SaslAuthenticateRequest:
        one = cls.__new__(cls)
        one.auth_bytes = reader.bytes_()
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.bytes_(self.auth_bytes)
        writer.tagged_fields()


class SaslAuthenticateResponse(Message):
    __slots__ = ("error_code", "error_message", "auth_bytes", "session_lifetime_ms")

    KEY: ClassVar[int] = 36
    FLEXIBLE_SINCE: ClassVar[int] = 2

    def __init__(
        self,
        *,
        error_code: ErrorCode = ErrorCode.NONE,
        error_message: str | None = None,
        auth_bytes: bytes = b"",
        session_lifetime_ms: int = 0,  # version >= 1
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.auth_bytes = auth_bytes
        self.session_lifetime_ms = session_lifetime_ms

    @classmethod
    def decode(cls, reader: Reader, version: int) -> SaslAuthenticateResponse:
        one = cls.__new__(cls)
        one.error_code = ErrorCode(reader.int16())
        one.error_message = reader.nullable_string()
        one.auth_bytes = reader.bytes_()
        if version >= 1:
            one.session_lifetime_ms = reader.int64()
        else:
            one.session_lifetime_ms = 0
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.int16(self.error_code)
        writer.nullable_message(self.error_message)
        writer.bytes_(self.auth_bytes)
        if version >= 1:
            writer.int64(self.session_lifetime_ms)
        writer.tagged_fields()
