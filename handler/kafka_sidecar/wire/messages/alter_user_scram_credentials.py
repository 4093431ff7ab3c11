"""Made by `make messages` from Kafka's schemas: not to be edited."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as Layout
from typing import ClassVar, Final

from kafka_sidecar.wire.buffers import Reader, Writer
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.message import Message, Struct

_BI: Final = Layout(">bi")


class ScramCredentialUpsertion(Struct):
    __slots__ = ("name", "mechanism", "iterations", "salt", "salted_password")

    def __init__(
        self,
        *,
        name: str = "",
        mechanism: int = 0,
        iterations: int = 0,
        salt: bytes = b"",
        salted_password: bytes = b"",
    ) -> None:
        self.name = name
        self.mechanism = mechanism
        self.iterations = iterations
        self.salt = salt
        self.salted_password = salted_password

    @classmethod
    def decode(cls, reader: Reader, version: int) -> ScramCredentialUpsertion:
        one = cls.__new__(cls)
        one.name = reader.string()
        one.mechanism, one.iterations = reader.unpack(_BI)
        one.salt = reader.bytes_()
        one.salted_password = reader.bytes_()
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.string(self.name)
        writer.out += _BI.pack(self.mechanism, self.iterations)
        writer.bytes_(self.salt)
        writer.bytes_(self.salted_password)
        writer.tagged_fields()


class ScramCredentialDeletion(Struct):
    __slots__ = ("name", "mechanism")

    def __init__(
        self,
        *,
        name: str = "",
        mechanism: int = 0,
    ) -> None:
        self.name = name
        self.mechanism = mechanism

    @classmethod
    def decode(cls, reader: Reader, version: int) -> ScramCredentialDeletion:
        one = cls.__new__(cls)
        one.name = reader.string()
        one.mechanism = reader.int8()
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.string(self.name)
        writer.int8(self.mechanism)
        writer.tagged_fields()


class AlterUserScramCredentialsRequest(Message):
    __slots__ = ("deletions", "upsertions")

    KEY: ClassVar[int] = 51
    FLEXIBLE_SINCE: ClassVar[int] = 0

    def __init__(
        self,
        *,
        deletions: Sequence[ScramCredentialDeletion] = (),
        upsertions: Sequence[ScramCredentialUpsertion] = (),
    ) -> None:
        self.deletions = deletions
        self.upsertions = upsertions

    @classmethod
    def decode(cls, reader: Reader, version: int) -> AlterUserScramCredentialsRequest:
        one = cls.__new__(cls)
        one.deletions = reader.array(ScramCredentialDeletion.decode, version)
        one.upsertions = reader.array(ScramCredentialUpsertion.decode, version)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.array(self.deletions, version)
        writer.array(self.upsertions, version)
        writer.tagged_fields()


class AlterUserScramCredentialsResult(Struct):
    __slots__ = ("user", "error_code", "error_message")

    def __init__(
        self,
        *,
        user: str = "",
        error_code: ErrorCode = ErrorCode.NONE,
        error_message: str | None = None,
    ) -> None:
        self.user = user
        self.error_code = error_code
        self.error_message = error_message

    @classmethod
    def decode(cls, reader: Reader, version: int) -> AlterUserScramCredentialsResult:
        one = cls.__new__(cls)
        one.user = reader.string()
        one.error_code = ErrorCode(reader.int16())
        one.error_message = reader.nullable_string()
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.string(self.user)
        writer.int16(self.error_code)
        writer.nullable_message(self.error_message)
        writer.tagged_fields()


class AlterUserScramCredentialsResponse(Message):
    __slots__ = ("throttle_time_ms", "results")

    KEY: ClassVar[int] = 51
    FLEXIBLE_SINCE: ClassVar[int] = 0

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        results: Sequence[AlterUserScramCredentialsResult] = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results = results

    @classmethod
    def decode(cls, reader: Reader, version: int) -> AlterUserScramCredentialsResponse:
        one = cls.__new__(cls)
        one.throttle_time_ms = reader.int32()
        one.results = reader.array(AlterUserScramCredentialsResult.decode, version)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.throttle_time_ms)
        writer.array(self.results, version)
        writer.tagged_fields()
