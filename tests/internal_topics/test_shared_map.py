"""A topic that all sidecars follow: when a broker is believed that says it is not there."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from kafka_sidecar.internal_topics.shared_map import GONE_SECONDS, SharedMap, _Following
from kafka_sidecar.loop.clock import SYSTEM_CLOCK
from kafka_sidecar.loop.ids import new_id
from kafka_sidecar.pulsar.entry import Position, RawEntry
from kafka_sidecar.pulsar.errors import NotPermitted, PulsarError, Unavailable
from kafka_sidecar.pulsar.pulsar_api_pb2 import MessageMetadata
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


def _comes(following: _Following, index: int) -> None:
    metadata = MessageMetadata(producer_name=b"x", sequence_id=0, publish_time=1).SerializeToString()
    following.on_entry(RawEntry(Position(1, index), index, None, metadata, memoryview(b"")))


@pytest.mark.parametrize("horizon", [None, Position(1, 1)])
async def test_a_reader_ends_where_compaction_takes_what_it_has_not_read(horizon: Position | None) -> None:
    following = _Following("facts", lambda *_: None, horizon)
    following.misses_nothing = True
    for index in (0, 1):
        _comes(following, index)
    assert not following.lost.done()
    for index in (3, 4):
        _comes(following, index)
    assert following.lost.done()
    assert following.position == Position(1, 1), "what stands behind it is not believed"


async def test_the_first_entry_that_comes_may_stand_behind_what_compaction_took() -> None:
    """The last entries that are compacted were deletions, which compaction leaves out."""
    following = _Following("facts", lambda *_: None, Position(1, 4), last_index=4)
    following.misses_nothing = True
    _comes(following, 6)
    assert following.lost.done()


async def test_an_empty_log_may_go_on_behind_what_retention_has_taken() -> None:
    following = _Following("facts", lambda *_: None, horizon=None)
    following.misses_nothing = True
    _comes(following, 6)
    assert not following.lost.done()


async def test_what_is_compacted_leaves_gaps_that_end_no_reader() -> None:
    following = _Following("facts", lambda *_: None, Position(1, 5), last_index=5)
    _comes(following, 1)
    _comes(following, 3)
    following.misses_nothing = True  # the last that is compacted is left out
    _comes(following, 6)
    _comes(following, 7)
    assert not following.lost.done()


async def test_a_log_that_lacks_entries_is_read_all_the_same() -> None:
    following = _Following("facts", lambda *_: None, horizon=None)
    for index in (1, 4):
        _comes(following, index)
    assert not following.lost.done(), "an operator has had a ledger skipped that can't be read"
    assert following.position == Position(1, 4)
