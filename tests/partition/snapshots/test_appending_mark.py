"""Marks of sidecars that append, and what they are for: entries very far behind what was kept."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from kafka_sidecar.internal_topics.snapshot_topic import SnapshotTopic
from kafka_sidecar.loop.clock import SYSTEM_CLOCK
from kafka_sidecar.partition.fold.log_times import DAY_MS
from kafka_sidecar.partition.follow import replay
from kafka_sidecar.partition.partition import Partition
from kafka_sidecar.partition.snapshots import producer_snapshots
from kafka_sidecar.partition.snapshots.appending_mark import AppendingMark
from kafka_sidecar.pulsar.errors import NotPermitted, PulsarError, Refused, Unavailable
from kafka_sidecar.wire.error_code import ErrorCode
from tests.support.batches import batch
from tests.support.fake_broker import until
from tests.support.memory_log import MemoryLog
from tests.support.memory_states import MemoryStates
from tests.support.partitions import append, begin_append, open_partition
from tests.support.producer_snapshots import by_key, kept_by_another, numbered, settled, written_long_ago


def marks(states: MemoryStates) -> list[bytes]:
    return [key for key in states.values if key.startswith(b"appends:t-partition-0\0")]


async def test_a_mark_is_there_from_before_the_first_batch_until_all_is_kept() -> None:
    log, states = MemoryLog(), MemoryStates()
    written_long_ago(log)
    first, second = (open_partition(log, f"kafka-sidecar-{name}", states=states) for name in ("a", "b"))
    log.hold_sends = True
    begun = begin_append(first, numbered(6))
    await until(lambda: log.held)
    assert len(marks(states)) == 1
    log.hold_sends = False
    log.let_go()
    await begun
    await append(second, numbered(7))
    assert len(marks(states)) == 2
    await asyncio.gather(*first.close())
    assert len(marks(states)) == 1, "that of the other"
    await asyncio.gather(*second.close())
    assert marks(states) == []


async def test_a_sidecar_that_was_killed_leaves_its_own_mark_and_nobody_elses() -> None:
    log, states = MemoryLog(), MemoryStates()
    states.values[b"appends:t-partition-0\0killed"] = b"1"
    partition = open_partition(log, states=states)
    assert (await append(partition, numbered(0))).error is ErrorCode.NONE
    await asyncio.gather(*partition.close())
    assert marks(states) == [b"appends:t-partition-0\0killed"]


@pytest.mark.parametrize("sequence", [5, 9], ids=["a retry", "one out of order"])
async def test_who_has_sent_nothing_takes_its_mark_back(sequence: int) -> None:
    log, states = MemoryLog(), MemoryStates()
    written_long_ago(log)
    await kept_by_another(log, states)
    partition = open_partition(log, "kafka-sidecar-b", states=states)
    await append(partition, numbered(sequence))
    await asyncio.gather(*partition.close())
    assert marks(states) == []


async def test_a_mark_that_is_on_its_way_when_the_partition_ends_is_taken_back() -> None:
    log, states = MemoryLog(), MemoryStates()
    written_long_ago(log)
    await kept_by_another(log, states)
    partition = open_partition(log, "kafka-sidecar-b", states=states)
    store, is_sent, may_go_on = states.store, asyncio.Event(), asyncio.Event()

    async def slow(key: bytes, value: bytes) -> None:
        is_sent.set()
        await may_go_on.wait()
        await store(key, value)

    states.store = slow  # type: ignore[method-assign]
    begin_append(partition, numbered(7))
    await is_sent.wait()
    closing = partition.close()
    may_go_on.set()
    await asyncio.gather(*closing)
    assert marks(states) == []


@pytest.mark.parametrize("fault", ["a batch is under way", "it can't be kept"])
async def test_a_mark_stays_where_something_may_be_missing_in_what_is_kept(fault: str) -> None:
    log, states = MemoryLog(), MemoryStates()
    partition = open_partition(log, states=states)
    await append(partition, numbered(0))
    if fault == "a batch is under way":
        log.hold_sends = True
        begin_append(partition, numbered(1))
        await until(lambda: log.held)
    else:
        states.is_away = True
    await asyncio.gather(*partition.close())
    assert len(marks(states)) == 1


def very_much_later(log: MemoryLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "TOO_FAR_ENTRIES", 200)
    for _ in range(300):
        log.write(batch(b"other"))


async def test_what_others_alone_have_written_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    log, states = MemoryLog(), MemoryStates()
    written_long_ago(log)
    first = open_partition(log, "kafka-sidecar-a", states=states)
    place = (await append(first, numbered(6))).base_offset
    await asyncio.gather(*first.close())
    very_much_later(log, monkeypatch)
    second = open_partition(log, "kafka-sidecar-b", states=states, replay_entries=10)
    await second.opened()
    before = log.bytes_read
    assert (await append(second, numbered(6))).base_offset == place
    assert log.bytes_read - before < 100 * len(batch(b"other"))
    assert (await append(second, numbered(7))).error is ErrorCode.NONE
    assert (await append(second, numbered(5))).base_offset == 1
    second.close()


@pytest.mark.parametrize("puts", ["no mark, as 0.2", "no mark, without the right"])
async def test_all_is_read_where_a_sidecar_that_puts_no_mark_has_written_within_the_window(
    puts: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, states = MemoryLog(), MemoryStates()
    first = open_partition(log, "kafka-sidecar-a", states=states)
    assert (await append(first, numbered(0))).error is ErrorCode.NONE
    await asyncio.gather(*first.close())
    without = MemoryStates()
    without.values = states.values

    async def refused(key: bytes, value: bytes) -> None:
        raise NotPermitted("a right to produce")

    monkeypatch.setattr(without, "store", refused)
    second = open_partition(log, "kafka-sidecar-b", states=None if puts == "no mark, as 0.2" else without)
    assert (await append(second, numbered(1))).error is ErrorCode.NONE
    very_much_later(log, monkeypatch)
    place = (await append(second, numbered(2))).base_offset
    for _ in range(100):  # more than is folded when a partition is opened
        log.write(batch(b"other"))
    await asyncio.gather(*second.close())
    third = open_partition(log, "kafka-sidecar-c", states=states)
    assert (await append(third, numbered(2))).base_offset == place
    assert (await append(third, numbered(1))).base_offset == 1
    assert (await append(third, numbered(3))).error is ErrorCode.NONE
    third.close()


async def test_all_is_read_where_a_sidecar_was_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    log, states = MemoryLog(), MemoryStates()
    written_long_ago(log)
    first = open_partition(log, "kafka-sidecar-a", states=states)
    await append(first, numbered(6))
    place = (await append(first, numbered(7))).base_offset
    states.is_away = True  # it is killed
    await asyncio.gather(*first.close())
    states.is_away = False
    very_much_later(log, monkeypatch)
    second = open_partition(log, "kafka-sidecar-b", states=states, replay_entries=10)
    assert (await append(second, numbered(7))).base_offset == place
    second.close()


async def test_a_mark_from_before_its_producers_expired_counts_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    log, states = MemoryLog(), MemoryStates()
    written_long_ago(log)
    await kept_by_another(log, states)
    states.values[b"appends:t-partition-0\0killed"] = b"1"
    states.written_at = SYSTEM_CLOCK.wall() - 3 * 24 * 3_600_000
    very_much_later(log, monkeypatch)
    partition = open_partition(log, "kafka-sidecar-b", states=states, replay_entries=10)
    await partition.opened()
    before = log.bytes_read
    assert (await append(partition, numbered(7))).error is ErrorCode.NONE
    assert log.bytes_read - before < 100 * len(batch(b"other"))
    partition.close()


HOURS = 3_600.0


async def after_hours(partition: Partition, hours: float) -> None:
    """Make the partition believe that so many hours have passed since it put its mark and kept its value."""
    kept = partition._producer_snapshots
    assert kept._mark is not None
    kept._mark._put_at -= hours * HOURS
    kept._of_use_since -= hours * HOURS
    partition.tick(asyncio.get_running_loop().time())
    await settled(partition)


async def begun() -> tuple[MemoryLog, MemoryStates, Partition]:
    """A sidecar has appended, and has kept all that it knows."""
    log, states = MemoryLog(), MemoryStates()
    partition = open_partition(log, "kafka-sidecar-a", states=states)
    assert (await append(partition, numbered(0))).error is ErrorCode.NONE
    await settled(partition)
    return log, states, partition


async def test_a_mark_is_put_again_though_nobody_appends() -> None:
    _, states, partition = await begun()
    (mark,) = marks(states)
    del states.values[mark]
    await after_hours(partition, 5)
    assert marks(states) == []
    await after_hours(partition, 2)
    assert marks(states) == [mark]
    partition.close()


async def test_mark_and_value_are_put_again_in_a_topic_that_is_made_anew() -> None:
    _, states, partition = await begun()
    before = sorted(key.partition(b"\0")[0] for key in states.values)
    assert len(before) == 2
    states.values.clear()
    states.remade += 1
    await after_hours(partition, 0.1)
    assert sorted(key.partition(b"\0")[0] for key in states.values) == before
    assert partition._producer_snapshots.has_begun
    partition.close()


async def test_what_is_gone_with_its_topic_is_stored_anew_also_by_who_closes_at_once() -> None:
    _, states, partition = await begun()
    partition.tick(asyncio.get_running_loop().time() + producer_snapshots.STORE_EVERY_SECONDS)
    await settled(partition)
    states.values.clear()
    states.remade += 1
    partition.close()
    await settled(partition)
    assert [key.partition(b":")[0] for key in states.values] == [b"producer-states"]


async def test_where_a_mark_could_not_be_put_again_for_long_producers_wait_for_it() -> None:
    log, states, partition = await begun()
    states.values.clear()
    states.is_away = True
    await after_hours(partition, 32)
    sent = len(log.entries)
    waiting = begin_append(partition, batch(b"new", producer_id=8, epoch=0, sequence=0))
    await asyncio.sleep(0.05)
    assert not waiting.done()
    assert len(log.entries) == sent
    states.is_away = False
    partition.tick(asyncio.get_running_loop().time())
    assert (await waiting).error is ErrorCode.NONE
    assert marks(states)
    partition.close()


async def test_what_was_kept_long_ago_is_kept_anew_before_the_next_batch() -> None:
    """Whoever reads a value that nobody has written anew for a month deletes it."""
    log, states, partition = await begun()
    await after_hours(partition, 8 * 24)
    states.values.clear()
    log.hold_sends = True
    appended = begin_append(partition, batch(b"new", producer_id=8, epoch=0, sequence=0))
    await until(lambda: log.held)
    assert by_key(states)
    log.hold_sends = False
    log.let_go()
    assert (await appended).error is ErrorCode.NONE
    partition.close()


async def test_the_mark_of_who_has_answered_retries_alone_is_put_again_too() -> None:
    log, states = MemoryLog(), MemoryStates()
    written_long_ago(log)
    await kept_by_another(log, states)
    partition = open_partition(log, "kafka-sidecar-b", states=states)
    assert (await append(partition, numbered(5))).base_offset == 1
    await settled(partition)
    (mark,) = marks(states)
    del states.values[mark]
    await after_hours(partition, 7)
    assert marks(states) == [mark]
    partition.close()


@pytest.mark.parametrize("refusal", [NotPermitted, Refused])
async def test_where_nothing_may_be_kept_producers_are_not_stopped_again(refusal: type[PulsarError]) -> None:
    log, states = MemoryLog(), MemoryStates()
    written_long_ago(log)
    await kept_by_another(log, states)
    states.written_at = SYSTEM_CLOCK.wall() - 8 * 24 * 3_600_000
    refused = 0

    async def store(key: bytes, value: bytes) -> None:
        nonlocal refused
        refused += 1
        raise refusal("keep")

    states.store = store  # type: ignore[method-assign]
    partition = open_partition(log, "kafka-sidecar-b", states=states)
    for sequence in (7, 8, 9):
        assert (await append(partition, numbered(sequence))).error is ErrorCode.NONE
        await settled(partition)
        partition.tick(asyncio.get_running_loop().time())
    assert refused <= 2
    partition.close()


async def test_who_has_kept_nothing_for_a_week_takes_its_mark_back_all_the_same() -> None:
    _, states, partition = await begun()
    partition.tick(asyncio.get_running_loop().time() + 120)
    await settled(partition)
    await after_hours(partition, 8 * 24)
    await asyncio.gather(*partition.close())
    assert marks(states) == []


@pytest.mark.parametrize("fault", ["its answer is lost", "the value is refused meanwhile"])
async def test_a_mark_of_which_nobody_can_tell_whether_it_landed_is_taken_back(fault: str) -> None:
    log, states = MemoryLog(), MemoryStates()
    store, lands = states.store, asyncio.Event()

    async def unsure(key: bytes, value: bytes) -> None:
        states.store = store  # type: ignore[method-assign]
        if key.startswith(b"appends:"):
            await store(key, value)
        raise Unavailable("nobody can tell")

    async def late(key: bytes, value: bytes) -> None:
        if not key.startswith(b"appends:"):
            raise Unavailable("the connection was lost")
        await lands.wait()
        await store(key, value)

    states.store = unsure if fault == "its answer is lost" else late  # type: ignore[method-assign]
    partition = open_partition(log, states=states)
    waiting = begin_append(partition, numbered(0))
    await asyncio.sleep(0.05)
    states.store = store  # type: ignore[method-assign]
    closed = partition.close()
    asyncio.get_running_loop().call_later(0.05, lands.set)
    await asyncio.gather(*closed)
    await lands.wait()
    await asyncio.sleep(0.05)
    assert marks(states) == []
    assert (await waiting).error is not ErrorCode.NONE


@pytest.mark.parametrize(("hours", "counts"), [(48, True), (62, False)])
async def test_a_mark_counts_for_a_day_longer_because_clocks_differ(hours: int, counts: bool) -> None:
    """Producers of its last batch may be remembered for 36 hours. The clock of who put it may have been a day
    behind.
    """
    states = MemoryStates()
    states.values[b"appends:t-partition-0\0killed"] = b"1"
    states.written_at = SYSTEM_CLOCK.wall() - hours * 3_600_000
    mark = AppendingMark("t-partition-0", cast("SnapshotTopic", states), SYSTEM_CLOCK, DAY_MS)
    assert await mark.is_any_put() == counts


async def test_who_takes_its_mark_back_deletes_those_that_count_no_more() -> None:
    log, states = MemoryLog(), MemoryStates()
    states.values[b"appends:t-partition-0\0killed"] = b"1"
    states.written_at = SYSTEM_CLOCK.wall() - 3 * 24 * 3_600_000
    partition = open_partition(log, states=states)
    assert (await append(partition, numbered(0))).error is ErrorCode.NONE
    await asyncio.gather(*partition.close())
    assert marks(states) == []


@pytest.mark.parametrize("refusal", [NotPermitted, Refused])
async def test_who_has_no_right_to_see_marks_reads_all(
    refusal: type[PulsarError], monkeypatch: pytest.MonkeyPatch
) -> None:
    log, states = MemoryLog(), MemoryStates()
    written_long_ago(log)
    first = open_partition(log, "kafka-sidecar-a", states=states)
    await append(first, numbered(6))
    place = (await append(first, numbered(7))).base_offset
    states.is_away = True  # it is killed
    await asyncio.gather(*first.close())
    states.is_away = False
    very_much_later(log, monkeypatch)

    names = states.names

    async def no_marks(prefix: bytes) -> list[bytes]:
        if prefix.startswith(b"appends:"):
            raise refusal("read the kept states")
        return await names(prefix)

    states.names = no_marks  # type: ignore[method-assign]
    second = open_partition(log, "kafka-sidecar-b", states=states, replay_entries=10)
    assert (await append(second, numbered(7))).base_offset == place
    second.close()
