"""DescribeGroups (15), versions 0 to 6.

v3  authorized operations (KIP-430), never given
v4  static members (KIP-345)
v5  flexible (KIP-482)
v6  an unknown group is GROUP_ID_NOT_FOUND with a message (KIP-1043); before, it is Dead
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kafka_sidecar.apis.api import Api, Call, Services
from kafka_sidecar.apis.needs import AclOperation, on_group
from kafka_sidecar.apis.routing.fan_out import Parts, ask_peer, fan_out
from kafka_sidecar.apis.routing.member_words import described_in_own
from kafka_sidecar.coordination.errors import CoordinatorError
from kafka_sidecar.groups.classic.machine import ClassicGroup
from kafka_sidecar.groups.classic.state import State
from kafka_sidecar.model.sidecar import SidecarInfo
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)

NOT_FOUND_SINCE: Final = 6


async def _handle(services: Services, call: Call, request: DescribeGroupsRequest) -> DescribeGroupsResponse:
    async def here(groups: Sequence[str]) -> list[DescribedGroup]:
        return [_describe(services, call, group_id) for group_id in groups]

    async def elsewhere(leader: SidecarInfo, groups: Sequence[str]) -> Sequence[DescribedGroup]:
        part = DescribeGroupsRequest(groups=groups, include_authorized_operations=request.include_authorized_operations)
        return (await ask_peer(services, call, leader, part, DescribeGroupsResponse)).groups

    parts = Parts(group_of=str, here=here, elsewhere=elsewhere, refuse=_refused)
    groups = await fan_out(services, call, parts, request.groups)
    return DescribeGroupsResponse(groups=await described_in_own(services, call, groups))


def _describe(services: Services, call: Call, group_id: str) -> DescribedGroup:
    try:
        group = services.groups.coordinator.describe(group_id)
    except CoordinatorError as refused:
        return _refused(group_id, refused.error)
    if isinstance(group, ClassicGroup):  # the others are asked for by ConsumerGroupDescribe
        return _described(group)
    if call.version < NOT_FOUND_SINCE:
        return DescribedGroup(group_id=group_id, group_state=State.DEAD.value)
    return DescribedGroup(
        error_code=ErrorCode.GROUP_ID_NOT_FOUND,
        error_message=f"Group {group_id} is not a classic group.",
        group_id=group_id,
        group_state=State.DEAD.value,
    )


def _refused(group_id: str, error: ErrorCode) -> DescribedGroup:
    return DescribedGroup(error_code=error, group_id=group_id)


def _described(group: ClassicGroup) -> DescribedGroup:
    stable = group.state is State.STABLE  # before, nothing is selected
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=(group.protocol or "") if stable else "",
        members=[
            DescribedGroupMember(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=member.metadata(group.protocol) if stable else b"",
                member_assignment=member.assignment,
            )
            for member in group.members.values()
        ],
    )


API: Final = Api(
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    0,
    6,
    _handle,
    needs=on_group(AclOperation.DESCRIBE),
    ends_with_client=True,
    is_passed_on=True,
)
