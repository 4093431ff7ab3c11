"""Somebody deletes the topic of what is kept of logs, or creates it again."""

from __future__ import annotations

import asyncio
import itertools

import pytest

from kafka_sidecar.internal_topics import snapshot_topic
from kafka_sidecar.internal_topics.snapshot_topic import SnapshotTopic
from kafka_sidecar.pulsar.errors import Unavailable
from tests.support.fake_broker import until
from tests.support.internal_topic import InternalTopic
from tests.support.snapshot_topics import states, value_of


async def stored(kept: SnapshotTopic, count: int) -> list[bytes]:
    keys = [b"%d" % number for number in range(count)]
    for key in keys:
        await kept.store(key, b"1")
    return keys


async def test_a_topic_that_somebody_deletes_is_made_anew() -> None:
    """Sidecars go on: what was kept is gone, and what is kept from then on is found by all."""
    topic = InternalTopic(making=16)
    mine, other = states(topic), states(topic)
    for key in (b"a", b"b", b"c"):
        await mine.store(key, b"1")
    assert await other.look_up(b"a") is not None
    topic.delete()
    before = list(mine._shards)
    assert mine.times_remade(b"b") == 0
    await mine.store(b"b", b"2")
    assert mine.times_remade(b"b") == 1, "what stands nowhere else is stored anew"
    assert sum(one is not anew for one, anew in zip(before, mine._shards, strict=True)) == 1, (
        "what others store goes on"
    )
    for one in (mine, other):
        assert [await value_of(one, key) for key in (b"a", b"b", b"c")] == [None, b"2", None]
    await other.store(b"a", b"3")
    assert await value_of(mine, b"a") == b"3"


async def test_every_sidecar_sees_that_the_topic_was_made_anew() -> None:
    """Also the one that did not make it: what it has stored is gone, and so is what it has found."""
    topic = InternalTopic(making=16)
    mine, other, third = states(topic), states(topic), states(topic)
    await mine.store(b"a", b"1")
    await other.store(b"a", b"2")
    assert await third.look_up(b"a") is not None
    topic.delete()
    await mine.store(b"a", b"3")
    for one in (other, third):
        assert one.times_remade(b"a") == 0
        await one.store(b"a\0b", b"4")
        assert one.times_remade(b"a") == 1


async def test_who_notices_it_in_one_partition_looks_at_all_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a sidecar stores seldom, a mark say, stands in another partition than what it stores each minute."""
    monkeypatch.setattr(snapshot_topic, "LOOK_AT_OTHERS_SECONDS", 0.0)
    topic = InternalTopic(making=16)
    mine, other = states(topic), states(topic)
    keys = await stored(mine, 64)
    topic.delete()
    await other.store(b"somebody's", b"1")
    await mine.store(keys[0], b"2")
    await until(lambda: {mine.times_remade(key) for key in keys} == {1})
    mine.close()


async def test_partitions_that_are_deleted_later_than_the_one_where_it_was_noticed_are_looked_at_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also where housekeeping has noticed it, of which nobody waits for an answer."""
    monkeypatch.setattr(snapshot_topic, "LOOK_AT_OTHERS_SECONDS", 0.01)
    topic = InternalTopic(making=16, there=True)
    created: dict[str, str] = {}

    async def created_at(name: str) -> str:
        return created.get(name, "at first")

    monkeypatch.setattr(topic, "created_at", created_at)
    mine = states(topic)
    keys = await stored(mine, 64)
    created[mine._shard(keys[0])._topic] = "again"
    topic.lose()
    await mine._shard(keys[0]).write_marker()
    await asyncio.sleep(0.05)
    created.update((shard._topic, "again") for shard in mine._shards)
    await until(lambda: {mine.times_remade(key) for key in keys} == {1})
    mine.close()


async def test_who_can_not_look_at_the_others_at_once_does_so_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot_topic, "LOOK_AT_OTHERS_SECONDS", 0.0)
    topic = InternalTopic(making=2)
    mine, other = states(topic), states(topic)
    keys = await stored(mine, 8)
    topic.delete()
    await other.store(b"somebody's", b"1")
    asked, questions = topic.created_at, itertools.count()

    async def failing(name: str) -> str:
        if 1 <= next(questions) < 4:
            raise Unavailable("not now")
        return await asked(name)

    monkeypatch.setattr(topic, "created_at", failing)
    await mine.store(keys[0], b"2")
    await until(lambda: {mine.times_remade(key) for key in keys} == {1})
    mine.close()


async def test_a_topic_that_is_gone_is_made_anew_once_by_those_who_store_at_the_same_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Who comes second neither ends what the first is storing in the new topic, nor leaves a producer open in the old
    one.
    """
    topic = InternalTopic(making=16)
    mine = states(topic)
    keys = await stored(mine, 64)
    topic.delete()
    counted, late = topic.partitions, itertools.count()

    async def counted_late(name: str) -> int:
        for _ in range(next(late) % 7):
            await asyncio.sleep(0)
        return await counted(name)

    monkeypatch.setattr(topic, "partitions", counted_late)
    await asyncio.gather(*[mine.store(key, b"2") for key in keys])
    assert {mine.times_remade(key) for key in keys} == {1}
    assert len(topic.writers) == 16
    assert {await value_of(mine, key) for key in keys} == {b"2"}


@pytest.mark.parametrize("count", [8, 32])
async def test_a_topic_that_somebody_makes_anew_with_another_count_is_counted_again(count: int) -> None:
    topic = InternalTopic(making=16)
    mine, other = states(topic), states(topic)
    keys = await stored(mine, 8)
    topic.delete()
    topic.there, topic.making = True, count
    for key in keys:
        await mine.store(key, b"2")
    await other.store(b"a", b"2")
    assert len(mine._shards) == len(other._shards) == count
    assert all(mine.times_remade(key) == 1 for key in keys)


async def test_who_asks_a_partition_first_when_it_is_gone_finds_nothing() -> None:
    topic = InternalTopic(making=16)
    mine = states(topic)
    await mine.store(b"a", b"1")
    topic.delete()
    for key in (b"a", b"b", b"c"):
        assert await mine.look_up(key) is None
        assert await mine.names(key + b"\0") == []


async def test_it_is_not_forgotten_that_the_topic_was_made_anew_where_the_store_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    topic = InternalTopic(making=16)
    mine = states(topic)
    await mine.store(b"a", b"1")
    topic.delete()
    made = topic.create_topic

    async def then_no_broker(name: str, partitions: int) -> None:
        await made(name, partitions)
        topic.refuse = 1

    monkeypatch.setattr(topic, "create_topic", then_no_broker)
    with pytest.raises(Unavailable):
        await mine.store(b"a", b"2")
    await mine.store(b"a", b"2")
    assert mine.times_remade(b"a") == 1
