"""Shards and the coordinator over a log in memory: what is acknowledged is stored, and one leads at a time."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

import pytest
import uvloop

from kafka_sidecar.config import GroupsConfig
from kafka_sidecar.coordination.errors import CoordinatorError
from kafka_sidecar.coordination.term import Phase, Term
from kafka_sidecar.groups import deletion
from kafka_sidecar.groups.classic.machine import ClassicGroup
from kafka_sidecar.groups.classic.members import JoinResult, MemberIdentity, MemberJoin, MemberSync, SyncResult
from kafka_sidecar.groups.coordinator import Commit, CommittedOffset, Coordinator
from kafka_sidecar.groups.topics_image import TopicsImage
from kafka_sidecar.groups.vocabulary import Committer, Now
from kafka_sidecar.wire.error_code import ErrorCode
from tests.support.group_members import NO_MEMBER
from tests.support.memory_term_log import MemoryOffsets, MemoryTermLog
from tests.support.memory_topics import MemoryTopics

NONE = ErrorCode.NONE
T = TypeVar("T")
T0 = ("t", 0)


@dataclass
class Sidecar:
    """A coordinator of one shard."""

    offsets: MemoryOffsets = field(default_factory=MemoryOffsets)
    wall: int = 1_000_000
    skew: float = 0.0

    def __post_init__(self) -> None:
        config = GroupsConfig(initial_rebalance_delay_ms=10, offsets_retention_minutes=1, offset_commit_timeout_ms=250)
        self.topics = MemoryTopics()
        image = TopicsImage(self.topics)
        self.coordinator = Coordinator(config, self.now, lambda name: name, image, lambda key, value: None)
        self.coordinator.begin([("__consumer_offsets-0", self.offsets.open)])
        (self.shard,) = self.coordinator.shards

    def now(self) -> Now:
        return Now(asyncio.get_running_loop().time() + self.skew, self.wall)

    async def lead(self) -> Sidecar:
        self.shard.term.elect()
        for _ in range(1_000):
            if self.shard.term.phase is Phase.LEADING:
                return self
            await asyncio.sleep(0.002)
        raise AssertionError("it does not lead")

    async def asked(self, question: Awaitable[T], refused: Callable[[ErrorCode], T]) -> T:
        """What is answered, or the refusal as a handler makes it."""
        try:
            return await asyncio.wait_for(question, 5)
        except CoordinatorError as error:
            return refused(error.error)

    def commit(
        self, offset: int, *, group: str = "g", member: str = "", generation: int = -1, metadata: str = ""
    ) -> asyncio.Task[Any]:
        request = Commit(group, Committer(member, None, generation), -1, {T0: CommittedOffset(offset, -1, metadata)})
        return asyncio.create_task(self.asked(self.coordinator.commit(request), lambda error: {T0: error}))

    async def joined(self, group: str = "g", member: str = "") -> JoinResult:
        request = MemberJoin(member, None, "c", "/h", 10_000, 60_000, "consumer", (("range", b""),), False, True, "m-1")
        return await self.asked(self.coordinator.join(request, group), JoinResult)

    async def synced(self, answer: JoinResult, part: bytes = b"part", group: str = "g") -> SyncResult:
        request = MemberSync(answer.member_id, None, answer.generation, None, None, {answer.member_id: part})
        return await self.asked(self.coordinator.sync(request, group), SyncResult)

    def kept(self, group: str = "g") -> int | None:
        self.coordinator.term_of(group)  # or it does not lead
        found = self.shard.offsets.get(group, {}).get(T0)
        return None if found is None else found.offset


async def successor(before: Sidecar) -> Sidecar:
    """Another sidecar that takes the log; the one before has not heard of the election yet, and does not come back."""
    before.shard.term._elected = False
    return await Sidecar(before.offsets).lead()


@pytest.fixture
async def sidecar() -> AsyncIterator[Sidecar]:
    one = await Sidecar().lead()
    yield one
    one.shard.term.depose("end")


async def test_a_commit_is_told_when_it_is_stored_and_not_before(sidecar: Sidecar) -> None:
    sidecar.offsets.hold_receipts = True
    commit = sidecar.commit(7)
    await asyncio.sleep(0.01)
    assert not commit.done()
    assert sidecar.kept() is None
    owner = sidecar.offsets.owner
    assert owner is not None
    owner.let_go()
    assert await commit == {T0: NONE}
    assert sidecar.kept() == 7


async def test_a_commit_that_is_not_stored_in_time_is_told_so_and_may_be_stored_all_the_same(sidecar: Sidecar) -> None:
    sidecar.offsets.hold_receipts = True
    commit = sidecar.commit(7)
    await asyncio.sleep(0.1)
    assert not commit.done()
    await asyncio.sleep(0.2)  # groups.offset_commit_timeout_ms is 250 here
    assert await commit == {T0: ErrorCode.COORDINATOR_NOT_AVAILABLE}
    assert sidecar.offsets.owner is not None
    sidecar.offsets.owner.let_go()
    assert sidecar.kept() == 7


async def test_the_next_term_knows_what_was_stored(sidecar: Sidecar) -> None:
    await sidecar.commit(7)
    answer = await sidecar.joined()
    assert (await sidecar.synced(answer)).assignment == b"part"
    other = await successor(sidecar)
    assert other.kept() == 7
    assert other.coordinator.heartbeat("g", answer.member_id, None, answer.generation) is NONE
    group = other.shard.groups["g"]
    assert isinstance(group, ClassicGroup)
    assert group.members[answer.member_id].assignment == b"part"
    other.shard.term.depose("end")


def test_a_heartbeat_is_answered_while_the_timer_of_its_group_is_late() -> None:
    """uvloop answers `call_at` of a time that is past with a handle that can't say when."""

    async def late() -> None:
        sidecar = await Sidecar().lead()
        answer = await sidecar.joined()
        await sidecar.synced(answer)
        sidecar.shard._timers.clear()
        sidecar.skew = -1_000.0  # the loop is far behind what is due
        for _ in range(2):  # in one turn of the loop
            assert sidecar.coordinator.heartbeat("g", answer.member_id, None, answer.generation) is NONE
        sidecar.shard.term.depose("end")

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(late())


