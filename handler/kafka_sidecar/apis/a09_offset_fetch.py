"""OffsetFetch (9), versions 1 to 10.

v2   all topics with null; errors of the group
v5   leader epochs (KIP-320)
v6   flexible (KIP-482)
v7   stable offsets (KIP-447)
v8   many groups (KIP-709)
v9   members say who they are (KIP-848)
v10  topics by id (KIP-848); Java takes UNKNOWN_TOPIC_ID for final

What was committed of another topic that had the same name is left out (KAFKA-19141), also for those who ask by name.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Collection, Sequence
from typing import Final

from kafka_sidecar.apis.api import Api, Call, Response, Services
from kafka_sidecar.apis.common.late import LATE_GROUP, in_time
from kafka_sidecar.apis.common.topics import LEARN_SECONDS, find, requested_topic
from kafka_sidecar.apis.needs import AclOperation, on_group, on_topic
from kafka_sidecar.apis.routing.fan_out import Parts, ask_peer, fan_out
from kafka_sidecar.apis.routing.to_coordinator import to_coordinator_in_turn
from kafka_sidecar.coordination.errors import CoordinatorError
from kafka_sidecar.groups.records import OffsetCommitValue
from kafka_sidecar.groups.shard import Offsets, TopicPartition
from kafka_sidecar.loop.waiting import in_slices
from kafka_sidecar.model.sidecar import SidecarInfo
from kafka_sidecar.pulsar.errors import PulsarError, TopicMissing, Undescribed
from kafka_sidecar.topics.catalog import Topic
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

log = logging.getLogger(__name__)

UNKNOWN: Final = uuid.UUID(int=0)  # while Pulsar can't say which topic it is

GROUPS_SINCE: Final = 8
TOPIC_IDS_SINCE: Final = 10
GROUP_ERRORS_SINCE: Final = 2

Topics = Sequence[OffsetFetchRequestTopics]


# --- one group


async def _group(
    services: Services, call: Call, group: OffsetFetchRequestGroup, require_stable: bool
) -> OffsetFetchResponseGroup:
    """A member that has been put out must not go on from old offsets, so it may say who it is."""
    if not await _are_topics_known(services, group.topics):
        return _refused(group, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    group_id = group.group_id
    try:
        committed = await services.groups.coordinator.offsets(group_id, group.member_id, group.member_epoch)
        # At the same moment: what was pending then, and is committed since, is not in there.
        unstable = services.groups.coordinator.unstable_partitions(group_id) if require_stable else frozenset()
    except CoordinatorError as refused:
        return _refused(group, refused.error)
    if isinstance(committed, ErrorCode):
        return _refused(group, committed)
    offsets = await _of_these_topics(services, committed, group.topics)
    of_other_names = await _under_other_names(services, committed, group.topics)
    if offsets is None or of_other_names is None:
        return _refused(group, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    offsets = offsets | of_other_names
    if group.topics is None:
        topics = await _all_topics(services, call, offsets, unstable)
        if topics is None:
            return _refused(group, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return OffsetFetchResponseGroup(group_id=group_id, topics=topics)
    if services.mirror.wants(group_id):
        try:
            offsets = offsets | await _of_subscription(services, group_id, group.topics, offsets)
        except PulsarError as unavailable:
            log.info("the position of subscription %s is not known: %s", group_id, unavailable)
            # The client tries again; to begin anywhere else would lose or double records.
            return _refused(group, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    return OffsetFetchResponseGroup(
        group_id=group_id, topics=[_topic(services, topic, offsets, unstable) for topic in group.topics]
    )


async def _are_topics_known(services: Services, topics: Topics | None) -> bool:
    """Look ids up that nobody has asked about yet. False while Pulsar can't say whose they are."""
    unknown = [
        topic.topic_id
        for topic in topics or ()
        if topic.topic_id is not None
        and requested_topic(services, topic.name, topic.topic_id).error is ErrorCode.UNKNOWN_TOPIC_ID
    ]
    try:
        async with asyncio.timeout(LEARN_SECONDS):
            await asyncio.gather(*map(services.catalog.find_by_id, unknown))
    except (PulsarError, TimeoutError):
        return False  # the search goes on, and the client asks again
    return True


def _refused(group: OffsetFetchRequestGroup, error: ErrorCode) -> OffsetFetchResponseGroup:
    return OffsetFetchResponseGroup(group_id=group.group_id, error_code=error)


def _topic(
    services: Services, topic: OffsetFetchRequestTopics, offsets: Offsets, unstable: Collection[TopicPartition]
) -> OffsetFetchResponseTopics:
    requested = requested_topic(services, topic.name, topic.topic_id)
    partitions = []
    for index in topic.partition_indexes:
        at = requested.partition(index)
        if at in unstable:
            partitions.append(_partition(index, None, ErrorCode.UNSTABLE_OFFSET_COMMIT))
        else:
            partitions.append(_partition(index, None if at is None else offsets.get(at), requested.error))
    return OffsetFetchResponseTopics(name=topic.name, topic_id=topic.topic_id, partitions=partitions)


