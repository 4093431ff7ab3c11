"""Members of classic groups: they give up what they own, and join again, whenever the group rebalances.

    join ──▶ sync ──▶ heartbeats and commits ──▶ told to rebalance ──▶ gives up what it owns, and joins again

Generations that nobody was given an assignment of may come again when another coordinates, so all is judged by
SyncGroup's answers.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Final

from kafka_sidecar.groups.classic.members import JoinResult, MemberIdentity, MemberJoin, MemberSync
from kafka_sidecar.groups.records.subscription import read_parts, write_parts
from kafka_sidecar.wire.error_code import ErrorCode
from tests.simulation.coordinators.fleet import Member
from tests.simulation.coordinators.offsets import PARTITIONS, SESSION_SECONDS
from tests.simulation.coordinators.owners import REBALANCE_SECONDS, GroupsWithMembers, Owner, Owners
from tests.simulation.history import Violation
from tests.simulation.loop import SimulatedLoop

HEARTBEAT_SECONDS: Final = (0.5, 1.0, 2.0)
_PROTOCOL: Final = "range"
_ALL: Final = frozenset(range(PARTITIONS))


def _subscription(topic: str) -> bytes:
    """ConsumerProtocolSubscription, version 1: who gives up all before it joins again owns nothing."""
    name = topic.encode()
    return struct.pack(">hih", 1, 1, len(name)) + name + struct.pack(">ii", -1, 0)


def _share(number: int, members: int) -> frozenset[int]:
    return frozenset(range(number, PARTITIONS, members))


class Generations:
    """Of classic groups: a partition has one owner in each."""

    def __init__(self, loop: SimulatedLoop) -> None:
        self._loop = loop
        self._all: dict[tuple[str, int], _Generation] = {}

    def note_share(self, owner: Owner) -> None:
        generation = self._all.setdefault((owner.group, owner.epoch), _Generation(self._loop.time()))
        for index in owner.owned:
            if generation.owners.setdefault(index, owner.member_id) != owner.member_id:
                raise Violation(
                    f"partition {index} of {owner.group} is of {generation.owners[index]} and of {owner.member_id} at "
                    "once"
                )

    def note_commit(self, owner: Owner, number: int, begun: float) -> None:
        """It was acknowledged, and was sent then."""
        newer = [other for (group, other), one in self._all.items() if group == owner.group and one.at <= begun]
        if max(newer, default=-1) > number:
            raise Violation(f"a commit of generation {number} was acknowledged, and {max(newer)} had begun before")


class Epochs(Generations):
    """Of groups that become others: a partition may change its owner within an epoch, and members have different
    ones.
    """

    def note_share(self, owner: Owner) -> None: ...
    def note_commit(self, owner: Owner, number: int, begun: float) -> None: ...


@dataclass(slots=True)
class _Generation:
    at: float  # when the first was told of its share
    owners: dict[int, str] = field(default_factory=dict)  # by partition


class ClassicGroups(GroupsWithMembers):
    def __init__(self, loop: SimulatedLoop, owners: Owners, generations: Generations) -> None:
        self._loop = loop
        self._owners = owners
        self._generations = generations

    async def live(self, owner: Owner, draw: Random, is_busy: Callable[[], bool]) -> None:
        owner.member_id, owner.owned, is_alive = "", frozenset(), True
        while is_busy() and is_alive:
            if await self._join(owner, draw):
                is_alive = await self._consume(owner, draw, is_busy)
            await asyncio.sleep(draw.choice((0.05, 0.5)))
        await self._leave(owner, draw)

    async def take_all(self, group: str, draw: Random, until: float) -> None:
        owner = self._owners.new(f"last of {group}", group)
        while owner.owned != _ALL:
            if self._loop.time() > until:
                raise Violation(f"{owner} is not given all of {group}")
            await self._join(owner, draw)
            await asyncio.sleep(1.0)
        await self._leave(owner, draw)

    async def _join(self, owner: Owner, draw: Random) -> bool:
        """Whether it has an assignment."""
        owner.owned = frozenset()  # before it joins again (ConsumerRebalanceListener.onPartitionsRevoked)
        request = MemberJoin(
            owner.member_id,
            None,
            owner.name,
            "host",
            round(SESSION_SECONDS * 1000),
            round(REBALANCE_SECONDS * 1000),
            "consumer",
            ((_PROTOCOL, _subscription(self._owners.said_topic)),),
            True,
            False,
            self._owners.new_id(owner),
        )
        joined = await self._owners.ask(owner, draw, lambda one: one.groups.coordinator.join(request, owner.group))
        if joined is None:
            return False
        if joined.error in (ErrorCode.MEMBER_ID_REQUIRED, ErrorCode.UNKNOWN_MEMBER_ID):
            owner.member_id = joined.member_id if joined.error is ErrorCode.MEMBER_ID_REQUIRED else ""
        if joined.error is not ErrorCode.NONE:
            return False
        owner.member_id, owner.epoch = joined.member_id, joined.generation
        return await self._sync(owner, draw, joined)

    async def _sync(self, owner: Owner, draw: Random, joined: JoinResult) -> bool:
        members = sorted(member_id for member_id, _, _ in joined.members)
        topic = self._owners.said_topic
        shares = {one: write_parts({topic: _share(number, len(members))}, 1) for number, one in enumerate(members)}
        request = MemberSync(owner.member_id, None, joined.generation, "consumer", joined.protocol, shares)
        begun = self._loop.time()
        synced = await self._owners.ask(owner, draw, lambda one: one.groups.coordinator.sync(request, owner.group))
        if synced is None or synced.error is not ErrorCode.NONE:
            return False
        owner.owned = frozenset(
            index for indexes in read_parts(synced.assignment).partitions.values() for index in indexes
        )
        owner.heard_at = max(owner.heard_at, begun)
        self._owners.counts["a member is given its share"] += 1
        self._generations.note_share(owner)
        self._owners.check_alone(owner)
        return True

    async def _consume(self, owner: Owner, draw: Random, is_busy: Callable[[], bool]) -> bool:
        """Whether it is to join again."""
        while is_busy():
            await asyncio.sleep(draw.choice(HEARTBEAT_SECONDS))
            if owner.owned and draw.random() < 0.3:
                await self._commit(owner, draw, owner.owned)
            if draw.random() < 0.03:
                return False
            if draw.random() < 0.02:
                owner.member_id, owner.owned = "", frozenset()  # it is killed, and started anew
                return False
            if not await self._beat(owner, draw):
                return True
        return False

    async def _beat(self, owner: Owner, draw: Random) -> bool:
        """Whether it may go on. Who is told nothing goes on too."""
        begun = self._loop.time()

        async def heartbeat(one: Member) -> tuple[ErrorCode, bool]:
            told = one.groups.coordinator.heartbeat(owner.group, owner.member_id, None, owner.epoch)
            return told, self._owners.coordinates(one, owner.group)

        told = await self._owners.ask(owner, draw, heartbeat)
        if told is None:
            return True
        error, is_by_the_coordinator = told
        if error is ErrorCode.NONE and is_by_the_coordinator:
            owner.heard_at = max(owner.heard_at, begun)
        if error in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION, ErrorCode.REBALANCE_IN_PROGRESS):
            owned, owner.owned = owner.owned, frozenset()
            if (
                owned and draw.random() < 0.5
            ):  # as applications do that commit what they have read (onPartitionsRevoked, onPartitionsLost)
                await self._commit(owner, draw, owned)
            if error is ErrorCode.UNKNOWN_MEMBER_ID:
                owner.member_id = ""
            return False
        return True

    async def _commit(self, owner: Owner, draw: Random, owned: frozenset[int]) -> None:
        begun, generation = self._loop.time(), owner.epoch
        if await self._owners.commit(owner, draw, owned):
            self._generations.note_commit(owner, generation, begun)

    async def _leave(self, owner: Owner, draw: Random) -> None:
        owner.owned = frozenset()
        if owner.member_id:
            leaving = [MemberIdentity(owner.member_id, None)]
            await self._owners.ask(owner, draw, lambda one: one.groups.coordinator.leave(owner.group, leaving))
            owner.member_id = ""