@pytest.mark.parametrize("is_stored", [True, False])
async def test_what_is_pending_of_the_topic_that_has_come_since_outlives_that_news_too(
    sidecar: Sidecar, is_stored: bool
) -> None:
    old, new = uuid.uuid4(), uuid.uuid4()
    coordinator = sidecar.coordinator
    await coordinator.commit(Commit("g", NO_MEMBER, -1, {T0: CommittedOffset(100, -1, "", old)}))
    pending = Commit("g", NO_MEMBER, -1, {T0: CommittedOffset(3, -1, "", new)})
    sidecar.offsets.hold_receipts = not is_stored
    committing = asyncio.ensure_future(coordinator.commit_in_transaction(pending, 5, 1, coordinator.term_of("g")))
    await asyncio.sleep(0.01)
    await coordinator.forget_offsets({T0[0]: old})
    sidecar.offsets.hold_receipts = False
    assert sidecar.offsets.owner is not None
    sidecar.offsets.owner.let_go()
    assert await committing == {T0: NONE}
    assert sidecar.shard.offsets["g"][T0].topic_id == old, (
        "it counts for nobody, and its deletion would overtake the transaction"
    )
    await coordinator.end_transaction(0, 5, 1, True)
    assert sidecar.kept() == 3


class SlowLog(MemoryTermLog):
    """A receipt comes some milliseconds later."""

    def after_writes(self, done: Callable[[], None]) -> None:
        asyncio.get_running_loop().call_later(0.01, done)


class SlowOffsets(MemoryOffsets):
    def open(self) -> MemoryTermLog:
        return SlowLog(self)


@pytest.mark.parametrize("gap", [0.0, 0.005, 0.015])
async def test_of_two_transactions_that_end_together_the_later_offset_counts(gap: float) -> None:
    sidecar = await Sidecar(offsets=SlowOffsets()).lead()
    coordinator = sidecar.coordinator
    for producer, offset in ((7, 10), (8, 20)):
        pending = Commit("g", NO_MEMBER, -1, {T0: CommittedOffset(offset, -1, "")})
        assert await coordinator.commit_in_transaction(pending, producer, 1, coordinator.term_of("g")) == {T0: NONE}
    first = asyncio.ensure_future(coordinator.end_transaction(0, 7, 1, True))
    await asyncio.sleep(gap)
    await asyncio.gather(first, coordinator.end_transaction(0, 8, 1, True))
    assert (sidecar.kept(), len(sidecar.shard.pending)) == (20, 0)
    sidecar.shard.term.depose("end")


