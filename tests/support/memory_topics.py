"""Topics in memory: what Pulsar would say of them, and when it would not."""

from __future__ import annotations

import asyncio
import uuid
from dataclasses import dataclass, field

from handler.pulsar.errors import Unavailable


@dataclass
class MemoryTopics:
    """The source of a TopicBook."""

    partitions: dict[str, int] = field(default_factory=dict)
    unavailable: bool = False
    asked: list[str] = field(default_factory=list)
    generation: dict[str, int] = field(default_factory=dict)  # of topics that were made again

    def topic_id(self, name: str) -> uuid.UUID:
        return uuid.uuid5(uuid.NAMESPACE_URL, f"{name}/{self.generation.get(name, 0)}")

    async def describe(self, name: str) -> tuple[uuid.UUID, int] | None:
        await asyncio.sleep(0)
        self.asked.append(name)
        if self.unavailable:
            raise Unavailable("Pulsar is away")
        return (self.topic_id(name), self.partitions[name]) if name in self.partitions else None

    async def listed(self) -> list[str]:
        await asyncio.sleep(0)
        if self.unavailable:
            raise Unavailable("Pulsar is away")
        return list(self.partitions)
