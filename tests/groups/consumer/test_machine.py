"""The consumer protocol step by step, as Kafka answers it."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field

import pytest

from kafka_sidecar.groups.classic.machine import ClassicGroup
from kafka_sidecar.groups.classic.members import JoinResult, MemberJoin, MemberSync, SyncResult
from kafka_sidecar.groups.consumer import classic_members
from kafka_sidecar.groups.consumer.machine import WAITING_INTERVAL, ConsumerGroup, State, Times
from kafka_sidecar.groups.consumer.members import (
    Downgrade,
    HeartbeatResult,
    InvalidRegex,
    MemberHeartbeat,
    RequiredTopics,
    StoreRecords,
    Topic,
    Topics,
)
from kafka_sidecar.groups.consumer.migration import to_classic
from kafka_sidecar.groups.records import Key, Record, Value
from kafka_sidecar.groups.records.consumer import (
    Assignment,
    ConsumerGroupMetadataKey,
    CurrentMemberAssignmentKey,
    TargetAssignmentMemberKey,
    TargetAssignmentMetadataKey,
)
from kafka_sidecar.groups.records.subscription import read_parts
from kafka_sidecar.groups.vocabulary import Committer, Now
from kafka_sidecar.wire.error_code import ErrorCode

NONE = ErrorCode.NONE
T = uuid.UUID(int=1)
U = uuid.UUID(int=2)
SESSION = 45.0
SUBSCRIPTION = bytes.fromhex("0001 00000001 0001 74 ffffffff 00000000")  # to t, owning nothing


@dataclass
class Known(Topics):
    topics: dict[str, Topic] = field(default_factory=lambda: {"t": Topic(T, 4), "u": Topic(U, 2)})

    unknown: frozenset[str] = frozenset()

    @property
    def version(self) -> int:
        return hash(tuple(sorted(self.topics.items())))

    def knows(self, required_topics: RequiredTopics) -> bool:
        return required_topics.names.isdisjoint(self.unknown)

    def get(self, name: str) -> Topic | None:
        return None if name in self.unknown else self.topics.get(name)

    def name_of(self, topic_id: uuid.UUID) -> str | None:
        return next((name for name, topic in self.topics.items() if topic.topic_id == topic_id), None)

    def matching(self, regex: str) -> frozenset[str]:
        if regex == "(":
            raise InvalidRegex("missing closing )")
        return frozenset(name for name in self.topics if name in regex)


@dataclass
class Bench:
    topics: Known = field(default_factory=Known)
    clock: float = 1_000.0
    records: list[Record] = field(default_factory=list)
    downgrades: list[Downgrade] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.group = ConsumerGroup("g", self.topics, times=Times(int(SESSION * 1000), 5_000), max_size=3)
        self.group.knows_topics = True

    @property
    def now(self) -> Now:
        return Now(self.clock, int(self.clock * 1000))

    def run(self) -> None:
        for effect in self.group.take_effects():
            if isinstance(effect, StoreRecords):
                self.records += effect.records
            else:
                self.downgrades.append(effect)

    def beat(
        self,
        member: str,
        epoch: int,
        owned: Assignment | None = None,
        *,
        instance: str | None = None,
        topics: tuple[str, ...] | None = None,
        regex: str | None = None,
        assignor: str | None = None,
    ) -> HeartbeatResult:
        joins = epoch == 0
        topics = ("t",) if joins and topics is None and regex is None else topics
        request = MemberHeartbeat(
            member,
            epoch,
            instance,
            None,
            60_000 if joins else -1,
            topics,
            regex,
            assignor,
            {} if joins else owned,
            "c",
            "/h",
        )
        answer = self.group.heartbeat(self.now, request)
        self.run()
        return answer

    def leave(self, member: str, epoch: int = -1, instance: str | None = None) -> HeartbeatResult:
        answer = self.group.leave(MemberHeartbeat(member, epoch, instance, None, -1, None, None, None, None, "c", "/h"))
        self.run()
        return answer

    def join_classic(self, member: str, instance: str | None = None) -> JoinResult:
        request = MemberJoin(
            member,
            instance,
            "c",
            "/h",
            30_000,
            60_000,
            "consumer",
            (("range", SUBSCRIPTION),),
            False,
            False,
            f"{member}-new",
        )
        answer = classic_members.join(self.group, self.now, request)
        self.run()
        return answer

    def sync_classic(self, member: str, generation: int) -> SyncResult:
        answer = classic_members.sync(
            self.group, self.now, MemberSync(member, None, generation, "consumer", "range", {})
        )
        self.run()
        return answer

    def pass_time(self, seconds: float) -> list[str]:
        self.clock += seconds
        said = self.group.tick(self.now)
        self.run()
        return said


def parts(*indexes: int, topic: uuid.UUID = T) -> Assignment:
    return {topic: frozenset(indexes)} if indexes else {}


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_the_first_member_gets_everything_at_once(bench: Bench) -> None:
    answer = bench.beat("m1", 0)
    assert (answer.error, answer.member_id, answer.epoch, answer.interval) == (NONE, "m1", 1, 5_000)
    assert answer.assignment == parts(0, 1, 2, 3)
    assert bench.group.state is State.STABLE
    assert isinstance(bench.records[-1].key, ConsumerGroupMetadataKey), "a new group is there when all of it is"


def test_what_has_not_changed_is_not_told_again_but_to_who_tells_everything(bench: Bench) -> None:
    bench.beat("m1", 0)
    assert bench.beat("m1", 1).assignment is None
    assert bench.beat("m1", 0).assignment == parts(0, 1, 2, 3)


def test_a_second_member_gets_its_share_when_the_first_has_given_it_up(bench: Bench) -> None:
    bench.beat("m1", 0)
    second = bench.beat("m2", 0)
    assert (second.epoch, second.assignment, second.interval) == (2, {}, WAITING_INTERVAL)
    assert bench.group.state.value == "Reconciling"
    metadata = bench.beat("m1", 1)
    assert (metadata.epoch, metadata.assignment) == (1, parts(0, 1)), "it stays in its epoch until it has revoked"
    assert bench.beat("m1", 1, parts(0, 1, 2, 3)).epoch == 1
    assert bench.beat("m2", 2).assignment is None
    assert bench.beat("m1", 1, parts(0, 1)).epoch == 2
    assert bench.beat("m2", 2).assignment == parts(2, 3)
    assert bench.group.state is State.STABLE


def test_a_member_that_does_not_revoke_in_time_is_out(bench: Bench) -> None:
    bench.beat("m1", 0)
    bench.beat("m2", 0)
    bench.beat("m1", 1)
    for _ in range(2):
        bench.pass_time(30.5)
        said = bench.beat("m1", 1, parts(0, 1, 2, 3)) if "m1" in bench.group.members else None
        bench.beat("m2", 2)
    assert said is None
    assert set(bench.group.members) == {"m2"}
    assert bench.group.members["m2"].current.assigned == parts(0, 1, 2, 3)


def test_a_silent_member_is_out_when_its_session_ends(bench: Bench) -> None:
    bench.beat("m1", 0)
    assert bench.pass_time(SESSION - 1) == []
    bench.beat("m1", 1)
    assert bench.pass_time(SESSION - 1) == []
    assert bench.pass_time(1) == ["member m1 is out: its session has ended"]
    assert bench.group.state is State.EMPTY
    assert bench.beat("m1", 1).error is ErrorCode.UNKNOWN_MEMBER_ID


def test_epochs_that_are_not_the_members_are_fenced(bench: Bench) -> None:
    bench.beat("m1", 0)
    bench.beat("m1", 1, topics=("t", "u"))
    assert bench.group.members["m1"].epoch == 2
    assert bench.beat("m1", 3).error is ErrorCode.FENCED_MEMBER_EPOCH
    assert bench.beat("m1", 1).error is ErrorCode.FENCED_MEMBER_EPOCH, "it says nothing of what it has"
    assert bench.beat("m1", 1, parts(0, 1, 2, 3)).epoch == 2, "the answer that told it may have been lost"
    assert bench.beat("m9", 2).error is ErrorCode.UNKNOWN_MEMBER_ID


def test_an_old_heartbeat_that_comes_late_does_not_give_up_what_its_member_has(bench: Bench) -> None:
    bench.beat("m1", 0)
    bench.beat("m2", 0)
    bench.beat("m1", 1)  # is to revoke, in epoch 1
    assert bench.beat("m1", 1, {}).epoch == 2
    bench.beat("m2", 2)
    bench.beat("m3", 0)
    assert bench.beat("m1", 2).assignment == parts(0), "it is to revoke another one, in epoch 2"
    assert bench.beat("m1", 1, {}).error is ErrorCode.FENCED_MEMBER_EPOCH, "it says nothing about that one"


@pytest.mark.parametrize(
    ("refused", "error"),
    [
        (lambda bench: bench.beat("m1", 0, regex="("), ErrorCode.INVALID_REGULAR_EXPRESSION),
        (lambda bench: bench.beat("m" * 40_000, 0), ErrorCode.INVALID_REQUEST),
        (
            lambda bench: bench.beat("m1", 0, topics=tuple(f"{number:0200}" for number in range(6_000))),
            ErrorCode.UNKNOWN_SERVER_ERROR,
        ),
        (lambda bench: bench.beat("m1", 5), ErrorCode.UNKNOWN_MEMBER_ID),
        (lambda bench: bench.beat("m1", 5, instance="i"), ErrorCode.UNKNOWN_MEMBER_ID),
        (lambda bench: bench.leave("m1"), ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_who_is_refused_changes_nothing(bench: Bench, refused: object, error: ErrorCode) -> None:
    assert callable(refused)
    answer = refused(bench)
    assert answer.error is error
    assert answer.message
    assert not bench.records
    assert bench.group.unused


def test_a_group_has_no_more_members_than_it_may(bench: Bench) -> None:
    for number in range(3):
        bench.beat(f"m{number}", 0)
    assert bench.beat("m3", 0).error is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert bench.beat("m2", 0).error is NONE


def test_a_new_subscription_takes_partitions_away_at_once(bench: Bench) -> None:
    bench.beat("m1", 0, topics=("t", "u"))
    metadata = bench.beat("m1", 1, topics=("u",))
    assert metadata.assignment == parts(0, 1, topic=U)
    assert bench.beat("m1", 1, parts(0, 1, topic=U)).epoch == 2


def test_partitions_that_are_added_are_assigned(bench: Bench) -> None:
    bench.beat("m1", 0)
    bench.topics.topics["t"] = Topic(T, 5)
    bench.group.refresh_topics(bench.now)
    bench.run()
    assert bench.group.state is State.ASSIGNING
    assert bench.beat("m1", 1).assignment == parts(0, 1, 2, 3, 4)
    stored = len(bench.records)
    bench.group.refresh_topics(bench.now)
    bench.run()
    assert (bench.group.epoch, len(bench.records)) == (2, stored), "nothing has changed since"


def test_a_regular_expression_is_resolved_when_its_member_joins_and_again_when_topics_come(bench: Bench) -> None:
    assert bench.beat("m1", 0, regex="t|v").assignment == parts(0, 1, 2, 3)
    bench.topics.topics["v"] = Topic(U, 1)
    bench.group.refresh_topics(bench.now)
    bench.run()
    assert bench.beat("m1", 1).assignment == {**parts(0, 1, 2, 3), **parts(0, topic=U)}
    bench.leave("m1")
    assert not bench.group.group_state.regexes


def test_the_assignor_is_the_one_that_most_ask_for(bench: Bench) -> None:
    bench.beat("m1", 0)
    assert bench.group.subscriptions.assignor == "uniform"
    bench.beat("m2", 0, assignor="range")
    assert bench.group.subscriptions.assignor == "range"


# --- static members


def test_a_static_member_that_leaves_for_a_while_keeps_its_partitions_for_whoever_comes_as_it(bench: Bench) -> None:
    bench.beat("m1", 0, instance="i")
    assert bench.leave("m1", -2, "i").epoch == -2
    again = bench.beat("m2", 0, instance="i")
    assert (again.epoch, again.assignment) == (1, parts(0, 1, 2, 3)), "no new epoch"
    assert bench.beat("m1", 1, instance="i").error is ErrorCode.FENCED_INSTANCE_ID


def test_an_instance_that_is_there_is_not_replaced(bench: Bench) -> None:
    bench.beat("m1", 0, instance="i")
    assert bench.beat("m2", 0, instance="i").error is ErrorCode.UNRELEASED_INSTANCE_ID


def test_a_static_member_that_did_not_hear_the_answer_to_its_joining_joins_again(bench: Bench) -> None:
    bench.beat("m1", 0, instance="i")
    assert bench.beat("m1", 0, instance="i").error is NONE


def test_a_static_member_that_does_not_come_back_is_out(bench: Bench) -> None:
    bench.beat("m1", 0, instance="i")
    bench.leave("m1", -2, "i")
    bench.pass_time(SESSION)
    assert not bench.group.members


# --- members of the classic protocol


def test_a_classic_member_joins_and_has_its_partitions(bench: Bench) -> None:
    bench.beat("m1", 0)
    joined = bench.join_classic("old")
    assert (joined.error, joined.generation, joined.protocol, joined.leader) == (NONE, 2, "range", None)
    assert read_parts(bench.sync_classic("old", 2).assignment).partitions == {}
    assert classic_members.heartbeat(bench.group, bench.now, "old", None, 2) is NONE, (
        "what it waits for is not free yet"
    )
    bench.beat("m1", 1)
    bench.beat("m1", 1, parts(0, 1))
    assert classic_members.heartbeat(bench.group, bench.now, "old", None, 2) is ErrorCode.REBALANCE_IN_PROGRESS
    assert bench.join_classic("old").generation == 2
    shares = read_parts(bench.sync_classic("old", 2).assignment).partitions
    assert len(shares["t"]) == 2


def test_a_classic_member_that_does_not_join_again_in_time_is_out(bench: Bench) -> None:
    bench.beat("m1", 0)
    bench.join_classic("old")
    bench.sync_classic("old", 2)
    bench.beat("m2", 0)
    assert classic_members.heartbeat(bench.group, bench.now, "old", None, 2) is ErrorCode.REBALANCE_IN_PROGRESS
    for _ in range(3):
        bench.pass_time(20.5)
        classic_members.heartbeat(bench.group, bench.now, "old", None, 2)
        bench.beat("m1", 1)
        bench.beat("m2", 3)
    assert "old" not in bench.group.members


def test_protocols_that_are_not_those_of_consumers_are_refused(bench: Bench) -> None:
    bench.beat("m1", 0)
    request = MemberJoin(
        "", None, "c", "/h", 30_000, 60_000, "connect", (("range", SUBSCRIPTION),), False, False, "new"
    )
    answer = classic_members.join(bench.group, bench.now, request)
    bench.run()
    assert answer.error is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_when_only_classic_members_are_left_the_group_is_to_become_classic(bench: Bench) -> None:
    bench.beat("m1", 0)
    bench.join_classic("old")
    assert not bench.downgrades
    bench.leave("m1")
    assert bench.downgrades == [Downgrade(rebalance=True)]


# --- offsets


def test_commits_and_fetches_are_those_of_the_members_epoch(bench: Bench) -> None:
    group = bench.group
    assert group.check_commit(bench.now, Committer("", None, -1, knows_epochs=True)) is NONE, "nobody is in it"
    bench.beat("m1", 0)
    bench.join_classic("old")
    assert group.check_commit(bench.now, Committer("", None, -1, knows_epochs=True)) is ErrorCode.UNKNOWN_MEMBER_ID
    assert group.check_commit(bench.now, Committer("m1", None, 1, knows_epochs=True)) is NONE
    assert group.check_commit(bench.now, Committer("m1", None, 1, knows_epochs=False)) is ErrorCode.UNSUPPORTED_VERSION
    assert group.check_commit(bench.now, Committer("m1", None, 2, knows_epochs=True)) is ErrorCode.STALE_MEMBER_EPOCH
    assert group.check_commit(bench.now, Committer("old", None, 1, knows_epochs=True)) is ErrorCode.ILLEGAL_GENERATION
    assert group.check_commit_in_transaction(Committer("m1", None, 1)) is NONE, "in any version"
    assert group.check_commit_in_transaction(Committer("m1", None, 2)) is ErrorCode.ILLEGAL_GENERATION
    assert group.check_fetch(None, -1) is NONE
    assert group.check_fetch("m1", 1) is NONE
    assert group.check_fetch("m1", 2) is ErrorCode.STALE_MEMBER_EPOCH
    assert group.check_fetch("gone", 1) is ErrorCode.UNKNOWN_MEMBER_ID


# --- times


def test_a_classic_member_that_has_asked_for_its_partitions_stays_as_long_as_it_sends_heartbeats(bench: Bench) -> None:
    bench.beat("m1", 0)
    bench.join_classic("old")
    bench.beat("m1", 1)
    bench.beat("m1", 1, parts(0, 1))
    bench.join_classic("old")
    bench.sync_classic("old", 2)
    for _ in range(5):
        bench.pass_time(20)
        assert classic_members.heartbeat(bench.group, bench.now, "old", None, 2) is NONE
        bench.beat("m1", 2)
    assert set(bench.group.members) == {"m1", "old"}


def test_a_classic_member_that_never_asks_for_its_partitions_is_out(bench: Bench) -> None:
    bench.beat("m1", 0)
    bench.join_classic("old")
    for _ in range(3):
        bench.pass_time(20.5)
        classic_members.heartbeat(bench.group, bench.now, "old", None, 2)
        bench.beat("m1", bench.group.members["m1"].epoch, parts(0, 1))
    assert set(bench.group.members) == {"m1"}


def test_a_classic_member_that_has_joined_again_is_not_expected_to_any_more(bench: Bench) -> None:
    bench.beat("m1", 0)
    bench.join_classic("old")
    bench.sync_classic("old", 2)
    bench.beat("m2", 0)
    assert classic_members.heartbeat(bench.group, bench.now, "old", None, 2) is ErrorCode.REBALANCE_IN_PROGRESS
    generation = bench.join_classic("old").generation
    bench.sync_classic("old", generation)
    for _ in range(5):
        bench.pass_time(20)
        if (
            classic_members.heartbeat(bench.group, bench.now, "old", None, generation)
            is ErrorCode.REBALANCE_IN_PROGRESS
        ):
            generation = bench.join_classic("old").generation
            bench.sync_classic("old", generation)
        for member, owned in (("m1", parts(0, 1)), ("m2", parts())):
            bench.beat(member, bench.group.members[member].epoch, bench.group.members[member].current.assigned or owned)
    assert set(bench.group.members) == {"m1", "m2", "old"}


def stored(bench: Bench) -> dict[Key, Value]:
    found: dict[Key, Value] = {}
    for key, value in bench.records:
        found.pop(key, None)
        if value is not None:
            found[key] = value
    return found


def test_a_new_term_gives_who_has_to_revoke_its_time_again(bench: Bench) -> None:
    bench.beat("m1", 0)
    bench.beat("m2", 0)
    bench.beat("m1", 1)
    other = Bench(topics=bench.topics)
    other.group.load(stored(bench), other.now)
    for _ in range(4):
        other.pass_time(20)
        if "m1" in other.group.members:
            other.beat("m1", 1, parts(0, 1, 2, 3))
        other.beat("m2", other.group.members["m2"].epoch)
    assert set(other.group.members) == {"m2"}


def test_the_epoch_of_a_group_that_is_there_is_stored_before_its_target(bench: Bench) -> None:
    """A term that finds the one without the other assigns anew."""
    bench.beat("m1", 0)
    other = Bench(topics=bench.topics)
    other.group.load(stored(bench), other.now)
    for one in (bench, other):
        one.records.clear()
        one.beat("m2", 0)
        kinds = [type(record.key) for record in one.records]
        assert (
            kinds.index(ConsumerGroupMetadataKey)
            < kinds.index(TargetAssignmentMemberKey)
            < kinds.index(TargetAssignmentMetadataKey)
            < kinds.index(CurrentMemberAssignmentKey)
        )


def test_who_waits_for_long_is_not_asked_to_hurry_any_more(bench: Bench) -> None:
    bench.beat("m1", 0)
    assert bench.beat("m2", 0).interval == WAITING_INTERVAL
    bench.pass_time(10)
    bench.beat("m1", 1, parts(0, 1, 2, 3))
    assert bench.beat("m2", 2).interval == WAITING_INTERVAL
    bench.pass_time(10)
    assert bench.beat("m2", 2).interval == 5_000


def test_what_a_static_member_was_to_revoke_is_free_when_it_leaves_for_a_while(bench: Bench) -> None:
    bench.beat("m1", 0, instance="i")
    bench.beat("m2", 0)
    bench.beat("m1", 1, instance="i")
    bench.leave("m1", -2, "i")
    assert bench.beat("m2", 2).assignment == parts(2, 3)
    bench.pass_time(44)
    assert "m1" in bench.group.members, "it has its session to come back, not its time to revoke"
    assert bench.beat("m3", 0, instance="i").assignment == parts(0, 1)


def test_what_is_left_as_a_classic_group_has_what_it_was_asked_to_revoke(bench: Bench) -> None:
    """It may not have heard of it, and nobody else is to be given it before."""
    bench.join_classic("old")
    bench.sync_classic("old", 1)
    bench.beat("m1", 0)
    owning = SUBSCRIPTION[:-4] + bytes.fromhex("00000001 0001 74 00000004 00000000 00000001 00000002 00000003")
    request = MemberJoin("old", None, "c", "/h", 30_000, 60_000, "consumer", (("range", owning),), False, False, "")
    classic_members.join(bench.group, bench.now, request)
    bench.run()
    assert bench.group.members["old"].current.revoking == parts(2, 3)
    classic = to_classic_of(bench)
    assert read_parts(classic.members["old"].assignment).partitions == {"t": frozenset(range(4))}


def to_classic_of(bench: Bench) -> ClassicGroup:
    bench.leave("m1")
    return to_classic(bench.group, ClassicGroup("g", bench.now, initial_delay=0, max_size=9), bench.now)


def test_the_hash_of_the_members_is_that_of_who_they_are_and_not_of_what_happened() -> None:
    first, second = Bench(), Bench()
    empty = first.group.group_state.members_hash
    for bench, members in ((first, ("a", "b")), (second, ("b", "x", "a"))):
        for member in members:
            bench.beat(member, 0)
    assert first.group.group_state.members_hash != second.group.group_state.members_hash
    second.leave("x")
    assert first.group.group_state.members_hash == second.group.group_state.members_hash != empty
    first.beat("a", first.group.group_state.members["a"].epoch, topics=("t", "u"))
    assert first.group.group_state.members_hash != second.group.group_state.members_hash
    for member in ("a", "b"):
        first.leave(member)
    assert first.group.group_state.members_hash == empty
