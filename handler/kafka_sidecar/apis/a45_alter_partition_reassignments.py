"""AlterPartitionReassignments (45), versions 0 to 1 (KIP-455). Replication is Pulsar's: what names live nodes holds
already.

v1  whether the replication factor may change (KIP-860)
"""

from __future__ import annotations

from typing import Final

from kafka_sidecar.apis.api import Api, Call, Services
from kafka_sidecar.apis.common.nodes import NotAssignable, check_assignments
from kafka_sidecar.apis.common.topics import existing
from kafka_sidecar.apis.needs import AclOperation, on_cluster
from kafka_sidecar.topics.catalog import Topic
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)


def _outcome(
    services: Services, found: Topic | ErrorCode, wanted: ReassignablePartition
) -> tuple[ErrorCode, str | None]:
    if isinstance(found, ErrorCode):
        return found, None
    if not 0 <= wanted.partition_index < found.partitions:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None
    if wanted.replicas is None:
        return ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, None
    try:
        check_assignments(services, [wanted.replicas])
    except NotAssignable as error:
        return ErrorCode.INVALID_REPLICA_ASSIGNMENT, str(error)
    return ErrorCode.NONE, None


async def _handle(
    services: Services, call: Call, request: AlterPartitionReassignmentsRequest
) -> AlterPartitionReassignmentsResponse:
    responses = []
    for topic in request.topics:
        found = await existing(services, call, topic.name)
        partitions = []
        for wanted in topic.partitions:
            code, message = _outcome(services, found, wanted)
            partitions.append(
                ReassignablePartitionResponse(
                    partition_index=wanted.partition_index, error_code=code, error_message=message
                )
            )
        responses.append(ReassignableTopicResponse(name=topic.name, partitions=partitions))
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change, responses=responses
    )


API: Final = Api(
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    0,
    1,
    _handle,
    needs=on_cluster(AclOperation.ALTER),
)
