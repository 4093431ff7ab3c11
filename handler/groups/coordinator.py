"""What clients ask of a group coordinator, in terms of groups and shards.

Every call is answered by the shard of its group or raises NotLeading. Names of topics are those that
`topics` makes of whatever a client wrote, so that one topic has one committed offset.
"""

from __future__ import annotations

import logging
import secrets
import uuid
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

from kio.schema.errors import ErrorCode

from handler.config import GroupsConfig
from handler.coordination.errors import NotLeading
from handler.coordination.term import Phase
from handler.coordination.term_log import TermLog
from handler.groups.awaiting_topics import RequestsAwaitingTopics
from handler.groups.classic.members import JoinGroupRequest, JoinGroupResponse, MemberIdentity, SyncGroupRequest, SyncGroupResponse
from handler.groups.consumer import classic_members
from handler.groups.consumer.checks import KEY_BYTES
from handler.groups.consumer.machine import ConsumerGroup
from handler.groups.consumers import Consumers
from handler.groups.conversion import classic_group
from handler.groups.effects import Group
from handler.groups.expiry import expired
from handler.groups.machine import CONSUMER_PROTOCOL, Now
from handler.groups.records import OffsetKey, OffsetValue, Record, partition_of
from handler.groups.shard import Offsets, Shard, Surroundings, TopicPartition
from handler.groups.topics_image import TopicsImage
from handler.telemetry import metrics

log = logging.getLogger(__name__)

# Whoever did not come to count the seconds for so long was stopped, and others may have taken its place.
STALLED_SECONDS: Final = 10.0
EXPIRY_SECONDS: Final = 600.0

Told = Callable[[ErrorCode], None]
OnCommit = Callable[[dict[TopicPartition, ErrorCode]], None]
OnCommitted = Callable[[OffsetKey, OffsetValue], None]  # told of every commit that is stored


class CommittedOffset(NamedTuple):
    """What a member commits of one partition."""

    offset: int
    leader_epoch: int
    metadata: str
    topic_id: uuid.UUID | None = None


class _Committing:
    """A commit that waits to be stored; told once, stored or late."""

    __slots__ = ("_told", "deadline", "errors")

    def __init__(self, errors: dict[TopicPartition, ErrorCode], told: OnCommit, deadline: float) -> None:
        self.errors = errors
        self._told: OnCommit | None = told
        self.deadline = deadline

    @property
    def is_told(self) -> bool:
        return self._told is None

    def tell(self, error: ErrorCode) -> None:
        told, self._told = self._told, None
        if told is not None:
            told({at: error if known is ErrorCode.none else known for at, known in self.errors.items()})


class Commit(NamedTuple):
    group_id: str
    member_id: str
    instance_id: str | None
    generation: int
    retention: int  # milliseconds, −1 for the coordinator's
    offsets: Mapping[TopicPartition, CommittedOffset]
    knows_epochs: bool = True  # the version has a member epoch where there was a generation


