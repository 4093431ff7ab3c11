"""What several handlers do with topics: by name or by id, and the error when there is none."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Sequence
from typing import Any, Final

from kio.schema.errors import ErrorCode

from handler.apis.api import Call, Services
from handler.apis.late import LATE_TOPIC, in_time
from handler.partition.errors import error_code
from handler.pulsar.errors import PulsarError, Unavailable
from handler.telemetry.limits import RateLimitedLog
from handler.topics.catalog import Topic
from handler.topics.names import InvalidTopicName, TopicName

limited = RateLimitedLog(logging.getLogger(__name__))

# A commit waits for so long to learn whether its topics are there. Pulsar answers that in milliseconds, and heartbeats may
# stand behind it.
LEARN_SECONDS: Final = 2.0
# Of a topic that is listed: it was deleted meanwhile, or is not to be seen.
GONE: Final = (ErrorCode.unknown_topic_or_partition, ErrorCode.topic_authorization_failed)


def resolve(services: Services, requested: Any) -> TopicName | ErrorCode:
    """The topic that a part of a request is about: by name, or by id in the versions that have ids."""
    name = getattr(requested, "name", None) or getattr(requested, "topic", None)
    if name:
        try:
            return services.catalog.names.parse(name)
        except InvalidTopicName:
            return ErrorCode.invalid_topic_exception
    found = services.catalog.name_of(getattr(requested, "topic_id", None))
    return ErrorCode.unknown_topic_id if found is None else found


async def learn(services: Services, unknown: Sequence[TopicName | uuid.UUID]) -> None:
    """Look topics up, for a moment: what can't be learnt by then stays unknown."""
    catalog = services.catalog
    lookups = (catalog.find_by_id(one) if isinstance(one, uuid.UUID) else catalog.find(one) for one in unknown)
    try:
        async with asyncio.timeout(LEARN_SECONDS):
            await asyncio.gather(*lookups, return_exceptions=True)
    except TimeoutError:
        pass


async def listed(services: Services, call: Call, late: ErrorCode = LATE_TOPIC) -> list[tuple[TopicName, Topic | ErrorCode]]:
    """All topics, also those that can't be described now: a list without them would say that they are gone."""
    names = await in_time(call, services.catalog.list_names(), None)
    if names is None:
        raise Unavailable("the topics could not be listed in time")
    found = await asyncio.gather(*(find(services, call, name, late=late) for name in names))
    return [(name, topic) for name, topic in zip(names, found, strict=True) if topic not in GONE]


async def find(
    services: Services, call: Call, name: TopicName, *, create_partitions: int = 0, late: ErrorCode = LATE_TOPIC
) -> Topic | ErrorCode:
    """The topic, made when it is missing and `create_partitions` says so; else why not. `late` where Pulsar is, and it is not known."""
    known = services.catalog.remembered(name)
    try:
        found = await in_time(call, services.catalog.find(name), None)
        if found is not None:
            return found
        limited.warning("topic %s can't be described: Pulsar does not answer in time", name.pulsar)
        return known or late
    except PulsarError as error:
        code = error_code(error)
        if code is not ErrorCode.unknown_topic_or_partition:
            limited.warning("%s", error)  # clients time out without a word
            if error.retriable and known is not None:
                return known  # a client that is told an error forgets the topic's partitions, and its group rebalances
            return LATE_TOPIC if error.retriable else code
        if not create_partitions:
            return code
    try:
        return await in_time(call, services.catalog.create_if_missing(name, create_partitions), late)
    except PulsarError as error:
        # What a Kafka broker says while a new topic has no leader yet; clients ask again.
        return ErrorCode.leader_not_available if error.retriable else error_code(error)
