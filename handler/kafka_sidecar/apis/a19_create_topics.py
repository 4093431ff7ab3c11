"""CreateTopics (19), versions 2 to 7.

A topic is a partitioned Pulsar topic. Replication is Pulsar's own: any factor from 1 on, or −1, is
accepted and 1 is answered.

v4  as many partitions as the broker makes, with −1 (KIP-464)
v5  flexible (KIP-482); partitions and configs in the response (KIP-525)
v7  topic ids in the response (KIP-516)

The topic configs are those of `topics/configs`; others are refused with INVALID_CONFIG rather than ignored. A manual
assignment may name any live node.
"""

from __future__ import annotations

import asyncio
import uuid
from collections import Counter
from dataclasses import replace
from typing import Final

from kafka_sidecar.apis.api import Api, Call, Services
from kafka_sidecar.apis.common.nodes import NotAssignable, check_assignments
from kafka_sidecar.apis.needs import AclOperation, on_cluster, on_topic
from kafka_sidecar.partition.log.errors import error_code
from kafka_sidecar.pulsar.admin import AlreadyExists
from kafka_sidecar.pulsar.errors import PulsarError, Refused, TopicMissing, Unavailable
from kafka_sidecar.topics.config_types import InvalidConfig, Operation
from kafka_sidecar.topics.configs import TopicSettings, altered
from kafka_sidecar.topics.names import InvalidTopicName, TopicName
from kafka_sidecar.topics.retention import RETENTION_SET
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

DEFAULT: Final = -1
# Each is a topic of Pulsar's, and all are made in one admin call: a mistyped count must not make millions.
MAX_PARTITIONS: Final = 10_000


class _Refused(Exception):
    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code


def _checked(services: Services, topic: CreatableTopic) -> tuple[TopicName, int]:
    """Name and partition count as asked for, or why not."""
    try:
        name = services.catalog.names.parse(topic.name)
    except InvalidTopicName as error:
        raise _Refused(ErrorCode.INVALID_TOPIC_EXCEPTION, str(error)) from error
    if topic.assignments:
        return name, _assigned(services, topic)
    if topic.replication_factor == 0 or topic.replication_factor < DEFAULT:
        raise _Refused(ErrorCode.INVALID_REPLICATION_FACTOR, "the replication factor must be 1 or more, or -1")
    count = services.config.default_partitions if topic.num_partitions == DEFAULT else topic.num_partitions
    if not 0 < count <= MAX_PARTITIONS:
        raise _Refused(ErrorCode.INVALID_PARTITIONS, f"the number of partitions must be 1 to {MAX_PARTITIONS}, or -1")
    return name, count


def _assigned(services: Services, topic: CreatableTopic) -> int:
    """The number of partitions of a manual assignment, which may name any live node
    (ReplicationControlManager.createTopic).
    """
    if topic.replication_factor != DEFAULT or topic.num_partitions != DEFAULT:
        raise _Refused(
            ErrorCode.INVALID_REQUEST,
            "with a manual assignment the replication factor and the number of partitions must be -1",
        )
    indexes = sorted(one.partition_index for one in topic.assignments)
    if indexes != list(range(len(indexes))):
        raise _Refused(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT, "partitions must be a consecutive 0-based integer sequence"
        )
    try:
        check_assignments(services, [one.broker_ids for one in topic.assignments])
    except NotAssignable as error:
        raise _Refused(ErrorCode.INVALID_REPLICA_ASSIGNMENT, str(error)) from error
    if len(indexes) > MAX_PARTITIONS:
        raise _Refused(ErrorCode.INVALID_PARTITIONS, f"the number of partitions must be 1 to {MAX_PARTITIONS}, or -1")
    return len(indexes)


