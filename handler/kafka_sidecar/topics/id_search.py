"""Whose id is it? This process knows the ids that it has given to clients; for another one it describes all topics.

Ids that clients ask for together share a search. The search goes on when their requests have been answered, and a
client that asks again joins it. A search that could not settle an id is followed by another, which looks only at the
topics that are left: a topic that the sidecar has described since a client first asked for the id has another id, and
so has a topic that was made since.
"""

from __future__ import annotations

import asyncio
import logging
import math
import uuid
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final, NamedTuple, Protocol, TypeVar

from kafka_sidecar.loop.pace import Pace
from kafka_sidecar.loop.single_flight import SingleFlight
from kafka_sidecar.pulsar.errors import NotPermitted, PulsarError, Refused, TopicMissing, Unavailable, Undescribed
from kafka_sidecar.telemetry import metrics
from kafka_sidecar.telemetry.limits import RateLimitedLog
from kafka_sidecar.topics.description import FRESH_SECONDS, UNPARTITIONED_SECONDS
from kafka_sidecar.topics.lost_topics import LostTopics
from kafka_sidecar.topics.names import TopicName

log = RateLimitedLog(logging.getLogger(__name__))

T = TypeVar("T")

# An id that no topic has counts as unknown for 5 s, since clients keep requesting the ids of deleted topics.
UNKNOWN_SECONDS: Final = 5.0
# A partition that is unloaded is back within seconds, and its topic can't be described meanwhile. A search by id waits
# at most 10 s for such a topic.
MOVE_SECONDS: Final = 10.0
# Timeout of the lookup of a topic whose last lookup failed too, since Pulsar may hang.
DOUBTED_SECONDS: Final = 2.0
# A client that waits for an id requests it again within 2 s. After 20 s without a request the next one counts as the
# first.
ASKED_SECONDS: Final = 20.0
# A topic that is not listed is forgotten after 600 s, since a namespace whose listing fails for a moment looks empty.
UNLISTED_SECONDS: Final = 600.0
# Limit of ids in a search. Clients keep requesting a few unknown ids; many more would come from a client that guesses
# ids. 10,000 ids take about 2 MB.
MOST_IDS: Final = 10_000
# Limit of concurrent lookups of a search, as in the catalogue (CONCURRENT_LOOKUPS).
AT_ONCE: Final = 16


class Described(Protocol):
    @property
    def topic_id(self) -> uuid.UUID: ...
    @property
    def learnt_at(self) -> float: ...


class Topics(Protocol):
    """The catalogue, as far as a search needs it."""

    @property
    def lost(self) -> LostTopics: ...

    def name_of(self, topic_id: uuid.UUID) -> TopicName | None:
        """Knows the id of every topic that was described lately."""
        ...

    async def all_names(self) -> Sequence[TopicName]:
        """As a listing has them that begins now."""
        ...

    async def find(self, name: TopicName) -> Described: ...


class _Listed:
    """What is known of a topic that a listing had. It was made after `since`: a listing that began then did not have
    it.
    """

    __slots__ = ("described_at", "last_at", "since", "topic_id")

    def __init__(self, since: float, now: float) -> None:
        self.since = since
        self.last_at = now
        self.described_at = -math.inf
        self.topic_id: uuid.UUID | None = None

    def has_id_as_of(self, asked_at: float, now: float) -> bool:
        """Whether the sidecar knows which id the topic had when the client asked, or a moment ago."""
        return self.described_at >= asked_at or now - self.described_at < FRESH_SECONDS


class _Asked(NamedTuple):
    first_at: float
    last_at: float


class _Search:
    """A search for all ids for which clients first asked in one second."""

    __slots__ = ("asked_at", "found", "generation", "ids")

    def __init__(self, asked_at: float, generation: int) -> None:
        self.asked_at = asked_at
        self.generation = generation
        self.ids: set[uuid.UUID] = set()
        self.found: dict[uuid.UUID, TopicName] = {}


