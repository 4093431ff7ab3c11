"""Topics as several handlers need them: by name or by id, and the error when there is none."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, Protocol, TypeVar

from kafka_sidecar.apis.api import Call, Services
from kafka_sidecar.apis.common.late import LATE_TOPIC, in_time
from kafka_sidecar.groups.coordinator import CommittedOffset
from kafka_sidecar.groups.shard import TopicPartition
from kafka_sidecar.loop.pace import Pace
from kafka_sidecar.partition.log.errors import error_code
from kafka_sidecar.pulsar.errors import PulsarError, Unavailable
from kafka_sidecar.telemetry.limits import RateLimitedLog
from kafka_sidecar.topics.catalog import Catalog, Topic
from kafka_sidecar.topics.description import FRESH_SECONDS
from kafka_sidecar.topics.listing import LISTED_SECONDS
from kafka_sidecar.topics.names import InvalidTopicName, TopicName
from kafka_sidecar.wire.error_code import ErrorCode

limited = RateLimitedLog(logging.getLogger(__name__))

# A commit waits for so long to learn whether its topics are there. Pulsar answers that in milliseconds, and heartbeats
# may stand behind it.
LEARN_SECONDS: Final = 2.0
# A topic that was looked at so lately is not looked up again.
JUST_NOW_SECONDS: Final = 1.0
# Topics of a listing that are looked up side by side, as many as the admin client has connections: more would begin in
# one turn.
AT_ONCE: Final = 16
# Of a topic that is listed: it was deleted meanwhile, or is not to be seen.
GONE: Final = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.TOPIC_AUTHORIZATION_FAILED)


def resolve(services: Services, name: str | None, topic_id: uuid.UUID | None) -> TopicName | ErrorCode:
    """The topic that a part of a request is about: by name, or by id in the versions that have ids."""
    if name:
        try:
            return services.catalog.names.parse(name)
        except InvalidTopicName:
            return ErrorCode.INVALID_TOPIC_EXCEPTION
    found = services.catalog.name_of(topic_id)
    return ErrorCode.UNKNOWN_TOPIC_ID if found is None else found


class RequestedTopic(NamedTuple):
    """A topic of a request about offsets."""

    name: str  # as it came, and goes back to the client
    topic_id: uuid.UUID | None
    topic: TopicName | None
    canonical: str  # the name under which its offsets are kept
    error: ErrorCode  # of all its partitions

    def partition(self, index: int) -> TopicPartition | None:
        return None if self.topic is None else (self.canonical, index)


def requested_topic(services: Services, name: str, topic_id: uuid.UUID | None) -> RequestedTopic:
    found = resolve(services, name, topic_id)
    if isinstance(found, TopicName):
        return RequestedTopic(name, topic_id, found, services.catalog.names.kafka(found), ErrorCode.NONE)
    error = ErrorCode.UNKNOWN_TOPIC_ID if topic_id is not None else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return RequestedTopic(name, topic_id, None, "", error)


class PartitionToCommit(Protocol):
    """A partition of a request that commits offsets."""

    partition_index: int
    committed_offset: int
    committed_leader_epoch: int
    committed_metadata: str | None


P = TypeVar("P", bound=PartitionToCommit)


def committed_offsets(
    services: Services, topics: Sequence[tuple[RequestedTopic, Sequence[P]]]
) -> tuple[dict[TopicPartition, CommittedOffset], dict[TopicPartition, ErrorCode]]:
    """The offsets that a request commits, and the partitions that are refused before that.

    An offset without its topic's id would count for the next topic of that name, too. So clients retry while Pulsar
    fails for a moment to describe a topic that this sidecar has never seen. The commit is taken if it fails for longer.
    """
    offsets: dict[TopicPartition, CommittedOffset] = {}
    refused: dict[TopicPartition, ErrorCode] = {}
    for requested, partitions in topics:
        if requested.topic is None:
            continue
        known = services.catalog.remembered(requested.topic)
        topic_id = requested.topic_id or (None if known is None else known.topic_id)
        for partition in partitions:
            at = (requested.canonical, partition.partition_index)
            if not services.catalog.may_have(requested.topic, partition.partition_index):
                refused[at] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            elif topic_id is None and services.catalog.lost.failed_looks.may_pass(requested.topic):
                refused[at] = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
            else:
                offsets[at] = CommittedOffset(
                    partition.committed_offset,
                    partition.committed_leader_epoch,
                    partition.committed_metadata or "",
                    topic_id,
                )
    return offsets, refused


def pulsar_partitions(services: Services, partitions: Iterable[TopicPartition]) -> list[str]:
    """Pulsar's names of partitions whose offsets are kept."""
    return [services.catalog.names.parse(topic).partition(index) for topic, index in partitions]


