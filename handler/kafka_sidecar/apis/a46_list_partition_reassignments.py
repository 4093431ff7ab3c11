"""ListPartitionReassignments (46), version 0 (KIP-455). None is ever under way: replication is Pulsar's."""

from __future__ import annotations

from typing import Final

from kafka_sidecar.apis.api import Api, Call, Services
from kafka_sidecar.apis.needs import AclOperation, on_cluster
from kafka_sidecar.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)


async def _handle(
    services: Services, call: Call, request: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    return ListPartitionReassignmentsResponse()


API: Final = Api(
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    0,
    0,
    _handle,
    needs=on_cluster(AclOperation.DESCRIBE),
    ends_with_client=True,
)
