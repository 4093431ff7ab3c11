"""IncrementalAlterConfigs (44), versions 0 to 1: of topics, and of the loggers of this node.

v0  KIP-339
v1  flexible (KIP-482)
"""

from __future__ import annotations

from typing import Final

from kafka_sidecar.apis.api import Api, Call, Services
from kafka_sidecar.apis.common.configs import Alteration, alter_all
from kafka_sidecar.apis.needs import AclOperation, on_cluster, on_group, on_topic
from kafka_sidecar.topics.config_types import Operation
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.messages.incremental_alter_configs import (
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

NO_OPERATION: Final[tuple[ErrorCode, str | None]] = (
    ErrorCode.INVALID_REQUEST,
    "an operation is SET, DELETE, APPEND or SUBTRACT",
)


def _alteration(resource: AlterConfigsResource) -> Alteration | None:
    try:
        operations = [(one.name, Operation(one.config_operation), one.value) for one in resource.configs]
    except ValueError:
        return None
    return Alteration(resource.resource_type, resource.resource_name, operations)


async def _handle(
    services: Services, call: Call, request: IncrementalAlterConfigsRequest
) -> IncrementalAlterConfigsResponse:
    alterations = [_alteration(one) for one in request.resources]
    known = [one for one in alterations if one is not None]
    told = iter(await alter_all(services, known, lambda _, __: [], validate_only=request.validate_only))
    responses = []
    for resource, alteration in zip(request.resources, alterations, strict=True):
        code, message = NO_OPERATION if alteration is None else next(told)
        responses.append(
            AlterConfigsResourceResponse(
                error_code=code,
                error_message=message,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
        )
    return IncrementalAlterConfigsResponse(responses=responses)


API: Final = Api(
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
    0,
    1,
    _handle,
    needs=on_topic(AclOperation.ALTER_CONFIGS)
    + on_group(AclOperation.ALTER_CONFIGS)
    + on_cluster(AclOperation.ALTER_CONFIGS),
)
