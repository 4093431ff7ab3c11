"""LeaveGroup (13), versions 0 to 5.

v3  many members, also by instance: an administrator removes static ones (KIP-345)
v4  flexible (KIP-482)
v5  why a member leaves (KIP-800), of no account
"""

from __future__ import annotations

from typing import Final

from kafka_sidecar.apis.api import Api, Call, Services
from kafka_sidecar.apis.needs import AclOperation, on_group
from kafka_sidecar.apis.routing.to_coordinator import to_coordinator_in_turn
from kafka_sidecar.groups.classic import members
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberResponse

MANY_SINCE: Final = 3


async def _handle(services: Services, call: Call, request: LeaveGroupRequest) -> LeaveGroupResponse:
    coordinator = services.groups.coordinator
    if call.version < MANY_SINCE:
        (error,) = await coordinator.leave(request.group_id, [members.MemberIdentity(request.member_id, None)])
        return LeaveGroupResponse(error_code=error)
    leaving = [members.MemberIdentity(member.member_id, member.group_instance_id) for member in request.members]
    errors = await coordinator.leave(request.group_id, leaving)
    return LeaveGroupResponse(
        members=[
            MemberResponse(member_id=member.member_id, group_instance_id=member.instance_id, error_code=error)
            for member, error in zip(leaving, errors, strict=True)
        ]
    )


def _refuse(_: Call, __: LeaveGroupRequest, error: ErrorCode) -> LeaveGroupResponse:
    return LeaveGroupResponse(error_code=error)


API: Final = Api(
    LeaveGroupRequest,
    LeaveGroupResponse,
    0,
    5,
    to_coordinator_in_turn(_handle, _refuse),
    needs=on_group(AclOperation.READ),
    is_passed_on=True,
)