class IdSearch:
    def __init__(self, topics: Topics, has_no_place: Callable[[], bool], clock: Callable[[], float]) -> None:
        """`has_no_place`: whether a look at a topic has to wait for others."""
        self._topics = topics
        self._has_no_place = has_no_place
        self._clock = clock
        # Id that no topic has → when it may be searched again.
        self._unknown: OrderedDict[uuid.UUID, float] = OrderedDict()
        # Ids that no search has settled yet, with the times of their first and last request.
        self._asked: OrderedDict[uuid.UUID, _Asked] = OrderedDict()
        self._listed: dict[TopicName, _Listed] = {}
        self._listed_at = -math.inf  # start time of the latest listing that has completed
        self._searches: dict[uuid.UUID, _Search] = {}
        # Searches that begin in the next event loop turn, by the time of the first request.
        self._next: dict[float, _Search] = {}
        self._generation = 0  # incremented when another namespace is to be searched
        self._running: SingleFlight[_Search, frozenset[uuid.UUID]] = SingleFlight()

    async def find(self, topic_id: uuid.UUID) -> TopicName | None:
        """The topic of an id, None where there is none. Unavailable while a topic that may have it is away. May raise
        PulsarError.
        """
        name = self._topics.name_of(topic_id)
        if name is not None or self.is_unknown(topic_id):
            return name
        search = self._search_for(topic_id)
        if topic_id in await self._running.call(search, partial(self._search, search)):
            raise Unavailable(f"Pulsar can't describe all topics now, and one of them may have the id {topic_id}")
        return search.found.get(topic_id)

    def is_unknown(self, topic_id: uuid.UUID) -> bool:
        """Whether no topic had it a moment ago."""
        return self._clock() < self._unknown.get(topic_id, 0.0)

    def _search_for(self, topic_id: uuid.UUID) -> _Search:
        search = self._searches.get(topic_id)
        if search is None:
            if len(self._searches) >= MOST_IDS:
                raise Unavailable("too many topics are looked for by id")
            asked_at = self._asked_at(topic_id)
            search = self._next.get(asked_at)
            if search is None:
                search = self._next[asked_at] = _Search(asked_at, self._generation)
            self._searches[topic_id] = search
            search.ids.add(topic_id)
        return search

    def _asked_at(self, topic_id: uuid.UUID) -> float:
        """When the client began to ask for it: the end of that second, so that ids have a search in common."""
        now = self._clock()
        asked = self._asked.get(topic_id)
        first_at = now if asked is None or now - asked.last_at > ASKED_SECONDS else asked.first_at
        _note(self._asked, topic_id, _Asked(first_at, now))
        return math.ceil(first_at)

    async def _search(self, search: _Search) -> frozenset[uuid.UUID]:
        """Returns the ids that a topic may have for all that Pulsar says now."""
        if self._next.get(search.asked_at) is search:
            del self._next[search.asked_at]
        try:
            begun = self._clock()
            names = await self._topics.all_names()
            await self._note_listed(names, begun, search.generation)
            is_certain = await self._describe_all(iter(names), search)
        finally:
            for topic_id in search.ids:
                if self._searches.get(topic_id) is search:
                    del self._searches[topic_id]
        left = search.ids - search.found.keys()
        if search.generation != self._generation or not is_certain:
            return frozenset(left)
        for topic_id in search.ids:
            self._asked.pop(topic_id, None)
        for topic_id in left:
            _note(self._unknown, topic_id, self._clock() + UNKNOWN_SECONDS)
        return frozenset()

    async def _note_listed(self, names: Sequence[TopicName], begun: float, generation: int) -> None:
        now, pace = self._clock(), Pace()
        since = self._listed_at if self._listed_at < begun else -math.inf
        for name in names:
            listed = self._listed.get(name)
            if listed is None:
                listed = self._listed[name] = _Listed(since, now)
            listed.last_at = now
            await pace.maybe_yield()
        if generation == self._generation:  # a listing of an older generation lacks namespaces that are searched now
            self._listed_at = max(self._listed_at, begun)
        if len(self._listed) > len(names):
            self._listed = {
                name: listed for name, listed in self._listed.items() if now - listed.last_at < UNLISTED_SECONDS
            }

    async def _describe_all(self, names: Iterator[TopicName], search: _Search) -> bool:
        """Whether an id that is not found then is no topic's. It ends when all are found: then it waits for no topic
        that is slow.
        """
        all_found = asyncio.Event()

        async def describe_in_turn() -> bool:
            is_certain, pace = True, Pace()
            for name in names:
                is_certain &= await self._has_another_id(name, search)
                if len(search.found) == len(search.ids):
                    all_found.set()
                    break
                await pace.maybe_yield()
            return is_certain

        async def describe_side_by_side() -> bool:
            async with asyncio.TaskGroup() as group:
                workers = [group.create_task(describe_in_turn()) for _ in range(AT_ONCE)]
            return all([worker.result() for worker in workers])

        described = asyncio.create_task(describe_side_by_side())
        found = asyncio.create_task(all_found.wait())
        try:
            await asyncio.wait({found, described}, return_when=asyncio.FIRST_COMPLETED)
            return all_found.is_set() or await described
        finally:
            found.cancel()
            described.cancel()
            await asyncio.gather(found, described, return_exceptions=True)

    async def _has_another_id(self, name: TopicName, search: _Search) -> bool:
        """False where nobody can say."""
        listed = self._listed.get(name) or _Listed(-math.inf, self._clock())
        if (
            listed.since > search.asked_at + UNPARTITIONED_SECONDS
        ):  # the topic was created after the client requested the id, even if a listing was cached for that long
            return True
        # If the topic had the searched id when it was last described, the catalogue has forgotten it since, and another
        # topic may have its name now. So the topic is described again.
        if listed.topic_id in search.ids or not listed.has_id_as_of(search.asked_at, self._clock()):
            try:
                described = await self._described(name)
            except Undescribed:
                seconds = self._topics.lost.seconds_in_doubt(name)
                return (self._clock() - search.asked_at if seconds is None else seconds) >= MOVE_SECONDS
            except (TopicMissing, NotPermitted, Refused):
                return True
            except PulsarError:
                return False
            except Exception:
                metrics.INTERNAL_ERRORS.labels("id_search").inc()
                log.exception("topic %s could not be described", name.pulsar)
                return False
            listed.described_at, listed.topic_id = described.learnt_at, described.topic_id
        if listed.topic_id in search.ids:
            search.found[listed.topic_id] = name
        return True

    async def _described(self, name: TopicName) -> Described:
        """The search waits only a moment for a topic that could not be described the last time either: Pulsar may hang
        over it.
        """
        if not self._topics.lost.may_be_lost(name):
            return await self._topics.find(name)
        try:
            async with asyncio.timeout(DOUBTED_SECONDS):
                return await self._topics.find(name)
        except TimeoutError as error:
            if self._has_no_place():  # the lookup may have waited for a free slot and never reached Pulsar
                raise Unavailable("too many topics are looked up") from error
            raise Undescribed(f"topic {name.pulsar} is not described in time") from error

    def forget_unknown(self) -> None:
        """There are more topics to look through."""
        self._generation += 1
        self._listed_at = -math.inf
        self._unknown.clear()
        self._searches.clear()
        self._next.clear()

    async def close(self) -> None:
        await self._running.close()


def _note(table: OrderedDict[uuid.UUID, T], topic_id: uuid.UUID, value: T) -> None:
    table[topic_id] = value
    table.move_to_end(topic_id)
    if len(table) > MOST_IDS:
        table.popitem(last=False)
