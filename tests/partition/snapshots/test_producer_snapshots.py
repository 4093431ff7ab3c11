"""Producers' state outlives the sidecar: who keeps it and when, and what is done without it."""

from __future__ import annotations

import asyncio
import math

import pytest

from kafka_sidecar.internal_topics.snapshot_places import Kept
from kafka_sidecar.loop.byte_rate import ByteRate
from kafka_sidecar.partition.fold.fold import IndexAlarm
from kafka_sidecar.partition.follow import replay
from kafka_sidecar.partition.partition import Partition
from kafka_sidecar.partition.snapshots import producer_snapshots
from kafka_sidecar.pulsar.entry import Position
from kafka_sidecar.pulsar.errors import NotPermitted, PulsarError, Refused
from kafka_sidecar.telemetry import metrics
from kafka_sidecar.wire.error_code import ErrorCode
from tests.support.batches import batch
from tests.support.fake_broker import until
from tests.support.memory_log import MemoryLog
from tests.support.memory_states import MemoryStates
from tests.support.partitions import append, begin_append, open_partition
from tests.support.producer_snapshots import (
    KEY,
    by_key,
    kept_by_another,
    numbered,
    replace_all,
    settled,
    values,
    written_long_ago,
)


def has_tried(partition: Partition) -> bool:
    """Whether it has begun to keep something, and it is over."""
    beginning = partition._producer_snapshots._beginning
    return beginning is not None and beginning.done()


async def test_a_retry_is_recognised_however_much_was_written_since() -> None:
    log, states = MemoryLog(), MemoryStates()
    written_long_ago(log)
    await kept_by_another(log, states)
    place = log.index
    for _ in range(100):
        log.write(batch(b"other"))
    partition = open_partition(log, states=states, replay_entries=10)
    assert (await append(partition, numbered(6))).base_offset == place
    assert (await append(partition, numbered(5))).base_offset == 1
    assert (await append(partition, numbered(7))).error is ErrorCode.NONE
    partition.close()


async def test_only_what_lies_behind_it_is_read() -> None:
    log, states = MemoryLog(), MemoryStates()
    written_long_ago(log, 1_000)
    await kept_by_another(log, states)
    kept_at = log.entries[-1].position
    for _ in range(200):
        log.write(batch(b"other"))
    partition = open_partition(log, states=states)
    await partition.opened()
    log.opened_at.clear()
    assert (await append(partition, numbered(7))).error is ErrorCode.NONE
    assert [start for start in log.opened_at if start is not None and start < kept_at] == []
    partition.close()


async def test_one_that_only_reads_keeps_nothing() -> None:
    log, states = MemoryLog(), MemoryStates()
    written_long_ago(log)
    partition = open_partition(log, states=states)
    await partition.confirmed_end()
    await append(partition, batch(b"without a producer"))
    partition.tick(asyncio.get_running_loop().time() + 1_000)
    partition.close()
    await settled(partition)
    assert not states.kept


async def test_it_is_kept_when_a_sidecar_begins_and_again_when_much_was_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(producer_snapshots, "ENTRIES_BEHIND", 10)
    log, states = MemoryLog(), MemoryStates()
    written_long_ago(log)
    partition = open_partition(log, states=states)
    now = asyncio.get_running_loop().time()
    assert (await append(partition, numbered(6))).error is ErrorCode.NONE
    await settled(partition)
    assert states.kept == [KEY]
    partition.tick(now + 30)
    await settled(partition)
    assert states.kept == [KEY], "little was written since"
    partition.tick(now + 61)
    await settled(partition)
    assert states.kept == [KEY] * 2, "a minute has passed"
    for sequence in range(7, 20):
        await append(partition, numbered(sequence))
    partition.tick(now + 70)
    await settled(partition)
    assert states.kept == [KEY] * 3
    partition.tick(now + 200)
    partition.close()
    await settled(partition)
    assert states.kept == [KEY] * 3, "nothing is new"


