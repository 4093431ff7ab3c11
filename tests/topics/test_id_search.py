"""Topics by their ids, while some of them are away."""

from __future__ import annotations

import asyncio
import uuid
from contextlib import suppress

import pytest

from kafka_sidecar.pulsar.errors import Unavailable, Undescribed
from kafka_sidecar.topics.id_search import MOST_UNKNOWN, MOVE_SECONDS, UNKNOWN_SECONDS, IdSearch
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
        self.listings = 0
        self.search = IdSearch(self.ids.get, self.all_names, self.describe, lambda: self.now)

    async def all_names(self) -> list[TopicName]:
        self.listings += 1
        await asyncio.sleep(0)
        return self.names

    async def describe(self, name: TopicName) -> None:
        await asyncio.sleep(0)
        if name in self.away:
            raise self.away[name]
        if name == NAME:
            self.ids[MINE] = NAME


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


async def test_an_id_may_be_that_of_a_topic_that_moves(topics: Topics) -> None:
    topics.away[OTHER] = Undescribed("its partition moves")
    with pytest.raises(Unavailable) as raised:
        await topics.search.find(STALE)
    assert OTHER.local not in str(raised.value), "whoever asks may not know that topic"
    assert await topics.search.find(MINE) == NAME
    topics.away.clear()
    assert await topics.search.find(STALE) is None


async def test_no_id_waits_for_longer_than_a_move_takes(topics: Topics) -> None:
    """One that is lost never comes back, and somewhere a topic is always being made."""
    topics.away[OTHER] = Undescribed("its log is gone")
    with pytest.raises(Unavailable):
        await topics.search.find(STALE)
    topics.now = MOVE_SECONDS
    for _ in range(3):
        assert await topics.search.find(STALE) is None
        topics.now += 2 * UNKNOWN_SECONDS


async def test_while_pulsar_is_away_no_id_is_unknown(topics: Topics) -> None:
    topics.away[OTHER] = Unavailable("no broker")
    for _ in range(3):
        with pytest.raises(Unavailable):
            await topics.search.find(STALE)
        topics.now += MOVE_SECONDS


async def test_its_tables_have_a_bound(topics: Topics) -> None:
    topics.away[OTHER] = Undescribed("its log is gone")
    for number in range(10, 20 + MOST_UNKNOWN):
        with pytest.raises(Unavailable):
            await topics.search.find(uuid.UUID(int=number))
    topics.now = MOVE_SECONDS
    for number in range(10, 20 + MOST_UNKNOWN):
        with suppress(Unavailable):
            await topics.search.find(uuid.UUID(int=number))
    assert max(len(topics.search._unknown), len(topics.search._doubted_since)) <= MOST_UNKNOWN
