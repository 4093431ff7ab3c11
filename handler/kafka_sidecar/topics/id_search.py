"""Whose id is it? This process knows the ids that it has given to clients; for another one it describes all topics."""

from __future__ import annotations

import asyncio
import uuid
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Protocol

from kafka_sidecar.loop.single_flight import SingleFlight
from kafka_sidecar.pulsar.errors import Unavailable, Undescribed
from kafka_sidecar.topics.names import TopicName

# A client asks again and again by the id of a topic that was deleted.
UNKNOWN_SECONDS: Final = 5.0
# While a topic is away an id may be its own: all are looked through again after so long.
AGAIN_SECONDS: Final = 1.0
# Clients go on asking for a few of them; more would be somebody guessing ids.
MOST_UNKNOWN: Final = 1_000


class HasLostTopics(Protocol):
    def has(self, name: TopicName) -> bool: ...
    def is_lost(self, name: TopicName) -> bool: ...


class IdSearch:
    def __init__(
        self,
        name_of: Callable[[uuid.UUID], TopicName | None],
        all_names: Callable[[], Awaitable[Sequence[TopicName]]],
        describe: Callable[[TopicName], Awaitable[object]],
        lost: HasLostTopics,
        clock: Callable[[], float],
    ) -> None:
        """`name_of` knows the id of every topic that was described."""
        self._name_of = name_of
        self._all_names = all_names
        self._describe = describe
        self._lost = lost
        self._clock = clock
        self._unknown: OrderedDict[uuid.UUID, float] = OrderedDict()  # until when they are not looked for again
        self._looking: SingleFlight[None, bool] = SingleFlight()
        self._again_at = 0.0

    async def find(self, topic_id: uuid.UUID) -> TopicName | None:
        """The topic of an id, None where there is none. Unavailable while a topic is away that may have it."""
        name = self._name_of(topic_id)
        if name is not None or self._clock() < self._unknown.get(topic_id, 0.0):
            return name
        has_described_all = self._clock() >= self._again_at and await self._looking.call_after(None, self._describe_all)
        name = self._name_of(topic_id)
        if name is None:
            if not has_described_all:
                raise Unavailable(f"Pulsar can't describe all topics now, and one of them may have the id {topic_id}")
            self._unknown[topic_id] = self._clock() + UNKNOWN_SECONDS
            self._unknown.move_to_end(topic_id)
            if len(self._unknown) > MOST_UNKNOWN:
                self._unknown.popitem(last=False)
        return name

    async def _describe_all(self) -> bool:
        """False where one of them was away. Those that are lost have ids that nobody can ask for."""
        names = [name for name in await self._all_names() if not self._lost.is_lost(name)]
        described = await asyncio.gather(*map(self._describe, names), return_exceptions=True)
        is_any_away = any([self._is_away(name, found) for name, found in zip(names, described, strict=True)])
        if is_any_away:
            self._again_at = self._clock() + AGAIN_SECONDS
        return not is_any_away

    def _is_away(self, name: TopicName, found: object) -> bool:
        return isinstance(found, Unavailable) and not (isinstance(found, Undescribed) and self._lost.has(name))

    def forget_unknown(self) -> None:
        """There are more topics to look through."""
        self._unknown.clear()

    async def close(self) -> None:
        await self._looking.close()
