"""FindCoordinator (10), versions 0 to 6.

v1 key types · v4 many keys. Transactions have no coordinator yet: their ids are refused as
InitProducerId refuses them.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from kio.schema.errors import ErrorCode

from handler.apis.api import Answer, Api, Call, Services
from handler.apis.late import LATE_COORDINATOR, in_time
from handler.coordination.errors import NotLeading
from handler.groups.service import Node

GROUP: Final = 0
TRANSACTION: Final = 1
MANY_SINCE: Final = 4
_WHY: Final = {
    ErrorCode.coordinator_not_available: "no sidecar coordinates this group that can be reached from here",
    ErrorCode.transactional_id_authorization_failed: "transactions are not supported",
}


async def _find(services: Services, call: Call, key_type: int, key: str) -> dict[str, Any]:
    error = ErrorCode.none
    if key_type == TRANSACTION:
        error = ErrorCode.transactional_id_authorization_failed
    elif key_type != GROUP:
        error = ErrorCode.invalid_request
    elif not key:
        error = ErrorCode.invalid_group_id
    node: Node | None = None
    if error is ErrorCode.none:
        try:
            node = await in_time(call, services.groups.find(key, services.node_address(call.client)), None)
        except NotLeading as refused:
            error = refused.error
        else:
            error = LATE_COORDINATOR if node is None else ErrorCode.none
        if node is not None:
            return {"key": key, "node_id": node.node_id, "host": node.host, "port": node.port, "error_code": error, "error_message": None}
    return {"key": key, "node_id": -1, "host": "", "port": -1, "error_code": error, "error_message": _WHY.get(error)}


async def _handle(services: Services, call: Call) -> Answer:
    request = call.request
    key_type = getattr(request, "key_type", GROUP)
    if call.version < MANY_SINCE:
        return {"throttle_time": 0, **await _find(services, call, key_type, request.key)}
    found = await asyncio.gather(*(_find(services, call, key_type, key) for key in request.coordinator_keys))
    return {"throttle_time": 0, "coordinators": found}


API: Final = Api(10, "FindCoordinator", 0, 6, _handle, ends_with_client=True)
