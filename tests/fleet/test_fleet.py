"""Members that ping each other over real sockets, and a directory that is a list."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest

from kafka_sidecar.control.v1.control_pb2 import PingRequest
from kafka_sidecar.fleet import fleet as module
from kafka_sidecar.fleet import recent_nodes
from kafka_sidecar.fleet.fleet import Fleet
from kafka_sidecar.fleet.member import Member
from kafka_sidecar.fleet.peers import Peers
from kafka_sidecar.fleet.recent_nodes import RECENT_SECONDS
from kafka_sidecar.fleet.server import Answers, ControlServer
from kafka_sidecar.model.sidecar import SidecarInfo
from tests.support.fleet import TestFleet


class Listed:
    """What a sidecar finds in the directory."""

    def __init__(self, own_name: str, directory: dict[str, SidecarInfo]) -> None:
        self._own_name = own_name
        self._directory = directory
        self.lost_pulsar: set[str] = set()
        self.shared: set[int] = set()
        self.looked = 0

    def fleet(self) -> list[SidecarInfo]:
        return [one for one in self._directory.values() if one.name != self._own_name]

    def shared_nodes(self) -> set[int]:
        return self.shared

    def missing(self) -> set[str]:
        return self.lost_pulsar

    async def look_again(self) -> bool:
        self.looked += 1
        return self.looked > 1  # the directory is not there at first


class One:
    """A sidecar, as far as its fleet goes."""

    def __init__(self, node_id: int, directory: dict[str, SidecarInfo]) -> None:
        self.returned: list[int] = []
        self.name = f"sidecar-{node_id}"
        self.listed = Listed(self.name, directory)
        self._directory = directory
        self._loop = asyncio.get_running_loop()
        self._peers = Peers(self._loop.time)
        self.fleet = Fleet(
            Member(node_id, "127.0.0.1", 9000 + node_id),
            self.name,
            self.listed,
            self._peers,
            self._loop.time,
            self.returned.append,
        )
        nothing = cast(Any, None)
        answers = Answers(
            serve=nothing, topics_deleted=nothing, transactions=nothing, ping=self.fleet.on_ping, warm=nothing
        )
        self.control = ControlServer(self.name, answers)
        self.changes = 0

    def _on_change(self) -> None:
        self.changes += 1

    async def start(self) -> None:
        port = await self.control.start("127.0.0.1", 0)
        own = self.fleet.own
        self._directory[self.name] = SidecarInfo(self.name, own.node_id, f"{own.host}:{own.port}", f"127.0.0.1:{port}")
        await self.fleet.start(self._on_change)
        await self.fleet.serve()

    @property
    def sees(self) -> set[int]:
        return {member.node_id for member in self.fleet.view.leadership.members}

    @property
    def tells(self) -> set[int]:
        return {member.node_id for member in self.fleet.view.nodes}

    async def close(self) -> None:
        await self.fleet.close()
        await self._peers.close()
        await self.control.close()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 - it is told to nobody
            await asyncio.sleep(0.01)


@asynccontextmanager
async def members(count: int, directory: dict[str, SidecarInfo]) -> AsyncIterator[list[One]]:
    async with also([One(number, directory) for number in range(1, count + 1)]) as there:
        await until(lambda: all(one.sees == set(range(1, count + 1)) for one in there))
        yield there


@asynccontextmanager
async def also(there: list[One]) -> AsyncIterator[list[One]]:
    try:
        for one in there:
            await one.start()
        yield there
    finally:
        for one in there:
            await one.close()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PING_SECONDS", 0.05)
    monkeypatch.setattr(module, "PING_SECONDS_A_MEMBER", 0.0)
    monkeypatch.setattr(module, "LOOK_SECONDS", 0.0)
    monkeypatch.setattr(module, "JOIN_SECONDS", 0.1)


async def test_members_find_each_other_and_name_the_same_leaders() -> None:
    async with members(3, {}) as there:
        leaders = [
            [one.fleet.view.leadership.leader("orders", 16, index).node_id for index in range(16)] for one in there
        ]
        assert leaders[0] == leaders[1] == leaders[2]


async def test_one_that_is_silent_leads_nothing_and_stays_a_node_while_the_directory_has_it() -> None:
    directory: dict[str, SidecarInfo] = {}
    async with members(3, directory) as (first, second, third):
        before, changes = first.fleet.version, first.changes
        await third.fleet.close()
        await third.control.close()
        await until(lambda: first.sees == second.sees == {1, 2})
        assert first.tells == {1, 2, 3}
        assert (first.fleet.version > before, first.changes > changes) == (True, True)
        del directory[third.name]
        await until(lambda: first.tells == {1, 2})


async def test_members_stay_while_the_directory_is_empty() -> None:
    directory: dict[str, SidecarInfo] = {}
    async with members(3, directory) as there:
        kept = dict(directory)
        directory.clear()
        await asyncio.sleep(0.5)
        assert all(one.sees == {1, 2, 3} for one in there)
        directory.update(kept)


async def test_one_that_has_lost_pulsar_leads_nothing_until_it_is_back() -> None:
    """It answers pings, and clients reach it; but nothing can be written there."""
    directory: dict[str, SidecarInfo] = {}
    async with members(3, directory) as (first, second, third):
        del directory[third.name]
        for one in (first, second):
            one.listed.lost_pulsar = {third.name}
        await until(lambda: first.sees == second.sees == third.sees == {1, 2})
        assert first.tells == third.tells == {1, 2, 3}, (
            "clients give up what is in flight to a node that is told no more"
        )
        assert third.fleet.leads_nothing
        first.listed.lost_pulsar = second.listed.lost_pulsar = set()
        await until(lambda: first.sees == second.sees == third.sees == {1, 2, 3})


async def test_the_last_one_leads_whatever_those_who_are_gone_have_said() -> None:
    directory: dict[str, SidecarInfo] = {}
    async with members(2, directory) as (first, second):
        first.listed.lost_pulsar = {second.name}
        await until(lambda: first.sees == second.sees == {1})
        await first.fleet.close()
        await first.control.close()
        await until(lambda: second.sees == {2})


async def test_one_that_leaves_tells_all_others_at_once_and_stays_a_node_until_its_end() -> None:
    directory: dict[str, SidecarInfo] = {}
    async with members(3, directory) as (first, second, third):
        await first.fleet.leave()
        assert first.sees == second.sees == third.sees == {2, 3}
        assert first.fleet.leads_nothing
        del directory[first.name]
        await asyncio.sleep(0.3)
        assert second.tells == third.tells == {1, 2, 3}
        assert not first.fleet.sends_away(asyncio.get_running_loop().time())
        woken: list[bool] = []
        first.fleet.when_sending_away(lambda: woken.append(True))
        first.fleet.send_away()
        await until(lambda: bool(woken))
        assert (first.fleet.sends_away(asyncio.get_running_loop().time()), woken) == (True, [True])


async def test_clients_are_sent_away_when_all_have_seen_the_change(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SETTLED_SECONDS", 1.5)
    async with members(2, {}) as (first, second):
        woken: list[bool] = []
        first.fleet.when_sending_away(lambda: woken.append(True))
        await second.fleet.leave()
        assert not first.fleet.sends_away(asyncio.get_running_loop().time())
        await until(lambda: bool(woken))
        first.fleet.when_sending_away(lambda: woken.append(True))
        await asyncio.sleep(0.3)
        assert woken == [True], "once for each change"


async def test_the_last_one_leads_until_its_end() -> None:
    async with members(1, {}) as (only,):
        await only.fleet.leave()
        assert only.fleet.is_alone
        assert not only.fleet.leads_nothing


async def test_one_that_does_not_serve_yet_leads_nothing() -> None:
    directory: dict[str, SidecarInfo] = {}
    async with members(2, directory) as (first, _):
        late = One(3, directory)
        port = await late.control.start("127.0.0.1", 0)
        directory[late.name] = SidecarInfo(late.name, 3, "127.0.0.1:9003", f"127.0.0.1:{port}")
        await late.fleet.start(lambda: None)
        await asyncio.sleep(0.3)
        assert (first.sees, first.tells) == ({1, 2}, {1, 2, 3})
        await late.fleet.serve()
        await until(lambda: first.sees == {1, 2, 3})
        await late.close()


async def test_the_first_one_is_told_to_lead_from_when_it_serves() -> None:
    async with also([]) as there:
        only = One(1, {})
        there.append(only)
        assert not only.fleet.leads(only.fleet.own), "it may not have reached Pulsar"
        await only.start()
        assert only.fleet.leads(only.fleet.own)
        await only.fleet.leave()
        assert only.fleet.leads(only.fleet.own), "nobody has taken over"


async def test_one_that_has_come_is_told_at_once_and_leads_when_clients_reach_it_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    directory: dict[str, SidecarInfo] = {}
    async with members(2, directory) as (first, second):
        monkeypatch.setattr(module, "JOIN_SECONDS", 1.0)
        async with also([One(3, directory)]) as (third,):
            await until(lambda: first.tells == second.tells == third.tells == {1, 2, 3})
            assert first.sees == second.sees == third.sees == {1, 2}
            assert (third.fleet.leads_nothing, third.fleet.is_leaving) == (True, False)
            await until(lambda: first.sees == second.sees == third.sees == {1, 2, 3})


async def test_those_that_have_come_lead_at_once_when_nobody_else_does(monkeypatch: pytest.MonkeyPatch) -> None:
    directory: dict[str, SidecarInfo] = {}
    async with members(1, directory) as (old,):
        monkeypatch.setattr(module, "JOIN_SECONDS", 60.0)
        async with also([One(number, directory) for number in (2, 3)]) as new:
            await until(lambda: all(one.sees == {1} for one in new))
            await old.fleet.leave()
            assert not any(one.sees == {1} for one in new), "before the old one sends anybody away"
            await until(lambda: all(one.sees == {2, 3} for one in new))
            for _ in range(20):
                await asyncio.sleep(0.02)
                assert all(one.sees == {2, 3} for one in new), "and they go on"


async def test_a_stranger_that_pings_is_looked_for_in_the_directory_at_once() -> None:
    async with members(2, {}) as (first, _):
        looked = first.listed.looked
        first.fleet.on_ping(PingRequest(sender="stranger"))
        await until(lambda: first.listed.looked > looked)


async def test_control_ports_that_can_not_be_reached_leave_the_directory_to_be_believed() -> None:
    directory = {
        "far": SidecarInfo("far", 7, "far:9092", "127.0.0.1:1"),
        "silent": SidecarInfo("silent", 8, "silent:9092", ""),
    }
    one = One(1, directory)
    await one.start()
    await asyncio.sleep(0.5)
    assert one.sees == {1, 7, 8}
    await one.close()


async def test_one_address_for_all_is_no_fleet_and_an_old_name_is_not_another_member() -> None:
    directory = {
        "behind": SidecarInfo("behind", 7, "127.0.0.1:9001", ""),
        "old": SidecarInfo("old", 8, "far:9092", "127.0.0.1:1"),
        "new": SidecarInfo("new", 8, "far:9092", ""),
    }
    one = One(1, directory)
    await one.start()
    assert one.tells == {1, 8}
    await one.close()


async def test_nodes_of_a_moment_ago_are_told_beside_those_that_are_there() -> None:
    """Until they are there, or too long ago. Of a node id that several have nobody is told, and nobody behind the own
    address.
    """
    one = One(1, {"sidecar-2": SidecarInfo("sidecar-2", 2, "127.0.0.1:9002", "127.0.0.1:1")})
    for member, ago in (
        (Member(2, "elsewhere", 9002), 1.0),
        (Member(3, "there", 9003), 1.0),
        (Member(4, "there", 9004), RECENT_SECONDS),
        (Member(5, "there", 9005), 1.0),
        (Member(6, *one.fleet.own[1:3]), 1.0),
    ):
        one.fleet.was_there(member, ago)
    one.listed.shared = {5}
    await one.start()
    assert [(node.node_id, node.host) for node in one.fleet.view.nodes] == [(1, "127.0.0.1"), (2, "127.0.0.1")]
    assert one.fleet.view.recent == (Member(3, "there", 9003),)
    await until(lambda: one.sees == {1, 2})
    assert one.fleet.view.recent, "they lead nothing"
    await one.close()


@pytest.mark.parametrize(("ahead", "told"), [(30.0, True), (2 * RECENT_SECONDS, False)])
def test_a_node_whose_clock_is_ahead_is_told_for_no_longer_than_others(ahead: float, told: bool) -> None:
    fleet = TestFleet(Member(1, "here", 9001))
    fleet.was_there(Member(2, "there", 9002), -ahead)
    assert bool(fleet.view.recent) is told
    fleet.now += RECENT_SECONDS
    fleet.change()
    assert fleet.view.recent == ()


async def test_a_node_that_goes_is_told_for_a_moment_and_is_announced_if_it_comes_back_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    directory: dict[str, SidecarInfo] = {}
    async with members(2, directory) as (first, second):
        entry = directory.pop(second.name)
        await second.fleet.close()
        await second.control.close()
        await until(lambda: first.tells == {1})
        assert [member.node_id for member in first.fleet.view.recent] == [2]
        directory[second.name] = entry
        await until(lambda: first.tells == {1, 2})
        assert first.returned == [], "clients were told of it all the time"
        directory.clear()
        await until(lambda: first.tells == {1})
        monkeypatch.setattr(recent_nodes, "RECENT_SECONDS", 0.0)
        await until(lambda: first.fleet.view.recent == ())
        directory.update({second.name: entry, "new": SidecarInfo("new", 3, "127.0.0.1:9003", "127.0.0.1:1")})
        await until(lambda: first.tells == {1, 2, 3})
        assert first.returned == [2], "nobody has known the new one before"
