"""A shard: the groups of one partition of `__consumer_offsets`, while this process leads it (see `coordination.term`).

The shard applies a committed offset when its receipt comes, in the order of the log. A group changes at once, and an
answer that depends on a record waits for its receipt (SyncGroup, LeaveGroup, ConsumerGroupHeartbeat, and JoinGroup of a
static member that gets a new id). Another classic JoinGroup or a Heartbeat does not wait, as in Kafka.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TypeVar

from kafka_sidecar.config import GroupsConfig
from kafka_sidecar.coordination.errors import CoordinatorError
from kafka_sidecar.coordination.term import Term, TermState
from kafka_sidecar.coordination.term_log import TermLog
from kafka_sidecar.coordination.timers import Timers
from kafka_sidecar.groups.classic.machine import ClassicGroup
from kafka_sidecar.groups.classic.members import AnswerStaticMember, FinishSync, JoinResult
from kafka_sidecar.groups.classic.state import State
from kafka_sidecar.groups.consumer.machine import ConsumerGroup, Times
from kafka_sidecar.groups.consumer.members import GroupTooLarge, Topics
from kafka_sidecar.groups.effects import Group, answer_waiting, carry_out
from kafka_sidecar.groups.pending_offsets import PendingOffsets
from kafka_sidecar.groups.records import (
    Key,
    OffsetCommitKey,
    OffsetCommitValue,
    OffsetKey,
    PendingOffsetKey,
    PendingOffsetValue,
    Record,
    Value,
)
from kafka_sidecar.groups.restored import restored
from kafka_sidecar.groups.vocabulary import Now
from kafka_sidecar.loop.pace import Pace
from kafka_sidecar.loop.waiting import Pending
from kafka_sidecar.telemetry import metrics
from kafka_sidecar.wire.error_code import ErrorCode

log = logging.getLogger(__name__)

T = TypeVar("T")

TopicPartition = tuple[str, int]
Offsets = dict[TopicPartition, OffsetCommitValue]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardContext:
    """The things that all shards of a coordinator share."""

    config: GroupsConfig
    now: Callable[[], Now]
    topic_name: Callable[[str], str]  # returns the canonical name of a topic, under which its offsets are stored
    topics: Topics
    timers_may_fire: Callable[
        [], bool
    ]  # False after the process was suspended: its terms have ended, and its members have not missed heartbeats
    on_committed: Callable[[OffsetCommitKey, OffsetCommitValue], None]


class Shard(TermState[Record]):
    def __init__(self, name: str, open_log: Callable[[], TermLog[Record]], context: ShardContext) -> None:
        self.name = name
        self.term = Term(name, open_log, self)
        self.groups: dict[str, Group] = {}
        self.offsets: dict[str, Offsets] = {}
        self.pending = PendingOffsets()
        self.oversized: set[str] = set()  # ids of consumer groups with a record that was too large to be stored
        self._context = context
        self.now = context.now
        self._timers = Timers(self._tick)
        # By group id, records that were read while loading, in log order.
        self._replayed: dict[str, dict[Key, Value]] = {}
        self._legacy: dict[Key, Value] = {}

    # --- from the term

    async def on_loaded(self) -> None:
        leftovers = await self._build_groups()
        await self._write_again()
        if leftovers:
            self.term.store(leftovers)
        for group in list(self.groups.values()):
            self.carry_out_effects(group)

    async def on_leading(self, seconds: float) -> None:
        await self._tell_committed()
        offsets = self.live_record_count - len(self.groups)
        log.info(
            "coordinating %s: %d groups, %d offsets, read in %.1f s", self.name, len(self.groups), offsets, seconds
        )

    @property
    def live_record_count(self) -> int:
        return len(self.groups) + len(self.pending) + sum(map(len, self.offsets.values()))

    def on_stored(self, record: Record) -> None:
        key, value = record
        if isinstance(key, PendingOffsetKey):
            self._apply_pending(key, value)
        if not isinstance(key, OffsetCommitKey):
            return
        self._apply_offset(key, value)
        if isinstance(value, OffsetCommitValue):
            metrics.COMMITS.inc()
            self._context.on_committed(key, value)
        if value is not None and key.group not in self.groups:
            self.groups[key.group] = self.new_group(key.group)

    def offset_keys(self, groups: Collection[str]) -> dict[str, dict[OffsetKey, None]]:
        """By group, of what these have committed, or have pending in transactions: in the log, or on its way there. One
        look for all.
        """
        keys: dict[str, dict[OffsetKey, None]] = {group: {} for group in groups}
        for group, of_group in keys.items():
            of_group.update((OffsetCommitKey(group, *partition), None) for partition in self.offsets.get(group, {}))
        for key in chain(self.pending.keys(), (record.key for record in self.term.under_way)):
            if isinstance(key, OffsetKey) and key.group in keys:
                keys[key.group][key] = None
        return keys

    def on_unloaded(self) -> None:
        self._timers.clear()
        groups, self.groups = self.groups, {}
        self.offsets, self._replayed, self._legacy = {}, {}, {}
        self.pending = PendingOffsets()
        for group in groups.values():
            group.die(ErrorCode.NOT_COORDINATOR)
            if isinstance(group, ClassicGroup):
                answer_waiting(group)

    async def _tell_committed(self) -> None:
        """Tell `on_committed` all loaded offsets. An earlier term may have ended before it could tell them."""
        pace = Pace()
        for group_id in list(self.offsets):
            # Yields only between groups, so that later commits of a group are reported after its loaded offsets.
            await pace.maybe_yield()
            for (topic, partition), value in self.offsets.get(group_id, {}).items():
                self._context.on_committed(OffsetCommitKey(group_id, topic, partition), value)

    def replay(self, record: Record, legacy: bool) -> None:
        key, value = record
        if legacy and isinstance(key, OffsetCommitKey):
            key = key._replace(topic=self._context.topic_name(key.topic))
            if isinstance(value, OffsetCommitValue):
                # Ignores the expiry after three days that Kafka-on-Pulsar gives to every offset.
                value = value._replace(expires_at=-1)
        self._legacy.pop(key, None)
        if legacy and value is not None:
            self._legacy[key] = value
        if isinstance(key, OffsetCommitKey):
            self._apply_offset(key, value)
            return
        if isinstance(key, PendingOffsetKey):
            self._apply_pending(key, value)
            return
        stored = self._replayed.setdefault(key.group, {})
        stored.pop(key, None)  # a key that is written again moves to its later place in the log
        if value is not None:
            stored[key] = value

    async def _build_groups(self) -> list[Record]:
        """Make groups of what was read. Records that belong to none are returned, to be deleted."""
        now = self.now()
        pace = Pace()
        loaded, self._replayed = self._replayed, {}
        leftovers: list[Record] = []
        for group_id, stored in loaded.items():
            await pace.maybe_yield()
            try:
                group, unused = restored(group_id, stored, self.new_group, self.new_consumer_group, now)
            except Exception:
                metrics.INTERNAL_ERRORS.labels("groups").inc()
                log.exception("%s: group %s can't be made of what is stored of it", self.name, group_id)
                continue
            leftovers += unused
            if group is not None:
                self.groups[group_id] = group
        for group_id in self.offsets:
            if group_id not in self.groups:
                self.groups[group_id] = self.new_group(group_id)
        return leftovers

    async def _write_again(self) -> None:
        """Write the records of Kafka-on-Pulsar again, in the form that compaction keeps."""
        legacy, self._legacy = self._legacy, {}
        records = []
        for record in (Record(key, value) for key, value in legacy.items()):
            if self.term.fits(record):
                records.append(record)
            else:
                log.error(
                    "%s: what Kafka-on-Pulsar stored of group %s is too large for an entry and is lost",
                    self.name,
                    record.key.group,
                )
        if legacy:
            log.info("%s: %d records of Kafka-on-Pulsar are written again", self.name, len(records))
        await self.term.write_legacy_again(records)

    def _apply_pending(self, key: PendingOffsetKey, value: Value | None) -> None:
        assert value is None or isinstance(value, PendingOffsetValue)
        self.pending.apply(key, value)

    def _apply_offset(self, key: OffsetCommitKey, value: Value | None) -> None:
        self.pending.overtake(key)
        topic_partition = (key.topic, key.partition)
        if isinstance(value, OffsetCommitValue):
            self.offsets.setdefault(key.group, {})[topic_partition] = value
        elif key.group in self.offsets:
            self.offsets[key.group].pop(topic_partition, None)
            if not self.offsets[key.group]:
                del self.offsets[key.group]

    # --- groups

    def group(self, group_id: str) -> Group | None:
        self.term.check_leading()
        return self.groups.get(group_id)

    def remove(self, group: Group) -> None:
        """The group is deleted. Nobody is in it."""
        group.die(ErrorCode.UNKNOWN_MEMBER_ID)
        del self.groups[group.group_id]

    def replace(self, group: Group, records: Sequence[Record]) -> None:
        """Another group of this id takes the place of the one there is, if any; these records say so."""
        self.groups[group.group_id] = group
        if records:
            self.term.store(records)
            self.term.check_leading()  # the write may have ended the term

    def new_group(self, group_id: str) -> ClassicGroup:
        config = self._context.config
        return ClassicGroup(
            group_id, self.now(), initial_delay=config.initial_rebalance_delay_ms / 1000, max_size=config.max_size
        )

    def new_consumer_group(self, group_id: str) -> ConsumerGroup:
        config = self._context.config
        times = Times(config.consumer_session_timeout_ms, config.consumer_heartbeat_interval_ms)
        return ConsumerGroup(group_id, self._context.topics, times=times, max_size=config.max_size)

    async def answer(self, group: ClassicGroup, event: Callable[[Pending[T]], object]) -> T:
        """Run one request on a classic group. Returns the answer when the group gives it: others may have to come
        first.
        """
        response_future = Pending[T]()
        self.handle(group, lambda: event(response_future))
        return await response_future

    async def answer_when_stored(self, group: ConsumerGroup, event: Callable[[], T]) -> T:
        """Run one request on a consumer group. Returns its answer, after all that has changed up to then is stored."""
        answer = self.handle(group, event)
        try:
            await self.term.all_stored()
        except CoordinatorError as refused:
            if group.group_id in self.oversized:
                raise GroupTooLarge(group.group_id) from refused
            raise
        return answer

    def handle(self, group: Group, event: Callable[[], T]) -> T:
        """Let something happen to a group, and carry out what it decides."""
        try:
            result = event()
            self.carry_out_effects(group)
            return result
        except Exception:
            # The group in memory may differ from the group in the log: the log is read again.
            self.term.restart(f"group {group.group_id} failed")
            raise

    def carry_out_effects(self, group: Group) -> None:
        """Carry out what a group has decided, and what follows from that."""
        todo: list[Group] = [group]
        while todo:
            group = todo.pop()
            for effect in group.take_effects():
                further = carry_out(self, group, effect)
                if further is not None:
                    todo.append(further)
        if self.groups.get(group.group_id) is group:
            if group.unused:
                self._forget_unused(group)
            if group.wake_at is not None:
                self._timers.set(group.group_id, group.wake_at)

    def group_stored(self, group: ClassicGroup, then: FinishSync | AnswerStaticMember | None, error: ErrorCode) -> None:
        """From the term: what a classic group had stored is in the log, or the term is over."""
        if error is ErrorCode.NONE and group.state is not State.DEAD:
            group.on_stored(self.now(), then)
            if isinstance(then, FinishSync) and group.state is State.STABLE:
                metrics.REBALANCES.inc()
            self.carry_out_effects(group)
        elif isinstance(then, AnswerStaticMember):
            then.response_future.complete(JoinResult(ErrorCode.NOT_COORDINATOR))

    def _forget_unused(self, group: Group) -> None:
        """Nothing of the group itself is stored. One that has committed offsets stays, as an empty classic group."""
        if group.group_id not in self.offsets:
            del self.groups[group.group_id]
        elif not isinstance(group, ClassicGroup):
            self.groups[group.group_id] = self.new_group(group.group_id)

    def allows(self, direction: str) -> bool:
        return self._context.config.migration in ("bidirectional", direction)

    def _tick(self, group_id: str) -> None:
        group = self.groups.get(group_id)
        if group is not None and self._context.timers_may_fire():
            try:
                self.handle(group, lambda: self._say(group, group.tick(self.now())))
            except Exception:
                metrics.INTERNAL_ERRORS.labels("groups").inc()
                log.exception("group %s failed at what was due", group_id)

    def _say(self, group: Group, reasons: list[str]) -> None:
        for reason in reasons:
            log.info("group %s: %s", group.group_id, reason)
