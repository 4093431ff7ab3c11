"""ConsumerGroupDescribe (69), versions 0 to 1 (KIP-848).

v1  whether a member still speaks the classic protocol (KIP-1099)
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from kafka_sidecar.apis.api import Api, Call, Services
from kafka_sidecar.apis.needs import AclOperation, on_group, on_topic
from kafka_sidecar.apis.routing.fan_out import Parts, ask_peer, fan_out
from kafka_sidecar.coordination.errors import CoordinatorError
from kafka_sidecar.groups.consumer.machine import ConsumerGroup
from kafka_sidecar.groups.consumer.members import NO_PARTITIONS, ConsumerMember
from kafka_sidecar.groups.records import consumer as records
from kafka_sidecar.model.sidecar import SidecarInfo
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.messages.consumer_group_describe import (
    Assignment,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
    Member,
    TopicPartitions,
)

CLASSIC_MEMBER: Final = 0
CONSUMER_MEMBER: Final = 1


async def _handle(
    services: Services, call: Call, request: ConsumerGroupDescribeRequest
) -> ConsumerGroupDescribeResponse:
    async def here(groups: Sequence[str]) -> list[DescribedGroup]:
        return await asyncio.gather(*(_describe(services, group_id) for group_id in groups))

    async def elsewhere(leader: SidecarInfo, groups: Sequence[str]) -> Sequence[DescribedGroup]:
        part = ConsumerGroupDescribeRequest(
            group_ids=groups, include_authorized_operations=request.include_authorized_operations
        )
        return (await ask_peer(services, call, leader, part, ConsumerGroupDescribeResponse)).groups

    parts = Parts(group_of=str, here=here, elsewhere=elsewhere, refuse=_refused)
    return ConsumerGroupDescribeResponse(groups=await fan_out(services, call, parts, request.group_ids))


async def _describe(services: Services, group_id: str) -> DescribedGroup:
    """Nobody hears of what is not stored: the group as it is now may be under way to the log, and is waited for."""
    coordinator = services.groups.coordinator
    try:
        group = coordinator.describe(group_id)
        if not isinstance(group, ConsumerGroup):
            return _refused(group_id, ErrorCode.GROUP_ID_NOT_FOUND)
        described = _described(group)
        await coordinator.all_stored(group_id)
    except CoordinatorError as refused:
        return _refused(group_id, refused.error)
    return described


def _refused(group_id: str, error: ErrorCode) -> DescribedGroup:
    message = f"Group {group_id} is not a consumer group." if error is ErrorCode.GROUP_ID_NOT_FOUND else None
    return DescribedGroup(error_code=error, error_message=message, group_id=group_id)


def _described(group: ConsumerGroup) -> DescribedGroup:
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state.value,
        group_epoch=group.epoch,
        assignment_epoch=group.group_state.target_epoch,
        assignor_name=group.subscriptions.assignor,
        members=[_member(group, member) for member in group.members.values()],
    )


def _member(group: ConsumerGroup, member: ConsumerMember) -> Member:
    metadata = member.metadata
    return Member(
        member_id=member.member_id,
        instance_id=metadata.instance_id,
        rack_id=metadata.rack_id,
        member_epoch=member.epoch,
        client_id=metadata.client_id,
        client_host=metadata.client_host,
        subscribed_topic_names=metadata.topics,
        subscribed_topic_regex=metadata.regex,
        assignment=_assignment(group, member.current.assigned),
        target_assignment=_assignment(group, group.group_state.targets.get(member.member_id, NO_PARTITIONS)),
        member_type=CLASSIC_MEMBER if member.is_classic else CONSUMER_MEMBER,
    )


def _assignment(group: ConsumerGroup, assignment: records.Assignment) -> Assignment:
    """A topic that is gone has no name to show."""
    named = ((topic_id, group.topics.name_of(topic_id), sorted(indexes)) for topic_id, indexes in assignment.items())
    return Assignment(
        topic_partitions=[
            TopicPartitions(topic_id=topic_id, topic_name=name, partitions=indexes)
            for topic_id, name, indexes in named
            if name is not None
        ]
    )


API: Final = Api(
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    0,
    1,
    _handle,
    needs=on_group(AclOperation.DESCRIBE) + on_topic(AclOperation.DESCRIBE),
    ends_with_client=True,
    is_passed_on=True,
)