async def test_who_was_fenced_acknowledges_nothing(sidecar: Sidecar) -> None:
    await sidecar.commit(7)
    other = await successor(sidecar)
    with pytest.raises(CoordinatorError):
        await sidecar.coordinator.commit(Commit("g", NO_MEMBER, -1, {T0: CommittedOffset(8, -1, "")}))
    assert other.kept() == 7
    other.shard.term.depose("end")


async def test_who_was_replaced_and_has_not_heard_of_it_ends_no_transaction(sidecar: Sidecar) -> None:
    """It knows nothing of what the transaction has committed with its successor, and has nothing to write."""
    sidecar.offsets.tell_replaced = False
    other = await successor(sidecar)
    pending = Commit("g", NO_MEMBER, -1, {T0: CommittedOffset(42, -1, "")})
    assert await other.coordinator.commit_in_transaction(pending, 7, 1, other.coordinator.term_of("g")) == {T0: NONE}
    ending = asyncio.ensure_future(sidecar.coordinator.end_transaction(0, 7, 1, True))
    await asyncio.sleep(0.05)
    assert not ending.done()
    sidecar.shard.term.depose("it has heard of it")
    with pytest.raises(CoordinatorError):
        await ending
    await other.coordinator.end_transaction(0, 7, 1, True)
    assert other.kept() == 42
    other.shard.term.depose("end")


async def test_a_write_of_unknown_fate_is_not_acknowledged_and_the_log_says_what_became_of_it(sidecar: Sidecar) -> None:
    sidecar.offsets.lose_writes = True
    assert await sidecar.commit(9) == {T0: ErrorCode.NOT_COORDINATOR}
    sidecar.offsets.lose_writes = False
    await sidecar.lead()
    assert sidecar.offsets.terms == 2
    assert sidecar.kept() == 9  # it had landed


async def test_all_that_wait_are_told_when_the_term_ends(sidecar: Sidecar) -> None:
    sidecar.offsets.hold_receipts = True
    answer = await sidecar.joined()
    sync = asyncio.create_task(sidecar.synced(answer))
    joins = asyncio.create_task(sidecar.joined("other"))
    commit = sidecar.commit(1, group="third")
    await asyncio.sleep(0)
    sidecar.shard.term.depose("the election chose another")
    assert (await sync).error is ErrorCode.NOT_COORDINATOR
    assert (await joins).error is ErrorCode.NOT_COORDINATOR
    assert await commit == {T0: ErrorCode.NOT_COORDINATOR}
    with pytest.raises(CoordinatorError) as refused:
        sidecar.coordinator.describe("g")
    assert refused.value.error is ErrorCode.NOT_COORDINATOR


async def test_a_process_that_stood_still_loads_its_groups_again_before_it_answers(sidecar: Sidecar) -> None:
    await sidecar.commit(7)
    sidecar.skew = 30.0
    with pytest.raises(CoordinatorError):
        sidecar.coordinator.term_of("g")
    await sidecar.lead()
    assert sidecar.offsets.terms == 2
    assert sidecar.kept() == 7


async def test_a_deleted_group_is_gone_with_what_was_committed_before(sidecar: Sidecar) -> None:
    sidecar.offsets.hold_receipts = True
    commit = sidecar.commit(7)
    delete = asyncio.create_task(sidecar.coordinator.delete_groups(["g"]))
    await asyncio.sleep(0)
    sidecar.offsets.hold_receipts = False
    assert sidecar.offsets.owner is not None
    sidecar.offsets.owner.let_go()
    assert await commit == {T0: NONE}
    assert await delete == {"g": (NONE, [T0])}
    assert sidecar.kept() is None
    other = await successor(sidecar)
    assert other.kept() is None
    assert "g" not in other.shard.groups
    other.shard.term.depose("end")


async def test_nobody_is_told_that_a_group_is_gone_while_its_deletion_may_fail(sidecar: Sidecar) -> None:
    sidecar.offsets.hold_receipts = True
    commit = sidecar.commit(7)
    deletes = [asyncio.create_task(sidecar.coordinator.delete_groups(["g"])) for _ in range(2)]
    for _ in range(5):
        await asyncio.sleep(0)
    owner = sidecar.offsets.owner
    assert owner is not None
    append = owner.append

    def holds(records: Sequence[Any], stored: Callable[[], None]) -> None:
        sidecar.offsets.hold_receipts = True
        append(records, stored)

    owner.append = holds  # type: ignore[method-assign]
    owner.let_go()
    assert await commit == {T0: NONE}
    for _ in range(5):
        await asyncio.sleep(0)
    assert not any(delete.done() for delete in deletes)
    sidecar.shard.term.depose("another leads")
    assert [await delete for delete in deletes] == [{"g": (ErrorCode.NOT_COORDINATOR, ())}] * 2


