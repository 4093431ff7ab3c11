"""ConsumerGroupHeartbeat (68), versions 0 to 1 (KIP-848). v1 regular expressions; the member makes its id itself."""

from __future__ import annotations

import logging
import uuid
from functools import partial
from typing import Any, Final

from kio.schema.errors import ErrorCode

from handler.apis.api import Answer, Api, Call, Result, Services
from handler.apis.groups import ask, client_host, coordinated_in_order, milliseconds
from handler.groups.consumer.assignors import ASSIGNORS
from handler.groups.consumer.members import (
    JOIN_GROUP_MEMBER_EPOCH,
    LEAVE_GROUP_MEMBER_EPOCH,
    LEAVE_GROUP_STATIC_MEMBER_EPOCH,
    HeartbeatRequest,
    HeartbeatResponse,
)
from handler.groups.coordinator import Coordinator
from handler.groups.records.consumer import Assignment
from handler.telemetry.limits import RateLimitedLog

MEMBER_MAKES_ITS_ID_SINCE: Final = 1
limited = RateLimitedLog(logging.getLogger(__name__))


def _handle(services: Services, call: Call) -> Result:
    request = call.request
    beat = HeartbeatRequest(
        request.member_id or (str(uuid.uuid4()) if request.member_epoch == JOIN_GROUP_MEMBER_EPOCH else ""),
        request.member_epoch,
        request.instance_id,
        request.rack_id,
        milliseconds(request.rebalance_timeout),
        request.subscribed_topic_names,
        getattr(request, "subscribed_topic_regex", None),
        request.server_assignor,
        _owned(request.topic_partitions),
        call.client_id or "",
        client_host(call),
    )
    fault = _fault(call, beat)
    if fault is not None:
        limited.warning("group %s: member %s is refused: %s", request.group_id, beat.member_id, fault.message)
        return _answer(fault)

    def question(coordinator: Coordinator, told: Any) -> None:
        coordinator.consumers.heartbeat(beat, request.group_id, told)

    return ask(services, question, _answer, partial(_refuse, call))


def _fault(call: Call, beat: HeartbeatRequest) -> HeartbeatResponse | None:
    """What is wrong with the request alone, in the words of Kafka's GroupCoordinatorService."""
    if beat.assignor is not None and beat.assignor not in ASSIGNORS:
        supported = ", ".join(ASSIGNORS)
        return HeartbeatResponse(
            ErrorCode.unsupported_assignor, f"ServerAssignor {beat.assignor} is not supported. Supported assignors: {supported}."
        )
    text = _invalid(call, beat)
    return None if text is None else HeartbeatResponse(ErrorCode.invalid_request, text)


def _invalid(call: Call, beat: HeartbeatRequest) -> str | None:
    if not call.request.member_id and (
        call.version >= MEMBER_MAKES_ITS_ID_SINCE or beat.epoch > 0 or beat.epoch == LEAVE_GROUP_MEMBER_EPOCH
    ):
        return "MemberId can't be empty."
    if not call.request.group_id:
        return "GroupId can't be empty."
    if beat.instance_id == "":
        return "InstanceId can't be empty."
    if beat.rack_id == "":
        return "RackId can't be empty."
    if beat.epoch == JOIN_GROUP_MEMBER_EPOCH:
        return _invalid_joining(beat)
    if beat.epoch == LEAVE_GROUP_STATIC_MEMBER_EPOCH and beat.instance_id is None:
        return "InstanceId can't be null."
    return "MemberEpoch is invalid." if beat.epoch < LEAVE_GROUP_STATIC_MEMBER_EPOCH else None


def _invalid_joining(beat: HeartbeatRequest) -> str | None:
    if beat.rebalance_timeout < 0:
        return "RebalanceTimeoutMs must be provided in first request."
    if beat.owned is None or beat.owned:
        return "TopicPartitions must be empty when (re-)joining."
    if beat.topics is None and beat.regex is None:
        return "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining."
    return None


def _owned(topics: Any) -> Assignment | None:
    if topics is None:
        return None
    owned: dict[uuid.UUID, frozenset[int]] = {}
    for topic in topics:
        owned[topic.topic_id] = owned.get(topic.topic_id, frozenset()) | frozenset(topic.partitions)
    return owned


def _refuse(_: Call, error: ErrorCode) -> Answer:
    return _answer(HeartbeatResponse(error))


def _answer(answer: HeartbeatResponse) -> Answer:
    assignment = answer.assignment
    return {
        "throttle_time": 0,
        "error_code": answer.error,
        "error_message": answer.message,
        "member_id": answer.member_id or None,
        "member_epoch": answer.epoch,
        "heartbeat_interval": answer.interval,
        "assignment": None if assignment is None else {"topic_partitions": partitions_by_id(assignment)},
    }


def partitions_by_id(assignment: Assignment) -> list[dict[str, Any]]:
    return [{"topic_id": topic_id, "partitions": sorted(indexes)} for topic_id, indexes in assignment.items()]


API: Final = Api(68, "ConsumerGroupHeartbeat", 0, 1, coordinated_in_order(_handle, _refuse))
