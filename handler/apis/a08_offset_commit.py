"""OffsetCommit (8), versions 2 to 10.

v2–v4 a retention of their own · v6 leader epochs · v7 static members · v9 generation or member epoch ·
v10 topic ids
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from kio.schema.errors import ErrorCode

from handler.apis.api import Answer, Api, Call, Result, Services
from handler.apis.groups import Asked, ask, asked_topic, coordinated_in_order, milliseconds, place
from handler.groups.coordinator import Commit, Coordinator
from handler.groups.shard import TopicPartition

MEMBER_EPOCH_SINCE: Final = 9

Offsets = dict[TopicPartition, tuple[int, int, str]]


def _handle(services: Services, call: Call) -> Result:
    request = call.request
    topics = [(asked_topic(services, topic), topic.partitions) for topic in request.topics]
    offsets: Offsets = {}
    refused: dict[TopicPartition, ErrorCode] = {}
    for asked, partitions in topics:
        for partition in partitions:
            index = partition.partition_index
            at = place(asked, index)
            if at is None or asked.topic is None:
                continue
            if not services.catalog.may_have(asked.topic, index):
                refused[at] = ErrorCode.unknown_topic_or_partition
                continue
            epoch = getattr(partition, "committed_leader_epoch", -1)
            offsets[at] = (partition.committed_offset, epoch, partition.committed_metadata or "")
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


API: Final = Api(8, "OffsetCommit", 2, 10, coordinated_in_order(_handle, _refuse))
