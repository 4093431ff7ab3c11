"""OffsetFetch (9), versions 1 to 10.

v2 all topics with null, group errors · v7 RequireStable (there are no transactions to wait for) ·
v8 many groups · v9 member epochs · v10 topic ids
What was committed of another topic that had the same name is left out (KAFKA-19141), also for those who ask by name.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from kio.schema.errors import ErrorCode

from handler.apis.api import Answer, Api, Call, Result, Services
from handler.apis.fan_out import Parts, fan_out
from handler.apis.groups import Asked, asked_topic, coordinated_in_order, place, settled
from handler.apis.late import LATE_GROUP, in_time
from handler.apis.topics import find
from handler.coordination.errors import NotLeading
from handler.groups.records import OffsetValue
from handler.groups.shard import Offsets
from handler.pulsar.errors import PulsarError, TopicMissing
from handler.topics.catalog import Topic, Undescribed

log = logging.getLogger(__name__)

UNKNOWN: Final = uuid.UUID(int=0)  # while Pulsar can't say which topic it is

GROUPS_SINCE: Final = 8
TOPIC_IDS_SINCE: Final = 10
GROUP_ERRORS_SINCE: Final = 2


def _partition(index: int, value: OffsetValue | None, error: ErrorCode) -> dict[str, Any]:
    if value is None:
        return {"partition_index": index, "committed_offset": -1, "committed_leader_epoch": -1, "metadata": "", "error_code": error}
    return {
        "partition_index": index, "committed_offset": value.offset, "committed_leader_epoch": value.leader_epoch,
        "metadata": value.metadata, "error_code": error,
    }  # fmt: skip


def _topic(asked: Asked, indexes: Any, offsets: Offsets, error: ErrorCode) -> dict[str, Any]:
    partitions = []
    for index in indexes:
        at = place(asked, index)
        failed = error if error is not ErrorCode.none else asked.error
        partitions.append(_partition(index, offsets.get(at) if at is not None and error is ErrorCode.none else None, failed))
    return {**asked.identity, "partitions": partitions}


async def _all_topics(services: Services, call: Call, offsets: Offsets, by_id: bool) -> list[dict[str, Any]] | None:
    """Everything the group has committed. A topic that is gone has no id to be told by; None if Pulsar can't say which are gone."""
    topics: dict[str, list[dict[str, Any]]] = {}
    for (topic, index), value in offsets.items():
        topics.setdefault(topic, []).append(_partition(index, value, ErrorCode.none))
    if not by_id:
        return [{"name": name, "partitions": partitions} for name, partitions in topics.items()]
    told = []
    for name, partitions in topics.items():
        found = await find(services, call, services.catalog.names.parse(name))
        if isinstance(found, Topic):
            told.append({"topic_id": found.topic_id, "partitions": partitions})
        elif found is not ErrorCode.unknown_topic_or_partition:
            return None
    return told


async def _of_subscription(services: Services, group_id: str, topics: Any, known: Offsets) -> Offsets:
    """Where a group that has committed nothing begins: at the Pulsar subscription of its name."""
    found: Offsets = {}
    for topic in topics:
        asked = asked_topic(services, topic)
        for index in topic.partition_indexes:
            at = place(asked, index)
            if at is None or asked.topic is None or at in known or not services.catalog.may_have(asked.topic, index):
                continue
            try:
                offset = await services.mirror.offset(group_id, asked.topic.partition(index))
            except TopicMissing:
                continue
            if offset is not None:
                found[at] = OffsetValue(offset, -1, "", services.wall_clock(), -1)
    return found


async def _of_these_topics(services: Services, offsets: Offsets, topics: Any) -> Offsets | None:
    """Without what was committed of other topics that had the names of these. None if Pulsar can't say which are there now.

    Kafka does so for requests by id; one by name would get the offsets of a topic that was deleted while its sidecar died.
    """
    wanted = None if topics is None else {asked_topic(services, topic).name for topic in topics}
    marked = {topic for (topic, _), value in offsets.items() if value.topic_id is not None and (wanted is None or topic in wanted)}
    ids = dict(zip(marked, await asyncio.gather(*(_current_id(services, topic) for topic in marked)), strict=True))
    if UNKNOWN in ids.values():
        return None
    return {at: value for at, value in offsets.items() if _counts(value, ids.get(at[0]))}


