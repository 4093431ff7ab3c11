"""ConsumerGroupDescribe (69), versions 0 to 1 (KIP-848). v1 whether a member still speaks the classic protocol."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final

from kio.schema.errors import ErrorCode

from handler.apis.a03_metadata import OPERATIONS_NOT_GIVEN
from handler.apis.api import Answer, Api, Call, Services
from handler.apis.fan_out import Parts, fan_out
from handler.coordination.errors import NotLeading
from handler.groups.consumer.machine import ConsumerGroup
from handler.groups.consumer.members import NOTHING, ConsumerMember
from handler.groups.records.consumer import Assignment

CLASSIC_MEMBER: Final = 0
CONSUMER_MEMBER: Final = 1


async def _handle(services: Services, call: Call) -> Answer:
    async def here(groups: Sequence[str]) -> list[dict[str, Any]]:
        return await asyncio.gather(*(_describe(services, group_id) for group_id in groups))

    return {"throttle_time": 0, "groups": await fan_out(services, call, Parts("group_ids", "groups", str, here, _nothing))}


async def _describe(services: Services, group_id: str) -> dict[str, Any]:
    """Nobody is told of what is not stored: what is told now may be under way, and is waited for."""
    told: asyncio.Future[ErrorCode] = asyncio.get_running_loop().create_future()
    coordinator = services.groups.join_elections()
    try:
        group = coordinator.describe(group_id)
        found = _told(group) if isinstance(group, ConsumerGroup) else _nothing(group_id, ErrorCode.group_id_not_found)
        coordinator.after_writes(group_id, lambda error: None if told.done() else told.set_result(error))
    except NotLeading as refused:
        return _nothing(group_id, refused.error)
    error = await told
    return found if error is ErrorCode.none else _nothing(group_id, error)


def _nothing(group_id: str, error: ErrorCode) -> dict[str, Any]:
    message = f"Group {group_id} is not a consumer group." if error is ErrorCode.group_id_not_found else None
    return {
        "error_code": error, "error_message": message, "group_id": group_id, "group_state": "", "group_epoch": 0, "assignment_epoch": 0,
        "assignor_name": "", "members": (), "authorized_operations": OPERATIONS_NOT_GIVEN,
    }  # fmt: skip


def _told(group: ConsumerGroup) -> dict[str, Any]:
    return _nothing(group.group_id, ErrorCode.none) | {
        "group_state": group.state.value,
        "group_epoch": group.epoch,
        "assignment_epoch": group.group_state.target_epoch,
        "assignor_name": group.subscriptions.assignor,
        "members": [_member(group, member) for member in group.members.values()],
    }


def _member(group: ConsumerGroup, member: ConsumerMember) -> dict[str, Any]:
    told = member.told
    return {
        "member_id": member.member_id,
        "instance_id": told.instance_id,
        "rack_id": told.rack_id,
        "member_epoch": member.epoch,
        "client_id": told.client_id,
        "client_host": told.client_host,
        "subscribed_topic_names": told.topics,
        "subscribed_topic_regex": told.regex,
        "assignment": _partitions(group, member.current.assigned),
        "target_assignment": _partitions(group, group.group_state.targets.get(member.member_id, NOTHING)),
        "member_type": CLASSIC_MEMBER if member.is_classic else CONSUMER_MEMBER,
    }


def _partitions(group: ConsumerGroup, assignment: Assignment) -> dict[str, Any]:
    """A topic that is gone has no name to be told by."""
    named = [(topic_id, group.topics.name_of(topic_id), sorted(indexes)) for topic_id, indexes in assignment.items()]
    topics = [{"topic_id": topic_id, "topic_name": name, "partitions": indexes} for topic_id, name, indexes in named if name is not None]
    return {"topic_partitions": topics}


API: Final = Api(69, "ConsumerGroupDescribe", 0, 1, _handle, ends_with_client=True)
