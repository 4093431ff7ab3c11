"""OffsetDelete (47), version 0 (KIP-496): committed offsets of topics that nobody in the group is subscribed to."""

from __future__ import annotations

from typing import Final

from kafka_sidecar.apis.api import Api, Call, Services
from kafka_sidecar.apis.common.topics import pulsar_partitions, requested_topic
from kafka_sidecar.apis.needs import AclOperation, on_group, on_topic
from kafka_sidecar.apis.routing.to_coordinator import to_coordinator
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)


async def _handle(services: Services, call: Call, request: OffsetDeleteRequest) -> OffsetDeleteResponse:
    topics = [(requested_topic(services, topic.name, None), topic.partitions) for topic in request.topics]
    wanted = [
        at
        for requested, partitions in topics
        for one in partitions
        if (at := requested.partition(one.partition_index)) is not None
    ]
    errors = await services.groups.coordinator.delete_offsets(request.group_id, wanted)
    if isinstance(errors, ErrorCode):
        return OffsetDeleteResponse(error_code=errors)
    deleted = [at for at, error in errors.items() if error is ErrorCode.NONE]
    services.mirror.deleted(request.group_id, pulsar_partitions(services, deleted))
    responses = []
    for requested, partitions in topics:
        results = []
        for one in partitions:
            at = requested.partition(one.partition_index)
            error = requested.error if at is None else errors[at]
            results.append(OffsetDeleteResponsePartition(partition_index=one.partition_index, error_code=error))
        responses.append(OffsetDeleteResponseTopic(name=requested.name, partitions=results))
    return OffsetDeleteResponse(topics=responses)


def _refuse(_: Call, __: OffsetDeleteRequest, error: ErrorCode) -> OffsetDeleteResponse:
    return OffsetDeleteResponse(error_code=error)


API: Final = Api(
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    0,
    0,
    to_coordinator(_handle, _refuse),
    needs=on_group(AclOperation.DELETE) + on_topic(AclOperation.READ),
    is_passed_on=True,
)
