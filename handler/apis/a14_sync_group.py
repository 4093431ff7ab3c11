"""SyncGroup (14), versions 0 to 5. v3 static members · v5 protocol type and name, checked and told."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from kio.schema.errors import ErrorCode

from handler.apis.api import Answer, Api, Call, Result, Services
from handler.apis.groups import ask, coordinated
from handler.groups.classic.members import SyncGroupRequest, SyncGroupResponse, sync_refused
from handler.groups.coordinator import Coordinator


def _handle(services: Services, call: Call) -> Result:
    request = call.request
    sync = SyncGroupRequest(
        request.member_id, getattr(request, "group_instance_id", None), request.generation_id,
        getattr(request, "protocol_type", None), getattr(request, "protocol_name", None),
        {item.member_id: item.assignment for item in request.assignments},
    )  # fmt: skip

    def question(coordinator: Coordinator, told: Any) -> None:
        coordinator.sync(sync, request.group_id, told)

    return ask(services, question, _answer, partial(_refuse, call))


def _refuse(_: Call, error: ErrorCode) -> Answer:
    return _answer(sync_refused(error))


def _answer(answer: SyncGroupResponse) -> Answer:
    return {
        "throttle_time": 0,
        "error_code": answer.error,
        "protocol_type": answer.protocol_type,
        "protocol_name": answer.protocol,
        "assignment": answer.assignment,
    }


API: Final = Api(14, "SyncGroup", 0, 5, coordinated(_handle, _refuse), ends_with_client=True)
