"""AlterConfigs (33), versions 0 to 2: of topics. What the request does not name goes back to what holds without it.

v1  the same as v0
v2  flexible (KIP-482)
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Final

from handler.apis.api import Api, Call, Services
from handler.apis.configs import Alteration, alter, named_twice
from handler.topics.config_types import Operation
from handler.topics.configs import TopicSettings, set_here
from handler.wire.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)


def _unset(named: set[str], settings: TopicSettings) -> list[tuple[str, Operation, str | None]]:
    return [(name, Operation.DELETE, None) for name in set_here(settings) if name not in named]


async def _alter(services: Services, resource: AlterConfigsResource, *, twice: bool, validate_only: bool) -> AlterConfigsResourceResponse:
    wanted = [(one.name, Operation.SET, one.value) for one in resource.configs]
    alteration = Alteration(resource.resource_type, resource.resource_name, wanted)
    others = partial(_unset, {one.name for one in resource.configs})
    code, message = await alter(services, alteration, others, twice=twice, validate_only=validate_only)
    return AlterConfigsResourceResponse(
        error_code=code, error_message=message, resource_type=resource.resource_type, resource_name=resource.resource_name
    )


async def _handle(services: Services, call: Call, request: AlterConfigsRequest) -> AlterConfigsResponse:
    twice = named_twice((one.resource_type, one.resource_name) for one in request.resources)
    told = await asyncio.gather(
        *(
            _alter(services, one, twice=(one.resource_type, one.resource_name) in twice, validate_only=request.validate_only)
            for one in request.resources
        )
    )
    return AlterConfigsResponse(responses=told)


API: Final = Api("AlterConfigs", AlterConfigsRequest, AlterConfigsResponse, 0, 2, _handle)
