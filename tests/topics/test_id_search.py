"""Topics by their ids, while some of them are away."""

from __future__ import annotations

import asyncio
import uuid

import pytest

from kafka_sidecar.pulsar.errors import Unavailable, Undescribed
from kafka_sidecar.topics.id_search import AGAIN_SECONDS, UNKNOWN_SECONDS, IdSearch
from kafka_sidecar.topics.names import TopicName

MINE, STALE = uuid.UUID(int=1), uuid.UUID(int=2)
NAME, OTHER = TopicName("public", "default", "t"), TopicName("public", "default", "other")


class Topics:
    """What the catalogue knows, and what Pulsar says."""

    def __init__(self) -> None:
        self.now = 0.0
        self.ids: dict[uuid.UUID, TopicName] = {}
        self.names = [NAME, OTHER]
        self.away: dict[TopicName, Unavailable] = {}
        self.lost: set[TopicName] = set()
        self.listings = 0
        self.described: list[TopicName] = []
        self.search = IdSearch(self.ids.get, self.all_names, self.describe, self, lambda: self.now)

    async def all_names(self) -> list[TopicName]:
        self.listings += 1
        await asyncio.sleep(0)
        return self.names

    async def describe(self, name: TopicName) -> None:
        self.described.append(name)
        await asyncio.sleep(0)
        if name in self.away:
            raise self.away[name]
        if name == NAME:
            self.ids[MINE] = NAME

    def has(self, name: TopicName) -> bool:
        return name in self.lost

    def is_lost(self, name: TopicName) -> bool:
        return name in self.lost


@pytest.fixture
def topics() -> Topics:
    return Topics()


async def test_an_id_that_is_new_here_is_found_by_describing_all(topics: Topics) -> None:
    assert await topics.search.find(MINE) == NAME
    assert await topics.search.find(MINE) == NAME
    assert topics.listings == 1


async def test_an_id_that_no_topic_has_is_not_looked_for_again_at_once(topics: Topics) -> None:
    for _ in range(3):
        assert await topics.search.find(STALE) is None
    assert topics.listings == 1
    topics.now = UNKNOWN_SECONDS
    assert await topics.search.find(STALE) is None
    assert topics.listings == 2
    topics.search.forget_unknown()
    assert await topics.search.find(STALE) is None
    assert topics.listings == 3


@pytest.mark.parametrize("error", [Undescribed("its partition moves"), Unavailable("no broker")])
async def test_an_id_may_be_that_of_a_topic_that_is_away(topics: Topics, error: Unavailable) -> None:
    topics.away[OTHER] = error
    for _ in range(3):
        with pytest.raises(Unavailable) as raised:
            await topics.search.find(STALE)
        assert OTHER.local not in str(raised.value), "whoever asks may not know that topic"
    assert topics.listings == 1
    assert await topics.search.find(MINE) == NAME, "it was described"
    topics.away.clear()
    topics.now += AGAIN_SECONDS
    assert await topics.search.find(STALE) is None


async def test_a_topic_that_is_lost_is_not_waited_for(topics: Topics) -> None:
    topics.lost.add(OTHER)
    topics.away[OTHER] = Undescribed("its log is gone")
    assert await topics.search.find(STALE) is None
    assert topics.described == [NAME]


async def test_all_that_ask_at_a_time_share_what_begins_after_their_questions(topics: Topics) -> None:
    first = asyncio.create_task(topics.search.find(STALE))
    await asyncio.sleep(0)
    others = [asyncio.create_task(topics.search.find(uuid.UUID(int=number))) for number in range(10, 20)]
    assert await first is None
    assert await asyncio.gather(*others) == [None] * 10
    assert topics.listings == 2
    await topics.search.close()