async def test_offsets_of_an_empty_group_expire_and_those_of_a_living_one_do_not(sidecar: Sidecar) -> None:
    await sidecar.commit(1, group="alone")
    answer = await sidecar.joined("lives")
    await sidecar.synced(answer, group="lives")
    await sidecar.commit(2, group="lives", member=answer.member_id, generation=answer.generation)
    gone = await sidecar.joined("left")
    await sidecar.synced(gone, group="left")
    await sidecar.commit(3, group="left", member=gone.member_id, generation=gone.generation)
    await sidecar.coordinator.leave("left", [MemberIdentity(gone.member_id, None)])
    sidecar.wall += 59_999
    await sidecar.coordinator.expire_offsets()
    assert [sidecar.kept(group) for group in ("alone", "lives", "left")] == [1, 2, 3]
    sidecar.wall += 1
    await sidecar.coordinator.expire_offsets()
    assert sidecar.kept("alone") is None
    assert sidecar.kept("left") is None
    assert set(sidecar.shard.groups) == {"lives"}
    assert sidecar.kept("lives") == 2


async def test_bad_requests_are_refused(sidecar: Sidecar) -> None:
    assert await sidecar.commit(1, metadata="x" * 5_000) == {T0: ErrorCode.OFFSET_METADATA_TOO_LARGE}
    assert await sidecar.commit(1, member="m", generation=3) == {T0: ErrorCode.GROUP_ID_NOT_FOUND}
    with pytest.raises(CoordinatorError) as refused:
        sidecar.coordinator.term_of("")
    assert refused.value.error is ErrorCode.INVALID_GROUP_ID
    short = MemberJoin("", None, "c", "/h", 10, 60_000, "consumer", (("range", b""),), False, True, "m-1")
    answer = await sidecar.coordinator.join(short, "g")
    assert answer.error is ErrorCode.INVALID_SESSION_TIMEOUT
    assert (await sidecar.joined("unknown", member="nobody")).error is ErrorCode.UNKNOWN_MEMBER_ID
    assert "unknown" not in sidecar.shard.groups


async def test_who_asks_what_is_committed_sees_the_commit_before_it(sidecar: Sidecar) -> None:
    sidecar.offsets.hold_receipts = True
    commit = sidecar.commit(7)
    await asyncio.sleep(0)
    asked = asyncio.create_task(sidecar.coordinator.offsets("g"))
    await asyncio.sleep(0.01)
    assert not asked.done()
    assert sidecar.offsets.owner is not None
    sidecar.offsets.owner.let_go()
    assert (await asked)[T0].offset == 7  # type: ignore[index]
    assert await commit == {T0: NONE}


async def test_a_commit_under_way_does_not_expire(sidecar: Sidecar) -> None:
    await sidecar.commit(7)
    sidecar.wall += 600_000
    sidecar.offsets.hold_receipts = True
    commit = sidecar.commit(8)
    await asyncio.sleep(0)
    await sidecar.coordinator.expire_offsets()
    sidecar.offsets.hold_receipts = False
    assert sidecar.offsets.owner is not None
    sidecar.offsets.owner.let_go()
    assert await commit == {T0: NONE}
    other = await successor(sidecar)
    assert other.kept() == 8
    other.shard.term.depose("end")


async def test_a_producer_that_is_lost_while_the_log_is_read_is_not_led_with() -> None:
    one = Sidecar()
    one.offsets.lose_when_read = 1
    await one.lead()
    assert one.offsets.terms == 2, "the first was lost as it was read"
    assert await one.commit(3) == {T0: NONE}
    one.shard.term.depose("end")


async def test_an_unexpected_failure_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafka_sidecar.coordination.term.FIRST_DELAY", 0.0)
    one = Sidecar()
    one.offsets.fail_reads = 2
    await one.lead()
    assert one.offsets.terms == 3
    one.shard.term.depose("end")


async def test_to_be_deposed_at_any_moment_is_no_error_and_the_next_election_counts() -> None:
    for turns in range(8):
        one = Sidecar()
        one.shard.term.elect()
        for _ in range(turns):
            await asyncio.sleep(0)
        one.shard.term.depose("the election chose another")
        assert one.shard.term.phase is Phase.WAITING
        await one.lead()
        assert await one.commit(1) == {T0: NONE}
        one.shard.term.depose("end")


