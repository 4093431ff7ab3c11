"""A classic group becomes a consumer group and back, while its members go on (KIP-848, online migration)."""

from __future__ import annotations

import uuid

from kafka_sidecar.errors import ProtocolError
from kafka_sidecar.groups.classic.machine import ClassicGroup
from kafka_sidecar.groups.classic.members import Member
from kafka_sidecar.groups.consumer.machine import ConsumerGroup
from kafka_sidecar.groups.consumer.members import ConsumerMember, MemberState, Topics
from kafka_sidecar.groups.records.consumer import (
    Assignment,
    ClassicMemberMetadata,
    CurrentMemberAssignmentValue,
    MemberMetadataValue,
)
from kafka_sidecar.groups.records.subscription import Partitions, read_parts, read_subscription, write_parts
from kafka_sidecar.groups.vocabulary import CONSUMER_PROTOCOL, Now


class CannotMigrate(Exception):
    """Why a group has to stay what it is."""


def topics_of(group: ClassicGroup) -> frozenset[str]:
    """All topics that have to be known for it to become a consumer group."""
    names: set[str] = set()
    for member in group.members.values():
        try:
            names.update(read_subscription(_metadata(group, member)).topics, read_parts(member.assignment).partitions)
        except ProtocolError:
            continue  # `to_consumer` reports this error
    return frozenset(names)


def to_consumer(group: ClassicGroup, fresh: ConsumerGroup, now: Now) -> None:
    """Make of `fresh`, which is empty, what the classic group is: its generation is the epoch, its members have what
    they had.
    """
    if group.protocol_type != CONSUMER_PROTOCOL:
        raise CannotMigrate("its members are not consumers")
    if len(group.members) > fresh.max_size:
        raise CannotMigrate("it has too many members")
    members = [_to_consumer(group, member, fresh.topics) for member in group.members.values()]
    taken: set[tuple[uuid.UUID, int]] = set()
    for member in members:
        places = {(topic_id, index) for topic_id, indexes in member.current.assigned.items() for index in indexes}
        if places & taken:
            raise CannotMigrate("its assignment gives one partition to two members")
        taken |= places
    for member in members:
        fresh.group_state.put(member)
        fresh.group_state.set_target(member.member_id, member.current.assigned)
        fresh.reset_session_timeout(member, now)
    fresh.group_state.set_target_epoch(group.generation)
    # The group epoch is one above the target epoch, so the next heartbeat of any member computes a new assignment. This
    # holds even if the member that caused the conversion never sends a request again.
    fresh.continue_from_epoch(group.generation + 1)


def _to_consumer(group: ClassicGroup, member: Member, topics: Topics) -> ConsumerMember:
    try:
        subscription = read_subscription(_metadata(group, member))
        parts = read_parts(member.assignment)
    except ProtocolError as error:
        raise CannotMigrate(f"what its members say to each other can't be read: {error}") from error
    if parts.user_data:
        raise CannotMigrate("its assignor keeps data of its own with the assignment, which would be lost")
    metadata = MemberMetadataValue(
        member.instance_id,
        subscription.rack_id,
        member.client_id,
        member.client_host,
        tuple(sorted(set(subscription.topics))),
        None,
        member.rebalance_timeout,
        None,
        ClassicMemberMetadata(member.session_timeout, member.protocols),
    )
    epoch = group.generation
    return ConsumerMember(
        member.member_id,
        metadata,
        CurrentMemberAssignmentValue(epoch, epoch, MemberState.STABLE, _by_id(parts.partitions, topics), {}),
    )


def _by_id(partitions: Partitions, topics: Topics) -> Assignment:
    """Topics that are gone and partitions that never were are left out."""
    found: dict[uuid.UUID, frozenset[int]] = {}
    for name, indexes in partitions.items():
        topic = topics.get(name)
        there = frozenset() if topic is None else frozenset(index for index in indexes if 0 <= index < topic.partitions)
        if topic is not None and there:
            found[topic.topic_id] = found.get(topic.topic_id, frozenset()) | there
    return found


def _metadata(group: ClassicGroup, member: Member) -> bytes:
    """Before the first rebalance ends nothing is selected."""
    return member.metadata(group.protocol) or member.protocols[0][1]


def to_classic(group: ConsumerGroup, fresh: ClassicGroup, now: Now) -> ClassicGroup:
    """Make of `fresh` what is left of a consumer group when its last member of the new protocol has gone."""
    members = []
    for member in group.members.values():
        if member.metadata.classic is None:
            raise CannotMigrate(f"member {member.member_id} speaks the consumer protocol")
        members.append(
            Member(
                member.member_id,
                member.metadata.instance_id,
                member.metadata.client_id,
                member.metadata.client_host,
                member.metadata.classic.session_timeout,
                member.metadata.rebalance_timeout,
                member.metadata.classic.protocols,
                _parts(group, member),
            )
        )
    fresh.take_members(members, group.epoch, now)
    return fresh


def _parts(group: ConsumerGroup, member: ConsumerMember) -> bytes:
    """Its partitions, with those it was asked to revoke: it may not have heard of that."""
    assert member.metadata.classic is not None
    try:
        version = read_subscription(member.metadata.classic.protocols[0][1]).version
    except ProtocolError as error:
        raise CannotMigrate(f"a subscription can't be read: {error}") from error
    return write_parts(group.held_by(member), version)
