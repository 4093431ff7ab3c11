"""Made by `make messages` from Kafka's schemas: not to be edited."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct as Layout
from typing import ClassVar, Final

from kafka_sidecar.wire.buffers import Reader, Writer
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.message import Message, Struct

_IH: Final = Layout(">ih")


class DescribeClusterRequest(Message):
    __slots__ = ("include_cluster_authorized_operations", "endpoint_type", "include_fenced_brokers")

    KEY: ClassVar[int] = 60
    FLEXIBLE_SINCE: ClassVar[int] = 0

    def __init__(
        self,
        *,
        include_cluster_authorized_operations: bool = False,
        endpoint_type: int = 1,  # version >= 1
        include_fenced_brokers: bool = False,  # version >= 2
    ) -> None:
        self.include_cluster_authorized_operations = include_cluster_authorized_operations
        self.endpoint_type = endpoint_type
        self.include_fenced_brokers = include_fenced_brokers

    @classmethod
    def decode(cls, reader: Reader, version: int) -> DescribeClusterRequest:
        one = cls.__new__(cls)
        one.include_cluster_authorized_operations = reader.bool_()
        if version >= 1:
            one.endpoint_type = reader.int8()
        else:
            one.endpoint_type = 1
        if version >= 2:
            one.include_fenced_brokers = reader.bool_()
        else:
            one.include_fenced_brokers = False
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.bool_(self.include_cluster_authorized_operations)
        if version >= 1:
            writer.int8(self.endpoint_type)
        if version >= 2:
            writer.bool_(self.include_fenced_brokers)
        writer.tagged_fields()


class DescribeClusterBroker(Struct):
    __slots__ = ("broker_id", "host", "port", "rack", "is_fenced")

    def __init__(
        self,
        *,
        broker_id: int = 0,
        host: str = "",
        port: int = 0,
        rack: str | None = None,
        is_fenced: bool = False,  # version >= 2
    ) -> None:
        self.broker_id = broker_id
        self.host = host
        self.port = port
        self.rack = rack
        self.is_fenced = is_fenced

    @classmethod
    def decode(cls, reader: Reader, version: int) -> DescribeClusterBroker:
        one = cls.__new__(cls)
        one.broker_id = reader.int32()
        one.host = reader.string()
        one.port = reader.int32()
        one.rack = reader.nullable_string()
        if version >= 2:
            one.is_fenced = reader.bool_()
        else:
            one.is_fenced = False
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.int32(self.broker_id)
        writer.string(self.host)
        writer.int32(self.port)
        writer.nullable_string(self.rack)
        if version >= 2:
            writer.bool_(self.is_fenced)
        writer.tagged_fields()


class DescribeClusterResponse(Message):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "error_message",
        "endpoint_type",
        "cluster_id",
        "controller_id",
        "brokers",
        "cluster_authorized_operations",
    )

    KEY: ClassVar[int] = 60
    FLEXIBLE_SINCE: ClassVar[int] = 0

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: ErrorCode = ErrorCode.NONE,
        error_message: str | None = None,
        endpoint_type: int = 1,  # version >= 1
        cluster_id: str = "",
        controller_id: int = -1,
        brokers: Sequence[DescribeClusterBroker] = (),
        cluster_authorized_operations: int = -2147483648,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.endpoint_type = endpoint_type
        self.cluster_id = cluster_id
        self.controller_id = controller_id
        self.brokers = brokers
        self.cluster_authorized_operations = cluster_authorized_operations

    @classmethod
    def decode(cls, reader: Reader, version: int) -> DescribeClusterResponse:
        one = cls.__new__(cls)
        one.throttle_time_ms, one.error_code = reader.unpack(_IH)
        one.error_code = ErrorCode(one.error_code)
        one.error_message = reader.nullable_string()
        if version >= 1:
            one.endpoint_type = reader.int8()
        else:
            one.endpoint_type = 1
        one.cluster_id = reader.string()
        one.controller_id = reader.int32()
        one.brokers = reader.array(DescribeClusterBroker.decode, version)
        one.cluster_authorized_operations = reader.int32()
        reader.skip_tagged_fields()
        return one

    def encode(self, writer: Writer, version: int) -> None:
        writer.out += _IH.pack(self.throttle_time_ms, self.error_code)
        writer.nullable_message(self.error_message)
        if version >= 1:
            writer.int8(self.endpoint_type)
        writer.string(self.cluster_id)
        writer.int32(self.controller_id)
        writer.array(self.brokers, version)
        writer.int32(self.cluster_authorized_operations)
        writer.tagged_fields()
