"""JoinGroup (11), versions 0 to 9.

v1   a rebalance timeout of its own; before, it is the session timeout
v4   a member that comes without an id is given one, and comes again (KIP-394)
v5   static members (KIP-345)
v6   flexible (KIP-482)
v7   the protocol type in the response, and a null protocol
v8   why a member joins (KIP-800), of no account
v9   the response may have the leader skip its assignment (KIP-814)
"""

from __future__ import annotations

from typing import Final

from kafka_sidecar.apis.api import Api, Call, Services
from kafka_sidecar.apis.needs import AclOperation, on_group
from kafka_sidecar.apis.routing.member_words import joining_in_full
from kafka_sidecar.apis.routing.to_coordinator import client_host, to_coordinator
from kafka_sidecar.groups.classic import members
from kafka_sidecar.groups.coordinator import new_member_id
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse, JoinGroupResponseMember

REBALANCE_TIMEOUT_SINCE: Final = 1
MEMBER_ID_REQUIRED_SINCE: Final = 4
SKIP_ASSIGNMENT_SINCE: Final = 9


async def _handle(services: Services, call: Call, request: JoinGroupRequest) -> JoinGroupResponse:
    rebalance_timeout = (
        request.rebalance_timeout_ms if call.version >= REBALANCE_TIMEOUT_SINCE else request.session_timeout_ms
    )
    join = members.MemberJoin(
        request.member_id,
        request.group_instance_id,
        call.client_id or "",
        client_host(call),
        request.session_timeout_ms,
        rebalance_timeout,
        request.protocol_type,
        tuple((protocol.name, protocol.metadata) for protocol in request.protocols),
        needs_member_id=call.version >= MEMBER_ID_REQUIRED_SINCE,
        may_skip_assignment=call.version >= SKIP_ASSIGNMENT_SINCE,
        new_member_id=new_member_id(request.group_instance_id or call.client_id or ""),
    )
    return _response(await services.groups.coordinator.join(join, request.group_id))


def _refuse(_: Call, request: JoinGroupRequest, error: ErrorCode) -> JoinGroupResponse:
    return _response(members.JoinResult(error, request.member_id))


def _response(joined: members.JoinResult) -> JoinGroupResponse:
    return JoinGroupResponse(
        error_code=joined.error,
        generation_id=joined.generation,
        protocol_type=joined.protocol_type,
        protocol_name=joined.protocol,
        leader=joined.leader or "",
        skip_assignment=joined.skip_assignment,
        member_id=joined.member_id,
        members=[
            JoinGroupResponseMember(member_id=member_id, group_instance_id=instance_id, metadata=metadata)
            for member_id, instance_id, metadata in joined.members
        ],
    )


_routed: Final = joining_in_full(to_coordinator(_handle, _refuse))

API: Final = Api(
    JoinGroupRequest,
    JoinGroupResponse,
    0,
    9,
    _routed,
    needs=on_group(AclOperation.READ),
    ends_with_client=True,
    is_passed_on=True,
)
