"""Effects of groups, carried out: answers given, records stored, one kind of group made of the other."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, Protocol

from kafka_sidecar.coordination.errors import CoordinatorError
from kafka_sidecar.coordination.term import Term
from kafka_sidecar.groups.classic.group_record import group_value
from kafka_sidecar.groups.classic.machine import ClassicGroup
from kafka_sidecar.groups.classic.members import AnswerStaticMember, FinishSync, StoreGroup
from kafka_sidecar.groups.consumer.machine import ConsumerGroup
from kafka_sidecar.groups.consumer.members import Downgrade, StoreRecords
from kafka_sidecar.groups.consumer.migration import CannotMigrate, to_classic
from kafka_sidecar.groups.records import GroupMetadataKey, Record
from kafka_sidecar.groups.records.consumer import TargetAssignmentMetadataKey
from kafka_sidecar.groups.vocabulary import Now, Reply
from kafka_sidecar.telemetry import metrics
from kafka_sidecar.wire.error_code import ErrorCode

log = logging.getLogger(__name__)

OVERSIZED: Final = 1_000  # limit of remembered groups; beyond it all are forgotten, and each may end a term again

Group = ClassicGroup | ConsumerGroup
Effect = Reply | StoreGroup | StoreRecords | Downgrade


class ShardForEffects(Protocol):
    """The shard that groups live in, as far as their effects need it."""

    groups: dict[str, Group]
    oversized: set[str]
    term: Term[Record]
    now: Callable[[], Now]

    def group_stored(
        self, group: ClassicGroup, then: FinishSync | AnswerStaticMember | None, error: ErrorCode
    ) -> None: ...
    def replace(self, group: Group, records: Sequence[Record]) -> None: ...
    def new_group(self, group_id: str) -> ClassicGroup: ...
    def allows(self, direction: str) -> bool: ...


def carry_out(shard: ShardForEffects, group: Group, effect: Effect) -> Group | None:
    """The group that has more to be carried out because of this, if one has."""
    match effect:
        case Reply(response_future, answer):
            response_future.complete(answer)
        case StoreGroup() if isinstance(group, ClassicGroup):
            return _store(shard, group, effect)
        case StoreRecords():
            _write(shard, group, effect)
        case Downgrade(rebalance) if isinstance(group, ConsumerGroup):
            return _downgrade(shard, group, rebalance)
    return None


def answer_waiting(group: ClassicGroup) -> None:
    """Send the answers of a group that has ended, and drop its other effects."""
    for effect in group.take_effects():
        if isinstance(effect, Reply):
            effect.response_future.complete(effect.answer)


# --- classic groups


def _store(shard: ShardForEffects, group: ClassicGroup, effect: StoreGroup) -> Group | None:
    record = Record(GroupMetadataKey(group.group_id), group_value(group, effect.assignments))
    if not shard.term.fits(record):
        log.error(
            "group %s is too large to be stored: its subscriptions and assignments are more than an entry holds",
            group.group_id,
        )
        group.too_large(shard.now(), effect.then)
        return group
    shard.term.store([record], partial(shard.group_stored, group, effect.then))
    return None


# --- consumer groups


def _write(shard: ShardForEffects, group: Group, effect: StoreRecords) -> None:
    if not all(map(shard.term.fits, effect.records)):
        # The group in memory has changes that are not in the log, so the shard loads the log again. The group can't
        # grow after that.
        log.error(
            "group %s is too large to be stored: its members and their partitions are more than an entry holds",
            group.group_id,
        )
        if len(shard.oversized) >= OVERSIZED:
            shard.oversized.clear()
        shard.oversized.add(group.group_id)
        shard.term.restart("a group could not be stored")
        return
    if any(isinstance(record.key, TargetAssignmentMetadataKey) for record in effect.records):
        metrics.REBALANCES.inc()
    shard.term.store(effect.records)


def _downgrade(shard: ShardForEffects, group: ConsumerGroup, rebalance: bool) -> Group | None:
    """No member uses the consumer protocol any more: make the group classic (KIP-848).

    It stays a consumer group while its topics are unknown: the classic assignment needs their names.
    """
    if shard.groups.get(group.group_id) is not group:
        return None  # the last write of this group has ended the term
    try:
        classic, record = _as_classic(shard, group, rebalance)
    except CannotMigrate as reason:
        log.info("group %s stays a consumer group: %s", group.group_id, reason)
        group.stay()
        group.flush()
        return group
    log.info("group %s becomes a classic group", group.group_id)
    if rebalance:
        classic.rebalance(shard.now())
    try:
        # The record of the classic group comes first: once it is stored, the classic group counts.
        shard.replace(classic, [record, *group.deletion()])
    except CoordinatorError:
        return None
    return classic


def _as_classic(shard: ShardForEffects, group: ConsumerGroup, rebalance: bool) -> tuple[ClassicGroup, Record]:
    if not shard.allows("downgrade"):
        raise CannotMigrate("groups.migration does not allow it")
    if not group.knows_topics:
        raise CannotMigrate("its topics are not known yet")
    classic = to_classic(group, shard.new_group(group.group_id), shard.now())
    assignments = {member.member_id: member.assignment for member in classic.members.values()}
    value = group_value(classic, assignments)._replace(leader=None if rebalance else classic.leader)
    record = Record(GroupMetadataKey(group.group_id), value)
    if not shard.term.fits(record):
        raise CannotMigrate("all its members are more than one entry holds")
    return classic, record
