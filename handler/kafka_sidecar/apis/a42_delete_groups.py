"""DeleteGroups (42), versions 0 to 2. Only groups without members, with all they have committed.

v2  flexible (KIP-482)
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from kafka_sidecar.apis.api import Api, Call, Services
from kafka_sidecar.apis.common.topics import pulsar_partitions
from kafka_sidecar.apis.needs import AclOperation, on_group
from kafka_sidecar.apis.routing.fan_out import Parts, ask_peer, fan_out
from kafka_sidecar.model.sidecar import SidecarInfo
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse


async def _delete(services: Services, group_ids: Sequence[str]) -> list[DeletableGroupResult]:
    deleted = await services.groups.coordinator.delete_groups(group_ids)
    for group_id, one in deleted.items():
        if one.error is ErrorCode.NONE:
            services.mirror.deleted(group_id, pulsar_partitions(services, one.committed))
    return [DeletableGroupResult(group_id=group_id, error_code=deleted[group_id].error) for group_id in group_ids]


def _refused(group_id: str, error: ErrorCode) -> DeletableGroupResult:
    return DeletableGroupResult(group_id=group_id, error_code=error)


async def _handle(services: Services, call: Call, request: DeleteGroupsRequest) -> DeleteGroupsResponse:
    async def elsewhere(leader: SidecarInfo, groups: Sequence[str]) -> Sequence[DeletableGroupResult]:
        return (
            await ask_peer(services, call, leader, DeleteGroupsRequest(groups_names=groups), DeleteGroupsResponse)
        ).results

    parts = Parts(
        group_of=str, here=partial(_delete, services), elsewhere=elsewhere, refuse=_refused, is_question=False
    )
    return DeleteGroupsResponse(results=await fan_out(services, call, parts, request.groups_names))


API: Final = Api(
    DeleteGroupsRequest, DeleteGroupsResponse, 0, 2, _handle, needs=on_group(AclOperation.DELETE), is_passed_on=True
)
