"""Topics whose log Pulsar has lost, or can't load: no group waits for them longer than half a minute.

A partition that moves to another broker can't be described for a second or two, and what is decided then without the topic's id is wrong.
So a topic counts as lost only when nobody could describe it for half a minute. This sidecar looks by itself, for clients may ask seldom:

    asked about ──▶ in doubt ──(3 times within 30 s and more)──▶ lost
                        │                                          │
                        └───────────(described, or gone)───────────┴──▶ forgotten

Lost topics are looked at too: one that is made again is another. A look may take half a minute where Pulsar hangs. It delays no other:
slow topics have places of their own.
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
from kafka_sidecar.topics.names import TopicName

# A broker takes over the partitions of one that died within some ten seconds.
LOST_SECONDS: Final = 30.0
# That it could not be described, each some seconds after the one before: two moves of a partition are no loss.
TIMES: Final = 3
# Also the time within which somebody may delete a topic with Pulsar's own tools, and make it again, without being noticed.
LOOK_SECONDS: Final = 5.0
# Tools that watch groups ask each minute or so, some each quarter of an hour.
ASKED_SECONDS: Final = 3_600.0
# Half of what the catalog looks up side by side: clients' topics have the others. Each look is two questions to the admin API.
PLACES: Final = 8
# For topics whose last look took longer than SLOW_SECONDS. The other places are for those that are answered soon.
SLOW_PLACES: Final = 4
# A broker answers within some milliseconds, under load within a second.
SLOW_SECONDS: Final = 2.0
# However many there are, these are 32 questions a second.
ROUND_SECONDS: Final = 0.5
# Some eight megabytes. Topics beyond are not lost until others are forgotten.
MOST_TOPICS: Final = 20_000


class _Doubt:
    __slots__ = ("asked_at", "begun_at", "due_at", "is_slow", "last_at", "since", "times")

    def __init__(self, now: float) -> None:
        self.begun_at = 0.0  # of the look that is under way
        self.asked_at = self.since = self.last_at = now
        self.due_at = now + LOOK_SECONDS
        self.times = 1
        self.is_slow = False

    def confirm(self, now: float) -> None:
        """It could not be described just now."""
        if now - self.last_at >= LOOK_SECONDS:  # many may ask at once
            self.times += 1
            self.last_at = now

    def is_slow_by(self, now: float) -> bool:
        """While it is looked at."""
        return self.is_slow or now - self.begun_at > SLOW_SECONDS

    def is_lost(self, now: float) -> bool:
        return self.times >= TIMES and now - self.since >= LOST_SECONDS


class LostTopics:
    def __init__(self, look: Callable[[TopicName], Awaitable[object]], clock: Callable[[], float]) -> None:
        """`look` raises Undescribed where Pulsar can't describe the topic."""
        self._look = look
        self._clock = clock
        self._doubts: OrderedDict[TopicName, _Doubt] = OrderedDict()  # those that were looked at last come last
        self._looks: SingleFlight[TopicName, None] = SingleFlight()
        self._looked_at: dict[TopicName, _Doubt] = {}  # just now
        self._looking = SupervisedTask("lost_topics", "this sidecar", self._look_on)
        self._is_closed = False

    def has(self, name: TopicName) -> bool:
        """Whether a topic that can't be described now is lost. If that is not known yet, it will be."""
        self.note(name)
        doubt = self._doubts.get(name)
        if doubt is None:
            return False
        now = doubt.asked_at = self._clock()
        return doubt.is_lost(now)

    def note(self, name: TopicName) -> None:
        """It could not be described just now."""
        now = self._clock()
        doubt = self._doubts.get(name)
        if doubt is not None:
            doubt.confirm(now)
        elif not self._is_closed and len(self._doubts) < MOST_TOPICS:
            self._doubts[name] = _Doubt(now)
            self._looking.start()

    def has_slowly(self, name: TopicName) -> bool:
        """Whether a topic is lost and Pulsar takes seconds to say so: a request that waits for that each time is never answered."""
        doubt = self._doubts.get(name)
        if doubt is None:
            return False
        now = doubt.asked_at = self._clock()
        return doubt.is_slow and doubt.is_lost(now)

    def forget(self, name: TopicName) -> None:
        """It is described, or gone: what has its name next is another."""
        self._doubts.pop(name, None)

    async def _look_on(self) -> None:
        while self._doubts:
            await asyncio.sleep(ROUND_SECONDS)
            self._begin_looks(self._clock())

    def _begin_looks(self, now: float) -> None:
        for name, doubt in list(self._doubts.items()):
            if len(self._looked_at) >= PLACES:
                return
            if now - doubt.asked_at > ASKED_SECONDS:
                self.forget(name)
            elif doubt.due_at <= now and name not in self._looked_at and self._has_place(doubt, now):
                self._doubts.move_to_end(name)
                self._looked_at[name] = doubt
                doubt.begun_at = now
                self._looks.begin(name, partial(self._look_at, name, doubt))

    def _has_place(self, doubt: _Doubt, now: float) -> bool:
        return not doubt.is_slow or sum(one.is_slow_by(now) for one in self._looked_at.values()) < SLOW_PLACES

    async def _look_at(self, name: TopicName, doubt: _Doubt) -> None:
        try:
            await self._look(name)
            self.forget(name)
        except Undescribed:
            doubt.confirm(self._clock())
        except TopicMissing:
            self.forget(name)
        except PulsarError:
            pass  # it says nothing
        finally:
            del self._looked_at[name]
            now = self._clock()
            doubt.is_slow = now - doubt.begun_at > SLOW_SECONDS
            doubt.due_at = now + LOOK_SECONDS

    async def close(self) -> None:
        self._is_closed = True
        await self._looking.stopped()
        await self._looks.close()