async def test_while_nobody_can_say_whether_something_was_kept_no_verdict_is_told() -> None:
    log, states = MemoryLog(), MemoryStates()
    written_long_ago(log)
    await kept_by_another(log, states)
    place = log.index
    for _ in range(100):
        log.write(batch(b"other"))
    states.is_away = True
    partition = open_partition(log, states=states, replay_entries=10)
    waiting = begin_append(partition, numbered(6), 20)
    await asyncio.sleep(0.05)
    assert not waiting.done()
    states.is_away = False
    assert (await waiting).base_offset == place
    partition.close()


@pytest.mark.parametrize("key", [KEY + b"\0:1.5:1", KEY + b"\0nonsense"])
async def test_what_makes_no_sense_is_as_good_as_nothing(key: bytes) -> None:
    log, states = MemoryLog(), MemoryStates()
    written_long_ago(log, 5)
    states.values[key] = b"\xff\xff"
    partition = open_partition(log, states=states)
    assert (await append(partition, numbered(5))).base_offset == 1
    partition.close()


async def test_what_is_of_another_log_is_thrown_away() -> None:
    """As after a topic was made anew: places and offsets are others."""
    log, states = MemoryLog(), MemoryStates()
    for _ in range(3):
        log.write(batch(b"of", b"another", b"log"))
    await kept_by_another(log, states)
    other = MemoryLog()
    written_long_ago(other)
    before = metrics.PRODUCERS_NOT_RESTORED._value.get()
    partition = open_partition(other, states=states)
    assert (await append(partition, numbered(5))).base_offset == 1
    assert metrics.PRODUCERS_NOT_RESTORED._value.get() == before + 1
    partition.close()


async def test_a_new_producer_does_not_wait_for_what_others_alone_have_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "TOO_FAR_ENTRIES", 50)
    log, states = MemoryLog(), MemoryStates()
    written_long_ago(log)
    await kept_by_another(log, states)
    for _ in range(100):
        log.write(batch(b"other"))
    partition = open_partition(log, states=states, replay_entries=10)
    await partition.opened()
    log.opened_at.clear()
    assert (await append(partition, batch(b"new", producer_id=99, epoch=0, sequence=0))).error is ErrorCode.NONE
    assert [start for start in log.opened_at if start is not None and start.entry < 100] == []
    partition.close()


async def test_what_retention_took_is_known_no_more() -> None:
    log, states = MemoryLog(), MemoryStates()
    written_long_ago(log)
    await kept_by_another(log, states)
    log.write(batch(b"gone, and nobody has kept what it said"))
    log.roll()
    log.write(batch(b"later"))
    log.trim(len(log.entries) - 1)
    partition = open_partition(log, states=states)
    assert (await append(partition, numbered(20))).error is ErrorCode.NONE
    partition.close()


@pytest.mark.parametrize("left", [0, 1, 100])
async def test_what_was_kept_of_all_that_retention_took_counts(left: int) -> None:
    log, states = MemoryLog(), MemoryStates()
    written_long_ago(log)
    await kept_by_another(log, states)
    place = log.index
    log.roll()
    for _ in range(left):
        log.write(batch(b"later"))
    log.trim(len(log.entries) - left)
    partition = open_partition(log, states=states)
    assert (await append(partition, numbered(6))).base_offset == place
    assert (await append(partition, numbered(8))).error is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert (await append(partition, numbered(7))).error is ErrorCode.NONE
    partition.close()


async def test_a_log_that_contradicts_itself_leaves_nothing_behind() -> None:
    log, states = MemoryLog(), MemoryStates()
    written_long_ago(log)
    await kept_by_another(log, states)
    partition = open_partition(log, states=states)
    await append(partition, numbered(7))
    partition.alarm(IndexAlarm("the broker counts otherwise"))
    await settled(partition)
    assert not values(states)


async def test_a_place_that_the_log_has_not_reached_is_none() -> None:
    """Anybody may write such a value."""
    log, states = MemoryLog(), MemoryStates()
    written_long_ago(log)
    await kept_by_another(log, states)
    replace_all(states, values(states)[0]._replace(last=Position(log.entries[-1].position.ledger, 10_000)))
    partition = open_partition(log, states=states)
    assert (await append(partition, numbered(7))).error is ErrorCode.NONE
    partition.close()


