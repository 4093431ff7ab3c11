"""DeleteTopics (20), versions 1 to 6.

The partitioned Pulsar topic goes with all its partitions, producers and subscriptions, and with what
groups have committed of it. Internal topics are INVALID_TOPIC_EXCEPTION.
v5 error messages · v6 by topic id
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from typing import Any, Final

from kio.schema.errors import ErrorCode

from handler.apis.api import Answer, Api, Call, Services
from handler.coordination.directory import Leader
from handler.fleet.peers import PeerUnavailable
from handler.partition.errors import error_code
from handler.pulsar.errors import PulsarError
from handler.topics.names import InvalidTopicName, TopicName

log = logging.getLogger(__name__)


async def _name(services: Services, named: str | None, topic_id: uuid.UUID | None) -> TopicName | ErrorCode:
    if named:
        try:
            return services.catalog.names.parse(named)
        except InvalidTopicName:
            return ErrorCode.invalid_topic_exception
    if topic_id is None:
        return ErrorCode.invalid_request
    return await services.catalog.find_by_id(topic_id) or ErrorCode.unknown_topic_id


async def _delete(services: Services, named: str | None, topic_id: uuid.UUID | None) -> dict[str, Any]:
    answer = {"name": named, "topic_id": topic_id, "error_code": ErrorCode.none, "error_message": None}
    try:
        name = await _name(services, named, topic_id)
        if isinstance(name, ErrorCode):
            return answer | {"error_code": name}
        if name.internal:
            return answer | {"error_code": ErrorCode.invalid_topic_exception, "error_message": f"{name.local} is internal"}
        topic = await services.catalog.find(name, fresh=True)
        if not named and topic.topic_id != topic_id:  # deleted and made again by someone else
            return answer | {"error_code": ErrorCode.unknown_topic_id}
        services.partitions.forget_topic(name.pulsar)
        await services.catalog.delete(name)
        services.partitions.forget_topic(name.pulsar)  # what was opened again meanwhile
    except PulsarError as error:
        return answer | {"error_code": error_code(error), "error_message": str(error)}
    return answer | {"name": named or services.catalog.names.kafka(name), "topic_id": topic.topic_id}


async def _forget_offsets(services: Services, topics: dict[str, uuid.UUID | None]) -> None:
    """What groups have committed of a topic goes with it, wherever they are coordinated.

    Where this can't be told, or comes too late, the topic's id in the commits shows that they are of another.
    """
    services.groups.coordinator.forget_topics(topics)
    try:
        others = await services.groups.others_now()
    except PulsarError as error:
        log.warning("committed offsets of the deleted topics %s stay: %s", ", ".join(topics), error)
        return

    async def tell(leader: Leader) -> None:
        try:
            await services.peers.topics_deleted(leader.control, leader.name, topics)
        except PeerUnavailable as error:
            log.warning("committed offsets of the deleted topics %s may stay: %s", ", ".join(topics), error)

    await asyncio.gather(*(tell(leader) for leader in others if leader.control))


async def _handle(services: Services, call: Call) -> Answer:
    request = call.request
    if hasattr(request, "topics"):
        asked = [(topic.name, topic.topic_id) for topic in request.topics]
    else:
        asked = [(name, None) for name in request.topic_names]
    results = await asyncio.gather(*(_delete(services, name, topic_id) for name, topic_id in asked))
    deleted = {result["name"]: result["topic_id"] for result in results if result["error_code"] is ErrorCode.none}
    if deleted:
        await _forget_offsets(services, deleted)
    return {"throttle_time": 0, "responses": results}


API: Final = Api(20, "DeleteTopics", 1, 6, _handle)
