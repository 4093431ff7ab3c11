"""Members that ping each other over real sockets, and a directory that is a list."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest

from handler.control.v1.control_pb2 import PingRequest
from handler.coordination.directory import Leader
from handler.fleet import fleet as module
from handler.fleet.fleet import Fleet
from handler.fleet.member import Member
from handler.fleet.peers import Peers
from handler.fleet.server import Answers, ControlServer


class One:
    """A sidecar, as far as its fleet goes."""

    def __init__(self, node_id: int, directory: dict[str, Leader]) -> None:
        self.missing: set[str] = set()
        self.name = f"sidecar-{node_id}"
        self._directory = directory
        self._loop = asyncio.get_running_loop()
        self._peers = Peers(self._loop.time)
        self.looked = 0
        self.fleet = Fleet(
            Member(node_id, "127.0.0.1", 9000 + node_id),
            self.name,
            self._others,
            lambda: self.missing,
            self._look_again,
            self._peers,
            self._loop.time,
        )
        nothing = cast(Any, None)
        answers = Answers(serve=nothing, topics_deleted=nothing, transactions=nothing, ping=self.fleet.on_ping, warm=nothing)
        self.control = ControlServer(self.name, answers)
        self.changes = 0

    def _others(self) -> list[Leader]:
        return [one for one in self._directory.values() if one.name != self.name]

    async def _look_again(self) -> bool:
        self.looked += 1
        return self.looked > 1  # the directory is not there at first

    def _on_change(self) -> None:
        self.changes += 1

    async def start(self) -> None:
        port = await self.control.start("127.0.0.1", 0)
        own = self.fleet.own
        self._directory[self.name] = Leader(self.name, own.node_id, f"{own.host}:{own.port}", f"127.0.0.1:{port}")
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
async def members(count: int, directory: dict[str, Leader]) -> AsyncIterator[list[One]]:
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
        leaders = [[one.fleet.view.leadership.leader("orders", 16, index).node_id for index in range(16)] for one in there]
        assert leaders[0] == leaders[1] == leaders[2]


async def test_one_that_is_silent_leads_nothing_and_stays_a_node_while_the_directory_has_it() -> None:
    directory: dict[str, Leader] = {}
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
    directory: dict[str, Leader] = {}
    async with members(3, directory) as there:
        kept = dict(directory)
        directory.clear()
        await asyncio.sleep(0.5)
        assert all(one.sees == {1, 2, 3} for one in there)
        directory.update(kept)


async def test_one_that_has_lost_pulsar_leads_nothing_until_it_is_back() -> None:
    """It answers pings, and clients reach it; but nothing can be written there."""
    directory: dict[str, Leader] = {}
    async with members(3, directory) as (first, second, third):
        del directory[third.name]
        for one in (first, second):
            one.missing = {third.name}
        await until(lambda: first.sees == second.sees == third.sees == {1, 2})
        assert first.tells == third.tells == {1, 2, 3}, "clients give up what is in flight to a node that is told no more"
        assert third.fleet.leads_nothing
        first.missing = second.missing = set()
        await until(lambda: first.sees == second.sees == third.sees == {1, 2, 3})


async def test_the_last_one_leads_whatever_those_who_are_gone_have_said() -> None:
    directory: dict[str, Leader] = {}
    async with members(2, directory) as (first, second):
        first.missing = {second.name}
        await until(lambda: first.sees == second.sees == {1})
        await first.fleet.close()
        await first.control.close()
        await until(lambda: second.sees == {2})


async def test_one_that_leaves_tells_all_others_at_once_and_stays_a_node_until_its_end() -> None:
    directory: dict[str, Leader] = {}
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
    directory: dict[str, Leader] = {}
    async with members(2, directory) as (first, _):
        late = One(3, directory)
        port = await late.control.start("127.0.0.1", 0)
        directory[late.name] = Leader(late.name, 3, "127.0.0.1:9003", f"127.0.0.1:{port}")
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


async def test_one_that_has_come_is_told_at_once_and_leads_when_clients_reach_it_again(monkeypatch: pytest.MonkeyPatch) -> None:
    directory: dict[str, Leader] = {}
    async with members(2, directory) as (first, second):
        monkeypatch.setattr(module, "JOIN_SECONDS", 1.0)
        async with also([One(3, directory)]) as (third,):
            await until(lambda: first.tells == second.tells == third.tells == {1, 2, 3})
            assert first.sees == second.sees == third.sees == {1, 2}
            assert (third.fleet.leads_nothing, third.fleet.is_leaving) == (True, False)
            await until(lambda: first.sees == second.sees == third.sees == {1, 2, 3})


async def test_those_that_have_come_lead_at_once_when_nobody_else_does(monkeypatch: pytest.MonkeyPatch) -> None:
    directory: dict[str, Leader] = {}
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
        looked = first.looked
        first.fleet.on_ping(PingRequest(sender="stranger"))
        await until(lambda: first.looked > looked)


async def test_control_ports_that_can_not_be_reached_leave_the_directory_to_be_believed() -> None:
    directory = {"far": Leader("far", 7, "far:9092", "127.0.0.1:1"), "silent": Leader("silent", 8, "silent:9092", "")}
    one = One(1, directory)
    await one.start()
    await asyncio.sleep(0.5)
    assert one.sees == {1, 7, 8}
    await one.close()


async def test_one_address_for_all_is_no_fleet_and_an_old_name_is_not_another_member() -> None:
    directory = {
        "behind": Leader("behind", 7, "127.0.0.1:9001", ""),
        "old": Leader("old", 8, "far:9092", "127.0.0.1:1"), "new": Leader("new", 8, "far:9092", ""),
    }  # fmt: skip
    one = One(1, directory)
    await one.start()
    assert one.tells == {1, 8}
    await one.close()