async def test_it_is_kept_with_the_first_append_to_a_new_partition() -> None:
    log, states = MemoryLog(), MemoryStates()
    partition = open_partition(log, "kafka-sidecar-a", states=states)
    assert (await append(partition, numbered(0))).base_offset == 0
    await settled(partition)
    assert states.kept == [KEY]
    states.is_away = True  # it is killed
    await asyncio.gather(*partition.close())
    states.is_away = False
    for _ in range(100):
        log.write(batch(b"other"))
    again = open_partition(log, "kafka-sidecar-b", states=states, replay_entries=10)
    assert (await append(again, numbered(0))).base_offset == 0
    again.close()


async def test_no_batch_of_a_producer_is_sent_before_something_is_kept() -> None:
    log, states = MemoryLog(), MemoryStates()
    written_long_ago(log)
    partition = open_partition(log, states=states)
    assert (await append(partition, batch(b"plain"))).error is ErrorCode.NONE
    entries = len(log.entries)
    names = states.names

    async def then_it_is_away(prefix: bytes) -> list[bytes]:
        states.is_away, found = False, await names(prefix)
        states.is_away = True
        return found

    states.names = then_it_is_away  # type: ignore[method-assign]
    begun = begin_append(partition, numbered(6), 60)
    await until(lambda: has_tried(partition))
    assert len(log.entries) == entries
    states.names = names  # type: ignore[method-assign]
    states.is_away = False
    partition.tick(asyncio.get_running_loop().time())
    assert (await begun).base_offset == entries
    assert values(states)[0].last == log.entries[entries - 1].position
    partition.close()


async def test_a_producer_that_is_known_waits_likewise_when_what_was_kept_is_thrown_away() -> None:
    log, states = MemoryLog(), MemoryStates()
    written_long_ago(log)
    await kept_by_another(log, states)
    partition = open_partition(log, states=states)
    assert (await append(partition, numbered(7))).error is ErrorCode.NONE
    states.is_away = True
    partition._producer_snapshots.throw_away("it is a test")
    entries = len(log.entries)
    begun = begin_append(partition, numbered(8), 60)
    await until(lambda: has_tried(partition))
    assert len(log.entries) == entries
    states.is_away = False
    partition.tick(asyncio.get_running_loop().time())
    assert (await begun).base_offset == entries
    partition.close()


async def test_a_first_append_does_not_wait_for_its_turn_in_the_rate() -> None:
    log, states = MemoryLog(), MemoryStates()
    written_long_ago(log)
    await kept_by_another(log, states)
    partition = open_partition(log, states=states)
    assert (await append(partition, numbered(7))).error is ErrorCode.NONE
    partition._producer_snapshots.throw_away("it is a test")
    await settled(partition)
    states.rate = ByteRate(1, 1)
    states.rate.spend(10**6)
    partition.tick(asyncio.get_running_loop().time() + 100)
    await until(lambda: partition._producer_snapshots._is_waiting)
    assert (await append(partition, numbered(8))).error is ErrorCode.NONE
    partition.close()


async def of_an_older_topic(states: MemoryStates) -> MemoryLog:
    """A topic that was made anew, and what was kept of the one before."""
    old = MemoryLog()
    for _ in range(20):
        old.write(batch(b"old"))
    await kept_by_another(old, states)
    log = MemoryLog(ledger=9)
    for _ in range(100):
        log.write(batch(b"new"))
    return log


async def test_what_is_of_no_use_and_can_not_be_deleted_is_looked_at_once() -> None:
    states = MemoryStates()
    log = await of_an_older_topic(states)

    async def store(key: bytes, value: bytes) -> None:
        if key.startswith(KEY):
            raise NotPermitted("write the kept states")

    states.store = store  # type: ignore[method-assign]
    partition = open_partition(log, states=states, replay_entries=10)
    assert (await append(partition, numbered(0))).error is ErrorCode.NONE
    assert len(log.opened_at) < 20
    partition.close()


