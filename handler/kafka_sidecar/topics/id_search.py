"""Whose id is it? This process knows the ids that it has given to clients; for another one it describes all topics.

All ids that are asked for in one turn of the loop share a search. It goes on when their requests have been answered, and a client that
asks again joins it.
"""

from __future__ import annotations

import asyncio
import uuid
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from typing import Final, Protocol

from kafka_sidecar.loop.pace import Pace
from kafka_sidecar.loop.single_flight import SingleFlight
from kafka_sidecar.pulsar.errors import NotPermitted, PulsarError, Refused, TopicMissing, Unavailable, Undescribed
from kafka_sidecar.topics.names import TopicName

# A client asks again and again by the id of a topic that was deleted.
UNKNOWN_SECONDS: Final = 5.0
# A partition that moves is back within seconds; until then its topic can't be described. Somewhere one always moves, or is being made, so
# no id waits for longer.
MOVE_SECONDS: Final = 10.0
# Clients go on asking for a few of them; more would be somebody guessing ids. Some two megabytes.
MOST_UNKNOWN: Final = 10_000
# As many as the catalogue looks up side by side.
AT_ONCE: Final = 16


class Described(Protocol):
    @property
    def topic_id(self) -> uuid.UUID: ...


class _Search:
    """Of ids that were asked for together."""

    __slots__ = ("ids", "left")

    def __init__(self) -> None:
        self.ids: set[uuid.UUID] = set()
        self.left: set[uuid.UUID] = set()


class IdSearch:
    def __init__(
        self,
        name_of: Callable[[uuid.UUID], TopicName | None],
        all_names: Callable[[], Awaitable[Sequence[TopicName]]],
        describe: Callable[[TopicName], Awaitable[Described]],
        seconds_in_doubt: Callable[[TopicName, float | None], float],
        clock: Callable[[], float],
    ) -> None:
        """`name_of` knows the id of every topic that was described. `seconds_in_doubt`: for how long nobody could describe a topic; it is
        also given when a look began that could not either.
        """
        self._name_of = name_of
        self._all_names = all_names
        self._describe = describe
        self._seconds_in_doubt = seconds_in_doubt
        self._clock = clock
        self._unknown: OrderedDict[uuid.UUID, float] = OrderedDict()  # until when they are not looked for again
        self._searches: dict[uuid.UUID, _Search] = {}
        self._next: _Search | None = None  # begins with the next turn of the loop
        self._running: SingleFlight[_Search, frozenset[uuid.UUID]] = SingleFlight()

    async def find(self, topic_id: uuid.UUID) -> TopicName | None:
        """The topic of an id, None where there is none. Unavailable while a topic that may have it is away. May raise PulsarError."""
        name = self._name_of(topic_id)
        if name is not None or self.is_unknown(topic_id):
            return name
        search = self._search_for(topic_id)
        if topic_id in await self._running.call(search, partial(self._search, search)):
            raise Unavailable(f"Pulsar can't describe all topics now, and one of them may have the id {topic_id}")
        return self._name_of(topic_id)

    def is_unknown(self, topic_id: uuid.UUID) -> bool:
        """Whether no topic had it a moment ago."""
        return self._clock() < self._unknown.get(topic_id, 0.0)

    def _search_for(self, topic_id: uuid.UUID) -> _Search:
        search = self._searches.get(topic_id)
        if search is None:
            if len(self._searches) >= MOST_UNKNOWN:
                raise Unavailable("too many topics are looked for by id")
            if self._next is None:
                self._next = _Search()
            search = self._searches[topic_id] = self._next
            search.ids.add(topic_id)
        return search

    async def _search(self, search: _Search) -> frozenset[uuid.UUID]:
        """Returns the ids that a topic may have for all that Pulsar says now."""
        self._next = None
        search.left = set(search.ids)
        try:
            is_certain = await self._describe_all(iter(await self._all_names()), search.left)
        finally:
            for topic_id in search.ids:
                del self._searches[topic_id]
        left = frozenset(search.left)
        if not is_certain:
            return left
        for topic_id in left:
            self._note_unknown(topic_id)
        return frozenset()

    async def _describe_all(self, names: Iterator[TopicName], left: set[uuid.UUID]) -> bool:
        """Whether an id that is `left` then is no topic's. It ends when none is left: then it waits for no topic that is slow."""
        all_found = asyncio.Event()

        async def describe_in_turn() -> bool:
            is_certain, pace = True, Pace()
            for name in names:
                is_certain &= await self._try_to_describe(name, left)
                if not left:
                    all_found.set()
                    break
                await pace.maybe_yield()
            return is_certain

        async def describe_side_by_side() -> bool:
            return all(await asyncio.gather(*(describe_in_turn() for _ in range(AT_ONCE))))

        described = asyncio.create_task(describe_side_by_side())
        found = asyncio.create_task(all_found.wait())
        try:
            await asyncio.wait({found, described}, return_when=asyncio.FIRST_COMPLETED)
            return not left or await described
        finally:
            found.cancel()
            described.cancel()
            await asyncio.gather(found, described, return_exceptions=True)

    async def _try_to_describe(self, name: TopicName, left: set[uuid.UUID]) -> bool:
        """False where the topic may have one of these ids."""
        if self._seconds_in_doubt(name, None) >= MOVE_SECONDS:
            return True  # it is looked at again and again, and is not waited for
        begun = self._clock()
        try:
            left.discard((await self._describe(name)).topic_id)
        except Undescribed:
            return self._seconds_in_doubt(name, begun) >= MOVE_SECONDS
        except (TopicMissing, NotPermitted, Refused):
            pass
        except PulsarError:
            return False
        return True

    def _note_unknown(self, topic_id: uuid.UUID) -> None:
        self._unknown[topic_id] = self._clock() + UNKNOWN_SECONDS
        self._unknown.move_to_end(topic_id)
        if len(self._unknown) > MOST_UNKNOWN:
            self._unknown.popitem(last=False)

    def forget_unknown(self) -> None:
        """There are more topics to look through."""
        self._unknown.clear()

    async def close(self) -> None:
        await self._running.close()
