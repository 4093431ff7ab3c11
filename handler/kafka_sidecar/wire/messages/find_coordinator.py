"""Made by `make messages` from Kafka's schemas: not to be edited."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as Layout
from typing import ClassVar, Final

from kafka_sidecar.wire.buffers import Reader, Writer
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.message import Message, Struct

_IH: Final = Layout(">ih")


class FindCoordinatorRequest(Message):
    __slots__ = ("key", "key_type", "coordinator_keys")

    KEY: ClassVar[int] = 10
    FLEXIBLE_SINCE: ClassVar[int] = 3

    def __init__(
        self,
        *,
        key: str = "",  # version <= 3
        key_type: int = 0,  # version >= 1
        coordinator_keys: Sequence[str] = (),  # version >= 4
    ) -> None:
        self.key = key
        self.key_type = key_type
        self.coordinator_keys = coordinator_keys

    @classmethod
    def decode(cls, reader: Reader, version: int) -> FindCoordinatorRequest:
        one = cls.__new__(cls)
        if version <= 3:
            one.key = reader.string()
        else:
            one.key = ""
        if version >= 1:
            one.key_type = reader.int8()
        else:
            one.key_type = 0
        if version >= 4:
            one.coordinator_keys = reader.string_array()
        else:
            one.coordinator_keys = ()
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        if version <= 3:
            writer.string(self.key)
        if version >= 1:
            writer.int8(self.key_type)
        if version >= 4:
            writer.string_array(self.coordinator_keys)
        writer.tagged_fields()


class Coordinator(Struct):
    __slots__ = ("key", "node_id", "host", "port", "error_code", "error_message")

    def __init__(
        self,
        *,
        key: str = "",
        node_id: int = 0,
        host: str = "",
        port: int = 0,
        error_code: ErrorCode = ErrorCode.NONE,
        error_message: str | None = None,
    ) -> None:
        self.key = key
        self.node_id = node_id
        self.host = host
        self.port = port
        self.error_code = error_code
        self.error_message = error_message

    @classmethod
    def decode(cls, reader: Reader, version: int) -> Coordinator:
        one = cls.__new__(cls)
        one.key = reader.string()
        one.node_id = reader.int32()
        one.host = reader.string()
        one.port, one.error_code = reader.unpack(_IH)
        one.error_code = ErrorCode(one.error_code)
        one.error_message = reader.nullable_string()
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.string(self.key)
        writer.int32(self.node_id)
        writer.string(self.host)
        writer.out += _IH.pack(self.port, self.error_code)
        writer.nullable_message(self.error_message)
        writer.tagged_fields()


class FindCoordinatorResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "error_message", "node_id", "host", "port", "coordinators")

    KEY: ClassVar[int] = 10
    FLEXIBLE_SINCE: ClassVar[int] = 3

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,  # version >= 1
        error_code: ErrorCode = ErrorCode.NONE,  # version <= 3
        error_message: str | None = None,  # 1 <= version <= 3
        node_id: int = 0,  # version <= 3
        host: str = "",  # version <= 3
        port: int = 0,  # version <= 3
        coordinators: Sequence[Coordinator] = (),  # version >= 4
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.node_id = node_id
        self.host = host
        self.port = port
        self.coordinators = coordinators

    @classmethod
    def decode(cls, reader: Reader, version: int) -> FindCoordinatorResponse:
        one = cls.__new__(cls)
        if version >= 1:
            one.throttle_time_ms = reader.int32()
        else:
            one.throttle_time_ms = 0
        if version <= 3:
            one.error_code = ErrorCode(reader.int16())
        else:
            one.error_code = ErrorCode.NONE
        if 1 <= version <= 3:
            one.error_message = reader.nullable_string()
        else:
            one.error_message = None
        if version <= 3:
            one.node_id = reader.int32()
            one.host = reader.string()
            one.port = reader.int32()
        else:
            one.node_id = 0
            one.host = ""
            one.port = 0
        if version >= 4:
            one.coordinators = reader.array(Coordinator.decode, version)
        else:
            one.coordinators = ()
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        if version >= 1:
            writer.int32(self.throttle_time_ms)
        if version <= 3:
            writer.int16(self.error_code)
        if 1 <= version <= 3:
            writer.nullable_message(self.error_message)
        if version <= 3:
            writer.int32(self.node_id)
            writer.string(self.host)
            writer.int32(self.port)
        if version >= 4:
            writer.array(self.coordinators, version)
        writer.tagged_fields()
