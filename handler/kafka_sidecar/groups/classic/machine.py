"""The classic group protocol: a machine without I/O and without a clock.

    Empty ──join──▶ PreparingRebalance ──all joined, or time──▶ CompletingRebalance ──leader's sync stored──▶ Stable
      ▲                 ▲      │ nobody left                          │ join, leave, expiry                     │
      └─────────────────┼──────┘                                      ▼                                         │
                        └────────────────────────────────────────────◀──────────────── join, leave, expiry ─────┘

The rules are those of Kafka's ClassicGroup and GroupMetadataManager, with one difference: a failed
write ends the coordinator's term, so there is no way back from what was sent to be stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from kafka_sidecar.errors import ProtocolError
from kafka_sidecar.groups.classic.group_record import stored_members
from kafka_sidecar.groups.classic.members import (
    AnswerStaticMember,
    Effect,
    FinishSync,
    JoinResult,
    Member,
    MemberIdentity,
    MemberJoin,
    MemberSync,
    ReplacedMember,
    StoreGroup,
    SyncResult,
)
from kafka_sidecar.groups.classic.roster import Roster
from kafka_sidecar.groups.classic.state import TRANSITIONS, State
from kafka_sidecar.groups.classic.window import JoinWindow
from kafka_sidecar.groups.records import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitValue,
    Record,
    subscribed_topics,
)
from kafka_sidecar.groups.vocabulary import CONSUMER_PROTOCOL, UNKNOWN_MEMBER_ID, Committer, Now, Reply, ResponseFuture
from kafka_sidecar.loop.states import next_state
from kafka_sidecar.wire.error_code import ErrorCode


class ClassicGroup:
    def __init__(self, group_id: str, now: Now, *, initial_delay: float, max_size: int) -> None:
        self.group_id = group_id
        self.state = State.EMPTY
        self.generation = 0
        self.protocol_type: str | None = None
        self.protocol: str | None = None
        self.leader: str | None = None
        self.state_since = now.wall
        self.effects: list[Effect] = []
        self.max_size = max_size
        self.roster = Roster()
        self.window = JoinWindow(initial_delay)
        self.pending_sync: set[str] = set()
        self._sync_at: float | None = None
        self._session_at: float | None = None  # no session time-out of a member expires before this time

    # --- from the log

    def load(self, value: GroupMetadataValue, now: Now) -> None:
        """Become what a term before has stored."""
        self.generation = value.generation
        self.protocol_type = value.protocol_type or None
        self.protocol = value.protocol
        self.state_since = value.state_since
        for member in stored_members(value):
            self.add(member)
            self.reset_session_timeout(member, now)
        if value.members:
            self.state = State.STABLE
            self.leader = value.leader if value.leader in self.members else self.leader
            # A downgraded consumer group, whose members have not rejoined yet.
            was_consumer_group = value.leader is None
            if (
                was_consumer_group or len(self.members) > self.max_size
            ):  # group.max.size was lowered (GroupMetadataManager.onLoaded)
                self.prepare_rebalance(now)

    def take_members(self, members: Iterable[Member], generation: int, now: Now) -> None:
        """Go on as what a consumer group was, with its members and what they were assigned."""
        self.generation = generation
        self.protocol_type = CONSUMER_PROTOCOL
        for member in members:
            self.add(member)
            self.reset_session_timeout(member, now)
        self.protocol = self.roster.select_protocol()
        self.state, self.state_since = State.STABLE, now.wall

    def rebalance(self, now: Now) -> None:
        """Have the members join again."""
        if self.state is not State.PREPARING:
            self.prepare_rebalance(now)

    # --- what it is

    @property
    def members(self) -> dict[str, Member]:
        return self.roster.members

    @property
    def is_empty(self) -> bool:
        return self.state is State.EMPTY

    def deletion(self) -> list[Record]:
        return [Record(GroupMetadataKey(self.group_id), None)] if self.generation > 0 else []

    @property
    def unused(self) -> bool:
        """Nothing of it is stored and nobody is in it or about to come."""
        return self.state is State.EMPTY and self.generation == 0 and not self.roster.pending

    @property
    def awaits_somebody(self) -> bool:
        """Whether a member was asked to join again with the id that it was given."""
        return bool(self.roster.pending)

    @property
    def subscribed_topics(self) -> frozenset[str] | None:
        """The topics of its members; None where they do not name them as consumers do."""
        if self.protocol_type != CONSUMER_PROTOCOL:
            return None
        try:
            return frozenset(
                topic for member in self.members.values() for topic in subscribed_topics(member.metadata(self.protocol))
            )
        except ProtocolError:
            return None

    @property
    def wake_at(self) -> float | None:
        """When `tick` has something to do at the earliest."""
        return min(
            (at for at in (self.window.ends_at, self._sync_at, self._session_at) if at is not None), default=None
        )

    def take_effects(self) -> list[Effect]:
        effects, self.effects = self.effects, []
        return effects

    def join_response(self, member: Member) -> JoinResult:
        listed: tuple[tuple[str, str | None, bytes], ...] = ()
        if self.leader == member.member_id:
            listed = tuple(
                (one.member_id, one.instance_id, one.metadata(self.protocol)) for one in self.members.values()
            )
        return JoinResult(
            ErrorCode.NONE,
            member.member_id,
            self.generation,
            self.protocol_type,
            self.protocol,
            self.leader,
            False,
            listed,
        )

    # --- the rebalance

    def rebalance_or_complete(self, now: Now) -> None:
        if State.PREPARING in TRANSITIONS[self.state]:
            self.prepare_rebalance(now)
        else:
            self.maybe_complete(now)

    def prepare_rebalance(self, now: Now) -> None:
        if self.state is State.COMPLETING:
            self._propagate_assignment(now, ErrorCode.REBALANCE_IN_PROGRESS)
        self.pending_sync.clear()
        self._sync_at = None
        was_empty = self.state is State.EMPTY
        self._become(State.PREPARING, now)
        if was_empty:
            self.window.open_initial(now.clock, self.roster.rebalance_seconds)
        elif self.roster.all_joined:
            self._complete_join(now)
        else:
            self.window.open(now.clock, self.roster.rebalance_seconds)

    def maybe_complete(self, now: Now) -> None:
        if self.state is State.PREPARING and not self.window.is_initial and self.roster.all_joined:
            self._complete_join(now)

    def _complete_join(self, now: Now) -> None:
        """The join phase ends: members that have not joined are out, but for static ones."""
        self.window.close()
        for member in list(self.members.values()):
            if member.awaiting_join is None and member.instance_id is None:
                self.remove(member.member_id)
        if self.members and not self._elect():
            # Only static members are left, and none of them has rejoined.
            self.window.open(now.clock, self.roster.rebalance_seconds)
            return
        self.generation += 1
        self.pending_sync.clear()
        if not self.members:
            self.protocol = None
            self._become(State.EMPTY, now)
            self.effects.append(StoreGroup({}, None))
            return
        self.protocol = self.roster.select_protocol()
        self._become(State.COMPLETING, now)
        for member in self.members.values():
            self.reply(member.awaiting_join, self.join_response(member))
            member.awaiting_join = None
            member.is_new = False
            self.reset_session_timeout(member, now)
            self.pending_sync.add(member.member_id)
        self._sync_at = now.clock + self.roster.rebalance_seconds

    def _elect(self) -> bool:
        """The leader is one that joined."""
        if self.leader is not None and self.members[self.leader].awaiting_join is not None:
            return True
        joined = next((member.member_id for member in self.members.values() if member.awaiting_join is not None), None)
        self.leader = joined if joined is not None else self.leader
        return joined is not None

    # --- SyncGroup

    def sync(self, now: Now, request: MemberSync, response_future: ResponseFuture) -> None:
        error = self._check_sync(request)
        if error is not ErrorCode.NONE:
            self.reply(response_future, SyncResult(error))
            return
        member = self.members[request.member_id]
        self.pending_sync.discard(member.member_id)
        if self.state is State.STABLE:
            self.reply(
                response_future, SyncResult(ErrorCode.NONE, self.protocol_type, self.protocol, member.assignment)
            )
            self.reset_session_timeout(member, now)
            return
        self.reply(
            member.awaiting_sync, SyncResult(ErrorCode.REBALANCE_IN_PROGRESS)
        )  # the member has sent SyncGroup again, which ends its earlier request
        member.awaiting_sync = response_future
        if self.leader == member.member_id:
            assignments = {member_id: request.assignments.get(member_id, b"") for member_id in self.members}
            self.effects.append(StoreGroup(assignments, FinishSync(self.generation, assignments)))

    def _check_sync(self, request: MemberSync) -> ErrorCode:
        if self.state is State.EMPTY:
            return ErrorCode.UNKNOWN_MEMBER_ID
        error = self.roster.check(request.member_id, request.instance_id)
        if error is not ErrorCode.NONE:
            return error
        if request.generation != self.generation:
            return ErrorCode.ILLEGAL_GENERATION
        if request.protocol_type not in (None, self.protocol_type) or request.protocol not in (None, self.protocol):
            return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        return ErrorCode.REBALANCE_IN_PROGRESS if self.state is State.PREPARING else ErrorCode.NONE

    def on_stored(self, now: Now, then: FinishSync | AnswerStaticMember | None) -> None:
        """The group is stored as it was when that was asked for."""
        if isinstance(then, AnswerStaticMember):
            self.reply(then.response_future, then.answer)
        elif then is not None and self.state is State.COMPLETING and then.generation == self.generation:
            for member in self.members.values():
                member.assignment = then.assignments.get(member.member_id, b"")
            self._propagate_assignment(now, ErrorCode.NONE)
            self._become(State.STABLE, now)

    def too_large(self, now: Now, then: FinishSync | AnswerStaticMember | None) -> None:
        """The group can't be stored. Kafka answers UNKNOWN_SERVER_ERROR to all that wait for it, and begins again."""
        if isinstance(then, AnswerStaticMember):
            self._restore_replaced(then.answer.member_id, then.replaced, now)
            self.reply(then.response_future, JoinResult(ErrorCode.UNKNOWN_SERVER_ERROR))
        elif then is not None and self.state is State.COMPLETING:
            self._propagate_assignment(now, ErrorCode.UNKNOWN_SERVER_ERROR)
            self.prepare_rebalance(now)

    def _restore_replaced(self, new_id: str, replaced: ReplacedMember, now: Now) -> None:
        """The log knows the member that was there before, so it is there again."""
        member = self.members[new_id]
        self.roster.rename(member, replaced.member_id)
        self.roster.set_protocols(member, replaced.protocols)
        member.session_timeout, member.rebalance_timeout = replaced.session_timeout, replaced.rebalance_timeout
        if replaced.is_leader:
            self.leader = replaced.member_id
        self.reset_session_timeout(member, now)

    def _propagate_assignment(self, now: Now, error: ErrorCode) -> None:
        for member in self.members.values():
            if error is not ErrorCode.NONE:
                member.assignment = b""
                answer = SyncResult(error)
            else:
                answer = SyncResult(error, self.protocol_type, self.protocol, member.assignment)
            if member.awaiting_sync is not None:
                self.reply(member.awaiting_sync, answer)
                member.awaiting_sync = None
                self.reset_session_timeout(member, now)

    # --- Heartbeat, LeaveGroup, commits

    def heartbeat(self, now: Now, member_id: str, instance_id: str | None, generation: int) -> ErrorCode:
        error = self.roster.check(member_id, instance_id)
        if error is not ErrorCode.NONE:
            return error
        if generation != self.generation:
            return ErrorCode.ILLEGAL_GENERATION
        self.reset_session_timeout(self.members[member_id], now)
        return ErrorCode.REBALANCE_IN_PROGRESS if self.state is State.PREPARING else ErrorCode.NONE

    def leave(self, now: Now, leaving: Iterable[MemberIdentity]) -> list[ErrorCode]:
        errors = [self._leave_one(one) for one in leaving]
        if ErrorCode.NONE in errors:
            if self.state in (State.STABLE, State.COMPLETING):
                self.prepare_rebalance(now)
            else:
                self.maybe_complete(now)
        return errors

    def _leave_one(self, one: MemberIdentity) -> ErrorCode:
        member_id = one.member_id
        if member_id == UNKNOWN_MEMBER_ID:  # an administrator removes a static member by its instance
            static = self.roster.static(one.instance_id or "")
            if static is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            member_id = static.member_id
        elif member_id not in self.roster.pending:
            error = self.roster.check(member_id, one.instance_id)
            if error is not ErrorCode.NONE:
                return error
        self.remove(member_id)
        return ErrorCode.NONE

    def check_commit(self, now: Now, committer: Committer) -> ErrorCode:
        """Whether this member may commit offsets now. One that may is alive."""
        if committer.generation < 0 and self.state is State.EMPTY:
            return ErrorCode.NONE
        if not committer.is_member:
            return ErrorCode.UNKNOWN_MEMBER_ID  # a commit without a member is allowed only in an empty group
        error = self.check_commit_in_transaction(committer)
        if error is not ErrorCode.NONE:
            return error
        if self.state is State.COMPLETING:
            return ErrorCode.REBALANCE_IN_PROGRESS
        self.reset_session_timeout(self.members[committer.member_id], now)
        return ErrorCode.NONE

    def check_commit_in_transaction(self, committer: Committer) -> ErrorCode:
        """The same of a member that commits by its producer, which does not keep its session. A rebalance does not end
        a transaction.
        """
        if committer.generation < 0 and self.state is State.EMPTY:
            return ErrorCode.NONE
        error = self.roster.check(committer.member_id, committer.instance_id)
        return (
            ErrorCode.ILLEGAL_GENERATION
            if error is ErrorCode.NONE and committer.generation != self.generation
            else error
        )

    def check_fetch(self, _: str | None, __: int) -> ErrorCode:
        """Whether this member may read committed offsets. In a classic group everybody may."""
        return ErrorCode.NONE

    def expires_since(self, subscribed: frozenset[str] | None) -> Callable[[OffsetCommitValue], int] | None:
        """From when the retention of an offset counts; None while none of the group's may expire."""
        if self.protocol_type is None:  # the group never had members: its offsets are committed without membership
            return lambda value: value.committed_at
        if self.state is State.EMPTY:
            state_since = self.state_since
            return lambda value: state_since if state_since >= 0 else value.committed_at
        if self.protocol_type == CONSUMER_PROTOCOL and self.state is State.STABLE and subscribed is not None:
            return lambda value: value.committed_at
        return None

    def end_for_upgrade(self) -> None:
        """A consumer group takes its place: members that wait are to join that."""
        self.die(ErrorCode.REBALANCE_IN_PROGRESS)

    def die(self, error: ErrorCode) -> None:
        """The group is deleted, or its coordinator's term is over: all that wait are answered."""
        for member in self.members.values():
            self.reply(member.awaiting_join, JoinResult(error, member.member_id))
            self.reply(member.awaiting_sync, SyncResult(error))
            member.awaiting_join = member.awaiting_sync = None
        self.window.close()
        self._sync_at = self._session_at = None
        self.state = next_state(TRANSITIONS, self.state, State.DEAD)

    # --- time

    def tick(self, now: Now) -> list[str]:
        """Do what is due. Returns a sentence for each member that is out, and why."""
        said: list[str] = []
        if self._session_at is not None and self._session_at <= now.clock:
            said += self._end_sessions(now)
        if self.window.is_due(now.clock) and not self.window.extend(now.clock):
            self._complete_join(now)
        if self._sync_at is not None and self._sync_at <= now.clock:
            said += self._sync_is_due(now)
        return said

    def _end_sessions(self, now: Now) -> list[str]:
        never_came = [member_id for member_id, until in self.roster.pending.items() if until <= now.clock]
        lost = [
            one.member_id for one in self.members.values() if one.expires_at <= now.clock and not one.waits_for_answer
        ]
        for member_id in (*never_came, *lost):
            self.remove(member_id)
        alive = [one.expires_at for one in self.members.values() if not one.waits_for_answer]
        self._session_at = min((*self.roster.pending.values(), *alive), default=None)
        if lost and self.state in (State.STABLE, State.COMPLETING):
            self.prepare_rebalance(now)
        elif lost or never_came:
            self.maybe_complete(now)
        return [f"member {member_id} is out: its session has ended" for member_id in lost]

    def _sync_is_due(self, now: Now) -> list[str]:
        """Members that joined and never sent SyncGroup are out."""
        self._sync_at = None
        if self.state not in (State.COMPLETING, State.STABLE) or not self.pending_sync:
            return []
        late = list(self.pending_sync)
        for member_id in late:
            self.remove(member_id)
        self.prepare_rebalance(now)
        return [f"member {member_id} is out: it did not ask for its partitions in time" for member_id in late]

    def reset_session_timeout(self, member: Member, now: Now) -> None:
        member.expires_at = self.wake_no_later_than(now.clock + member.session_timeout / 1000)

    def wake_no_later_than(self, at: float) -> float:
        self._session_at = at if self._session_at is None else min(self._session_at, at)
        return at

    # --- members

    def add(self, member: Member) -> None:
        self.roster.add(member)
        if self.leader is None:
            self.leader = member.member_id

    def update(self, member: Member, request: MemberJoin) -> None:
        self.roster.set_protocols(member, request.protocols)
        member.session_timeout = request.session_timeout
        member.rebalance_timeout = request.rebalance_timeout

    def await_join(self, member: Member, response_future: ResponseFuture) -> None:
        """This JoinGroup waits for the rebalance. An earlier one of the member that still waits gets an error, and
        comes again.
        """
        self.reply(member.awaiting_join, JoinResult(ErrorCode.REBALANCE_IN_PROGRESS, member.member_id))
        member.awaiting_join = response_future

    def remove(self, member_id: str) -> None:
        self.pending_sync.discard(member_id)
        member = self.roster.remove(member_id)
        if member is None:
            return
        self.reply(member.awaiting_join, JoinResult(ErrorCode.UNKNOWN_MEMBER_ID))
        self.reply(member.awaiting_sync, SyncResult(ErrorCode.UNKNOWN_MEMBER_ID))
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)

    # --- small things

    def _become(self, state: State, now: Now) -> None:
        self.state = next_state(TRANSITIONS, self.state, state)
        self.state_since = now.wall

    def reply(self, response_future: ResponseFuture, answer: JoinResult | SyncResult) -> None:
        if response_future is not None:
            self.effects.append(Reply(response_future, answer))
