"""Topics by their ids, while some of them are away."""

from __future__ import annotations

import asyncio
import uuid
from typing import NamedTuple

import pytest

from kafka_sidecar.pulsar.errors import TopicMissing, Unavailable, Undescribed
from kafka_sidecar.topics.id_search import AT_ONCE, MOST_UNKNOWN, MOVE_SECONDS, UNKNOWN_SECONDS, IdSearch
from kafka_sidecar.topics.lost_topics import LostTopics
from kafka_sidecar.topics.names import TopicName
from tests.support.virtual_time import in_virtual_time

MINE, STALE = uuid.UUID(int=1), uuid.UUID(int=2)
NAME, OTHER = TopicName("public", "default", "t"), TopicName("public", "default", "other")


class Described(NamedTuple):
    topic_id: uuid.UUID


class Topics:
    """What the catalogue knows, and what Pulsar says."""

    def __init__(self) -> None:
        self.clock = asyncio.get_running_loop().time
        self.ids: dict[uuid.UUID, TopicName] = {}
        self.names = [NAME, OTHER]
        self.away: dict[TopicName, Exception] = {}
        self.seconds: dict[TopicName, float] = {}  # until Pulsar answers
        self.listing_seconds = 0.0
        self.listings = self.looks = self.most_at_once = self._at_once = 0
        self.lost = LostTopics(self.describe, self.clock)
        self.search = IdSearch(self.ids.get, self.all_names, self.describe, self.lost.seconds_in_doubt, self.clock)

    async def all_names(self) -> list[TopicName]:
        self.listings += 1
        await asyncio.sleep(self.listing_seconds)
        return self.names

    async def describe(self, name: TopicName) -> Described:
        self.looks += 1
        self._at_once += 1
        self.most_at_once = max(self.most_at_once, self._at_once)
        begun = self.clock()
        try:
            await asyncio.sleep(self.seconds.get(name, 0.0))
        finally:
            self._at_once -= 1
        if name in self.away:
            self.lost.note(name, begun)
            raise self.away[name]
        self.lost.forget(name)
        described = Described(MINE if name == NAME else uuid.uuid5(MINE, name.local))
        self.ids[described.topic_id] = name
        return described

    async def asked_until_settled(self, topic_id: uuid.UUID, every: float) -> float:
        """How many seconds a client waits that asks again and again."""
        begun = self.clock()
        while True:
            try:
                await self.search.find(topic_id)
                return self.clock() - begun
            except Unavailable:
                await asyncio.sleep(every)


def test_an_id_that_is_new_here_is_found_by_describing_all() -> None:
    async def play() -> None:
        topics = Topics()
        for _ in range(2):
            assert await topics.search.find(MINE) == NAME
        assert topics.listings == 1

    in_virtual_time(play())


def test_an_id_that_no_topic_has_is_not_looked_for_again_at_once() -> None:
    async def play() -> None:
        topics = Topics()
        for listings, seconds in ((1, 0.0), (1, UNKNOWN_SECONDS), (2, 0.0)):
            assert await topics.search.find(STALE) is None
            assert topics.search.is_unknown(STALE)
            assert topics.listings == listings
            await asyncio.sleep(seconds)
        topics.search.forget_unknown()
        assert await topics.search.find(STALE) is None
        assert topics.listings == 3

    in_virtual_time(play())


def test_ids_that_are_asked_for_together_are_searched_together() -> None:
    async def play() -> None:
        topics = Topics()
        topics.names = [TopicName("public", "default", f"t{number}") for number in range(500)]
        await asyncio.gather(*(topics.search.find(uuid.UUID(int=100 + number)) for number in range(200)))
        assert (topics.listings, topics.looks) == (1, 500)
        assert topics.most_at_once <= AT_ONCE

    in_virtual_time(play())


def test_who_asks_again_joins_the_search_that_goes_on() -> None:
    """Pulsar takes longer for its list than a client waits."""

    async def play() -> None:
        topics = Topics()
        topics.listing_seconds, begun = 2.5, topics.clock()
        for _ in range(2):
            try:
                async with asyncio.timeout(2):
                    assert await topics.search.find(MINE) == NAME
                    break
            except TimeoutError:
                await asyncio.sleep(0.1)
        assert topics.clock() - begun < 3
        assert topics.listings == 1

    in_virtual_time(play())