async def test_who_finds_it_of_no_use_later_leaves_what_was_kept_since() -> None:
    states = MemoryStates()
    log = await of_an_older_topic(states)
    slow, fast = MemoryStates(), open_partition(log, "kafka-sidecar-b", states=states)
    slow.values, may_go_on = states.values, asyncio.Event()
    look_up = slow.look_up

    async def later(key: bytes) -> Kept | None:
        found = await look_up(key)
        await may_go_on.wait()
        return found

    slow.look_up = later  # type: ignore[method-assign]
    reads = open_partition(log, "kafka-sidecar-a", states=slow)
    await reads.opened()
    knowing = asyncio.create_task(reads.known_producers())
    assert (await append(fast, numbered(0))).error is ErrorCode.NONE
    kept = by_key(states)
    may_go_on.set()
    await knowing
    await settled(reads)
    assert by_key(states) == kept
    for one in (reads, fast):
        one.close()


@pytest.mark.parametrize("refusal", [NotPermitted, Refused])
async def test_without_a_right_to_keep_it_producers_do_not_wait(refusal: type[PulsarError]) -> None:
    log, states = MemoryLog(), MemoryStates()

    async def store(key: bytes, value: bytes) -> None:
        raise refusal("write the kept states")

    states.store = store  # type: ignore[method-assign]
    partition = open_partition(log, states=states)
    assert (await append(partition, numbered(0))).base_offset == 0
    partition.close()


async def test_who_knows_less_does_not_replace_what_another_has_kept() -> None:
    """It began when nothing was kept, for what was had been thrown away, and has read a window."""
    log, states = MemoryLog(), MemoryStates()
    first = open_partition(log, "kafka-sidecar-a", states=states)
    assert (await append(first, numbered(0))).base_offset == 0
    for _ in range(100):
        log.write(batch(b"other"))
    second = open_partition(log, "kafka-sidecar-b", states=states, replay_entries=10)
    other = [batch(b"of 8", producer_id=8, epoch=0, sequence=sequence) for sequence in range(3)]
    replace_all(states)
    await second.opened()
    begun = begin_append(second, other[0])
    await begun
    await settled(second)  # else it keeps what it knows after this
    replace_all(states)
    first.tick(asyncio.get_running_loop().time() + 10)
    await settled(first)
    assert [one.began for one in values(states)] == [None]
    second._producer_snapshots._stored_to = None
    second.tick(asyncio.get_running_loop().time() + 100)
    await settled(second)
    assert [one.began for one in values(states)] == [None]
    assert (await append(second, numbered(0))).base_offset == 0, "it has learnt of the other"
    for partition in (first, second):
        partition.close()


async def test_those_who_wait_behind_one_that_has_given_up_go_on() -> None:
    log, states = MemoryLog(), MemoryStates()
    written_long_ago(log)
    states.is_away = True
    partition = open_partition(log, states=states)
    assert (await append(partition, batch(b"plain"))).error is ErrorCode.NONE
    idempotent, plain = begin_append(partition, numbered(6), 1), begin_append(partition, batch(b"plain"), 60)
    partition.tick(asyncio.get_running_loop().time() + 2)
    assert (await idempotent).error is ErrorCode.REQUEST_TIMED_OUT
    assert (await plain).error is ErrorCode.NONE
    partition.close()


@pytest.mark.parametrize("refusal", [NotPermitted, Refused])
async def test_without_a_right_to_what_is_kept_the_window_is_read(refusal: type[PulsarError]) -> None:
    log, states = MemoryLog(), MemoryStates()
    written_long_ago(log, 5)

    async def look_up(key: bytes) -> Kept | None:
        raise refusal("read the kept states")

    states.look_up = look_up  # type: ignore[method-assign]
    partition = open_partition(log, states=states)
    assert (await append(partition, numbered(5))).base_offset == 1
    assert partition.ended is None
    partition.close()


async def test_a_log_that_is_emptied_while_one_goes_on_from_what_was_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafka_sidecar.pulsar.raw_entries.ENTRY_SECONDS", 0.05)
    log, states = MemoryLog(), MemoryStates()
    written_long_ago(log)
    await kept_by_another(log, states)
    for _ in range(100):
        log.write(batch(b"other"))
    partition = open_partition(log, states=states)
    await partition.opened()
    look_up = states.look_up

    async def then_it_is_emptied(key: bytes) -> Kept | None:
        found = await look_up(key)
        log.trim(len(log.entries))
        return found

    states.look_up = then_it_is_emptied  # type: ignore[method-assign]
    assert (await append(partition, numbered(7))).error is ErrorCode.NONE
    partition.close()