async def learn(services: Services, unknown: Sequence[TopicName | uuid.UUID]) -> None:
    """Look topics up, for a moment: what can't be learnt by then stays unknown."""
    catalog = services.catalog
    lookups = (catalog.find_by_id(one) if isinstance(one, uuid.UUID) else _look_up(catalog, one) for one in unknown)
    try:
        async with asyncio.timeout(LEARN_SECONDS):
            await asyncio.gather(*lookups, return_exceptions=True)
    except TimeoutError:
        pass
    for one in unknown:
        if isinstance(one, TopicName) and catalog.remembered(one) is None and not catalog.is_missing(one):
            catalog.lost.failed_looks.note(one)


async def _look_up(catalog: Catalog, name: TopicName) -> Topic:
    """As it was a moment ago: it may have grown."""
    return catalog.known(name, JUST_NOW_SECONDS) or await catalog.look_at(name)


async def listed(
    services: Services, call: Call, late: ErrorCode = LATE_TOPIC
) -> list[tuple[TopicName, Topic | ErrorCode]]:
    """All topics, also those that can't be described now: a list without them would say that they are gone.

    Those that are in use here are described again; the others are as the catalogue has them.
    """
    names = await in_time(call, services.catalog.list_names(), None)
    if names is None:
        raise Unavailable("the topics could not be listed in time")
    services.catalog.listing.listed(names)
    found: dict[TopicName, Topic | ErrorCode] = {}
    pace = Pace()
    in_use = services.partitions.topics()
    for name in names:
        known = services.catalog.known(name, FRESH_SECONDS if name.pulsar in in_use else LISTED_SECONDS)
        if known is not None:
            found[name] = known
        await pace.maybe_yield()
    unknown = [name for name in names if name not in found]
    for begin in range(0, len(unknown), AT_ONCE):
        part = unknown[begin : begin + AT_ONCE]
        found.update(
            zip(part, await asyncio.gather(*(find(services, call, name, late=late) for name in part)), strict=True)
        )
    return [(name, found[name]) for name in names if found[name] not in GONE]


async def existing(services: Services, call: Call, name: str) -> Topic | ErrorCode:
    """The topic that a request names, or why there is none."""
    try:
        return await find(services, call, services.catalog.names.parse(name))
    except InvalidTopicName:
        return ErrorCode.INVALID_TOPIC_EXCEPTION


async def find(
    services: Services, call: Call, name: TopicName, *, create_partitions: int = 0, late: ErrorCode = LATE_TOPIC
) -> Topic | ErrorCode:
    """The topic, made when it is missing and `create_partitions` says so; else why not. `late` where Pulsar is, and it
    is not known.
    """
    known = services.catalog.remembered(name)
    try:
        found = await in_time(call, services.catalog.find(name), None)
        if found is not None:
            return found
        limited.warning("topic %s can't be described: Pulsar does not answer in time", name.pulsar)
        return known or late
    except PulsarError as error:
        code = error_code(error)
        if code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            limited.warning("%s", error)  # clients time out without a word
            if error.retriable and known is not None:
                return known  # a client that gets an error forgets the topic's partitions, and its group rebalances
            return LATE_TOPIC if error.retriable else code
        if not create_partitions:
            return code
    try:
        return await in_time(call, services.catalog.create_if_missing(name, create_partitions), late)
    except PulsarError as error:
        # A Kafka broker answers so while a new topic has no leader yet; clients ask again.
        return ErrorCode.LEADER_NOT_AVAILABLE if error.retriable else error_code(error)
