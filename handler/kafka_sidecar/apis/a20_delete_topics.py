"""DeleteTopics (20), versions 1 to 6.

The partitioned Pulsar topic goes with all its partitions, producers and subscriptions, and with what
groups have committed of it. Internal topics are INVALID_TOPIC_EXCEPTION.

v4  flexible (KIP-482)
v5  error messages (KIP-599)
v6  topics by id (KIP-516)
"""

from __future__ import annotations

import asyncio
import uuid
from typing import Final, NamedTuple

from kafka_sidecar.apis.api import Api, Call, Services
from kafka_sidecar.apis.common.deleted_topics import forget_everywhere
from kafka_sidecar.apis.needs import AclOperation, on_topic
from kafka_sidecar.partition.log.errors import error_code
from kafka_sidecar.pulsar.errors import PulsarError, Undescribed
from kafka_sidecar.topics.names import InvalidTopicName, TopicName
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.messages.delete_topics import DeletableTopicResult, DeleteTopicsRequest, DeleteTopicsResponse

NO_TOPIC: Final = uuid.UUID(int=0)
# A partition that moves to another broker is described again within a second or two. Clients do not ask for a deletion
# again.
DESCRIBE_SECONDS: Final = 5.0
AGAIN_SECONDS: Final = 0.25


async def _name(services: Services, named: str | None, topic_id: uuid.UUID | None) -> TopicName | ErrorCode:
    if named:
        try:
            return services.catalog.names.parse(named)
        except InvalidTopicName:
            return ErrorCode.INVALID_TOPIC_EXCEPTION
    if topic_id is None:
        return ErrorCode.INVALID_REQUEST
    until = services.clock() + DESCRIBE_SECONDS
    while True:
        try:
            return await services.catalog.find_by_id(topic_id) or ErrorCode.UNKNOWN_TOPIC_ID
        except PulsarError as error:
            if not error.retriable or services.clock() >= until:
                raise
        await asyncio.sleep(AGAIN_SECONDS)


async def _delete(services: Services, named: str | None, topic_id: uuid.UUID | None) -> DeletableTopicResult:
    result = DeletableTopicResult(name=named, topic_id=topic_id)
    try:
        name = await _name(services, named, topic_id)
        if isinstance(name, ErrorCode):
            result.error_code = name
            return result
        if name.internal:
            result.error_code, result.error_message = ErrorCode.INVALID_TOPIC_EXCEPTION, f"{name.local} is internal"
            return result
        topic = await _described(services, name, must_have_id=not named)
        if not named and topic.topic_id != topic_id:  # deleted and made again by someone else
            result.error_code = ErrorCode.UNKNOWN_TOPIC_ID
            return result
        await services.partitions.forget_topics({name.pulsar})
        # Taken before: when Pulsar's answer comes, another sidecar may have made the topic again and deleted records of
        # the new one.
        known = services.log_starts.values
        starts = {log: known[log] for index in range(topic.partitions) if (log := name.partition(index)) in known}
        await services.catalog.delete(name, partitioned=topic.partitioned)
        await services.partitions.forget_topics({name.pulsar})  # those that were opened again meanwhile
        services.log_starts.forget(starts)
    except PulsarError as error:
        result.error_code, result.error_message = error_code(error), str(error)
        return result
    return DeletableTopicResult(name=named or services.catalog.names.kafka(name), topic_id=topic.topic_id)


class _Described(NamedTuple):
    partitions: int
    partitioned: bool
    topic_id: uuid.UUID | None


async def _described(services: Services, name: TopicName, *, must_have_id: bool) -> _Described:
    """A topic that has lost its first partition, because a deletion was cut short, has no id. It can be deleted by its
    name.

    One that Pulsar can't describe for a moment is described first: without its id nobody deletes what groups have
    committed of it.
    """
    catalog, until = services.catalog, services.clock() + DESCRIBE_SECONDS
    while True:
        try:
            topic = await catalog.find(name, fresh=True)
            return _Described(topic.partitions, topic.partitioned, topic.topic_id)
        except Undescribed as error:
            is_lost = catalog.lost.has(name) or await _has_lost_its_first_partition(services, name)
            if is_lost and not must_have_id:
                break
            if is_lost or services.clock() >= until:
                raise Undescribed(f"{error}; if that lasts for half a minute, it can be deleted by its name") from error
        await asyncio.sleep(AGAIN_SECONDS)
    known = catalog.remembered(name)
    try:
        partitions = await catalog.partition_count(name)
    except Undescribed:  # the log of a topic without partitions
        partitions = 0
    return _Described(max(1, partitions), partitions > 0, None if known is None else known.topic_id)


async def _has_lost_its_first_partition(services: Services, name: TopicName) -> bool:
    """For certain: Pulsar lists the logs, and this one is not among them."""
    try:
        return not await services.catalog.has_partition(name, 0)
    except PulsarError:
        return False


async def _handle(services: Services, call: Call, request: DeleteTopicsRequest) -> DeleteTopicsResponse:
    wanted: list[tuple[str | None, uuid.UUID | None]] = [(name, None) for name in request.topic_names]
    wanted += [(topic.name, topic.topic_id) for topic in request.topics]
    results = await asyncio.gather(*(_delete(services, name, topic_id) for name, topic_id in wanted))
    # A topic whose id is not known leaves its commits: a deletion without an id would take those of the next topic of
    # its name, too.
    deleted = {
        result.name: result.topic_id or NO_TOPIC
        for result in results
        if result.name and result.error_code is ErrorCode.NONE
    }
    if deleted:
        await forget_everywhere(services, deleted)
    return DeleteTopicsResponse(responses=results)


API: Final = Api(
    DeleteTopicsRequest, DeleteTopicsResponse, 1, 6, _handle, needs=on_topic(AclOperation.DELETE, AclOperation.DESCRIBE)
)
