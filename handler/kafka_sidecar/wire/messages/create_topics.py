"""Made by `make messages` from Kafka's schemas: not to be edited."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as Layout
from typing import ClassVar, Final
from uuid import UUID

from kafka_sidecar.wire.buffers import FlexibleWriter, Reader, Writer
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.message import Message, Struct

_XBX: Final = Layout(">?b?")
_IX: Final = Layout(">i?")
_IH: Final = Layout(">ih")


class CreatableTopicConfig(Struct):
    __slots__ = ("name", "value")

    def __init__(
        self,
        *,
        name: str = "",
        value: str | None = None,
    ) -> None:
        self.name = name
        self.value = value

    @classmethod
    def decode(cls, reader: Reader, version: int) -> CreatableTopicConfig:
        one = cls.__new__(cls)
        one.name = reader.string()
        one.value = reader.nullable_string()
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.string(self.name)
        writer.nullable_string(self.value)
        writer.tagged_fields()


class CreatableReplicaAssignment(Struct):
    __slots__ = ("partition_index", "broker_ids")

    def __init__(
        self,
        *,
        partition_index: int = 0,
        broker_ids: Sequence[int] = (),
    ) -> None:
        self.partition_index = partition_index
        self.broker_ids = broker_ids

    @classmethod
    def decode(cls, reader: Reader, version: int) -> CreatableReplicaAssignment:
        one = cls.__new__(cls)
        one.partition_index = reader.int32()
        one.broker_ids = reader.int32_array()
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.partition_index)
        writer.int32_array(self.broker_ids)
        writer.tagged_fields()


class CreatableTopic(Struct):
    __slots__ = ("name", "num_partitions", "replication_factor", "assignments", "configs")

    def __init__(
        self,
        *,
        name: str = "",
        num_partitions: int = 0,
        replication_factor: int = 0,
        assignments: Sequence[CreatableReplicaAssignment] = (),
        configs: Sequence[CreatableTopicConfig] = (),
    ) -> None:
        self.name = name
        self.num_partitions = num_partitions
        self.replication_factor = replication_factor
        self.assignments = assignments
        self.configs = configs

    @classmethod
    def decode(cls, reader: Reader, version: int) -> CreatableTopic:
        one = cls.__new__(cls)
        one.name = reader.string()
        one.num_partitions, one.replication_factor = reader.unpack(_IH)
        one.assignments = reader.array(CreatableReplicaAssignment.decode, version)
        one.configs = reader.array(CreatableTopicConfig.decode, version)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.string(self.name)
        writer.out += _IH.pack(self.num_partitions, self.replication_factor)
        writer.array(self.assignments, version)
        writer.array(self.configs, version)
        writer.tagged_fields()


class CreateTopicsRequest(Message):
    __slots__ = ("topics", "timeout_ms", "validate_only")

    KEY: ClassVar[int] = 19
    FLEXIBLE_SINCE: ClassVar[int] = 5

    def __init__(
        self,
        *,
        topics: Sequence[CreatableTopic] = (),
        timeout_ms: int = 60000,
        validate_only: bool = False,
    ) -> None:
        self.topics = topics
        self.timeout_ms = timeout_ms
        self.validate_only = validate_only

    @classmethod
    def decode(cls, reader: Reader, version: int) -> CreateTopicsRequest:
        one = cls.__new__(cls)
        one.topics = reader.array(CreatableTopic.decode, version)
        one.timeout_ms, one.validate_only = reader.unpack(_IX)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.array(self.topics, version)
        writer.out += _IX.pack(self.timeout_ms, self.validate_only)
        writer.tagged_fields()


class CreatableTopicConfigs(Struct):
    __slots__ = ("name", "value", "read_only", "config_source", "is_sensitive")

    def __init__(
        self,
        *,
        name: str = "",
        value: str | None = None,
        read_only: bool = False,
        config_source: int = -1,
        is_sensitive: bool = False,
    ) -> None:
        self.name = name
        self.value = value
        self.read_only = read_only
        self.config_source = config_source
        self.is_sensitive = is_sensitive

    @classmethod
    def decode(cls, reader: Reader, version: int) -> CreatableTopicConfigs:
        one = cls.__new__(cls)
        one.name = reader.string()
        one.value = reader.nullable_string()
        one.read_only, one.config_source, one.is_sensitive = reader.unpack(_XBX)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.string(self.name)
        writer.nullable_string(self.value)
        writer.out += _XBX.pack(self.read_only, self.config_source, self.is_sensitive)
        writer.tagged_fields()


class CreatableTopicResult(Struct):
    __slots__ = (
        "name",
        "topic_id",
        "error_code",
        "error_message",
        "num_partitions",
        "replication_factor",
        "configs",
        "topic_config_error_code",
    )

    def __init__(
        self,
        *,
        name: str = "",
        topic_id: UUID | None = None,  # version >= 7
        error_code: ErrorCode = ErrorCode.NONE,
        error_message: str | None = None,
        num_partitions: int = -1,  # version >= 5
        replication_factor: int = -1,  # version >= 5
        configs: Sequence[CreatableTopicConfigs] | None = (),  # version >= 5
        topic_config_error_code: int = 0,  # version >= 5
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.error_code = error_code
        self.error_message = error_message
        self.num_partitions = num_partitions
        self.replication_factor = replication_factor
        self.configs = configs
        self.topic_config_error_code = topic_config_error_code

    @classmethod
    def decode(cls, reader: Reader, version: int) -> CreatableTopicResult:
        one = cls.__new__(cls)
        one.name = reader.string()
        if version >= 7:
            one.topic_id = reader.uuid()
        else:
            one.topic_id = None
        one.error_code = ErrorCode(reader.int16())
        one.error_message = reader.nullable_string()
        if version >= 5:
            one.num_partitions, one.replication_factor = reader.unpack(_IH)
            one.configs = reader.nullable_array(CreatableTopicConfigs.decode, version)
        else:
            one.num_partitions = -1
            one.replication_factor = -1
            one.configs = ()
        one.topic_config_error_code = 0
        for tag, field in reader.tagged_fields():
            if tag == 0 and version >= 5:
                one.topic_config_error_code = field.int16()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.string(self.name)
        if version >= 7:
            writer.uuid(self.topic_id)
        writer.int16(self.error_code)
        writer.nullable_message(self.error_message)
        if version >= 5:
            writer.out += _IH.pack(self.num_partitions, self.replication_factor)
            writer.nullable_array(self.configs, version)
        tagged: dict[int, FlexibleWriter] = {}
        if self.topic_config_error_code != 0 and version >= 5:
            field = tagged[0] = FlexibleWriter(bytearray())
            field.int16(self.topic_config_error_code)
        writer.tagged_fields(tagged)


class CreateTopicsResponse(Message):
    __slots__ = ("throttle_time_ms", "topics")

    KEY: ClassVar[int] = 19
    FLEXIBLE_SINCE: ClassVar[int] = 5

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: Sequence[CreatableTopicResult] = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = topics

    @classmethod
    def decode(cls, reader: Reader, version: int) -> CreateTopicsResponse:
        one = cls.__new__(cls)
        one.throttle_time_ms = reader.int32()
        one.topics = reader.array(CreatableTopicResult.decode, version)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.throttle_time_ms)
        writer.array(self.topics, version)
        writer.tagged_fields()
