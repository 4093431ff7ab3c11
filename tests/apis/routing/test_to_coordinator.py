"""Requests about one group that keep their order wait while their coordinator loads."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any, Final

import pytest

from kafka_sidecar.apis.common import late
from kafka_sidecar.coordination.term import Phase, Term
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.message import Message
from kafka_sidecar.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kafka_sidecar.wire.messages.delete_groups import DeleteGroupsRequest
from kafka_sidecar.wire.messages.describe_groups import DescribeGroupsRequest
from kafka_sidecar.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kafka_sidecar.wire.messages.leave_group import LeaveGroupRequest
from kafka_sidecar.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafka_sidecar.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from tests.support.services import Sidecar

LOADING = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
JOIN = JoinGroupRequest(
    group_id="g",
    session_timeout_ms=10_000,
    protocol_type="consumer",
    protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
)


def commit(offset: int) -> OffsetCommitRequest:
    partition = OffsetCommitRequestPartition(committed_offset=offset)
    return OffsetCommitRequest(group_id="g", topics=[OffsetCommitRequestTopic(name="t", partitions=[partition])])


def error_of(answer: Any) -> ErrorCode:
    """A request's error, wherever its response has it."""
    for one in ("topics", "partitions", "results", "groups"):
        answer = getattr(answer, one)[0] if getattr(answer, one, ()) else answer
    error = getattr(answer, "error_code", None)
    return error if isinstance(error, ErrorCode) else answer.partitions[0].error_code


async def load(term: Term[Any]) -> None:
    term.elect()
    async with asyncio.timeout(5):
        while term.phase is not Phase.LOADING:  # noqa: ASYNC110 - nothing announces it
            await asyncio.sleep(0)


@pytest.fixture
async def sidecar() -> AsyncIterator[Sidecar]:
    """It loads until the log's `hold_reads` is set."""
    one = Sidecar()
    one.admin.make("t")
    one.offsets.hold_reads.clear()
    await load(one.shard.term)
    yield one
    await one.close()


# Those that keep their order.
WAITING: Final[dict[str, tuple[Callable[[], Message], int, ErrorCode]]] = {
    "OffsetCommit": (lambda: commit(7), 9, ErrorCode.NONE),
    "OffsetFetch": (lambda: OffsetFetchRequest(group_id="g"), 7, ErrorCode.NONE),
    "LeaveGroup": (lambda: LeaveGroupRequest(group_id="g", member_id="m"), 2, ErrorCode.UNKNOWN_MEMBER_ID),
    "ConsumerGroupHeartbeat": (
        lambda: ConsumerGroupHeartbeatRequest(group_id="g", member_id="m", member_epoch=3),
        1,
        ErrorCode.UNKNOWN_MEMBER_ID,
    ),
}
REFUSED: Final[dict[str, tuple[Callable[[], Message], int]]] = {
    "JoinGroup": (lambda: JOIN, 9),
    "DescribeGroups": (lambda: DescribeGroupsRequest(groups=["g"]), 6),
    "DeleteGroups": (lambda: DeleteGroupsRequest(groups_names=["g"]), 2),
    "OffsetFetch of many groups": (lambda: OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g")]), 9),
}


@pytest.mark.parametrize(("request_of", "version", "error"), WAITING.values(), ids=WAITING)
async def test_a_request_that_keeps_its_order_is_answered_when_its_coordinator_has_loaded(
    sidecar: Sidecar, request_of: Callable[[], Message], version: int, error: ErrorCode
) -> None:
    """librdkafka asks three times within half a second, then OffsetCommit's error reaches the application."""
    asked = sidecar.begin(request_of(), version)
    for _ in range(50):
        await asyncio.sleep(0)
    assert not asked.done(), "it waits"
    sidecar.offsets.hold_reads.set()
    async with asyncio.timeout(5):
        assert error_of(await asked) is error


@pytest.mark.parametrize("name", WAITING)
async def test_one_that_loads_for_longer_than_a_question_may_take_refuses(
    sidecar: Sidecar, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(late, "LATE_AFTER_SECONDS", 0.02)
    request_of, version, _ = WAITING[name]
    assert error_of(await sidecar.ask(request_of(), version)) is LOADING


async def test_many_that_wait_share_the_time_of_the_first(sidecar: Sidecar) -> None:
    loop = asyncio.get_running_loop()
    begun = loop.time()
    commits = [sidecar.begin(commit(offset), 9) for offset in range(10)]
    assert {error_of(answer) for answer in await asyncio.gather(*commits)} == {LOADING}
    assert loop.time() - begun < 1.1 * late.LATE_AFTER_SECONDS


@pytest.mark.parametrize(("request_of", "version"), REFUSED.values(), ids=REFUSED)
async def test_others_are_refused_meanwhile_as_by_kafka(
    sidecar: Sidecar, request_of: Callable[[], Message], version: int
) -> None:
    loop = asyncio.get_running_loop()
    begun = loop.time()
    assert error_of(await sidecar.ask(request_of(), version)) is LOADING
    assert loop.time() - begun < 0.5


async def test_commits_that_wait_keep_their_order(sidecar: Sidecar) -> None:
    """One that comes as soon as the coordinator has loaded does not overtake those that waited for that."""
    commits = [sidecar.begin(commit(offset), 9) for offset in range(5)]
    sidecar.offsets.hold_reads.set()
    term = sidecar.shard.term
    while term.phase is Phase.LOADING:  # noqa: ASYNC110 - nothing announces it
        await asyncio.sleep(0)
    commits.append(sidecar.begin(commit(5), 9))
    assert [error_of(answer) for answer in await asyncio.gather(*commits)] == [ErrorCode.NONE] * 6
    assert sidecar.shard.offsets["g"]["t", 0].offset == 5
    written = [value for key, value in sidecar.offsets.stored if b"t" in key and value is not None]
    assert len(written) >= 6


async def test_the_first_request_of_a_sidecar_waits_for_the_load_that_it_begins(sidecar: Sidecar) -> None:
    """It was not elected when the request came."""
    sidecar.shard.term.depose("not elected yet")
    leaders: Any = sidecar.services.groups.leaders
    elected = asyncio.Event()

    async def leader(_: str) -> None:
        await elected.wait()
        await load(sidecar.shard.term)

    leaders.leader = leader
    asked = sidecar.begin(commit(7), 9)
    elected.set()
    for _ in range(50):
        await asyncio.sleep(0)
    assert sidecar.shard.term.phase is Phase.LOADING
    assert not asked.done()
    sidecar.offsets.hold_reads.set()
    async with asyncio.timeout(5):
        assert error_of(await asked) is ErrorCode.NONE


async def test_who_waits_hears_at_once_that_the_term_has_ended(sidecar: Sidecar) -> None:
    asked = sidecar.begin(commit(7), 9)
    for _ in range(50):
        await asyncio.sleep(0)
    assert not asked.done()
    sidecar.shard.term.depose("the election chose another")
    async with asyncio.timeout(2):
        assert error_of(await asked) is ErrorCode.NOT_COORDINATOR
