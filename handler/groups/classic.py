"""The classic group protocol: a machine without I/O and without a clock.

    Empty ──join──▶ PreparingRebalance ──all joined, or time──▶ CompletingRebalance ──leader's sync stored──▶ Stable
      ▲                 ▲      │ nobody left                          │ join, leave, expiry                     │
      └─────────────────┼──────┘                                      ▼                                         │
                        └────────────────────────────────────────────◀──────────────── join, leave, expiry ─────┘

The rules are those of Kafka's ClassicGroup and GroupMetadataManager, with one difference: a failed
write ends the coordinator's term, so there is no way back from what was sent to be stored.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from kio.schema.errors import ErrorCode

from handler.errors import ProtocolError
from handler.groups.members import (
    NOBODY,
    Assigned,
    Effect,
    Join,
    JoinAnswer,
    Leaving,
    Member,
    Now,
    Protocols,
    Replaced,
    Reply,
    State,
    Store,
    Sync,
    SyncAnswer,
    Token,
)
from handler.groups.records import GroupValue, MemberValue, subscribed_topics

# From which states a state may be entered.
TRANSITIONS: Final[dict[State, frozenset[State]]] = {
    State.PREPARING: frozenset({State.EMPTY, State.COMPLETING, State.STABLE}),
    State.COMPLETING: frozenset({State.PREPARING}),
    State.STABLE: frozenset({State.COMPLETING}),
    State.EMPTY: frozenset({State.PREPARING}),
    State.DEAD: frozenset(State),
}
# A JoinGroup of a member nobody knew yet is not waited for longer (GroupCoordinatorConfig.CLASSIC_GROUP_NEW_MEMBER_JOIN_TIMEOUT_MS).
NEW_MEMBER_SECONDS: Final = 300.0
CONSUMER_PROTOCOL: Final = "consumer"


class ClassicGroup:
    def __init__(self, group_id: str, now: Now, *, initial_delay: float, max_size: int) -> None:
        self.group_id = group_id
        self.state = State.EMPTY
        self.generation = 0
        self.protocol_type: str | None = None
        self.protocol: str | None = None
        self.leader: str | None = None
        self.state_since = now.wall
        self.members: dict[str, Member] = {}
        self.effects: list[Effect] = []
        self._initial_delay = initial_delay
        self._max_size = max_size
        self._was_empty = False  # before it prepared a rebalance
        self._static: dict[str, str] = {}
        self._pending: dict[str, float] = {}  # told to come again with the id they were given, until then
        self._pending_sync: set[str] = set()
        self._supported: dict[str, int] = {}
        self._newcomer = False  # somebody joined during the initial delay
        self._remaining = 0.0  # how much longer the initial delay may grow
        self._join_at: float | None = None
        self._sync_at: float | None = None
        self._session_at: float | None = None  # no session ends before

    # --- from and to the log

    @classmethod
    def load(cls, group_id: str, value: GroupValue, now: Now, *, initial_delay: float, max_size: int) -> ClassicGroup:
        group = cls(group_id, now, initial_delay=initial_delay, max_size=max_size)
        group.generation = value.generation
        group.protocol_type = value.protocol_type or None
        group.protocol = value.protocol
        group.state_since = value.state_since
        for item in value.members:
            member = Member(
                item.member_id, item.instance_id, item.client_id, item.client_host, item.session_timeout, item.rebalance_timeout,
                ((value.protocol or "", item.subscription),), item.assignment,
            )  # fmt: skip
            group._add(member)
            group._refresh(member, now)
        if value.members:
            group.state = State.STABLE
            group.leader = value.leader if value.leader in group.members else group.leader
        return group

    def value(self, assignments: dict[str, bytes]) -> GroupValue:
        members = tuple(
            MemberValue(
                member.member_id, member.instance_id, member.client_id, member.client_host, member.rebalance_timeout,
                member.session_timeout, member.metadata(self.protocol), assignments.get(member.member_id, b""),
            )
            for member in self.members.values()
        )  # fmt: skip
        return GroupValue(self.protocol_type or "", self.generation, self.protocol, self.leader, self.state_since, members)

    # --- what it is

    @property
    def unused(self) -> bool:
        """Nothing of it is stored and nobody is in it or about to come."""
        return self.state is State.EMPTY and self.generation == 0 and not self._pending

    @property
    def awaits_somebody(self) -> bool:
        """Whether a member was told to come again with the id that it was given."""
        return bool(self._pending)

    @property
    def subscribed_topics(self) -> frozenset[str] | None:
        """What its members are subscribed to; None where they do not say it as consumers do."""
        if self.protocol_type != CONSUMER_PROTOCOL:
            return None
        try:
            return frozenset(topic for member in self.members.values() for topic in subscribed_topics(member.metadata(self.protocol)))
        except ProtocolError:
            return None

    @property
    def wake_at(self) -> float | None:
        """When `tick` has something to do at the earliest."""
        return min((at for at in (self._join_at, self._sync_at, self._session_at) if at is not None), default=None)

    def take_effects(self) -> list[Effect]:
        effects, self.effects = self.effects, []
        return effects

    # --- JoinGroup

    def join(self, now: Now, request: Join, to: Token) -> None:
        if not self._accepts(request.member_id):
            self._remove(request.member_id)
            self._reply(to, JoinAnswer(ErrorCode.group_max_size_reached))
        elif not self._supports(request.protocol_type, request.protocols):
            self._reply(to, JoinAnswer(ErrorCode.inconsistent_group_protocol, request.member_id))
        elif request.member_id == NOBODY:
            self._join_new(now, request, to)
        elif request.member_id in self._pending and request.instance_id is not None:
            self._reply(to, JoinAnswer(ErrorCode.unknown_server_error, request.member_id))  # only dynamic members are told to come again
        elif request.member_id in self._pending:
            self._join_as(now, request, request.member_id, to)
        else:
            self._join_again(now, request, to)

    def _accepts(self, member_id: str) -> bool:
        """Whether there is room (group.max.size)."""
        known = self.members.get(member_id)
        match self.state:
            case State.EMPTY | State.DEAD:
                return True
            case State.PREPARING:  # those who wait are counted: the last ones to rejoin are turned away
                return (known is not None and known.joining is not None) or self._waiting_to_join < self._max_size
            case _:
                return known is not None or len(self.members) < self._max_size

    def _supports(self, protocol_type: str, protocols: Protocols) -> bool:
        if self.state is State.EMPTY:
            return bool(protocol_type) and bool(protocols)
        return self.protocol_type == protocol_type and any(self._supported.get(name, 0) == len(self.members) for name, _ in protocols)

    def _join_new(self, now: Now, request: Join, to: Token) -> None:
        if request.instance_id is not None:
            known = self._static.get(request.instance_id)
            if known is not None:
                self._replace_static(now, request, known, to)
            else:
                self._join_as(now, request, request.new_member_id, to)
        elif request.needs_member_id:
            self._pending[request.new_member_id] = self._due(now.clock + request.session_timeout / 1000)
            self._reply(to, JoinAnswer(ErrorCode.member_id_required, request.new_member_id))
        else:
            self._join_as(now, request, request.new_member_id, to)

    def _join_as(self, now: Now, request: Join, member_id: str, to: Token) -> None:
        member = Member(
            member_id, request.instance_id, request.client_id, request.client_host, request.session_timeout,
            request.rebalance_timeout, request.protocols, is_new=True, joining=to,
        )  # fmt: skip
        if not self.members:
            self.protocol_type = request.protocol_type
        self._newcomer = self._newcomer or (self.state is State.PREPARING and self._was_empty)
        self._add(member)
        # It has no id yet and can't send heartbeats, and its retries would be members of their own.
        member.expires_at = self._due(now.clock + NEW_MEMBER_SECONDS)
        self._rebalance_or_complete(now)

    def _join_again(self, now: Now, request: Join, to: Token) -> None:
        error = self._check(request.member_id, request.instance_id)
        if error is not ErrorCode.none:
            self._reply(to, JoinAnswer(error, request.member_id))
            return
        member = self.members[request.member_id]
        changed = member.protocols != request.protocols
        # The leader may know of changes that are not in its metadata, of topics say.
        if (
            self.state is State.PREPARING
            or (self.state is State.COMPLETING and changed)
            or (self.state is State.STABLE and (changed or self.leader == member.member_id))
        ):
            self._update(member, request, to)
            self._rebalance_or_complete(now)
        elif self.state in (State.COMPLETING, State.STABLE):  # it did not get the answer to its first
            self._reply(to, self._joined(member))
        else:
            self._reply(to, JoinAnswer(ErrorCode.unknown_member_id, request.member_id))

    def _replace_static(self, now: Now, request: Join, old_id: str, to: Token) -> None:
        """KIP-345: the same instance has come back; the one before it is fenced."""
        assert request.instance_id is not None
        member = self.members[old_id]
        self._reply(member.joining, JoinAnswer(ErrorCode.fenced_instance_id, old_id))
        self._reply(member.syncing, SyncAnswer(ErrorCode.fenced_instance_id))
        member.joining = member.syncing = None
        old_leader = self.leader
        # At its place: the order of members is what leaders assign by.
        self.members = {(request.new_member_id if key == old_id else key): value for key, value in self.members.items()}
        member.member_id = request.new_member_id
        self._static[request.instance_id] = request.new_member_id
        if old_id in self._pending_sync:
            self._pending_sync.remove(old_id)
            self._pending_sync.add(request.new_member_id)
        if self.leader == old_id:
            self.leader = request.new_member_id
        self._refresh(member, now)
        self._update(member, request, to)
        match self.state:
            case State.STABLE if self._select_protocol() == self.protocol:
                # Nothing changes for the others, but its new id must be stored before it is told.
                member.joining = None
                if request.may_skip_assignment:
                    answer = self._joined(member)._replace(skip_assignment=self.leader == member.member_id)
                else:
                    # It must not take itself for the leader and assign anew (KIP-814).
                    answer = self._joined(member)._replace(leader=old_leader, members=())
                assignments = {other.member_id: other.assignment for other in self.members.values()}
                self.effects.append(Store(assignments, Replaced(to, answer)))
            case State.STABLE:
                self._rebalance_or_complete(now)
            case State.COMPLETING:
                # The leader may be assigning to the old id.
                self._prepare(now)
            case _:
                self._maybe_complete(now)

    def _joined(self, member: Member) -> JoinAnswer:
        listed: tuple[tuple[str, str | None, bytes], ...] = ()
        if self.leader == member.member_id:
            listed = tuple((one.member_id, one.instance_id, one.metadata(self.protocol)) for one in self.members.values())
        return JoinAnswer(ErrorCode.none, member.member_id, self.generation, self.protocol_type, self.protocol, self.leader, False, listed)

    # --- the rebalance

    @property
    def _waiting_to_join(self) -> int:
        return sum(member.joining is not None for member in self.members.values())

    @property
    def _all_joined(self) -> bool:
        return not self._pending and all(member.joining is not None for member in self.members.values())

    @property
    def _rebalance_seconds(self) -> float:
        return max((member.rebalance_timeout for member in self.members.values()), default=0) / 1000

    def _rebalance_or_complete(self, now: Now) -> None:
        if self.state in TRANSITIONS[State.PREPARING]:
            self._prepare(now)
        else:
            self._maybe_complete(now)

    def _prepare(self, now: Now) -> None:
        if self.state is State.COMPLETING:
            self._propagate(now, ErrorCode.rebalance_in_progress)
        self._pending_sync.clear()
        self._sync_at = None
        self._was_empty = self.state is State.EMPTY
        self._become(State.PREPARING, now)
        if self._was_empty:
            # group.initial.rebalance.delay.ms: the others of a new group are about to come.
            self._newcomer = False
            self._remaining = max(self._rebalance_seconds - self._initial_delay, 0.0)
            self._join_at = now.clock + self._initial_delay
        elif self._all_joined:
            self._complete(now)
        else:
            self._join_at = now.clock + self._rebalance_seconds

    def _maybe_complete(self, now: Now) -> None:
        if self.state is State.PREPARING and not self._was_empty and self._all_joined:
            self._complete(now)

    def _join_is_due(self, now: Now) -> None:
        if self._was_empty and self._newcomer and self._remaining > 0:
            self._newcomer = False
            delay = min(self._initial_delay, self._remaining)
            self._remaining = max(self._remaining - self._initial_delay, 0.0)
            self._join_at = now.clock + delay
        else:
            self._complete(now)

    def _complete(self, now: Now) -> None:
        """The join phase ends: whoever has not come is out, but for static members."""
        self._join_at = None
        for member in list(self.members.values()):
            if member.joining is None and member.instance_id is None:
                self._remove(member.member_id)
        if self.members and not self._elect():
            self._join_at = now.clock + self._rebalance_seconds  # all that are left are static, and away
            return
        self.generation += 1
        self._pending_sync.clear()
        if not self.members:
            self.protocol = None
            self._become(State.EMPTY, now)
            self.effects.append(Store({}, None))
            return
        self.protocol = self._select_protocol()
        self._become(State.COMPLETING, now)
        for member in self.members.values():
            self._reply(member.joining, self._joined(member))
            member.joining = None
            member.is_new = False
            self._refresh(member, now)
            self._pending_sync.add(member.member_id)
        self._sync_at = now.clock + self._rebalance_seconds

    def _elect(self) -> bool:
        """The leader is one who has joined."""
        if self.leader is not None and self.members[self.leader].joining is not None:
            return True
        joined = next((member.member_id for member in self.members.values() if member.joining is not None), None)
        self.leader = joined if joined is not None else self.leader
        return joined is not None

    def _select_protocol(self) -> str:
        """The one that all support and most prefer."""
        candidates = {name for name, count in self._supported.items() if count == len(self.members)}
        votes: dict[str, int] = {}
        for member in self.members.values():
            name = member.vote(candidates)
            votes[name] = votes.get(name, 0) + 1
        return max(votes, key=lambda name: votes[name])

    # --- SyncGroup

    def sync(self, now: Now, request: Sync, to: Token) -> None:
        error = self._check_sync(request)
        if error is not ErrorCode.none:
            self._reply(to, SyncAnswer(error))
            return
        member = self.members[request.member_id]
        self._pending_sync.discard(member.member_id)
        if self.state is State.STABLE:
            self._reply(to, SyncAnswer(ErrorCode.none, self.protocol_type, self.protocol, member.assignment))
            return
        self._reply(member.syncing, SyncAnswer(ErrorCode.rebalance_in_progress))  # it asks again: the first asking ends
        member.syncing = to
        if self.leader == member.member_id:
            assignments = {member_id: request.assignments.get(member_id, b"") for member_id in self.members}
            self.effects.append(Store(assignments, Assigned(self.generation, assignments)))

    def _check_sync(self, request: Sync) -> ErrorCode:
        if self.state is State.EMPTY:
            return ErrorCode.unknown_member_id
        error = self._check(request.member_id, request.instance_id)
        if error is not ErrorCode.none:
            return error
        if request.generation != self.generation:
            return ErrorCode.illegal_generation
        if request.protocol_type not in (None, self.protocol_type) or request.protocol not in (None, self.protocol):
            return ErrorCode.inconsistent_group_protocol
        return ErrorCode.rebalance_in_progress if self.state is State.PREPARING else ErrorCode.none

    def stored(self, now: Now, then: Assigned | Replaced | None) -> None:
        """What was to be stored is stored."""
        if isinstance(then, Replaced):
            self._reply(then.to, then.answer)
        elif then is not None and self.state is State.COMPLETING and then.generation == self.generation:
            for member in self.members.values():
                member.assignment = then.assignments.get(member.member_id, b"")
            self._propagate(now, ErrorCode.none)
            self._become(State.STABLE, now)

    def too_large(self, now: Now, then: Assigned | Replaced | None) -> None:
        """What was to be stored can't be. Kafka says UNKNOWN_SERVER_ERROR to all that wait for it, and begins again."""
        if isinstance(then, Replaced):
            self._reply(then.to, then.answer._replace(error=ErrorCode.unknown_server_error))
        elif then is not None and self.state is State.COMPLETING:
            self._propagate(now, ErrorCode.unknown_server_error)
            self._prepare(now)

    def _propagate(self, now: Now, error: ErrorCode) -> None:
        for member in self.members.values():
            if error is not ErrorCode.none:
                member.assignment = b""
                answer = SyncAnswer(error)
            else:
                answer = SyncAnswer(error, self.protocol_type, self.protocol, member.assignment)
            if member.syncing is not None:
                self._reply(member.syncing, answer)
                member.syncing = None
                self._refresh(member, now)

    # --- Heartbeat, LeaveGroup, commits

    def heartbeat(self, now: Now, member_id: str, instance_id: str | None, generation: int) -> ErrorCode:
        error = self._check(member_id, instance_id)
        if error is not ErrorCode.none:
            return error
        if generation != self.generation:
            return ErrorCode.illegal_generation
        self._refresh(self.members[member_id], now)
        return ErrorCode.rebalance_in_progress if self.state is State.PREPARING else ErrorCode.none

    def leave(self, now: Now, leaving: Iterable[Leaving]) -> list[ErrorCode]:
        errors = [self._leave_one(one) for one in leaving]
        if ErrorCode.none in errors:
            if self.state in (State.STABLE, State.COMPLETING):
                self._prepare(now)
            else:
                self._maybe_complete(now)
        return errors

    def _leave_one(self, one: Leaving) -> ErrorCode:
        member_id = one.member_id
        if member_id == NOBODY:  # an administrator removes a static member by its instance
            member_id = self._static.get(one.instance_id or "", NOBODY)
            if member_id == NOBODY:
                return ErrorCode.unknown_member_id
        elif member_id not in self._pending:
            error = self._check(member_id, one.instance_id)
            if error is not ErrorCode.none:
                return error
        self._remove(member_id)
        return ErrorCode.none

    def check_commit(self, now: Now, member_id: str, instance_id: str | None, generation: int) -> ErrorCode:
        """Whether this member may commit offsets now. One that may is alive."""
        if generation < 0 and self.state is State.EMPTY:
            return ErrorCode.none
        if generation < 0 and member_id == NOBODY and instance_id is None:
            return ErrorCode.unknown_member_id  # not a member, and the group has some
        error = self._check(member_id, instance_id)
        if error is not ErrorCode.none:
            return error
        if generation != self.generation:
            return ErrorCode.illegal_generation
        if self.state is State.COMPLETING:
            return ErrorCode.rebalance_in_progress
        self._refresh(self.members[member_id], now)
        return ErrorCode.none

    def die(self, error: ErrorCode) -> None:
        """The group is deleted, or its coordinator's term is over: all that wait are told."""
        for member in self.members.values():
            self._reply(member.joining, JoinAnswer(error, member.member_id))
            self._reply(member.syncing, SyncAnswer(error))
            member.joining = member.syncing = None
        self._join_at = self._sync_at = self._session_at = None
        self.state = State.DEAD

    # --- time

    def tick(self, now: Now) -> None:
        if self._session_at is not None and self._session_at <= now.clock:
            self._end_sessions(now)
        if self._join_at is not None and self._join_at <= now.clock:
            self._join_is_due(now)
        if self._sync_at is not None and self._sync_at <= now.clock:
            self._sync_is_due(now)

    def _end_sessions(self, now: Now) -> None:
        never_came = [member_id for member_id, until in self._pending.items() if until <= now.clock]
        lost = [one.member_id for one in self.members.values() if one.expires_at <= now.clock and not one.excused]
        for member_id in (*never_came, *lost):
            self._remove(member_id)
        alive = [one.expires_at for one in self.members.values() if not one.excused]
        self._session_at = min((*self._pending.values(), *alive), default=None)
        if lost and self.state in (State.STABLE, State.COMPLETING):
            self._prepare(now)
        elif lost or never_came:
            self._maybe_complete(now)

    def _sync_is_due(self, now: Now) -> None:
        """Members that took their place and never asked for their part are out."""
        self._sync_at = None
        if self.state in (State.COMPLETING, State.STABLE) and self._pending_sync:
            for member_id in list(self._pending_sync):
                self._remove(member_id)
            self._prepare(now)

    def _refresh(self, member: Member, now: Now) -> None:
        member.expires_at = self._due(now.clock + member.session_timeout / 1000)

    def _due(self, at: float) -> float:
        self._session_at = at if self._session_at is None else min(self._session_at, at)
        return at

    # --- members

    def _check(self, member_id: str, instance_id: str | None) -> ErrorCode:
        if instance_id is not None:
            known = self._static.get(instance_id)
            if known is None:
                return ErrorCode.unknown_member_id
            if known != member_id:
                return ErrorCode.fenced_instance_id
        return ErrorCode.none if member_id in self.members else ErrorCode.unknown_member_id

    def _add(self, member: Member) -> None:
        self.members[member.member_id] = member
        self._pending.pop(member.member_id, None)
        if member.instance_id is not None:
            self._static[member.instance_id] = member.member_id
        if self.leader is None:
            self.leader = member.member_id
        self._count(member.protocols, 1)

    def _update(self, member: Member, request: Join, to: Token) -> None:
        self._count(member.protocols, -1)
        self._count(request.protocols, 1)
        member.protocols = request.protocols
        member.session_timeout = request.session_timeout
        member.rebalance_timeout = request.rebalance_timeout
        self._reply(member.joining, JoinAnswer(ErrorCode.rebalance_in_progress, member.member_id))
        member.joining = to

    def _remove(self, member_id: str) -> None:
        self._pending.pop(member_id, None)
        self._pending_sync.discard(member_id)
        member = self.members.pop(member_id, None)
        if member is None:
            return
        self._count(member.protocols, -1)
        if member.instance_id is not None:
            self._static.pop(member.instance_id, None)
        self._reply(member.joining, JoinAnswer(ErrorCode.unknown_member_id))
        self._reply(member.syncing, SyncAnswer(ErrorCode.unknown_member_id))
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)

    def _count(self, protocols: Protocols, change: int) -> None:
        for name in {name for name, _ in protocols}:
            self._supported[name] = self._supported.get(name, 0) + change
            if not self._supported[name]:
                del self._supported[name]

    # --- small things

    def _become(self, state: State, now: Now) -> None:
        assert self.state in TRANSITIONS[state], f"group {self.group_id}: {self.state} → {state}"
        self.state = state
        self.state_since = now.wall

    def _reply(self, to: Token, answer: JoinAnswer | SyncAnswer) -> None:
        if to is not None:
            self.effects.append(Reply(to, answer))
