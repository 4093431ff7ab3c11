"""Which kind of group a joining member finds: the one there is, or what becomes of it."""

from __future__ import annotations

import logging

from kafka_sidecar.groups.classic.machine import ClassicGroup
from kafka_sidecar.groups.consumer.machine import ConsumerGroup
from kafka_sidecar.groups.consumer.members import MemberHeartbeat
from kafka_sidecar.groups.consumer.migration import CannotMigrate, to_consumer
from kafka_sidecar.groups.effects import answer_waiting
from kafka_sidecar.groups.records import GroupMetadataKey, Record
from kafka_sidecar.groups.shard import Shard

log = logging.getLogger(__name__)


def get_or_create_consumer_group(shard: Shard, group_id: str, newcomer: MemberHeartbeat) -> ConsumerGroup:
    """The group for a member that joins by the consumer protocol. Raises Refusal or CannotMigrate, and nothing has
    changed then.
    """
    group = shard.groups.get(group_id)
    if isinstance(group, ConsumerGroup):
        return group
    fresh = shard.new_consumer_group(group_id)
    fresh.check_newcomer(newcomer)
    if group is None or group.is_empty:
        fresh.knows_topics = True
        shard.replace(fresh, [] if group is None else group.deletion())
        return fresh
    if not shard.allows("upgrade"):
        raise CannotMigrate("groups.migration does not allow it")
    to_consumer(group, fresh, shard.now())
    fresh.check_room(newcomer.member_id)
    group.end_for_upgrade()
    answer_waiting(group)
    log.info("group %s becomes a consumer group", group_id)
    shard.replace(fresh, [*fresh.group_state.take_records(), Record(GroupMetadataKey(group_id), None)])
    return fresh


def get_or_create_classic_group(shard: Shard, group_id: str) -> ClassicGroup:
    """The group for a member that joins by the classic protocol. If it is a consumer group, nobody is in it."""
    group = shard.groups.get(group_id)
    if isinstance(group, ClassicGroup):
        return group
    fresh = shard.new_group(group_id)
    shard.replace(fresh, [] if group is None else group.deletion())
    return fresh
