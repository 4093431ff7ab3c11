"""Topics that a client has deleted: every sidecar of the fleet hears of it, and forgets what it knows of them."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, cast

import pytest

from kafka_sidecar.apis import a20_delete_topics
from kafka_sidecar.apis.common import deleted_topics
from kafka_sidecar.apis.common.deleted_topics import forget_here
from kafka_sidecar.fleet.peers import PeerUnavailable
from kafka_sidecar.internal_topics.moved_start import MovedStart
from kafka_sidecar.model.sidecar import SidecarInfo
from kafka_sidecar.pulsar.entry import Position
from kafka_sidecar.pulsar.errors import Unavailable
from kafka_sidecar.topics import lost_topics
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from tests.support.services import NAMESPACE, Sidecar, errors

DELETE = DeleteTopicsRequest(topics=[DeleteTopicState(name="t")])


class TellingPeers:
    """Other sidecars that hear of deletions: two of them don't answer."""

    def __init__(self) -> None:
        self.told: list[tuple[str, Mapping[str, uuid.UUID | None]]] = []

    async def topics_deleted(self, address: str, name: str, topics: Mapping[str, uuid.UUID | None]) -> None:
        if name == "gone":
            raise PeerUnavailable("the sidecar at gone:1 did not answer: UNAVAILABLE")
        if name == "silent":
            await asyncio.sleep(60)
        self.told.append((address, topics))


