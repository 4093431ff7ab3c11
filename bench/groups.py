"""A thousand groups of five members each: what it costs that they stay alive, and how fast they rebalance."""

from __future__ import annotations

import asyncio
import random
import resource
import time
from dataclasses import dataclass
from typing import Final

from kio.schema.errors import ErrorCode

from bench.process import ProcessCost
from integration.kafka_clients import create
from integration.raw import RawConnection, RawConsumer, RawMember

MEMBERS_EACH: Final = 5
HEARTBEAT_SECONDS: Final = 3.0
STEADY_SECONDS: Final = 15.0
SETTLE_SECONDS: Final = 6.0
JOIN_SECONDS: Final = 120.0
PROTOCOLS: Final = ("classic", "consumer")

Member = RawMember | RawConsumer


@dataclass(frozen=True, slots=True)
class GroupCost:
    system: str
    protocol: str
    groups: int
    members: int
    join_seconds: float  # until all have their part, the initial delay of three seconds included
    steady_cpu: float  # of one core, while all send their heartbeats
    heartbeat_p50_ms: float
    heartbeat_p99_ms: float
    rebalance_seconds: (
        float  # until one more in every tenth group has its part, members rejoining at their next heartbeat
    )
    added_mib: float


def groups(system: str, address: str, pid: int, protocol: str, count: int) -> GroupCost:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return asyncio.run(_measure(system, address, pid, protocol, count))


async def _measure(system: str, address: str, pid: int, protocol: str, count: int) -> GroupCost:
    topic = f"bench-{protocol}"
    create(address, topic, MEMBERS_EACH + 1)
    await _until_coordinated(address)
    before = ProcessCost(pid).resident_mib()
    members = [
        await _member(address, topic, protocol, f"{protocol}-{group}")
        for group in range(count)
        for _ in range(MEMBERS_EACH)
    ]
    times: list[float] = []
    begun = time.monotonic()
    living = [asyncio.create_task(_live(member, times)) for member in members]
    await _until_all_have_a_part(members)
    joined = time.monotonic() - begun
    await asyncio.sleep(SETTLE_SECONDS)
    times.clear()
    cost = ProcessCost(pid)
    await asyncio.sleep(STEADY_SECONDS)
    steady = cost.cpu_seconds() / STEADY_SECONDS
    measured = sorted(times)
    newcomers = [await _member(address, topic, protocol, f"{protocol}-{group}") for group in range(0, count, 10)]
    begun = time.monotonic()
    living += [asyncio.create_task(_live(member, times)) for member in newcomers]
    await _until_all_have_a_part(newcomers)
    rebalanced = time.monotonic() - begun
    added = ProcessCost(pid).resident_mib() - before
    for task in living:
        task.cancel()
    await asyncio.gather(*living, return_exceptions=True)
    for member in (*members, *newcomers):
        member.close()
    return GroupCost(
        system,
        protocol,
        count,
        len(members),
        joined,
        steady,
        measured[len(measured) // 2] * 1000,
        measured[len(measured) * 99 // 100] * 1000,
        rebalanced,
        added,
    )


async def _until_coordinated(address: str) -> None:
    """The first question for a coordinator makes the topic that groups are kept in."""
    connection = await RawConnection.open(address)
    for _ in range(300):
        if (await connection.ask(10, 2, key="bench-0", key_type=0)).error_code is ErrorCode.none:
            break
        await asyncio.sleep(0.1)
    connection.close()


async def _member(address: str, topic: str, protocol: str, group: str) -> Member:
    connection = await RawConnection.open(address)
    return RawMember(connection, group) if protocol == "classic" else RawConsumer(connection, group, topic)


async def _until_all_have_a_part(members: list[Member]) -> None:
    until = time.monotonic() + JOIN_SECONDS
    while not all(member.has_a_part for member in members):
        if time.monotonic() > until:
            raise SystemExit(
                f"{sum(not member.has_a_part for member in members)} of {len(members)} members got no part"
            )
        await asyncio.sleep(0.02)


async def _live(member: Member, times: list[float]) -> None:
    await member.rebalance()
    await asyncio.sleep(HEARTBEAT_SECONDS * random.random())  # noqa: S311 - so that they do not all come at once
    while True:
        begun = time.monotonic()
        error = await member.heartbeat()
        times.append(time.monotonic() - begun)
        if error is ErrorCode.rebalance_in_progress:
            await member.rebalance()
        await asyncio.sleep(HEARTBEAT_SECONDS)