class Coordinator:
    """`shards` is empty until the partitions of `__consumer_offsets` are known."""

    def __init__(
        self,
        config: GroupsConfig,
        now: Callable[[], Now],
        topic_name: Callable[[str], str],
        topics: TopicsImage,
        on_committed: OnCommitted,
        awake_clock: Callable[[], float] | None = None,
    ) -> None:
        self.shards: list[Shard] = []
        self.topics = topics
        self.awaiting_topics = RequestsAwaitingTopics(topics)
        self._around = Surroundings(
            config=config, now=now, topic_name=topic_name, topics=topics, may_act=self._is_awake, on_committed=on_committed
        )
        self._config = config
        self._now = now
        self._topic_name = topic_name
        # Also counts while the machine sleeps, where there is such a clock.
        self._awake_clock = awake_clock or (lambda: now().clock)
        self._beat_at = self._awake_clock()
        self._expiring = -1  # the shard that was looked at last
        self._committing: deque[_Committing] = deque()
        self._expire_at = now().clock + EXPIRY_SECONDS
        self.consumers = Consumers(self.leading, self.awaiting_topics, now)

    def begin(self, logs: Sequence[tuple[str, Callable[[], TermLog[Record]]]]) -> None:
        """From now on there are shards, one for each log, and `beat` is called once a second."""
        self.shards = [Shard(name, open_log, self._around) for name, open_log in logs]
        self._beat_at = self._awake_clock()

    # --- whose group it is

    def shard_of(self, group_id: str) -> Shard:
        if not self.shards:
            raise NotLeading(ErrorCode.coordinator_not_available)
        return self.shards[partition_of(group_id, len(self.shards))]

    def leading(self, group_id: str, *, may_be_empty: bool = False) -> Shard:
        if (not group_id and not may_be_empty) or len(group_id.encode()) > KEY_BYTES:
            raise NotLeading(ErrorCode.invalid_group_id)
        self._is_awake()
        shard = self.shard_of(group_id)
        shard.term.check_leading()
        return shard

    def _is_awake(self) -> bool:
        """False if this process stood still: what it believes to lead another may lead by now, so it leads nothing."""
        stood = self._awake_clock() - self._beat_at
        if stood <= STALLED_SECONDS:
            return True
        log.warning("this process stood still for %.0f s: all groups are loaded again", stood)
        self._beat_at = self._awake_clock()
        for shard in self.shards:
            shard.term.restart("the process stood still")
        return False

    def beat(self) -> None:
        """Once a second."""
        self._is_awake()
        now = self._now()
        self._beat_at = self._awake_clock()
        for shard in self.shards:
            shard.term.give_up_on_silence(now.clock)
        while self._committing and self._committing[0].deadline <= now.clock:
            # As Kafka, which turns the time-out into this (CoordinatorOperationExceptionHelper). It may still be stored.
            self._committing.popleft().tell(ErrorCode.coordinator_not_available)
        leading = [shard for shard in self.shards if shard.term.phase is Phase.LEADING]
        metrics.GROUP_SHARDS.set(len(leading))
        metrics.GROUPS.set(sum(len(shard.groups) for shard in leading))
        metrics.COMMITTED_OFFSETS.set(sum(len(offsets) for shard in leading for offsets in shard.offsets.values()))
        if self.shards and now.clock >= self._expire_at:
            # One shard at a time: there may be many offsets.
            self._expire_at = now.clock + EXPIRY_SECONDS / len(self.shards)
            self._expiring = (self._expiring + 1) % len(self.shards)
            self._expire(self.shards[self._expiring])

    # --- members

    def join(self, request: JoinGroupRequest, group_id: str, told: Callable[[JoinGroupResponse], None]) -> None:
        shard = self.leading(group_id)
        if not self._config.min_session_timeout_ms <= request.session_timeout <= self._config.max_session_timeout_ms:
            told(JoinGroupResponse(ErrorCode.invalid_session_timeout, request.member_id))
            return
        group = shard.group(group_id)
        if isinstance(group, ConsumerGroup) and not group.is_empty:
            self.consumers.join(request, group_id, told)
        elif group is None and request.member_id:
            told(JoinGroupResponse(ErrorCode.unknown_member_id, request.member_id))
        else:
            classic = classic_group(shard, group_id)
            classic.join(self._now(), request, told)
            shard.run(classic)

    def sync(self, request: SyncGroupRequest, group_id: str, told: Callable[[SyncGroupResponse], None]) -> None:
        shard = self.leading(group_id)
        group = shard.group(group_id)
        if group is None:
            told(SyncGroupResponse(ErrorCode.unknown_member_id))
        elif isinstance(group, ConsumerGroup):
            self.consumers.sync(request, group_id, told)
        else:
            group.sync(self._now(), request, told)
            shard.run(group)

    def heartbeat(self, group_id: str, member_id: str, instance_id: str | None, generation: int) -> ErrorCode:
        shard = self.leading(group_id)
        group = shard.group(group_id)
        if group is None:
            return ErrorCode.unknown_member_id
        if isinstance(group, ConsumerGroup):
            errors: list[ErrorCode] = []
            shard.handle(group, lambda: errors.append(classic_members.heartbeat(group, self._now(), member_id, instance_id, generation)))
            return errors[0]
        error = group.heartbeat(self._now(), member_id, instance_id, generation)
        shard.run(group)
        return error

    def leave(self, group_id: str, leaving: Sequence[MemberIdentity], told: Callable[[list[ErrorCode]], None]) -> None:
        shard = self.leading(group_id)
        group = shard.group(group_id)
        if group is None:
            told([ErrorCode.unknown_member_id] * len(leaving))
            return
        errors: list[ErrorCode] = []
        leave = partial(classic_members.leave, group) if isinstance(group, ConsumerGroup) else partial(group.leave, self._now())
        shard.handle(group, lambda: errors.extend(leave(leaving)))
        shard.term.after_writes(lambda error: told(errors if error is ErrorCode.none else [error] * len(leaving)))

    # --- offsets

    def commit(self, request: Commit, told: OnCommit) -> None:
        shard = self.leading(request.group_id, may_be_empty=True)  # as in Kafka, for clients of long ago
        error = self._check_commit(shard, request)
        if error is not ErrorCode.none:
            told(dict.fromkeys(request.offsets, error))
            return
        now = self._now().wall
        expires_at = now + request.retention if request.retention >= 0 else -1
        errors = dict.fromkeys(request.offsets, ErrorCode.none)
        records = []
        for (topic, index), committed in request.offsets.items():
            if len(committed.metadata.encode()) > self._config.offset_metadata_bytes:
                errors[topic, index] = ErrorCode.offset_metadata_too_large
            else:
                value = OffsetValue(committed.offset, committed.leader_epoch, committed.metadata, now, expires_at, committed.topic_id)
                records.append(Record(OffsetKey(request.group_id, topic, index), value))
        if records:
            committing = _Committing(errors, told, self._now().clock + self._config.offset_commit_timeout_ms / 1000)
            while self._committing and self._committing[0].is_told:
                self._committing.popleft()
            self._committing.append(committing)
            shard.term.store(records, committing.tell)
        else:
            told(errors)

    def _check_commit(self, shard: Shard, request: Commit) -> ErrorCode:
        group = shard.group(request.group_id)
        if group is None:
            if request.generation >= 0:
                return ErrorCode.group_id_not_found if request.knows_epochs else ErrorCode.illegal_generation
            return ErrorCode.none  # it commits without members; the group is made when the offsets are stored
        if isinstance(group, ConsumerGroup):
            return group.check_commit(request.member_id, request.generation, knows_epochs=request.knows_epochs)
        error = group.check_commit(self._now(), request.member_id, request.instance_id, request.generation)
        shard.run(group)
        return error

    def offsets(self, group_id: str, told: Callable[[Offsets | ErrorCode], None], member_id: str | None = None, epoch: int = -1) -> None:
        """What a group has committed, with all that is being stored when it is asked. A member may say who it is."""
        shard = self.leading(group_id, may_be_empty=True)
        group = shard.group(group_id)
        error = group.check_fetch(member_id, epoch) if isinstance(group, ConsumerGroup) else ErrorCode.none
        if error is not ErrorCode.none:
            told(error)
            return
        shard.term.after_writes(lambda error: told(shard.offsets.get(group_id, {}) if error is ErrorCode.none else error))

    def places(self, group_id: str) -> list[TopicPartition]:
        return list(self.leading(group_id).offsets.get(group_id, {}))

    def delete_offsets(
        self, group_id: str, places: Sequence[TopicPartition], told: Callable[[ErrorCode, dict[TopicPartition, ErrorCode]], None]
    ) -> None:
        shard = self.leading(group_id)
        group = shard.group(group_id)
        if group is None:
            told(ErrorCode.group_id_not_found, {})
            return
        if group.members and group.protocol_type != CONSUMER_PROTOCOL:
            told(ErrorCode.non_empty_group, {})
            return
        subscribed = self._subscribed(group)
        errors = dict.fromkeys(places, ErrorCode.none)
        for place in places:
            if subscribed is None or place[0] in subscribed:
                errors[place] = ErrorCode.group_subscribed_to_topic

        def forget(error: ErrorCode) -> None:
            """What was committed before is stored by now, and is deleted too."""
            if error is not ErrorCode.none:
                told(error, {})
                return
            known = shard.offsets.get(group_id, {})
            gone = [Record(OffsetKey(group_id, *place), None) for place in places if errors[place] is ErrorCode.none and place in known]
            shard.term.store(gone, lambda error: told(error, errors if error is ErrorCode.none else {}))

        shard.term.after_writes(forget)

    def _subscribed(self, group: Group) -> frozenset[str] | None:
        """What a group's members are subscribed to, under the names that offsets are kept by."""
        topics = group.subscribed_topics if group.members else frozenset()
        return None if topics is None else frozenset(map(self._topic_name, topics))

    # --- groups

    def describe(self, group_id: str) -> Group | None:
        return self.leading(group_id).group(group_id)

    def after_writes(self, group_id: str, told: Told) -> None:
        """When all that has changed in a group up to now is stored."""
        self.leading(group_id).term.after_writes(told)

    def all_groups(self) -> list[Group]:
        """The groups that are coordinated here. Raises where one of the shards is still loading."""
        if any(shard.term.phase is Phase.LOADING for shard in self.shards):
            raise NotLeading(ErrorCode.coordinator_load_in_progress)
        return [group for shard in self.shards for group in shard.groups.values()]

    def delete_group(self, group_id: str, told: Told) -> None:
        shard = self.leading(group_id)

        def delete(error: ErrorCode) -> None:
            """What was committed before is stored by now."""
            if error is not ErrorCode.none:
                told(error)
                return
            group = shard.group(group_id)
            if group is None:
                told(ErrorCode.group_id_not_found)
            elif not group.is_empty:
                told(ErrorCode.non_empty_group)
            else:
                self._delete(shard, group, told)

        shard.term.after_writes(delete)

    def _delete(self, shard: Shard, group: Group, told: Told) -> None:
        records = [Record(OffsetKey(group.group_id, *place), None) for place in shard.offsets.get(group.group_id, {})]
        records += group.deletion()
        shard.remove(group)
        shard.term.store(records, told)

    def expire_offsets(self) -> None:
        for shard in self.shards:
            self._expire(shard)

    def _expire(self, shard: Shard) -> None:
        if shard.term.phase is not Phase.LEADING:
            return
        now = self._now().wall
        retention = self._config.offsets_retention_minutes * 60_000
        being_committed = {record.key.group for record in shard.term.under_way}  # it must not be deleted behind that
        for group in list(shard.groups.values()):
            if group.group_id in being_committed:
                continue
            offsets = shard.offsets.get(group.group_id, {})
            gone = expired(group, self._subscribed(group), offsets, now, retention)
            if gone:
                log.info("group %s: %d offsets have expired", group.group_id, len(gone))
            if group.is_empty and not group.awaits_somebody and len(gone) == len(offsets):
                self._delete(shard, group, lambda _: None)
            elif gone:
                shard.term.store([Record(OffsetKey(group.group_id, *place), None) for place in gone], lambda _: None)

    def forget_topics(self, topics: Mapping[str, uuid.UUID | None]) -> None:
        """Topics were deleted, with these ids if they are known: what was committed of them means nothing for one that gets
        such a name, and nobody consumes them.
        """
        ids = {self._topic_name(name): topic_id for name, topic_id in topics.items()}
        self.topics.gone(lambda name: self._topic_name(name) in ids)
        self.consumers.refresh(self.shards)
        for shard in self.shards:
            if shard.term.phase is Phase.LEADING:
                gone = [
                    OffsetKey(group, *place)
                    for group, offsets in shard.offsets.items()
                    for place, value in offsets.items()
                    if place[0] in ids and ((deleted := ids[place[0]]) is None or value.counts_for(deleted))
                ]
                if gone:
                    log.info("%s: %d offsets of deleted topics go", shard.name, len(gone))
                    shard.term.store([Record(key, None) for key in gone], lambda _: None)


def new_member_id(stem: str) -> str:
    """As Kafka makes them: the instance or client id, and something unique."""
    raw = secrets.token_hex(16)
    return f"{stem}-{raw[:8]}-{raw[8:12]}-{raw[12:16]}-{raw[16:20]}-{raw[20:]}"
