"""Made by `make messages` from Kafka's schemas: not to be edited."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as Layout
from typing import ClassVar, Final

from kafka_sidecar.wire.buffers import Reader, Writer
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.message import Message, Struct

_BI: Final = Layout(">bi")
_IH: Final = Layout(">ih")


class UserName(Struct):
    __slots__ = ("name",)

    def __init__(
        self,
        *,
        name: str = "",
    ) -> None:
        self.name = name

    @classmethod
    def decode(cls, reader: Reader, version: int) -> UserName:
        one = cls.__new__(cls)
        one.name = reader.string()
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.string(self.name)
        writer.tagged_fields()


class DescribeUserScramCredentialsRequest(Message):
    __slots__ = ("users",)

    KEY: ClassVar[int] = 50
    FLEXIBLE_SINCE: ClassVar[int] = 0

    def __init__(
        self,
        *,
        users: Sequence[UserName] | None = (),
    ) -> None:
        self.users = users

    @classmethod
    def decode(cls, reader: Reader, version: int) -> DescribeUserScramCredentialsRequest:
        one = cls.__new__(cls)
        one.users = reader.nullable_array(UserName.decode, version)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.nullable_array(self.users, version)
        writer.tagged_fields()


class CredentialInfo(Struct):
    __slots__ = ("mechanism", "iterations")

    def __init__(
        self,
        *,
        mechanism: int = 0,
        iterations: int = 0,
    ) -> None:
        self.mechanism = mechanism
        self.iterations = iterations

    @classmethod
    def decode(cls, reader: Reader, version: int) -> CredentialInfo:
        one = cls.__new__(cls)
        one.mechanism, one.iterations = reader.unpack(_BI)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.out += _BI.pack(self.mechanism, self.iterations)
        writer.tagged_fields()


class DescribeUserScramCredentialsResult(Struct):
    __slots__ = ("user", "error_code", "error_message", "credential_infos")

    def __init__(
        self,
        *,
        user: str = "",
        error_code: ErrorCode = ErrorCode.NONE,
        error_message: str | None = None,
        credential_infos: Sequence[CredentialInfo] = (),
    ) -> None:
        self.user = user
        self.error_code = error_code
        self.error_message = error_message
        self.credential_infos = credential_infos

    @classmethod
    def decode(cls, reader: Reader, version: int) -> DescribeUserScramCredentialsResult:
        one = cls.__new__(cls)
        one.user = reader.string()
        one.error_code = ErrorCode(reader.int16())
        one.error_message = reader.nullable_string()
        one.credential_infos = reader.array(CredentialInfo.decode, version)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.string(self.user)
        writer.int16(self.error_code)
        writer.nullable_message(self.error_message)
        writer.array(self.credential_infos, version)
        writer.tagged_fields()


class DescribeUserScramCredentialsResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "error_message", "results")

    KEY: ClassVar[int] = 50
    FLEXIBLE_SINCE: ClassVar[int] = 0

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: ErrorCode = ErrorCode.NONE,
        error_message: str | None = None,
        results: Sequence[DescribeUserScramCredentialsResult] = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.results = results

    @classmethod
    def decode(cls, reader: Reader, version: int) -> DescribeUserScramCredentialsResponse:
        one = cls.__new__(cls)
        one.throttle_time_ms, one.error_code = reader.unpack(_IH)
        one.error_code = ErrorCode(one.error_code)
        one.error_message = reader.nullable_string()
        one.results = reader.array(DescribeUserScramCredentialsResult.decode, version)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.out += _IH.pack(self.throttle_time_ms, self.error_code)
        writer.nullable_message(self.error_message)
        writer.array(self.results, version)
        writer.tagged_fields()
