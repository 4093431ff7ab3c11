"""Made by `make messages` from Kafka's schemas: not to be edited."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar
from uuid import UUID

from kafka_sidecar.wire.buffers import Reader, Writer
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.message import Message, Struct


class DeleteTopicState(Struct):
    __slots__ = ("name", "topic_id")

    def __init__(
        self,
        *,
        name: str | None = None,
        topic_id: UUID | None = None,
    ) -> None:
        self.name = name
        self.topic_id = topic_id

    @classmethod
    def decode(cls, reader: Reader, version: int) -> DeleteTopicState:
        one = cls.__new__(cls)
        one.name = reader.nullable_string()
        one.topic_id = reader.uuid()
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.nullable_string(self.name)
        writer.uuid(self.topic_id)
        writer.tagged_fields()


class DeleteTopicsRequest(Message):
    __slots__ = ("topic_names", "topics", "timeout_ms")

    KEY: ClassVar[int] = 20
    FLEXIBLE_SINCE: ClassVar[int] = 4

    def __init__(
        self,
        *,
        topic_names: Sequence[str] = (),  # version <= 5
        topics: Sequence[DeleteTopicState] = (),  # version >= 6
        timeout_ms: int = 0,
    ) -> None:
        self.topic_names = topic_names
        self.topics = topics
        self.timeout_ms = timeout_ms

    @classmethod
    def decode(cls, reader: Reader, version: int) -> DeleteTopicsRequest:
        one = cls.__new__(cls)
        if version <= 5:
            one.topic_names = reader.string_array()
        else:
            one.topic_names = ()
        if version >= 6:
            one.topics = reader.array(DeleteTopicState.decode, version)
        else:
            one.topics = ()
        one.timeout_ms = reader.int32()
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        if version <= 5:
            writer.string_array(self.topic_names)
        if version >= 6:
            writer.array(self.topics, version)
        writer.int32(self.timeout_ms)
        writer.tagged_fields()


class DeletableTopicResult(Struct):
    __slots__ = ("name", "topic_id", "error_code", "error_message")

    def __init__(
        self,
        *,
        name: str | None = None,
        topic_id: UUID | None = None,  # version >= 6
        error_code: ErrorCode = ErrorCode.NONE,
        error_message: str | None = None,  # version >= 5
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.error_code = error_code
        self.error_message = error_message

    @classmethod
    def decode(cls, reader: Reader, version: int) -> DeletableTopicResult:
        one = cls.__new__(cls)
        one.name = reader.nullable_string() if version >= 6 else reader.string()
        if version >= 6:
            one.topic_id = reader.uuid()
        else:
            one.topic_id = None
        one.error_code = ErrorCode(reader.int16())
        if version >= 5:
            one.error_message = reader.nullable_string()
        else:
            one.error_message = None
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.nullable_string(self.name) if version >= 6 else writer.string(self.name or "")
        if version >= 6:
            writer.uuid(self.topic_id)
        writer.int16(self.error_code)
        if version >= 5:
            writer.nullable_message(self.error_message)
        writer.tagged_fields()


class DeleteTopicsResponse(Message):
    __slots__ = ("throttle_time_ms", "responses")

    KEY: ClassVar[int] = 20
    FLEXIBLE_SINCE: ClassVar[int] = 4

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        responses: Sequence[DeletableTopicResult] = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.responses = responses

    @classmethod
    def decode(cls, reader: Reader, version: int) -> DeleteTopicsResponse:
        one = cls.__new__(cls)
        one.throttle_time_ms = reader.int32()
        one.responses = reader.array(DeletableTopicResult.decode, version)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.throttle_time_ms)
        writer.array(self.responses, version)
        writer.tagged_fields()
