"""What clients ask of coordinators, and what must hold of each answer."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Coroutine
from random import Random
from typing import Any, Final, Protocol, TypeVar

from kafka_sidecar.coordination.errors import CoordinatorError
from kafka_sidecar.errors import SidecarError
from tests.simulation.coordinators import offsets
from tests.simulation.coordinators.fleet import Fleet, Member
from tests.simulation.coordinators.logs import JudgedTopic
from tests.simulation.history import Violation
from tests.simulation.loop import SimulatedLoop

# A coordinator that another has replaced may not have heard of it. It knows after so long that it stood still
# (STALLED_SECONDS), and its broker is heard of sooner.
OLD_SECONDS: Final = 15.0
PUT_SECONDS: Final = 20.0
FACT_SECONDS: Final = 30.0

T = TypeVar("T")


class Clients(Protocol):
    """Of one kind. Each method says whether there was an answer."""

    async def do_something(self, draw: Random, member: Member, key: str, new_value: str) -> bool: ...
    async def look(self, member: Member, key: str) -> bool:
        """What is told of a key is right."""
        ...

    @property
    def is_settled(self) -> bool:
        """Whether all that was begun has come to its end."""
        return True

    def check(self) -> None:
        """What was told is what is stored, when all is over."""
        return


async def answered(asking: Coroutine[Any, Any, T]) -> tuple[T] | None:
    """None where the client is refused, or told nothing: it does not know what came of it."""
    try:
        return (await asking,)
    except (CoordinatorError, SidecarError, offsets.Refused):
        return None


async def _in_time(task: asyncio.Task[T]) -> tuple[T] | None:
    """None where it is refused, or nothing comes of it."""
    await asyncio.wait({task}, timeout=FACT_SECONDS)
    try:
        return (task.result(),) if task.done() else None
    except (SidecarError, TimeoutError):
        return None


class RegisterClients(Clients):
    """Whoever is answered has it from the one leader there is: what is read is what is stored."""

    def __init__(self, fleet: Fleet, judged: JudgedTopic, counts: Counter[str]) -> None:
        self._fleet = fleet
        self._judged = judged
        self._counts = counts

    async def do_something(self, draw: Random, member: Member, key: str, new_value: str) -> bool:
        match draw.choice(("put", "put", "delete", "look")):
            case "put":
                return await self._put(member, key, new_value)
            case "delete":
                return await self._put(member, key, None)
            case _:
                return await self.look(member, key)

    async def _put(self, member: Member, key: str, value: str | None) -> bool:
        begun = self._judged.count_of(key)
        putting = self._fleet.ask(
            member, lambda one: one.runtime, key, lambda one: one.coordinator.shards.led(key).put(key, value)
        )
        if await answered(putting) is None:
            return False
        self._counts["a value is acknowledged"] += 1
        judged = self._judged.of(key)
        judged.look()
        if (key, value) not in judged.written[begun:]:
            raise Violation(f"{value!r} of {key} was acknowledged, and is not in the log")
        return True

    async def look(self, member: Member, key: str) -> bool:
        begun = self._judged.count_of(key)
        told = await answered(
            self._fleet.ask(member, lambda one: one.runtime, key, lambda one: one.coordinator.shards.led(key).get(key))
        )
        if told is None:
            return False
        self._counts["a value is read"] += 1
        judged = self._judged.of(key)
        held = judged.held(key, begun, judged.count)
        if told[0] not in held:
            raise Violation(f"{member.name} says that {key} is {told[0]!r}, and it was {held}")
        return True


class OffsetClients(Clients):
    """Groups without members: a key is a group, with two partitions."""

    def __init__(self, loop: SimulatedLoop, fleet: Fleet, judged: JudgedTopic, counts: Counter[str]) -> None:
        self._loop = loop
        self._fleet = fleet
        self._judged = judged
        self._counts = counts

    async def do_something(self, draw: Random, member: Member, key: str, new_value: str) -> bool:
        match draw.choice(("commit", "commit", "commit", "delete", "look")):
            case "commit":
                return await self._commit(member, key, draw.randrange(2), new_value)
            case "delete":
                return await self._delete(member, key)
            case _:
                return await self.look(member, key)

    async def _commit(self, member: Member, group: str, index: int, commit_id: str) -> bool:
        work = self._fleet.ask(
            member,
            lambda one: one.groups,
            group,
            lambda one: offsets.commit(one.groups.coordinator, one.topic("t"), group, index, commit_id),
        )
        if await answered(work) is None:
            return False
        self._counts["an offset is acknowledged"] += 1
        judged = self._judged.of(group)
        judged.look()
        if (f"{group}/t/{index}", commit_id) not in judged.written:
            raise Violation(f"commit {commit_id} of {group} was acknowledged, and is not in the log")
        return True

    async def _delete(self, member: Member, group: str) -> bool:
        work = self._fleet.ask(
            member, lambda one: one.groups, group, lambda one: offsets.delete(one.groups.coordinator, group)
        )
        begun = self._judged.count_of(group)
        before = self._loop.time() - OLD_SECONDS
        told = await answered(work)
        if told is None:
            return False
        self._counts["a group is deleted"] += 1
        judged = self._judged.of(group)
        if not told[0]:  # that there is none is told from memory
            begun = judged.count_at(before)
        for index in range(2):
            held = judged.held(f"{group}/t/{index}", begun, judged.count)
            if None not in held:
                raise Violation(f"{group} was deleted, and its offsets were always there: {held}")
        return True

    async def look(self, member: Member, key: str) -> bool:
        """It is told from memory, as by a Kafka broker: what a coordinator says that was replaced and has not heard of
        it may be old.
        """
        return all([await self._look(member, key, index) for index in range(2)])

    async def _look(self, member: Member, group: str, index: int) -> bool:
        begun = self._loop.time() - OLD_SECONDS
        work = self._fleet.ask(
            member,
            lambda one: one.groups,
            group,
            lambda one: offsets.fetch(one.groups.coordinator, one.topic("t"), group, index),
        )
        told = await answered(work)
        if told is None:
            return False
        self._counts["an offset is read"] += 1
        judged = self._judged.of(group)
        held = judged.held(f"{group}/t/{index}", judged.count_at(begun), judged.count)
        if told[0] not in held:
            raise Violation(f"{member.name} says that commit {told[0]!r} counts of {group}, and it was {held}")
        return True


class FactClients(Clients):
    """Of a followed topic: the greatest counts."""

    def __init__(self, judged: JudgedTopic, counts: Counter[str]) -> None:
        self._judged = judged
        self._counts = counts
        self._greatest: dict[str, int] = {}  # that was acknowledged

    async def do_something(self, draw: Random, member: Member, key: str, new_value: str) -> bool:
        if draw.random() < 0.5:
            return await self._put(member, key, draw.randrange(10**6))
        return await self.look(member, key)

    async def _put(self, member: Member, key: str, value: int) -> bool:
        async def put() -> None:
            async with asyncio.timeout(PUT_SECONDS):
                await member.followed.put(key, value)

        if await _in_time(member.begin(put())) is None:
            return False
        self._counts["a fact is acknowledged"] += 1
        self._greatest[key] = max(value, self._greatest.get(key, 0))
        return True

    async def look(self, member: Member, key: str) -> bool:
        known = self._greatest.get(key)
        asked = await _in_time(member.begin(member.followed.of_now(key)))
        if asked is None:
            return False
        self._counts["a fact is asked"] += 1
        told = asked[0]
        if known is not None and told is None and not member.followed.has_seen_its_topic:
            return False  # a broker has told one that has just started that the topic is missing
        if known is not None and (told is None or told < known):
            raise Violation(
                f"{member.name} says that the greatest of {key} is {told}, and {known} was acknowledged before"
            )
        return True

    def check(self) -> None:
        if not self._judged.is_there:
            return
        judged, greatest = self._judged.log(0), dict[str, int]()
        judged.look()
        for key, value in judged.written:
            greatest[key] = max(greatest.get(key, 0), int(value or 0))
        if any(greatest.get(key, 0) < value for key, value in self._greatest.items()):
            raise Violation(f"{self._greatest} were acknowledged, and {self._judged.topic} has {greatest}")
