"""DescribeCluster (60), versions 0 to 2.

The cluster id is the Pulsar cluster's name. Controllers (v1, KIP-919) are not to be asked for here.
"""

from __future__ import annotations

from typing import Any, Final

from kio.schema.errors import ErrorCode

from handler.apis.a03_metadata import OPERATIONS_NOT_GIVEN
from handler.apis.api import Answer, Api, Call, Services
from handler.apis.late import LATE_CLUSTER, in_time
from handler.partition.errors import error_code
from handler.pulsar.errors import PulsarError

BROKERS: Final = 1


async def _handle(services: Services, call: Call) -> Answer:
    node = services.config.node_id
    host, port = services.node_address(call.client)
    answer: dict[str, Any] = {
        "throttle_time": 0,
        "error_message": None,
        "endpoint_type": BROKERS,
        "cluster_id": "",
        "controller_id": node,
        "brokers": (),
        "cluster_authorized_operations": OPERATIONS_NOT_GIVEN,
    }
    if getattr(call.request, "endpoint_type", BROKERS) != BROKERS:
        return answer | {"error_code": ErrorCode.mismatched_endpoint_type, "error_message": "this is a broker's listener"}
    try:
        cluster_id = await in_time(call, services.catalog.cluster_id(), None)
        if cluster_id is None:
            return answer | {"error_code": LATE_CLUSTER, "error_message": "Pulsar did not answer in time"}
    except PulsarError as error:
        return answer | {"error_code": error_code(error), "error_message": str(error)}
    brokers = [
        {"broker_id": node_id, "host": host, "port": port, "rack": None, "is_fenced": False}
        for node_id, host, port in ((node, host, port), *services.groups.fellows())
    ]
    return answer | {"error_code": ErrorCode.none, "cluster_id": cluster_id, "brokers": brokers}


API: Final = Api(60, "DescribeCluster", 0, 2, _handle, ends_with_client=True)
