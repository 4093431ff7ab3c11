"""DeleteGroups (42), versions 0 to 2. Only groups without members, with all they have committed."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final

from kio.schema.errors import ErrorCode

from handler.apis.api import Answer, Api, Call, Services
from handler.apis.fan_out import Parts, fan_out
from handler.apis.groups import pulsar_partitions
from handler.coordination.errors import NotLeading


async def _delete(services: Services, group_id: str) -> dict[str, Any]:
    told: asyncio.Future[ErrorCode] = asyncio.get_running_loop().create_future()
    try:
        had = services.groups.join_elections().places(group_id)
        services.groups.join_elections().delete_group(group_id, lambda error: None if told.done() else told.set_result(error))
    except NotLeading as refused:
        return {"group_id": group_id, "error_code": refused.error}
    error = await told
    if error is ErrorCode.none:
        services.mirror.deleted(group_id, pulsar_partitions(services, had))
    return {"group_id": group_id, "error_code": error}


async def _handle(services: Services, call: Call) -> Answer:
    async def here(groups: Sequence[str]) -> list[dict[str, Any]]:
        return await asyncio.gather(*(_delete(services, group_id) for group_id in groups))

    def refuse(group_id: str, error: ErrorCode) -> dict[str, Any]:
        return {"group_id": group_id, "error_code": error}

    results = await fan_out(services, call, Parts("groups_names", "results", str, here, refuse, is_question=False))
    return {"throttle_time": 0, "results": results}


API: Final = Api(42, "DeleteGroups", 0, 2, _handle)
