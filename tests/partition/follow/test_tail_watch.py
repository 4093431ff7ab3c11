"""A tail reader that stands at what the broker has closed is opened again, and what it names as the end does not count
until then.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from kafka_sidecar.partition.follow import tail_watch
from kafka_sidecar.partition.follow.tail_reader import TailReader
from kafka_sidecar.partition.partition import Partition
from kafka_sidecar.pulsar import raw_entries
from kafka_sidecar.pulsar.entry import Position, RawEntry
from kafka_sidecar.wire.error_code import ErrorCode
from tests.model.connections import Reader
from tests.support.batches import batch
from tests.support.fake_broker import until
from tests.support.memory_log import MemoryLog
from tests.support.partitions import append, begin_append, fetch, open_partition

PATIENCE = 2.0  # shorter than a tail that nobody wants is kept


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tail_watch, "PATIENCE_SECONDS", PATIENCE)


class Ticking:
    """The clock of one partition's ticks."""

    def __init__(self, partition: Partition) -> None:
        self.now = asyncio.get_running_loop().time()
        self._partition = partition

    async def go_on(self, seconds: float) -> None:
        self.now += seconds
        self._partition.refresh_log_start_if_stale(self._partition.end_offset)
        self._partition.read(self._partition.end_offset, 1_000, at_least_one=True, since=0)
        self._partition._tail.wanted_at = self.now
        self._partition.tick(self.now)
        await asyncio.sleep(0.01)


def follow(log: MemoryLog) -> Partition:
    """A partition that is read at its end."""
    partition = open_partition(log, "kafka-sidecar-reads")
    partition.read(0, 1_000, at_least_one=True, since=0)
    return partition


async def moved(log: MemoryLog, partition: Partition, readers: int = 1) -> None:
    """The topic is unloaded, and unloaded again while readers subscribe."""
    assert await partition.opened() is ErrorCode.NONE
    await fetch(partition, 0)
    opened = len(log.opened_at)
    log.orphans = readers
    log.disconnect()
    await until(lambda: len(log.opened_at) > opened and log.readers)
    await asyncio.sleep(0.01)


async def test_a_consumer_is_given_what_comes_after_the_topic_was_closed_behind_its_reader() -> None:
    log = MemoryLog()
    log.write(batch(b"before"))
    partition = follow(log)
    await moved(log, partition)
    log.write(batch(b"after"))
    ticking = Ticking(partition)
    await ticking.go_on(0)
    await ticking.go_on(PATIENCE / 2)
    assert partition.end_offset == 1
    await ticking.go_on(PATIENCE)
    await until(lambda: partition.end_offset == 2)
    partition.close()


async def test_it_is_opened_again_until_it_stands_at_what_is_served_also_where_nothing_is_written_any_more() -> None:
    log = MemoryLog()
    log.write(batch(b"before"))
    partition = follow(log)
    await moved(log, partition, readers=3)
    log.write(batch(b"after"))
    ticking = Ticking(partition)
    openings = []
    for second in range(400):
        opened = len(log.opened_at)
        await ticking.go_on(1.0)
        if len(log.opened_at) > opened:
            openings.append(second)
    assert partition.end_offset == 2
    assert len(openings) == 3
    assert openings[2] - openings[1] >= 2 * (openings[1] - openings[0]) - 2 * PATIENCE, "each time after twice as long"
    partition.close()


async def test_an_end_that_such_a_reader_names_is_not_taken_for_the_end() -> None:
    """ListOffsets tells it, and a fetch beyond it is refused."""
    log = MemoryLog()
    log.write(batch(b"before"))
    partition = follow(log)
    await moved(log, partition)
    for number in range(3):
        log.write(batch(b"%d" % number))
    asked = asyncio.create_task(partition.confirmed_end())
    ticking = Ticking(partition)
    for _ in range(4):
        await ticking.go_on(1.0)
    assert await asyncio.wait_for(asked, 5) == 4
    partition.close()


async def test_an_append_behind_what_others_have_written_is_acknowledged() -> None:
    log = MemoryLog()
    log.write(batch(b"before"))
    partition = follow(log)
    await moved(log, partition)
    log.write(batch(b"another's"))
    waiting = begin_append(partition, batch(b"own"), seconds=60)
    ticking = Ticking(partition)
    for _ in range(4):
        await ticking.go_on(1.0)
    verdict = await asyncio.wait_for(waiting, 5)
    assert (verdict.error, verdict.base_offset) == (ErrorCode.NONE, 2)
    partition.close()


async def test_a_reader_that_has_brought_something_and_falls_silent_is_opened_again_too() -> None:
    log = MemoryLog()
    log.write(batch(b"before"))
    partition = follow(log)
    assert await partition.opened() is ErrorCode.NONE
    await fetch(partition, 0)
    for reader in log.readers:
        reader.is_forgotten = True
    log.write(batch(b"after"))
    await partition.ask_log_start()  # each ten seconds where somebody reads; the broker tells the last entry as well
    ticking = Ticking(partition)
    for _ in range(5):
        await ticking.go_on(1.0)
    assert partition.end_offset == 2
    partition.close()


