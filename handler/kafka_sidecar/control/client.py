"""The Admin service of a running sidecar, for Python programs.

Where the record with a Kafka offset is for Pulsar's own client:

    from kafka_sidecar.control.client import ControlClient

    with ControlClient("localhost:9095") as sidecar:
        found = sidecar.find_message_id("orders", partition=0, offset=1_234)

    message_id = pulsar.MessageId(found.partition, found.ledger, found.entry, found.batch_index)
    reader = client.create_reader("persistent://public/default/orders-partition-0", message_id,
    start_message_id_inclusive=True)
"""

from __future__ import annotations

from types import TracebackType
from typing import Any, Final

from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse

import grpc
from kafka_sidecar.control.v1 import admin_pb2 as pb
from kafka_sidecar.errors import SidecarError

_HEALTH: Final = "grpc.health.v1.Health"
_SERVING: Final = HealthCheckResponse.SERVING
_SERVICE: Final = pb.DESCRIPTOR.services_by_name["Admin"].full_name


class ControlFailed(SidecarError):
    """The sidecar has refused, or can't be asked; `code` is gRPC's."""

    def __init__(self, message: str, code: Any) -> None:
        super().__init__(message)
        self.code = code


class ControlClient:
    def __init__(self, address: str, seconds: float = 30.0) -> None:
        """`address`: where the sidecar's control.listen is. A question waits for so many seconds."""
        self._address = address
        self._seconds = seconds
        self._channel = grpc.insecure_channel(address)

    def __enter__(self) -> ControlClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._channel.close()

    def is_healthy(self, service: str = "ready") -> bool:
        """Whether it serves Kafka clients (`ready`), or works at all (`live`)."""
        return bool(
            self._call(f"/{_HEALTH}/Check", HealthCheckRequest(service=service), HealthCheckResponse).status == _SERVING
        )

    def find_message_id(self, topic: str, partition: int, offset: int) -> pb.MessageId:
        """Where the record with an offset is in Pulsar."""
        request = pb.FindMessageIdRequest(topic=topic, partition=partition, offset=offset)
        found: pb.FindMessageIdResponse = self._ask("FindMessageId", request, pb.FindMessageIdResponse)
        return found.message_id

    def find_offset(self, topic: str, partition: int, ledger: int, entry: int, batch_index: int = -1) -> int:
        """The offset of a message of Pulsar's."""
        message_id = pb.MessageId(ledger=ledger, entry=entry, partition=partition, batch_index=batch_index)
        found: pb.FindOffsetResponse = self._ask(
            "FindOffset", pb.FindOffsetRequest(topic=topic, message_id=message_id), pb.FindOffsetResponse
        )
        return found.offset

    def partitions(self, topic: str = "") -> list[pb.Partition]:
        """Those in use on this sidecar."""
        return list(
            self._ask("ListPartitions", pb.ListPartitionsRequest(topic=topic), pb.ListPartitionsResponse).partitions
        )

    def groups(self) -> list[pb.Group]:
        """Those that this sidecar coordinates."""
        return list(self._ask("ListGroups", pb.ListGroupsRequest(), pb.ListGroupsResponse).groups)

    def fleet(self) -> list[pb.FleetMember]:
        return list(self._ask("DescribeFleet", pb.DescribeFleetRequest(), pb.DescribeFleetResponse).members)

    def skip(self, topic: str, partition: int, offset: int) -> pb.SkipEntryResponse:
        """Pass over the entry at an offset that can't be read, on every sidecar."""
        request = pb.SkipEntryRequest(topic=topic, partition=partition, offset=offset)
        skipped: pb.SkipEntryResponse = self._ask("SkipEntry", request, pb.SkipEntryResponse)
        return skipped

    def drain(self) -> None:
        """Have it hand over and stop. Returns when it has begun."""
        self._ask("Drain", pb.DrainRequest(), pb.DrainResponse)

    def log_levels(self) -> dict[str, str]:
        return {
            one.name: one.level
            for one in self._ask("ListLogLevels", pb.ListLogLevelsRequest(), pb.ListLogLevelsResponse).loggers
        }

    def set_log_level(self, logger: str, level: str) -> None:
        """Until it ends; an empty level is that of the logger above it."""
        self._ask("SetLogLevel", pb.SetLogLevelRequest(logger=logger, level=level), pb.SetLogLevelResponse)

    def _ask(self, method: str, request: Any, response: Any) -> Any:
        return self._call(f"/{_SERVICE}/{method}", request, response)

    def _call(self, path: str, request: Any, response: Any) -> Any:
        call = self._channel.unary_unary(
            path, request_serializer=type(request).SerializeToString, response_deserializer=response.FromString
        )
        try:
            return call(request, timeout=self._seconds)
        except grpc.RpcError as error:
            details: Any = error
            if details.code() is grpc.StatusCode.UNAVAILABLE and "failed to connect" in details.details():
                raise ControlFailed(
                    f"no sidecar answers at {self._address}: give its control.listen", details.code()
                ) from error
            raise ControlFailed(details.details(), details.code()) from error
