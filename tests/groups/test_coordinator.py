"""Shards and the coordinator over a log in memory: what is acknowledged is stored, and one leads at a time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
import uvloop
from kio.schema.errors import ErrorCode

from handler.config import GroupsConfig
from handler.coordination.errors import NotLeading
from handler.coordination.term import Phase
from handler.groups.classic.machine import ClassicGroup
from handler.groups.classic.members import JoinGroupRequest, JoinGroupResponse, MemberIdentity, SyncGroupRequest, SyncGroupResponse
from handler.groups.coordinator import Commit, CommittedOffset, Coordinator
from handler.groups.machine import Now
from handler.groups.topics_image import TopicsImage
from tests.support.memory_term_log import MemoryOffsets
from tests.support.memory_topics import MemoryTopics

NONE = ErrorCode.none
T0 = ("t", 0)


@dataclass
class Sidecar:
    """A coordinator of one shard."""

    offsets: MemoryOffsets = field(default_factory=MemoryOffsets)
    wall: int = 1_000_000
    skew: float = 0.0

    def __post_init__(self) -> None:
        config = GroupsConfig(initial_rebalance_delay_ms=10, offsets_retention_minutes=1)
        self.topics = MemoryTopics()
        self.coordinator = Coordinator(config, self.now, lambda name: name, TopicsImage(self.topics), lambda key, value: None)
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

    async def asked(self, question: Callable[[Callable[..., None]], None]) -> Any:
        told: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        question(lambda *answer: None if told.done() else told.set_result(answer[0] if len(answer) == 1 else answer))
        return await asyncio.wait_for(told, 5)

    def commit(self, offset: int, *, group: str = "g", member: str = "", generation: int = -1, metadata: str = "") -> asyncio.Task[Any]:
        request = Commit(group, member, None, generation, -1, {T0: CommittedOffset(offset, -1, metadata)})
        return asyncio.create_task(self.asked(lambda told: self.coordinator.commit(request, told)))

    async def joined(self, group: str = "g", member: str = "") -> JoinGroupResponse:
        request = JoinGroupRequest(member, None, "c", "/h", 10_000, 60_000, "consumer", (("range", b""),), False, True, "m-1")
        answer = await self.asked(lambda told: self.coordinator.join(request, group, told))
        assert isinstance(answer, JoinGroupResponse)
        return answer

    async def synced(self, answer: JoinGroupResponse, part: bytes = b"part", group: str = "g") -> SyncGroupResponse:
        request = SyncGroupRequest(answer.member_id, None, answer.generation, None, None, {answer.member_id: part})
        told = await self.asked(lambda told: self.coordinator.sync(request, group, told))
        assert isinstance(told, SyncGroupResponse)
        return told

    def kept(self, group: str = "g") -> int | None:
        self.coordinator.places(group)  # or it does not lead
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
    await asyncio.sleep(0.01)
    sidecar.coordinator.beat()
    await asyncio.sleep(0)
    assert not commit.done()
    sidecar.skew += 6.0  # groups.offset_commit_timeout_ms is 5,000
    sidecar.coordinator.beat()
    assert await commit == {T0: ErrorCode.coordinator_not_available}
    assert sidecar.offsets.owner is not None
    sidecar.offsets.owner.let_go()
    assert sidecar.kept() == 7


async def test_commits_that_are_told_are_not_kept_until_they_would_be_late(sidecar: Sidecar) -> None:
    for offset in range(20):
        await sidecar.commit(offset)
    assert len(sidecar.coordinator._committing) <= 1


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
        sidecar.shard._alarms.clear()
        sidecar.skew = -1_000.0  # the loop is far behind what is due
        for _ in range(2):  # in one turn of the loop
            assert sidecar.coordinator.heartbeat("g", answer.member_id, None, answer.generation) is NONE
        sidecar.shard.term.depose("end")

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(late())


async def test_who_was_fenced_acknowledges_nothing(sidecar: Sidecar) -> None:
    await sidecar.commit(7)
    other = await successor(sidecar)
    with pytest.raises(NotLeading):
        sidecar.coordinator.commit(Commit("g", "", None, -1, -1, {T0: CommittedOffset(8, -1, "")}), lambda _: None)
    assert other.kept() == 7
    other.shard.term.depose("end")


async def test_a_write_of_unknown_fate_is_not_acknowledged_and_the_log_says_what_became_of_it(sidecar: Sidecar) -> None:
    sidecar.offsets.lose_writes = True
    assert await sidecar.commit(9) == {T0: ErrorCode.not_coordinator}
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
    assert (await sync).error is ErrorCode.not_coordinator
    assert (await joins).error is ErrorCode.not_coordinator
    assert await commit == {T0: ErrorCode.not_coordinator}
    with pytest.raises(NotLeading) as refused:
        sidecar.coordinator.describe("g")
    assert refused.value.error is ErrorCode.not_coordinator


async def test_a_process_that_stood_still_loads_its_groups_again_before_it_answers(sidecar: Sidecar) -> None:
    await sidecar.commit(7)
    sidecar.skew = 30.0
    with pytest.raises(NotLeading):
        sidecar.coordinator.places("g")
    await sidecar.lead()
    assert sidecar.offsets.terms == 2
    assert sidecar.kept() == 7


async def test_a_deleted_group_is_gone_with_what_was_committed_before(sidecar: Sidecar) -> None:
    sidecar.offsets.hold_receipts = True
    commit = sidecar.commit(7)
    delete = asyncio.create_task(sidecar.asked(lambda told: sidecar.coordinator.delete_group("g", told)))
    await asyncio.sleep(0)
    sidecar.offsets.hold_receipts = False
    assert sidecar.offsets.owner is not None
    sidecar.offsets.owner.let_go()
    assert await commit == {T0: NONE}
    assert await delete is NONE
    assert sidecar.kept() is None
    other = await successor(sidecar)
    assert other.kept() is None
    assert "g" not in other.shard.groups
    other.shard.term.depose("end")


async def test_offsets_of_an_empty_group_expire_and_those_of_a_living_one_do_not(sidecar: Sidecar) -> None:
    await sidecar.commit(1, group="alone")
    answer = await sidecar.joined("lives")
    await sidecar.synced(answer, group="lives")
    await sidecar.commit(2, group="lives", member=answer.member_id, generation=answer.generation)
    gone = await sidecar.joined("left")
    await sidecar.synced(gone, group="left")
    await sidecar.commit(3, group="left", member=gone.member_id, generation=gone.generation)
    await sidecar.asked(lambda told: sidecar.coordinator.leave("left", [MemberIdentity(gone.member_id, None)], told))
    sidecar.wall += 59_999
    sidecar.coordinator.expire_offsets()
    assert [sidecar.kept(group) for group in ("alone", "lives", "left")] == [1, 2, 3]
    sidecar.wall += 1
    sidecar.coordinator.expire_offsets()
    assert sidecar.kept("alone") is None
    assert sidecar.kept("left") is None
    assert set(sidecar.shard.groups) == {"lives"}
    assert sidecar.kept("lives") == 2


async def test_bad_requests_are_refused(sidecar: Sidecar) -> None:
    assert await sidecar.commit(1, metadata="x" * 5_000) == {T0: ErrorCode.offset_metadata_too_large}
    assert await sidecar.commit(1, member="m", generation=3) == {T0: ErrorCode.group_id_not_found}
    with pytest.raises(NotLeading) as refused:
        sidecar.coordinator.places("")
    assert refused.value.error is ErrorCode.invalid_group_id
    short = JoinGroupRequest("", None, "c", "/h", 10, 60_000, "consumer", (("range", b""),), False, True, "m-1")
    answer = await sidecar.asked(lambda told: sidecar.coordinator.join(short, "g", told))
    assert answer.error is ErrorCode.invalid_session_timeout
    assert (await sidecar.joined("unknown", member="nobody")).error is ErrorCode.unknown_member_id
    assert "unknown" not in sidecar.shard.groups


async def test_who_asks_what_is_committed_sees_the_commit_before_it(sidecar: Sidecar) -> None:
    sidecar.offsets.hold_receipts = True
    commit = sidecar.commit(7)
    await asyncio.sleep(0)
    asked = asyncio.create_task(sidecar.asked(lambda told: sidecar.coordinator.offsets("g", told)))
    await asyncio.sleep(0.01)
    assert not asked.done()
    assert sidecar.offsets.owner is not None
    sidecar.offsets.owner.let_go()
    assert (await asked)[T0].offset == 7
    assert await commit == {T0: NONE}


async def test_a_commit_under_way_does_not_expire(sidecar: Sidecar) -> None:
    await sidecar.commit(7)
    sidecar.wall += 600_000
    sidecar.offsets.hold_receipts = True
    commit = sidecar.commit(8)
    await asyncio.sleep(0)
    sidecar.coordinator.expire_offsets()
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
    monkeypatch.setattr("handler.coordination.term.FIRST_DELAY", 0.0)
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
    request = JoinGroupRequest("", None, "c", "/h", 10_000, 60_000, "consumer", (("range", b""), ("range", b"x")), False, True, "m-1")
    answer = await sidecar.asked(lambda told: sidecar.coordinator.join(request, "g", told))
    assert (answer.error, answer.protocol) == (NONE, "range")


async def test_a_group_that_no_entry_can_hold_is_refused_and_the_others_live_on(sidecar: Sidecar) -> None:
    await sidecar.commit(1, group="other")
    answer = await sidecar.joined()
    sidecar.offsets.max_size = 200
    assert (await sidecar.synced(answer, part=b"x" * 500)).error is ErrorCode.unknown_server_error
    assert sidecar.kept("other") == 1
    assert sidecar.offsets.terms == 1
