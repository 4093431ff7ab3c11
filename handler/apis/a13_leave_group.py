"""LeaveGroup (13), versions 0 to 5. v3 many members, also by instance (an administrator removes static ones)."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from kio.schema.errors import ErrorCode

from handler.apis.api import Answer, Api, Call, Result, Services
from handler.apis.groups import ask, coordinated_in_order
from handler.groups.classic.members import MemberIdentity
from handler.groups.coordinator import Coordinator

MANY_SINCE: Final = 3


def _handle(services: Services, call: Call) -> Result:
    request = call.request
    if call.version >= MANY_SINCE:
        leaving = [MemberIdentity(member.member_id, member.group_instance_id) for member in request.members]
    else:
        leaving = [MemberIdentity(request.member_id, None)]

    def answer(errors: list[ErrorCode]) -> Answer:
        if call.version < MANY_SINCE:
            return {"throttle_time": 0, "error_code": errors[0]}
        members = [
            {"member_id": one.member_id, "group_instance_id": one.instance_id, "error_code": error}
            for one, error in zip(leaving, errors, strict=True)
        ]
        return {"throttle_time": 0, "error_code": ErrorCode.none, "members": members}

    def question(coordinator: Coordinator, told: Any) -> None:
        coordinator.leave(request.group_id, leaving, told)

    return ask(services, question, answer, partial(_refuse, call))


def _refuse(_: Call, error: ErrorCode) -> Answer:
    return {"throttle_time": 0, "error_code": error, "members": ()}


API: Final = Api(13, "LeaveGroup", 0, 5, coordinated_in_order(_handle, _refuse))
