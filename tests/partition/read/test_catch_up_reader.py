"""Readers of old data: they go back as far as it takes to serve what everybody else serves."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kafka_sidecar.partition.log.entries import read_entry
from kafka_sidecar.partition.partition import TAIL_IDLE_SECONDS
from kafka_sidecar.partition.read.fetch_cache import ReadAhead
from kafka_sidecar.pulsar.entry import Position
from kafka_sidecar.pulsar.errors import NOT_ALLOWED
from kafka_sidecar.pulsar.raw_entries import Patience
from kafka_sidecar.wire.error_code import ErrorCode
from tests.support.batches import batch
from tests.support.fake_broker import until
from tests.support.memory_log import MemoryLog
from tests.support.partitions import append, fetch, open_partition, read_all


def numbered(sequence: int) -> bytes:
    return batch(b"%d" % sequence, producer_id=9, epoch=0, sequence=sequence)


async def test_what_was_sent_behind_a_refused_batch_is_hidden_from_everybody() -> None:
    log = MemoryLog()
    writer = open_partition(log)
    await append(writer, numbered(5))
    log.refuse_sends, log.refuse_with = 1, NOT_ALLOWED
    refused, behind = await asyncio.gather(append(writer, numbered(6)), append(writer, numbered(7)))
    assert refused.error is ErrorCode.POLICY_VIOLATION
    assert behind.error is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert (await append(writer, numbered(6))).base_offset == 2
    assert (await append(writer, numbered(7))).base_offset == 3
    served = [(0, b"5"), (2, b"6"), (3, b"7")]
    assert await read_all(writer) == served
    # Whoever begins behind the producer's start, or between the two copies, comes to the same.
    for replayed in range(1, 5):
        late = open_partition(log, "kafka-sidecar-late", replay_entries=replayed)
        assert await read_all(late) == served
        assert await read_all(late, 1) == served[1:]
        late.close()
    writer.close()


async def test_copies_far_apart_in_the_log_are_one_record_for_everybody() -> None:
    log = MemoryLog()
    ours, theirs = open_partition(log), open_partition(log, "kafka-sidecar-other")
    await append(ours, numbered(0))
    assert (await append(theirs, batch(b"x"))).base_offset == 1
    log.hold_sends = True  # the connection is slow: what is written now lands later
    held = asyncio.create_task(append(ours, numbered(1)))
    await asyncio.sleep(0.01)
    log.hold_sends = False
    assert (await append(theirs, numbered(1))).base_offset == 2  # its client has come to the other sidecar
    for number in range(100):
        await append(theirs, batch(b"%d" % number))
    log.let_go()
    assert (await held).base_offset == 2
    late = open_partition(log, "kafka-sidecar-late", replay_entries=10)
    assert [offset for offset, _ in await read_all(late, 95)] == list(range(95, 103))
    for partition in (ours, theirs, late):
        partition.close()


async def test_who_has_not_looked_for_a_while_looks_before_it_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafka_sidecar.partition.write.appender.STALE_FOLD_SECONDS", 0.02)
    log = MemoryLog()
    ours, theirs = open_partition(log), open_partition(log, "kafka-sidecar-other")
    await append(ours, numbered(0))
    ours.tick(asyncio.get_running_loop().time() + TAIL_IDLE_SECONDS + 1)  # nobody reads here
    for number in range(20):
        await append(theirs, batch(b"%d" % number))
    await asyncio.sleep(0.05)
    await append(ours, numbered(1))
    basis = read_entry(log.entries[-1]).basis
    assert basis is not None
    assert basis.folded_to == log.entries[-2].position
    for partition in (ours, theirs):
        partition.close()


async def test_more_consumers_than_readers_are_all_served_and_do_not_take_each_other_s_reader(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("kafka_sidecar.partition.read.catch_up_reader.SHARED_DISTANCE", 0)
    log = MemoryLog()
    for number in range(400):
        log.write(batch(b"%d" % number))
    partition = open_partition(log, replay_entries=1)
    assert await partition.opened() is ErrorCode.NONE
    readers = 0
    opened = MemoryLog.find_index

    async def counted(self: MemoryLog, index: int) -> Position | None:
        nonlocal readers
        readers += 1
        return await opened(self, index)

    monkeypatch.setattr(MemoryLog, "find_index", counted)
    runs = await asyncio.wait_for(asyncio.gather(*(fetch(partition, 10 * number, 20) for number in range(30))), 20)
    assert [run.next_offset > 10 * number for number, run in enumerate(runs)] == [True] * 30
    assert readers <= 60
    partition.close()


async def test_a_consumer_does_not_wait_for_a_reader_that_another_one_holds_up() -> None:
    log = MemoryLog()
    for _ in range(400):
        log.write(batch(b"x" * 1000))
    partition = open_partition(log, cache=60_000, read_ahead=20_000)
    assert await partition.opened() is ErrorCode.NONE
    await fetch(partition, 0)  # its reader reads ahead as far as it may, and waits for it
    await until(lambda: partition._catch_ups._readers[0]._room <= 0)
    assert (await fetch(partition, 200, seconds=2)).next_offset > 200, "of another group, or after a seek"
    partition.close()


async def test_the_error_of_one_place_is_told_to_nobody_who_reads_elsewhere() -> None:
    log = MemoryLog()
    for _ in range(400):
        log.write(batch(b"x" * 1000))
    partition = open_partition(log, cache=60_000, read_ahead=20_000)
    assert await partition.opened() is ErrorCode.NONE
    log.entries[11].last_index = None  # as of a broker without the interceptor
    assert partition.read(10, 100_000, True, 0) is None
    await until(lambda: partition._catch_ups._readers[0].done)
    assert (await fetch(partition, 300, seconds=2)).error is ErrorCode.NONE
    assert (await fetch(partition, 11, seconds=2)).error is ErrorCode.KAFKA_STORAGE_ERROR
    partition.close()


async def test_large_entries_behind_small_ones_take_no_more_than_there_is_room_for() -> None:
    """The broker was asked for as many entries as there is room for, by the size of those that had come."""
    log = MemoryLog()
    values = [b"%d" % number + b"." * size for size in (0, 5_000) for number in range(300)]
    for value in values:
        log.write(batch(value))
    partition = open_partition(log, cache=100_000)
    assert await partition.opened() is ErrorCode.NONE
    most = 0
    cache = partition._cache._cache
    taken = ReadAhead.take

    def noted(self: ReadAhead, size: int) -> None:
        nonlocal most
        taken(self, size)
        most = max(most, cache.ahead)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ReadAhead, "take", noted)
        assert [value for _, value in await read_all(partition)] == values
    assert 50_000 < most < 120_000
    partition.close()


async def test_a_reader_is_silent_only_since_it_was_asked_for_an_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is opened again when there is no room, and its consumer may take minutes to make some. The storage is not slow
    for that.
    """
    log = MemoryLog()
    values = [b"%d" % number + b"." * size for size in (0, 5_000) for number in range(300)]
    for value in values:
        log.write(batch(value))
    partition = open_partition(log, cache=100_000)
    assert await partition.opened() is ErrorCode.NONE
    waits: list[float] = []
    monkeypatch.setattr(Patience, "has_begun", lambda _, waited: waits.append(waited))
    for offset in (0, 149, 260):  # until large entries come where small ones were asked for
        await fetch(partition, offset)
    reader = partition._catch_ups._readers[0]
    await until(lambda: reader._room < 0 and reader._asked_at is not None)
    loop = reader._loop
    reader._loop = cast(Any, SimpleNamespace(time=lambda: loop.time() + 600, call_later=loop.call_later))
    assert [value for _, value in await read_all(partition, 299)] == values[299:]
    assert len(waits) >= 2
    assert max(waits) < 300
    partition.close()
