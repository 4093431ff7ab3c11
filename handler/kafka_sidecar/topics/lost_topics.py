"""Topics whose log Pulsar has lost, or can't load: no group waits for them longer than half a minute.

A partition that moves to another broker can't be described for a second or two, and what is decided then without the topic's id is wrong.
So a topic counts as lost only when this sidecar has looked again and again for half a minute. It looks by itself: clients may ask seldom.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Final

from kafka_sidecar.loop.lasting import Lasting
from kafka_sidecar.loop.supervised import SupervisedTask
from kafka_sidecar.loop.waiting import in_slices
from kafka_sidecar.pulsar.errors import PulsarError, TopicMissing, Undescribed
from kafka_sidecar.topics.names import TopicName

# A broker takes over the partitions of one that died within some ten seconds.
LOST_SECONDS: Final = 30.0
# Each look is two questions to the admin API.
LOOK_SECONDS: Final = 5.0
# Looks that fail otherwise say nothing.
PAUSE_SECONDS: Final = 20.0
# Tools that watch groups ask each minute or so.
ASKED_SECONDS: Final = 900.0
# Groups that name more lost topics wait for some of them.
MOST_TOPICS: Final = 1_000


class _Doubtful:
    __slots__ = ("asked_at", "lasting")

    def __init__(self, now: float) -> None:
        self.asked_at = now
        self.lasting = Lasting(LOST_SECONDS, PAUSE_SECONDS)


class LostTopics:
    def __init__(self, look: Callable[[TopicName], Awaitable[object]], clock: Callable[[], float]) -> None:
        """`look` raises Undescribed where Pulsar can't describe the topic."""
        self._look = look
        self._clock = clock
        self._doubtful: OrderedDict[TopicName, _Doubtful] = OrderedDict()
        self._looking = SupervisedTask("lost_topics", "this sidecar", self._look_on)

    def has(self, name: TopicName) -> bool:
        """Whether a topic that can't be described now is lost. If that is not known yet, it will be."""
        now = self._clock()
        doubtful = self._doubtful.get(name)
        if doubtful is None:
            doubtful = self._doubtful[name] = _Doubtful(now)
            doubtful.lasting.say(now)
            if len(self._doubtful) > MOST_TOPICS:
                self._doubtful.popitem(last=False)
            self._looking.start()
        doubtful.asked_at = now
        return doubtful.lasting.is_believed(now)

    def forget(self, name: TopicName) -> None:
        """It is described, or gone: what has its name next is another."""
        self._doubtful.pop(name, None)

    async def _look_on(self) -> None:
        while self._doubtful:
            await asyncio.sleep(LOOK_SECONDS)
            await in_slices(self._look_at, list(self._doubtful))

    async def _look_at(self, name: TopicName) -> None:
        doubtful = self._doubtful.get(name)
        if doubtful is None or self._clock() - doubtful.asked_at > ASKED_SECONDS:
            self.forget(name)
            return
        try:
            await self._look(name)
        except Undescribed:
            doubtful.lasting.say(self._clock())
        except TopicMissing:
            self.forget(name)
        except PulsarError:
            pass
        else:
            self.forget(name)

    async def close(self) -> None:
        await self._looking.stopped()
