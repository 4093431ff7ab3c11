"""The picture of all topics: kept for those who list them, so that a list of ten thousand is not ten thousand
questions.

The names are asked for by each listing, in one call. What a topic is, its partitions and its id, is what was found when
it was looked at last. The picture is looked at again in the background, at a bounded rate, for as long as somebody
lists. A topic that clients name or use is looked at by those requests, and does not wait for that.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from kafka_sidecar.errors import SidecarError
from kafka_sidecar.loop.supervised import SupervisedTask, every
from kafka_sidecar.telemetry.limits import RateLimitedLog
from kafka_sidecar.topics.names import TopicName

log = RateLimitedLog(logging.getLogger(__name__))

# Listed topics are refreshed for 600 s after the last listing: clients list every 5 min (metadata.max.age.ms), tools
# more often.
LISTED_SECONDS: Final = 600.0
ROUND_SECONDS: Final = 1.0
# A listed topic is refreshed when its description is 30 s old, unless there are too many topics.
AGE_SECONDS: Final = 30.0
# Limit of topics refreshed in one round (1 s). Each takes two admin calls, together 0.5 ms of CPU time, so that is less
# than 5 % of a core.
REFRESHED_A_ROUND: Final = 80
# Limit of topics described for the first time in one round (1 s). This takes half a core, and 10,000 topics are known
# after ten rounds.
FILLED_A_ROUND: Final = 1_000
# Limit of names that one round examines; most of them need no lookup, since they had one lately.
SEEN_A_ROUND: Final = 2_000
# Topics that a round looks up concurrently. With two admin calls each they take half of the admin client's connections.
AT_ONCE: Final = 4
# Limit of listed topics that are refreshed. It is below the catalogue's MAX_TOPICS, so that listed topics do not evict
# topics in use.
MOST: Final = 40_000


class LooksUpTopics(Protocol):
    """The catalogue, as far as the picture needs it."""

    def age(self, name: TopicName) -> float | None:
        """Seconds since a topic was looked at, None where it is not remembered."""
        ...

    async def look_at(self, name: TopicName) -> object:
        """Look at it now. May raise PulsarError."""
        ...


class Listing:
    def __init__(self, topics: LooksUpTopics, clock: Callable[[], float]) -> None:
        self._topics = topics
        self._clock = clock
        self._names: Sequence[TopicName] = ()
        # When the lookup of a topic failed: it was deleted after the listing, or can't be described.
        self._failed_at: dict[TopicName, float] = {}
        self._listed_at = -LISTED_SECONDS
        self._next = 0  # index of the name at which the next round begins

    def listed(self, names: Sequence[TopicName]) -> None:
        """Somebody has listed the topics, and these are there."""
        self._names = names[:MOST]
        self._listed_at = self._clock()

    def task(self) -> SupervisedTask:
        return every(ROUND_SECONDS, "topic_listing", self.look_around)

    async def look_around(self) -> None:
        """One round: first what nobody has looked at, then what is oldest."""
        if self._clock() - self._listed_at > LISTED_SECONDS:
            self._names = ()
            self._failed_at.clear()
            return
        names = self._names
        unknown: list[TopicName] = []
        old: list[TopicName] = []
        begin = self._next if self._next < len(names) else 0
        end = min(begin + SEEN_A_ROUND, len(names))
        for at in range(begin, end):
            name = names[at]
            age = self._topics.age(name)
            if self._clock() - self._failed_at.get(name, -AGE_SECONDS) < AGE_SECONDS:
                continue
            if age is None:
                unknown.append(name)
            elif age > AGE_SECONDS:
                old.append(name)
            if len(old) == REFRESHED_A_ROUND or len(unknown) == FILLED_A_ROUND:
                end = at + 1
                break
        self._next = end
        wanted = unknown + old
        for first in range(0, len(wanted), AT_ONCE):
            await self._look_at(wanted[first : first + AT_ONCE])

    async def _look_at(self, names: Sequence[TopicName]) -> None:
        results = await asyncio.gather(*map(self._topics.look_at, names), return_exceptions=True)
        for name, result in zip(names, results, strict=True):
            if isinstance(result, SidecarError):
                if len(self._failed_at) >= MOST:
                    self._failed_at.clear()
                self._failed_at[name] = self._clock()
                if result.retriable:  # a deleted topic needs no log line
                    log.warning("%s", result)
            elif isinstance(result, BaseException):
                raise result
