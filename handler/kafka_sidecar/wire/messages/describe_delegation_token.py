"""Made by `make messages` from Kafka's schemas: not to be edited."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as Layout
from typing import ClassVar, Final

from kafka_sidecar.wire.buffers import Reader, Writer
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.message import Message, Struct

_QQQ: Final = Layout(">qqq")


class DescribeDelegationTokenOwner(Struct):
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
    def decode(cls, reader: Reader, version: int) -> DescribeDelegationTokenOwner:
        one = cls.__new__(cls)
        one.principal_type = reader.string()
        one.principal_name = reader.string()
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.string(self.principal_type)
        writer.string(self.principal_name)
        writer.tagged_fields()


class DescribeDelegationTokenRequest(Message):
    __slots__ = ("owners",)

    KEY: ClassVar[int] = 41
    FLEXIBLE_SINCE: ClassVar[int] = 2

    def __init__(
        self,
        *,
        owners: Sequence[DescribeDelegationTokenOwner] | None = (),
    ) -> None:
        self.owners = owners

    @classmethod
    def decode(cls, reader: Reader, version: int) -> DescribeDelegationTokenRequest:
        one = cls.__new__(cls)
        one.owners = reader.nullable_array(DescribeDelegationTokenOwner.decode, version)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.nullable_array(self.owners, version)
        writer.tagged_fields()


class DescribedDelegationTokenRenewer(Struct):
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
    def decode(cls, reader: Reader, version: int) -> DescribedDelegationTokenRenewer:
        one = cls.__new__(cls)
        one.principal_type = reader.string()
        one.principal_name = reader.string()
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.string(self.principal_type)
        writer.string(self.principal_name)
        writer.tagged_fields()


class DescribedDelegationToken(Struct):
    __slots__ = (
        "principal_type",
        "principal_name",
        "token_requester_principal_type",
        "token_requester_principal_name",
        "issue_timestamp",
        "expiry_timestamp",
        "max_timestamp",
        "token_id",
        "hmac",
        "renewers",
    )

    def __init__(
        self,
        *,
        principal_type: str = "",
        principal_name: str = "",
        token_requester_principal_type: str = "",  # version >= 3
        token_requester_principal_name: str = "",  # version >= 3
        issue_timestamp: int = 0,
        expiry_timestamp: int = 0,
        max_timestamp: int = 0,
        token_id: str = "",
        hmac: bytes = b"",
        renewers: Sequence[DescribedDelegationTokenRenewer] = (),
    ) -> None:
        self.principal_type = principal_type
        self.principal_name = principal_name
        self.token_requester_principal_type = token_requester_principal_type
        self.token_requester_principal_name = token_requester_principal_name
        self.issue_timestamp = issue_timestamp
        self.expiry_timestamp = expiry_timestamp
        self.max_timestamp = max_timestamp
        self.token_id = token_id
        self.hmac = hmac
        self.renewers = renewers

    @classmethod
    def decode(cls, reader: Reader, version: int) -> DescribedDelegationToken:
        one = cls.__new__(cls)
        one.principal_type = reader.string()
        one.principal_name = reader.string()
        if version >= 3:
            one.token_requester_principal_type = reader.string()
            one.token_requester_principal_name = reader.string()
        else:
            one.token_requester_principal_type = ""
            one.token_requester_principal_name = ""
        one.issue_timestamp, one.expiry_timestamp, one.max_timestamp = reader.unpack(_QQQ)
        one.token_id = reader.string()
        one.hmac = reader.bytes_()
        one.renewers = reader.array(DescribedDelegationTokenRenewer.decode, version)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.string(self.principal_type)
        writer.string(self.principal_name)
        if version >= 3:
            writer.string(self.token_requester_principal_type)
            writer.string(self.token_requester_principal_name)
        writer.out += _QQQ.pack(self.issue_timestamp, self.expiry_timestamp, self.max_timestamp)
        writer.string(self.token_id)
        writer.bytes_(self.hmac)
        writer.array(self.renewers, version)
        writer.tagged_fields()


class DescribeDelegationTokenResponse(Message):
    __slots__ = ("error_code", "tokens", "throttle_time_ms")

    KEY: ClassVar[int] = 41
    FLEXIBLE_SINCE: ClassVar[int] = 2

    def __init__(
        self,
        *,
        error_code: ErrorCode = ErrorCode.NONE,
        tokens: Sequence[DescribedDelegationToken] = (),
        throttle_time_ms: int = 0,
    ) -> None:
        self.error_code = error_code
        self.tokens = tokens
        self.throttle_time_ms = throttle_time_ms

    @classmethod
    def decode(cls, reader: Reader, version: int) -> DescribeDelegationTokenResponse:
        one = cls.__new__(cls)
        one.error_code = ErrorCode(reader.int16())
        one.tokens = reader.array(DescribedDelegationToken.decode, version)
        one.throttle_time_ms = reader.int32()
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.int16(self.error_code)
        writer.array(self.tokens, version)
        writer.int32(self.throttle_time_ms)
        writer.tagged_fields()
