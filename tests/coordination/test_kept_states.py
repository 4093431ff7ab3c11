"""What is kept of logs: found by any sidecar, never in the way, and gone when nobody has used it for long."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import time
from typing import Any, cast

import pytest

from handler.clock import SYSTEM_CLOCK
from handler.coordination import kept_parts, kept_places, kept_shard, refusals
from handler.coordination.kept_places import EXPIRY_MS
from handler.coordination.kept_states import MAX_BYTES, KeptStates
from handler.ids import new_id
from handler.pulsar.admin import AlreadyExists
from handler.pulsar.entry import Position, RawEntry
from handler.pulsar.errors import NotPermitted, Unavailable
from handler.pulsar.messages import write_batch
from handler.telemetry import metrics
from tests.support.internal_topic import InternalTopic, Writer


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_shard, "LOOK_SECONDS", 0.0)


async def refused(*_: Any, **__: Any) -> Any:
    raise NotPermitted("a right that this role has not")


def states(topic: InternalTopic) -> KeptStates:
    return KeptStates(cast(Any, topic), cast(Any, topic), "public/__kafka", SYSTEM_CLOCK, new_id)


async def value_of(one: KeptStates, key: bytes) -> bytes | None:
    kept = await one.find(key)
    return None if kept is None else kept.value


async def test_the_last_value_of_a_key_is_found_by_every_sidecar() -> None:
    topic = InternalTopic(making=16)
    mine, other = states(topic), states(topic)
    assert await value_of(other, b"a") is None, "there is no topic yet"
    await mine.keep(b"a", b"1")
    await mine.keep(b"b", b"2")
    assert [await value_of(other, key) for key in (b"a", b"b", b"c")] == [b"1", b"2", None]
    await other.keep(b"a", b"3")
    assert await value_of(mine, b"a") == b"3"
    assert not (await mine.find(b"a")).is_old(0)  # type: ignore[union-attr]
    mine.close()
    assert not topic.readers, "each is read when it is asked for, and no longer"


async def test_a_topic_that_somebody_deletes_is_made_anew() -> None:
    """Sidecars go on: what was kept is gone, and what is kept from then on is found by all."""
    topic = InternalTopic(making=16)
    mine, other = states(topic), states(topic)
    for key in (b"a", b"b", b"c"):
        await mine.store(key, b"1")
    assert await other.look_up(b"a") is not None
    topic.delete()
    before = list(mine._shards)
    assert mine.times_made_anew(b"b") == 0
    await mine.store(b"b", b"2")
    assert mine.times_made_anew(b"b") == 1, "what stands nowhere else is stored anew"
    assert sum(one is not anew for one, anew in zip(before, mine._shards, strict=True)) == 1, "what others store goes on"
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
        assert one.times_made_anew(b"a") == 0
        await one.store(b"a\0b", b"4")
        assert one.times_made_anew(b"a") == 1


async def test_a_topic_that_is_gone_is_made_anew_once_by_those_who_store_at_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who comes second neither ends what the first is storing in the new topic, nor leaves a producer open in the old one."""
    topic = InternalTopic(making=16)
    mine = states(topic)
    keys = [b"%d" % number for number in range(64)]
    for key in keys:
        await mine.store(key, b"1")
    topic.delete()
    counted, late = topic.partitions, itertools.count()

    async def counted_late(name: str) -> int:
        for _ in range(next(late) % 7):
            await asyncio.sleep(0)
        return await counted(name)

    monkeypatch.setattr(topic, "partitions", counted_late)
    await asyncio.gather(*[mine.store(key, b"2") for key in keys])
    assert {mine.times_made_anew(key) for key in keys} == {1}
    assert len(topic.writers) == 16
    assert {await value_of(mine, key) for key in keys} == {b"2"}


@pytest.mark.parametrize("count", [8, 32])
async def test_a_topic_that_somebody_makes_anew_with_another_count_is_counted_again(count: int) -> None:
    topic = InternalTopic(making=16)
    mine, other = states(topic), states(topic)
    keys = [b"%d" % number for number in range(8)]
    for key in keys:
        await mine.store(key, b"1")
    topic.delete()
    topic.there, topic.making = True, count
    for key in keys:
        await mine.store(key, b"2")
    await other.store(b"a", b"2")
    assert len(mine._shards) == len(other._shards) == count
    assert all(mine.times_made_anew(key) == 1 for key in keys)


