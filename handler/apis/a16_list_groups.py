"""ListGroups (16), versions 0 to 5. v4 filter by state · v5 by type.

The groups that this sidecar coordinates, and those of others that its clients are not told of: tools ask
every node that they know, and put the answers together.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from kio.schema.errors import ErrorCode

from handler.apis.api import Answer, Api, Call, Services
from handler.apis.fan_out import ask_peer
from handler.apis.late import LATE_GROUP, in_time
from handler.coordination.errors import NotLeading
from handler.groups.classic.machine import ClassicGroup
from handler.groups.effects import Group

CLASSIC: Final = "Classic"
CONSUMER: Final = "Consumer"


async def _handle(services: Services, call: Call) -> Answer:
    return await in_time(call, _list(services, call), {"throttle_time": 0, "error_code": LATE_GROUP, "groups": ()})


async def _list(services: Services, call: Call) -> Answer:
    elsewhere: list[Any] = []
    try:
        others = [] if call.forwarded else await services.groups.leaders()
        groups = services.groups.coordinator.all_groups()
        unreachable = [leader for leader in others if not services.groups.tells(leader)]
        for answer in await asyncio.gather(*(ask_peer(services, call, leader, call.request) for leader in unreachable)):
            if answer["error_code"] is not ErrorCode.none:
                raise NotLeading(answer["error_code"])
            elsewhere += answer["groups"]
    except NotLeading as refused:
        return {"throttle_time": 0, "error_code": refused.error, "groups": ()}
    states = {state.lower() for state in getattr(call.request, "states_filter", ())}
    types = {kind.lower() for kind in getattr(call.request, "types_filter", ())}
    listed = [
        {
            "group_id": group.group_id, "protocol_type": group.protocol_type or "", "group_state": group.state.value,
            "group_type": _type(group),
        }
        for group in groups
        if (not states or group.state.value.lower() in states) and (not types or _type(group).lower() in types)
    ]  # fmt: skip
    return {"throttle_time": 0, "error_code": ErrorCode.none, "groups": [*listed, *elsewhere]}


def _type(group: Group) -> str:
    return CLASSIC if isinstance(group, ClassicGroup) else CONSUMER


API: Final = Api(16, "ListGroups", 0, 5, _handle, ends_with_client=True)
