"""A member's next step towards its target
(org.apache.kafka.coordinator.group.modern.consumer.CurrentAssignmentBuilder).

A member keeps what is in its target, is asked to revoke what is not, and is given the rest once nobody
has it. It comes into the target's epoch when it has nothing left to revoke.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection
from typing import NamedTuple

from kafka_sidecar.groups.consumer.members import NO_PARTITIONS, ConsumerMember, MemberState
from kafka_sidecar.groups.records.consumer import Assignment, CurrentMemberAssignmentValue


class Target(NamedTuple):
    epoch: int
    partitions: Assignment


class StepInputs(NamedTuple):
    """The facts besides the member and its target that a step depends on."""

    subscribed: Collection[uuid.UUID]  # ids of the topics to which the member subscribes
    subscription_changed: bool
    owned: Assignment | None  # partitions that the member reports as owned; None if its request has no such list
    owner_of: Callable[[uuid.UUID, int], str | None]


def reconcile(member: ConsumerMember, target: Target, inputs: StepInputs) -> CurrentMemberAssignmentValue:
    current = member.current
    match current.state:
        case MemberState.STABLE:
            if current.epoch == target.epoch:
                return _within_subscription(current, inputs)
        case MemberState.UNREVOKED:
            if _still_has(current.revoking, inputs.owned):
                return _within_subscription(current, inputs)
        case MemberState.UNRELEASED:
            pass
    return _next(member, target, inputs)


def _still_has(revoking: Assignment, owned: Assignment | None) -> bool:
    """A member that says nothing of what it has is taken to have all of it still."""
    return owned is None or any(owned.get(topic_id, frozenset()) & indexes for topic_id, indexes in revoking.items())


def _within_subscription(current: CurrentMemberAssignmentValue, inputs: StepInputs) -> CurrentMemberAssignmentValue:
    """A member that has changed its subscription does not keep partitions of other topics until the next target."""
    unwanted = {
        topic_id: indexes for topic_id, indexes in current.assigned.items() if topic_id not in inputs.subscribed
    }
    if not inputs.subscription_changed or not unwanted:
        return current
    assigned = {topic_id: indexes for topic_id, indexes in current.assigned.items() if topic_id in inputs.subscribed}
    revoking = dict(current.revoking)
    for topic_id, indexes in unwanted.items():
        revoking[topic_id] = revoking.get(topic_id, frozenset()) | indexes
    if _still_has(revoking, inputs.owned):
        return _in_epoch(current, current.epoch, MemberState.UNREVOKED, assigned, revoking)
    return current._replace(assigned=assigned)


def _next(member: ConsumerMember, target: Target, inputs: StepInputs) -> CurrentMemberAssignmentValue:
    assigned: dict[uuid.UUID, frozenset[int]] = {}
    revoking: dict[uuid.UUID, frozenset[int]] = {}
    free: dict[uuid.UUID, frozenset[int]] = {}
    unreleased = False
    held = member.current.assigned
    for topic_id in target.partitions.keys() | held.keys():
        wanted = target.partitions.get(topic_id, frozenset()) if topic_id in inputs.subscribed else frozenset()
        has = held.get(topic_id, frozenset())
        if has & wanted:
            assigned[topic_id] = has & wanted
        if has - wanted:
            revoking[topic_id] = has - wanted
        # A partition that the member has yet to revoke still belongs to it, so it may be assigned to it again.
        available = frozenset(
            index for index in wanted - has if inputs.owner_of(topic_id, index) in (None, member.member_id)
        )
        unreleased = unreleased or available != wanted - has
        if available:
            free[topic_id] = available
    if revoking and _still_has(revoking, inputs.owned):
        return _in_epoch(member.current, member.epoch, MemberState.UNREVOKED, assigned, revoking)
    for topic_id, indexes in free.items():
        assigned[topic_id] = assigned.get(topic_id, frozenset()) | indexes
    return _in_epoch(
        member.current,
        target.epoch,
        MemberState.UNRELEASED if unreleased else MemberState.STABLE,
        assigned,
        NO_PARTITIONS,
    )


def _in_epoch(
    current: CurrentMemberAssignmentValue, epoch: int, step: MemberState, assigned: Assignment, revoking: Assignment
) -> CurrentMemberAssignmentValue:
    # The previous epoch becomes the current one even if the epoch stays the same. A delayed heartbeat from an older
    # epoch then does not count for this step.
    return CurrentMemberAssignmentValue(epoch, current.epoch, step, assigned, revoking)
