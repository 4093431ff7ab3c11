"""The picture of all topics: who lists is not asked to wait for ten thousand questions, and what changes is noticed."""

from __future__ import annotations

import asyncio

import pytest

from kafka_sidecar.errors import SidecarError
from kafka_sidecar.pulsar.errors import TopicMissing
from kafka_sidecar.topics import listing
from kafka_sidecar.topics.listing import AGE_SECONDS, LISTED_SECONDS, REFRESHED_A_ROUND, Listing
from kafka_sidecar.topics.names import TopicName


class Topics:
    """A catalogue that remembers when each was looked at."""

    def __init__(self) -> None:
        self.now = 0.0
        self.looked: dict[TopicName, float] = {}
        self.side_by_side = 0
        self.most = 0
        self.questions = 0
        self.gone: set[TopicName] = set()
        self.listing = Listing(self, lambda: self.now)

    def age(self, name: TopicName) -> float | None:
        return self.now - self.looked[name] if name in self.looked else None

    async def look_at(self, name: TopicName) -> None:
        self.questions += 1
        self.side_by_side += 1
        self.most = max(self.most, self.side_by_side)
        await asyncio.sleep(0)
        self.side_by_side -= 1
        if name in self.gone:
            raise TopicMissing(str(name))
        self.looked[name] = self.now


def names(count: int) -> list[TopicName]:
    return [TopicName("public", "default", f"t{number}") for number in range(count)]


async def test_nobody_is_asked_before_somebody_lists_and_a_while_after() -> None:
    topics = Topics()
    await topics.listing.look_around()
    assert topics.questions == 0
    topics.listing.listed(names(10))
    topics.now = LISTED_SECONDS + 1
    await topics.listing.look_around()
    assert topics.questions == 0


async def test_what_nobody_has_looked_at_is_looked_at_in_the_first_rounds() -> None:
    topics = Topics()
    topics.listing.listed(names(5_000))
    for done in range(1, 6):
        await topics.listing.look_around()
        assert len(topics.looked) == done * listing.FILLED_A_ROUND
    assert topics.most == listing.AT_ONCE
    await topics.listing.look_around()
    assert topics.questions == 5_000, "all of them are fresh"


async def test_the_oldest_are_looked_at_again_a_few_each_round() -> None:
    topics = Topics()
    topics.listing.listed(names(200))
    await topics.listing.look_around()
    topics.now = AGE_SECONDS + 1
    asked = []
    for _ in range(5):
        before = topics.questions
        await topics.listing.look_around()
        asked.append(topics.questions - before)
    assert asked == [REFRESHED_A_ROUND, REFRESHED_A_ROUND, 200 - 2 * REFRESHED_A_ROUND, 0, 0]


async def test_a_topic_that_has_gone_does_not_hold_up_the_others() -> None:
    topics = Topics()
    all_names = names(20)
    topics.gone = set(all_names[:10])
    topics.listing.listed(all_names)
    await topics.listing.look_around()
    assert len(topics.looked) == 10
    for _ in range(5):
        await topics.listing.look_around()
    assert topics.questions == 20, "those are not asked for again in each round"
    topics.now = AGE_SECONDS
    await topics.listing.look_around()
    assert topics.questions == 30


async def test_the_picture_has_an_end() -> None:
    topics = Topics()
    topics.listing.listed(names(listing.MOST + 10))
    assert len(topics.listing._names) == listing.MOST


async def test_an_error_of_the_sidecar_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    topics = Topics()

    async def broken(name: TopicName) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(topics, "look_at", broken)
    topics.listing.listed(names(3))
    with pytest.raises(ZeroDivisionError):
        await topics.listing.look_around()
    assert not issubclass(ZeroDivisionError, SidecarError)
