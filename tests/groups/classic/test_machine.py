"""The classic protocol: what Kafka does step by step, and a machine of simulated members against the rules."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from kafka_sidecar.groups.classic import joining
from kafka_sidecar.groups.classic.group_record import group_value
from kafka_sidecar.groups.classic.joining import NEW_MEMBER_SECONDS
from kafka_sidecar.groups.classic.machine import ClassicGroup
from kafka_sidecar.groups.classic.members import (
    JoinResult,
    MemberIdentity,
    MemberJoin,
    MemberSync,
    Protocols,
    StoreGroup,
    SyncResult,
)
from kafka_sidecar.groups.classic.state import State
from kafka_sidecar.groups.vocabulary import Committer, Now, Reply
from kafka_sidecar.wire.error_code import ErrorCode

NONE = ErrorCode.NONE
DELAY = 3.0
SESSION = 10.0
REBALANCE = 60.0
RANGE: Protocols = (("range", b"r"),)


@dataclass
class Bench:
    """A group, a clock, and everything it has answered and stored."""

    group: ClassicGroup = field(init=False)
    clock: float = 1_000.0
    answers: dict[str, JoinResult | SyncResult] = field(default_factory=dict)
    writes: list[StoreGroup] = field(default_factory=list)
    _ids: itertools.count[int] = field(default_factory=lambda: itertools.count(1))
    max_size: int = 100

    def __post_init__(self) -> None:
        self.group = ClassicGroup("g", self.now, initial_delay=DELAY, max_size=self.max_size)

    @property
    def now(self) -> Now:
        return Now(self.clock, int(self.clock * 1000))

    def run(self, *, store: bool = True) -> None:
        for effect in self.group.take_effects():
            if isinstance(effect, Reply):
                assert effect.response_future not in self.answers, f"{effect.response_future} was answered twice"
                self.answers[effect.response_future] = effect.answer
            else:
                self.writes.append(effect)
                if store:
                    self.group.on_stored(self.now, effect.then)
                    self.run()

    def pass_time(self, seconds: float) -> None:
        until = self.clock + seconds
        while (at := self.group.wake_at) is not None and at <= until:
            self.clock = max(self.clock, at)
            self.group.tick(self.now)
            self.run()
        self.clock = until

    def join(
        self,
        to: str,
        member_id: str = "",
        *,
        instance: str | None = None,
        protocols: Protocols = RANGE,
        known: bool = False,
    ) -> None:
        """`known`: as clients do that have been given an id before they join."""
        new = f"{instance or 'm'}-{next(self._ids)}"
        request = MemberJoin(
            member_id,
            instance,
            "client",
            "/127.0.0.1",
            int(SESSION * 1000),
            int(REBALANCE * 1000),
            "consumer",
            protocols,
            known,
            True,
            new,
        )
        joining.join(self.group, self.now, request, to)
        self.run()

    def sync(
        self, to: str, member_id: str, assignments: dict[str, bytes] | None = None, *, generation: int | None = None
    ) -> None:
        generation = self.group.generation if generation is None else generation
        self.group.sync(self.now, MemberSync(member_id, None, generation, None, None, assignments or {}), to)
        self.run()

    def joined(self, to: str) -> JoinResult:
        answer = self.answers[to]
        assert isinstance(answer, JoinResult)
        return answer

    def synced(self, to: str) -> SyncResult:
        answer = self.answers[to]
        assert isinstance(answer, SyncResult)
        return answer

    def heartbeat(self, member_id: str) -> ErrorCode:
        return self.group.heartbeat(self.now, member_id, None, self.group.generation)


@pytest.fixture
def stable() -> Bench:
    """Two members, each with its part."""
    bench = Bench()
    bench.join("a")
    bench.join("b")
    bench.pass_time(DELAY * 2)
    first, second = bench.joined("a"), bench.joined("b")
    assert first.leader == first.member_id
    bench.sync("sb", second.member_id)
    bench.sync("sa", first.member_id, {first.member_id: b"A", second.member_id: b"B"})
    assert bench.group.state is State.STABLE
    return bench


def test_a_new_group_waits_for_more_members_and_then_gives_everyone_its_part(stable: Bench) -> None:
    first, second = stable.joined("a"), stable.joined("b")
    assert (first.generation, second.generation) == (1, 1)
    assert [member for member, _, _ in first.members] == [first.member_id, second.member_id]
    assert second.members == ()
    assert stable.synced("sa") == SyncResult(NONE, "consumer", "range", b"A")
    assert stable.synced("sb") == SyncResult(NONE, "consumer", "range", b"B")


def test_the_initial_delay_grows_with_each_newcomer_but_not_beyond_the_rebalance_timeout() -> None:
    bench = Bench()
    bench.join("0")
    for number in range(1, 40):
        bench.pass_time(DELAY * 0.9)
        bench.join(str(number))
        if "0" in bench.answers:
            break
    assert bench.clock - 1_000 == pytest.approx(REBALANCE, abs=DELAY)


def test_who_comes_without_an_id_is_given_one_and_comes_again() -> None:
    bench = Bench()
    bench.join("first", known=True)
    given = bench.joined("first")
    assert given.error is ErrorCode.MEMBER_ID_REQUIRED
    bench.join("second", given.member_id, known=True)
    bench.pass_time(DELAY)
    assert bench.joined("second").member_id == given.member_id


def test_who_was_given_an_id_and_never_comes_holds_nobody_up() -> None:
    bench = Bench()
    bench.join("gone", known=True)
    bench.join("here")
    bench.pass_time(SESSION + DELAY)
    assert bench.joined("here").error is NONE


def test_nobody_has_a_part_before_it_is_stored() -> None:
    bench = Bench()
    bench.join("a")
    bench.pass_time(DELAY)
    member = bench.joined("a").member_id
    bench.group.sync(bench.now, MemberSync(member, None, 1, None, None, {member: b"A"}), "s")
    bench.run(store=False)
    assert "s" not in bench.answers
    assert bench.group.state is State.COMPLETING
    bench.group.on_stored(bench.now, bench.writes[-1].then)
    bench.run()
    assert bench.synced("s").assignment == b"A"


def test_a_part_that_was_stored_for_an_older_generation_is_nobody_s() -> None:
    bench = Bench()
    bench.join("a")
    bench.pass_time(DELAY)
    member = bench.joined("a").member_id
    bench.group.sync(bench.now, MemberSync(member, None, 1, None, None, {member: b"A"}), "s")
    bench.run(store=False)
    bench.join("b")  # while the write is under way
    assert bench.synced("s").error is ErrorCode.REBALANCE_IN_PROGRESS
    bench.group.on_stored(bench.now, bench.writes[-1].then)
    assert bench.group.state is State.PREPARING
    assert bench.group.members[member].assignment == b""


def test_a_rebalance_ends_when_all_have_come_back(stable: Bench) -> None:
    first, second = stable.joined("a").member_id, stable.joined("b").member_id
    stable.join("c")
    assert stable.heartbeat(first) is ErrorCode.REBALANCE_IN_PROGRESS
    stable.join("a2", first)
    assert "a2" not in stable.answers
    stable.join("b2", second)
    assert [stable.joined(name).generation for name in ("a2", "b2", "c")] == [2, 2, 2]


def test_who_does_not_come_back_is_out(stable: Bench) -> None:
    first, second = stable.joined("a").member_id, stable.joined("b").member_id
    stable.join("c")
    stable.join("a2", first)
    for _ in range(int(REBALANCE / SESSION) + 1):  # it lives, and does not rejoin
        stable.heartbeat(second)
        stable.pass_time(SESSION * 0.99)
    assert stable.joined("a2").generation == 2
    assert stable.heartbeat(second) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_silent_member_is_out_after_its_session(stable: Bench) -> None:
    first, second = stable.joined("a").member_id, stable.joined("b").member_id
    stable.pass_time(SESSION * 0.9)
    stable.heartbeat(first)
    stable.pass_time(SESSION * 0.2)
    assert stable.heartbeat(second) is ErrorCode.UNKNOWN_MEMBER_ID
    assert stable.group.state is State.PREPARING
    stable.join("a2", first)
    assert stable.joined("a2").generation == 2


def test_who_asks_for_its_part_again_begins_its_session_anew(stable: Bench) -> None:
    """GroupCoordinator.doSyncGroup. It has just been given partitions, and consumes them."""
    first, second = stable.joined("a").member_id, stable.joined("b").member_id
    stable.pass_time(SESSION * 0.9)
    stable.heartbeat(first)
    stable.join("b2", second)
    stable.sync("sb2", second)
    stable.pass_time(SESSION * 0.9)
    assert stable.heartbeat(second) is NONE
    assert stable.group.state is State.STABLE


def test_a_leader_that_joins_again_wants_a_rebalance_and_others_are_told_what_they_know(stable: Bench) -> None:
    first, second = stable.joined("a").member_id, stable.joined("b").member_id
    stable.join("b2", second)
    assert (stable.joined("b2").generation, stable.group.state) == (1, State.STABLE)
    stable.join("a2", first)
    assert stable.group.state is State.PREPARING


def test_when_all_have_left_the_group_is_empty_and_says_so_in_the_log(stable: Bench) -> None:
    members = [stable.joined(name).member_id for name in ("a", "b")]
    assert stable.group.leave(stable.now, [MemberIdentity(member, None) for member in members]) == [NONE, NONE]
    stable.run()
    assert (stable.group.state, stable.group.generation) == (State.EMPTY, 2)
    assert stable.writes[-1] == StoreGroup({}, None)


def test_members_that_never_ask_for_their_part_are_out() -> None:
    bench = Bench()
    bench.join("a")
    bench.join("b")
    bench.pass_time(DELAY * 2)
    second = bench.joined("b").member_id
    for _ in range(int(REBALANCE / SESSION) + 1):
        bench.heartbeat(second)
        bench.heartbeat(bench.joined("a").member_id)
        bench.pass_time(SESSION * 0.99)
    assert not bench.group.members or bench.group.state is State.PREPARING


def test_protocols_nobody_shares_are_refused_and_the_favourite_of_most_is_taken() -> None:
    bench = Bench()
    bench.join("a", protocols=(("x", b""), ("y", b"")))
    bench.join("b", protocols=(("y", b""), ("x", b"")))
    bench.join("c", protocols=(("y", b""),))
    bench.join("d", protocols=(("z", b""),))
    assert bench.joined("d").error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    bench.pass_time(DELAY * 3)
    assert bench.joined("a").protocol == "y"


def test_a_full_group_turns_newcomers_away() -> None:
    bench = Bench(max_size=2)
    for name in ("a", "b", "c"):
        bench.join(name)
    assert bench.joined("c").error is ErrorCode.GROUP_MAX_SIZE_REACHED


def static_group() -> Bench:
    bench = Bench()
    bench.join("a", instance="i")
    bench.join("b", instance="j")
    bench.pass_time(DELAY * 2)
    members = [bench.joined(name).member_id for name in ("a", "b")]
    bench.sync("sb", members[1])
    bench.sync("sa", members[0], {members[0]: b"A", members[1]: b"B"})
    return bench


def test_a_static_member_that_comes_back_has_its_part_without_a_rebalance() -> None:
    bench = static_group()
    old = bench.joined("b").member_id
    bench.join("b2", instance="j")
    answer = bench.joined("b2")
    assert (answer.error, answer.generation, bench.group.state) == (NONE, 1, State.STABLE)
    assert answer.member_id != old
    bench.sync("sb2", answer.member_id)
    assert bench.synced("sb2").assignment == b"B"
    assert bench.group.heartbeat(bench.now, old, "j", 1) is ErrorCode.FENCED_INSTANCE_ID


def test_a_static_leader_that_comes_back_is_told_not_to_assign() -> None:
    bench = static_group()
    bench.join("a2", instance="i")
    answer = bench.joined("a2")
    assert (answer.skip_assignment, answer.leader) == (True, answer.member_id)
    assert len(answer.members) == 2


def test_two_instances_of_one_name_fence_each_other() -> None:
    bench = Bench()
    bench.join("a", instance="i")
    bench.join("b", instance="i")
    assert bench.joined("a").error is ErrorCode.FENCED_INSTANCE_ID


def test_a_new_static_member_that_is_replaced_while_it_joins_is_not_expelled_for_its_silence(stable: Bench) -> None:
    stable.join("c", instance="i")
    stable.join("c2", instance="i")  # the same JoinGroup again, after its connection was lost
    assert stable.joined("c").error is ErrorCode.FENCED_INSTANCE_ID
    for _ in range(3):
        stable.pass_time(SESSION / 2)
        for name in ("a", "b"):
            assert stable.heartbeat(stable.joined(name).member_id) is ErrorCode.REBALANCE_IN_PROGRESS
    assert "c2" not in stable.answers, "it waits for the others"
    for name in ("a", "b"):
        stable.join(f"{name}2", stable.joined(name).member_id)
    assert stable.joined("c2").error is NONE


def test_a_static_member_whose_new_id_can_not_be_stored_is_the_one_it_was() -> None:
    bench = static_group()
    old = bench.joined("a").member_id
    request = MemberJoin(
        "",
        "i",
        "client",
        "/127.0.0.1",
        int(SESSION * 500),
        int(REBALANCE * 500),
        "consumer",
        (("range", b"new"),),
        False,
        True,
        "i-new",
    )
    joining.join(bench.group, bench.now, request, "a2")
    (effect,) = [effect for effect in bench.group.take_effects() if isinstance(effect, StoreGroup)]
    bench.group.too_large(bench.now, effect.then)
    bench.run()
    assert bench.joined("a2") == JoinResult(ErrorCode.UNKNOWN_SERVER_ERROR)
    assert (bench.group.leader, list(bench.group.members)) == (old, [old, bench.joined("b").member_id])
    member = bench.group.members[old]
    assert (member.protocols, member.session_timeout, member.rebalance_timeout) == (
        RANGE,
        int(SESSION * 1000),
        int(REBALANCE * 1000),
    )
    assert bench.group.heartbeat(bench.now, old, "i", 1) is NONE


def test_a_loaded_group_of_more_members_than_may_be_rebalances(stable: Bench) -> None:
    value = group_value(stable.group, {member.member_id: b"" for member in stable.group.members.values()})
    for max_size, state in ((2, State.STABLE), (1, State.PREPARING)):
        group = ClassicGroup("g", stable.now, initial_delay=DELAY, max_size=max_size)
        group.load(value, stable.now)
        assert group.state is state


def test_an_administrator_removes_a_static_member_by_its_instance() -> None:
    bench = static_group()
    assert bench.group.leave(bench.now, [MemberIdentity("", "j"), MemberIdentity("", "nobody")]) == [
        NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
    ]
    assert len(bench.group.members) == 1


def test_who_may_commit(stable: Bench) -> None:
    first = stable.joined("a").member_id
    group = stable.group
    assert group.check_commit(stable.now, Committer(first, None, 1)) is NONE
    assert group.check_commit(stable.now, Committer(first, None, 0)) is ErrorCode.ILLEGAL_GENERATION
    assert group.check_commit(stable.now, Committer("stranger", None, 1)) is ErrorCode.UNKNOWN_MEMBER_ID
    assert group.check_commit(stable.now, Committer("", None, -1)) is ErrorCode.UNKNOWN_MEMBER_ID
    stable.join("c")
    assert group.check_commit(stable.now, Committer(first, None, 1)) is NONE  # before it rejoins it commits what it did
    stable.join("a2", first)
    stable.join("b2", stable.joined("b").member_id)
    assert group.check_commit(stable.now, Committer(first, None, 2)) is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_group_that_was_loaded_goes_on_as_it_was(stable: Bench) -> None:
    assignments = {member.member_id: member.assignment for member in stable.group.members.values()}
    loaded = ClassicGroup("g", stable.now, initial_delay=DELAY, max_size=100)
    loaded.load(group_value(stable.group, assignments), stable.now)
    assert (loaded.state, loaded.generation, loaded.leader) == (State.STABLE, 1, stable.group.leader)
    for name in ("a", "b"):
        member = stable.joined(name).member_id
        assert loaded.heartbeat(stable.now, member, None, 1) is NONE
        assert loaded.members[member].assignment == stable.group.members[member].assignment


class Members(RuleBasedStateMachine):
    """Clients that do as clients do: join, sync, send heartbeats, leave, die, come back, and are slow at all of it."""

    def __init__(self) -> None:
        super().__init__()
        self.bench = Bench()
        self.tokens = itertools.count()
        self.awaiting_join: dict[str, tuple[str, float]] = {}  # client → what it waits for, and since when
        self.awaiting_sync: dict[str, tuple[str, float]] = {}
        self.ids: dict[str, str] = {}
        self.parts: dict[tuple[int, str], bytes] = {}  # generation and member → the part it was given
        self.unstored: list[StoreGroup] = []

    def _take(self) -> None:
        for effect in self.bench.group.take_effects():
            if isinstance(effect, StoreGroup):
                self.unstored.append(effect)
            else:
                assert effect.response_future not in self.bench.answers, f"{effect.response_future} was answered twice"
                self.bench.answers[effect.response_future] = effect.answer
        self._hear()

    def _hear(self) -> None:
        for client, (token, _) in list(self.awaiting_join.items()):
            answer = self.bench.answers.get(token)
            if isinstance(answer, JoinResult):
                del self.awaiting_join[client]
                if answer.error in (NONE, ErrorCode.MEMBER_ID_REQUIRED):
                    self.ids[client] = answer.member_id
                elif answer.error is not ErrorCode.REBALANCE_IN_PROGRESS:
                    self.ids.pop(client, None)
        for client, (token, _) in list(self.awaiting_sync.items()):
            heard = self.bench.answers.get(token)
            if isinstance(heard, SyncResult):
                del self.awaiting_sync[client]
                if heard.error is NONE:
                    key = (int(token.split("@")[1]), self.ids.get(client, ""))
                    assert self.parts.setdefault(key, heard.assignment) == heard.assignment, (
                        "one member, two parts in one generation"
                    )
                    self.parts[key] = heard.assignment

    clients = st.sampled_from(["a", "b", "c", "d"])

    @rule(client=clients, known=st.booleans(), static=st.booleans())
    def join(self, client: str, known: bool, static: bool) -> None:
        if client in self.awaiting_join or client in self.awaiting_sync:
            return
        token = f"join-{next(self.tokens)}"
        self.awaiting_join[client] = (token, self.bench.clock)
        instance = "static" if client == "d" and static else None
        new = f"{client}-{next(self.tokens)}"
        member_id = "" if instance else self.ids.get(client, "")
        request = MemberJoin(
            member_id,
            instance,
            "c",
            "/h",
            int(SESSION * 1000),
            int(REBALANCE * 1000),
            "consumer",
            RANGE,
            known,
            True,
            new,
        )
        joining.join(self.bench.group, self.bench.now, request, token)
        self._take()

    @rule(client=clients)
    def sync(self, client: str) -> None:
        group = self.bench.group
        member_id = self.ids.get(client)
        if member_id is None or client in self.awaiting_join or client in self.awaiting_sync:
            return
        token = f"sync-{next(self.tokens)}@{group.generation}"
        self.awaiting_sync[client] = (token, self.bench.clock)
        parts = {one: b"%d/%s" % (group.generation, one.encode()) for one in group.members}
        group.sync(self.bench.now, MemberSync(member_id, None, group.generation, None, None, parts), token)
        self._take()

    @rule()
    def store(self) -> None:
        if self.unstored:
            self.bench.group.on_stored(self.bench.now, self.unstored.pop(0).then)
            self._take()

    @rule(client=clients)
    def heartbeat(self, client: str) -> None:
        if client in self.ids:
            self.bench.group.heartbeat(self.bench.now, self.ids[client], None, self.bench.group.generation)
            self._take()

    @rule(client=clients)
    def leave(self, client: str) -> None:
        if client in self.ids:
            self.bench.group.leave(self.bench.now, [MemberIdentity(self.ids[client], None)])
            self._take()

    @rule(client=clients)
    def forget(self, client: str) -> None:
        """The client dies: what it waited for it never hears, and it comes back as a new one."""
        self.ids.pop(client, None)
        self.awaiting_join.pop(client, None)
        self.awaiting_sync.pop(client, None)

    @rule(seconds=st.floats(0.1, 70))
    def pass_time(self, seconds: float) -> None:
        until = self.bench.clock + seconds
        while (at := self.bench.group.wake_at) is not None and at <= until:
            self.bench.clock = max(self.bench.clock, at)
            self.bench.group.tick(self.bench.now)
            self._take()
            while self.unstored:
                self.store()
        self.bench.clock = until
        self._take()

    @invariant()
    def every_join_ends(self) -> None:
        for token, since in self.awaiting_join.values():
            assert self.bench.clock - since <= NEW_MEMBER_SECONDS + 2 * REBALANCE, f"{token} waits for ever"

    @invariant()
    def every_sync_ends(self) -> None:
        for token, since in self.awaiting_sync.values():
            assert self.bench.clock - since <= NEW_MEMBER_SECONDS + 3 * REBALANCE, f"{token} waits for ever"

    @invariant()
    def nobody_has_what_another_has(self) -> None:
        for (generation, member), part in self.parts.items():
            assert part in (b"", b"%d/%s" % (generation, member.encode())), "a part meant for another"

    @invariant()
    def the_group_is_consistent(self) -> None:
        group = self.bench.group
        assert set(group.roster._static.values()) <= set(group.members)
        assert group.leader is None or group.leader in group.members
        assert (group.leader is None) == (not group.members)
        assert not (group.state is State.EMPTY and group.members)
        assert not (group.state in (State.STABLE, State.COMPLETING) and not group.members)
        if any(member.awaiting_join is not None for member in group.members.values()):
            assert group.state is State.PREPARING
            assert group.wake_at is not None


Members.TestCase.settings = settings(max_examples=150, stateful_step_count=60)
TestMembers = Members.TestCase
