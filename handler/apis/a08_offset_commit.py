"""OffsetCommit (8), versions 2 to 10.

v2–v4 a retention of their own · v6 leader epochs · v7 static members · v9 generation or member epoch ·
v10 topic ids
A topic that is known not to exist is UNKNOWN_TOPIC_OR_PARTITION; while that can't be learnt the commit is taken. An id
of which no topic is known is UNKNOWN_TOPIC_ID, which clients retry.
"""

from __future__ import annotations

import uuid
from functools import partial
from typing import Any, Final

from kio.schema.errors import ErrorCode

from handler.apis.api import Answer, Api, Call, Result, Services
from handler.apis.groups import Asked, ask, asked_topic, coordinated_in_order, milliseconds, place
from handler.apis.topics import resolve
from handler.groups.coordinator import Commit, CommittedOffset, Coordinator
from handler.groups.shard import TopicPartition
from handler.topics.names import TopicName

MEMBER_EPOCH_SINCE: Final = 9
# What is known of a topic for longer is looked at again before a commit: there may be another of its name.
KNOWN_SECONDS: Final = 60.0

Offsets = dict[TopicPartition, CommittedOffset]


def _unknown(services: Services, call: Call) -> list[TopicName | uuid.UUID]:
    """The topics of which is not known whether they are there, and under which id."""
    catalog = services.catalog
    unknown: list[TopicName | uuid.UUID] = []
    for topic in call.request.topics:
        name = resolve(services, topic)
        topic_id = getattr(topic, "topic_id", None)
        if name is ErrorCode.unknown_topic_id and topic_id is not None:
            unknown.append(topic_id)
        elif isinstance(name, TopicName) and not catalog.is_missing(name):
            known = catalog.known(name, KNOWN_SECONDS)
            if known is None or any(partition.partition_index >= known.partitions for partition in topic.partitions):
                unknown.append(name)
    return unknown


def _handle(services: Services, call: Call) -> Result:
    request = call.request
    topics = [(asked_topic(services, topic), topic.partitions) for topic in request.topics]
    offsets: Offsets = {}
    refused: dict[TopicPartition, ErrorCode] = {}
    for asked, partitions in topics:
        known = None if asked.topic is None else services.catalog.remembered(asked.topic)
        topic_id = asked.identity["topic_id"] or (None if known is None else known.topic_id)
        for partition in partitions:
            index = partition.partition_index
            at = place(asked, index)
            if at is None or asked.topic is None:
                continue
            if not services.catalog.may_have(asked.topic, index):
                refused[at] = ErrorCode.unknown_topic_or_partition
                continue
            epoch = getattr(partition, "committed_leader_epoch", -1)
            offsets[at] = CommittedOffset(partition.committed_offset, epoch, partition.committed_metadata or "", topic_id)
    generation = request.generation_id_or_member_epoch
    commit = Commit(
        request.group_id, request.member_id, getattr(request, "group_instance_id", None), generation,
        milliseconds(getattr(request, "retention_time", -1)), offsets,
        knows_epochs=call.version >= MEMBER_EPOCH_SINCE,
    )  # fmt: skip

    def answer(errors: dict[TopicPartition, ErrorCode]) -> Answer:
        return _answer(topics, errors | refused)

    def question(coordinator: Coordinator, told: Any) -> None:
        coordinator.commit(commit, told)

    return ask(services, question, answer, partial(_refuse, call))


def _answer(topics: list[tuple[Asked, Any]], errors: dict[TopicPartition, ErrorCode]) -> Answer:
    told = []
    for asked, partitions in topics:
        answers = []
        for partition in partitions:
            at = place(asked, partition.partition_index)
            error = asked.error if at is None else errors[at]
            answers.append({"partition_index": partition.partition_index, "error_code": error})
        told.append({**asked.identity, "partitions": answers})
    return {"throttle_time": 0, "topics": told}


def _refuse(call: Call, error: ErrorCode) -> Answer:
    topics = [
        {
            "name": getattr(topic, "name", ""), "topic_id": getattr(topic, "topic_id", None),
            "partitions": [{"partition_index": one.partition_index, "error_code": error} for one in topic.partitions],
        }
        for topic in call.request.topics
    ]  # fmt: skip
    return {"throttle_time": 0, "topics": topics}


API: Final = Api(8, "OffsetCommit", 2, 10, coordinated_in_order(_handle, _refuse, _unknown))