async def test_a_protocol_named_twice_counts_once(sidecar: Sidecar) -> None:
    request = MemberJoin(
        "", None, "c", "/h", 10_000, 60_000, "consumer", (("range", b""), ("range", b"x")), False, True, "m-1"
    )
    answer = await sidecar.coordinator.join(request, "g")
    assert (answer.error, answer.protocol) == (NONE, "range")


async def test_a_group_that_no_entry_can_hold_is_refused_and_the_others_live_on(sidecar: Sidecar) -> None:
    await sidecar.commit(1, group="other")
    answer = await sidecar.joined()
    sidecar.offsets.max_size = 200
    assert (await sidecar.synced(answer, part=b"x" * 500)).error is ErrorCode.UNKNOWN_SERVER_ERROR
    assert sidecar.kept("other") == 1
    assert sidecar.offsets.terms == 1


@pytest.mark.parametrize("field", ["client_id", "instance_id", "new_member_id"])
async def test_a_name_that_no_record_can_hold_is_refused_and_disturbs_nobody(sidecar: Sidecar, field: str) -> None:
    request = MemberJoin("", None, "c", "/h", 10_000, 60_000, "consumer", (("range", b""),), False, True, "m-1")
    answer = await sidecar.coordinator.join(request._replace(**cast(Any, {field: "\ufffd" * 11_000})), "g")
    assert answer.error is ErrorCode.INVALID_REQUEST
    assert sidecar.offsets.terms == 1


async def test_a_late_commit_does_not_hide_what_is_wrong_with_a_partition(sidecar: Sidecar) -> None:
    sidecar.offsets.hold_receipts = True
    offsets = {T0: CommittedOffset(1, -1, ""), ("t", 1): CommittedOffset(1, -1, "x" * 5_000)}
    errors = await sidecar.coordinator.commit(Commit("g", NO_MEMBER, -1, offsets))
    assert errors == {T0: ErrorCode.COORDINATOR_NOT_AVAILABLE, ("t", 1): ErrorCode.OFFSET_METADATA_TOO_LARGE}


async def test_a_transaction_ends_while_others_commit_on_and_on(sidecar: Sidecar) -> None:
    coordinator = sidecar.coordinator
    pending = Commit("g", NO_MEMBER, -1, {T0: CommittedOffset(7, -1, "")})
    assert await coordinator.commit_in_transaction(pending, 5, 1, coordinator.term_of("g")) == {T0: NONE}
    sidecar.offsets.hold_receipts = True
    owner = sidecar.offsets.owner
    assert owner is not None
    ending = asyncio.ensure_future(coordinator.end_transaction(0, 5, 1, True))
    commits = []
    for offset in range(100, 110):
        commits.append(sidecar.commit(offset))
        await asyncio.sleep(0)
        receipts, owner._held = owner._held, []
        commits.append(sidecar.commit(offset))
        await asyncio.sleep(0)  # before the first receipt comes, another is on its way
        for receipt in receipts:
            receipt()
        await asyncio.sleep(0.001)
    assert ending.done()
    owner.let_go()
    assert [await commit for commit in commits] == [{T0: NONE}] * len(commits)
    assert sidecar.kept() == 109, "what was committed behind it counts"


async def test_a_retention_of_all_time_is_one(sidecar: Sidecar) -> None:
    forever = Commit("g", NO_MEMBER, 2**63 - 1, {T0: CommittedOffset(7, -1, "")})
    assert await sidecar.coordinator.commit(forever) == {T0: NONE}


@pytest.mark.parametrize("deletes", ["the offset", "the group"])
async def test_what_is_deleted_is_not_committed_by_a_transaction_that_was_open(sidecar: Sidecar, deletes: str) -> None:
    await sidecar.commit(1, member="", group="g")
    coordinator = sidecar.coordinator
    pending = Commit("g", NO_MEMBER, -1, {T0: CommittedOffset(7, -1, "")})
    assert await coordinator.commit_in_transaction(pending, 5, 1, coordinator.term_of("g")) == {T0: NONE}
    if deletes == "the offset":
        assert await coordinator.delete_offsets("g", [T0]) == {T0: NONE}
    else:
        assert (await coordinator.delete_groups(["g"]))["g"].error is NONE
    await coordinator.end_transaction(0, 5, 1, True)
    assert sidecar.kept() is None
    other = await successor(sidecar)
    assert other.kept() is None
    other.shard.term.depose("end")


