"""ConsumerGroupHeartbeat (68), versions 0 to 1 (KIP-848).

v1  regular expressions; the member makes its id itself (KIP-1082)
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Sequence
from typing import Final

from kafka_sidecar.apis.api import Api, Call, Services
from kafka_sidecar.apis.needs import AclOperation, on_group, on_topic
from kafka_sidecar.apis.routing.to_coordinator import client_host, to_coordinator_in_turn
from kafka_sidecar.groups.consumer.assignors import ASSIGNORS
from kafka_sidecar.groups.consumer.members import (
    JOIN_GROUP_MEMBER_EPOCH,
    LEAVE_GROUP_MEMBER_EPOCH,
    LEAVE_GROUP_STATIC_MEMBER_EPOCH,
    HeartbeatResult,
    MemberHeartbeat,
)
from kafka_sidecar.groups.records.consumer import Assignment
from kafka_sidecar.telemetry.limits import RateLimitedLog
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.messages import consumer_group_heartbeat as messages
from kafka_sidecar.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)

MEMBER_MAKES_ITS_ID_SINCE: Final = 1
limited = RateLimitedLog(logging.getLogger(__name__))


async def _handle(
    services: Services, call: Call, request: ConsumerGroupHeartbeatRequest
) -> ConsumerGroupHeartbeatResponse:
    heartbeat = MemberHeartbeat(
        request.member_id or (str(uuid.uuid4()) if request.member_epoch == JOIN_GROUP_MEMBER_EPOCH else ""),
        request.member_epoch,
        request.instance_id,
        request.rack_id,
        request.rebalance_timeout_ms,
        None if request.subscribed_topic_names is None else tuple(request.subscribed_topic_names),
        request.subscribed_topic_regex,
        request.server_assignor,
        _owned(request.topic_partitions),
        call.client_id or "",
        client_host(call),
    )
    fault = _fault(call, request, heartbeat)
    if fault is not None:
        limited.warning("group %s: member %s is refused: %s", request.group_id, heartbeat.member_id, fault.message)
        return _response(fault)
    return _response(await services.groups.coordinator.consumer_groups.heartbeat(heartbeat, request.group_id))


def _fault(call: Call, request: ConsumerGroupHeartbeatRequest, heartbeat: MemberHeartbeat) -> HeartbeatResult | None:
    """The first mistake in the request alone, in the words of Kafka's GroupCoordinatorService."""
    if heartbeat.assignor is not None and heartbeat.assignor not in ASSIGNORS:
        supported = ", ".join(ASSIGNORS)
        return HeartbeatResult(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {heartbeat.assignor} is not supported. Supported assignors: {supported}.",
        )
    text = _invalid(call, request, heartbeat)
    return None if text is None else HeartbeatResult(ErrorCode.INVALID_REQUEST, text)


def _invalid(call: Call, request: ConsumerGroupHeartbeatRequest, heartbeat: MemberHeartbeat) -> str | None:
    if not request.member_id and (
        call.version >= MEMBER_MAKES_ITS_ID_SINCE or heartbeat.epoch > 0 or heartbeat.epoch == LEAVE_GROUP_MEMBER_EPOCH
    ):
        return "MemberId can't be empty."
    if not request.group_id:
        return "GroupId can't be empty."
    if heartbeat.instance_id == "":
        return "InstanceId can't be empty."
    if heartbeat.rack_id == "":
        return "RackId can't be empty."
    if heartbeat.epoch == JOIN_GROUP_MEMBER_EPOCH:
        return _invalid_joining(heartbeat)
    if heartbeat.epoch == LEAVE_GROUP_STATIC_MEMBER_EPOCH and heartbeat.instance_id is None:
        return "InstanceId can't be null."
    return "MemberEpoch is invalid." if heartbeat.epoch < LEAVE_GROUP_STATIC_MEMBER_EPOCH else None


def _invalid_joining(heartbeat: MemberHeartbeat) -> str | None:
    if heartbeat.rebalance_timeout < 0:
        return "RebalanceTimeoutMs must be provided in first request."
    if heartbeat.owned is None or heartbeat.owned:
        return "TopicPartitions must be empty when (re-)joining."
    if heartbeat.topics is None and heartbeat.regex is None:
        return "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining."
    return None


def _owned(topics: Sequence[TopicPartitions] | None) -> Assignment | None:
    if topics is None:
        return None
    owned: dict[uuid.UUID, frozenset[int]] = {}
    for topic in topics:
        if topic.topic_id is not None:
            owned[topic.topic_id] = owned.get(topic.topic_id, frozenset()) | frozenset(topic.partitions)
    return owned


def _refuse(_: Call, __: ConsumerGroupHeartbeatRequest, error: ErrorCode) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(error_code=error)


def _response(heartbeat: HeartbeatResult) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(
        error_code=heartbeat.error,
        error_message=heartbeat.message,
        member_id=heartbeat.member_id or None,
        member_epoch=heartbeat.epoch,
        heartbeat_interval_ms=heartbeat.interval,
        assignment=None if heartbeat.assignment is None else _assignment(heartbeat.assignment),
    )


def _assignment(assignment: Assignment) -> messages.Assignment:
    return messages.Assignment(
        topic_partitions=[
            TopicPartitions(topic_id=topic_id, partitions=sorted(indexes)) for topic_id, indexes in assignment.items()
        ]
    )


API: Final = Api(
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    0,
    1,
    to_coordinator_in_turn(_handle, _refuse),
    needs=on_group(AclOperation.READ) + on_topic(AclOperation.DESCRIBE),
    is_passed_on=True,
)
