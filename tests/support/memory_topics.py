"""Topics in memory: what Pulsar would say of them, and when it would not."""

from __future__ import annotations

import asyncio
import uuid
from dataclasses import dataclass, field

from kafka_sidecar.groups.topics_image import TopicsImage, TopicSource
from kafka_sidecar.pulsar.errors import NotPermitted, Unavailable, Undescribed


@dataclass
class MemoryTopics:
    """The source of a TopicsImage."""

    partitions: dict[str, int] = field(default_factory=dict)
    unavailable: bool = False
    hangs: bool = False
    broken: set[str] = field(default_factory=set)  # topics that can't be looked up
    undescribed: set[str] = field(default_factory=set)  # they are there, and their first partition is not
    lost: set[str] = field(default_factory=set)  # of these they never will be
    forbidden: set[str] = field(default_factory=set)
    asked: list[str] = field(default_factory=list)
    generation: dict[str, int] = field(default_factory=dict)  # of topics that were made again

    def canonical(self, name: str) -> str:
        return name

    def topic_id(self, name: str) -> uuid.UUID:
        return uuid.uuid5(uuid.NAMESPACE_URL, f"{name}/{self.generation.get(name, 0)}")

    async def describe(self, name: str) -> tuple[uuid.UUID, int] | None:
        await asyncio.sleep(0)
        self.asked.append(name)
        if self.hangs:
            await asyncio.sleep(3600)
        if self.unavailable or name in self.broken:
            raise Unavailable("Pulsar is away")
        if name in self.undescribed:
            raise Undescribed(name)
        if name in self.forbidden:
            raise NotPermitted("not yours")
        return (self.topic_id(name), self.partitions[name]) if name in self.partitions else None

    def is_lost(self, name: str) -> bool:
        return name in self.lost

    async def id_of(self, name: str) -> uuid.UUID | None:
        return None

    def scope_of(self, expression: str) -> tuple[str, str]:
        return "public/default", expression

    async def listed(self, namespace: str) -> dict[str, str]:
        await asyncio.sleep(0)
        if self.unavailable:
            raise Unavailable("Pulsar is away")
        return {name: name for name in self.partitions}


def image_of(source: TopicSource) -> TopicsImage:
    return TopicsImage(source)