async def _settings(services: Services, name: TopicName, topic: CreatableTopic) -> TopicSettings:
    """What the topic is to have of its own."""
    if not topic.configs:
        return TopicSettings()
    wanted = [(config.name, Operation.SET, config.value) for config in topic.configs]
    try:
        return altered(await services.configs.defaults(name), wanted)
    except InvalidConfig as error:
        raise _Refused(ErrorCode.INVALID_CONFIG, str(error)) from error


async def _make(services: Services, name: TopicName, count: int, settings: TopicSettings) -> uuid.UUID | None:
    """The id of the new topic; None where Pulsar can't tell it yet."""
    properties = {key: value for key, value in settings.properties.items() if key != RETENTION_SET}
    try:
        await services.catalog.make(name, count, properties)
    except Refused as error:
        if properties:
            raise _Refused(ErrorCode.INVALID_CONFIG, str(error)) from error
        raise
    made = replace(settings, properties=properties, retention=None, max_message_bytes=None, compaction_threshold=None)
    try:
        await services.configs.write(name, made, settings)
    except PulsarError as error:
        code = ErrorCode.INVALID_CONFIG if isinstance(error, Refused) else error_code(error)
        raise _Refused(code, await _unmade(services, name, error)) from error
    await services.partitions.forget_topics({name.pulsar})  # of one that had this name before
    try:
        return (await services.catalog.find_new(name)).topic_id
    except (Unavailable, TopicMissing):
        return None


async def _unmade(services: Services, name: TopicName, error: PulsarError) -> str:
    """Without its configs a topic keeps too much, or too little, so it is deleted. Pulsar refuses that while a client
    is connected, which may have written. Returns what the client hears of it.
    """
    try:
        await services.catalog.unmake(name)
    except PulsarError as reason:
        return (
            f"the topic is made, and lacks configs, for they could not be stored: {error}. It could not be deleted: "
            f"{reason}"
        )
    return str(error)


async def _exists(services: Services, name: TopicName) -> bool:
    try:
        await services.catalog.find(name, fresh=True)
    except TopicMissing:
        return False
    return True


async def _create(
    services: Services, topic: CreatableTopic, *, validate_only: bool, twice: bool
) -> CreatableTopicResult:
    try:
        if twice:
            raise _Refused(ErrorCode.INVALID_REQUEST, "the request names this topic twice")
        name, count = _checked(services, topic)
        settings = await _settings(services, name, topic)
        topic_id = None
        if validate_only or name.internal:
            if await _exists(services, name):
                raise _Refused(ErrorCode.TOPIC_ALREADY_EXISTS, f"topic {topic.name} exists")
            if name.internal:
                raise _Refused(
                    ErrorCode.INVALID_TOPIC_EXCEPTION, f"{topic.name} is made by the sidecar when groups are used"
                )
        else:
            topic_id = await _make(services, name, count, settings)
    except _Refused as refused:
        return CreatableTopicResult(name=topic.name, error_code=refused.code, error_message=str(refused))
    except AlreadyExists:
        text = f"topic {topic.name} exists"
        return CreatableTopicResult(name=topic.name, error_code=ErrorCode.TOPIC_ALREADY_EXISTS, error_message=text)
    except PulsarError as error:
        return CreatableTopicResult(name=topic.name, error_code=error_code(error), error_message=str(error))
    return CreatableTopicResult(name=topic.name, topic_id=topic_id, num_partitions=count, replication_factor=1)


async def _handle(services: Services, call: Call, request: CreateTopicsRequest) -> CreateTopicsResponse:
    times = Counter(topic.name for topic in request.topics)
    results = await asyncio.gather(
        *(
            _create(services, topic, validate_only=request.validate_only, twice=times[topic.name] > 1)
            for topic in request.topics
        )
    )
    return CreateTopicsResponse(topics=results)


API: Final = Api(
    CreateTopicsRequest,
    CreateTopicsResponse,
    2,
    7,
    _handle,
    needs=on_topic(AclOperation.CREATE, AclOperation.DESCRIBE_CONFIGS) + on_cluster(AclOperation.CREATE),
)
