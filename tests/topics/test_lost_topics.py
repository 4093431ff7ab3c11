"""A topic that Pulsar can't describe is lost when that has lasted for half a minute, whoever asks, and how seldom."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from kafka_sidecar.pulsar.errors import PulsarError, TopicMissing, Unavailable, Undescribed
from kafka_sidecar.topics.lost_topics import ASKED_SECONDS, LOST_SECONDS, MOST_TOPICS, LostTopics
from kafka_sidecar.topics.names import TopicName
from tests.support.virtual_time import in_virtual_time

TOPIC = TopicName("public", "default", "t")
MOVES = Undescribed("500")


class Pulsar:
    def __init__(self) -> None:
        self.answer: PulsarError | None = MOVES
        self.looks = 0

    async def look(self, name: TopicName) -> None:
        self.looks += 1
        if self.answer is not None:
            raise self.answer


def played(play: Callable[[Pulsar, LostTopics], Coroutine[Any, Any, None]]) -> None:
    async def run() -> None:
        pulsar = Pulsar()
        lost = LostTopics(pulsar.look, asyncio.get_running_loop().time)
        await play(pulsar, lost)
        await lost.close()

    in_virtual_time(run())


def test_who_asks_seldom_is_told_as_well() -> None:
    async def play(pulsar: Pulsar, lost: LostTopics) -> None:
        assert not lost.has(TOPIC)
        await asyncio.sleep(LOST_SECONDS - 1)
        assert not lost.has(TOPIC)
        await asyncio.sleep(300)
        assert lost.has(TOPIC)

    played(play)


def test_two_short_moves_are_no_loss() -> None:
    async def play(pulsar: Pulsar, lost: LostTopics) -> None:
        assert not lost.has(TOPIC)
        pulsar.answer = None
        await asyncio.sleep(LOST_SECONDS)
        pulsar.answer = MOVES
        assert not lost.has(TOPIC)

    played(play)


def test_the_next_topic_of_a_name_is_not_lost_with_the_one_before() -> None:
    async def play(pulsar: Pulsar, lost: LostTopics) -> None:
        lost.has(TOPIC)
        await asyncio.sleep(2 * LOST_SECONDS)
        assert lost.has(TOPIC)
        pulsar.answer = TopicMissing("404")
        await asyncio.sleep(LOST_SECONDS)
        pulsar.answer = MOVES
        assert not lost.has(TOPIC)

    played(play)


def test_a_cluster_that_is_away_says_nothing() -> None:
    async def play(pulsar: Pulsar, lost: LostTopics) -> None:
        lost.has(TOPIC)
        pulsar.answer = Unavailable("no broker")
        await asyncio.sleep(2 * LOST_SECONDS)
        assert not lost.has(TOPIC)

    played(play)


def test_nobody_looks_at_a_topic_for_which_nobody_has_asked_for_long() -> None:
    async def play(pulsar: Pulsar, lost: LostTopics) -> None:
        lost.has(TOPIC)
        await asyncio.sleep(2 * ASKED_SECONDS)
        looks = pulsar.looks
        await asyncio.sleep(ASKED_SECONDS)
        assert pulsar.looks == looks

    played(play)


def test_it_has_a_bound() -> None:
    async def play(pulsar: Pulsar, lost: LostTopics) -> None:
        for number in range(MOST_TOPICS + 10):
            lost.has(TopicName("public", "default", f"t{number}"))
        await asyncio.sleep(6)
        assert pulsar.looks == MOST_TOPICS

    played(play)
