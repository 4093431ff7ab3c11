"""DescribeQuorum (55), versions 0 to 2: of the one quorum that Kafka has, that of its controllers.

v1  when a voter was heard of last (KIP-836)
v2  directory ids, error messages, nodes (KIP-853)

The sidecars have no metadata log: what they agree on is in Pulsar. They are listed as the voters, and this one, the
controller of Metadata, as their leader. All of them have the whole of a log that is empty, and those that Pulsar lists
are here now.
"""

from __future__ import annotations

from typing import Final

from kafka_sidecar.apis.api import Api, Call, Services
from kafka_sidecar.apis.common.nodes import controller, live_nodes, nodes
from kafka_sidecar.apis.needs import AclOperation, on_cluster
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    Listener,
    Node,
    PartitionDataResult,
    ReplicaState,
    TopicDataResult,
)

METADATA_TOPIC: Final = "__cluster_metadata"
END_OFFSET: Final = 0


def _partition(services: Services, topic: str, index: int) -> PartitionDataResult:
    if (topic, index) != (METADATA_TOPIC, 0):
        return PartitionDataResult(partition_index=index, error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    now = services.wall_clock()
    voters = [
        ReplicaState(replica_id=node, log_end_offset=END_OFFSET, last_fetch_timestamp=now, last_caught_up_timestamp=now)
        for node in sorted(live_nodes(services))
    ]
    return PartitionDataResult(
        partition_index=index,
        leader_id=controller(services),
        leader_epoch=0,
        high_watermark=END_OFFSET,
        current_voters=voters,
    )


async def _handle(services: Services, call: Call, request: DescribeQuorumRequest) -> DescribeQuorumResponse:
    topics = [
        TopicDataResult(
            topic_name=topic.topic_name,
            partitions=[_partition(services, topic.topic_name, one.partition_index) for one in topic.partitions],
        )
        for topic in request.topics
    ]
    listeners = [
        Node(node_id=node_id, listeners=[Listener(name="PLAINTEXT", host=host, port=port)])
        for node_id, host, port, _ in nodes(services, call.client)
    ]
    return DescribeQuorumResponse(topics=topics, nodes=listeners)


API: Final = Api(
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    0,
    2,
    _handle,
    needs=on_cluster(AclOperation.DESCRIBE),
    ends_with_client=True,
)
