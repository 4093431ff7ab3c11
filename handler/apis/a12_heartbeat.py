"""Heartbeat (12), versions 0 to 4. v3 static members."""

from __future__ import annotations

from typing import Final

from kio.schema.errors import ErrorCode

from handler.apis.api import Answer, Api, Call, Services
from handler.apis.groups import coordinated
from handler.coordination.errors import NotLeading


def _handle(services: Services, call: Call) -> Answer:
    request = call.request
    try:
        error = services.groups.join_elections().heartbeat(
            request.group_id, request.member_id, getattr(request, "group_instance_id", None), request.generation_id
        )
    except NotLeading as refused:
        return _refuse(call, refused.error)
    return {"throttle_time": 0, "error_code": error}


def _refuse(_: Call, error: ErrorCode) -> Answer:
    return {"throttle_time": 0, "error_code": error}


API: Final = Api(12, "Heartbeat", 0, 4, coordinated(_handle, _refuse))
