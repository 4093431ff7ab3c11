"""Made by `make messages` from Kafka's schemas: not to be edited."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from kafka_sidecar.wire.buffers import Reader, Writer
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.message import Message, Struct


class ListGroupsRequest(Message):
    __slots__ = ("states_filter", "types_filter")

    KEY: ClassVar[int] = 16
    FLEXIBLE_SINCE: ClassVar[int] = 3

    def __init__(
        self,
        *,
        states_filter: Sequence[str] = (),  # version >= 4
        types_filter: Sequence[str] = (),  # version >= 5
    ) -> None:
        self.states_filter = states_filter
        self.types_filter = types_filter

    @classmethod
    def decode(cls, reader: Reader, version: int) -> ListGroupsRequest:
        one = cls.__new__(cls)
        if version >= 4:
            one.states_filter = reader.string_array()
        else:
            one.states_filter = ()
        if version >= 5:
            one.types_filter = reader.string_array()
        else:
            one.types_filter = ()
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        if version >= 4:
            writer.string_array(self.states_filter)
        if version >= 5:
            writer.string_array(self.types_filter)
        writer.tagged_fields()


class ListedGroup(Struct):
    __slots__ = ("group_id", "protocol_type", "group_state", "group_type")

    def __init__(
        self,
        *,
        group_id: str = "",
        protocol_type: str = "",
        group_state: str = "",  # version >= 4
        group_type: str = "",  # version >= 5
    ) -> None:
        self.group_id = group_id
        self.protocol_type = protocol_type
        self.group_state = group_state
        self.group_type = group_type

    @classmethod
    def decode(cls, reader: Reader, version: int) -> ListedGroup:
        one = cls.__new__(cls)
        one.group_id = reader.string()
        one.protocol_type = reader.string()
        if version >= 4:
            one.group_state = reader.string()
        else:
            one.group_state = ""
        if version >= 5:
            one.group_type = reader.string()
        else:
            one.group_type = ""
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.string(self.group_id)
        writer.string(self.protocol_type)
        if version >= 4:
            writer.string(self.group_state)
        if version >= 5:
            writer.string(self.group_type)
        writer.tagged_fields()


class ListGroupsResponse(Message):
    __slots__ = ("throttle_time_ms", "error_code", "groups")

    KEY: ClassVar[int] = 16
    FLEXIBLE_SINCE: ClassVar[int] = 3

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,  # version >= 1
        error_code: ErrorCode = ErrorCode.NONE,
        groups: Sequence[ListedGroup] = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.groups = groups

    @classmethod
    def decode(cls, reader: Reader, version: int) -> ListGroupsResponse:
        one = cls.__new__(cls)
        if version >= 1:
            one.throttle_time_ms = reader.int32()
        else:
            one.throttle_time_ms = 0
        one.error_code = ErrorCode(reader.int16())
        one.groups = reader.array(ListedGroup.decode, version)
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        if version >= 1:
            writer.int32(self.throttle_time_ms)
        writer.int16(self.error_code)
        writer.array(self.groups, version)
        writer.tagged_fields()
