"""Heartbeat (12), versions 0 to 4.

v3  static members (KIP-345)
v4  flexible (KIP-482)
"""

from __future__ import annotations

from typing import Final

from kafka_sidecar.apis.api import Api, Call, Services
from kafka_sidecar.apis.needs import AclOperation, on_group
from kafka_sidecar.apis.routing.to_coordinator import to_coordinator
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse


async def _handle(services: Services, call: Call, request: HeartbeatRequest) -> HeartbeatResponse:
    coordinator = services.groups.coordinator
    error = coordinator.heartbeat(request.group_id, request.member_id, request.group_instance_id, request.generation_id)
    return HeartbeatResponse(error_code=error)


def _refuse(_: Call, __: HeartbeatRequest, error: ErrorCode) -> HeartbeatResponse:
    # While its group is loaded a member's heartbeat succeeds, as in Kafka (GroupCoordinatorService.heartbeat): clients
    # do not expect the error here, and aiokafka's member would not get over it.
    return HeartbeatResponse(error_code=ErrorCode.NONE if error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS else error)


API: Final = Api(
    HeartbeatRequest,
    HeartbeatResponse,
    0,
    4,
    to_coordinator(_handle, _refuse),
    needs=on_group(AclOperation.READ),
    is_passed_on=True,
)
