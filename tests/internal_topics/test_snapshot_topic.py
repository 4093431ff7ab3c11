"""What is kept of logs: found by any sidecar, never in the way, and gone when nobody has used it for long."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import Any, cast

import pytest

from kafka_sidecar.internal_topics import snapshot_places, snapshot_shard
from kafka_sidecar.internal_topics.snapshot_places import EXPIRY_MS
from kafka_sidecar.internal_topics.snapshot_topic import MAX_BYTES
from kafka_sidecar.pulsar.admin import AlreadyExists
from kafka_sidecar.pulsar.entry import Position, RawEntry
from kafka_sidecar.pulsar.errors import Unavailable
from kafka_sidecar.pulsar.messages import write_batch
from kafka_sidecar.telemetry import metrics
from tests.support.internal_topic import InternalTopic, Writer
from tests.support.snapshot_topics import states, value_of


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


async def test_what_can_not_be_read_or_written_is_done_without(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
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


async def test_where_retention_has_emptied_the_log_what_is_compacted_is_read() -> None:
    topic = InternalTopic()
    mine = states(topic)
    await mine.keep(b"a", b"1")
    topic.compacted_to = Position(topic.ledger, len(topic.entries) - 1)
    topic.gone = len(topic.entries)
    assert await value_of(states(topic), b"a") == b"1"


async def test_who_asks_at_once_reads_it_once() -> None:
    topic = InternalTopic()
    mine = states(topic)
    for number in range(10):
        await mine.keep(b"%d" % number, b"v")
    assert await asyncio.gather(*(value_of(mine, b"%d" % number) for number in range(10))) == [b"v"] * 10


async def test_who_looks_a_value_up_finds_what_was_kept_a_moment_ago(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot_shard, "LOOK_SECONDS", 3_600.0)
    topic = InternalTopic()
    mine, other = states(topic), states(topic)
    await mine.keep(b"a", b"1")
    assert await value_of(other, b"a") == b"1"
    await mine.keep(b"a", b"2")
    await mine.keep(b"b", b"3")
    assert [await value_of(other, key) for key in (b"a", b"b")] == [b"1", None], (
        "an older value is good enough for who asks so"
    )
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


async def test_a_value_that_is_kept_anew_and_compacted_while_places_are_read_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
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


async def test_where_a_deletion_is_the_last_entry_and_was_compacted_out_reading_ends_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The entry that is written behind a deletion was lost with its connection."""
    monkeypatch.setattr(snapshot_places, "SILENT_SECONDS", 0.05)
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
    monkeypatch.setattr(snapshot_places, "SILENT_SECONDS", 0.05)
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
    monkeypatch.setattr(snapshot_places, "SILENT_SECONDS", 0.05)
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
