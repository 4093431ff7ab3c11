"""A consumer group: a machine without I/O and without a clock.

    member joins, leaves, changes its mind; topics change  ──▶  group epoch + 1
    next heartbeat of any member                           ──▶  target assignment of that epoch
    each member's own heartbeats                           ──▶  its steps towards the target (see `reconcile`)

The rules are those of Kafka's GroupMetadataManager. Members that still speak the classic protocol are
members like the others: what they ask are heartbeats in other words (see `classic_members`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from enum import Enum
from typing import Final, NamedTuple

from kafka_sidecar.groups.consumer.checks import check_epoch, check_metadata, epoch_error, updated_metadata
from kafka_sidecar.groups.consumer.group_state import GroupState
from kafka_sidecar.groups.consumer.members import (
    JOIN_GROUP_MEMBER_EPOCH,
    LEAVE_GROUP_STATIC_MEMBER_EPOCH,
    NEW_MEMBER,
    NO_PARTITIONS,
    ConsumerMember,
    Downgrade,
    HeartbeatResult,
    MemberHeartbeat,
    MemberState,
    Refusal,
    RequiredTopics,
    StoreRecords,
    Topics,
)
from kafka_sidecar.groups.consumer.reconcile import StepInputs, Target, reconcile
from kafka_sidecar.groups.consumer.subscriptions import Subscriptions
from kafka_sidecar.groups.deadlines import Deadlines
from kafka_sidecar.groups.records import Key, OffsetCommitValue, Record, Value
from kafka_sidecar.groups.records.consumer import Assignment, MemberMetadataValue
from kafka_sidecar.groups.vocabulary import CONSUMER_PROTOCOL, Committer, Now
from kafka_sidecar.wire.error_code import ErrorCode

# Heartbeat interval, in milliseconds, of a member that waits until others have revoked partitions. It grows with the
# number of members that wait.
WAITING_INTERVAL: Final = 500
WAITING_SECONDS: Final = 15.0  # a member that waits longer gets the normal heartbeat interval again
WAITING_AT_ONCE: Final = 100


class State(Enum):
    """As tools show it; computed, nothing depends on it."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"


class Due(Enum):
    SESSION = "its session has ended"
    REVOCATION = "it did not revoke its partitions in time"
    JOIN = "it did not join again in time"
    SYNC = "it did not ask for its partitions in time"


class Times(NamedTuple):
    """Milliseconds."""

    session: int
    interval: int