def test_an_id_that_is_found_waits_for_no_topic_that_is_slow() -> None:
    async def play() -> None:
        topics = Topics()
        topics.seconds[OTHER] = 60.0
        async with asyncio.timeout(1):
            assert await topics.search.find(MINE) == NAME

    in_virtual_time(play())


def test_an_id_may_be_that_of_a_topic_that_moves() -> None:
    async def play() -> None:
        topics = Topics()
        topics.away[OTHER] = Undescribed("its partition moves")
        with pytest.raises(Unavailable) as raised:
            await topics.search.find(STALE)
        assert OTHER.local not in str(raised.value), "a client that asks may not know that topic"
        assert not topics.search.is_unknown(STALE)
        assert await topics.search.find(MINE) == NAME
        topics.away.clear()
        assert await topics.search.find(STALE) is None
        await topics.lost.close()

    in_virtual_time(play())


@pytest.mark.parametrize("count", [1, 3 * MOST_UNKNOWN // 2])
def test_no_id_waits_for_longer_than_a_move_takes_however_many_there_are(count: int) -> None:
    """A topic that is lost never comes back, and somewhere one is always being made."""

    async def play() -> None:
        topics = Topics()
        topics.away[OTHER] = Undescribed("its log is gone")
        for number in range(count):
            topics.search._note_unknown(uuid.UUID(int=10 + number))
        assert await topics.asked_until_settled(STALE, 0.1) < 2 * MOVE_SECONDS
        assert len(topics.search._unknown) <= MOST_UNKNOWN
        await asyncio.sleep(60)  # clients that ask once a minute are not put off each time
        assert await topics.asked_until_settled(STALE, 0.1) == 0
        await topics.lost.close()

    in_virtual_time(play())


def test_a_second_move_is_waited_for_as_the_first_was() -> None:
    async def play() -> None:
        topics = Topics()
        for _ in range(2):
            topics.away[OTHER] = Undescribed("its partition moves")
            with pytest.raises(Unavailable):
                await topics.search.find(STALE)
            await asyncio.sleep(1)
            topics.away.clear()
            await asyncio.sleep(3_600)
        assert await topics.search.find(STALE) is None
        await topics.lost.close()

    in_virtual_time(play())


def test_a_topic_that_pulsar_hangs_over_is_waited_for_once() -> None:
    async def play() -> None:
        topics = Topics()
        topics.away[OTHER], topics.seconds[OTHER] = Undescribed("no answer"), 16.0
        assert await topics.asked_until_settled(STALE, 0.1) < 20
        await asyncio.sleep(UNKNOWN_SECONDS)
        async with asyncio.timeout(1):
            assert await topics.search.find(STALE) is None
        await topics.lost.close()

    in_virtual_time(play())


def test_while_pulsar_is_away_no_id_is_unknown() -> None:
    async def play() -> None:
        topics = Topics()
        topics.away[OTHER] = Unavailable("no broker")
        for _ in range(3):
            with pytest.raises(Unavailable):
                await topics.search.find(STALE)
            await asyncio.sleep(MOVE_SECONDS)

    in_virtual_time(play())


@pytest.mark.parametrize("error", [ZeroDivisionError("a bug"), asyncio.CancelledError()])
def test_what_is_no_answer_of_pulsar_makes_no_id_unknown(error: BaseException) -> None:
    async def play() -> None:
        topics = Topics()
        topics.away[OTHER] = error  # type: ignore[assignment]
        with pytest.raises(type(error)):
            await topics.search.find(STALE)
        assert not topics.search.is_unknown(STALE)

    in_virtual_time(play())


def test_a_topic_that_is_deleted_meanwhile_has_no_id() -> None:
    async def play() -> None:
        topics = Topics()
        topics.away[OTHER] = TopicMissing("deleted")
        assert await topics.search.find(STALE) is None

    in_virtual_time(play())