@pytest.mark.parametrize("is_trimmed", [False, True])
async def test_a_value_that_lands_late_does_not_count(is_trimmed: bool) -> None:
    """As of a sidecar that stood still while it stored. Another has gone on, and retention has taken what stood
    between.
    """
    log, states, late = MemoryLog(), MemoryStates(), MemoryStates()
    written_long_ago(log)
    late.values = states.values
    first = open_partition(log, "kafka-sidecar-a", states=late)
    assert (await append(first, numbered(6))).error is ErrorCode.NONE
    sent: list[tuple[bytes, bytes]] = []

    async def hangs(key: bytes, value: bytes) -> None:
        sent.append((key, value))

    late.store = hangs  # type: ignore[method-assign]
    first.tick(asyncio.get_running_loop().time() + 100)
    await settled(first)
    second = open_partition(log, "kafka-sidecar-b", states=states)
    written = await append(second, numbered(7))
    await asyncio.gather(*second.close())
    for one in sent:
        await states.store(*one)
    log.roll()
    log.write(batch(b"later"))
    if is_trimmed:
        log.trim(len(log.entries) - 1)
    third = open_partition(log, "kafka-sidecar-c", states=states)
    assert (await append(third, numbered(7))).base_offset == written.base_offset
    assert (await append(third, numbered(8))).error is ErrorCode.NONE
    for partition in (first, third):
        partition.close()


async def test_nothing_is_thrown_away_by_the_word_of_a_reader() -> None:
    """A reader that its broker has forgotten names an old entry as the last. What another has kept is of this log."""
    log, states = MemoryLog(), MemoryStates()
    written_long_ago(log)
    partition = open_partition(log, "kafka-sidecar-b", states=states, replay_entries=10)
    assert (await append(partition, batch(b"plain"))).error is ErrorCode.NONE
    old = partition._fold.reached
    named, brings = partition._tail.last_position, partition._tail.on_entry

    async def is_old() -> Position | None:
        return old

    partition._tail.last_position = is_old  # type: ignore[method-assign]
    partition._tail.on_entry = lambda entry: None  # type: ignore[method-assign]
    for _ in range(100):
        log.write(batch(b"other"))
    await kept_by_another(log, states)
    kept, written = by_key(states), log.index
    begun = begin_append(partition, numbered(6), 60)
    await until(lambda: partition._tail_watch._known == log.entries[-1].position)
    partition._tail.last_position, partition._tail.on_entry = named, brings  # type: ignore[method-assign]
    partition._tail.restart()
    assert (await begun).base_offset == written
    assert by_key(states).items() >= kept.items()
    partition.close()


async def test_what_was_kept_counts_where_retention_took_all_that_was_read_since_the_partition_was_opened() -> None:
    """It was opened by a reader, and has folded the entry at which another sidecar has kept its producers. Nothing is
    left to read.
    """
    log, states = MemoryLog(), MemoryStates()
    written_long_ago(log)
    await kept_by_another(log, states)
    place = log.index
    partition = open_partition(log, "kafka-sidecar-b", states=states, replay_entries=10)
    await partition.opened()
    assert await partition.confirmed_end() == place + 1
    log.roll()
    log.trim(len(log.entries))
    assert (await append(partition, numbered(5))).base_offset == 1
    assert (await append(partition, numbered(6))).base_offset == place
    partition.close()