class ConsumerGroup:
    protocol_type = CONSUMER_PROTOCOL
    awaits_somebody = False

    def __init__(self, group_id: str, topics: Topics, *, times: Times, max_size: int) -> None:
        self.group_id = group_id
        self.group_state = GroupState(group_id)
        self.subscriptions = Subscriptions(self.group_state, topics)
        self.effects: list[StoreRecords | Downgrade] = []
        self.downgrade: Downgrade | None = None  # carried out after the changed records are written
        self.deadlines: Deadlines[tuple[Due, str]] = Deadlines()
        self.knows_topics = False  # True once all subscribed topics were looked up in this term
        self.topics = topics
        self.max_size = max_size
        self._times = times
        self._waits_since: dict[str, float] = {}

    def load(self, stored: dict[Key, Value], now: Now) -> None:
        """Become what a term before has stored. All timers begin again."""
        self.group_state.load(stored)
        for member in self.members.values():
            self.reset_session_timeout(member, now)
            if member.current.state == MemberState.UNREVOKED and not member.is_classic:
                self.deadlines.set(
                    (Due.REVOCATION, member.member_id), now.clock + member.metadata.rebalance_timeout / 1000
                )
        self.flush()

    # --- what it is

    @property
    def members(self) -> Mapping[str, ConsumerMember]:
        return self.group_state.members

    @property
    def is_empty(self) -> bool:
        return not self.members

    @property
    def unused(self) -> bool:
        """Nothing of it is stored."""
        return not self.members and not self.epoch

    @property
    def only_classic(self) -> bool:
        return bool(self.members) and all(member.is_classic for member in self.members.values())

    @property
    def epoch(self) -> int:
        return self.group_state.epoch.epoch

    @property
    def state(self) -> State:
        if not self.members:
            return State.EMPTY
        if self.epoch > self.group_state.target_epoch:
            return State.ASSIGNING
        return State.STABLE if all(map(self.is_reconciled, self.members.values())) else State.RECONCILING

    def is_reconciled(self, member: ConsumerMember) -> bool:
        return member.current.state == MemberState.STABLE and member.epoch == self.group_state.target_epoch

    @property
    def subscribed_topics(self) -> frozenset[str]:
        return self.subscriptions.names

    @property
    def required_topics(self) -> RequiredTopics:
        return self.subscriptions.required_topics

    @property
    def wake_at(self) -> float | None:
        return self.deadlines.earliest

    def take_effects(self) -> list[StoreRecords | Downgrade]:
        effects, self.effects = self.effects, []
        return effects

    def flush(self) -> None:
        """Have the changes stored."""
        records = self.group_state.take_records()
        if records:
            self.effects.append(StoreRecords(records))
        if self.downgrade is not None:
            self.effects.append(self.downgrade)
            self.downgrade = None

    def continue_from_epoch(self, epoch: int) -> None:
        """That of a classic group which this one takes the place of."""
        self.group_state.set_epoch(epoch, self.subscriptions.metadata_hash())
        self.knows_topics = True

    def deletion(self) -> list[Record]:
        return self.group_state.deletion()

    def die(self, error: ErrorCode) -> None:
        """Nobody waits for it: all its answers leave when they are stored, or can't be."""

    # --- ConsumerGroupHeartbeat

    def heartbeat(self, now: Now, request: MemberHeartbeat) -> HeartbeatResult:
        """The member's next step. Its answer may be given once all of it is stored."""
        try:
            answer = self._heartbeat(now, request)
        except Refusal as refused:
            answer = HeartbeatResult(refused.error, str(refused))
        self.flush()
        return answer

    def _heartbeat(self, now: Now, request: MemberHeartbeat) -> HeartbeatResult:
        self.check_room(request.member_id)
        before = self._beating_member(request)
        metadata = updated_metadata(before, request)
        self.check(before, request.member_id, metadata)
        member = self.enter(before, request.member_id, metadata)
        changed = self.subscribe(now, before, member)
        member = self.step(now, member, changed, request.owned)
        self.reset_session_timeout(member, now)
        shown = before is not None and before.current.assigned == member.current.assigned and not request.is_full
        return HeartbeatResult(
            ErrorCode.NONE,
            None,
            member.member_id,
            member.epoch,
            self._interval(now, member),
            None if shown else member.current.assigned,
        )

    def _interval(self, now: Now, member: ConsumerMember) -> int:
        if member.current.state != MemberState.UNRELEASED:
            self._waits_since.pop(member.member_id, None)
            return self._times.interval
        waited = now.clock - self._waits_since.setdefault(member.member_id, now.clock)
        soon = WAITING_INTERVAL * max(1, len(self._waits_since) // WAITING_AT_ONCE)
        return min(soon, self._times.interval) if waited < WAITING_SECONDS else self._times.interval

    def _beating_member(self, request: MemberHeartbeat) -> ConsumerMember | None:
        """The member, None for one that is new, or of a static member the one whose place it takes."""
        if request.epoch != JOIN_GROUP_MEMBER_EPOCH:
            known = self._known(request)
            check_epoch(known, request)
            return known
        same = self.static_member(request.instance_id)
        if (
            same is not None
            and same.member_id != request.member_id
            and not same.is_classic
            and same.epoch != LEAVE_GROUP_STATIC_MEMBER_EPOCH
        ):
            text = f"The instance id {request.instance_id} is owned by member {same.member_id}."
            raise Refusal(ErrorCode.UNRELEASED_INSTANCE_ID, text)
        return same or self.members.get(request.member_id)

    def _known(self, request: MemberHeartbeat) -> ConsumerMember:
        if request.instance_id is not None:
            return self.check_static(request.member_id, request.instance_id)
        known = self.members.get(request.member_id)
        if known is None:
            raise Refusal(
                ErrorCode.UNKNOWN_MEMBER_ID, f"Member {request.member_id} is not a member of group {self.group_id}."
            )
        return known

    def static_member(self, instance_id: str | None) -> ConsumerMember | None:
        member_id = None if instance_id is None else self.group_state.static.get(instance_id)
        return None if member_id is None else self.members[member_id]

    def check_static(self, member_id: str, instance_id: str) -> ConsumerMember:
        known = self.static_member(instance_id)
        if known is None:
            raise Refusal(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
        if known.member_id != member_id:
            raise Refusal(
                ErrorCode.FENCED_INSTANCE_ID, f"Instance id {instance_id} belongs to member {known.member_id}."
            )
        return known

    def check_room(self, member_id: str) -> None:
        if len(self.members) >= self.max_size and member_id not in self.members:
            text = f"The consumer group has reached its maximum capacity of {self.max_size} members."
            raise Refusal(ErrorCode.GROUP_MAX_SIZE_REACHED, text)

    def check(self, before: ConsumerMember | None, member_id: str, metadata: MemberMetadataValue) -> None:
        if before is None or before.member_id != member_id or before.metadata != metadata:
            check_metadata(member_id, metadata, self.topics)

    def check_newcomer(self, request: MemberHeartbeat) -> None:
        """Whether it could be the first member of this group."""
        self.check_room(request.member_id)
        self.check(None, request.member_id, updated_metadata(None, request))

    # --- what an event does, step by step

    def enter(self, before: ConsumerMember | None, member_id: str, metadata: MemberMetadataValue) -> ConsumerMember:
        """The member as it describes itself now, at its own place or at that of the instance it replaces."""
        if before is None:
            member = ConsumerMember(member_id, metadata, NEW_MEMBER)
        elif before.member_id == member_id:
            member = replace(before, metadata=metadata)
            # The member has changed between the classic and the consumer protocol.
            if before.is_classic != member.is_classic:
                self._forget_times(member_id)
        else:
            member = ConsumerMember(member_id, metadata, before.current._replace(epoch=0, previous_epoch=0))
            target = self.group_state.targets.get(before.member_id, NO_PARTITIONS)
            self._forget(before.member_id)
            self.group_state.set_target(member_id, target)
        self.group_state.put(member)
        return member

    def subscribe(self, now: Now, before: ConsumerMember | None, member: ConsumerMember) -> bool:
        """A new epoch if the subscription is a new one. True if it is."""
        old = None if before is None else (before.metadata.topics, before.metadata.regex)
        changed = old != (member.metadata.topics, member.metadata.regex)
        if changed:
            self.subscriptions.resolve(now.wall)
        if changed or not self.epoch:
            self.group_state.set_epoch(self.epoch + 1, self.subscriptions.metadata_hash())
        return changed

    def step(
        self, now: Now, member: ConsumerMember, subscription_changed: bool, owned: Assignment | None
    ) -> ConsumerMember:
        """The target, if there is none of this epoch yet, and the member's next step towards it."""
        if self.epoch > self.group_state.target_epoch:
            self.subscriptions.assign(self.epoch)
        if self.is_reconciled(member) and not subscription_changed:
            return member
        target = Target(self.group_state.target_epoch, self.group_state.targets.get(member.member_id, NO_PARTITIONS))
        inputs = StepInputs(
            self.subscriptions.topic_ids(member).keys(), subscription_changed, owned, self.group_state.owners.of
        )
        stepped = replace(member, current=reconcile(member, target, inputs))
        if stepped != member:
            self.group_state.put(stepped)
        if not stepped.is_classic:
            self._mind_revocation(now, member, stepped)
        return stepped

    def _mind_revocation(self, now: Now, before: ConsumerMember, member: ConsumerMember) -> None:
        due = (Due.REVOCATION, member.member_id)
        if member.current.state != MemberState.UNREVOKED:
            self.deadlines.cancel(due)
        elif member.current != before.current:
            self.deadlines.set(due, now.clock + member.metadata.rebalance_timeout / 1000)

    def partitions_of(self, member: ConsumerMember) -> dict[str, frozenset[int]]:
        """The partitions that a member may consume, under the names by which it knows the topics."""
        return self.subscriptions.named(member, member.current.assigned)

    def held_by(self, member: ConsumerMember) -> dict[str, frozenset[int]]:
        """That, and what it has yet to revoke."""
        held = dict(member.current.assigned)
        for topic_id, indexes in member.current.revoking.items():
            held[topic_id] = held.get(topic_id, frozenset()) | indexes
        return self.subscriptions.named(member, held)

    # --- who goes

    def leave(self, request: MemberHeartbeat) -> HeartbeatResult:
        """By a heartbeat: for good, or a static member for a while."""
        try:
            known = self._known(request)
            if request.epoch == LEAVE_GROUP_STATIC_MEMBER_EPOCH:
                self.deadlines.cancel((Due.REVOCATION, known.member_id))
                self.group_state.put(
                    replace(
                        known,
                        current=known.current._replace(epoch=LEAVE_GROUP_STATIC_MEMBER_EPOCH, revoking=NO_PARTITIONS),
                    )
                )
            else:
                self.remove([known])
            answer = HeartbeatResult(ErrorCode.NONE, None, request.member_id, request.epoch)
        except Refusal as refused:
            answer = HeartbeatResult(refused.error, str(refused))
        self.flush()
        return answer

    def remove(self, members: Iterable[ConsumerMember]) -> None:
        for member in members:
            self._forget(member.member_id)
        for regex in self.group_state.regexes.keys() - self.subscriptions.regexes:
            self.group_state.remove_regex(regex)
        self._reassign_or_downgrade()

    def _reassign_or_downgrade(self) -> None:
        if self.only_classic:  # the epoch stays the same, so that the classic members rejoin and are not fenced
            self.downgrade = Downgrade(rebalance=True)
        else:
            self.stay()

    def stay(self) -> None:
        """A new epoch, if anything that the group is assigned by has changed."""
        metadata_hash = self.subscriptions.metadata_hash()
        if metadata_hash != self.group_state.epoch.metadata_hash:
            self.group_state.set_epoch(self.epoch + 1, metadata_hash)

    def _forget(self, member_id: str) -> None:
        self.group_state.remove(member_id)
        self._forget_times(member_id)

    def _forget_times(self, member_id: str) -> None:
        self._waits_since.pop(member_id, None)
        for due in Due:
            self.deadlines.cancel((due, member_id))

    # --- time, and what else happens around it

    def tick(self, now: Now) -> list[str]:
        """Members whose time is over are out. Says why, one sentence each."""
        late: dict[str, Due] = {}
        for due, member_id in self.deadlines.take_due(now.clock):
            if member_id in self.members:
                late.setdefault(member_id, due)
        said = [_farewell(self.members[member_id], due) for member_id, due in late.items()]
        if late:
            self.remove([self.members[member_id] for member_id in late])
            self.flush()
        return said

    def refresh_topics(self, now: Now) -> None:
        """Look at the topics again: what they are now may ask for another assignment. Not before all of them are
        known.
        """
        if not self.subscriptions.are_known:
            return
        self.knows_topics = True
        if not self.members:
            return
        self.subscriptions.resolve(now.wall)
        self._reassign_or_downgrade()
        self.flush()

    def reset_session_timeout(self, member: ConsumerMember, now: Now) -> None:
        session = self._times.session if member.metadata.classic is None else member.metadata.classic.session_timeout
        self.deadlines.set((Due.SESSION, member.member_id), now.clock + session / 1000)

    # --- offsets

    def check_commit(self, _: Now, committer: Committer) -> ErrorCode:
        """Whether this member may commit offsets now."""
        return self._check_commit(committer, committer.knows_epochs)

    def _check_commit(self, committer: Committer, knows_epochs: bool) -> ErrorCode:
        if committer.generation < 0 and not self.members:
            return ErrorCode.NONE
        member = self.members.get(committer.member_id)
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if not member.is_classic and not knows_epochs:
            return ErrorCode.UNSUPPORTED_VERSION
        return epoch_error(member, committer.generation)

    def check_commit_in_transaction(self, committer: Committer) -> ErrorCode:
        """The same of a member that commits by its producer, in any version. An old epoch ends its transaction, not the
        producer.
        """
        error = self._check_commit(committer, knows_epochs=True)
        return ErrorCode.ILLEGAL_GENERATION if error is ErrorCode.STALE_MEMBER_EPOCH else error

    def expires_since(self, _: frozenset[str] | None) -> Callable[[OffsetCommitValue], int] | None:
        """From when the retention of an offset counts."""
        return lambda value: value.committed_at

    def check_fetch(self, member_id: str | None, epoch: int) -> ErrorCode:
        """Whether this member may read committed offsets."""
        if member_id is None and epoch < 0:
            return ErrorCode.NONE
        member = self.members.get(member_id or "")
        return ErrorCode.UNKNOWN_MEMBER_ID if member is None else epoch_error(member, epoch)


def _farewell(member: ConsumerMember, due: Due) -> str:
    who = f"member {member.member_id}"
    if member.metadata.instance_id is not None:
        who += f" (instance {member.metadata.instance_id})"
    if member.epoch == LEAVE_GROUP_STATIC_MEMBER_EPOCH:
        return f"{who} is out: it has left for a while and did not come back"
    return f"{who} is out: {due.value}"
