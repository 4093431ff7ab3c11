"""Groups whose members go over from one protocol to the other, and back, one at a time (KIP-848)."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from tests.simulation.coordinators.owners import GroupsWithMembers, Owner


class ConvertedGroups(GroupsWithMembers):
    def __init__(self, classic: GroupsWithMembers, consumer: GroupsWithMembers) -> None:
        self._protocols = classic, consumer

    async def live(self, owner: Owner, draw: Random, is_busy: Callable[[], bool]) -> None:
        await draw.choice(self._protocols).live(owner, draw, is_busy)

    async def take_all(self, group: str, draw: Random, until: float) -> None:
        for protocol in self._protocols:
            await protocol.take_all(group, draw, until)
