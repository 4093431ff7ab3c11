"""A consumer group: a machine without I/O and without a clock.

    member joins, leaves, changes its mind; topics change  ──▶  group epoch + 1
    next heartbeat of any member                           ──▶  target assignment of that epoch
    each member's own heartbeats                           ──▶  its steps towards the target (see `reconcile`)

The rules are those of Kafka's GroupMetadataManager. Members that still speak the classic protocol are
members like the others: their JoinGroup is a heartbeat in other words (`ClassicVoice`).
"""

from __future__ import annotations

import hashlib
import uuid
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from enum import Enum
from typing import Final, NamedTuple

from kio.schema.errors import ErrorCode

from handler.groups.consumer.assignors import ASSIGNORS, DEFAULT, Subscriber
from handler.groups.consumer.facts import Facts
from handler.groups.consumer.members import (
    BLANK,
    JOINING,
    LEAVING_FOR_A_WHILE,
    NOTHING,
    Beat,
    BeatAnswer,
    ConsumerMember,
    Downgrade,
    InvalidRegex,
    Refusal,
    Step,
    Topics,
    Write,
)  # fmt: skip
from handler.groups.consumer.reconcile import Situation, Target, reconcile
from handler.groups.deadlines import Deadlines
from handler.groups.machine import CONSUMER_PROTOCOL, Now, Token
from handler.groups.records import Key, Record, Value, write_value
from handler.groups.records.consumer import Assignment, RegexValue, SubscriptionValue

