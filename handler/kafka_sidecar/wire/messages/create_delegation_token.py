"""Made by `make messages` from Kafka's schemas: not to be edited."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as Layout
from typing import ClassVar, Final

from kafka_sidecar.wire.buffers import Reader, Writer
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.message import Message, Struct

_QQQ: Final = Layout(">qqq")


class CreatableRenewers(Struct):
    __slots__ = ("principal_type", "principal_name")

    def __init__(
        self,
        *,
        principal_type: str = "",
        principal_name: str = "",
    ) -> None:
        self.principal_type = principal_type
        self.principal_name = principal_name

    @classmethod
    def decode(cls, reader: Reader, version: int) -> CreatableRenewers:
        one = cls.__new__(cls)
        one.principal_type = reader.string()
        one.principal_name = reader.string()
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.string(self.principal_type)
        writer.string(self.principal_name)
        writer.tagged_fields()


class CreateDelegationTokenRequest(Message):
    __slots__ = ("owner_principal_type", "owner_principal_name", "renewers", "max_lifetime_ms")

    KEY: ClassVar[int] = 38
    FLEXIBLE_SINCE: ClassVar[int] = 2

    def __init__(
        self,
        *,
        owner_principal_type: str | None = None,  # version >= 3
        owner_principal_name: str | None = None,  # version >= 3
        renewers: Sequence[CreatableRenewers] = (),
        max_lifetime_ms: int = 0,
    ) -> None:
        self.owner_principal_type = owner_principal_type
        self.owner_principal_name = owner_principal_name
        self.renewers = renewers
        self.max_lifetime_ms = max_lifetime_ms

    @classmethod
    def decode(cls, reader: Reader, version: int) -> CreateDelegationTokenRequest:
        one = cls.__new__(cls)
        if version >= 3:
            one.owner_principal_type = reader.nullable_string()
            one.owner_principal_name = reader.nullable_string()
        else:
            one.owner_principal_type = None
            one.owner_principal_name = None
        one.renewers = reader.array(CreatableRenewers.decode, version)
        one.max_lifetime_ms = reader.int64()
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        if version >= 3:
            writer.nullable_string(self.owner_principal_type)
            writer.nullable_string(self.owner_principal_name)
        writer.array(self.renewers, version)
        writer.int64(self.max_lifetime_ms)
        writer.tagged_fields()


class CreateDelegationTokenResponse(Message):
    __slots__ = (
        "error_code",
        "principal_type",
        "principal_name",
        "token_requester_principal_type",
        "token_requester_principal_name",
        "issue_timestamp_ms",
        "expiry_timestamp_ms",
        "max_timestamp_ms",
        "token_id",
        "hmac",
        "throttle_time_ms",
    )

    KEY: ClassVar[int] = 38
    FLEXIBLE_SINCE: ClassVar[int] = 2

    def __init__(
        self,
        *,
        error_code: ErrorCode = ErrorCode.NONE,
        principal_type: str = "",
        principal_name: str = "",
        token_requester_principal_type: str = "",  # version >= 3
        token_requester_principal_name: str = "",  # version >= 3
        issue_timestamp_ms: int = 0,
        expiry_timestamp_ms: int = 0,
        max_timestamp_ms: int = 0,
        token_id: str = "",
        hmac: bytes = b"",
        throttle_time_ms: int = 0,
    ) -> None:
        self.error_code = error_code
        self.principal_type = principal_type
        self.principal_name = principal_name
        self.token_requester_principal_type = token_requester_principal_type
        self.token_requester_principal_name = token_requester_principal_name
        self.issue_timestamp_ms = issue_timestamp_ms
        self.expiry_timestamp_ms = expiry_timestamp_ms
        self.max_timestamp_ms = max_timestamp_ms
        self.token_id = token_id
        self.hmac = hmac
        self.throttle_time_ms = throttle_time_ms

    @classmethod
    def decode(cls, reader: Reader, version: int) -> CreateDelegationTokenResponse:
        one = cls.__new__(cls)
        one.error_code = ErrorCode(reader.int16())
        one.principal_type = reader.string()
        one.principal_name = reader.string()
        if version >= 3:
            one.token_requester_principal_type = reader.string()
            one.token_requester_principal_name = reader.string()
        else:
            one.token_requester_principal_type = ""
            one.token_requester_principal_name = ""
        one.issue_timestamp_ms, one.expiry_timestamp_ms, one.max_timestamp_ms = reader.unpack(_QQQ)
        one.token_id = reader.string()
        one.hmac = reader.bytes_()
        one.throttle_time_ms = reader.int32()
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.int16(self.error_code)
        writer.string(self.principal_type)
        writer.string(self.principal_name)
        if version >= 3:
            writer.string(self.token_requester_principal_type)
            writer.string(self.token_requester_principal_name)
        writer.out += _QQQ.pack(self.issue_timestamp_ms, self.expiry_timestamp_ms, self.max_timestamp_ms)
        writer.string(self.token_id)
        writer.bytes_(self.hmac)
        writer.int32(self.throttle_time_ms)
        writer.tagged_fields()
