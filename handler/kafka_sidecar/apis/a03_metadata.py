"""Metadata (3), versions 0 to 13.

v1   all topics with null; the controller
v2   the cluster id (KIP-78)
v4   topics may be made on the way, or not
v7   leader epochs (KIP-320)
v8   authorized operations (KIP-430), never given
v9   flexible (KIP-482)
v10  topic ids in the response (KIP-516)
v11  no authorized operations of the cluster (KIP-700)
v12  topics by id (KIP-516)
v13  an error of the whole (KIP-1102)

Each sidecar of a fleet names the same leaders, at their addresses for the listener to which the client came; one that
is alone leads everything. Topics are made on the way when the request and the configuration allow it. Without a list,
all topics of the listed namespaces and Kafka's internal ones. A topic that Pulsar does not describe in time is shown as
it was known, or has no leader yet; so the cluster id may be null.
"""

from __future__ import annotations

import asyncio
import uuid
from typing import Final, cast

from kafka_sidecar.apis.api import Api, Call, Client, Services
from kafka_sidecar.apis.common.late import LATE_TOPIC, in_time
from kafka_sidecar.apis.common.nodes import controller, nodes_for_leaders, replicas
from kafka_sidecar.apis.common.topics import find, listed
from kafka_sidecar.apis.needs import AclOperation, on_cluster, on_topic
from kafka_sidecar.fleet.fleet import View
from kafka_sidecar.loop.pace import Pace
from kafka_sidecar.loop.waiting import SLICE, in_slices
from kafka_sidecar.partition.log.errors import error_code
from kafka_sidecar.pulsar.errors import PulsarError
from kafka_sidecar.topics.catalog import Topic
from kafka_sidecar.topics.names import InvalidTopicName
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.message import Encoded
from kafka_sidecar.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

EMPTY_MEANS_ALL_UP_TO: Final = 0  # in v0 an empty list asks for all, later null does
TOP_LEVEL_ERROR_SINCE: Final = 13


def _found(services: Services, client: Client, view: View, topic: Topic, name: str) -> MetadataResponseTopic:
    partitions = [
        MetadataResponsePartition(
            error_code=error, partition_index=index, leader_id=leader, leader_epoch=0, replica_nodes=ids, isr_nodes=ids
        )
        for index, (error, leader, ids) in enumerate(replicas(services, client, view, topic))
    ]
    return MetadataResponseTopic(
        name=name, topic_id=topic.topic_id, is_internal=topic.name.internal, partitions=partitions
    )


def _missing(error: ErrorCode, name: str | None, topic_id: uuid.UUID | None = None) -> MetadataResponseTopic:
    return MetadataResponseTopic(error_code=error, name=name, topic_id=topic_id)


async def _by_id(services: Services, call: Call, view: View, topic_id: uuid.UUID) -> MetadataResponseTopic:
    try:
        topic = await in_time(call, services.catalog.describe_id(topic_id), LATE_TOPIC)
    except PulsarError as error:
        return _missing(LATE_TOPIC if error.retriable else error_code(error), None, topic_id)
    if isinstance(topic, ErrorCode):
        return _missing(topic, None, topic_id)
    if topic is None or topic.topic_id != topic_id:
        return _missing(ErrorCode.UNKNOWN_TOPIC_ID, None, topic_id)
    return _found(services, call.client, view, topic, services.catalog.names.kafka(topic.name))


async def _by_name(services: Services, call: Call, view: View, named: str, may_create: bool) -> MetadataResponseTopic:
    try:
        name = services.catalog.names.parse(named)
    except InvalidTopicName:
        return _missing(ErrorCode.INVALID_TOPIC_EXCEPTION, named)
    allowed = services.config.auto_create_topics and not name.internal and may_create
    found = await find(services, call, name, create_partitions=services.config.default_partitions if allowed else 0)
    return _missing(found, named) if isinstance(found, ErrorCode) else _found(services, call.client, view, found, named)


async def _all_topics(services: Services, call: Call, view: View) -> list[MetadataResponseTopic]:
    """There may be thousands, so each is written as it is made, and others run in between."""
    topics = []
    pace = Pace()
    for name, topic in await listed(services, call):
        kafka_name = services.catalog.names.kafka(name)
        described = (
            _missing(topic, kafka_name)
            if isinstance(topic, ErrorCode)
            else _found(services, call.client, view, topic, kafka_name)
        )
        topics.append(cast(MetadataResponseTopic, Encoded(described, MetadataResponse, call.version)))
        await pace.maybe_yield()
    return topics


async def _topics(services: Services, call: Call, view: View, request: MetadataRequest) -> list[MetadataResponseTopic]:
    if request.topics is None or (call.version <= EMPTY_MEANS_ALL_UP_TO and not request.topics):
        return await _all_topics(services, call, view)

    async def one(topic: MetadataRequestTopic) -> MetadataResponseTopic:
        if not topic.name and topic.topic_id is not None:
            return await _by_id(services, call, view, topic.topic_id)
        return await _by_name(services, call, view, topic.name or "", request.allow_auto_topic_creation)

    async def written(topic: MetadataRequestTopic) -> MetadataResponseTopic:
        return cast(MetadataResponseTopic, Encoded(await one(topic), MetadataResponse, call.version))

    return await in_slices(one if len(request.topics) <= SLICE else written, request.topics)


async def _cluster_id(services: Services, call: Call) -> str | None:
    """None while Pulsar does not say: the topics matter more."""
    try:
        return await in_time(call, services.catalog.cluster_id(), None)
    except PulsarError:
        return None


async def _handle(services: Services, call: Call, request: MetadataRequest) -> MetadataResponse:
    response = MetadataResponse(controller_id=controller(services))
    # A sidecar that joins or leaves while Pulsar is asked has no part in this answer: each leader is among its nodes.
    view = services.fleet.view
    response.brokers = [
        MetadataResponseBroker(node_id=node_id, host=host, port=port, rack=rack)
        for node_id, host, port, rack in nodes_for_leaders(services, call.client, view)
    ]
    try:
        response.cluster_id, response.topics = await asyncio.gather(
            _cluster_id(services, call), _topics(services, call, view, request)
        )
    except PulsarError as failure:
        response.error_code = error_code(failure)
        if not request.topics and call.version < TOP_LEVEL_ERROR_SINCE:
            call.client.abort()  # an empty list without an error would say that there are no topics
        response.topics = [_missing(response.error_code, topic.name or "") for topic in request.topics or ()]
    return response


API: Final = Api(
    MetadataRequest,
    MetadataResponse,
    0,
    13,
    _handle,
    needs=on_topic(AclOperation.DESCRIBE, AclOperation.CREATE) + on_cluster(AclOperation.CREATE),
    ends_with_client=True,
)
