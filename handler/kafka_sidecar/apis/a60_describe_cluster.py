"""DescribeCluster (60), versions 0 to 2 (KIP-700).

v1  which kind of endpoint is asked for (KIP-919): controllers are not to be asked for here
v2  fenced brokers (KIP-1073); there are none

The cluster id is the Pulsar cluster's name.
"""

from __future__ import annotations

from typing import Final

from kafka_sidecar.apis.api import Api, Call, Services
from kafka_sidecar.apis.common.late import LATE_CLUSTER, in_time
from kafka_sidecar.apis.common.nodes import controller, nodes
from kafka_sidecar.apis.needs import NOTHING
from kafka_sidecar.partition.log.errors import error_code
from kafka_sidecar.pulsar.errors import PulsarError
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

BROKERS: Final = 1


async def _handle(services: Services, call: Call, request: DescribeClusterRequest) -> DescribeClusterResponse:
    node = controller(services)
    if request.endpoint_type != BROKERS:
        return _refused(node, ErrorCode.MISMATCHED_ENDPOINT_TYPE, "this is a broker's listener")
    try:
        cluster_id = await in_time(call, services.catalog.cluster_id(), None)
    except PulsarError as error:
        return _refused(node, error_code(error), str(error))
    if cluster_id is None:
        return _refused(node, LATE_CLUSTER, "Pulsar did not answer in time")
    brokers = [
        DescribeClusterBroker(broker_id=node_id, host=host, port=port, rack=rack)
        for node_id, host, port, rack in nodes(services, call.client)
    ]
    return DescribeClusterResponse(cluster_id=cluster_id, controller_id=node, brokers=brokers)


def _refused(node: int, error: ErrorCode, message: str) -> DescribeClusterResponse:
    return DescribeClusterResponse(error_code=error, error_message=message, controller_id=node)


API: Final = Api(DescribeClusterRequest, DescribeClusterResponse, 0, 2, _handle, needs=NOTHING, ends_with_client=True)