@pytest.mark.parametrize("what", ["a marker", "an index that the broker has wasted"])
async def test_an_index_that_no_reader_is_given_where_the_fold_begins_does_not_matter(
    what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What native producers wrote behind what was kept is passed over."""
    monkeypatch.setattr(replay, "TOO_FAR_ENTRIES", 50)
    log, states = MemoryLog(), MemoryStates()
    written_long_ago(log)
    await kept_by_another(log, states)
    kept, place = by_key(states), log.index
    for _ in range(100):
        log.write(batch(b"other"))
    if what == "a marker":
        log.mark()
    else:
        log.index += 1
    for _ in range(63 if what == "a marker" else 64):
        log.write(batch(b"other"))
    partition = open_partition(log, "kafka-sidecar-b", states=states, replay_entries=10)
    assert (await append(partition, numbered(6))).base_offset == place
    assert by_key(states) == kept
    partition.close()


async def test_what_retention_has_made_useless_does_not_pile_up() -> None:
    """Each run of a job finds that retention took what others wrote behind what was kept of it."""
    log, states = MemoryLog(), MemoryStates()
    for run in range(6):
        partition = open_partition(log, f"kafka-sidecar-{run}", states=states)
        assert (await append(partition, batch(b"run", producer_id=run, epoch=0, sequence=0))).error is ErrorCode.NONE
        await asyncio.gather(*partition.close())
        assert len(by_key(states)) <= 2
        for _ in range(2):
            log.write(batch(b"other"))
            log.roll()
        log.write(batch(b"other"))
        log.trim(len(log.entries) - 1)


async def test_a_value_that_began_earlier_and_was_stored_later_is_gone_on_from_while_it_is_near() -> None:
    """Two sidecars begin where nothing was kept. Else whoever opens the partition would begin there, however far one of
    them went on.
    """
    log, states, late = MemoryLog(), MemoryStates(), MemoryStates()
    late.values = states.values
    for _ in range(500):
        log.write(batch(b"before"))
    first = open_partition(log, "kafka-sidecar-first", states=late, replay_entries=100)
    await first.opened()
    await first._replay.over()
    for _ in range(3):
        log.write(batch(b"other"))
    second = open_partition(log, "kafka-sidecar-second", states=states, replay_entries=100)
    may_store, store = asyncio.Event(), late.store

    async def slow(key: bytes, value: bytes) -> None:
        await may_store.wait()
        await store(key, value)

    late.store = slow  # type: ignore[method-assign]
    begun = begin_append(first, batch(b"8", producer_id=8, epoch=0, sequence=0))
    assert (await append(second, numbered(0))).error is ErrorCode.NONE
    may_store.set()
    assert (await begun).error is ErrorCode.NONE
    await asyncio.gather(*first.close())
    assert len(values(states)) == 2
    for sequence in range(1, 4):
        assert (await append(second, numbered(sequence))).error is ErrorCode.NONE
        end = log.entries[-1].position
        second._producer_snapshots._last_try_at = -math.inf
        second._producer_snapshots.tick(asyncio.get_running_loop().time())
        await settled(second)
        assert end in [one.last for one in values(states)], "also if it is closed now"
        await until(lambda: second._replay.done)  # it learns at once, whatever is appended
    await asyncio.gather(*second.close())
    (kept,) = values(states)
    assert kept.last == log.entries[-1].position


@pytest.mark.parametrize("has_transactions", [False, True])
async def test_what_was_learnt_of_an_emptied_log_counts_when_something_is_written_there(has_transactions: bool) -> None:
    log, states = MemoryLog(), MemoryStates()
    for _ in range(200):
        log.write(batch(b"before"))
    first = open_partition(log, "kafka-sidecar-a", states=states, replay_entries=10)
    assert (await append(first, numbered(6))).error is ErrorCode.NONE
    await asyncio.gather(*first.close())
    (kept,) = values(states)
    if has_transactions:
        await log.begin_transactions(log.entries[-1].position)
    log.roll()
    log.trim(len(log.entries))
    partition = open_partition(log, "kafka-sidecar-b", states=states)
    await partition.opened()
    await partition._replay.over()
    log.write(batch(b"the first in a new ledger"))
    assert await partition.confirmed_end() == 202
    assert (await append(partition, numbered(7))).error is ErrorCode.NONE
    assert partition.ended is None
    await asyncio.gather(*partition.close())
    assert kept.began is not None
    assert [(one.began, one.last) for one in values(states)] == [(kept.began, log.entries[-1].position)]
