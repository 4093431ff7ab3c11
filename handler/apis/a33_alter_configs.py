"""AlterConfigs (33), versions 0 to 2: of topics. What the request does not name goes back to what holds without it.

v1  the same as v0
v2  flexible (KIP-482)
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Final

from handler.apis.api import Api, Call, Services
from handler.apis.configs import alter
from handler.topics.configs import Operation, TopicSettings, altered, set_here
from handler.wire.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)


def _replaced(resource: AlterConfigsResource, settings: TopicSettings) -> TopicSettings:
    wanted = [(one.name, Operation.SET, one.value) for one in resource.configs]
    named = {one.name for one in resource.configs}
    return altered(settings, [*((name, Operation.DELETE, None) for name in set_here(settings) if name not in named), *wanted])


async def _alter(services: Services, resource: AlterConfigsResource, *, validate_only: bool) -> AlterConfigsResourceResponse:
    kind, name = resource.resource_type, resource.resource_name
    code, message = await alter(services, kind, name, partial(_replaced, resource), validate_only=validate_only)
    return AlterConfigsResourceResponse(error_code=code, error_message=message, resource_type=kind, resource_name=name)


async def _handle(services: Services, call: Call, request: AlterConfigsRequest) -> AlterConfigsResponse:
    told = await asyncio.gather(*(_alter(services, one, validate_only=request.validate_only) for one in request.resources))
    return AlterConfigsResponse(responses=told)


API: Final = Api("AlterConfigs", AlterConfigsRequest, AlterConfigsResponse, 0, 2, _handle)
