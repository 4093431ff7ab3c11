"""A topic that Pulsar can't describe is lost when that has lasted for half a minute, whoever asks, and how seldom."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from kafka_sidecar.pulsar.errors import TopicMissing, Unavailable, Undescribed
from kafka_sidecar.topics import lost_topics
from kafka_sidecar.topics.lost_topics import (
    ASKED_SECONDS,
    LOOK_SECONDS,
    LOST_SECONDS,
    PAUSE_SECONDS,
    PLACES,
    ROUND_SECONDS,
    SLOW_PLACES,
    LostTopics,
)
from kafka_sidecar.topics.names import TopicName
from tests.support.virtual_time import in_virtual_time

TOPIC = TopicName("public", "default", "t")
MOVES = Undescribed("500")


class Pulsar:
    def __init__(self) -> None:
        self.answer: Exception | None = MOVES
        self.answers: dict[TopicName, Exception] = {}  # of these topics others
        self.seconds: dict[TopicName, float] = {}  # that an answer takes
        self.looks = 0
        self.under_way = 0
        self.most_under_way = 0

    async def look(self, name: TopicName) -> None:
        self.looks += 1
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        try:
            await asyncio.sleep(self.seconds.get(name, 0.0))
        finally:
            self.under_way -= 1
        answer = self.answers.get(name, self.answer)
        if answer is not None:
            raise answer


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


def named(number: int) -> TopicName:
    return TopicName("public", "default", f"t{number}")


@pytest.mark.parametrize("seconds", [14.0, 30.0])
def test_a_topic_that_hangs_is_lost_too_and_holds_up_no_other(seconds: float) -> None:
    async def play(pulsar: Pulsar, lost: LostTopics) -> None:
        hangs = named(0)
        pulsar.seconds[hangs] = seconds
        assert not lost.has(hangs)
        assert not lost.has(TOPIC)
        await asyncio.sleep(LOST_SECONDS + 2 * LOOK_SECONDS)
        assert lost.has(TOPIC)
        await asyncio.sleep(3 * seconds)
        assert lost.has(hangs)

    played(play)


def test_topics_that_hang_leave_places_to_others() -> None:
    """In Pulsar's admin API, and among the looks."""

    async def play(pulsar: Pulsar, lost: LostTopics) -> None:
        pulsar.seconds = {named(number): 30.0 for number in range(40)}
        for name in pulsar.seconds:
            lost.has(name)
        await asyncio.sleep(40 / (PLACES - SLOW_PLACES) * 30 + 60)  # each has had one look
        assert pulsar.most_under_way == PLACES
        pulsar.most_under_way = 0
        lost.has(TOPIC)
        await asyncio.sleep(LOST_SECONDS + 2 * LOOK_SECONDS)
        assert lost.has(TOPIC)
        for _ in range(20):
            await asyncio.sleep(60)
            pulsar.answers.update((name, MOVES) for name in pulsar.seconds if lost.has(name))
        assert pulsar.most_under_way <= SLOW_PLACES + 1
        assert pulsar.answers.keys() == pulsar.seconds.keys(), "each of them has counted as lost"

    played(play)


def test_hundreds_that_are_lost_at_once_are_all_known() -> None:
    async def play(pulsar: Pulsar, lost: LostTopics) -> None:
        for number in range(300):
            lost.has(named(number))
        await asyncio.sleep(300)
        assert all(lost.has(named(number)) for number in range(300))

    played(play)


def test_of_thousands_those_are_known_for_which_clients_ask() -> None:
    async def play(pulsar: Pulsar, lost: LostTopics) -> None:
        for _ in range(8):
            for number in range(3_000):
                lost.note(named(number), asyncio.get_running_loop().time())
                lost.has(named(number))
            await asyncio.sleep(LOOK_SECONDS)
        assert all(lost.has(named(number)) for number in range(3_000))

    played(play)


def test_two_moves_are_no_loss_though_nobody_looked_in_between() -> None:
    """All places are taken by topics that hang."""

    async def play(pulsar: Pulsar, lost: LostTopics) -> None:
        pulsar.seconds = {named(number): 30.0 for number in range(PLACES)}
        for name in pulsar.seconds:
            lost.has(name)
        await asyncio.sleep(LOOK_SECONDS)
        clock = asyncio.get_running_loop().time
        for _ in range(2):
            for _ in range(2):
                lost.note(TOPIC, clock())
                assert not lost.has(TOPIC)
                await asyncio.sleep(LOOK_SECONDS)
            await asyncio.sleep(PAUSE_SECONDS)

    played(play)


def test_looks_that_say_nothing_end_the_count() -> None:
    async def play(pulsar: Pulsar, lost: LostTopics) -> None:
        lost.has(TOPIC)
        pulsar.answers[TOPIC] = Unavailable("503")
        await asyncio.sleep(LOST_SECONDS)
        del pulsar.answers[TOPIC]
        await asyncio.sleep(3 * LOOK_SECONDS)
        assert not lost.has(TOPIC)

    played(play)


def test_pulsar_is_not_asked_more_often_for_many() -> None:
    async def play(pulsar: Pulsar, lost: LostTopics) -> None:
        for number in range(3_000):
            lost.has(named(number))
        await asyncio.sleep(100)
        assert pulsar.looks <= 100 * PLACES / ROUND_SECONDS

    played(play)


def test_a_look_that_fails_on_its_own_ends_no_other() -> None:
    async def play(pulsar: Pulsar, lost: LostTopics) -> None:
        pulsar.answers[named(0)] = ZeroDivisionError()
        lost.has(named(0))
        lost.has(TOPIC)
        await asyncio.sleep(LOST_SECONDS + 2 * LOOK_SECONDS)
        assert lost.has(TOPIC)

    played(play)


def test_nobody_looks_at_a_topic_for_which_nobody_has_asked_for_long() -> None:
    async def play(pulsar: Pulsar, lost: LostTopics) -> None:
        lost.has(TOPIC)
        await asyncio.sleep(1.1 * ASKED_SECONDS)
        looks = pulsar.looks
        await asyncio.sleep(ASKED_SECONDS)
        assert pulsar.looks == looks

    played(play)


def test_it_has_a_bound_and_room_again_when_others_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lost_topics, "MOST_TOPICS", 10)

    async def play(pulsar: Pulsar, lost: LostTopics) -> None:
        for number in range(11):
            lost.has(named(number))
        await asyncio.sleep(2 * LOST_SECONDS)
        assert [lost.has(named(number)) for number in range(11)] == [True] * 10 + [False]
        lost.forget(named(0))
        lost.has(named(10))
        await asyncio.sleep(2 * LOST_SECONDS)
        assert lost.has(named(10))

    played(play)


def test_nothing_is_begun_once_it_is_closed() -> None:
    async def play(pulsar: Pulsar, lost: LostTopics) -> None:
        pulsar.seconds[TOPIC] = 30.0
        lost.has(TOPIC)
        await asyncio.sleep(2 * LOOK_SECONDS)
        await lost.close()
        assert pulsar.under_way == 0
        lost.has(named(1))
        await asyncio.sleep(2 * LOOK_SECONDS)
        assert pulsar.looks == 1

    played(play)
