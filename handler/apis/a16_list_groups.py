"""ListGroups (16), versions 0 to 5: the groups that this sidecar coordinates. v4 filter by state · v5 by type."""

from __future__ import annotations

from typing import Final

from kio.schema.errors import ErrorCode

from handler.apis.api import Answer, Api, Call, Services
from handler.groups.shard import NotLeading

CLASSIC: Final = "Classic"


async def _handle(services: Services, call: Call) -> Answer:
    try:
        await services.groups.all_decided()
        groups = services.groups.coordinator.all_groups()
    except NotLeading as refused:
        return {"throttle_time": 0, "error_code": refused.error, "groups": ()}
    states = {state.lower() for state in getattr(call.request, "states_filter", ())}
    types = {kind.lower() for kind in getattr(call.request, "types_filter", ())}
    listed = [
        {
            "group_id": group.group_id, "protocol_type": group.protocol_type or "", "group_state": group.state.value,
            "group_type": CLASSIC,
        }
        for group in groups
        if (not states or group.state.value.lower() in states) and (not types or CLASSIC.lower() in types)
    ]  # fmt: skip
    return {"throttle_time": 0, "error_code": ErrorCode.none, "groups": listed}


API: Final = Api(16, "ListGroups", 0, 5, _handle)
