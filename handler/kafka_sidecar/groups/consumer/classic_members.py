"""Members of a consumer group that still speak the classic protocol: what they ask, in terms of heartbeats.

They join and at once have a generation, which is their epoch; ask for their partitions; and learn from
their Heartbeats when to join again: the group has a new epoch, they have something to revoke, or what
they waited for is free.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable

from kafka_sidecar.errors import ProtocolError
from kafka_sidecar.groups.classic.members import (
    JoinResult,
    MemberIdentity,
    MemberJoin,
    MemberSync,
    Protocols,
    SyncResult,
)
from kafka_sidecar.groups.consumer.machine import ConsumerGroup, Due
from kafka_sidecar.groups.consumer.members import NO_PARTITIONS, ConsumerMember, Downgrade, MemberState, Refusal
from kafka_sidecar.groups.records.consumer import Assignment, ClassicMemberMetadata, MemberMetadataValue
from kafka_sidecar.groups.records.subscription import Subscription, read_subscription, write_parts
from kafka_sidecar.groups.vocabulary import CONSUMER_PROTOCOL, UNKNOWN_MEMBER_ID, Now
from kafka_sidecar.wire.error_code import ErrorCode

# --- JoinGroup


def join(group: ConsumerGroup, now: Now, request: MemberJoin) -> JoinResult:
    try:
        answer = _join(group, now, request)
    except Refusal as refused:
        answer = JoinResult(refused.error, request.member_id)
    group.flush()
    return answer


def _join(group: ConsumerGroup, now: Now, request: MemberJoin) -> JoinResult:
    group.check_room(request.member_id)
    if request.protocol_type != CONSUMER_PROTOCOL or not _share_one(group, request.protocols):
        raise Refusal(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "its protocols are not those of the others")
    if request.member_id == UNKNOWN_MEMBER_ID and request.instance_id is None and request.needs_member_id:
        return JoinResult(ErrorCode.MEMBER_ID_REQUIRED, request.new_member_id)
    member_id = request.member_id or request.new_member_id
    before = _joining_member(group, request, member_id)
    subscription = _subscription(request.protocols)
    metadata = _member_metadata(before, request, subscription)
    group.check(before, member_id, metadata)
    member = group.enter(before, member_id, metadata)
    changed = group.subscribe(now, before, member)
    member = group.step(now, member, changed, _owned_partitions(group, subscription))
    if (
        group.only_classic and before is not None and not before.is_classic
    ):  # the last member that used the consumer protocol has changed to the classic one
        settled = all(map(group.is_reconciled, group.members.values()))
        group.downgrade = Downgrade(rebalance=changed or not settled)
    group.deadlines.cancel((Due.JOIN, member_id))
    group.deadlines.set((Due.SYNC, member_id), now.clock + request.rebalance_timeout / 1000)
    group.reset_session_timeout(member, now)
    return JoinResult(ErrorCode.NONE, member_id, member.epoch, CONSUMER_PROTOCOL, request.protocols[0][0])


def _share_one(group: ConsumerGroup, protocols: Protocols) -> bool:
    """Whether one of these is supported by all members that may once assign by it again."""
    others = [
        dict(member.metadata.classic.protocols).keys()
        for member in group.members.values()
        if member.metadata.classic is not None
    ]
    return any(all(name in names for names in others) for name, _ in protocols)


def _joining_member(group: ConsumerGroup, request: MemberJoin, member_id: str) -> ConsumerMember | None:
    if request.instance_id is None:
        return group.members.get(member_id)
    if request.member_id == UNKNOWN_MEMBER_ID:
        return group.static_member(request.instance_id)
    return group.check_static(request.member_id, request.instance_id)


def _subscription(protocols: Protocols) -> Subscription:
    try:
        return read_subscription(protocols[0][1])
    except ProtocolError as error:
        raise Refusal(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, f"its subscription can't be read: {error}") from error


def _member_metadata(
    before: ConsumerMember | None, request: MemberJoin, subscription: Subscription
) -> MemberMetadataValue:
    return MemberMetadataValue(
        request.instance_id,
        subscription.rack_id,
        request.client_id,
        request.client_host,
        tuple(sorted(set(subscription.topics))),
        None,
        request.rebalance_timeout,
        None if before is None else before.metadata.assignor,
        ClassicMemberMetadata(request.session_timeout, request.protocols),
    )


def _owned_partitions(group: ConsumerGroup, subscription: Subscription) -> Assignment:
    owned: dict[uuid.UUID, frozenset[int]] = {}
    for name, indexes in subscription.owned.items():
        topic = group.topics.get(name)
        if topic is not None:
            owned[topic.topic_id] = owned.get(topic.topic_id, frozenset()) | indexes
    return owned


# --- SyncGroup, Heartbeat, LeaveGroup


def sync(group: ConsumerGroup, now: Now, request: MemberSync) -> SyncResult:
    try:
        member = _classic(group, request.member_id, request.instance_id, request.generation)
        _check_protocol(member, request)
        if group.epoch > member.epoch and member.current.state != MemberState.UNREVOKED:
            _expect_to_join(group, now, member)
            raise Refusal(ErrorCode.REBALANCE_IN_PROGRESS, "the group has a new epoch")
        group.deadlines.cancel((Due.SYNC, member.member_id))
        group.reset_session_timeout(member, now)
        version = read_subscription(_protocols(member)[0][1]).version
        answer = SyncResult(
            ErrorCode.NONE, request.protocol_type, request.protocol, write_parts(group.partitions_of(member), version)
        )
    except Refusal as refused:
        answer = SyncResult(refused.error)
    group.flush()
    return answer


def heartbeat(group: ConsumerGroup, now: Now, member_id: str, instance_id: str | None, generation: int) -> ErrorCode:
    try:
        member = _classic(group, member_id, instance_id, generation)
    except Refusal as refused:
        return refused.error
    group.reset_session_timeout(member, now)
    if (
        group.epoch <= member.epoch
        and member.current.state != MemberState.UNREVOKED
        and not _may_have_more(group, member)
    ):
        return ErrorCode.NONE
    _expect_to_join(group, now, member)
    return ErrorCode.REBALANCE_IN_PROGRESS


def leave(group: ConsumerGroup, leaving: Iterable[MemberIdentity]) -> list[ErrorCode]:
    errors = []
    gone: dict[str, ConsumerMember] = {}
    for one in leaving:
        try:
            member = _leaving_member(group, one)
            gone[member.member_id] = member
            errors.append(ErrorCode.NONE)
        except Refusal as refused:
            errors.append(refused.error)
    if gone:
        group.remove(gone.values())
        group.flush()
    return errors


def _leaving_member(group: ConsumerGroup, one: MemberIdentity) -> ConsumerMember:
    if one.instance_id is not None and one.member_id != UNKNOWN_MEMBER_ID:
        return group.check_static(one.member_id, one.instance_id)
    # An administrator removes a static member by its instance.
    member = group.members.get(one.member_id) if one.instance_id is None else group.static_member(one.instance_id)
    if member is None:
        raise Refusal(ErrorCode.UNKNOWN_MEMBER_ID, "no such member")
    return member


def _classic(group: ConsumerGroup, member_id: str, instance_id: str | None, generation: int) -> ConsumerMember:
    member = group.members.get(member_id) if instance_id is None else group.check_static(member_id, instance_id)
    if member is None or not member.is_classic:
        raise Refusal(ErrorCode.UNKNOWN_MEMBER_ID, "not a member of the classic protocol")
    if member.epoch != generation:
        raise Refusal(ErrorCode.ILLEGAL_GENERATION, f"its generation is {member.epoch}")
    return member


def _protocols(member: ConsumerMember) -> Protocols:
    assert member.metadata.classic is not None
    return member.metadata.classic.protocols


def _check_protocol(member: ConsumerMember, request: MemberSync) -> None:
    if request.protocol_type not in (None, CONSUMER_PROTOCOL) or request.protocol not in (
        None,
        _protocols(member)[0][0],
    ):
        raise Refusal(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "it joined by another protocol")


def _expect_to_join(group: ConsumerGroup, now: Now, member: ConsumerMember) -> None:
    group.deadlines.set_if_absent((Due.JOIN, member.member_id), now.clock + member.metadata.rebalance_timeout / 1000)


def _may_have_more(group: ConsumerGroup, member: ConsumerMember) -> bool:
    """Whether all that it waited for is free."""
    if member.current.state != MemberState.UNRELEASED:
        return False
    target = group.group_state.targets.get(member.member_id, NO_PARTITIONS)
    return not any(
        group.group_state.owners.of(topic_id, index) not in (None, member.member_id)
        for topic_id, indexes in target.items()
        for index in indexes - member.current.assigned.get(topic_id, frozenset())
    )
