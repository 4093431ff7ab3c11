"""A thousand groups of five members each: what it costs that they stay alive, and how fast they rebalance."""

from __future__ import annotations

import asyncio
import resource
import time
from dataclasses import dataclass
from typing import Final

from kio.schema.errors import ErrorCode

from bench.process import ProcessCost
from integration.raw import RawConnection, RawMember

MEMBERS_EACH: Final = 5
HEARTBEAT_SECONDS: Final = 3.0
STEADY_SECONDS: Final = 15.0


@dataclass(frozen=True, slots=True)
class GroupCost:
    system: str
    groups: int
    members: int
    join_seconds: float  # until all have their part, the initial delay of three seconds included
    steady_cpu: float  # of one core, while all send their heartbeats
    heartbeat_p50_ms: float
    heartbeat_p99_ms: float
    rebalance_seconds: float  # until one more in every tenth group has its part, members rejoining at their next heartbeat
    added_mib: float


def groups(system: str, address: str, pid: int, count: int) -> GroupCost:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return asyncio.run(_measure(system, address, pid, count))


async def _measure(system: str, address: str, pid: int, count: int) -> GroupCost:
    await _until_coordinated(address)
    before = ProcessCost(pid).resident_mib()
    members = [await _member(address, f"bench-{group}") for group in range(count) for _ in range(MEMBERS_EACH)]
    begun = time.monotonic()
    await asyncio.gather(*(member.rebalance() for member in members))
    joined = time.monotonic() - begun
    times: list[float] = []
    cost = ProcessCost(pid)
    beating = [asyncio.create_task(_beat(member, number / len(members), times)) for number, member in enumerate(members)]
    await asyncio.sleep(STEADY_SECONDS)
    steady = cost.cpu_seconds() / STEADY_SECONDS
    measured = sorted(times)
    newcomers = [await _member(address, f"bench-{group}") for group in range(0, count, 10)]
    begun = time.monotonic()
    await asyncio.gather(*(member.rebalance() for member in newcomers))
    rebalanced = time.monotonic() - begun
    added = ProcessCost(pid).resident_mib() - before
    for task in beating:
        task.cancel()
    await asyncio.gather(*beating, return_exceptions=True)
    for member in (*members, *newcomers):
        member.close()
    return GroupCost(
        system, count, len(members), joined, steady, measured[len(measured) // 2] * 1000, measured[len(measured) * 99 // 100] * 1000,
        rebalanced, added,
    )  # fmt: skip


async def _until_coordinated(address: str) -> None:
    """The first question for a coordinator makes the topic that groups are kept in."""
    connection = await RawConnection.open(address)
    for _ in range(300):
        if (await connection.ask(10, 2, key="bench-0", key_type=0)).error_code is ErrorCode.none:
            break
        await asyncio.sleep(0.1)
    connection.close()


async def _member(address: str, group: str) -> RawMember:
    return RawMember(await RawConnection.open(address), group)


async def _beat(member: RawMember, phase: float, times: list[float]) -> None:
    await asyncio.sleep(HEARTBEAT_SECONDS * phase)
    while True:
        begun = time.monotonic()
        error = await member.heartbeat()
        times.append(time.monotonic() - begun)
        if error is ErrorCode.rebalance_in_progress:
            await member.rebalance()
        await asyncio.sleep(HEARTBEAT_SECONDS)
