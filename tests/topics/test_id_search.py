"""Topics by their ids, while some of them are away."""

from __future__ import annotations

import asyncio
import itertools
import uuid
from contextlib import suppress
from typing import Any, NamedTuple, cast

import pytest

from kafka_sidecar.pulsar.errors import TopicMissing, Unavailable, Undescribed
from kafka_sidecar.topics import id_search, lost_topics
from kafka_sidecar.topics.id_search import AT_ONCE, DOUBTED_SECONDS, MOST_IDS, MOVE_SECONDS, UNKNOWN_SECONDS, IdSearch
from kafka_sidecar.topics.lost_topics import LostTopics
from kafka_sidecar.topics.names import TopicName
from tests.support.virtual_time import in_virtual_time

MINE, STALE = uuid.UUID(int=1), uuid.UUID(int=2)
NAME, OTHER = TopicName("public", "default", "t"), TopicName("public", "default", "other")


class Described(NamedTuple):
    topic_id: uuid.UUID
    learnt_at: float


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
        self.id_of = {NAME: MINE}
        self.is_full = False
        self.lost = LostTopics(self.find, self.clock)
        self.search = IdSearch(cast(Any, self), lambda: self.is_full, self.clock)

    def name_of(self, topic_id: uuid.UUID) -> TopicName | None:
        return self.ids.get(topic_id)

    async def all_names(self) -> list[TopicName]:
        self.listings += 1
        names = self.names
        await asyncio.sleep(self.listing_seconds)
        return names

    async def find(self, name: TopicName) -> Described:
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
        described = Described(self.id_of.get(name) or uuid.uuid5(MINE, name.local), self.clock())
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


def test_a_topic_that_the_catalogue_has_forgotten_is_described_again() -> None:
    """Requests take its name from the catalogue. It forgets a topic that Pulsar calls missing for a moment."""

    async def play() -> None:
        topics = Topics()
        assert await topics.search.find(MINE) == NAME
        topics.ids.clear()
        assert await topics.search.find(MINE) == NAME
        assert topics.name_of(MINE) == NAME
        topics.ids.clear()
        topics.id_of[NAME] = STALE
        assert await topics.search.find(MINE) is None, "it was made again, and has another id"

    in_virtual_time(play())


def test_a_topic_of_a_new_namespace_is_not_taken_for_one_that_was_made_since() -> None:
    """A sidecar of that namespace was seen while a listing without it was under way."""

    async def play() -> None:
        topics = Topics()
        topics.names, topics.away[OTHER] = [OTHER], Unavailable("a broker is away")
        until = topics.clock() + 15
        while topics.clock() < until:
            with suppress(Unavailable):
                await topics.search.find(MINE)
            await asyncio.sleep(1)
        topics.listing_seconds = 1.0
        asked = asyncio.create_task(topics.search.find(MINE))
        await asyncio.sleep(0.5)
        topics.search.forget_unknown()
        topics.names = [OTHER, NAME]
        with suppress(Unavailable):
            await asked
        topics.away.clear()
        assert await topics.search.find(MINE) == NAME

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


