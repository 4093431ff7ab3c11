"""The group coordinator: clients' requests, in terms of groups and shards.

A request about a group is answered by the group's shard, or raises CoordinatorError. Handlers pass canonical topic
names with offsets, so that a topic has one committed offset. `topic_name` makes the names in members' subscriptions
canonical.
"""

from __future__ import annotations

import logging
import secrets
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

from kafka_sidecar.config import GroupsConfig
from kafka_sidecar.coordination.errors import CoordinatorError
from kafka_sidecar.coordination.shards import Shards
from kafka_sidecar.coordination.term import Phase
from kafka_sidecar.coordination.term_log import TermLog
from kafka_sidecar.groups.awaiting_topics import RequestsAwaitingTopics
from kafka_sidecar.groups.classic import joining
from kafka_sidecar.groups.classic.members import JoinResult, MemberIdentity, MemberJoin, MemberSync, SyncResult
from kafka_sidecar.groups.consumer import classic_members
from kafka_sidecar.groups.consumer.checks import KEY_BYTES
from kafka_sidecar.groups.consumer.machine import ConsumerGroup
from kafka_sidecar.groups.consumer_group_requests import ConsumerGroupRequests
from kafka_sidecar.groups.conversion import get_or_create_classic_group
from kafka_sidecar.groups.deletion import DeletedGroup, delete_groups, forget_offsets, is_being_committed, removed
from kafka_sidecar.groups.effects import Group
from kafka_sidecar.groups.expiry import expired
from kafka_sidecar.groups.records import (
    OffsetCommitKey,
    OffsetCommitValue,
    PendingOffsetKey,
    PendingOffsetValue,
    Record,
)
from kafka_sidecar.groups.shard import Offsets, Shard, ShardContext, TopicPartition
from kafka_sidecar.groups.topics_image import TopicsImage
from kafka_sidecar.groups.vocabulary import CONSUMER_PROTOCOL, Committer, Now
from kafka_sidecar.loop.pace import Pace
from kafka_sidecar.loop.supervised import SupervisedTask, every
from kafka_sidecar.loop.waiting import gathered, pause, within
from kafka_sidecar.pulsar.errors import PulsarError
from kafka_sidecar.telemetry import metrics
from kafka_sidecar.telemetry.limits import RateLimitedLog
from kafka_sidecar.wire.error_code import ErrorCode

log = logging.getLogger(__name__)
limited = RateLimitedLog(log)

MAX_TIME: Final = 2**63 - 1
# Kafka's default of offsets.retention.check.interval.ms, in seconds.
EXPIRY_SECONDS: Final = 600.0
# Consumer groups notice new partitions of a topic up to 10 s late. In Kafka the controller notifies the brokers.
REFRESH_SECONDS: Final = 10.0
# At most 50 topics a second are looked up on average, so that the admin API has time for other requests.
REFRESHED_PER_SECOND: Final = 50

OnCommitted = Callable[[OffsetCommitKey, OffsetCommitValue], None]  # called with every commit that is stored


class CommittedOffset(NamedTuple):
    """An offset that a member commits, of one partition."""

    offset: int
    leader_epoch: int
    metadata: str
    topic_id: uuid.UUID | None = None


