"""ElectLeaders (43), versions 0 to 2. Every partition has its leader, so there is nothing to elect.

v1  unclean elections (KIP-460)
v2  flexible (KIP-482)
"""

from __future__ import annotations

from typing import Final

from kafka_sidecar.apis.api import Api, Call, Services
from kafka_sidecar.apis.common.topics import existing
from kafka_sidecar.apis.needs import AclOperation, on_cluster
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)


async def _handle(services: Services, call: Call, request: ElectLeadersRequest) -> ElectLeadersResponse:
    results = []
    for topic in request.topic_partitions or ():  # of all partitions only those that need an election are answered
        found = await existing(services, call, topic.topic)
        partitions = []
        for index in topic.partitions:
            if isinstance(found, ErrorCode):
                code = found
            else:
                code = (
                    ErrorCode.ELECTION_NOT_NEEDED
                    if 0 <= index < found.partitions
                    else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                )
            partitions.append(PartitionResult(partition_id=index, error_code=code))
        results.append(ReplicaElectionResult(topic=topic.topic, partition_result=partitions))
    return ElectLeadersResponse(replica_election_results=results)


API: Final = Api(ElectLeadersRequest, ElectLeadersResponse, 0, 2, _handle, needs=on_cluster(AclOperation.ALTER))
