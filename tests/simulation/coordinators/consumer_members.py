"""Members of groups of the consumer protocol (KIP-848): the coordinator shares partitions out, and gives none away
before it is given up.

heartbeat with what it owns ──▶ epoch and assignment ──▶ gives up what is not in it, and says so with the next heartbeat
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random
from typing import Final

from kafka_sidecar.groups.consumer.members import (
    JOIN_GROUP_MEMBER_EPOCH,
    LEAVE_GROUP_MEMBER_EPOCH,
    HeartbeatResult,
    MemberHeartbeat,
)
from kafka_sidecar.wire.error_code import ErrorCode
from tests.simulation.coordinators.fleet import Member
from tests.simulation.coordinators.offsets import PARTITIONS, topic_id
from tests.simulation.coordinators.owners import REBALANCE_SECONDS, GroupsWithMembers, Owner, Owners
from tests.simulation.history import Violation
from tests.simulation.loop import SimulatedLoop

HEARTBEAT_SECONDS: Final = (0.5, 1.0, 2.0)
_FENCED: Final = (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID)


class ConsumerGroups(GroupsWithMembers):
    def __init__(self, loop: SimulatedLoop, owners: Owners) -> None:
        self._loop = loop
        self._owners = owners

    async def live(self, owner: Owner, draw: Random, is_busy: Callable[[], bool]) -> None:
        self._begin_anew(owner)
        while is_busy():
            await self._beat(owner, draw)
            if owner.owned and draw.random() < 0.3:
                await self._owners.commit(owner, draw, owner.owned)
            if draw.random() < 0.03:
                break
            if draw.random() < 0.02:  # it is killed
                self._forget(owner)
                return
            await asyncio.sleep(draw.choice(HEARTBEAT_SECONDS))
        await self._leave(owner, draw)

    async def take_all(self, group: str, draw: Random, until: float) -> None:
        owner = self._owners.new(f"last of {group}", group)
        self._begin_anew(owner)
        while owner.owned != frozenset(range(PARTITIONS)):
            if self._loop.time() > until:
                raise Violation(f"{owner} is not given all of {group}")
            await self._beat(owner, draw)
            await asyncio.sleep(1.0)
        await self._leave(owner, draw)

    def _begin_anew(self, owner: Owner) -> None:
        owner.member_id = self._owners.new_id(owner)
        self._forget(owner)

    @staticmethod
    def _forget(owner: Owner) -> None:
        owner.epoch, owner.owned, owner.tells_all = JOIN_GROUP_MEMBER_EPOCH, frozenset(), True

    async def _beat(self, owner: Owner, draw: Random) -> None:
        owned = {topic_id(): owner.owned} if owner.owned else {}
        begun, is_full = self._loop.time(), owner.tells_all or owner.epoch == JOIN_GROUP_MEMBER_EPOCH

        async def heartbeat(one: Member) -> tuple[HeartbeatResult, bool]:
            request = MemberHeartbeat(
                owner.member_id,
                owner.epoch,
                None,
                None,
                round(REBALANCE_SECONDS * 1000) if is_full else -1,
                (one.topic("t"),) if is_full else None,
                None,
                None,
                owned,
                owner.name,
                "host",
            )
            told = await one.groups.coordinator.consumer_groups.heartbeat(request, owner.group)
            return told, self._owners.coordinates(one, owner.group)

        told = await self._owners.ask(owner, draw, heartbeat)
        owner.tells_all = told is None or told[0].error is not ErrorCode.NONE
        if told is None:
            return
        result, is_by_the_coordinator = told
        if result.error in _FENCED:
            self._forget(owner)
        elif result.error is ErrorCode.NONE:
            owner.epoch = result.epoch
            if is_by_the_coordinator:
                owner.heard_at = max(owner.heard_at, begun)
            if result.assignment is not None:
                owner.owned = result.assignment.get(topic_id(), frozenset())
                self._owners.counts["a member of the consumer protocol is assigned"] += 1
                self._owners.check_alone(owner)

    async def _leave(self, owner: Owner, draw: Random) -> None:
        request = MemberHeartbeat(
            owner.member_id, LEAVE_GROUP_MEMBER_EPOCH, None, None, -1, None, None, None, None, owner.name, "host"
        )
        self._begin_anew(owner)
        await self._owners.ask(
            owner, draw, lambda one: one.groups.coordinator.consumer_groups.heartbeat(request, owner.group)
        )