@pytest.mark.parametrize("deletes", ["the offset", "the group"])
async def test_what_is_deleted_is_not_committed_by_a_transaction_that_is_just_ending(
    sidecar: Sidecar, deletes: str
) -> None:
    coordinator = sidecar.coordinator
    assert await coordinator.commit(Commit("g", NO_MEMBER, -1, {("t", 1): CommittedOffset(1, -1, "")})) == {
        ("t", 1): NONE
    }
    pending = Commit("g", NO_MEMBER, -1, {T0: CommittedOffset(7, -1, "")})
    assert await coordinator.commit_in_transaction(pending, 5, 1, coordinator.term_of("g")) == {T0: NONE}
    sidecar.offsets.hold_receipts = True
    owner = sidecar.offsets.owner
    assert owner is not None
    other = sidecar.commit(1, group="other")
    await asyncio.sleep(0)
    ending = asyncio.ensure_future(coordinator.end_transaction(0, 5, 1, True))
    await asyncio.sleep(0)
    deletion: Awaitable[Any] = (
        coordinator.delete_offsets("g", [T0]) if deletes == "the offset" else coordinator.delete_groups(["g"])
    )
    deleting = asyncio.ensure_future(deletion)
    while not (ending.done() and deleting.done()):
        await asyncio.sleep(0)
        owner.let_go()
    owner.let_go()
    assert await deleting == ({T0: NONE} if deletes == "the offset" else {"g": (NONE, [("t", 1), T0])})
    await asyncio.gather(ending, other)
    assert sidecar.kept() is None
    assert (coordinator.describe("g") is None) is (deletes == "the group")


async def test_many_groups_are_deleted_in_pieces_and_what_is_on_its_way_is_looked_through_once_for_each(
    sidecar: Sidecar, monkeypatch: pytest.MonkeyPatch
) -> None:
    groups = [f"g{number}" for number in range(100)]
    for group in groups:
        await sidecar.commit(1, group=group)
    monkeypatch.setattr(deletion, "DELETED_TOGETHER", 50)  # a group and its offset
    looks = []
    under_way = cast(Any, Term.under_way).fget

    def looked(term: Term[Any]) -> object:
        looks.append(term)
        return under_way(term)

    monkeypatch.setattr(Term, "under_way", property(looked))
    assert await sidecar.coordinator.delete_groups([*groups, "none", groups[0]]) == {
        **dict.fromkeys(groups, (NONE, [T0])),
        "none": (ErrorCode.GROUP_ID_NOT_FOUND, ()),
    }
    assert not sidecar.shard.groups
    assert len(looks) == 5


async def test_what_is_committed_behind_a_deletion_is_not_told_as_deleted(sidecar: Sidecar) -> None:
    await sidecar.commit(1)
    sidecar.offsets.hold_receipts = True
    deleting = asyncio.ensure_future(sidecar.coordinator.delete_groups(["g"]))
    owner = sidecar.offsets.owner
    assert owner is not None
    again: asyncio.Task[Any] | None = None
    while not deleting.done():
        await asyncio.sleep(0)
        if again is None and not sidecar.shard.groups:
            again = sidecar.commit(2)
            await asyncio.sleep(0.01)  # it is on its way then
        owner.let_go()
    assert await deleting == {"g": (NONE, [])}
    assert again is not None
    owner.let_go()
    assert await again == {T0: NONE}
    assert sidecar.kept() == 2


async def test_a_commit_of_the_topic_that_has_come_since_outlives_the_news_that_the_one_before_is_gone(
    sidecar: Sidecar,
) -> None:
    old, new = uuid.uuid4(), uuid.uuid4()

    def commit(offset: int, topic_id: uuid.UUID) -> Awaitable[Any]:
        return sidecar.coordinator.commit(Commit("g", NO_MEMBER, -1, {T0: CommittedOffset(offset, -1, "", topic_id)}))

    await commit(100, old)
    sidecar.offsets.hold_receipts = True
    late = asyncio.ensure_future(commit(3, new))
    await asyncio.sleep(0)
    sidecar.coordinator.forget_topics({T0[0]: old})
    await sidecar.coordinator.forget_offsets({T0[0]: old})
    sidecar.offsets.hold_receipts = False
    assert sidecar.offsets.owner is not None
    sidecar.offsets.owner.let_go()
    assert await late == {T0: NONE}
    assert sidecar.kept() == 3