async def test_every_sidecar_that_is_listed_hears_of_a_deletion_before_the_client_does(
    sidecar: Sidecar, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def listed() -> list[SidecarInfo]:
        return [
            SidecarInfo(name, 0, "", f"{name}:1" if name != "unreachable" else "")
            for name in ("a", "gone", "silent", "unreachable", "b")
        ]

    peers = TellingPeers()
    monkeypatch.setattr(deleted_topics, "TELL_SECONDS", 0.05)
    monkeypatch.setattr(sidecar.services.groups.leaders, "known_others", listed)
    sidecar.services = replace(sidecar.services, peers=cast(Any, peers))
    sidecar.admin.make("t")
    topic_id = (await sidecar.catalog.find(sidecar.catalog.names.parse("t"))).topic_id
    answer = await sidecar.ask(DELETE, 6)
    assert errors(answer.responses) == [ErrorCode.NONE]
    assert peers.told == [(address, {NAMESPACE + "t": topic_id}) for address in ("a:1", "b:1")]
    (line,) = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert line.startswith(
        "2 of 4 sidecars may not know yet of deleted topics (t): gone:1: the sidecar at gone:1 did not answer"
    )
    assert line.endswith("; silent:1: no answer in time")


async def test_a_few_sidecars_that_do_not_answer_keep_nobody_else_from_hearing_of_a_deletion(
    sidecar: Sidecar, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def listed() -> list[SidecarInfo]:
        return [
            SidecarInfo("silent" if number in (5, 105) else "a", number, "", f"a:{number}") for number in range(250)
        ]

    peers = TellingPeers()
    monkeypatch.setattr(deleted_topics, "TELL_SECONDS", 0.2)
    monkeypatch.setattr(deleted_topics, "MOST_TELL_SECONDS", 0.4)
    monkeypatch.setattr(sidecar.services.groups.leaders, "known_others", listed)
    sidecar.services = replace(sidecar.services, peers=cast(Any, peers))
    sidecar.admin.make("t")
    await sidecar.ask(DELETE, 6)
    assert len(peers.told) == 248
    assert "2 of 250 sidecars" in caplog.text


async def test_many_sidecars_that_do_not_answer_hold_a_deletion_for_a_while_and_fill_no_log(
    sidecar: Sidecar, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def listed() -> list[SidecarInfo]:
        return [SidecarInfo("silent", number, "", f"silent:{number}") for number in range(450)]

    monkeypatch.setattr(deleted_topics, "TELL_SECONDS", 0.2)
    monkeypatch.setattr(deleted_topics, "MOST_TELL_SECONDS", 0.3)
    monkeypatch.setattr(sidecar.services.groups.leaders, "known_others", listed)
    sidecar.services = replace(sidecar.services, peers=cast(Any, TellingPeers()))
    topics = [f"t{number}" for number in range(100)]
    for topic in topics:
        sidecar.admin.make(topic)
    answer = await sidecar.ask(DeleteTopicsRequest(topics=[DeleteTopicState(name=topic) for topic in topics]), 6)
    assert set(errors(answer.responses)) == {ErrorCode.NONE}
    (line,) = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert "450 of 450 sidecars" in line
    assert "t9, 90 more" in line
    assert len(line) < 1_000


async def test_a_sidecar_that_hears_of_a_deletion_serves_nothing_of_the_topic(sidecar: Sidecar) -> None:
    for topic, partitions in (("t", 2), ("plain", 0), ("other", 1)):
        sidecar.admin.make(topic, partitions)
    names = [NAMESPACE + name for name in ("t-partition-0", "t-partition-1", "plain", "other-partition-0")]
    before = {name: sidecar.table.get(name) for name in names}
    for name in before:
        sidecar.logs[name].start_moved_to = MovedStart(Position(5, 0), 0)
    await forget_here(
        sidecar.services, {NAMESPACE + "t": uuid.UUID(int=7), NAMESPACE + "plain": None, "no://topic": None}
    )
    assert [name for name in names if sidecar.table.get(name) is before[name]] == [names[-1]]
    assert set(sidecar.services.log_starts.values) == set(names), "the one that deletes forgets them for all"


async def test_a_log_start_that_is_moved_while_pulsar_deletes_is_of_the_next_topic(sidecar: Sidecar) -> None:
    sidecar.admin.make("t", 2)
    logs = [NAMESPACE + f"t-partition-{number}" for number in range(2)]
    for log in logs:
        sidecar.table.get(log)
        sidecar.logs[log].start_moved_to = MovedStart(Position(5, 0), 3)
    later, delete = MovedStart(Position(6, 0), 2), sidecar.admin.delete_topic

    async def delete_slowly(topic: str, *, partitioned: bool) -> None:
        await delete(topic, partitioned=partitioned)
        sidecar.logs[logs[1]].start_moved_to = later  # somebody has made the topic again, and deleted records of it

    sidecar.admin.delete_topic = delete_slowly  # type: ignore[method-assign]
    answer = await sidecar.ask(DELETE, 6)
    assert errors(answer.responses) == [ErrorCode.NONE]
    assert sidecar.services.log_starts.values == {logs[1]: later}


@pytest.fixture
def undescribed(sidecar: Sidecar, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """A topic with an offset, that Pulsar can't describe until the returned function is called."""
    sidecar.admin.make("t")
    created_at = sidecar.admin.created_at

    async def no_answer(partition: str) -> str:
        raise Unavailable("500")

    monkeypatch.setattr(sidecar.admin, "created_at", no_answer)
    return lambda: monkeypatch.setattr(sidecar.admin, "created_at", created_at)


async def test_a_topic_that_can_not_be_described_for_a_moment_is_deleted_when_it_can(
    sidecar: Sidecar, undescribed: Callable[[], None]
) -> None:
    asyncio.get_running_loop().call_later(0.1, undescribed)
    answer = await sidecar.ask(DELETE, 6)
    assert errors(answer.responses) == [ErrorCode.NONE]
    assert answer.responses[0].topic_id is not None, "so what groups have committed of it is deleted, too"


async def test_a_topic_that_can_not_be_described_is_not_deleted_before_that_has_lasted(
    sidecar: Sidecar, undescribed: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(a20_delete_topics, "DESCRIBE_SECONDS", 0.0)
    monkeypatch.setattr(lost_topics, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(lost_topics, "ROUND_SECONDS", 0.01)
    (refused,) = (await sidecar.ask(DELETE, 6)).responses
    assert refused.error_code is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert str(refused.error_message).endswith("if that lasts for half a minute, it can be deleted by its name")
    assert NAMESPACE + "t" in sidecar.admin.there
    for _ in range(4):
        await asyncio.sleep(0.05)
        sidecar.skew += 10
    assert errors((await sidecar.ask(DELETE, 6)).responses) == [ErrorCode.NONE], "its log can't be loaded"
    assert NAMESPACE + "t" not in sidecar.admin.there


async def test_a_listing_that_fails_says_nothing_of_a_topic_that_can_not_be_described(
    sidecar: Sidecar, undescribed: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def no_answer(namespace: str) -> list[str]:
        raise Unavailable("500")

    monkeypatch.setattr(sidecar.admin, "logs", no_answer)
    asyncio.get_running_loop().call_later(0.1, undescribed)
    assert errors((await sidecar.ask(DELETE, 6)).responses) == [ErrorCode.NONE]
