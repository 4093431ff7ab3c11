"""Who owns which partitions of a group, as members were told and as the coordinator heard of them.

Two members never own a partition at once. The exception is one of which the coordinator has heard nothing for as long
as a session lasts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from random import Random
from typing import Any, Final, Protocol, TypeVar

from kafka_sidecar.groups.coordinator import Commit, CommittedOffset
from kafka_sidecar.groups.vocabulary import Committer
from kafka_sidecar.wire.error_code import ErrorCode
from tests.simulation.coordinators.clients import answered
from tests.simulation.coordinators.fleet import Fleet, Member
from tests.simulation.coordinators.logs import JudgedTopic
from tests.simulation.coordinators.offsets import HOME, SESSION_SECONDS, when_loaded
from tests.simulation.history import Violation
from tests.simulation.loop import SimulatedLoop

REBALANCE_SECONDS: Final = 8.0
T = TypeVar("T")


@dataclass(slots=True)
class Owner:
    """A member's process."""

    name: str
    group: str
    member_id: str = ""
    epoch: int = -1  # or generation
    owned: frozenset[int] = frozenset()
    heard_at: float = 0.0  # no later than when the coordinator heard of it last
    tells_all: bool = True


class GroupsWithMembers(Protocol):
    """What their members do."""

    async def live(self, owner: Owner, draw: Random, is_busy: Callable[[], bool]) -> None:
        """One process of a member: it leaves in the end, or is killed."""
        ...

    async def take_all(self, group: str, draw: Random, until: float) -> None:
        """Faults are over, and all members have left: one that comes is given everything."""
        ...


class Owners:
    def __init__(self, loop: SimulatedLoop, fleet: Fleet, judged: JudgedTopic, counts: Counter[str]) -> None:
        self.counts = counts
        self._loop = loop
        self._fleet = fleet
        self._judged = judged
        self._all: list[Owner] = []
        self._ids = 0

    def new(self, name: str, group: str) -> Owner:
        self._all.append(Owner(name, group))
        return self._all[-1]

    def new_id(self, owner: Owner) -> str:
        self._ids += 1
        return f"{owner.name}-{self._ids}"

    async def ask(self, owner: Owner, draw: Random, work: Callable[[Member], Coroutine[Any, Any, T]]) -> T | None:
        """Of the group's coordinator. None where it is refused, or nothing comes of it."""
        told = await answered(
            self._fleet.ask(draw.choice(self._fleet.members), lambda one: one.groups, owner.group, work)
        )
        return None if told is None else told[0]

    @property
    def said_topic(self) -> str:
        """What classic members call the topic to each other (`routing.member_words`)."""
        return f"persistent://{HOME}/t" if self._fleet.is_shared else "t"

    def coordinates(self, member: Member, group: str) -> bool:
        """Whether nobody else has taken the log. Who was replaced, and has not heard of it, answers from memory."""
        term_log: Any = member.groups.coordinator.shards.of(group).term._term_log
        judged = self._judged.of(group)
        judged.look()
        return term_log is not None and term_log._producer is not None and judged.writer == term_log._producer.name

    def check_alone(self, owner: Owner) -> None:
        """It has just been given what it owns."""
        now = self._loop.time()
        for other in self._all:
            is_silent = now - other.heard_at >= min(SESSION_SECONDS, REBALANCE_SECONDS)
            if other is not owner and other.group == owner.group and other.owned & owner.owned and not is_silent:
                raise Violation(
                    f"{owner} is given what {other} owns, of which the coordinator has heard "
                    f"{now - other.heard_at:.1f} s ago"
                )

    async def commit(self, owner: Owner, draw: Random, owned: frozenset[int]) -> bool:
        """An offset of something that it owns, or has owned: whether that is acknowledged. Then it is in the log."""
        index, commit_id = draw.choice(sorted(owned)), f"{self.new_id(owner)}#"
        offset, member_id, epoch = CommittedOffset(1, -1, commit_id), owner.member_id, owner.epoch

        async def there(one: Member) -> ErrorCode:
            at = one.topic("t"), index
            await when_loaded(one.groups.coordinator, owner.group)
            return (
                await one.groups.coordinator.commit(
                    Commit(owner.group, Committer(member_id, None, epoch), -1, {at: offset})
                )
            )[at]

        if await self.ask(owner, draw, there) is not ErrorCode.NONE:
            return False
        self.counts["a member's offset is acknowledged"] += 1
        judged = self._judged.of(owner.group)
        judged.look()
        if (f"{owner.group}/t/{index}", commit_id) not in judged.written:
            raise Violation(f"commit {commit_id} of {owner} was acknowledged, and is not in the log")
        return True
