"""Topics whose log Pulsar has lost, or can't load: groups go on without them.

A partition that moves to another broker can't be described for a second or two, and what is decided then without the
topic's id is wrong. So a topic counts as lost only when nobody could describe it for half a minute, and somebody tried
again and again. This sidecar looks by itself, for clients may ask seldom:

    asked about ──▶ in doubt ──(3 looks in a row, 30 s and more)──▶ lost
                        ▲  │                                         │
       (no look for 15 s)  └──────────(described, or gone)───────────┴──▶ forgotten

Lost topics are looked at too: one that is made again is another. Where Pulsar hangs, a look takes half a minute, and a
verdict one and a half. Topics that are known to be slow have places of their own, so that they delay no other.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

from kafka_sidecar.loop.single_flight import SingleFlight
from kafka_sidecar.loop.supervised import SupervisedTask
from kafka_sidecar.pulsar.errors import PulsarError, TopicMissing, Undescribed
from kafka_sidecar.topics.failed_looks import FailedLooks
from kafka_sidecar.topics.names import TopicName

# A topic counts as lost when it could not be described for 30 s. Brokers take over the partitions of a dead broker
# within about 10 s.
LOST_SECONDS: Final = 30.0
# A topic counts as lost after three failed lookups that are at least LOOK_SECONDS apart.
TIMES: Final = 3
# Longest pause from the end of one lookup to the start of the next. After a longer pause the count restarts, since the
# partition may only have been unloaded twice.
PAUSE_SECONDS: Final = 15.0
# With a lookup every 5 s a topic gets six of them before it counts as lost.
LOOK_SECONDS: Final = 5.0
# Interval of lookups of a lost topic. If somebody deletes and recreates the topic with Pulsar's own tools within it,
# that stays unnoticed. 300 topics can be looked up at this rate.
LOST_LOOK_SECONDS: Final = 10.0
# A topic is forgotten one hour after the last request about it: tools that watch groups ask about once a minute, some
# every 15 min.
ASKED_SECONDS: Final = 3_600.0
# Limit of concurrent lookups: half of the catalogue's CONCURRENT_LOOKUPS. Each lookup makes two admin calls.
PLACES: Final = 8
# Places for topics whose last lookup took longer than SLOW_SECONDS. The other places stay free for topics that are
# described quickly.
SLOW_PLACES: Final = 4
# A broker describes a topic within milliseconds, under load within a second.
SLOW_SECONDS: Final = 2.0
# Lookups begin every 0.25 s, at most PLACES at a time. That limits them to 64 admin calls a second, however many topics
# are in doubt.
ROUND_SECONDS: Final = 0.25
# Limit of topics in doubt, which take about 4 MB. Further topics do not count as lost until others are forgotten.
MOST_TOPICS: Final = 10_000


class _Doubt:
    __slots__ = ("asked_at", "begun_at", "counted_at", "due_at", "is_slow", "last_at", "since", "times")

    def __init__(self, now: float) -> None:
        self.asked_at = self.since = self.last_at = self.counted_at = now
        self.begun_at = 0.0  # start time of the lookup in progress
        self.due_at = now + LOOK_SECONDS
        self.times = 1
        self.is_slow = False

    def confirm(self, begun: float, now: float) -> None:
        """A look could not describe it."""
        if not self.goes_on(begun):
            self.since, self.times, self.counted_at = begun, 1, now
        elif now - self.counted_at >= LOOK_SECONDS:  # concurrent lookups of a topic count once
            self.times += 1
            self.counted_at = now
        self.last_at = now

    def goes_on(self, begun: float) -> bool:
        """Whether a look that begins then belongs to the ones before."""
        return begun - self.last_at <= PAUSE_SECONDS

    def looked_at(self, now: float) -> None:
        """By this sidecar itself."""
        self.is_slow = now - self.begun_at > SLOW_SECONDS
        if self.is_lost:
            self.due_at = now + LOST_LOOK_SECONDS
        else:
            self.due_at = now if self.is_slow else now + LOOK_SECONDS

    def is_slow_by(self, now: float) -> bool:
        """While it is looked at."""
        return self.is_slow or now - self.begun_at > SLOW_SECONDS

    @property
    def is_lost(self) -> bool:
        """As the last look says. One that comes after a longer pause begins the count again."""
        return self.times >= TIMES and self.last_at - self.since >= LOST_SECONDS


class LostTopics:
    def __init__(self, look: Callable[[TopicName], Awaitable[object]], clock: Callable[[], float]) -> None:
        """`look` raises Undescribed where Pulsar can't describe the topic."""
        self._look = look
        self._clock = clock
        self.failed_looks = FailedLooks(clock)
        # Ordered by the start of the last lookup, oldest first.
        self._doubts: OrderedDict[TopicName, _Doubt] = OrderedDict()
        self._looks: SingleFlight[TopicName, None] = SingleFlight()
        self._looked_at: dict[TopicName, _Doubt] = {}  # topics with a lookup in progress
        self._looking = SupervisedTask("lost_topics", "this sidecar", self._look_on)
        self._is_closed = False

    def has(self, name: TopicName) -> bool:
        """Whether a topic that could not be described just now is lost. If that is not known yet, it will be."""
        doubt = self._doubt(name)
        return doubt is not None and doubt.is_lost

    def seconds_in_doubt(self, name: TopicName) -> float | None:
        """For how long nobody could describe a topic that could not be described just now either. None where too many
        are in doubt.
        """
        doubt = self._doubt(name)
        if doubt is None:
            return None
        return doubt.last_at - doubt.since if doubt.goes_on(self._clock()) else 0.0

    def may_be_lost(self, name: TopicName) -> bool:
        """Whether nobody could describe a topic when it was looked at last."""
        return name in self._doubts

    def _doubt(self, name: TopicName) -> _Doubt | None:
        now = self._clock()
        doubt = self._doubts.get(name)
        if doubt is None:
            if self._is_closed or len(self._doubts) >= MOST_TOPICS:
                return None
            doubt = self._doubts[name] = _Doubt(now)
            self._looking.start()
        doubt.asked_at = now
        return doubt

    def note(self, name: TopicName, begun: float) -> None:
        """A look that began then could not describe it. Nobody need have asked about it."""
        doubt = self._doubts.get(name)
        if doubt is not None:
            doubt.confirm(begun, self._clock())

    def forget(self, name: TopicName) -> None:
        """It is described, or gone: what has its name next is another."""
        self._doubts.pop(name, None)
        self.failed_looks.forget(name)

    async def _look_on(self) -> None:
        while self._doubts:
            await asyncio.sleep(ROUND_SECONDS)
            self._begin_looks(self._clock())

    def _begin_looks(self, now: float) -> None:
        """Those first whose count would break off. Of more topics than can be looked at in time, some are counted to
        the end.
        """
        if len(self._looked_at) >= PLACES:
            return
        doubts = list(self._doubts.items())
        for name, doubt in doubts:
            if now - doubt.asked_at > ASKED_SECONDS:
                self.forget(name)
            elif doubt.goes_on(now):
                self._begin_look(name, doubt, now)
        for name, doubt in doubts:
            if not doubt.goes_on(now):
                self._begin_look(name, doubt, now)

    def _begin_look(self, name: TopicName, doubt: _Doubt, now: float) -> None:
        if doubt.due_at > now or name not in self._doubts or name in self._looked_at or not self._has_place(doubt, now):
            return
        self._doubts.move_to_end(name)
        self._looked_at[name] = doubt
        doubt.begun_at = now
        self._looks.begin(name, partial(self._look_at, name, doubt))

    def _has_place(self, doubt: _Doubt, now: float) -> bool:
        if len(self._looked_at) >= PLACES:
            return False
        return not doubt.is_slow or sum(one.is_slow_by(now) for one in self._looked_at.values()) < SLOW_PLACES

    async def _look_at(self, name: TopicName, doubt: _Doubt) -> None:
        try:
            await self._look(name)
            self.forget(name)
        except Undescribed:
            self.note(name, doubt.begun_at)
        except TopicMissing:
            self.forget(name)
        except PulsarError:
            pass  # the error says nothing about the topic
        finally:
            del self._looked_at[name]
            doubt.looked_at(self._clock())

    async def close(self) -> None:
        self._is_closed = True
        await self._looking.stopped()
        await self._looks.close()
