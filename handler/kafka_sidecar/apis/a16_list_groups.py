"""ListGroups (16), versions 0 to 5.

v3  flexible (KIP-482)
v4  states, also to filter by (KIP-518)
v5  types, also to filter by (KIP-848)

The groups that this sidecar coordinates, and those of others that Metadata does not name: tools ask
every node that they know, and put the answers together.
"""

from __future__ import annotations

import asyncio
from typing import Final

from kafka_sidecar.apis.api import Api, Call, Services
from kafka_sidecar.apis.common.late import LATE_GROUP, in_time
from kafka_sidecar.apis.needs import AclOperation, on_cluster, on_group
from kafka_sidecar.apis.routing.fan_out import ask_peer
from kafka_sidecar.coordination.errors import CoordinatorError
from kafka_sidecar.groups.classic.machine import ClassicGroup
from kafka_sidecar.groups.effects import Group
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse

CLASSIC: Final = "Classic"
CONSUMER: Final = "Consumer"


async def _handle(services: Services, call: Call, request: ListGroupsRequest) -> ListGroupsResponse:
    try:
        return await in_time(call, _list(services, call, request), ListGroupsResponse(error_code=LATE_GROUP))
    except CoordinatorError as refused:
        return ListGroupsResponse(error_code=refused.error)


async def _list(services: Services, call: Call, request: ListGroupsRequest) -> ListGroupsResponse:
    others = [] if call.forwarded else await services.groups.leaders.all()
    groups = services.groups.coordinator.all_groups()
    states = {state.lower() for state in request.states_filter}
    types = {kind.lower() for kind in request.types_filter}
    listed = [
        ListedGroup(
            group_id=group.group_id,
            protocol_type=group.protocol_type or "",
            group_state=group.state.value,
            group_type=_type(group),
        )
        for group in groups
        if (not states or group.state.value.lower() in states) and (not types or _type(group).lower() in types)
    ]
    unreachable = [
        leader for leader in others if not services.groups.leaders.is_reachable(leader, call.client.is_external)
    ]
    for answer in await asyncio.gather(
        *(ask_peer(services, call, leader, request, ListGroupsResponse) for leader in unreachable)
    ):
        if answer.error_code is not ErrorCode.NONE:
            raise CoordinatorError(answer.error_code)
        listed += answer.groups
    return ListGroupsResponse(groups=listed)


def _type(group: Group) -> str:
    return CLASSIC if isinstance(group, ClassicGroup) else CONSUMER


API: Final = Api(
    ListGroupsRequest,
    ListGroupsResponse,
    0,
    5,
    _handle,
    needs=on_group(AclOperation.DESCRIBE) + on_cluster(AclOperation.DESCRIBE),
    ends_with_client=True,
    is_passed_on=True,
)
