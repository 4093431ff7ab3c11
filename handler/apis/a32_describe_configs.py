"""DescribeConfigs (32), versions 1 to 4: of topics, of this node, and of its loggers.

v1  sources and synonyms (KIP-226)
v3  types and documentation (KIP-569)
v4  flexible (KIP-482)
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final, cast

from handler.apis.api import Api, Call, Services
from handler.apis.configs import BROKER_LOGGER, NotAResource, check_node, topic_of
from handler.apis.loggers import describe_loggers
from handler.apis.nodes import node_listeners
from handler.partition.errors import error_code
from handler.pulsar.errors import PulsarError
from handler.tasks import Pace
from handler.topics.config_types import Config, ConfigSource
from handler.topics.configs import describe
from handler.topics.node_configs import OF_PULSAR, describe_node
from handler.wire.message import Encoded
from handler.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)


async def _node_configs(services: Services, call: Call, wanted: Sequence[str] | None) -> Sequence[Config]:
    """Pulsar is asked only for what it alone knows: whoever wants the rest is answered without it."""
    namespace = None
    if not wanted or not OF_PULSAR.isdisjoint(wanted):
        namespace = await services.configs.namespace_defaults(services.config.namespace)
    return describe_node(services.settings, node_listeners(services, call.client), namespace)


async def _configs(services: Services, call: Call, resource: DescribeConfigsResource) -> Sequence[Config]:
    if resource.resource_type == BROKER_LOGGER:
        check_node(services, resource.resource_name)
        return describe_loggers()
    name = topic_of(services, resource.resource_type, resource.resource_name)
    if name is None and not resource.resource_name:
        return ()  # what was set for all nodes at once: nothing can be
    if name is None:
        return await _node_configs(services, call, resource.configuration_keys)
    return describe(await services.configs.read(name))


def _told(config: Config, request: DescribeConfigsRequest) -> DescribeConfigsResourceResult:
    synonyms = []
    if request.include_synonyms:  # the value that holds first, then what would hold without it
        if config.source is not ConfigSource.DEFAULT_CONFIG:
            synonyms.append(DescribeConfigsSynonym(name=config.name, value=config.value, source=config.source))
        if config.default is not None:
            synonyms.append(DescribeConfigsSynonym(name=config.name, value=config.default, source=ConfigSource.DEFAULT_CONFIG))
    return DescribeConfigsResourceResult(
        name=config.name, value=config.value, read_only=config.read_only, config_source=config.source, is_sensitive=False,
        synonyms=synonyms, config_type=config.type, documentation=config.documentation if request.include_documentation else None,
    )  # fmt: skip


async def _describe(
    services: Services, call: Call, resource: DescribeConfigsResource, request: DescribeConfigsRequest
) -> DescribeConfigsResult:
    result = DescribeConfigsResult(resource_type=resource.resource_type, resource_name=resource.resource_name)
    try:
        configs = await _configs(services, call, resource)
    except NotAResource as refused:
        result.error_code, result.error_message = refused.code, str(refused)
    except PulsarError as error:
        result.error_code, result.error_message = error_code(error), str(error)
    else:
        wanted = resource.configuration_keys  # empty or null: all of them (ConfigHelper)
        result.configs = [_told(config, request) for config in configs if not wanted or config.name in wanted]
    return result


async def _handle(services: Services, call: Call, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
    """Each resource is written as it is made, and others run in between. One that is asked for again has the same answer."""
    asked = [(one.resource_type, one.resource_name, tuple(one.configuration_keys or ())) for one in request.resources]
    resources = dict(zip(asked, request.resources, strict=True))
    described = await asyncio.gather(*(_describe(services, call, resource, request) for resource in resources.values()))
    results = {}
    pace = Pace()
    for key, result in zip(resources, described, strict=True):
        results[key] = cast(DescribeConfigsResult, Encoded(result, DescribeConfigsResponse, call.version))
        await pace.rest()
    return DescribeConfigsResponse(results=[results[key] for key in asked])


API: Final = Api("DescribeConfigs", DescribeConfigsRequest, DescribeConfigsResponse, 1, 4, _handle, ends_with_client=True)
