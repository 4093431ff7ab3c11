"""JoinGroup (11), versions 0 to 9.

v1 rebalance timeout · v4 member id required (KIP-394) · v5 static members (KIP-345) · v7 protocol type
and a null protocol · v9 the leader may be told to skip its assignment (KIP-814)
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from kio.schema.errors import ErrorCode

from handler.apis.api import Answer, Api, Call, Result, Services
from handler.apis.groups import ask, client_host, coordinated, milliseconds
from handler.groups.classic.members import JoinGroupRequest, JoinGroupResponse
from handler.groups.coordinator import Coordinator, new_member_id

MEMBER_ID_REQUIRED_SINCE: Final = 4
NULL_PROTOCOL_SINCE: Final = 7
SKIP_ASSIGNMENT_SINCE: Final = 9


def _handle(services: Services, call: Call) -> Result:
    request = call.request
    instance_id = getattr(request, "group_instance_id", None)
    session_timeout = milliseconds(request.session_timeout)
    rebalance_timeout = milliseconds(request.rebalance_timeout) if hasattr(request, "rebalance_timeout") else session_timeout
    join = JoinGroupRequest(
        request.member_id, instance_id, call.client_id or "", client_host(call), session_timeout, rebalance_timeout,
        request.protocol_type, tuple((protocol.name, protocol.metadata) for protocol in request.protocols),
        needs_member_id=call.version >= MEMBER_ID_REQUIRED_SINCE, may_skip_assignment=call.version >= SKIP_ASSIGNMENT_SINCE,
        new_member_id=new_member_id(instance_id or call.client_id or ""),
    )  # fmt: skip

    def question(coordinator: Coordinator, told: Any) -> None:
        coordinator.join(join, request.group_id, told)

    return ask(services, question, partial(_answer, call.version), partial(_refuse, call))


def _refuse(call: Call, error: ErrorCode) -> Answer:
    return _answer(call.version, JoinGroupResponse(error, call.request.member_id))


def _answer(version: int, answer: JoinGroupResponse) -> Answer:
    return {
        "throttle_time": 0,
        "error_code": answer.error,
        "generation_id": answer.generation,
        "protocol_type": answer.protocol_type,
        "protocol_name": answer.protocol if version >= NULL_PROTOCOL_SINCE else answer.protocol or "",
        "leader": answer.leader or "",
        "skip_assignment": answer.skip_assignment,
        "member_id": answer.member_id,
        "members": [
            {"member_id": member_id, "group_instance_id": instance_id, "metadata": metadata}
            for member_id, instance_id, metadata in answer.members
        ],
    }


API: Final = Api(11, "JoinGroup", 0, 9, coordinated(_handle, _refuse), ends_with_client=True)
