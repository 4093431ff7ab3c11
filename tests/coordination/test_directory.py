"""Who leads which shard, as the stats of the topic say it: how often they are asked, and what is told when they can't
be.
"""

from __future__ import annotations

import asyncio
import logging
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kafka_sidecar.config import GroupsConfig
from kafka_sidecar.coordination import leaders as module
from kafka_sidecar.coordination.candidate import ADVERTISED, CONTROL, FORMAT, NAMESPACE, NODE, RELEASE
from kafka_sidecar.coordination.directory import (
    FRESH_SECONDS,
    MISSING_SECONDS,
    SHARED_SECONDS,
    STALE_SECONDS,
    VISITORS,
    Address,
    Directory,
)
from kafka_sidecar.coordination.errors import CoordinatorError
from kafka_sidecar.coordination.leaders import Leaders
from kafka_sidecar.coordination.term import Phase
from kafka_sidecar.groups.service import SUBSCRIPTION, group_runtime
from kafka_sidecar.groups.vocabulary import Now
from kafka_sidecar.loop.clock import SYSTEM_CLOCK
from kafka_sidecar.loop.ids import new_id
from kafka_sidecar.model.sidecar import FIRST_RELEASE, SidecarInfo
from kafka_sidecar.pulsar.errors import NotPermitted, PulsarError, TopicMissing, Unavailable
from kafka_sidecar.telemetry.limits import RateLimitedLog
from kafka_sidecar.topics.names import TopicNames
from kafka_sidecar.wire.error_code import ErrorCode
from tests.support.memory_topics import MemoryTopics


def stats(leader: str) -> dict[str, Any]:
    metadata = {ADVERTISED: f"{leader}:9092", NODE: "1", CONTROL: f"{leader}:9093"}
    consumers = [{"consumerName": leader, "metadata": metadata}]
    return {"subscriptions": {SUBSCRIPTION: {"activeConsumerName": leader, "consumers": consumers}}}


class Admin:
    def __init__(self) -> None:
        self.questions = 0
        self.answer: dict[int, dict[str, Any]] | PulsarError | None = {0: stats("a")}

    @property
    def topics(self) -> Admin:
        return self

    async def partition_stats(self, _: str) -> dict[int, dict[str, Any]]:
        self.questions += 1
        await asyncio.sleep(0)
        if self.answer is None:
            await asyncio.sleep(60)
        if isinstance(self.answer, PulsarError):
            raise self.answer
        assert self.answer is not None
        return self.answer

    async def partitions(self, _: str) -> int:
        return 1


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


async def test_who_has_the_same_node_id_as_another_is_not_told_to_clients_but_named_in_the_log(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "kafka_sidecar.coordination.directory.seldom", RateLimitedLog(logging.getLogger("directory"), burst=1)
    )
    admin, clock = Admin(), Clock()
    found = [stats("a"), stats("b"), stats("me"), stats("c")]
    for number, node in enumerate(("1", "1", "2", "3")):
        found[number]["subscriptions"][SUBSCRIPTION]["consumers"][0]["metadata"][NODE] = node
    admin.answer = dict(enumerate(found))
    directory = Directory(cast(Any, admin), "t", SUBSCRIPTION, "me", clock)
    await directory.look_again()
    own = Address(2, "me:9092")
    told = [other.name for other in directory.advertised(own)]
    assert (told, caplog.messages) == (["c"], []), "one of them may have been started again elsewhere"
    clock.now += SHARED_SECONDS
    for _ in range(3):
        directory.advertised(own)
    (line,) = caplog.messages
    assert "sidecars have the same node id" in line
    assert "a:9092 (1), b:9092 (1). Give each" in line


