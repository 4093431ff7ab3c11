"""A topic that all sidecars follow: when a broker is believed that says it is not there."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from kafka_sidecar.internal_topics.shared_map import GONE_SECONDS, SharedMap
from kafka_sidecar.loop.clock import SYSTEM_CLOCK
from kafka_sidecar.loop.ids import new_id
from kafka_sidecar.pulsar.errors import NotPermitted, PulsarError, Unavailable
from tests.support.virtual_time import in_virtual_time


class Numbers:
    """MergeRule of which the greater counts."""

    def encode(self, value: int) -> bytes:
        return b"%d" % value

    def decode(self, data: bytes) -> int:
        return int(data)

    def supersedes(self, value: int, other: int) -> bool:
        return value > other


class Broker:
    """It says whether the topic is there, and opens nothing."""

    def __init__(self, says: bool | PulsarError) -> None:
        self.says = says

    @property
    def topics(self) -> Broker:
        return self

    async def is_partitioned(self, _: str) -> bool:
        await asyncio.sleep(0.01)
        if isinstance(self.says, PulsarError):
            raise self.says
        return self.says

    async def producer(self, *_: Any, **__: Any) -> None:
        raise Unavailable("no broker")


def followed(broker: Broker) -> SharedMap[int]:
    topic = SharedMap(cast(Any, broker), cast(Any, broker), "facts", Numbers(), SYSTEM_CLOCK, new_id)
    topic.start()
    return topic


async def believes(topic: SharedMap[int]) -> bool:
    """Whether it concludes that nobody has stored anything."""
    try:
        assert await topic.of_now("x") is None
    except Unavailable:
        return False
    return True


def test_who_has_never_seen_the_topic_believes_that_it_is_missing() -> None:
    async def play() -> None:
        topic = followed(Broker(says=False))
        assert await believes(topic)
        assert await topic.of("x") is None
        await topic.close()

    in_virtual_time(play())


def test_a_topic_that_was_there_is_missing_when_that_was_said_for_half_a_minute() -> None:
    async def play() -> None:
        broker = Broker(says=True)
        topic = followed(broker)
        assert not await believes(topic), "it is there, and can't be read"
        broker.says = False
        assert not await believes(topic)
        await asyncio.sleep(GONE_SECONDS + 2)
        assert await believes(topic)
        broker.says = True
        assert not await believes(topic)
        broker.says = False
        assert not await believes(topic), "the count begins anew"
        await topic.close()

    in_virtual_time(play())


@pytest.mark.parametrize("fails", [False, True], ids=["nobody has asked", "questions failed"])
def test_the_first_answer_behind_an_outage_is_not_believed(fails: bool) -> None:
    """However long the outage took. A broker that has just started may not know its topics yet."""

    async def play() -> None:
        broker = Broker(says=True)
        topic = followed(broker)
        assert not await believes(topic)
        if not fails:
            await topic.close()  # it asks nobody any more
        else:
            broker.says = False
            assert not await believes(topic)
            broker.says = Unavailable("no broker")
        await asyncio.sleep(2 * GONE_SECONDS)
        broker.says = False
        assert not await believes(topic)
        await topic.close()

    in_virtual_time(play())


def test_questions_that_fail_in_between_say_nothing() -> None:
    async def play() -> None:
        broker = Broker(says=True)
        topic = followed(broker)
        assert not await believes(topic)
        for number in range(round(GONE_SECONDS) + 5):
            broker.says = False if number % 3 else Unavailable("no broker")
            await asyncio.sleep(1)
        broker.says = False
        assert await believes(topic)
        await topic.close()

    in_virtual_time(play())


def test_questions_beside_one_another_do_not_begin_the_count_anew() -> None:
    async def play() -> None:
        broker = Broker(says=True)
        topic = followed(broker)
        assert not await believes(topic)
        broker.says = False
        until = asyncio.get_running_loop().time() + 2 * GONE_SECONDS
        while not await believes(topic):
            assert asyncio.get_running_loop().time() < until
        await topic.close()

    in_virtual_time(play())


def test_who_may_not_look_takes_the_topic_for_missing() -> None:
    async def play() -> None:
        topic = followed(Broker(says=NotPermitted("no right")))
        assert await believes(topic)
        await topic.close()

    in_virtual_time(play())