async def test_a_broker_that_is_slow_is_given_its_time() -> None:
    """A reader that is forgotten names an old entry as the last, and a slow one does not."""
    log = MemoryLog()
    log.write(batch(b"before"))
    partition = follow(log)
    assert await partition.opened() is ErrorCode.NONE
    await fetch(partition, 0)
    ticking = Ticking(partition)
    restarts = []
    log.hold_dispatch = held = list[Callable[[], None]]()
    for _ in range(3):
        opened = len(log.opened_at) + 1
        log.disconnect()
        await until(lambda opened=opened: len(log.opened_at) == opened and partition._tail.is_open)  # type: ignore[misc]
        since: list[float] = []
        while not partition._tail.brought:
            await ticking.go_on(1.0)
            since += [ticking.now] * (len(held) - len(since))
            for hand_out, begun in zip(held, since, strict=True):
                if ticking.now - begun == 4 * PATIENCE:  # each reader is given nothing for so long
                    hand_out()
            await asyncio.sleep(0.01)
        held.clear()
        await ticking.go_on(1.0)
        restarts.append(len(log.opened_at) - opened)
    assert restarts == [0, 0, 0]
    partition.close()


@pytest.mark.parametrize("names_markers", [True, False])
async def test_markers_that_no_reader_is_given_are_no_reason(names_markers: bool) -> None:
    log = MemoryLog(names_markers=names_markers)
    log.write(batch(b"before"))
    partition = follow(log)
    assert await partition.opened() is ErrorCode.NONE
    await fetch(partition, 0)
    for _ in range(3):
        log.mark()
    opened = len(log.opened_at)
    ticking = Ticking(partition)
    for _ in range(20):
        await partition.ask_log_start()
        await ticking.go_on(1.0)
    assert len(log.opened_at) == opened
    partition.close()


async def test_a_log_that_is_empty_is_looked_at_ever_more_seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    log = MemoryLog()
    partition = follow(log)
    assert await partition.opened() is ErrorCode.NONE
    opened, looks = len(log.opened_at), 0
    stats = MemoryLog.stats

    async def counted(self: MemoryLog) -> object:
        nonlocal looks
        looks += 1
        return await stats(self)

    monkeypatch.setattr(MemoryLog, "stats", counted)
    ticking = Ticking(partition)
    for _ in range(100):
        await ticking.go_on(1.0)
    assert len(log.opened_at) == opened
    assert looks <= 6
    assert (await append(partition, batch(b"first"))).base_offset == 0
    partition.close()


async def with_old_data() -> tuple[MemoryLog, Partition]:
    """A partition of which nothing is in memory."""
    log = MemoryLog()
    for number in range(200):
        log.write(batch(b"%d" % number))
    partition = open_partition(log, "kafka-sidecar-reads", cache=1)
    assert await partition.opened() is ErrorCode.NONE
    await partition.confirmed_end()
    return log, partition


async def test_a_reader_of_old_data_that_is_silent_is_opened_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(raw_entries, "ENTRY_SECONDS", 0.05)
    log, partition = await with_old_data()
    log.orphans = 2
    assert (await fetch(partition, 3)).next_offset > 3
    assert log.orphans == 0
    partition.close()


async def test_a_reader_of_old_data_waits_for_slow_storage_also_where_it_begins_several_times(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first entry that comes is not the log's first, so it is opened again."""
    monkeypatch.setattr(raw_entries, "ENTRY_SECONDS", 0.05)
    log = MemoryLog()
    log.mark()
    for number in range(200):
        log.write(batch(b"%d" % number))
    partition = open_partition(log, "kafka-sidecar-reads", cache=1)
    assert await partition.opened() is ErrorCode.NONE
    log.read_delay = 0.07
    assert (await fetch(partition, 1)).next_offset > 1
    partition.close()


async def test_a_reader_of_old_data_that_is_forgotten_behind_its_first_entry_is_opened_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is given a permit for one entry first."""
    monkeypatch.setattr(raw_entries, "ENTRY_SECONDS", 0.05)
    _, partition = await with_old_data()
    hand_out_one = Reader._hand_out_one
    forgotten: list[Reader] = []

    def then_forget(reader: Reader, entry: RawEntry) -> None:
        hand_out_one(reader, entry)
        if not forgotten:
            reader.is_forgotten = True
            forgotten.append(reader)

    monkeypatch.setattr(Reader, "_hand_out_one", then_forget)
    assert (await fetch(partition, 150)).next_offset > 150
    assert forgotten
    partition.close()


async def left_behind() -> tuple[MemoryLog, Partition]:
    """A partition whose tail reader the broker has forgotten, and three records that came since."""
    log = MemoryLog()
    log.write(batch(b"before"))
    partition = follow(log)
    await moved(log, partition)
    for number in range(3):
        log.write(batch(b"%d" % number))
    return log, partition


async def test_an_end_that_a_reader_has_named_does_not_count_when_another_has_taken_its_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log, partition = await left_behind()
    names, may_answer = Reader.last_position, asyncio.Event()

    async def late(reader: Reader) -> Position | None:
        last = await names(reader)
        if reader.is_forgotten:
            await may_answer.wait()
        return last

    monkeypatch.setattr(Reader, "last_position", late)
    asked = asyncio.create_task(partition.confirmed_end())
    await asyncio.sleep(0.01)
    log.at_once, log.read_delay = 1, 0.2
    partition._tail.restart()
    await until(lambda: partition._tail.brought)
    may_answer.set()
    assert await asyncio.wait_for(asked, 5) == 4
    partition.close()


async def test_what_another_reader_brings_does_not_prove_the_one_that_has_named_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The watch opens it again while somebody waits for what proves it."""
    log, partition = await left_behind()
    brings, is_asked = TailReader.brings_something, asyncio.Event()

    async def noted(tail: TailReader, seconds: float) -> bool:
        is_asked.set()
        return await brings(tail, seconds)

    monkeypatch.setattr(TailReader, "brings_something", noted)
    asked = asyncio.create_task(partition.confirmed_end())
    await is_asked.wait()
    log.at_once, log.read_delay = 1, 0.05
    partition._tail.restart()
    assert await asyncio.wait_for(asked, 5) == 4
    partition.close()
