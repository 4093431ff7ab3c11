"""FindCoordinator (10), versions 0 to 6.

v1   kinds of keys
v3   flexible (KIP-482)
v4   many keys (KIP-699)
v5   transactions of version 2 (KIP-890), as v4
v6   share groups (KIP-932), refused
"""

from __future__ import annotations

from typing import Final, cast

from kafka_sidecar.apis.api import Api, Call, Services
from kafka_sidecar.apis.common.late import LATE_COORDINATOR, in_time
from kafka_sidecar.apis.needs import AclOperation, on_group, on_transactional_id
from kafka_sidecar.coordination.errors import CoordinatorError
from kafka_sidecar.loop.waiting import SLICE, in_slices
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.message import Encoded
from kafka_sidecar.wire.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse

GROUP: Final = 0
TRANSACTION: Final = 1
MANY_SINCE: Final = 4
_WHY: Final = {
    ErrorCode.COORDINATOR_NOT_AVAILABLE: "no sidecar coordinates this that can be reached from here",
}


def _refused(key_type: int, key: str) -> ErrorCode:
    if key_type == TRANSACTION:
        return ErrorCode.NONE if key else ErrorCode.INVALID_REQUEST
    if key_type != GROUP:
        return ErrorCode.INVALID_REQUEST
    return ErrorCode.NONE if key else ErrorCode.INVALID_GROUP_ID


async def _find(services: Services, call: Call, key_type: int, key: str) -> Coordinator:
    error = _refused(key_type, key)
    if error is ErrorCode.NONE:
        try:
            leaders = services.groups.leaders if key_type == GROUP else services.transactions.leaders
            node = await in_time(
                call, leaders.find(key, services.node_address(call.client), call.client.is_external), None
            )
            if node is not None:
                return Coordinator(key=key, node_id=node.node_id, host=node.host, port=node.port)
            error = LATE_COORDINATOR
        except CoordinatorError as refused:
            error = refused.error
    return Coordinator(key=key, node_id=-1, port=-1, error_code=error, error_message=_WHY.get(error))


async def _handle(services: Services, call: Call, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
    async def one_of_many(key: str) -> Coordinator:
        return await _find(services, call, request.key_type, key)

    async def written(key: str) -> Coordinator:
        return cast(Coordinator, Encoded(await one_of_many(key), FindCoordinatorResponse, call.version))

    if call.version >= MANY_SINCE:
        keys = request.coordinator_keys
        return FindCoordinatorResponse(
            coordinators=await in_slices(one_of_many if len(keys) <= SLICE else written, keys)
        )
    one = await _find(services, call, request.key_type, request.key)
    return FindCoordinatorResponse(
        error_code=one.error_code, error_message=one.error_message, node_id=one.node_id, host=one.host, port=one.port
    )


API: Final = Api(
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    0,
    6,
    _handle,
    needs=on_group(AclOperation.DESCRIBE) + on_transactional_id(AclOperation.DESCRIBE),
    ends_with_client=True,
)
