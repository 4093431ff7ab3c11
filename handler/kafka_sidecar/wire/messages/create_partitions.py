"""Made by `make messages` from Kafka's schemas: not to be edited."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as Layout
from typing import ClassVar, Final

from kafka_sidecar.wire.buffers import Reader, Writer
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.message import Message, Struct

_IX: Final = Layout(">i?")


class CreatePartitionsAssignment(Struct):
    __slots__ = ("broker_ids",)

    def __init__(
        self,
        *,
        broker_ids: Sequence[int] = (),
    ) -> None:
        self.broker_ids = broker_ids

    @classmethod
    def decode(cls, reader: Reader, version: int) -> CreatePartitionsAssignment:
        one = cls.__new__(cls)
        one.broker_ids = reader.int32_array()
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32_array(self.broker_ids)
        writer.tagged_fields()


class CreatePartitionsTopic(Struct):
    __slots__ = ("name", "count", "assignments")

    def __init__(
        self,
        *,
        name: str = "",
        count: int = 0,
        assignments: Sequence[CreatePartitionsAssignment] | None = (),
    ) -> None:
        self.name = name
        self.count = count
        self.assignments = assignments

    @classmethod
    def decode(cls, reader: Reader, version: int) -> CreatePartitionsTopic:
        one = cls.__new__(cls)
        one.name = reader.string()
        one.count = reader.int32()
        one.assignments = reader.nullable_array(CreatePartitionsAssignment.decode, version)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.string(self.name)
        writer.int32(self.count)
        writer.nullable_array(self.assignments, version)
        writer.tagged_fields()


class CreatePartitionsRequest(Message):
    __slots__ = ("topics", "timeout_ms", "validate_only")

    KEY: ClassVar[int] = 37
    FLEXIBLE_SINCE: ClassVar[int] = 2

    def __init__(
        self,
        *,
        topics: Sequence[CreatePartitionsTopic] = (),
        timeout_ms: int = 0,
        validate_only: bool = False,
    ) -> None:
        self.topics = topics
        self.timeout_ms = timeout_ms
        self.validate_only = validate_only

    @classmethod
    def decode(cls, reader: Reader, version: int) -> CreatePartitionsRequest:
        one = cls.__new__(cls)
        one.topics = reader.array(CreatePartitionsTopic.decode, version)
        one.timeout_ms, one.validate_only = reader.unpack(_IX)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.array(self.topics, version)
        writer.out += _IX.pack(self.timeout_ms, self.validate_only)
        writer.tagged_fields()


class CreatePartitionsTopicResult(Struct):
    __slots__ = ("name", "error_code", "error_message")

    def __init__(
        self,
        *,
        name: str = "",
        error_code: ErrorCode = ErrorCode.NONE,
        error_message: str | None = None,
    ) -> None:
        self.name = name
        self.error_code = error_code
        self.error_message = error_message

    @classmethod
    def decode(cls, reader: Reader, version: int) -> CreatePartitionsTopicResult:
        one = cls.__new__(cls)
        one.name = reader.string()
        one.error_code = ErrorCode(reader.int16())
        one.error_message = reader.nullable_string()
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.string(self.name)
        writer.int16(self.error_code)
        writer.nullable_message(self.error_message)
        writer.tagged_fields()


class CreatePartitionsResponse(Message):
    __slots__ = ("throttle_time_ms", "results")

    KEY: ClassVar[int] = 37
    FLEXIBLE_SINCE: ClassVar[int] = 2

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        results: Sequence[CreatePartitionsTopicResult] = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results = results

    @classmethod
    def decode(cls, reader: Reader, version: int) -> CreatePartitionsResponse:
        one = cls.__new__(cls)
        one.throttle_time_ms = reader.int32()
        one.results = reader.array(CreatePartitionsTopicResult.decode, version)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.throttle_time_ms)
        writer.array(self.results, version)
        writer.tagged_fields()
