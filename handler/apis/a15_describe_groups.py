"""DescribeGroups (15), versions 0 to 6. v4 static members · v6 an unknown group is GROUP_ID_NOT_FOUND, before it is Dead."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from kio.schema.errors import ErrorCode

from handler.apis.a03_metadata import OPERATIONS_NOT_GIVEN
from handler.apis.api import Answer, Api, Call, Services
from handler.apis.fan_out import Parts, fan_out
from handler.coordination.errors import NotLeading
from handler.groups.classic.machine import ClassicGroup
from handler.groups.classic.members import State

NOT_FOUND_SINCE: Final = 6


async def _handle(services: Services, call: Call) -> Answer:
    async def here(groups: Sequence[str]) -> list[dict[str, Any]]:
        return [_describe(services, call, group_id) for group_id in groups]

    def refuse(group_id: str, error: ErrorCode) -> dict[str, Any]:
        return _nothing(group_id, "", error, None)

    return {"throttle_time": 0, "groups": await fan_out(services, call, Parts("groups", "groups", str, here, refuse))}


def _describe(services: Services, call: Call, group_id: str) -> dict[str, Any]:
    try:
        group = services.groups.join_elections().describe(group_id)
    except NotLeading as refused:
        return _nothing(group_id, "", refused.error, None)
    if isinstance(group, ClassicGroup):  # the others are asked for by ConsumerGroupDescribe
        return _told(group)
    if call.version >= NOT_FOUND_SINCE:
        return _nothing(group_id, State.DEAD.value, ErrorCode.group_id_not_found, f"Group {group_id} is not a classic group.")
    return _nothing(group_id, State.DEAD.value, ErrorCode.none, None)


def _nothing(group_id: str, state: str, error: ErrorCode, message: str | None) -> dict[str, Any]:
    return {
        "error_code": error, "error_message": message, "group_id": group_id, "group_state": state, "protocol_type": "",
        "protocol_data": "", "members": (), "authorized_operations": OPERATIONS_NOT_GIVEN,
    }  # fmt: skip


def _told(group: ClassicGroup) -> dict[str, Any]:
    stable = group.state is State.STABLE  # before, nothing is selected
    members = [
        {
            "member_id": member.member_id,
            "group_instance_id": member.instance_id,
            "client_id": member.client_id,
            "client_host": member.client_host,
            "member_metadata": member.metadata(group.protocol) if stable else b"",
            "member_assignment": member.assignment,
        }
        for member in group.members.values()
    ]
    return _nothing(group.group_id, group.state.value, ErrorCode.none, None) | {
        "protocol_type": group.protocol_type or "",
        "protocol_data": (group.protocol or "") if stable else "",
        "members": members,
    }


API: Final = Api(15, "DescribeGroups", 0, 6, _handle, ends_with_client=True)
