"""SyncGroup (14), versions 0 to 5.

v3  static members (KIP-345)
v4  flexible (KIP-482)
v5  protocol type and name, checked and answered (KIP-559)
"""

from __future__ import annotations

from typing import Final

from kafka_sidecar.apis.api import Api, Call, Services
from kafka_sidecar.apis.needs import AclOperation, on_group
from kafka_sidecar.apis.routing.member_words import syncing_in_full
from kafka_sidecar.apis.routing.to_coordinator import to_coordinator
from kafka_sidecar.groups.classic import members
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse


async def _handle(services: Services, call: Call, request: SyncGroupRequest) -> SyncGroupResponse:
    sync = members.MemberSync(
        request.member_id,
        request.group_instance_id,
        request.generation_id,
        request.protocol_type,
        request.protocol_name,
        {one.member_id: one.assignment for one in request.assignments},
    )
    return _response(await services.groups.coordinator.sync(sync, request.group_id))


def _refuse(_: Call, __: SyncGroupRequest, error: ErrorCode) -> SyncGroupResponse:
    return _response(members.sync_refused(error))


def _response(synced: members.SyncResult) -> SyncGroupResponse:
    return SyncGroupResponse(
        error_code=synced.error,
        protocol_type=synced.protocol_type,
        protocol_name=synced.protocol,
        assignment=synced.assignment,
    )


_routed: Final = syncing_in_full(to_coordinator(_handle, _refuse))

API: Final = Api(
    SyncGroupRequest,
    SyncGroupResponse,
    0,
    5,
    _routed,
    needs=on_group(AclOperation.READ),
    ends_with_client=True,
    is_passed_on=True,
)
