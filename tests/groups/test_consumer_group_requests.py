"""Consumer groups as the coordinator runs them: what becomes of them when Pulsar is away, terms end, and members change
their protocol.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafka_sidecar.groups.classic.machine import ClassicGroup
from kafka_sidecar.groups.classic.members import (
    JoinResult,
    MemberIdentity,
    MemberJoin,
    MemberSync,
    SyncResult,
    sync_refused,
)
from kafka_sidecar.groups.consumer.machine import ConsumerGroup
from kafka_sidecar.groups.consumer.members import LEAVE_GROUP_STATIC_MEMBER_EPOCH, HeartbeatResult, MemberHeartbeat
from kafka_sidecar.groups.coordinator import Commit, CommittedOffset
from kafka_sidecar.groups.deletion import DeletedGroup
from kafka_sidecar.groups.records import GroupMetadataKey
from kafka_sidecar.groups.records.consumer import ConsumerGroupMetadataKey
from kafka_sidecar.groups.records.offsets import OffsetCommitKey
from kafka_sidecar.groups.records.subscription import write_parts
from kafka_sidecar.groups.vocabulary import Committer
from kafka_sidecar.wire.error_code import ErrorCode
from tests.support.group_members import GROUP, Bench, NewClient, OldClient, write_names

NONE = ErrorCode.NONE


@pytest.fixture
def bench() -> Iterator[Bench]:
    one = Bench()
    one.topics.partitions |= {"a": 4, "b": 2}
    yield one
    one.close()


A = ("a",)


def new(
    bench: Bench,
    member: str,
    *,
    instance: str | None = None,
    topics: tuple[str, ...] | None = A,
    regex: str | None = None,
) -> NewClient:
    client = NewClient(bench, member, instance, topics, regex)
    client.step()
    return client


def old(bench: Bench, stem: str) -> OldClient:
    client = OldClient(bench, stem, ("a",))
    settle(bench, client)
    return client


def settle(bench: Bench, *clients: NewClient | OldClient) -> None:
    for _ in range(8):
        for client in clients:
            client.step()
        bench.pass_time(0.1)


def forget_topics(bench: Bench) -> None:
    """Another sidecar would know nothing of them."""
    book = bench.coordinator.topics
    book._topics, book._names, book._matching = {}, {}, {}
    book._version += 1


def new_term(bench: Bench) -> None:
    async def ended() -> None:
        bench.shard.term.restart("because")
        await bench._calm()

    bench.run(ended())


def consumer(bench: Bench) -> ConsumerGroup:
    assert isinstance(bench.group, ConsumerGroup)
    return bench.group


def terms(bench: Bench) -> int:
    return bench.offsets.terms


@pytest.mark.parametrize("by", ["name", "regex"])
def test_while_pulsar_is_away_a_new_term_takes_nothing_from_anybody(bench: Bench, by: str) -> None:
    client = new(bench, "m1") if by == "name" else new(bench, "m1", topics=None, regex="a")
    assert len(client.owned) == 4
    bench.topics.unavailable = True
    forget_topics(bench)
    new_term(bench)
    bench.refresh()
    for _ in range(3):
        client.step()
        bench.pass_time(20)
    assert len(client.owned) == 4, "its session goes on, though it is told to ask again"
    bench.topics.unavailable = False
    client.step()
    assert len(client.owned) == 4
    assert consumer(bench).members["m1"].epoch == client.epoch


def test_a_group_is_not_made_classic_before_it_is_known_what_its_members_have(bench: Bench) -> None:
    first, last = new(bench, "m1"), old(bench, "old")
    settle(bench, first, last)
    assert len(last.owned) == 2
    bench.topics.unavailable = True
    forget_topics(bench)
    new_term(bench)
    bench.pass_time(40)
    last.step()
    bench.pass_time(20)
    assert set(consumer(bench).members) == {last.member_id}, "the other one's session has ended"
    bench.topics.unavailable = False
    bench.refresh()
    assert isinstance(bench.group, ClassicGroup)
    second = new(bench, "m2")
    assert second.owned.isdisjoint(last.owned)
    settle(bench, second, last)
    assert len(second.owned) == len(last.owned) == 2


def test_a_group_that_is_too_large_fails_alone(bench: Bench) -> None:
    bench.offsets.max_size = 300
    new(bench, "m1", topics=("a",))
    many = tuple(f"{number:050}" for number in range(20))
    request = MemberHeartbeat("m2", 0, None, None, 60_000, many, None, None, {}, "c", "/h")
    assert (
        bench.answer(bench.coordinator.consumer_groups.heartbeat(request, GROUP), HeartbeatResult).error
        is ErrorCode.UNKNOWN_SERVER_ERROR
    )
    before = terms(bench)
    for _ in range(3):
        told = bench.answer(bench.coordinator.consumer_groups.heartbeat(request, GROUP), HeartbeatResult)
        assert told.error is ErrorCode.UNKNOWN_SERVER_ERROR
        bench.refresh()
    assert terms(bench) == before, "others of its shard are not disturbed for it again"
    assert set(consumer(bench).members) == {"m1"}


def test_a_group_that_is_too_large_for_one_record_stays_a_consumer_group(bench: Bench) -> None:
    first = new(bench, "m1")
    members = [old(bench, f"old{number}") for number in range(4)]
    settle(bench, first, *members)
    bench.offsets.max_size = 250
    before = terms(bench)
    first.leave()
    settle(bench, *members)
    assert isinstance(bench.group, ConsumerGroup)
    assert terms(bench) == before
    assert sum(len(one.owned) for one in members) == 4


def test_an_instance_that_takes_another_name_leaves_its_old_one_free(bench: Bench) -> None:
    client = new(bench, "m1", instance="y")
    client.instance, client.tells_all, client.epoch, client.owned = "x", True, 0, set()
    client.beat()
    client.leave()
    again = new(bench, "m2", instance="y")
    assert len(again.owned) == 4


def test_while_the_topics_of_a_classic_member_are_looked_up_its_sync_makes_it_join_again(bench: Bench) -> None:
    first, last = new(bench, "m1"), old(bench, "old")
    settle(bench, first, last)
    bench.topics.unavailable = True
    forget_topics(bench)
    new_term(bench)
    request = MemberSync(last.member_id, None, last.generation, None, None, {})
    assert bench.answer(bench.coordinator.sync(request, GROUP), sync_refused).error is ErrorCode.REBALANCE_IN_PROGRESS


def classic_static(bench: Bench, instance: str) -> JoinResult:
    metadata = write_parts({}, 0)[:2] + write_names(("a",))
    request = MemberJoin(
        "", instance, "c", "/h", 45_000, 60_000, "consumer", (("range", metadata),), False, False, f"{instance}-classic"
    )
    return bench.answer(bench.coordinator.join(request, GROUP), JoinResult)


def test_the_last_member_of_the_new_protocol_comes_back_with_the_classic_one_and_nobody_has_to_join_again(
    bench: Bench,
) -> None:
    new(bench, "m1", instance="i")
    joined = classic_static(bench, "i")
    assert joined.error is NONE
    assert isinstance(bench.group, ClassicGroup)
    assert bench.group.state.value == "Stable"
    request = MemberSync(joined.member_id, "i", joined.generation, None, None, {})
    told = bench.answer(bench.coordinator.sync(request, GROUP), SyncResult)
    assert told.error is NONE
    assert told.assignment == write_parts({"a": frozenset(range(4))}, 0)


@pytest.mark.parametrize("cut", range(8))
def test_a_static_member_whose_replacement_was_cut_short_is_replaced_when_it_asks_again(bench: Bench, cut: int) -> None:
    client = new(bench, "m1", instance="i")
    client.leave(LEAVE_GROUP_STATIC_MEMBER_EPOCH)
    bench.offsets.cut_next = cut
    again = new(bench, "m2", instance="i")
    bench.offsets.cut_next = None
    settle(bench, again)
    assert len(again.owned) == 4
    assert set(consumer(bench).members) == {"m2"}


def test_a_member_id_that_changes_its_protocol_is_not_held_to_the_times_of_the_other(bench: Bench) -> None:
    first, last = new(bench, "m1"), old(bench, "old")
    last.required_topics = "join"
    last.join()  # and never asks for its partitions
    changed = NewClient(bench, last.member_id, None, ("a",), None)
    changed.step()
    for _ in range(8):
        bench.pass_time(20)
        assert set(consumer(bench).members) == {"m1", changed.member_id}
        first.step()
        changed.step()


def test_a_classic_assignment_with_partitions_that_are_not_there_counts_for_those_that_are(bench: Bench) -> None:
    client = OldClient(bench, "old", ("a",))
    client.parts = lambda: {member_id: write_parts({"a": frozenset(range(-5, 1))}, 0) for member_id in client.leads}  # type: ignore[method-assign]
    settle(bench, client)
    first = new(bench, "m1")
    settle(bench, first, client)
    assert len(first.owned) == len(client.owned) == 2


def test_an_assignment_that_gives_a_partition_to_two_members_is_not_taken_over(bench: Bench) -> None:
    both = [OldClient(bench, f"old{number}", ("a",)) for number in range(2)]
    for one in both:
        one.parts = lambda one=one: {member_id: write_parts({"a": frozenset({0})}, 0) for member_id in one.leads}  # type: ignore[method-assign, misc]
    settle(bench, *both)
    assert all(len(one.owned) == 1 for one in both)
    assert refusal(bench) is ErrorCode.GROUP_ID_NOT_FOUND
    assert isinstance(bench.group, ClassicGroup)


def test_an_assignor_that_keeps_data_with_the_assignment_is_not_taken_over(bench: Bench) -> None:
    client = OldClient(bench, "old", ("a",))
    with_data = write_parts({"a": frozenset({0})}, 0)[:-4] + (3).to_bytes(4) + b"abc"
    client.parts = lambda: dict.fromkeys(client.leads, with_data)  # type: ignore[method-assign]
    settle(bench, client)
    assert refusal(bench) is ErrorCode.GROUP_ID_NOT_FOUND


def refusal(bench: Bench) -> ErrorCode:
    request = MemberHeartbeat("m1", 0, None, None, 60_000, ("a",), None, None, {}, "c", "/h")
    return bench.answer(bench.coordinator.consumer_groups.heartbeat(request, GROUP), HeartbeatResult).error


def test_offsets_of_a_living_consumer_group_do_not_expire_and_those_of_an_empty_one_do(bench: Bench) -> None:
    client = new(bench, "m1")
    commit(bench, client, 7)
    bench.skew += 8 * 24 * 3600
    client.step() if "m1" in consumer(bench).members else None
    bench.run(bench.coordinator.expire_offsets())
    assert kept(bench) == 7
    client.leave()
    bench.run(bench.coordinator.expire_offsets())
    assert kept(bench) is None
    assert bench.group is None, "and the group goes with them"
    new_term(bench)
    assert bench.group is None


def commit(bench: Bench, client: NewClient, offset: int) -> ErrorCode:
    request = Commit(
        GROUP, Committer(client.member_id, None, client.epoch), -1, {("a", 0): CommittedOffset(offset, -1, "")}
    )
    return bench.answer(bench.coordinator.commit(request), lambda error: {("a", 0): error})["a", 0]


def kept(bench: Bench) -> int | None:
    key = OffsetCommitKey(GROUP, "a", 0)
    found = bench.shard.offsets.get(GROUP, {}).get((key.topic, key.partition))
    return None if found is None else found.offset


def test_commits_are_those_of_the_members_epoch(bench: Bench) -> None:
    client = new(bench, "m1")
    assert commit(bench, client, 3) is NONE
    client.epoch += 1
    assert commit(bench, client, 4) is ErrorCode.STALE_MEMBER_EPOCH
    assert kept(bench) == 3


def delete(bench: Bench) -> ErrorCode:
    def refused(error: ErrorCode) -> dict[str, DeletedGroup]:
        return {GROUP: DeletedGroup(error)}

    return bench.answer(bench.coordinator.delete_groups([GROUP]), refused)[GROUP].error


def test_an_empty_consumer_group_is_deleted_and_stays_so(bench: Bench) -> None:
    client = new(bench, "m1")
    commit(bench, client, 3)
    assert delete(bench) is ErrorCode.NON_EMPTY_GROUP
    client.leave()
    assert delete(bench) is NONE
    new_term(bench)
    assert bench.group is None
    assert kept(bench) is None


def test_a_classic_member_makes_an_empty_consumer_group_its_own(bench: Bench) -> None:
    client = new(bench, "m1")
    commit(bench, client, 3)
    client.leave()
    member = old(bench, "old")
    assert len(member.owned) == 4
    assert isinstance(bench.group, ClassicGroup)
    assert kept(bench) == 3


def test_a_consumer_makes_an_empty_classic_group_its_own(bench: Bench) -> None:
    member = old(bench, "old")
    member.leave()
    assert len(new(bench, "m1").owned) == 4
    new_term(bench)
    assert isinstance(bench.group, ConsumerGroup)


def test_members_are_put_out_by_an_administrator(bench: Bench) -> None:
    first, second = new(bench, "m1", instance="i"), new(bench, "m2")
    settle(bench, first, second)
    leaving = [
        MemberIdentity("", "i"),
        MemberIdentity("m2", None),
        MemberIdentity("nobody", None),
        MemberIdentity("", "nobody"),
    ]
    told = bench.answer(bench.coordinator.leave(GROUP, leaving), lambda error: [error])
    assert told == [NONE, NONE, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.UNKNOWN_MEMBER_ID]
    assert bench.group is not None
    assert not bench.group.members


def test_a_group_that_fails_half_way_is_read_again(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    client = new(bench, "m1")
    before = terms(bench)

    def fails(*_: object) -> None:
        raise RuntimeError("nobody thought of this")

    monkeypatch.setattr(consumer(bench).subscriptions, "metadata_hash", fails)
    with pytest.raises(RuntimeError):
        new(bench, "m2")
    bench.run(bench._calm())
    assert terms(bench) == before + 1
    assert set(consumer(bench).members) == {"m1"}
    client.step()
    assert len(client.owned) == 4


# --- writes that are cut short


@pytest.mark.parametrize("cut", range(6))
def test_a_member_whose_deletion_is_cut_short_is_wholly_gone_or_wholly_there(bench: Bench, cut: int) -> None:
    new(bench, "m1")
    bench.offsets.cut_next = cut
    bench.pass_time(50)
    bench.offsets.cut_next = None
    members = consumer(bench).members
    assert not members or sum(map(len, members["m1"].current.assigned.values())) == 4


@pytest.mark.parametrize("cut", [*range(14), 99])
def test_a_downgrade_that_is_cut_short_leaves_a_group_that_works(bench: Bench, cut: int) -> None:
    last, members = new(bench, "m1"), [old(bench, f"old{number}") for number in range(2)]
    settle(bench, last, *members)
    bench.offsets.spare, bench.offsets.cut_next = 1, cut  # the member's own deletion lands
    last.leave()
    bench.offsets.cut_next = None
    settle(bench, *members)
    bench.refresh()
    settle(bench, *members)
    assert isinstance(bench.group, ClassicGroup)
    assert sorted(index for one in members for _, index in one.owned) == [0, 1, 2, 3]


@pytest.mark.parametrize("cut", range(6))
def test_members_get_the_partitions_of_one_that_left_with_its_protocol_though_the_term_ended(
    bench: Bench, cut: int
) -> None:
    """The group is stored as a classic one, and the term ends before its members have joined again."""
    last, members = new(bench, "m1"), [old(bench, f"old{number}") for number in range(2)]
    settle(bench, last, *members)
    last.leave()
    assert isinstance(bench.group, ClassicGroup)
    new_term(bench)
    assert isinstance(bench.group, ClassicGroup)
    bench.offsets.cut_next = cut
    settle(bench, *members)
    bench.offsets.cut_next = None
    settle(bench, *members)
    assert sorted(index for one in members for _, index in one.owned) == [0, 1, 2, 3]


@pytest.mark.parametrize("spare", [0, 1])
@pytest.mark.parametrize("cut", [*range(14), 99])
def test_an_upgrade_that_is_cut_short_leaves_a_group_that_works(bench: Bench, cut: int, spare: int) -> None:
    members = [old(bench, f"old{number}") for number in range(2)]
    settle(bench, *members)
    bench.offsets.spare, bench.offsets.cut_next = spare, cut
    first = new(bench, "m1")
    bench.offsets.spare, bench.offsets.cut_next = 0, None
    for one in members:
        assert first.owned.isdisjoint(one.owned)
    settle(bench, first, *members)
    owned = [*first.owned, *(place for one in members for place in one.owned)]
    assert sorted(index for _, index in owned) == [0, 1, 2, 3]
    assert isinstance(bench.group, ConsumerGroup)


def test_a_group_whose_upgrade_was_cut_short_is_classic_again_before_its_next_member_is_let_in(bench: Bench) -> None:
    """All of the change was stored, and the member that caused it was not."""
    member = old(bench, "old")
    bench.offsets.cut_next = 99
    first = new(bench, "m1")
    forget_topics(bench)
    new_term(bench)
    first.beat()
    assert len([key for key in bench.stored() if isinstance(key, GroupMetadataKey | ConsumerGroupMetadataKey)]) == 1
    settle(bench, first, member)
    assert set(consumer(bench).members) == {"m1", member.member_id}
    assert len(first.owned) == len(member.owned) == 2


def test_members_of_a_group_that_turns_classic_are_asked_to_join_again_and_not_fenced(bench: Bench) -> None:
    """They revoke and commit then; who is fenced has lost its partitions and reads again."""
    last, member = new(bench, "m1"), old(bench, "old")
    settle(bench, last, member)
    last.leave()
    assert isinstance(bench.group, ClassicGroup)

    async def heartbeat() -> ErrorCode:
        return bench.coordinator.heartbeat(GROUP, member.member_id, None, member.generation)

    error = bench.answer(heartbeat(), ErrorCode)
    assert error is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_topic_that_is_deleted_is_taken_from_its_members_at_their_next_heartbeat(bench: Bench) -> None:
    client = new(bench, "m1", topics=("a", "b"))
    assert len(client.owned) == 6

    async def deleted() -> None:
        del bench.topics.partitions["a"]
        bench.coordinator.forget_topics({"a": None})

    bench.run(deleted())
    client.beat()
    assert len(client.assigned) == 2
    bench.topics.partitions["a"] = 4
    bench.topics.generation["a"] = 1
    bench.refresh()
    settle(bench, client)
    assert client.owned == {
        (bench.topics.topic_id(name), index) for name, count in (("a", 4), ("b", 2)) for index in range(count)
    }


def test_who_left_for_a_while_and_is_out_is_said_to_have_left(bench: Bench) -> None:
    client = new(bench, "m1", instance="i")
    client.leave(LEAVE_GROUP_STATIC_MEMBER_EPOCH)
    bench.skew += 50
    assert consumer(bench).tick(bench.now()) == [
        "member m1 (instance i) is out: it has left for a while and did not come back"
    ]


def test_a_member_may_leave_while_pulsar_is_away(bench: Bench) -> None:
    first, second = new(bench, "m1"), new(bench, "m2")
    settle(bench, first, second)
    bench.topics.unavailable = True
    forget_topics(bench)
    new_term(bench)
    first.leave()
    assert set(consumer(bench).members) == {"m2"}
    bench.topics.unavailable = False
    settle(bench, second)
    assert len(second.owned) == 4