# A member that waits for partitions of others is asked to come again so much sooner.
WAITING_INTERVAL: Final = 500
WAITING_SECONDS: Final = 15.0  # then whoever has them takes its time
# As large as a record may be in Kafka, unless it is told otherwise (message.max.bytes).
MEMBER_BYTES: Final = 1_000_000
KEY_BYTES: Final = 32_767


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

    def __init__(self, group_id: str, topics: Topics, *, times: Times, max_size: int) -> None:
        self.group_id = group_id
        self.facts = Facts(group_id)
        self.effects: list[Write | Downgrade] = []
        self.downgrade: Downgrade | None = None  # to follow what is written
        self.deadlines: Deadlines[tuple[Due, str]] = Deadlines()
        self.is_informed = False  # what it knows of its topics is known in this term
        self.topics = topics
        self.max_size = max_size
        self._times = times
        self._waits_since: dict[str, float] = {}

    def load(self, stored: dict[Key, Value], now: Now) -> None:
        """Become what a term before has stored. All that is due begins anew."""
        self.facts.load(stored)
        for member in self.members.values():
            self.live(member, now)
            if member.current.state == Step.UNREVOKED and not member.is_classic:
                self.deadlines.set((Due.REVOCATION, member.member_id), now.clock + member.told.rebalance_timeout / 1000)
        self.flush()

    # --- what it is

    @property
    def members(self) -> Mapping[str, ConsumerMember]:
        return self.facts.members

    @property
    def is_empty(self) -> bool:
        return not self.members

    awaits_somebody = False

    @property
    def unused(self) -> bool:
        """Nothing of it is stored."""
        return not self.members and not self.epoch

    @property
    def epoch(self) -> int:
        return self.facts.epoch.epoch

    @property
    def state(self) -> State:
        if not self.members:
            return State.EMPTY
        if self.epoch > self.facts.target_epoch:
            return State.ASSIGNING
        return State.STABLE if all(map(self.is_reconciled, self.members.values())) else State.RECONCILING

    def is_reconciled(self, member: ConsumerMember) -> bool:
        return member.current.state == Step.STABLE and member.epoch == self.facts.target_epoch

    @property
    def assignor(self) -> str:
        """The one that most of its members ask for."""
        votes = Counter(member.told.assignor for member in self.members.values() if member.told.assignor is not None)
        return votes.most_common(1)[0][0] if votes else DEFAULT

    @property
    def subscribed_topics(self) -> frozenset[str]:
        names = {topic for member in self.members.values() for topic in member.told.topics}
        return frozenset(names.union(*(resolved.topics for resolved in self.facts.regexes.values())))

    @property
    def regexes(self) -> frozenset[str]:
        return frozenset(member.told.regex for member in self.members.values() if member.told.regex)

    @property
    def wake_at(self) -> float | None:
        return self.deadlines.earliest

    def take_effects(self) -> list[Write | Downgrade]:
        effects, self.effects = self.effects, []
        return effects

    def flush(self, to: Token = None, answer: object = None) -> None:
        """What was changed is to be stored, and then the answer told."""
        records = self.facts.take_records()
        if records or to is not None:
            self.effects.append(Write(records, to, answer))
        if self.downgrade is not None:
            self.effects.append(self.downgrade)
            self.downgrade = None

    def adopt_epoch(self, epoch: int) -> None:
        """That of a classic group which this one takes the place of."""
        self.facts.set_epoch(epoch, self._basis())
        self.is_informed = True

    def deletion(self) -> list[Record]:
        return self.facts.deletion()

    def die(self, error: ErrorCode) -> None:
        """Nobody waits for it: all its answers are told when they are stored, or can't be."""

    # --- ConsumerGroupHeartbeat

    def heartbeat(self, now: Now, request: Beat, to: Token) -> None:
        try:
            answer = self._heartbeat(now, request)
        except Refusal as refused:
            answer = BeatAnswer(refused.error, str(refused))
        self.flush(to, answer)

    def _heartbeat(self, now: Now, request: Beat) -> BeatAnswer:
        self.check_room(request.member_id)
        before = self._who_beats(request)
        told = _updated(None if before is None else before.told, request)
        self.check(request.member_id, told)
        member = self.enter(before, request.member_id, told)
        changed = self.subscribe(now, before, member)
        member = self.step(now, member, changed, request.owned)
        self.live(member, now)
        shown = before is not None and before.current.assigned == member.current.assigned and not request.is_full
        return BeatAnswer(
            ErrorCode.none, None, member.member_id, member.epoch, self._interval(now, member), None if shown else member.current.assigned
        )

    def _interval(self, now: Now, member: ConsumerMember) -> int:
        if member.current.state != Step.UNRELEASED:
            self._waits_since.pop(member.member_id, None)
            return self._times.interval
        waited = now.clock - self._waits_since.setdefault(member.member_id, now.clock)
        return min(WAITING_INTERVAL, self._times.interval) if waited < WAITING_SECONDS else self._times.interval

    def check_room(self, member_id: str) -> None:
        if len(self.members) >= self.max_size and member_id not in self.members:
            text = f"The consumer group has reached its maximum capacity of {self.max_size} members."
            raise Refusal(ErrorCode.group_max_size_reached, text)

    def _who_beats(self, request: Beat) -> ConsumerMember | None:
        """The member, None for one that is new, or of a static member the one whose place it takes."""
        if request.epoch == JOINING:
            known = self.static_member(request.instance_id) or self.members.get(request.member_id)
            if known is not None and known.told.instance_id is not None and known.member_id != request.member_id:
                self._check_released(known)
            return known
        known = self._known(request)
        _check_epoch(known, request)
        return known

    def _known(self, request: Beat) -> ConsumerMember:
        if request.instance_id is not None:
            return self.check_static(request.member_id, request.instance_id)
        known = self.members.get(request.member_id)
        if known is None:
            raise Refusal(ErrorCode.unknown_member_id, f"Member {request.member_id} is not a member of group {self.group_id}.")
        return known

    def _check_released(self, known: ConsumerMember) -> None:
        if not known.is_classic and known.epoch != LEAVING_FOR_A_WHILE:
            text = f"The instance id {known.told.instance_id} is owned by member {known.member_id}."
            raise Refusal(ErrorCode.unreleased_instance_id, text)

    def static_member(self, instance_id: str | None) -> ConsumerMember | None:
        member_id = None if instance_id is None else self.facts.static.get(instance_id)
        return None if member_id is None else self.members[member_id]

    def check_static(self, member_id: str, instance_id: str) -> ConsumerMember:
        known = self.static_member(instance_id)
        if known is None:
            raise Refusal(ErrorCode.unknown_member_id, f"Instance id {instance_id} is unknown.")
        if known.member_id != member_id:
            raise Refusal(ErrorCode.fenced_instance_id, f"Instance id {instance_id} belongs to member {known.member_id}.")
        return known

    def check(self, member_id: str, told: SubscriptionValue) -> None:
        """Whether a member may be what it says, before anything is changed by it."""
        if any(len(text.encode()) > KEY_BYTES for text in (member_id, told.instance_id or "", told.regex or "")):
            raise Refusal(ErrorCode.invalid_request, f"A member id, instance id or regular expression is longer than {KEY_BYTES} bytes.")
        if len(write_value(told)) > MEMBER_BYTES:
            raise Refusal(ErrorCode.unknown_server_error, f"What member {member_id} subscribes to takes more than {MEMBER_BYTES} bytes.")
        try:
            if told.regex:
                self.topics.matching(told.regex)
        except InvalidRegex as error:
            text = f"SubscribedTopicRegex `{told.regex}` is not a valid regular expression: {error}."
            raise Refusal(ErrorCode.invalid_regular_expression, text) from error

    def check_newcomer(self, request: Beat) -> None:
        self.check_room(request.member_id)
        self.check(request.member_id, _updated(None, request))

    # --- what an event does, step by step

    def enter(self, before: ConsumerMember | None, member_id: str, told: SubscriptionValue) -> ConsumerMember:
        """The member as it describes itself now, at its own place or at that of the instance it replaces."""
        if before is None:
            member = ConsumerMember(member_id, told, BLANK)
        elif before.member_id == member_id:
            member = replace(before, told=told)
        else:
            member = ConsumerMember(member_id, told, before.current._replace(epoch=0, previous_epoch=0))
            target = self.facts.targets.get(before.member_id, NOTHING)
            self._forget(before.member_id)
            self.facts.set_target(member_id, target)
        self.facts.put(member)
        return member

    def subscribe(self, now: Now, before: ConsumerMember | None, member: ConsumerMember) -> bool:
        """A new epoch if the subscription is a new one. True if it is."""
        old = None if before is None else (before.told.topics, before.told.regex or None)
        changed = old != (member.told.topics, member.told.regex or None)
        if changed:
            self._resolve(now)
        if changed or not self.epoch:
            self.facts.set_epoch(self.epoch + 1, self._basis())
        return changed

    def _resolve(self, now: Now) -> None:
        """Bring what the regular expressions match up to date."""
        wanted = self.regexes
        for regex in self.facts.regexes.keys() - wanted:
            self.facts.remove_regex(regex)
        for regex in sorted(wanted):
            known = self.facts.regexes.get(regex)
            matching = self._matching(regex)
            if known is None or known.topics != matching:
                self.facts.set_regex(regex, RegexValue(matching, 0, now.wall))

    def _matching(self, regex: str) -> frozenset[str]:
        try:
            return self.topics.matching(regex)
        except InvalidRegex:  # stored by a coordinator that could read it
            return frozenset()

    def _basis(self) -> int:
        """A hash of all that the group is assigned by: members, what they subscribe to, topics. Never 0."""
        topics = sorted((name, *topic) for name in self.subscribed_topics if (topic := self.topics.get(name)) is not None)
        subscriptions: dict[tuple[tuple[str, ...], str | None], int] = {}
        members = []
        for member in self._in_order():
            subscription = subscriptions.setdefault((member.told.topics, member.told.regex), len(subscriptions))
            members.append((member.told.instance_id or member.member_id, subscription))
        digest = hashlib.blake2b(repr((topics, list(subscriptions), members)).encode(), digest_size=8).digest()
        return int.from_bytes(digest, signed=True) or 1

    def step(self, now: Now, member: ConsumerMember, subscription_changed: bool, owned: Assignment | None) -> ConsumerMember:
        """The target, if there is none of this epoch yet, and the member's next step towards it."""
        if self.epoch > self.facts.target_epoch:
            self._assign()
        if self.is_reconciled(member) and not subscription_changed:
            return member
        target = Target(self.facts.target_epoch, self.facts.targets.get(member.member_id, NOTHING))
        situation = Situation(self._topic_ids(member).keys(), subscription_changed, owned, self.facts.owners.of)
        stepped = replace(member, current=reconcile(member, target, situation))
        if stepped != member:
            self.facts.put(stepped)
        if not stepped.is_classic:
            self._mind_revocation(now, member, stepped)
        return stepped

    def _mind_revocation(self, now: Now, before: ConsumerMember, member: ConsumerMember) -> None:
        due = (Due.REVOCATION, member.member_id)
        if member.current.state != Step.UNREVOKED:
            self.deadlines.cancel(due)
        elif member.current != before.current:
            self.deadlines.set(due, now.clock + member.told.rebalance_timeout / 1000)

    def _topic_ids(self, member: ConsumerMember) -> dict[uuid.UUID, str]:
        """The topics that a member is subscribed to and that are there, by the names under which it knows them."""
        names = set(member.told.topics)
        resolved = self.facts.regexes.get(member.told.regex or "")
        if resolved is not None:
            names |= resolved.topics
        return {topic.topic_id: name for name in sorted(names) if (topic := self.topics.get(name)) is not None}

    def _in_order(self) -> list[ConsumerMember]:
        """Static members by their instance, so that they get the same when they come back."""
        return sorted(self.members.values(), key=lambda one: (one.told.instance_id is None, one.told.instance_id or one.member_id))

    def _assign(self) -> None:
        counts = {topic.topic_id: topic.partitions for name in self.subscribed_topics if (topic := self.topics.get(name)) is not None}
        order = self._in_order()
        topic_ids = {(member.told.topics, member.told.regex): frozenset(self._topic_ids(member)) for member in _one_of_each(order)}
        members = {
            member.member_id: Subscriber(
                topic_ids[member.told.topics, member.told.regex], self.facts.targets.get(member.member_id, NOTHING)
            )
            for member in order
        }
        for member_id, assignment in ASSIGNORS[self.assignor](members, counts).items():
            self.facts.set_target(member_id, assignment)
        self.facts.set_target_epoch(self.epoch)

    def partitions_of(self, member: ConsumerMember) -> dict[str, frozenset[int]]:
        """What a member may consume, under the names by which it knows the topics."""
        return self._named(member, member.current.assigned)

    def held_by(self, member: ConsumerMember) -> dict[str, frozenset[int]]:
        """That, and what it has yet to revoke."""
        held = dict(member.current.assigned)
        for topic_id, indexes in member.current.revoking.items():
            held[topic_id] = held.get(topic_id, frozenset()) | indexes
        return self._named(member, held)

    def _named(self, member: ConsumerMember, assignment: Assignment) -> dict[str, frozenset[int]]:
        names = self._topic_ids(member)
        return {names[topic_id]: indexes for topic_id, indexes in assignment.items() if topic_id in names}

    # --- who goes

    def leave(self, request: Beat, to: Token) -> None:
        """By a heartbeat: for good, or a static member for a while."""
        try:
            known = self._known(request)
            if request.epoch == LEAVING_FOR_A_WHILE:
                self.deadlines.cancel((Due.REVOCATION, known.member_id))
                self.facts.put(replace(known, current=known.current._replace(epoch=LEAVING_FOR_A_WHILE, revoking=NOTHING)))
            else:
                self.remove([known])
            answer = BeatAnswer(ErrorCode.none, None, request.member_id, request.epoch)
        except Refusal as refused:
            answer = BeatAnswer(refused.error, str(refused))
        self.flush(to, answer)

    def remove(self, members: Iterable[ConsumerMember]) -> None:
        for member in members:
            self._forget(member.member_id)
        for regex in self.facts.regexes.keys() - self.regexes:
            self.facts.remove_regex(regex)
        self.facts.set_epoch(self.epoch + 1, self._basis())
        if self.members and all(member.is_classic for member in self.members.values()):
            self.downgrade = Downgrade(rebalance=True)

    def _forget(self, member_id: str) -> None:
        self.facts.remove(member_id)
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
        if late:
            self.remove([self.members[member_id] for member_id in late])
            self.flush()
        return [f"member {member_id} is out: {due.value}" for member_id, due in late.items()]

    def refresh(self, now: Now) -> None:
        """Look at the topics again: what they are now may ask for another assignment."""
        self.is_informed = True
        if not self.members:
            return
        self._resolve(now)
        basis = self._basis()
        if basis != self.facts.epoch.basis:
            self.facts.set_epoch(self.epoch + 1, basis)
        self.flush()

    def live(self, member: ConsumerMember, now: Now) -> None:
        session = self._times.session if member.told.classic is None else member.told.classic.session_timeout
        self.deadlines.set((Due.SESSION, member.member_id), now.clock + session / 1000)

    # --- offsets

    def check_commit(self, member_id: str, epoch: int, *, knows_epochs: bool) -> ErrorCode:
        """`knows_epochs`: the version of the request has a member epoch where there was a generation."""
        if epoch < 0 and not self.members:
            return ErrorCode.none
        member = self.members.get(member_id)
        if member is None:
            return ErrorCode.unknown_member_id
        if not member.is_classic and not knows_epochs:
            return ErrorCode.unsupported_version
        return _epoch_error(member, epoch)

    def check_fetch(self, member_id: str | None, epoch: int) -> ErrorCode:
        if member_id is None and epoch < 0:
            return ErrorCode.none
        member = self.members.get(member_id or "")
        return ErrorCode.unknown_member_id if member is None else _epoch_error(member, epoch)


