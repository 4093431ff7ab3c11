"""What sidecars keep of the log, modelled: a value is there a moment after it was sent, even if its sender dies, or it is lost, or late."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from handler.coordination.kept_places import Kept
from handler.partition.log.moved_start import MovedStart
from handler.pulsar.errors import Unavailable
from handler.tasks import BytesASecond
from tests.simulation.conduct import NOBODYS
from tests.simulation.loop import EPOCH_SECONDS
from tests.simulation.topic import SimulatedTopic

if TYPE_CHECKING:
    from tests.simulation.node import Node

# A value of which nobody can tell whether it was stored is lost, or lands at once, or after others.
UNKNOWN_LAND_AFTER: Final = (None, 0.001, 1.0, 15.0, 60.0)
OLD: Final = 0.1  # how often who does not look it up finds the value before the last


class States:
    """For one life of one sidecar."""

    def __init__(self, topic: SimulatedTopic, name: str) -> None:
        self._topic = topic
        self._name = name
        self._ids = 0
        self._draw = topic.chance.of(f"{name}/states")
        self._late = topic.chance.of(f"{name}/late states")
        self.rate = BytesASecond(1024 * 1024, 8 * 1024 * 1024)

    async def find(self, key: bytes) -> Kept | None:
        try:
            found = await self.look_up(key)
        except Unavailable:
            return None
        values = self._topic.kept.get(key, [])
        return values[-2] if len(values) > 1 and self._draw.random() < OLD else found

    async def look_up(self, key: bytes) -> Kept | None:
        await asyncio.sleep(self._draw.choice((0.001, 0.02, 0.5)))
        if not self._topic.is_calm and self._draw.random() < self._topic.bounds.failed_values:
            raise Unavailable("the states can't be read")
        values = self._topic.kept.get(key, [])
        return values[-1] if values else None

    async def names(self, prefix: bytes) -> list[bytes]:
        await asyncio.sleep(self._draw.choice((0.001, 0.02, 0.5)))
        if not self._topic.is_calm and self._draw.random() < self._topic.bounds.failed_values:
            raise Unavailable("the states can't be read")
        return [key for key, values in self._topic.kept.items() if key.startswith(prefix) and values and values[-1].value]

    def new_id(self) -> str:
        self._ids += 1
        return f"{self._name}/{self._ids}"

    async def keep(self, key: bytes, value: bytes) -> bool:
        try:
            await self.store(key, value)
        except Unavailable:
            return False
        return True

    async def store(self, key: bytes, value: bytes) -> None:
        delay = self._draw.choice((0.001, 0.02, 1.0))
        is_unknown = not self._topic.is_calm and self._draw.random() < self._topic.bounds.lost_values
        lands_after = self._late.choice(UNKNOWN_LAND_AFTER) if is_unknown else delay
        if lands_after is not None:
            kept = Kept(value, int((EPOCH_SECONDS + self._topic.loop.time()) * 1000))
            self._topic.loop.call_later(lands_after, self._land, key, kept, context=NOBODYS)
        await asyncio.sleep(delay * 2)
        if is_unknown:
            raise Unavailable("nobody can tell whether the value was stored")

    def _land(self, key: bytes, kept: Kept) -> None:
        self._topic.kept.setdefault(key, []).append(kept)


class LogStarts:
    """Where clients have moved the start of the log to, modelled: every sidecar hears of it a moment later."""

    def __init__(self, topic: SimulatedTopic, nodes: Sequence[Node]) -> None:
        self._topic = topic
        self._nodes = nodes
        self._draw = topic.chance.of("log starts")

    async def put(self, _: str, moved: MovedStart, /) -> None:
        await asyncio.sleep(self._draw.choice((0.001, 0.02, 0.5)))
        known = self._topic.start_moved_to
        self._topic.start_moved_to = moved if known is None else max(known, moved)
        for node in self._nodes:
            self._topic.loop.call_later(self._draw.choice((0.001, 0.02, 1.0)), node.on_start_moved, moved, context=NOBODYS)
        await asyncio.sleep(1.0)  # whoever put it hears of it as well