async def _current_id(services: Services, topic: str) -> uuid.UUID | None:
    """The id of the topic that has this name now; None where there is none, or Pulsar will not say. UNKNOWN while it can't
    say, and it is not remembered.
    """
    name = services.catalog.names.parse(topic)
    try:
        return (await services.catalog.find(name)).topic_id
    except PulsarError as error:
        remembered = services.catalog.remembered(name)
        if remembered is not None:
            return remembered.topic_id
        # One topic that has lost a partition is not to hold up all others of its group.
        return UNKNOWN if error.retriable and not isinstance(error, Undescribed) else None


def _counts(value: OffsetValue, topic_id: uuid.UUID | None) -> bool:
    return topic_id is None or value.counts_for(topic_id)


class Member(NamedTuple):
    """Who asks, if it says so. A member that has been put out must not go on from old offsets."""

    member_id: str | None = None
    epoch: int = -1


async def _group(services: Services, call: Call, group_id: str, topics: Any, member: Member) -> dict[str, Any]:
    error = ErrorCode.none
    offsets: Offsets = {}
    told: asyncio.Future[Offsets | ErrorCode] = asyncio.get_running_loop().create_future()
    try:
        services.groups.join_elections().offsets(group_id, lambda found: None if told.done() else told.set_result(found), *member)
        found = await told
        if isinstance(found, ErrorCode):
            error = found
        else:
            known = await _of_these_topics(services, found, topics)
            offsets = known or {}
            error = ErrorCode.coordinator_load_in_progress if known is None else ErrorCode.none
    except NotLeading as refused:
        error = refused.error
    if error is not ErrorCode.none and call.version >= GROUP_ERRORS_SINCE:
        return {"group_id": group_id, "topics": (), "error_code": error}
    if topics is not None and error is ErrorCode.none and services.mirror.wants(group_id):
        try:
            offsets = offsets | await _of_subscription(services, group_id, topics, offsets)
        except PulsarError as unavailable:
            log.info("the subscription %s can't be asked for its position: %s", group_id, unavailable)
            error = ErrorCode.coordinator_load_in_progress  # asked again; to begin anywhere else would lose or double records
            if call.version >= GROUP_ERRORS_SINCE:
                return {"group_id": group_id, "topics": (), "error_code": error}
    if topics is None:
        answers = await _all_topics(services, call, offsets, call.version >= TOPIC_IDS_SINCE)
        if answers is None:
            return {"group_id": group_id, "topics": (), "error_code": ErrorCode.coordinator_load_in_progress}
    else:
        answers = [_topic(asked_topic(services, topic), topic.partition_indexes, offsets, error) for topic in topics]
    return {"group_id": group_id, "topics": answers, "error_code": error}


async def _of_one(services: Services, call: Call) -> Answer:
    group = await _group(services, call, call.request.group_id, call.request.topics, Member())
    return {"throttle_time": 0, "topics": group["topics"], "error_code": group["error_code"]}


def _refuse(call: Call, error: ErrorCode) -> Answer:
    if call.version >= GROUP_ERRORS_SINCE:
        return {"throttle_time": 0, "topics": (), "error_code": error}
    topics = [
        {"name": topic.name, "partitions": [_partition(index, None, error) for index in topic.partition_indexes]}
        for topic in call.request.topics
    ]
    return {"throttle_time": 0, "topics": topics}


_handle_one: Final = coordinated_in_order(_of_one, _refuse)


def _member(group: Any) -> Member:
    return Member(getattr(group, "member_id", None), getattr(group, "member_epoch", -1))


async def _of_many(services: Services, call: Call) -> Answer:
    async def here(groups: Sequence[Any]) -> list[dict[str, Any]]:
        return [await _group(services, call, group.group_id, group.topics, _member(group)) for group in groups]

    def refuse(group: Any, error: ErrorCode) -> dict[str, Any]:
        return {"group_id": group.group_id, "topics": (), "error_code": error}

    for group in call.request.groups:
        if not await in_time(call, services.order.wait(call.client, group.group_id), False):
            return {"throttle_time": 0, "groups": [refuse(one, LATE_GROUP) for one in call.request.groups]}
    groups = await fan_out(services, call, Parts("groups", "groups", lambda group: group.group_id, here, refuse))
    return {"throttle_time": 0, "groups": groups}


def _handle(services: Services, call: Call) -> Result:
    if call.version >= GROUPS_SINCE:
        return _of_many(services, call)
    return in_time(call, settled(_handle_one(services, call)), _refuse(call, LATE_GROUP))


API: Final = Api(9, "OffsetFetch", 1, 10, _handle, ends_with_client=True)