@pytest.mark.parametrize("count", [1, 3 * MOST_IDS // 2])
@pytest.mark.parametrize("places", [0, 1_000])
def test_no_id_waits_for_longer_than_a_move_takes_however_many_there_are(
    count: int, places: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A topic that is lost never comes back, and somewhere one is always being made. Of too many that are lost none is
    doubted.
    """
    monkeypatch.setattr(lost_topics, "MOST_TOPICS", places)

    async def play() -> None:
        topics = Topics()
        topics.away[OTHER] = Undescribed("its log is gone")
        for number in range(count):
            id_search._note(topics.search._unknown, uuid.UUID(int=10 + number), topics.clock())
            topics.search._asked_at(uuid.UUID(int=10 + number))
        assert MOVE_SECONDS <= await topics.asked_until_settled(STALE, 0.1) < 2 * MOVE_SECONDS
        assert max(len(topics.search._unknown), len(topics.search._asked)) <= MOST_IDS
        await topics.lost.close()

    in_virtual_time(play())


def test_a_client_that_asks_once_a_minute_is_not_put_off_each_time() -> None:
    async def play() -> None:
        topics = Topics()
        topics.away[OTHER] = Undescribed("its log is gone")
        assert await topics.asked_until_settled(STALE, 60.0) <= 60
        await topics.lost.close()

    in_virtual_time(play())


def test_a_topic_that_has_come_back_is_found_at_once_however_long_it_was_away() -> None:
    async def play() -> None:
        topics = Topics()
        topics.away[NAME] = Undescribed("its broker is gone")
        with pytest.raises(Unavailable):
            await topics.search.find(MINE)
        await asyncio.sleep(MOVE_SECONDS + 1.5)
        topics.away.clear()
        assert await topics.search.find(MINE) == NAME
        await topics.lost.close()

    in_virtual_time(play())


def test_a_look_that_had_to_wait_is_no_doubt() -> None:
    """All places to ask Pulsar are taken for twelve seconds, and the topic moves for one."""

    async def play() -> None:
        topics = Topics()
        topics.seconds[NAME] = 12.0
        topics.away[NAME] = Undescribed("its partition moves")
        with pytest.raises(Unavailable):
            await topics.search.find(MINE)
        topics.away.clear()
        topics.seconds.clear()
        assert await topics.search.find(MINE) == NAME
        await topics.lost.close()

    in_virtual_time(play())


def test_a_look_that_has_no_place_says_nothing() -> None:
    """The topic was away for long, and is back. It can't be asked for in time."""

    async def play() -> None:
        topics = Topics()
        topics.away[OTHER] = Undescribed("its broker is gone")
        with pytest.raises(Unavailable):
            await topics.search.find(STALE)
        await asyncio.sleep(2 * MOVE_SECONDS)
        topics.seconds[OTHER], topics.is_full = DOUBTED_SECONDS + 1, True
        with pytest.raises(Unavailable):
            await topics.search.find(STALE)
        await topics.lost.close()

    in_virtual_time(play())


def test_while_others_move_one_after_the_other_an_id_is_settled() -> None:
    """A search looks at what the one before could not describe, and not at all again."""

    async def play() -> None:
        topics = Topics()
        topics.names = [TopicName("public", "default", f"t{number}") for number in range(500)]
        topics.seconds = dict.fromkeys(topics.names, 0.05)  # a pass takes 1.6 s
        moving = asyncio.create_task(move_in_turn(topics))
        assert await topics.asked_until_settled(STALE, 0.1) < 3 * MOVE_SECONDS
        assert topics.looks < 2 * len(topics.names)
        moving.cancel()
        await topics.lost.close()

    in_virtual_time(play())


async def move_in_turn(topics: Topics) -> None:
    """At each moment fifty of them move, for a second and a half."""
    for round_ in itertools.count():
        topics.away = dict.fromkeys(topics.names[round_ % 10 :: 10], Undescribed("its partition moves"))
        await asyncio.sleep(1.5)


@pytest.mark.parametrize("every", [0.25, 0.5, 0.9])
def test_while_topics_are_being_made_an_id_is_settled(every: float) -> None:
    """A new one can't be described for a second. It can't have an id that was asked for before it was made."""

    async def play() -> None:
        topics = Topics()
        making = asyncio.create_task(make_in_turn(topics, every))
        await asyncio.sleep(1)
        assert await topics.asked_until_settled(STALE, 0.1) < 2 * MOVE_SECONDS
        making.cancel()
        await topics.lost.close()

    in_virtual_time(play())


async def make_in_turn(topics: Topics, every: float) -> None:
    for number in itertools.count():
        name = TopicName("public", "default", f"new{number}")
        topics.names = [*topics.names, name]
        topics.away[name] = Undescribed("its log is not there yet")
        asyncio.get_running_loop().call_later(1.0, topics.away.pop, name)
        await asyncio.sleep(every)


@pytest.mark.parametrize("seconds", [6.0, 20.0, 3_600.0])
def test_a_topic_that_was_made_again_before_is_found_however_late_the_client_asks_again(seconds: float) -> None:
    """What was known of it a moment before the first question counts for that moment."""

    async def play() -> None:
        topics = Topics()
        topics.id_of[NAME] = uuid.UUID(int=7)
        await topics.search.find(uuid.UUID(int=7))
        await asyncio.sleep(2)
        topics.id_of[NAME], topics.away[OTHER] = MINE, Undescribed("its partition moves")
        with suppress(Unavailable):
            await topics.search.find(MINE)
        topics.away.clear()
        await asyncio.sleep(seconds)
        assert await topics.search.find(MINE) == NAME
        await topics.lost.close()

    in_virtual_time(play())


def test_an_id_that_was_asked_for_long_ago_is_asked_for_anew() -> None:
    """Of too many topics in doubt none is doubted, so the time since the first question decides."""

    async def play() -> None:
        topics = Topics()
        for _ in range(2):
            topics.away[NAME] = Undescribed("its partition moves")
            with pytest.raises(Unavailable):
                await topics.search.find(MINE)
            await asyncio.sleep(1_800)
        await topics.lost.close()

    monkeypatched = pytest.MonkeyPatch()
    monkeypatched.setattr(lost_topics, "MOST_TOPICS", 0)
    in_virtual_time(play())
    monkeypatched.undo()


def test_ids_that_were_first_asked_for_in_one_second_are_searched_together_again() -> None:
    async def play() -> None:
        topics = Topics()
        topics.away[OTHER] = Undescribed("its partition moves")
        ids = [uuid.UUID(int=10 + number) for number in range(300)]
        for topic_id in ids:
            with pytest.raises(Unavailable):
                await topics.search.find(topic_id)
            await asyncio.sleep(0.003)
        listings = topics.listings
        await asyncio.gather(*map(topics.search.find, ids), return_exceptions=True)
        assert topics.listings <= listings + 2
        await topics.lost.close()

    in_virtual_time(play())


def test_a_namespace_that_becomes_known_during_a_search_is_looked_through() -> None:
    async def play() -> None:
        topics = Topics()
        topics.names, topics.listing_seconds = [OTHER], 1.0
        first = asyncio.create_task(topics.search.find(MINE))
        await asyncio.sleep(0.5)
        topics.names = [OTHER, NAME]
        topics.search.forget_unknown()
        assert await topics.search.find(MINE) == NAME
        with pytest.raises(Unavailable):
            await first

    in_virtual_time(play())


def test_a_topic_that_is_found_and_forgotten_at_once_is_found() -> None:
    """The catalogue forgets the oldest of too many."""

    async def play() -> None:
        topics = Topics()
        finding = asyncio.gather(topics.search.find(MINE), topics.search.find(STALE))
        topics.ids = Forgetful()
        assert list(await finding) == [NAME, None]

    in_virtual_time(play())


class Forgetful(dict[uuid.UUID, TopicName]):
    def __setitem__(self, key: uuid.UUID, value: TopicName) -> None: ...


def test_a_second_move_is_waited_for_as_the_first_was() -> None:
    async def play() -> None:
        topics = Topics()
        for topic_id in (STALE, uuid.UUID(int=3)):
            topics.away[OTHER] = Undescribed("its partition moves")
            with pytest.raises(Unavailable):
                await topics.search.find(topic_id)
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
        assert await topics.asked_until_settled(STALE, 0.1) < 45
        await asyncio.sleep(UNKNOWN_SECONDS)
        async with asyncio.timeout(DOUBTED_SECONDS + 1):
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


@pytest.mark.parametrize(
    ("error", "raised"), [(ZeroDivisionError("a bug"), Unavailable), (asyncio.CancelledError(), asyncio.CancelledError)]
)
def test_what_is_no_answer_of_pulsar_makes_no_id_unknown(error: BaseException, raised: type[BaseException]) -> None:
    async def play() -> None:
        topics = Topics()
        topics.away[OTHER] = error  # type: ignore[assignment]
        with pytest.raises(raised):
            await topics.search.find(STALE)
        assert not topics.search.is_unknown(STALE)
        assert len(asyncio.all_tasks()) == 1

    in_virtual_time(play())


def test_a_topic_that_is_deleted_meanwhile_has_no_id() -> None:
    async def play() -> None:
        topics = Topics()
        topics.away[OTHER] = TopicMissing("deleted")
        assert await topics.search.find(STALE) is None

    in_virtual_time(play())
