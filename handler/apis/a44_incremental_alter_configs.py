"""IncrementalAlterConfigs (44), versions 0 to 1: of topics.

v0  KIP-339
v1  flexible (KIP-482)
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Final

from handler.apis.api import Api, Call, Services
from handler.apis.configs import alter
from handler.topics.configs import InvalidConfig, Operation, TopicSettings, altered
from handler.wire.messages.incremental_alter_configs import (
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)


def _changed(resource: AlterConfigsResource, settings: TopicSettings) -> TopicSettings:
    try:
        operations = [(one.name, Operation(one.config_operation), one.value) for one in resource.configs]
    except ValueError as error:
        raise InvalidConfig(f"there is no such operation: {error}") from error
    return altered(settings, operations)


async def _alter(services: Services, resource: AlterConfigsResource, *, validate_only: bool) -> AlterConfigsResourceResponse:
    kind, name = resource.resource_type, resource.resource_name
    code, message = await alter(services, kind, name, partial(_changed, resource), validate_only=validate_only)
    return AlterConfigsResourceResponse(error_code=code, error_message=message, resource_type=kind, resource_name=name)


async def _handle(services: Services, call: Call, request: IncrementalAlterConfigsRequest) -> IncrementalAlterConfigsResponse:
    told = await asyncio.gather(*(_alter(services, one, validate_only=request.validate_only) for one in request.resources))
    return IncrementalAlterConfigsResponse(responses=told)


API: Final = Api("IncrementalAlterConfigs", IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse, 0, 1, _handle)
