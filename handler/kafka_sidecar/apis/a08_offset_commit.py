"""OffsetCommit (8), versions 2 to 10.

v2   a retention of the client's own, to v4
v6   leader epochs (KIP-320)
v7   static members (KIP-345)
v8   flexible (KIP-482)
v9   a member epoch where there was a generation (KIP-848)
v10  topics by id (KIP-848)

A topic that is known not to exist is UNKNOWN_TOPIC_OR_PARTITION, and an id that no topic has is UNKNOWN_TOPIC_ID. While
the sidecar can't learn for a moment which topic it is, and remembers none, it says COORDINATOR_LOAD_IN_PROGRESS.
Clients retry. When Pulsar has not described a topic for ten seconds, its commits are taken without its id.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Final

from kafka_sidecar.apis.api import Api, Call, Services
from kafka_sidecar.apis.common.topics import RequestedTopic, committed_offsets, requested_topic, resolve
from kafka_sidecar.apis.needs import AclOperation, on_group, on_topic
from kafka_sidecar.apis.routing.to_coordinator import to_coordinator_in_turn
from kafka_sidecar.groups.coordinator import Commit
from kafka_sidecar.groups.shard import TopicPartition
from kafka_sidecar.groups.vocabulary import Committer
from kafka_sidecar.topics.names import TopicName
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

MEMBER_EPOCH_SINCE: Final = 9
# A topic that was described longer ago is described again before a commit: there may be another of its name.
KNOWN_SECONDS: Final = 60.0

Topics = Sequence[tuple[RequestedTopic, Sequence[OffsetCommitRequestPartition]]]


def _unknown(services: Services, request: OffsetCommitRequest) -> list[TopicName | uuid.UUID]:
    """The topics that may or may not be there, under an id that is not known."""
    catalog = services.catalog
    unknown: list[TopicName | uuid.UUID] = []
    for topic in request.topics:
        name = resolve(services, topic.name, topic.topic_id)
        if name is ErrorCode.UNKNOWN_TOPIC_ID and topic.topic_id is not None:
            unknown.append(topic.topic_id)
        elif isinstance(name, TopicName) and not catalog.is_missing(name):
            known = catalog.known(name, KNOWN_SECONDS)
            if known is None or any(partition.partition_index >= known.partitions for partition in topic.partitions):
                unknown.append(name)
    return unknown


async def _handle(services: Services, call: Call, request: OffsetCommitRequest) -> OffsetCommitResponse:
    topics = [(_requested(services, topic), topic.partitions) for topic in request.topics]
    offsets, refused = committed_offsets(services, topics)
    knows_epochs = call.version >= MEMBER_EPOCH_SINCE
    committer = Committer(
        request.member_id, request.group_instance_id, request.generation_id_or_member_epoch, knows_epochs
    )
    commit = Commit(request.group_id, committer, request.retention_time_ms, offsets)
    errors = await services.groups.coordinator.commit(commit)
    return _response(topics, errors | refused)


def _requested(services: Services, topic: OffsetCommitRequestTopic) -> RequestedTopic:
    """While Pulsar can't say whether a topic has the id, the client is to try again."""
    requested = requested_topic(services, topic.name, topic.topic_id)
    if (
        requested.error is ErrorCode.UNKNOWN_TOPIC_ID
        and topic.topic_id
        and not services.catalog.ids.is_unknown(topic.topic_id)
    ):
        return requested._replace(error=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    return requested


def _response(topics: Topics, errors: Mapping[TopicPartition, ErrorCode]) -> OffsetCommitResponse:
    responses = []
    for requested, partitions in topics:
        answers = []
        for partition in partitions:
            at = requested.partition(partition.partition_index)
            error = requested.error if at is None else errors[at]
            answers.append(OffsetCommitResponsePartition(partition_index=partition.partition_index, error_code=error))
        responses.append(
            OffsetCommitResponseTopic(name=requested.name, topic_id=requested.topic_id, partitions=answers)
        )
    return OffsetCommitResponse(topics=responses)


def _refuse(_: Call, request: OffsetCommitRequest, error: ErrorCode) -> OffsetCommitResponse:
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    OffsetCommitResponsePartition(partition_index=partition.partition_index, error_code=error)
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


API: Final = Api(
    OffsetCommitRequest,
    OffsetCommitResponse,
    2,
    10,
    to_coordinator_in_turn(_handle, _refuse, _unknown),
    needs=on_group(AclOperation.READ) + on_topic(AclOperation.READ),
    is_passed_on=True,
)
