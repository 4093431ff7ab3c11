"""AlterConfigs (33), versions 0 to 2: of topics. What the request does not name goes back to what holds without it.

v1  the same as v0
v2  flexible (KIP-482)
"""

from __future__ import annotations

from typing import Final

from kafka_sidecar.apis.api import Api, Call, Services
from kafka_sidecar.apis.common.configs import BROKER_LOGGER, Alteration, alter_all
from kafka_sidecar.apis.needs import AclOperation, on_cluster, on_group, on_topic
from kafka_sidecar.topics.config_types import Operation
from kafka_sidecar.topics.configs import TopicSettings, set_here
from kafka_sidecar.wire.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)

UNKNOWN: Final = 0  # ConfigResource.Type


def _unset(alteration: Alteration, settings: TopicSettings) -> list[tuple[str, Operation, str | None]]:
    named = {name for name, _, _ in alteration.operations}
    return [(name, Operation.DELETE, None) for name in set_here(settings) if name not in named]


def _alteration(resource: AlterConfigsResource) -> Alteration:
    # Loggers can only be changed one by one: their kind is none that is known here (ConfigAdminManager.preprocess).
    kind = UNKNOWN if resource.resource_type == BROKER_LOGGER else resource.resource_type
    return Alteration(kind, resource.resource_name, [(one.name, Operation.SET, one.value) for one in resource.configs])


async def _handle(services: Services, call: Call, request: AlterConfigsRequest) -> AlterConfigsResponse:
    told = await alter_all(
        services, [_alteration(one) for one in request.resources], _unset, validate_only=request.validate_only
    )
    return AlterConfigsResponse(
        responses=[
            AlterConfigsResourceResponse(
                error_code=code,
                error_message=message,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
            for resource, (code, message) in zip(request.resources, told, strict=True)
        ]
    )


API: Final = Api(
    AlterConfigsRequest,
    AlterConfigsResponse,
    0,
    2,
    _handle,
    needs=on_topic(AclOperation.ALTER_CONFIGS)
    + on_group(AclOperation.ALTER_CONFIGS)
    + on_cluster(AclOperation.ALTER_CONFIGS),
)