def _partition(index: int, value: OffsetCommitValue | None, error: ErrorCode) -> OffsetFetchResponsePartitions:
    if value is None:
        return OffsetFetchResponsePartitions(partition_index=index, committed_offset=-1, metadata="", error_code=error)
    return OffsetFetchResponsePartitions(
        partition_index=index,
        committed_offset=value.offset,
        committed_leader_epoch=value.leader_epoch,
        metadata=value.metadata,
    )


async def _all_topics(
    services: Services, call: Call, offsets: Offsets, unstable: Collection[TopicPartition]
) -> list[OffsetFetchResponseTopics] | None:
    """Everything the group has committed. A topic that is gone has no id, and is left out; None if Pulsar can't say
    which are gone.
    """
    partitions_of: dict[str, list[OffsetFetchResponsePartitions]] = {}
    for (topic, index), value in offsets.items():
        if (topic, index) not in unstable:
            partitions_of.setdefault(topic, []).append(_partition(index, value, ErrorCode.NONE))
    for topic, index in unstable:
        partitions_of.setdefault(topic, []).append(_partition(index, None, ErrorCode.UNSTABLE_OFFSET_COMMIT))
    if call.version < TOPIC_IDS_SINCE:
        return [
            OffsetFetchResponseTopics(name=name, partitions=partitions) for name, partitions in partitions_of.items()
        ]
    topics = []
    found = await in_slices(lambda name: find(services, call, services.catalog.names.parse(name)), list(partitions_of))
    for (name, partitions), current in zip(partitions_of.items(), found, strict=True):
        if isinstance(current, Topic):
            topics.append(OffsetFetchResponseTopics(topic_id=current.topic_id, partitions=partitions))
        elif current is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            # One topic that has lost a partition is not to hold up all others of its group.
            committed = next(
                (value.topic_id for (topic, _), value in offsets.items() if topic == name and value.topic_id), None
            )
            if committed is None:
                return None
            topics.append(OffsetFetchResponseTopics(topic_id=committed, partitions=partitions))
    return topics


async def _of_subscription(services: Services, group_id: str, topics: Topics, known: Offsets) -> Offsets:
    """Where a group that has committed nothing begins: at the Pulsar subscription of its name."""
    positions: Offsets = {}
    for topic in topics:
        requested = requested_topic(services, topic.name, topic.topic_id)
        for index in topic.partition_indexes:
            at = requested.partition(index)
            if (
                at is None
                or requested.topic is None
                or at in known
                or not services.catalog.may_have(requested.topic, index)
            ):
                continue
            try:
                offset = await services.mirror.offset(group_id, requested.topic.partition(index))
            except TopicMissing:
                continue
            if offset is not None:
                positions[at] = OffsetCommitValue(offset, -1, "", services.wall_clock(), -1)
    return positions


async def _of_these_topics(services: Services, offsets: Offsets, topics: Topics | None) -> Offsets | None:
    """Without what was committed of other topics that had the names of these. None if Pulsar can't say which are there
    now.

    Kafka does so for requests by id; one by name would get the offsets of a topic that was deleted while its sidecar
    died.
    """
    if topics is None:
        offsets = _by_their_ids(services, offsets)
    wanted = (
        None
        if topics is None
        else {requested_topic(services, topic.name, topic.topic_id).canonical for topic in topics}
    )
    marked = {
        topic
        for (topic, _), value in offsets.items()
        if value.topic_id is not None and (wanted is None or topic in wanted)
    }
    ids = dict(zip(marked, await asyncio.gather(*(_current_id(services, topic) for topic in marked)), strict=True))
    if UNKNOWN in ids.values():
        return None
    return {at: value for at, value in offsets.items() if _counts(value, ids.get(at[0]))}


def _by_their_ids(services: Services, offsets: Offsets) -> Offsets:
    """Under the names that their topics have now, where these are known by their ids (see `_under_other_names`)."""
    by_name: Offsets = {}
    by_id: Offsets = {}
    for (topic, index), value in offsets.items():
        name = services.catalog.name_of(value.topic_id)
        current = topic if name is None else services.catalog.names.kafka(name)
        (by_name if current == topic else by_id)[current, index] = value
    return by_id | by_name


async def _under_other_names(services: Services, offsets: Offsets, topics: Topics | None) -> Offsets | None:
    """What was committed of these topics under names that are others' now. None if Pulsar can't say which are there
    now.

    Until 0.3.0 sidecars of two namespaces wrote the same short names for different topics: whose an offset is, the
    topic's id tells.
    """
    missing: dict[TopicPartition, str] = {}
    for topic in topics or ():
        requested = requested_topic(services, topic.name, topic.topic_id)
        if requested.topic is not None:
            missing.update(
                {
                    at: requested.topic.local
                    for index in topic.partition_indexes
                    if (at := (requested.canonical, index)) not in offsets
                }
            )
    found: Offsets = {}
    if not missing:
        return found
    by_local_name: dict[TopicPartition, list[OffsetCommitValue]] = {}
    for (topic_name, index), value in offsets.items():
        if value.topic_id is not None:
            by_local_name.setdefault((topic_name.rpartition("/")[2], index), []).append(value)
    for (topic_name, index), local in missing.items():
        for value in by_local_name.get((local, index), ()):
            topic_id = await _current_id(services, topic_name)
            if topic_id is UNKNOWN:
                return None
            if topic_id is not None and value.topic_id == topic_id:
                found[topic_name, index] = value
    return found


