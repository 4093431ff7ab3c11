"""DescribeConfigs (32), versions 1 to 4: of topics, of this node, and of its loggers.

v1  sources and synonyms (KIP-226)
v3  types and documentation (KIP-569)
v4  flexible (KIP-482)
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from typing import Final, NamedTuple, cast

from kafka_sidecar.apis.api import Api, Call, Services
from kafka_sidecar.apis.common.configs import BROKER_LOGGER, NotAResource, check_node, topic_of
from kafka_sidecar.apis.common.loggers import describe_loggers
from kafka_sidecar.apis.common.nodes import node_listeners
from kafka_sidecar.apis.needs import AclOperation, on_cluster, on_group, on_topic
from kafka_sidecar.loop.pace import Pace
from kafka_sidecar.partition.log.errors import error_code
from kafka_sidecar.pulsar.errors import PulsarError
from kafka_sidecar.topics.config_store import AT_ONCE
from kafka_sidecar.topics.config_types import Config, ConfigSource
from kafka_sidecar.topics.configs import describe
from kafka_sidecar.topics.node_configs import OF_PULSAR, describe_node
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.message import Encoded
from kafka_sidecar.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)


class _Resource(NamedTuple):
    kind: int
    name: str


class _Refusal(NamedTuple):
    code: ErrorCode
    why: str


async def _node_configs(services: Services, call: Call, wanted: Collection[str]) -> Sequence[Config]:
    """Pulsar is asked only for what it alone knows. A client that wants the rest does not wait for it."""
    namespace = None
    if not wanted or not OF_PULSAR.isdisjoint(wanted):
        namespace = await services.configs.namespace_defaults(services.config.namespace)
    return describe_node(services.settings, node_listeners(services, call.client), namespace)


async def _configs(services: Services, call: Call, resource: _Resource, wanted: Collection[str]) -> Sequence[Config]:
    if resource.kind == BROKER_LOGGER:
        check_node(services, resource.name)
        return describe_loggers()
    name = topic_of(services, resource.kind, resource.name)
    if name is None and not resource.name:
        return ()  # what was set for all nodes at once: nothing can be
    if name is None:
        return await _node_configs(services, call, wanted)
    return describe(await services.configs.read(name))


async def _found(
    services: Services, call: Call, resource: _Resource, wanted: Collection[str]
) -> Sequence[Config] | _Refusal:
    try:
        return await _configs(services, call, resource, wanted)
    except NotAResource as refused:
        return _Refusal(refused.code, str(refused))
    except PulsarError as error:
        return _Refusal(error_code(error), str(error))


def _result_of(config: Config, request: DescribeConfigsRequest) -> DescribeConfigsResourceResult:
    synonyms = []
    if request.include_synonyms:  # the value that holds first, then what would hold without it
        if config.source is not ConfigSource.DEFAULT_CONFIG:
            synonyms.append(DescribeConfigsSynonym(name=config.name, value=config.value, source=config.source))
        if config.default is not None:
            synonyms.append(
                DescribeConfigsSynonym(name=config.name, value=config.default, source=ConfigSource.DEFAULT_CONFIG)
            )
    return DescribeConfigsResourceResult(
        name=config.name,
        value=config.value,
        read_only=config.read_only,
        config_source=config.source,
        is_sensitive=False,
        synonyms=synonyms,
        config_type=config.type,
        documentation=config.documentation if request.include_documentation else None,
    )


def _result(
    resource: _Resource, found: Sequence[Config] | _Refusal, keys: Collection[str], request: DescribeConfigsRequest
) -> DescribeConfigsResult:
    result = DescribeConfigsResult(resource_type=resource.kind, resource_name=resource.name)
    if isinstance(found, _Refusal):
        result.error_code, result.error_message = found
    else:
        result.configs = [_result_of(config, request) for config in found if not keys or config.name in keys]
    return result


async def _handle(services: Services, call: Call, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
    """A resource is looked at once, however often it is named, and has one result for each set of keys.

    A few resources are looked at at a time, and each result is written when it is made, so other requests are answered
    meanwhile.
    """
    wanted: dict[_Resource, dict[frozenset[str], DescribeConfigsResult | None]] = {}
    for one in request.resources:  # no keys, or null: all of them (ConfigHelper)
        wanted.setdefault(_Resource(one.resource_type, one.resource_name), {})[
            frozenset(one.configuration_keys or ())
        ] = None
    waiting = iter(wanted.items())

    async def describe_some() -> None:
        pace = Pace()
        for resource, results in waiting:
            all_keys = frozenset() if frozenset() in results else frozenset().union(*results)
            found = await _found(services, call, resource, all_keys)
            for keys in results:
                result = Encoded(_result(resource, found, keys, request), DescribeConfigsResponse, call.version)
                results[keys] = cast(DescribeConfigsResult, result)
                await pace.maybe_yield()

    await asyncio.gather(*(describe_some() for _ in range(AT_ONCE)))
    return DescribeConfigsResponse(
        results=[result for results in wanted.values() for result in results.values() if result is not None]
    )


API: Final = Api(
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    1,
    4,
    _handle,
    needs=on_topic(AclOperation.DESCRIBE_CONFIGS)
    + on_group(AclOperation.DESCRIBE_CONFIGS)
    + on_cluster(AclOperation.DESCRIBE_CONFIGS),
    ends_with_client=True,
)
