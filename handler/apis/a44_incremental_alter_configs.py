"""IncrementalAlterConfigs (44), versions 0 to 1: of topics.

v0  KIP-339
v1  flexible (KIP-482)
"""

from __future__ import annotations

import asyncio
from typing import Final

from handler.apis.api import Api, Call, Services
from handler.apis.configs import Alteration, alter, named_twice
from handler.topics.config_types import Operation
from handler.wire.error_code import ErrorCode
from handler.wire.messages.incremental_alter_configs import (
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)


def _alteration(resource: AlterConfigsResource) -> Alteration | None:
    try:
        operations = [(one.name, Operation(one.config_operation), one.value) for one in resource.configs]
    except ValueError:
        return None
    return Alteration(resource.resource_type, resource.resource_name, operations)


async def _alter(services: Services, resource: AlterConfigsResource, *, twice: bool, validate_only: bool) -> AlterConfigsResourceResponse:
    alteration = _alteration(resource)
    code: ErrorCode = ErrorCode.INVALID_REQUEST
    message: str | None = "an operation is SET, DELETE, APPEND or SUBTRACT"
    if alteration is not None:
        code, message = await alter(services, alteration, lambda _: [], twice=twice, validate_only=validate_only)
    return AlterConfigsResourceResponse(
        error_code=code, error_message=message, resource_type=resource.resource_type, resource_name=resource.resource_name
    )


async def _handle(services: Services, call: Call, request: IncrementalAlterConfigsRequest) -> IncrementalAlterConfigsResponse:
    twice = named_twice((one.resource_type, one.resource_name) for one in request.resources)
    told = await asyncio.gather(
        *(
            _alter(services, one, twice=(one.resource_type, one.resource_name) in twice, validate_only=request.validate_only)
            for one in request.resources
        )
    )
    return IncrementalAlterConfigsResponse(responses=told)


API: Final = Api("IncrementalAlterConfigs", IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse, 0, 1, _handle)
