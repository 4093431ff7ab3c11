"""Requests of members of consumer groups. Each waits until the group knows its topics."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from functools import partial
from typing import Final

from kafka_sidecar.coordination.term import Phase
from kafka_sidecar.errors import ProtocolError
from kafka_sidecar.groups.awaiting_topics import RequestsAwaitingTopics
from kafka_sidecar.groups.classic.machine import ClassicGroup
from kafka_sidecar.groups.classic.members import JoinResult, MemberJoin, MemberSync, SyncResult
from kafka_sidecar.groups.consumer import classic_members
from kafka_sidecar.groups.consumer.machine import ConsumerGroup
from kafka_sidecar.groups.consumer.members import (
    JOIN_GROUP_MEMBER_EPOCH,
    LEAVE_GROUP_MEMBER_EPOCH,
    LEAVE_GROUP_STATIC_MEMBER_EPOCH,
    GroupTooLarge,
    HeartbeatResult,
    MemberHeartbeat,
    Refusal,
    RequiredTopics,
)
from kafka_sidecar.groups.consumer.migration import CannotMigrate, topics_of
from kafka_sidecar.groups.conversion import get_or_create_consumer_group
from kafka_sidecar.groups.records import subscribed_topics
from kafka_sidecar.groups.shard import Shard
from kafka_sidecar.groups.vocabulary import Now
from kafka_sidecar.telemetry import metrics
from kafka_sidecar.telemetry.limits import RateLimitedLog
from kafka_sidecar.wire.error_code import ErrorCode

log = logging.getLogger(__name__)
limited = RateLimitedLog(log)

# Clients fail permanently on these errors, so the sidecar logs the reason.
FATAL: Final = (
    ErrorCode.INVALID_REGULAR_EXPRESSION,
    ErrorCode.UNRELEASED_INSTANCE_ID,
    ErrorCode.GROUP_MAX_SIZE_REACHED,
    ErrorCode.GROUP_ID_NOT_FOUND,
    ErrorCode.INVALID_REQUEST,
    ErrorCode.UNKNOWN_SERVER_ERROR,
)


class ConsumerGroupRequests:
    def __init__(
        self, led_shard: Callable[[str], Shard], awaiting_topics: RequestsAwaitingTopics, now: Callable[[], Now]
    ) -> None:
        self._led_shard = led_shard
        self._awaiting_topics = awaiting_topics
        self._now = now

    # --- by the consumer protocol

    async def heartbeat(self, request: MemberHeartbeat, group_id: str) -> HeartbeatResult:
        self._keep_alive(group_id, request.member_id)
        leaves = request.epoch in (LEAVE_GROUP_MEMBER_EPOCH, LEAVE_GROUP_STATIC_MEMBER_EPOCH)
        required_topics: Callable[[], RequiredTopics] = (
            _nothing if leaves else partial(self._required_topics, group_id, request.topics or (), request.regex)
        )
        await self._awaiting_topics.known((group_id, request.member_id), required_topics)
        shard = self._led_shard(group_id)
        try:
            self._check_size(shard, group_id, request.epoch)
            self._refresh_if_behind(shard, group_id)
            group = self._group(shard, group_id, request)
            event = partial(group.leave, request) if leaves else partial(group.heartbeat, self._now(), request)
            answer = await shard.answer_when_stored(group, event)
        except Refusal as refused:
            answer = HeartbeatResult(refused.error, str(refused))
        return _logged(group_id, request.member_id, answer)

    def _keep_alive(self, group_id: str, member_id: str) -> None:
        """Restart the member's session time-out before its request waits for topics.

        The request is checked only afterwards, so one that will be refused also lengthens the session a little.
        """
        group = self._led_shard(group_id).group(group_id)
        if isinstance(group, ConsumerGroup) and member_id in group.members:
            group.reset_session_timeout(group.members[member_id], self._now())

    def _check_size(self, shard: Shard, group_id: str, epoch: int) -> None:
        if group_id in shard.oversized and epoch >= JOIN_GROUP_MEMBER_EPOCH:
            raise GroupTooLarge(group_id)

    def _group(self, shard: Shard, group_id: str, request: MemberHeartbeat) -> ConsumerGroup:
        try:
            joins = request.epoch == JOIN_GROUP_MEMBER_EPOCH
            group = (
                get_or_create_consumer_group(shard, group_id, request)
                if joins
                else self._existing(shard, group_id, request)
            )
        except CannotMigrate as reason:
            raise Refusal(
                ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a consumer group: {reason}."
            ) from reason
        return group

    def _existing(self, shard: Shard, group_id: str, request: MemberHeartbeat) -> ConsumerGroup:
        group = shard.group(group_id)
        if isinstance(group, ConsumerGroup):
            return group
        if request.epoch > JOIN_GROUP_MEMBER_EPOCH:
            # The member was away for so long that its group was deleted or became a classic group. Kafka answers
            # GROUP_ID_NOT_FOUND, which ends the client; UNKNOWN_MEMBER_ID makes it join again.
            raise Refusal(
                ErrorCode.UNKNOWN_MEMBER_ID, f"Member {request.member_id} is not a member of group {group_id} any more."
            )
        raise CannotMigrate("nobody has joined it as one")

    # --- by the classic protocol

    async def join(self, request: MemberJoin, group_id: str) -> JoinResult:
        self._keep_alive(group_id, request.member_id)
        names: Iterable[str] = ()
        if request.protocols:
            try:
                names = subscribed_topics(request.protocols[0][1])
            except ProtocolError:
                pass  # the group rejects a subscription that can't be read
        member = group_id, request.member_id or request.new_member_id
        await self._awaiting_topics.known(member, partial(self._required_topics, group_id, names, None))
        shard = self._led_shard(group_id)
        if group_id in shard.oversized:
            return JoinResult(ErrorCode.UNKNOWN_SERVER_ERROR, request.member_id)
        self._refresh_if_behind(shard, group_id)
        group = shard.group(group_id)
        if not isinstance(group, ConsumerGroup) or group.is_empty:
            return JoinResult(
                ErrorCode.REBALANCE_IN_PROGRESS, request.member_id
            )  # the group has just been converted, deleted or left by all members; this member joins again
        try:
            return await shard.answer_when_stored(group, partial(classic_members.join, group, self._now(), request))
        except GroupTooLarge as refused:
            return JoinResult(refused.error, request.member_id)

    async def sync(self, request: MemberSync, group_id: str) -> SyncResult:
        self._keep_alive(group_id, request.member_id)
        await self._awaiting_topics.known(
            (group_id, request.member_id), partial(self._required_topics, group_id, (), None)
        )
        shard = self._led_shard(group_id)
        self._refresh_if_behind(shard, group_id)
        group = shard.group(group_id)
        if not isinstance(group, ConsumerGroup):
            return SyncResult(ErrorCode.REBALANCE_IN_PROGRESS)
        try:
            return await shard.answer_when_stored(group, partial(classic_members.sync, group, self._now(), request))
        except GroupTooLarge as refused:
            return SyncResult(refused.error)

    # --- topics

    def _required_topics(self, group_id: str, names: Iterable[str], regex: str | None) -> RequiredTopics:
        """The topics that must be known before a request is handled: those it names, and those of a group that was just
        loaded.
        """
        group = self._led_shard(group_id).group(group_id)
        wanted, regexes = frozenset(names), frozenset({regex} if regex else ())
        if isinstance(group, ConsumerGroup) and not group.knows_topics:
            return RequiredTopics(wanted | group.required_topics.names, regexes | group.required_topics.regexes)
        if isinstance(group, ClassicGroup) and group.members:
            return RequiredTopics(wanted | topics_of(group), regexes)
        return RequiredTopics(wanted, regexes)

    def _refresh_if_behind(self, shard: Shard, group_id: str) -> None:
        """Changes of topics that a group has missed come first. It may be a classic one after that."""
        group = shard.group(group_id)
        if isinstance(group, ConsumerGroup) and not group.knows_topics:
            shard.handle(group, lambda: group.refresh_topics(self._now()))

    def all_required_topics(self, shards: Iterable[Shard]) -> RequiredTopics:
        """All that has to be looked at again from time to time."""
        groups = [group for shard in shards for group in _consumer_groups(shard)]
        required = [group.required_topics for group in groups]
        return RequiredTopics(
            frozenset[str]().union(*(one.names for one in required)),
            frozenset[str]().union(*(one.regexes for one in required)),
        )

    def refresh(self, shards: Iterable[Shard]) -> None:
        """The topics were looked at again."""
        for shard in shards:
            for group in _consumer_groups(shard):
                try:
                    shard.handle(group, partial(group.refresh_topics, self._now()))
                except Exception:
                    metrics.INTERNAL_ERRORS.labels("groups").inc()
                    log.exception("group %s can't be assigned again", group.group_id)
                    break


def _nothing() -> RequiredTopics:
    """A member that leaves waits for no topics."""
    return RequiredTopics(frozenset())


def _logged(group_id: str, member_id: str, answer: HeartbeatResult) -> HeartbeatResult:
    if answer.error in FATAL:
        limited.warning(
            "group %s: member %s is refused (%s): %s", group_id, member_id, answer.error.name, answer.message
        )
    return answer


def _consumer_groups(shard: Shard) -> list[ConsumerGroup]:
    if shard.term.phase is not Phase.LEADING:
        return []
    return [
        group
        for group in shard.groups.values()
        if isinstance(group, ConsumerGroup) and group.group_id not in shard.oversized
    ]
