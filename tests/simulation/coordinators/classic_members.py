"""Members of classic groups (KIP-98 and before): who owns what, as SyncGroup tells it and heartbeats confirm it.

    join ──▶ sync ──▶ heartbeats and commits ──▶ told to rebalance ──▶ gives up what it owns, and joins again

Two members never own a partition at once. The exception is one of which the coordinator has heard nothing for as long as a session lasts.
Generations that nobody was given an assignment of may come again when another coordinates, so all is judged by SyncGroup's answers.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final, TypeVar

from handler.groups.classic.members import JoinResult, MemberIdentity, MemberJoin, MemberSync, SyncResult
from handler.groups.coordinator import Commit, CommittedOffset
from handler.wire.error_code import ErrorCode
from tests.simulation.coordinators.clients import answered
from tests.simulation.coordinators.fleet import Fleet, Member
from tests.simulation.coordinators.logs import JudgedTopic
from tests.simulation.history import Violation
from tests.simulation.loop import SimulatedLoop

PARTITIONS: Final = range(4)
SESSION_SECONDS: Final = 6.0
REBALANCE_SECONDS: Final = 8.0
HEARTBEAT_SECONDS: Final = (0.5, 1.0, 2.0)
_PROTOCOL: Final = "shares"
T = TypeVar("T")


@dataclass(slots=True)
class Owner:
    """A member's process."""

    name: str
    group: str
    member_id: str = ""
    generation: int = -1
    owned: frozenset[int] = frozenset()
    heard_at: float = 0.0  # no later than when the coordinator heard of it last


@dataclass(slots=True)
class _Assigned:
    """What was told of one generation."""

    owners: dict[int, str] = field(default_factory=dict)  # by partition
    at: float = 0.0


