"""Many groups and large groups in one coordinator, by simulated members."""

from __future__ import annotations

import asyncio
import resource
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from kio.schema.errors import ErrorCode

from integration.conftest import Cluster
from integration.launcher.sidecar import SidecarProcess
from integration.raw import RawConnection, RawMember

GROUPS = 1_000
MEMBERS = 5
HEARTBEAT_SECONDS = 3.0
FILES = GROUPS * MEMBERS + 1_000


@pytest.fixture
def sidecar(cluster: Cluster, tmp_path: Path) -> Iterator[SidecarProcess]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < FILES:
        pytest.skip(f"a process may have {hard} files open, and {FILES} are needed")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, FILES), hard))  # the sidecar inherits it
    one = SidecarProcess(
        tmp_path,
        cluster.pulsar_url,
        cluster.admin_url,
        groups__namespace="public/crowds",
        groups__initial_rebalance_delay_ms="3000",
    )
    one.start()
    yield one
    assert one.stop() == 0
    assert not one.complaints()


async def _member(sidecar: SidecarProcess, group: str) -> RawMember:
    return RawMember(await RawConnection.open(sidecar.address), group)


async def _beat(member: RawMember, until: float, rejoined: list[RawMember]) -> None:
    """Heartbeats as a client sends them: each is answered, and says when the group rebalances."""
    while time.monotonic() < until:
        await asyncio.sleep(HEARTBEAT_SECONDS)
        error = await member.heartbeat()
        if error is ErrorCode.rebalance_in_progress:
            await member.rebalance()
            rejoined.append(member)
        else:
            assert error is ErrorCode.none, error


async def test_heartbeats_of_a_thousand_groups_are_answered_while_some_rebalance(sidecar: SidecarProcess) -> None:
    # One connection each, as a real client: a join that waits holds up what comes behind it.
    members = [await _member(sidecar, f"crowd-{group}") for group in range(GROUPS) for _ in range(MEMBERS)]
    await asyncio.wait_for(asyncio.gather(*(member.rebalance() for member in members)), 120)
    for member in members:
        assert member.part == member.member_id.encode(), "a part that is another's"
    # While all send heartbeats, somebody new comes to every tenth group.
    rejoined: list[RawMember] = []
    until = time.monotonic() + 12
    beating = [asyncio.create_task(_beat(member, until, rejoined)) for member in members]
    newcomers = [await _member(sidecar, f"crowd-{group}") for group in range(0, GROUPS, 10)]
    await asyncio.wait_for(asyncio.gather(*(member.rebalance() for member in newcomers)), 60)
    await asyncio.gather(*beating)
    assert len(rejoined) >= len(newcomers) * MEMBERS
    for member in (*members, *newcomers):
        member.close()


async def test_a_large_group_rebalances_in_the_time_of_its_slowest_member(sidecar: SidecarProcess) -> None:
    members = [await _member(sidecar, "large") for _ in range(100)]
    newcomer = await _member(sidecar, "large")
    await asyncio.wait_for(asyncio.gather(*(member.rebalance() for member in members)), 60)
    slow = 2.0

    async def again(number: int) -> None:
        await asyncio.sleep(slow * number / len(members))
        assert await members[number].heartbeat() is ErrorCode.rebalance_in_progress
        await members[number].rebalance()

    generation = members[0].generation
    joining = asyncio.create_task(newcomer.rebalance())
    await asyncio.sleep(0.1)
    async with asyncio.timeout(50):  # before the members' rebalance time-out of a minute, which would end it too
        await asyncio.gather(joining, *(again(number) for number in range(100)))
    assert {member.generation for member in (*members, newcomer)} == {generation + 1}, "one rebalance has them all"
    for member in (*members, newcomer):
        member.close()
