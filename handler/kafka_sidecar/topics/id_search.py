"""Whose id is it? This process knows the ids that it has given to clients; for another one it describes all topics."""

from __future__ import annotations

import asyncio
import uuid
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final

from kafka_sidecar.pulsar.errors import Unavailable, Undescribed
from kafka_sidecar.topics.names import TopicName

# A client asks again and again by the id of a topic that was deleted.
UNKNOWN_SECONDS: Final = 5.0
# A partition that moves is back within seconds; until then its topic can't be described. Somewhere one always moves, or is being made, so
# no id waits for longer.
MOVE_SECONDS: Final = 10.0
# Clients go on asking for a few of them; more would be somebody guessing ids.
MOST_UNKNOWN: Final = 1_000


class IdSearch:
    def __init__(
        self,
        name_of: Callable[[uuid.UUID], TopicName | None],
        all_names: Callable[[], Awaitable[Sequence[TopicName]]],
        describe: Callable[[TopicName], Awaitable[object]],
        clock: Callable[[], float],
    ) -> None:
        """`name_of` knows the id of every topic that was described."""
        self._name_of = name_of
        self._all_names = all_names
        self._describe = describe
        self._clock = clock
        self._unknown: OrderedDict[uuid.UUID, float] = OrderedDict()  # until when they are not looked for again
        self._doubted_since: OrderedDict[uuid.UUID, float] = OrderedDict()

    async def find(self, topic_id: uuid.UUID) -> TopicName | None:
        """The topic of an id, None where there is none. Unavailable while a topic that may have it is away."""
        name = self._name_of(topic_id)
        if name is not None or self._clock() < self._unknown.get(topic_id, 0.0):
            return name
        described = await asyncio.gather(*map(self._describe, await self._all_names()), return_exceptions=True)
        name = self._name_of(topic_id)
        if name is not None:
            self._doubted_since.pop(topic_id, None)
        else:
            self._check_away(topic_id, described)
            _note(self._unknown, topic_id, self._clock() + UNKNOWN_SECONDS)
        return name

    def _check_away(self, topic_id: uuid.UUID, described: Iterable[object]) -> None:
        away = [one for one in described if isinstance(one, Unavailable)]
        if not away:
            self._doubted_since.pop(topic_id, None)
            return
        may_move = all(isinstance(one, Undescribed) for one in away)
        now = self._clock()
        if topic_id not in self._doubted_since:
            _note(self._doubted_since, topic_id, now)
        if not may_move or now - self._doubted_since[topic_id] < MOVE_SECONDS:
            raise Unavailable(f"Pulsar can't describe all topics now, and one of them may have the id {topic_id}")

    def forget_unknown(self) -> None:
        """There are more topics to look through."""
        self._unknown.clear()


def _note(table: OrderedDict[uuid.UUID, float], topic_id: uuid.UUID, at: float) -> None:
    table[topic_id] = at
    table.move_to_end(topic_id)
    if len(table) > MOST_UNKNOWN:
        table.popitem(last=False)
