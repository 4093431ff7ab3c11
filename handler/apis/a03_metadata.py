"""Metadata (3), versions 0 to 13.

This sidecar leads everything; others are told as coordinators of groups. Topics are made on the way when the request and the
configuration allow it. Without a list, all topics of the default namespace and Kafka's internal ones. A topic that Pulsar does
not describe in time is told as it was known, or has no leader yet; so the cluster id may be null.

v10 topic ids · v11 no cluster authorized operations · v12 by topic id (KIP-516) · v13 top-level error
Not implemented: authorized operations (answered as not given).
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from kio.schema.errors import ErrorCode

from handler.apis.api import Answer, Api, Call, Services
from handler.apis.late import LATE_TOPIC, in_time
from handler.apis.topics import find, listed
from handler.partition.errors import error_code
from handler.pulsar.errors import PulsarError
from handler.topics.catalog import Topic
from handler.topics.names import InvalidTopicName

EMPTY_MEANS_ALL_UP_TO: Final = 0  # in v0 an empty list asks for all, later null does
TOP_LEVEL_ERROR_SINCE: Final = 13
OPERATIONS_NOT_GIVEN: Final = -(2**31)


def describe_partitions(services: Services, topic: Topic) -> list[dict[str, Any]]:
    node = services.config.node_id
    return [
        {
            "error_code": ErrorCode.none,
            "partition_index": index,
            "leader_id": node,
            "leader_epoch": 0,
            "replica_nodes": (node,),
            "isr_nodes": (node,),
            "offline_replicas": (),
        }
        for index in range(topic.partitions)
    ]


def _found(services: Services, topic: Topic, name: str) -> dict[str, Any]:
    return {
        "error_code": ErrorCode.none,
        "name": name,
        "topic_id": topic.topic_id,
        "is_internal": topic.name.internal,
        "partitions": describe_partitions(services, topic),
        "topic_authorized_operations": OPERATIONS_NOT_GIVEN,
    }


def _missing(error: ErrorCode, name: str | None, topic_id: Any = None) -> dict[str, Any]:
    return {
        "error_code": error,
        "name": name,
        "topic_id": topic_id,
        "is_internal": False,
        "partitions": (),
        "topic_authorized_operations": OPERATIONS_NOT_GIVEN,
    }


async def _one(services: Services, call: Call, requested: Any) -> dict[str, Any]:
    catalog = services.catalog
    named: str | None = requested.name
    if not named and getattr(requested, "topic_id", None) is not None:
        try:
            topic = await in_time(call, catalog.describe_id(requested.topic_id), LATE_TOPIC)
        except PulsarError as error:
            return _missing(error_code(error), None, requested.topic_id)
        if isinstance(topic, ErrorCode):
            return _missing(topic, None, requested.topic_id)
        if topic is None or topic.topic_id != requested.topic_id:
            return _missing(ErrorCode.unknown_topic_id, None, requested.topic_id)
        return _found(services, topic, catalog.names.kafka(topic.name))
    try:
        name = catalog.names.parse(named or "")
    except InvalidTopicName:
        return _missing(ErrorCode.invalid_topic_exception, named or "")
    allowed = services.config.auto_create_topics and not name.internal and getattr(call.request, "allow_auto_topic_creation", True)
    found = await find(services, call, name, create_partitions=services.config.default_partitions if allowed else 0)
    return _missing(found, named) if isinstance(found, ErrorCode) else _found(services, found, named or "")


async def _topics(services: Services, call: Call) -> list[dict[str, Any]]:
    wanted = call.request.topics
    if wanted is None or (call.version <= EMPTY_MEANS_ALL_UP_TO and not wanted):
        names = services.catalog.names
        return [
            _missing(topic, names.kafka(name)) if isinstance(topic, ErrorCode) else _found(services, topic, names.kafka(name))
            for name, topic in await listed(services, call)
        ]
    return list(await asyncio.gather(*(_one(services, call, topic) for topic in wanted)))


async def _handle(services: Services, call: Call) -> Answer:
    wanted = call.request.topics
    host, port = services.node_address(call.client)
    error = ErrorCode.none
    topics: list[dict[str, Any]] = []
    cluster_id: str | None = None
    try:
        cluster_id, topics = await asyncio.gather(in_time(call, services.catalog.cluster_id(), None), _topics(services, call))
    except PulsarError as failure:
        error = error_code(failure)
        if not wanted and call.version < TOP_LEVEL_ERROR_SINCE:
            call.client.abort()  # an empty list without an error would say that there are no topics
        topics = [_missing(error, getattr(topic, "name", None) or "") for topic in wanted or ()]
    return {
        "throttle_time": 0,
        "error_code": error,
        "brokers": [
            {"node_id": node_id, "host": host, "port": port, "rack": None}
            for node_id, host, port in ((services.config.node_id, host, port), *services.groups.fellows())
        ],
        "cluster_id": cluster_id,
        "controller_id": services.config.node_id,
        "topics": topics,
        "cluster_authorized_operations": OPERATIONS_NOT_GIVEN,
    }


API: Final = Api(3, "Metadata", 0, 13, _handle, ends_with_client=True)