class Commit(NamedTuple):
    group_id: str
    committer: Committer
    retention: int  # in milliseconds; −1: offsets.retention.minutes of the coordinator
    offsets: Mapping[TopicPartition, CommittedOffset]


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
        may_be_shared: Callable[[], bool] = lambda: False,
    ) -> None:
        """`may_be_shared`: with sidecars of another namespace. Members' short names may be theirs."""
        self.shards: Shards[Shard] = Shards(lambda: now().clock, awake_clock)
        self.topics = topics
        self.awaiting_topics = RequestsAwaitingTopics(topics)
        self._context = ShardContext(
            config=config,
            now=now,
            topic_name=topic_name,
            topics=topics,
            timers_may_fire=lambda: not self.shards.end_terms_if_suspended(),
            on_committed=on_committed,
        )
        self._config = config
        self._now = now
        self._topic_name = topic_name
        self.may_be_shared = may_be_shared
        self.consumer_groups = ConsumerGroupRequests(self.led_shard, self.awaiting_topics, now)

    def begin(self, logs: Sequence[tuple[str, Callable[[], TermLog[Record]]]]) -> None:
        """From now on there are shards, one for each log, and `beat` is called once a second."""
        self.shards.begin([Shard(name, open_log, self._context) for name, open_log in logs])

    def led_shard(self, group_id: str, *, may_be_empty: bool = False) -> Shard:
        """The shard of a group, if it is led here."""
        if (not group_id and not may_be_empty) or len(group_id.encode()) > KEY_BYTES:
            raise CoordinatorError(ErrorCode.INVALID_GROUP_ID)
        return self.shards.led(group_id)

    def beat(self) -> None:
        """Once a second."""
        self.shards.beat()
        leading = self.shards.all_leading
        metrics.GROUP_SHARDS.set(len(leading))
        metrics.GROUPS.set(sum(len(shard.groups) for shard in leading))
        metrics.COMMITTED_OFFSETS.set(sum(len(offsets) for shard in leading for offsets in shard.offsets.values()))

    def tasks(self) -> Sequence[SupervisedTask]:
        return every(REFRESH_SECONDS, "group_topics", self._refresh_topics), every(
            EXPIRY_SECONDS, "expired_offsets", self.expire_offsets
        )

    async def _refresh_topics(self) -> None:
        """Partitions that were added, topics that came and went: the groups that they concern are assigned again."""
        required_topics = self.consumer_groups.all_required_topics(self.shards)
        try:
            await self.topics.refresh(lambda: self.consumer_groups.all_required_topics(self.shards))
        except PulsarError as error:
            limited.info("the topics of consumer groups can't be looked at now: %s", error)
        self.consumer_groups.refresh(self.shards)
        await pause(len(required_topics.names) / REFRESHED_PER_SECOND - REFRESH_SECONDS)

    # --- members

    async def join(self, request: MemberJoin, group_id: str) -> JoinResult:
        shard = self.led_shard(group_id)
        if not self._config.min_session_timeout_ms <= request.session_timeout <= self._config.max_session_timeout_ms:
            return JoinResult(ErrorCode.INVALID_SESSION_TIMEOUT, request.member_id)
        names = (request.client_id, request.instance_id or "", request.member_id, request.new_member_id)
        if any(
            len(name.encode()) > KEY_BYTES for name in names
        ):  # a longer string does not fit into a record, so the group could not be stored
            return JoinResult(ErrorCode.INVALID_REQUEST, request.member_id)
        group = shard.group(group_id)
        if isinstance(group, ConsumerGroup) and not group.is_empty:
            return await self.consumer_groups.join(request, group_id)
        if group is None and request.member_id:
            return JoinResult(ErrorCode.UNKNOWN_MEMBER_ID, request.member_id)
        classic = get_or_create_classic_group(shard, group_id)
        return await shard.answer(
            classic, lambda response_future: joining.join(classic, self._now(), request, response_future)
        )

    async def sync(self, request: MemberSync, group_id: str) -> SyncResult:
        shard = self.led_shard(group_id)
        group = shard.group(group_id)
        if group is None:
            return SyncResult(ErrorCode.UNKNOWN_MEMBER_ID)
        if isinstance(group, ConsumerGroup):
            return await self.consumer_groups.sync(request, group_id)
        return await shard.answer(group, lambda response_future: group.sync(self._now(), request, response_future))

    def heartbeat(self, group_id: str, member_id: str, instance_id: str | None, generation: int) -> ErrorCode:
        shard = self.led_shard(group_id)
        group = shard.group(group_id)
        if group is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        heartbeat = partial(classic_members.heartbeat, group) if isinstance(group, ConsumerGroup) else group.heartbeat
        return shard.handle(group, lambda: heartbeat(self._now(), member_id, instance_id, generation))

    async def leave(self, group_id: str, leaving: Sequence[MemberIdentity]) -> list[ErrorCode]:
        shard = self.led_shard(group_id)
        group = shard.group(group_id)
        if group is None:
            return [ErrorCode.UNKNOWN_MEMBER_ID] * len(leaving)
        leave = (
            partial(classic_members.leave, group)
            if isinstance(group, ConsumerGroup)
            else partial(group.leave, self._now())
        )
        errors = shard.handle(group, lambda: leave(leaving))
        await shard.term.all_stored()
        return errors

    # --- offsets

    async def commit(self, request: Commit) -> dict[TopicPartition, ErrorCode]:
        # As in Kafka, where old clients may commit offsets with an empty group id.
        shard = self.led_shard(request.group_id, may_be_empty=True)
        error = self._check_commit(shard, request)
        if error is not ErrorCode.NONE:
            return dict.fromkeys(request.offsets, error)
        return await self._store(shard, request, Record)

    async def commit_in_transaction(
        self, request: Commit, producer_id: int, transaction: int, term: int
    ) -> dict[TopicPartition, ErrorCode]:
        """Offsets that count when their transaction commits (KIP-98, KIP-447). `term`: see `term_of`."""
        shard = self.led_shard(request.group_id)
        if shard.term.number != term:  # an earlier term may have ended the transaction, which this term does not know
            return dict.fromkeys(request.offsets, ErrorCode.NOT_COORDINATOR)
        if shard.pending.has_ended(producer_id, transaction):
            return dict.fromkeys(request.offsets, ErrorCode.INVALID_TXN_STATE)
        error = self._check_commit_in_transaction(shard, request) if request.committer.is_member else ErrorCode.NONE
        if error is not ErrorCode.NONE:
            return dict.fromkeys(request.offsets, error)

        def pending(key: OffsetCommitKey, value: OffsetCommitValue) -> Record:
            return Record(PendingOffsetKey(producer_id, *key), PendingOffsetValue(transaction, value))

        return await self._store(shard, request, pending)

    async def _store(
        self, shard: Shard, request: Commit, record: Callable[[OffsetCommitKey, OffsetCommitValue], Record]
    ) -> dict[TopicPartition, ErrorCode]:
        now = self._now().wall
        expires_at = min(now + request.retention, MAX_TIME) if request.retention >= 0 else -1
        errors = dict.fromkeys(request.offsets, ErrorCode.NONE)
        records = []
        for (topic, index), committed in request.offsets.items():
            if len(committed.metadata.encode()) > self._config.offset_metadata_bytes:
                errors[topic, index] = ErrorCode.OFFSET_METADATA_TOO_LARGE
            else:
                value = OffsetCommitValue(
                    committed.offset, committed.leader_epoch, committed.metadata, now, expires_at, committed.topic_id
                )
                records.append(record(OffsetCommitKey(request.group_id, topic, index), value))
        if records:
            error = await self._written_in_time(shard, records)
            errors = {partition: error if known is ErrorCode.NONE else known for partition, known in errors.items()}
        return errors

    def term_of(self, group_id: str) -> int:
        """The number of the term in which a group is coordinated here. What is asked elsewhere meanwhile counts only in
        this term.
        """
        return self.led_shard(group_id).term.number

    async def end_transaction(self, number: int, producer_id: int, transaction: int, committed: bool) -> None:
        """A transaction has ended that may have committed offsets in this shard. CoordinatorError where it is not led
        here.
        """
        self.shards.end_terms_if_suspended()
        if number >= len(self.shards):
            raise CoordinatorError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        shard = self.shards[number]
        shard.term.check_leading()
        shard.pending.end(producer_id, transaction)
        while True:
            await shard.term.all_stored()  # then all offsets in flight are applied, as pending or as committed
            under_way = list(shard.term.under_way)
            # These records are not awaited, since members may commit without a pause.
            overtaken = _overtaken(under_way, producer_id)
            completion = shard.pending.completion(producer_id, transaction, committed, overtaken)
            if not completion.partitions & _partitions_of(under_way):
                break
        # The committed offsets are stored before the tombstones of the pending ones: a broker may reject one entry and
        # store the next.
        for part in completion.parts():
            shard.term.store(part)
        await shard.term.all_stored()
        if completion.gone:
            await shard.term.store_and_wait(completion.gone)
        # A marker in the shard's log proves that this coordinator still leads. In Kafka the transaction marker itself
        # is a record in that log, so a deposed coordinator can't end a transaction.
        else:
            await shard.term.prove()

    async def _written_in_time(self, shard: Shard, records: Sequence[Record]) -> ErrorCode:
        try:
            await within(self._config.offset_commit_timeout_ms / 1000, shard.term.store_and_wait(records))
        except TimeoutError:
            # Kafka also answers a time-out with COORDINATOR_NOT_AVAILABLE (CoordinatorOperationExceptionHelper). The
            # offsets may still be stored.
            return ErrorCode.COORDINATOR_NOT_AVAILABLE
        except CoordinatorError as refused:
            return refused.error
        return ErrorCode.NONE

    def _check_commit(self, shard: Shard, request: Commit) -> ErrorCode:
        group = shard.group(request.group_id)
        if group is None:
            if request.committer.generation >= 0:
                return ErrorCode.GROUP_ID_NOT_FOUND if request.committer.knows_epochs else ErrorCode.ILLEGAL_GENERATION
            # The client commits without membership; the group is created when its offsets are stored.
            return ErrorCode.NONE
        error = group.check_commit(self._now(), request.committer)
        shard.carry_out_effects(group)
        return error

    def _check_commit_in_transaction(self, shard: Shard, request: Commit) -> ErrorCode:
        group = shard.group(request.group_id)
        if group is None:
            return ErrorCode.ILLEGAL_GENERATION if request.committer.generation >= 0 else ErrorCode.NONE
        return group.check_commit_in_transaction(request.committer)

    def unstable_partitions(self, group_id: str) -> frozenset[TopicPartition]:
        """Those for which a transaction may yet commit another offset (KIP-447)."""
        return self.led_shard(group_id, may_be_empty=True).pending.of_group(group_id)

    async def offsets(self, group_id: str, member_id: str | None = None, epoch: int = -1) -> Offsets | ErrorCode:
        """A group's committed offsets, with those that are being stored at the call. A member may say who it is."""
        shard = self.led_shard(group_id, may_be_empty=True)
        group = shard.group(group_id)
        error = ErrorCode.NONE if group is None else group.check_fetch(member_id, epoch)
        if error is not ErrorCode.NONE:
            return error
        await shard.term.all_stored()
        return shard.offsets.get(group_id, {})

    async def delete_offsets(
        self, group_id: str, partitions: Sequence[TopicPartition]
    ) -> dict[TopicPartition, ErrorCode] | ErrorCode:
        shard = self.led_shard(group_id)
        group = shard.group(group_id)
        if group is None:
            return ErrorCode.GROUP_ID_NOT_FOUND
        if group.members and group.protocol_type != CONSUMER_PROTOCOL:
            return ErrorCode.NON_EMPTY_GROUP
        subscribed = self._subscribed(group, [topic for topic, _ in partitions])
        errors = dict.fromkeys(partitions, ErrorCode.NONE)
        for partition in partitions:
            if subscribed is None or partition[0] in subscribed:
                errors[partition] = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
        await shard.term.all_stored()  # offsets that are being stored are deleted too
        deleted = {partition for partition in partitions if errors[partition] is ErrorCode.NONE}
        gone = [
            Record(key, None)
            for key in shard.offset_keys([group_id])[group_id]
            if (key.topic, key.partition) in deleted
        ]
        await shard.term.store_and_wait(gone)
        return errors

    def _subscribed(self, group: Group, offered: Iterable[str]) -> frozenset[str] | None:
        """The topics of a group's members, under the names that offsets are kept by.

        Members at a sidecar of another namespace mean a topic there, and do not say where: so each that is offered is
        one of theirs.
        """
        topics = group.subscribed_topics if group.members else frozenset()
        if topics is None:
            return None
        if not self.may_be_shared():
            return frozenset(map(self._topic_name, topics))
        return frozenset(map(self._topic_name, topics)) | {
            topic for topic in offered if topic.rpartition("/")[2] in topics
        }

    # --- groups

    def describe(self, group_id: str) -> Group | None:
        return self.led_shard(group_id).group(group_id)

    async def all_stored(self, group_id: str) -> None:
        """Until all that has changed in a group up to now is stored."""
        await self.led_shard(group_id).term.all_stored()

    def all_groups(self) -> list[Group]:
        """The groups that are coordinated here. Raises where one of the shards is still loading."""
        if any(shard.term.phase is Phase.LOADING for shard in self.shards):
            raise CoordinatorError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return [group for shard in self.shards for group in shard.groups.values()]

    async def delete_groups(self, group_ids: Sequence[str]) -> dict[str, DeletedGroup]:
        """What has become of each."""
        of_shards: dict[Shard, list[str]] = {}
        deleted: dict[str, DeletedGroup] = {}
        for group_id in dict.fromkeys(group_ids):
            try:
                of_shards.setdefault(self.led_shard(group_id), []).append(group_id)
            except CoordinatorError as refused:
                deleted[group_id] = DeletedGroup(refused.error)
        for of_shard in await gathered(delete_groups(shard, groups) for shard, groups in of_shards.items()):
            deleted |= of_shard
        return deleted

    async def expire_offsets(self) -> None:
        pace = Pace()
        for shard in self.shards:
            for group_id in list(shard.groups):
                await pace.maybe_yield()
                group = shard.groups.get(group_id)
                if group is not None and shard.term.phase is Phase.LEADING:
                    self._expire(shard, group)

    def _expire(self, shard: Shard, group: Group) -> None:
        retention = self._config.offsets_retention_minutes * 60_000
        offsets = shard.offsets.get(group.group_id, {})
        gone = expired(
            group, self._subscribed(group, {topic for topic, _ in offsets}), offsets, self._now().wall, retention
        )
        is_over = group.is_empty and not group.awaits_somebody and len(gone) == len(offsets)
        # A tombstone must not follow a commit in flight.
        if not (gone or is_over) or is_being_committed(shard, group.group_id):
            return
        if gone:
            log.info("group %s: %d offsets have expired", group.group_id, len(gone))
        if is_over:
            shard.term.store(
                removed(shard, group, [OffsetCommitKey(group.group_id, *partition) for partition in offsets])
            )
        else:
            shard.term.store([Record(OffsetCommitKey(group.group_id, *partition), None) for partition in gone])

    def forget_topics(self, topics: Mapping[str, uuid.UUID | None]) -> None:
        """Topics were deleted, with these ids if they are known: what was committed of them means nothing for one that
        gets such a name, and nobody consumes them.
        """
        ids = {self._topic_name(name): topic_id for name, topic_id in topics.items()}
        self.topics.gone(lambda name: self._topic_name(name) in ids)
        self.consumer_groups.refresh(self.shards)

    async def forget_offsets(self, topics: Mapping[str, uuid.UUID | None]) -> None:
        """Delete what groups have committed of these topics."""
        ids = {self._topic_name(name): topic_id for name, topic_id in topics.items()}
        pace = Pace()
        for shard in self.shards:
            for group in list(shard.offsets):
                await pace.maybe_yield()
                if shard.term.phase is Phase.LEADING:
                    forget_offsets(shard, group, ids)


def _partitions_of(records: Iterable[Record]) -> set[OffsetCommitKey]:
    """Of which these say something."""
    keys = (record.key for record in records)
    committed = (key.committed if isinstance(key, PendingOffsetKey) else key for key in keys)
    return {key for key in committed if isinstance(key, OffsetCommitKey)}


def _overtaken(under_way: Iterable[Record], producer_id: int) -> set[OffsetCommitKey]:
    """The partitions that somebody commits behind what is pending of this producer: the records are on their way to the
    log.
    """
    overtaken: set[OffsetCommitKey] = set()
    for key, value in under_way:
        if isinstance(key, OffsetCommitKey):
            overtaken.add(key)
        elif isinstance(key, PendingOffsetKey) and key.producer_id == producer_id and value is not None:
            # The end of another transaction has written this pending offset again behind its own commit.
            overtaken.discard(key.committed)
    return overtaken


def new_member_id(stem: str) -> str:
    """As Kafka makes them: the instance or client id, and something unique."""
    raw = secrets.token_hex(16)
    return f"{stem}-{raw[:8]}-{raw[8:12]}-{raw[12:16]}-{raw[16:20]}-{raw[20:]}"