class ClassicGroups:
    def __init__(self, loop: SimulatedLoop, fleet: Fleet, judged: JudgedTopic, counts: Counter[str]) -> None:
        self._loop = loop
        self._fleet = fleet
        self._judged = judged
        self._counts = counts
        self._owners: list[Owner] = []
        self._assigned: dict[tuple[str, int], _Assigned] = {}
        self._ids = 0

    async def member(self, name: str, group: str, draw: Random, is_busy: Callable[[], bool]) -> None:
        """One process, that now and then leaves, or is started anew."""
        owner = Owner(name, group)
        self._owners.append(owner)
        while is_busy():
            if await self._join(owner, draw):
                await self._consume(owner, draw, is_busy)
            await asyncio.sleep(draw.choice((0.05, 0.5)))
        await self._leave(owner, draw)

    async def take_all(self, group: str, draw: Random, until: float) -> None:
        """Faults are over, and all members have left: one that comes is given everything."""
        owner = Owner(f"last of {group}", group)
        self._owners.append(owner)
        while owner.owned != frozenset(PARTITIONS):
            if self._loop.time() > until:
                raise Violation(f"{owner} is not given all of {group}")
            await self._join(owner, draw)
            await asyncio.sleep(1.0)
        await self._leave(owner, draw)

    # --- what a member asks

    async def _join(self, owner: Owner, draw: Random) -> bool:
        """Whether it has an assignment."""
        owner.owned = frozenset()  # before it joins again (ConsumerRebalanceListener.onPartitionsRevoked)
        self._ids += 1
        request = MemberJoin(
            owner.member_id, None, owner.name, "host", round(SESSION_SECONDS * 1000), round(REBALANCE_SECONDS * 1000), "consumer",
            ((_PROTOCOL, b""),), True, False, f"{owner.name}-{self._ids}",
        )  # fmt: skip
        joined = await self._ask(owner, draw, lambda one: one.groups.coordinator.join(request, owner.group))
        if joined is None:
            return False
        if joined.error in (ErrorCode.MEMBER_ID_REQUIRED, ErrorCode.UNKNOWN_MEMBER_ID):
            owner.member_id = joined.member_id if joined.error is ErrorCode.MEMBER_ID_REQUIRED else ""
        if joined.error is not ErrorCode.NONE:
            return False
        owner.member_id, owner.generation = joined.member_id, joined.generation
        return await self._sync(owner, draw, joined)

    async def _sync(self, owner: Owner, draw: Random, joined: JoinResult) -> bool:
        members = sorted(member_id for member_id, _, _ in joined.members)
        shares = {member_id: bytes(PARTITIONS[number :: len(members)]) for number, member_id in enumerate(members)}
        request = MemberSync(owner.member_id, None, joined.generation, "consumer", joined.protocol, shares)
        begun = self._loop.time()
        synced: SyncResult | None = await self._ask(owner, draw, lambda one: one.groups.coordinator.sync(request, owner.group))
        if synced is None or synced.error is not ErrorCode.NONE:
            return False
        owner.owned = frozenset(synced.assignment)
        owner.heard_at = max(owner.heard_at, begun)
        self._counts["a member is given its share"] += 1
        self._check_alone(owner)
        return True

    async def _consume(self, owner: Owner, draw: Random, is_busy: Callable[[], bool]) -> None:
        while is_busy():
            await asyncio.sleep(draw.choice(HEARTBEAT_SECONDS))
            if owner.owned and draw.random() < 0.3:
                await self._commit(owner, draw)
            if draw.random() < 0.03:
                await self._leave(owner, draw)
                return
            if draw.random() < 0.02:
                owner.member_id, owner.owned = "", frozenset()  # it is killed, and started anew
                return
            if not await self._beat(owner, draw):
                return

    async def _beat(self, owner: Owner, draw: Random) -> bool:
        """Whether it may go on. Who is told nothing goes on too."""
        begun = self._loop.time()

        async def heartbeat(one: Member) -> tuple[ErrorCode, bool]:
            told = one.groups.coordinator.heartbeat(owner.group, owner.member_id, None, owner.generation)
            return told, self._coordinates(one, owner.group)

        told = await self._ask(owner, draw, heartbeat)
        if told is None:
            return True
        error, is_by_the_coordinator = told
        if error is ErrorCode.NONE and is_by_the_coordinator:
            owner.heard_at = max(owner.heard_at, begun)
        if error is ErrorCode.UNKNOWN_MEMBER_ID:
            owner.member_id = ""
        if error in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION, ErrorCode.REBALANCE_IN_PROGRESS):
            owner.owned = frozenset()
            return False
        return True

    async def _commit(self, owner: Owner, draw: Random) -> None:
        self._ids += 1
        index, commit_id, begun = draw.choice(sorted(owner.owned)), f"{owner.name}#{self._ids}", self._loop.time()
        commit = Commit(owner.group, owner.member_id, None, owner.generation, -1, {("t", index): CommittedOffset(1, -1, commit_id)})
        told = await self._ask(owner, draw, lambda one: one.groups.coordinator.commit(commit))
        if told is None or told["t", index] is not ErrorCode.NONE:
            return
        self._counts["a member's offset is acknowledged"] += 1
        judged = self._judged.of(owner.group)
        judged.look()
        if (f"{owner.group}/t/{index}", commit_id) not in judged.written:
            raise Violation(f"commit {commit_id} of {owner} was acknowledged, and is not in the log")
        newer = [generation for (group, generation), one in self._assigned.items() if group == owner.group and one.at <= begun]
        if max(newer, default=-1) > commit.generation:
            raise Violation(f"commit {commit_id} of generation {commit.generation} was acknowledged, and {max(newer)} had begun before")

    async def _leave(self, owner: Owner, draw: Random) -> None:
        owner.owned = frozenset()
        if owner.member_id:
            leaving = [MemberIdentity(owner.member_id, None)]
            await self._ask(owner, draw, lambda one: one.groups.coordinator.leave(owner.group, leaving))
            owner.member_id = ""

    async def _ask(self, owner: Owner, draw: Random, work: Callable[[Member], Coroutine[Any, Any, T]]) -> T | None:
        told = await answered(self._fleet.ask(draw.choice(self._fleet.members), lambda one: one.groups, owner.group, work))
        return None if told is None else told[0]

    # --- what must hold

    def _coordinates(self, member: Member, group: str) -> bool:
        """Whether nobody else has taken the log. Who was replaced, and has not heard of it, answers heartbeats from memory."""
        term_log: Any = member.groups.coordinator.shards.of(group).term._term_log
        judged = self._judged.of(group)
        judged.look()
        return term_log is not None and term_log._producer is not None and judged.writer == term_log._producer.name

    def _check_alone(self, owner: Owner) -> None:
        """It has just been given what it owns."""
        now = self._loop.time()
        told = self._assigned.setdefault((owner.group, owner.generation), _Assigned(at=now))
        for index in owner.owned:
            if told.owners.setdefault(index, owner.member_id) != owner.member_id:
                raise Violation(f"partition {index} of {owner.group} is of {told.owners[index]} and of {owner.member_id} at once")
        for other in self._owners:
            is_silent = now - other.heard_at >= min(SESSION_SECONDS, REBALANCE_SECONDS)
            if other is not owner and other.group == owner.group and other.owned & owner.owned and not is_silent:
                raise Violation(f"{owner} is given what {other} owns, of which the coordinator has heard {now - other.heard_at:.1f} s ago")