async def test_who_asks_a_partition_first_when_it_is_gone_finds_nothing() -> None:
    topic = InternalTopic(making=16)
    mine = states(topic)
    await mine.store(b"a", b"1")
    topic.delete()
    for key in (b"a", b"b", b"c"):
        assert await mine.look_up(key) is None
        assert await mine.names(key + b"\0") == []


async def test_it_is_not_forgotten_that_the_topic_was_made_anew_where_the_store_fails(monkeypatch: pytest.MonkeyPatch) -> None:
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
    assert mine.times_made_anew(b"a") == 1


async def test_a_topic_without_partitions_is_named() -> None:
    """Somebody has made it."""
    topic = InternalTopic(there=True, making=0)
    mine = states(topic)
    assert await mine.find(b"a") is None
    for asked in (mine.look_up(b"a"), mine.names(b"a"), mine.store(b"a", b"1")):
        with pytest.raises(Unavailable, match="was made without partitions by somebody else: delete it"):
            await asked


async def test_logs_of_partitions_without_their_topic_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Brokers before 4.0 may make the log of a partition for who asks for a producer, though the topic is gone."""
    topic = InternalTopic()

    async def there_already(*_: Any) -> None:
        raise AlreadyExists("a log of it is there")

    monkeypatch.setattr(topic, "create_topic", there_already)
    with pytest.raises(Unavailable, match="__kept_states is not there yet, though the broker says it is"):
        await states(topic).store(b"a", b"1")


async def test_who_asks_for_a_producer_has_seen_the_topic(monkeypatch: pytest.MonkeyPatch) -> None:
    topic = InternalTopic()
    mine = states(topic)
    await mine.store(b"a", b"1")
    topic.delete()
    asked = []

    async def producer(name: str, *_: Any, **__: Any) -> Any:
        asked.append(topic.there)
        raise Unavailable("no broker")

    monkeypatch.setattr(topic, "producer", producer)
    with pytest.raises(Unavailable):
        await mine.store(b"a", b"2")
    assert asked == [True], "it was made anew first"


async def test_keys_that_begin_alike_are_found_together() -> None:
    topic = InternalTopic(making=16)
    mine, other = states(topic), states(topic)
    assert await other.names(b"marks:a\0") == [], "there is no topic yet"
    for key in (b"marks:a\0one", b"marks:a\0two", b"marks:ab\0three"):
        await mine.store(key, b"1")
    assert sorted(await other.names(b"marks:a\0")) == [b"marks:a\0one", b"marks:a\0two"]
    await other.store(b"marks:a\0one", b"")
    assert await mine.names(b"marks:a\0") == [b"marks:a\0two"]
    for one in (mine, other):
        one.close()


async def test_a_value_that_was_compacted_away_is_not_another_keys() -> None:
    topic = InternalTopic()
    mine, other = states(topic), states(topic)
    await mine.keep(b"a", b"1")
    await mine.keep(b"b", b"2")
    assert await value_of(other, b"a") == b"1"
    topic.entries[0] = topic.entries[1]  # the reader is given the next that is there
    assert await value_of(other, b"a") is None


async def test_what_can_not_be_read_or_written_is_done_without(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = InternalTopic()
    mine = states(topic)
    topic.refuse = 1
    await mine.keep(b"a", b"1")
    assert "can't be written" in caplog.text
    await mine.keep(b"a", b"2")

    async def stats(_: str) -> Any:
        raise Unavailable("no broker")

    monkeypatch.setattr(topic, "log_stats", stats)
    assert await mine.find(b"a") is None
    assert "can't be read" in caplog.text


async def test_a_lost_connection_costs_one_value_at_the_most() -> None:
    topic = InternalTopic()
    mine = states(topic)
    await mine.keep(b"a", b"1")
    topic.lose()
    await mine.keep(b"a", b"2")
    assert await value_of(mine, b"a") == b"2"


async def test_what_nobody_understands_is_passed_over_and_counted() -> None:
    topic = InternalTopic()
    mine = states(topic)
    await mine.keep(b"a", b"1")
    topic.entries.append(RawEntry(Position(1, 1), None, None, b"\xff", memoryview(b"nonsense")))
    await mine.keep(b"b", b"2")
    before = metrics.UNREADABLE_ENTRIES._value.get()
    assert [await value_of(mine, key) for key in (b"a", b"b")] == [b"1", b"2"]
    assert metrics.UNREADABLE_ENTRIES._value.get() == before + 1


async def test_a_value_of_long_ago_is_deleted_by_who_comes_upon_it(monkeypatch: pytest.MonkeyPatch) -> None:
    topic = InternalTopic(there=True)
    sender = Writer(topic, cast(Any, Silent()))
    sender.send_batch(0, 1, write_batch([(b"old", b"1")], 5))
    mine = states(topic)
    await mine.keep(b"new", b"2")
    monkeypatch.setattr(time, "time_ns", lambda: (EXPIRY_MS + 10) * 1_000_000)
    sender.send_batch(1, 1, write_batch([(b"other", b"3")], 20))
    assert await value_of(mine, b"other") == b"3"
    assert topic.stored()[-1] == (b"old", None)
    assert topic.entries[-1].position == Position(1, 4), "behind a deletion stands an entry that compaction leaves"
    assert await value_of(mine, b"old") is None


async def test_it_is_compacted_when_most_of_it_says_nothing(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    monkeypatch.setattr(kept_places, "COMPACT_AFTER", 10)
    monkeypatch.setattr(kept_shard, "COMPACT_AFTER_WRITES", 10)
    topic = InternalTopic()
    mine = states(topic)
    for number in range(20):
        await mine.keep(b"a", b"%d" % number)
    assert await value_of(mine, b"a") == b"19"
    assert topic.compactions == 3, "with each ten that are written, and by who reads twenty of which one counts"
    assert not caplog.text


async def test_who_asks_at_once_reads_it_once() -> None:
    topic = InternalTopic()
    mine = states(topic)
    for number in range(10):
        await mine.keep(b"%d" % number, b"v")
    assert await asyncio.gather(*(value_of(mine, b"%d" % number) for number in range(10))) == [b"v"] * 10


async def test_who_looks_a_value_up_finds_what_was_kept_a_moment_ago(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_shard, "LOOK_SECONDS", 3_600.0)
    topic = InternalTopic()
    mine, other = states(topic), states(topic)
    await mine.keep(b"a", b"1")
    assert await value_of(other, b"a") == b"1"
    await mine.keep(b"a", b"2")
    await mine.keep(b"b", b"3")
    assert [await value_of(other, key) for key in (b"a", b"b")] == [b"1", None], "an older value is good enough for who asks so"
    found = [await other.look_up(key) for key in (b"a", b"b", b"c")]
    assert [None if one is None else one.value for one in found] == [b"2", b"3", None]


async def test_who_looks_a_value_up_is_told_when_nobody_can_say_what_was_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    topic = InternalTopic()
    mine = states(topic)
    assert await mine.look_up(b"a") is None, "there is no topic, so nothing was kept"
    await mine.keep(b"a", b"1")

    async def stats(_: str) -> Any:
        raise Unavailable("no broker")

    monkeypatch.setattr(topic, "log_stats", stats)
    with pytest.raises(Unavailable, match="no broker"):
        await mine.look_up(b"a")


async def test_a_value_that_is_compacted_while_it_is_looked_up_is_found() -> None:
    topic = InternalTopic()
    mine, other = states(topic), states(topic)
    await mine.keep(b"a", b"1")
    await mine.keep(b"b", b"2")
    assert (await other.look_up(b"a")).value == b"1"  # type: ignore[union-attr]
    topic.entries[0] = topic.entries[1]  # the reader is given the next that is there
    await mine.keep(b"a", b"3")
    assert (await other.look_up(b"a")).value == b"3"  # type: ignore[union-attr]


async def test_a_value_that_was_deleted_and_of_which_nothing_is_left_is_none_also_to_who_knew_its_place() -> None:
    topic = InternalTopic()
    mine, other = states(topic), states(topic)
    await mine.keep(b"a", b"1")
    await mine.keep(b"b", b"2")
    assert (await other.look_up(b"a")).value == b"1"  # type: ignore[union-attr]
    topic.entries[0] = topic.entries[1]  # the reader is given the next that is there
    assert await other.look_up(b"a") is None
    assert (await other.look_up(b"b")).value == b"2"  # type: ignore[union-attr]


async def test_an_empty_value_is_none_and_behind_it_stands_an_entry_that_compaction_leaves() -> None:
    topic = InternalTopic()
    mine = states(topic)
    await mine.keep(b"a", b"1")
    await mine.keep(b"a", b"")
    assert topic.stored()[-1] == (b"a", None)
    assert topic.entries[-1].position == Position(1, 2)
    assert await states(topic).look_up(b"a") is None


async def test_keeping_says_whether_it_was_kept() -> None:
    topic = InternalTopic(refuse=1)
    mine = states(topic)
    assert [await mine.keep(b"a", value) for value in (b"1", b"2", bytes(MAX_BYTES + 1))] == [False, True, False]


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_parts, "PART_BYTES", 10)
    monkeypatch.setattr(kept_shard, "PART_BYTES", 10)


LARGE = bytes(range(95))
LARGER = bytes(reversed(range(150)))


@pytest.mark.usefixtures("small_parts")
async def test_a_value_that_no_entry_can_hold_is_found_by_every_sidecar_and_leaves_nothing_behind() -> None:
    topic = InternalTopic()
    mine, other = states(topic), states(topic)
    assert await mine.keep(b"a", LARGE)
    assert await value_of(other, b"a") == LARGE
    assert await other.keep(b"a", LARGER)
    assert (await mine.look_up(b"a")).value == LARGER  # type: ignore[union-attr]
    await mine.keep(b"a", b"small")
    assert (await states(topic).look_up(b"a")).value == b"small"  # type: ignore[union-attr]
    last = dict(topic.stored())
    assert {key for key, value in last.items() if value is not None} == {b"a"}, "what was replaced is deleted"


@pytest.mark.usefixtures("small_parts")
async def test_a_value_in_parts_is_deleted_with_them() -> None:
    topic = InternalTopic()
    mine = states(topic)
    await mine.keep(b"a", LARGE)
    await mine.keep(b"a", b"")
    assert await states(topic).look_up(b"a") is None
    assert {value for _, value in dict(topic.stored()).items()} == {None}


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("stored", range(12))
async def test_who_dies_between_two_parts_leaves_the_value_before(stored: int) -> None:
    topic = InternalTopic()
    await states(topic).keep(b"a", LARGER)
    before = len(topic.entries)
    dying = states(topic)
    await dying.look_up(b"a")
    await dying.keep(b"a", LARGE)
    del topic.entries[before + stored :]
    found = await states(topic).look_up(b"a")
    assert found is not None
    assert found.value == (LARGE if stored > len(LARGE) // 10 + 1 else LARGER)


@pytest.mark.usefixtures("small_parts")
async def test_two_who_keep_a_value_at_once_are_not_mixed() -> None:
    topic = InternalTopic()
    both = states(topic), states(topic)
    for _ in range(3):
        await asyncio.gather(both[0].keep(b"a", LARGE), both[1].keep(b"a", LARGER))
        assert await value_of(states(topic), b"a") in (LARGE, LARGER)


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("missing", [0, 4, 9])
async def test_a_value_of_which_a_part_is_missing_is_none_and_counted(missing: int) -> None:
    topic = InternalTopic()
    mine = states(topic)
    await mine.keep(b"a", LARGE)
    topic.entries[missing] = topic.entries[-1]  # the reader is given the next that is there
    before = metrics.TORN_KEPT_STATES._value.get()
    assert await states(topic).look_up(b"a") is None
    assert await states(topic).find(b"a") is None
    assert metrics.TORN_KEPT_STATES._value.get() > before
    await mine.keep(b"a", LARGER)
    assert await value_of(states(topic), b"a") == LARGER


async def test_a_value_that_is_kept_anew_and_compacted_while_places_are_read_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    topic = InternalTopic()
    mine, other = states(topic), states(topic)
    await mine.keep(b"a", b"1")
    await mine.keep(b"b", b"2")
    told = topic.log_stats

    async def log_stats(name: str) -> Any:
        stats = await told(name)
        if topic.entries[0] is not topic.entries[1]:
            await mine.keep(b"a", b"3")
            topic.entries[0] = topic.entries[1]  # the reader is given the next that is there
        return stats

    monkeypatch.setattr(topic, "log_stats", log_stats)
    assert (await other.look_up(b"a")).value == b"3"  # type: ignore[union-attr]


@pytest.mark.usefixtures("small_parts")
async def test_a_value_in_parts_is_found_while_others_find_that_places_have_changed() -> None:
    topic = InternalTopic()
    mine, other = states(topic), states(topic)
    for key in (b"x", b"y"):
        await mine.keep(key, b"1")
    await mine.keep(b"a", LARGE)
    for key in (b"x", b"y", b"a"):
        assert await other.look_up(key)
    for number, key in enumerate((b"x", b"y")):
        await mine.keep(key, b"2")
        topic.entries[number] = topic.entries[2]  # the reader is given the next that is there
    found = await asyncio.gather(*(other.look_up(key) for key in (b"a", b"x", b"y")))
    assert [None if one is None else one.value for one in found] == [LARGE, b"2", b"2"]


@pytest.mark.usefixtures("small_parts")
async def test_parts_of_a_value_that_could_not_be_stored_are_deleted() -> None:
    topic = InternalTopic()
    mine = states(topic)
    await mine.keep(b"b", b"1")
    sending = asyncio.create_task(mine.keep(b"a", LARGE))
    while len(topic.entries) < 5:  # noqa: ASYNC110
        await asyncio.sleep(0)
    topic.lose()
    assert not await sending
    assert await mine.keep(b"a", LARGER)
    live = {key for key, value in dict(topic.stored()).items() if value is not None}
    assert len(live) == 2 + 1 + len(LARGER) // 10 - 1, "two values, and the parts of one"


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("is_stored", [True, False])
async def test_parts_whose_head_got_no_receipt_are_deleted_with_the_next_value(is_stored: bool) -> None:
    topic = InternalTopic()
    mine = states(topic)
    sending = asyncio.create_task(mine.keep(b"a", LARGE))
    while len(topic.entries) < 11:  # noqa: ASYNC110
        await asyncio.sleep(0)
    topic.lose()
    if not is_stored:
        topic.entries.pop()
    assert not await sending
    assert await value_of(states(topic), b"a") == (LARGE if is_stored else None)
    assert await mine.keep(b"a", b"small")
    assert {key for key, value in dict(topic.stored()).items() if value is not None} == {b"a"}


@pytest.mark.usefixtures("small_parts")
async def test_parts_are_deleted_though_the_connection_is_lost_while_they_are() -> None:
    topic = InternalTopic()
    mine = states(topic)
    assert await mine.keep(b"a", LARGE)
    sending = asyncio.create_task(mine.keep(b"a", b"small"))
    while len(topic.entries) < 14:  # noqa: ASYNC110
        await asyncio.sleep(0)
    del topic.entries[13:]
    topic.lose()
    await sending
    assert await mine.keep(b"a", b"smaller")
    assert {key for key, value in dict(topic.stored()).items() if value is not None} == {b"a"}


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("key", [b"a", b"b"])
async def test_values_that_one_sidecar_keeps_at_the_same_time_do_not_harm_each_other(key: bytes) -> None:
    topic = InternalTopic()
    mine = states(topic)
    await mine.keep(b"c", b"1")
    assert all(await asyncio.gather(mine.keep(b"a", LARGE), mine.keep(key, LARGER), mine.keep(b"c", b"2")))
    await mine.keep(b"c", b"3")
    for who in (mine, states(topic)):
        found = await who.look_up(b"a")
        assert found is not None
        assert found.value in ((LARGE, LARGER) if key == b"a" else (LARGE,))


async def test_what_is_old_is_not_deleted_when_it_was_kept_anew_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    topic = InternalTopic(there=True)
    sender = Writer(topic, cast(Any, Silent()))
    sender.send_batch(0, 1, write_batch([(b"old", b"1")], 5))
    told = topic.log_stats

    async def log_stats(name: str) -> Any:
        stats = await told(name)
        if len(topic.entries) == 1:
            sender.send_batch(1, 1, write_batch([(b"old", b"2")], EXPIRY_MS + 5))
        return stats

    monkeypatch.setattr(topic, "log_stats", log_stats)
    monkeypatch.setattr(time, "time_ns", lambda: (EXPIRY_MS + 10) * 1_000_000)
    await states(topic).look_up(b"other")
    assert topic.stored()[-1] == (b"old", b"2")


class Silent:
    def on_receipt(self, sequence: int, ledger: int, entry: int) -> None: ...


async def test_where_a_deletion_is_the_last_entry_and_was_compacted_out_reading_ends_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """The entry that is written behind a deletion was lost with its connection."""
    monkeypatch.setattr(kept_places, "SILENT_SECONDS", 0.05)
    topic = InternalTopic()
    mine, other = states(topic), states(topic)
    for key in (b"a", b"b"):
        await mine.store(key, b"1")
    await mine.store(b"b", b"")
    topic.entries.pop()
    topic.left_out |= {len(topic.entries) - 1, len(topic.entries) - 2}
    topic.compacted_to = Position(1, len(topic.entries) - 1)
    assert await other.look_up(b"b") is None
    assert [key for key in (b"a", b"b") if await other.look_up(key) is not None] == [b"a"]
    assert await other.names(b"b") == []
    other.close()
    mine.close()


async def test_a_topic_whose_storage_is_slow_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_places, "SILENT_SECONDS", 0.05)
    topic = InternalTopic()
    mine, other = states(topic), states(topic)
    await mine.store(b"a", b"1")
    topic.seconds_until_first = 0.15
    looks = 0
    found = None
    while found is None and looks < 3:
        looks += 1
        with contextlib.suppress(Unavailable):
            found = await other.look_up(b"a")
    assert found is not None
    assert found.value == b"1"
    other.close()
    mine.close()


async def test_silence_is_no_deletion_where_nothing_was_compacted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_places, "SILENT_SECONDS", 0.05)
    topic = InternalTopic()
    mine, other = states(topic), states(topic)
    await mine.store(b"a", b"1")
    written = len(topic.entries)
    topic.gives_nothing = True
    with pytest.raises(Unavailable):
        await other.look_up(b"a")
    assert len(topic.entries) == written
    other.close()
    mine.close()


async def test_who_may_not_write_behind_a_deletion_does_not_know_what_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_places, "SILENT_SECONDS", 0.05)
    topic = InternalTopic()
    mine, other = states(topic), states(topic)
    await mine.store(b"a", b"1")
    topic.gives_nothing, topic.compacted_to = True, Position(1, len(topic.entries))
    monkeypatch.setattr(topic, "producer", refused)
    with pytest.raises(Unavailable):
        await other.look_up(b"a")
    other.close()
    mine.close()


async def test_who_may_not_write_finds_what_is_there_though_some_of_it_is_old(monkeypatch: pytest.MonkeyPatch) -> None:
    topic = InternalTopic()
    mine, other = states(topic), states(topic)
    monkeypatch.setattr(time, "time_ns", lambda: 0)
    await mine.store(b"old", b"1")
    monkeypatch.setattr(time, "time_ns", lambda: (EXPIRY_MS + 10) * 1_000_000)
    await mine.store(b"a", b"2")
    monkeypatch.setattr(topic, "producer", refused)
    found = await other.look_up(b"a")
    assert found is not None
    assert found.value == b"2"
    other.close()
    mine.close()


async def test_who_may_not_compact_stores_and_finds_what_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_places, "COMPACT_AFTER", 1)
    monkeypatch.setattr(kept_shard, "COMPACT_AFTER_WRITES", 2)
    topic = InternalTopic()
    mine, other = states(topic), states(topic)
    monkeypatch.setattr(topic, "compact", refused)
    for value in (b"1", b"2", b"3", b"4"):
        await mine.store(b"a", value)
    found = await other.look_up(b"a")
    assert found is not None
    assert found.value == b"4"
    other.close()
    mine.close()


@pytest.mark.parametrize("what", ["read", "write"])
async def test_a_missing_right_is_believed_when_it_has_been_told_for_long(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker that can't read its policies for a moment tells it too, and whoever believed it would take what is kept for lost."""
    topic = InternalTopic()
    mine, other = states(topic), states(topic)
    await mine.store(b"a", b"1")

    async def asked() -> None:
        await (other.look_up(b"a") if what == "read" else other.store(b"b", b"1"))

    with monkeypatch.context() as patch:
        patch.setattr(topic, "log_stats" if what == "read" else "producer", refused)
        for _ in range(2):
            with pytest.raises(Unavailable):
                await asked()
    await asked()
    monkeypatch.setattr(topic, "log_stats" if what == "read" else "producer", refused)
    topic.lose()
    with pytest.raises(Unavailable):
        await asked()
    monkeypatch.setattr(refusals, "MEANT_SECONDS", 0.0)
    with pytest.raises(NotPermitted):
        await asked()


async def test_what_is_answered_without_reading_says_nothing_about_the_right_to_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """A partition that holds nothing is answered from its stats. Who asks it again and again must not put off what is known of another."""
    topic = InternalTopic()
    mine, other = states(topic), states(topic)
    await mine.store(b"a", b"1")
    with monkeypatch.context() as patch:
        patch.setattr(topic, "reader", refused)
        with pytest.raises(Unavailable):
            await other.look_up(b"a")
    counted = dict(other._refused_reads._counts)
    assert counted
    await mine.store(b"a", b"")
    monkeypatch.setattr(other._shard(b"a")._places, "read_if_not_since", nothing_to_read)
    assert await other.look_up(b"a") is None
    assert other._refused_reads._counts == counted


async def nothing_to_read(_: float) -> bool:
    return False