async def test_who_has_the_node_id_of_this_sidecar_is_not_told_to_clients_and_named_in_the_log(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kafka_sidecar.coordination.directory.seldom", RateLimitedLog(logging.getLogger("directory")))
    admin, clock = Admin(), Clock()
    admin.answer = {0: stats("c")}
    directory = Directory(cast(Any, admin), "t", SUBSCRIPTION, "me", clock)
    await directory.look_again()
    clock.now += SHARED_SECONDS
    assert directory.advertised(Address(1, "c:9092")) == [], "it was started again, and is there twice"
    assert caplog.messages == []
    assert directory.advertised(Address(1, "me:9092")) == []
    assert "c:9092 (1), me:9092 (1)" in caplog.messages[-1]


async def test_those_who_ask_at_a_time_share_the_answer_for_a_moment() -> None:
    admin, clock = Admin(), Clock()
    directory = Directory(cast(Any, admin), "t", SUBSCRIPTION, "me", clock)
    found = await asyncio.gather(*(directory.leader(0) for _ in range(20)))
    assert {leader.name for leader in found if leader} == {"a"}
    assert admin.questions == 1
    clock.now += FRESH_SECONDS
    admin.answer = {0: stats("b")}
    leader = await directory.leader(0)
    assert leader is not None
    assert leader.name == "b"


async def test_a_failure_is_told_to_all_who_ask_in_the_same_moment() -> None:
    admin, clock = Admin(), Clock()
    directory = Directory(cast(Any, admin), "t", SUBSCRIPTION, "me", clock)
    admin.answer = Unavailable("no broker")
    for _ in range(50):  # as one who waits for an election asks
        with pytest.raises(Unavailable):
            await directory.leader(0)
    assert admin.questions == 1
    clock.now += FRESH_SECONDS
    admin.answer = {0: stats("a")}
    assert await directory.leader(0) is not None


async def test_a_quiet_look_that_failed_does_not_make_old_news_fresh() -> None:
    admin, clock = Admin(), Clock()
    directory = Directory(cast(Any, admin), "t", SUBSCRIPTION, "me", clock)
    assert await directory.leader(0) is not None
    clock.now += STALE_SECONDS
    admin.answer = Unavailable("no broker")
    quiet = asyncio.create_task(directory.refresh_if_stale())
    await asyncio.sleep(0)
    with pytest.raises(Unavailable):
        await directory.leader(0)
    await quiet


async def test_who_leads_a_group_is_told_or_refused_in_time_however_slow_the_stats_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("kafka_sidecar.coordination.leaders.ELECTION_SECONDS", 0.1)
    monkeypatch.setattr("kafka_sidecar.coordination.runtime.every", lambda *_: _Idle())
    monkeypatch.setattr("kafka_sidecar.coordination.runtime.Election", lambda *_: _Idle())
    admin = Admin()
    admin.answer = None
    own = SidecarInfo("me", 0, "")
    runtime = group_runtime(
        cast(Any, None),
        cast(Any, admin),
        GroupsConfig(),
        MemoryTopics(),
        lambda key, value: None,
        lambda: Now(0.0, 0),
        own,
        TopicNames("public/default", "public/__kafka"),
        SYSTEM_CLOCK,
        new_id,
    )
    async with asyncio.timeout(2):
        with pytest.raises(CoordinatorError) as refused:
            await runtime.leaders.leader("g")
    assert refused.value.error is ErrorCode.COORDINATOR_NOT_AVAILABLE
    await runtime.close()


class _Idle:
    def start(self) -> None: ...
    def close(self) -> None: ...
    async def stopped(self) -> None: ...


def listing(*names: str) -> dict[int, dict[str, Any]]:
    consumers = [{"consumerName": name, "metadata": {}} for name in names]
    return {0: {"subscriptions": {SUBSCRIPTION: {"activeConsumerName": names[0], "consumers": consumers}}}}


async def test_whoever_pulsar_lists_no_more_is_missing_after_a_while_if_it_lists_this_one() -> None:
    admin, clock = Admin(), Clock()
    directory = Directory(cast(Any, admin), "t", SUBSCRIPTION, "me", clock)

    async def look(*names: str, seconds: float) -> set[str]:
        clock.now += seconds
        admin.answer = listing(*names)
        assert await directory.look_again()
        return set(directory.missing)

    assert await look("me", "other", seconds=5) == set()
    assert await look("me", seconds=5) == set()
    assert await look("me", seconds=MISSING_SECONDS - 1) == set(), "a broker may have been started again"
    assert await look("me", seconds=1) == {"other"}
    assert await look("else", seconds=5) == {"other"}, "this one has lost Pulsar itself: it knows nothing new"
    assert await look("me", "other", seconds=5) == set()
    assert await look("nobody", seconds=60) == set()


async def test_a_leader_that_is_known_is_asked_though_pulsar_does_not_say_who_leads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "KNOWN_SECONDS", 0.05)
    admin, clock = Admin(), Clock()
    directory = Directory(cast(Any, admin), "t", SUBSCRIPTION, "me", clock)

    async def candidate() -> None: ...

    shard = SimpleNamespace(term=SimpleNamespace(phase=Phase.WAITING, name="t-0"))
    leaders = Leaders(SidecarInfo("me", 1, ""), cast(Any, [shard]), directory, candidate)
    first = await leaders.leader_of_shard(0)
    assert first is not None
    for answer in (None, Unavailable("the broker is away")):
        clock.now += FRESH_SECONDS
        admin.answer = answer
        async with asyncio.timeout(1):
            assert await leaders.leader_of_shard(0) == first
    await leaders.close()