async def _current_id(services: Services, topic: str) -> uuid.UUID | None:
    """The id of the topic that has this name now; None where there is none, or Pulsar will not say. UNKNOWN while it
    can't say, and it is not remembered.
    """
    name = services.catalog.names.parse(topic)
    try:
        return (await services.catalog.find(name)).topic_id
    except PulsarError as error:
        remembered = services.catalog.remembered(name)
        if remembered is not None:
            return remembered.topic_id
        # One topic that has lost a partition is not to hold up all others of its group for longer than half a minute.
        is_lost = isinstance(error, Undescribed) and services.catalog.lost.has(name)
        return UNKNOWN if error.retriable and not is_lost else None


def _counts(value: OffsetCommitValue, topic_id: uuid.UUID | None) -> bool:
    return topic_id is None or value.counts_for(topic_id)


# --- requests about one group, to v7


async def _of_one(services: Services, call: Call, request: OffsetFetchRequest) -> OffsetFetchResponse:
    topics = None
    if request.topics is not None:
        topics = [
            OffsetFetchRequestTopics(name=topic.name, partition_indexes=topic.partition_indexes)
            for topic in request.topics
        ]
    group = await _group(
        services, call, OffsetFetchRequestGroup(group_id=request.group_id, topics=topics), request.require_stable
    )
    if group.error_code is not ErrorCode.NONE:
        return _refuse(call, request, group.error_code)
    return OffsetFetchResponse(
        topics=[
            OffsetFetchResponseTopic(name=topic.name, partitions=[_older(one) for one in topic.partitions])
            for topic in group.topics
        ]
    )


def _older(partition: OffsetFetchResponsePartitions) -> OffsetFetchResponsePartition:
    return OffsetFetchResponsePartition(
        partition_index=partition.partition_index,
        committed_offset=partition.committed_offset,
        committed_leader_epoch=partition.committed_leader_epoch,
        metadata=partition.metadata,
        error_code=partition.error_code,
    )


def _refuse(call: Call, request: OffsetFetchRequest, error: ErrorCode) -> OffsetFetchResponse:
    if call.version >= GROUP_ERRORS_SINCE:
        return OffsetFetchResponse(error_code=error)
    return OffsetFetchResponse(
        topics=[
            OffsetFetchResponseTopic(
                name=topic.name,
                partitions=[_older(_partition(index, None, error)) for index in topic.partition_indexes],
            )
            for topic in request.topics or ()
        ]
    )


_handle_one: Final = to_coordinator_in_turn(_of_one, _refuse)


# --- requests about many groups


async def _of_many(services: Services, call: Call, request: OffsetFetchRequest) -> OffsetFetchResponse:
    async def here(groups: Sequence[OffsetFetchRequestGroup]) -> list[OffsetFetchResponseGroup]:
        return [await _group(services, call, group, request.require_stable) for group in groups]

    async def elsewhere(
        leader: SidecarInfo, groups: Sequence[OffsetFetchRequestGroup]
    ) -> Sequence[OffsetFetchResponseGroup]:
        part = OffsetFetchRequest(groups=groups, require_stable=request.require_stable)
        return (await ask_peer(services, call, leader, part, OffsetFetchResponse)).groups

    parts = Parts(group_of=lambda group: group.group_id, here=here, elsewhere=elsewhere, refuse=_refused)
    if not await in_time(call, _all_before(services, call, request.groups), False):
        return OffsetFetchResponse(groups=[_refused(group, LATE_GROUP) for group in request.groups])
    return OffsetFetchResponse(groups=await fan_out(services, call, parts, request.groups))


async def _all_before(services: Services, call: Call, groups: Sequence[OffsetFetchRequestGroup]) -> bool:
    """Wait for what this client has asked of the same groups before."""
    for group in groups:
        async with services.in_turn.turn((call.client, group.group_id)):
            pass
    return True


async def _handle(services: Services, call: Call, request: OffsetFetchRequest) -> Response:
    if call.version >= GROUPS_SINCE:
        return await _of_many(services, call, request)
    return await in_time(call, _handle_one(services, call, request), _refuse(call, request, LATE_GROUP))


API: Final = Api(
    OffsetFetchRequest,
    OffsetFetchResponse,
    1,
    10,
    _handle,
    needs=on_group(AclOperation.DESCRIBE) + on_topic(AclOperation.DESCRIBE),
    ends_with_client=True,
    is_passed_on=True,
)