def _one_of_each(members: Iterable[ConsumerMember]) -> Iterable[ConsumerMember]:
    """One member of each subscription."""
    return {(member.told.topics, member.told.regex): member for member in members}.values()


def _epoch_error(member: ConsumerMember, epoch: int) -> ErrorCode:
    if epoch == member.epoch:
        return ErrorCode.none
    return ErrorCode.illegal_generation if member.is_classic else ErrorCode.stale_member_epoch


def _check_epoch(member: ConsumerMember, request: Beat) -> None:
    if request.epoch == member.epoch:
        return
    # The answer that told it the new epoch may have been lost.
    owns_no_more = request.owned is not None and all(
        indexes <= member.current.assigned.get(topic_id, frozenset()) for topic_id, indexes in request.owned.items()
    )
    if request.epoch > member.epoch or request.epoch != member.current.previous_epoch or not owns_no_more:
        relation = "greater" if request.epoch > member.epoch else "smaller"
        raise Refusal(
            ErrorCode.fenced_member_epoch,
            f"The consumer group member has a {relation} member epoch ({request.epoch}) than the one known by the group coordinator "
            f"({member.epoch}). The member must abandon all its partitions and rejoin.",
        )


def _updated(before: SubscriptionValue | None, request: Beat) -> SubscriptionValue:
    known = before or SubscriptionValue(None, None, "", "", (), None, -1, None, None)
    return known._replace(
        instance_id=known.instance_id if request.instance_id is None else request.instance_id,
        rack_id=known.rack_id if request.rack_id is None else request.rack_id,
        client_id=request.client_id,
        client_host=request.client_host,
        topics=known.topics if request.topics is None else tuple(sorted(set(request.topics))),
        regex=known.regex if request.regex is None else request.regex or None,
        rebalance_timeout=known.rebalance_timeout if request.rebalance_timeout < 0 else request.rebalance_timeout,
        assignor=known.assignor if request.assignor is None else request.assignor,
        classic=None,
    )