async def test_a_sidecar_tells_its_release_and_what_it_can_read_and_one_that_does_not_is_the_first_release() -> None:
    admin = Admin()
    young, old, strange = stats("young"), stats("old"), stats("strange")
    young["subscriptions"][SUBSCRIPTION]["consumers"][0]["metadata"] |= {RELEASE: "0.3.0", FORMAT: "7"}
    strange["subscriptions"][SUBSCRIPTION]["consumers"][0]["metadata"] |= {RELEASE: "0.4.0", FORMAT: "many"}
    admin.answer = dict(enumerate([young, old, strange]))
    directory = Directory(cast(Any, admin), "t", SUBSCRIPTION, "me", Clock())
    await directory.look_again()
    told = {other.name: (other.release, other.stored_format) for other in directory.others}
    assert told == {"young": ("0.3.0", 7), "old": (FIRST_RELEASE, 0), "strange": ("0.4.0", 0)}


async def test_all_that_were_listed_at_this_look_or_the_one_before_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LISTING_SECONDS", 0.2)
    admin, told = Admin(), stats("a")
    told["subscriptions"][VISITORS] = {"activeConsumerName": "x", "consumers": [{"consumerName": "x", "metadata": {}}]}
    directory = Directory(cast(Any, admin), "t", SUBSCRIPTION, "me", Clock())

    async def candidate() -> None: ...

    leaders = Leaders(SidecarInfo("me", 1, ""), cast(Any, []), directory, candidate)

    async def known() -> set[str]:
        return {other.name for other in await leaders.known_others()}

    admin.answer = TopicMissing("nothing was coordinated yet")
    assert await known() == set()
    admin.answer = Unavailable("no broker")
    with pytest.raises(Unavailable):
        await known()
    admin.answer = {0: told}
    assert await known() == {"a", "x"}, "x coordinates nothing"
    for failure in (Unavailable("no broker"), TopicMissing("a young broker does not know it yet")):
        admin.answer = failure
        assert await known() == {"a", "x"}, "they were there at the last look"
        asyncio.get_running_loop().call_later(0.1, setattr, admin, "answer", {0: stats("b")})
        assert await known() == {"a", "x", "b"}, "a failed look is tried again"
        admin.answer = {0: told}
        await known()
    admin.answer, asked = NotPermitted("the role may not read stats"), admin.questions
    with pytest.raises(NotPermitted):
        await known()
    assert admin.questions == asked + 1, "it is not asked again"


async def test_who_coordinates_nothing_is_seen_and_tells_whose_topics_its_clients_mean() -> None:
    admin, told = Admin(), stats("a")
    mine = {"consumerName": "me", "metadata": {NAMESPACE: "public/default", FORMAT: "1"}}
    visitor = {"consumerName": "x", "metadata": {NAMESPACE: "public/team", FORMAT: "1"}}
    told["subscriptions"][SUBSCRIPTION]["consumers"][0]["metadata"] |= {NAMESPACE: "public/default", FORMAT: "1"}
    admin.answer = {0: told}
    directory = Directory(cast(Any, admin), "t", SUBSCRIPTION, "me", clock := Clock())

    async def candidate() -> None: ...

    leaders = Leaders(SidecarInfo("me", 1, "", namespace="public/default"), cast(Any, []), directory, candidate)
    assert not await leaders.know_whether_they_are_shared()
    told["subscriptions"][VISITORS] = {"activeConsumerName": "x", "consumers": [mine, visitor]}
    clock.now += FRESH_SECONDS
    await directory.look_again()
    assert leaders.are_shared
    assert await directory.namespaces() == {"public/default", "public/team"}
    assert [other.name for other in directory.others] == ["a"], "nobody is sent to it"
    assert directory.lists_visit
    visitor["metadata"] = {NAMESPACE: "public/team"}  # of a release that does not know it
    told["subscriptions"][VISITORS]["consumers"] = [visitor]
    clock.now += FRESH_SECONDS
    await directory.look_again()
    assert not leaders.are_shared
    assert directory.lists_visit is False, "the broker has forgotten this one"
    clock.now += STALE_SECONDS
    assert directory.lists_visit is None
