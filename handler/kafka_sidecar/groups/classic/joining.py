"""JoinGroup of the classic protocol: what a member's request makes of its group. Pure.

The rules are those of Kafka's GroupMetadataManager: dynamic members that are given an id first (KIP-394), static
members that come back in the place of their instance (KIP-345), and leaders that may skip the assignment (KIP-814).
"""

from __future__ import annotations

from typing import Final

from kafka_sidecar.groups.classic.machine import ClassicGroup
from kafka_sidecar.groups.classic.members import (
    AnswerStaticMember,
    JoinResult,
    Member,
    MemberJoin,
    Protocols,
    ReplacedMember,
    StoreGroup,
    SyncResult,
)
from kafka_sidecar.groups.classic.state import State
from kafka_sidecar.groups.vocabulary import UNKNOWN_MEMBER_ID, Now, ResponseFuture
from kafka_sidecar.wire.error_code import ErrorCode

# Longest time that a new member may wait for its JoinGroup response
# (GroupCoordinatorConfig.CLASSIC_GROUP_NEW_MEMBER_JOIN_TIMEOUT_MS).
NEW_MEMBER_SECONDS: Final = 300.0


def join(group: ClassicGroup, now: Now, request: MemberJoin, response_future: ResponseFuture) -> None:
    if not _accepts(group, request.member_id):
        group.remove(request.member_id)
        group.reply(response_future, JoinResult(ErrorCode.GROUP_MAX_SIZE_REACHED))
    elif not _supports(group, request.protocol_type, request.protocols):
        group.reply(response_future, JoinResult(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, request.member_id))
    elif request.member_id == UNKNOWN_MEMBER_ID:
        _join_new_member(group, now, request, response_future)
    elif request.member_id in group.roster.pending and request.instance_id is not None:
        # Only a dynamic member gets a member id with which it has to join again (KIP-394).
        group.reply(response_future, JoinResult(ErrorCode.UNKNOWN_SERVER_ERROR, request.member_id))
    elif request.member_id in group.roster.pending:
        _add_member_then_rebalance(group, now, request, request.member_id, response_future)
    else:
        _rejoin(group, now, request, response_future)


def _accepts(group: ClassicGroup, member_id: str) -> bool:
    """Whether there is room (group.max.size)."""
    known = group.members.get(member_id)
    match group.state:
        case State.EMPTY | State.DEAD:
            return True
        # Members that wait for a JoinGroup response are counted: the last ones to rejoin are rejected.
        case State.PREPARING:
            return (
                known is not None and known.awaiting_join is not None
            ) or group.roster.waiting_to_join < group.max_size
        case _:
            return known is not None or len(group.members) < group.max_size


def _supports(group: ClassicGroup, protocol_type: str, protocols: Protocols) -> bool:
    if group.state is State.EMPTY:
        return bool(protocol_type) and bool(protocols)
    return group.protocol_type == protocol_type and group.roster.supports_any(protocols)


def _join_new_member(group: ClassicGroup, now: Now, request: MemberJoin, response_future: ResponseFuture) -> None:
    if request.instance_id is not None:
        known = group.roster.static(request.instance_id)
        if known is not None:
            _replace_static(group, now, request, known, response_future)
        else:
            _add_member_then_rebalance(group, now, request, request.new_member_id, response_future)
    elif request.needs_member_id:
        group.roster.pending[request.new_member_id] = group.wake_no_later_than(
            now.clock + request.session_timeout / 1000
        )
        group.reply(response_future, JoinResult(ErrorCode.MEMBER_ID_REQUIRED, request.new_member_id))
    else:
        _add_member_then_rebalance(group, now, request, request.new_member_id, response_future)


def _add_member_then_rebalance(
    group: ClassicGroup, now: Now, request: MemberJoin, member_id: str, response_future: ResponseFuture
) -> None:
    member = Member(
        member_id,
        request.instance_id,
        request.client_id,
        request.client_host,
        request.session_timeout,
        request.rebalance_timeout,
        request.protocols,
        is_new=True,
        awaiting_join=response_future,
    )
    if not group.members:
        group.protocol_type = request.protocol_type
    group.window.somebody_came()
    group.add(member)
    # The member sends no heartbeats while it waits for its JoinGroup response, so its session time-out does not apply
    # yet.
    # This limit drops a member whose client has gone.
    member.expires_at = group.wake_no_later_than(now.clock + NEW_MEMBER_SECONDS)
    group.rebalance_or_complete(now)


def _rejoin(group: ClassicGroup, now: Now, request: MemberJoin, response_future: ResponseFuture) -> None:
    error = group.roster.check(request.member_id, request.instance_id)
    if error is not ErrorCode.NONE:
        group.reply(response_future, JoinResult(error, request.member_id))
        return
    member = group.members[request.member_id]
    changed = member.protocols != request.protocols
    # The leader may rejoin because of a change that its metadata does not show, such as new partitions of a topic.
    if (
        group.state is State.PREPARING
        or (group.state is State.COMPLETING and changed)
        or (group.state is State.STABLE and (changed or group.leader == member.member_id))
    ):
        group.update(member, request)
        group.await_join(member, response_future)
        group.rebalance_or_complete(now)
    # The member did not receive the response to its previous JoinGroup.
    elif group.state in (State.COMPLETING, State.STABLE):
        group.reply(response_future, group.join_response(member))
    else:
        group.reply(response_future, JoinResult(ErrorCode.UNKNOWN_MEMBER_ID, request.member_id))


def _replace_static(
    group: ClassicGroup, now: Now, request: MemberJoin, member: Member, response_future: ResponseFuture
) -> None:
    """KIP-345: the same instance has come back; the one before it is fenced."""
    old_id = member.member_id
    replaced = ReplacedMember(
        old_id, group.leader == old_id, member.protocols, member.session_timeout, member.rebalance_timeout
    )
    group.reply(member.awaiting_join, JoinResult(ErrorCode.FENCED_INSTANCE_ID, old_id))
    group.reply(member.awaiting_sync, SyncResult(ErrorCode.FENCED_INSTANCE_ID))
    member.awaiting_join = member.awaiting_sync = None
    old_leader = group.leader
    group.roster.rename(member, request.new_member_id)
    # As in ClassicGroup.replaceStaticMember: the time-out of new members does not end its wait for the rebalance.
    member.is_new = False
    if old_id in group.pending_sync:
        group.pending_sync.remove(old_id)
        group.pending_sync.add(request.new_member_id)
    if group.leader == old_id:
        group.leader = request.new_member_id
    group.reset_session_timeout(member, now)
    group.update(member, request)
    if group.state is State.STABLE and group.roster.select_protocol() == group.protocol:
        # Nothing changes for the others, but the new id must be stored before the member gets it.
        if request.may_skip_assignment:
            answer = group.join_response(member)._replace(skip_assignment=group.leader == member.member_id)
        else:
            # This JoinGroup version can't skip the assignment (KIP-814). The member must not take itself for the leader
            # and assign partitions again, so the response names the old leader id.
            answer = group.join_response(member)._replace(leader=old_leader, members=())
        assignments = {other.member_id: other.assignment for other in group.members.values()}
        group.effects.append(StoreGroup(assignments, AnswerStaticMember(response_future, answer, replaced)))
        return
    group.await_join(member, response_future)
    match group.state:
        case State.STABLE:
            group.rebalance_or_complete(now)
        case State.COMPLETING:
            # The leader may be computing an assignment for the old member id.
            group.prepare_rebalance(now)
        case _:
            group.maybe_complete(now)
