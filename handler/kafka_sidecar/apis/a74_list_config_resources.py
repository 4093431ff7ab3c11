"""ListConfigResources (74), versions 0 to 1: what DescribeConfigs can be asked about.

v0  ListClientMetricsResources (KIP-714); there are none
v1  every type (KIP-1142)
"""

from __future__ import annotations

from typing import Final

from kafka_sidecar.apis.api import Api, Call, Services
from kafka_sidecar.apis.common.configs import BROKER, TOPIC
from kafka_sidecar.apis.common.nodes import live_nodes
from kafka_sidecar.apis.needs import AclOperation, on_cluster
from kafka_sidecar.partition.log.errors import error_code
from kafka_sidecar.pulsar.errors import PulsarError
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

# ConfigResource.Type: also loggers, client metrics and groups, which have no configs here.
_TYPES: Final = frozenset((TOPIC, BROKER, 8, 16, 32))


async def _handle(services: Services, call: Call, request: ListConfigResourcesRequest) -> ListConfigResourcesResponse:
    if call.version == 0:
        return ListConfigResourcesResponse()
    wanted = set(request.resource_types) or _TYPES
    if not wanted <= _TYPES:
        return ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    resources = []
    if BROKER in wanted:
        resources += [
            ConfigResource(resource_name=str(node), resource_type=BROKER) for node in sorted(live_nodes(services))
        ]
    if TOPIC in wanted:
        try:
            names = await services.catalog.list_names()
        except PulsarError as error:
            return ListConfigResourcesResponse(error_code=error_code(error))
        resources += [
            ConfigResource(resource_name=services.catalog.names.kafka(name), resource_type=TOPIC) for name in names
        ]
    return ListConfigResourcesResponse(config_resources=resources)


API: Final = Api(
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
    0,
    1,
    _handle,
    needs=on_cluster(AclOperation.DESCRIBE_CONFIGS),
    ends_with_client=True,
)
