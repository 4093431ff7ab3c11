"""What is known of producers has a bound and an end: who is refused when memory is full, who falls asleep, and who
expires.
"""

from __future__ import annotations

import asyncio

import pytest

from kafka_sidecar.partition import table
from kafka_sidecar.partition.fold.fold import BEFORE_ALL
from kafka_sidecar.partition.fold.log_times import DAY_MS, MARKS
from kafka_sidecar.partition.fold.producer_states import ProducerMemory
from kafka_sidecar.partition.follow import replay
from kafka_sidecar.partition.follow.producer_times import ASLEEP_AFTER_SECONDS
from kafka_sidecar.partition.log.basis import BASIS_PROPERTY, UNKNOWN_PRODUCER, Basis, KnownProducer
from kafka_sidecar.partition.log.formats import KAFKA
from kafka_sidecar.partition.partition import Partition
from kafka_sidecar.pulsar.pulsar_api_pb2 import MessageMetadata
from kafka_sidecar.telemetry import metrics
from kafka_sidecar.wire.error_code import ErrorCode
from tests.support.batches import batch
from tests.support.memory_log import MemoryLog
from tests.support.memory_states import MemoryStates
from tests.support.partitions import append, begin_append, open_partition, open_table


def of(producer_id: int, sequence: int = 0) -> bytes:
    return batch(b"%d" % sequence, producer_id=producer_id, epoch=0, sequence=sequence)


async def written(partition: Partition, producer_id: int, sequence: int = 0) -> ErrorCode:
    return (await append(partition, of(producer_id, sequence))).error


def fill(memory: ProducerMemory) -> None:
    memory.used = memory.limit + 1


def write_without_having_folded(log: MemoryLog, producer_id: int, sequence: int) -> None:
    """As a sidecar does that has the batch before on its way."""
    metadata = MessageMetadata(producer_name=b"kafka-sidecar-before", sequence_id=len(log.entries), publish_time=1)
    metadata.MergeFromString(KAFKA.fields)
    known = KnownProducer(0, sequence - 1) if sequence else UNKNOWN_PRODUCER
    metadata.properties.add(key=BASIS_PROPERTY, value=Basis(BEFORE_ALL, [known]).encode())
    log.append(metadata, 1, of(producer_id, sequence))


# --- full


async def test_when_memory_is_full_nobody_new_is_let_in_and_all_others_go_on() -> None:
    log, memory = MemoryLog(), ProducerMemory()
    partition = open_partition(log, memory=memory)
    assert await written(partition, 1) is ErrorCode.NONE
    fill(memory)
    assert await written(partition, 2) is ErrorCode.NOT_ENOUGH_REPLICAS
    assert await written(partition, 1, 1) is ErrorCode.NONE
    assert (await append(partition, batch(b"without a producer"))).error is ErrorCode.NONE
    memory.used = 0
    assert await written(partition, 2) is ErrorCode.NONE, "what was refused is sent again"
    partition.close()


async def test_a_producer_whose_first_batch_is_on_its_way_is_let_in() -> None:
    log, memory = MemoryLog(hold_sends=True), ProducerMemory()
    partition = open_partition(log, memory=memory)
    await partition.opened()
    first = begin_append(partition, of(1))
    for _ in range(1_000):
        await asyncio.sleep(0)
    assert log.held
    fill(memory)
    second = begin_append(partition, of(1, 1))
    for _ in range(1_000):
        log.let_go()
        await asyncio.sleep(0)
    assert [first.result().error, second.result().error] == [ErrorCode.NONE] * 2
    partition.close()


class RoomComes(ProducerMemory):
    """Full when the first batch asks, and no longer when the second does."""

    asked = 0

    @property
    def is_full(self) -> bool:
        self.asked += 1
        return self.asked == 1


async def test_room_that_comes_between_two_batches_lets_the_second_not_pass_the_first() -> None:
    """Both wait until the partition is open. The second alone would begin its producer, and the first be out of order
    for ever.
    """
    partition = open_partition(MemoryLog(), memory=RoomComes())
    told = [(await one).error for one in [begin_append(partition, of(1)), begin_append(partition, of(1, 1))]]
    again = [await written(partition, 1), await written(partition, 1, 1)]
    partition.close()
    assert (told, again) == ([ErrorCode.NOT_ENOUGH_REPLICAS] * 2, [ErrorCode.NONE] * 2)


async def test_partitions_that_nobody_uses_make_room_and_know_as_much_afterwards(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    logs, states = {f"t-partition-{number}": MemoryLog() for number in range(3)}, MemoryStates()
    memory = ProducerMemory(limit=5_000)  # of two producers that are awake
    opened = open_table(lambda topic, name: logs[topic].named(name), states=states, memory=memory)
    for name in logs:
        assert await written(opened.get(name), 1) is ErrorCode.NONE
    await opened._tick()
    assert len(opened.names()) == 3, "they were used a moment ago"
    monkeypatch.setattr(table, "UNUSED_SECONDS", 0.0)
    await opened._tick()
    assert opened.names() == ["t-partition-1", "t-partition-2"], "the one that was not used for longest is closed"
    assert not memory.is_full
    assert (await append(opened.get("t-partition-0"), of(1))).base_offset == 0, "a retry is recognised"
    assert logs["t-partition-0"].index == 0
    await opened.close()


@pytest.mark.parametrize(("share", "is_counted"), [(0.6, True), (0.4, False)])
async def test_producers_are_counted_each_second_only_where_half_of_the_memory_is_taken(
    share: float, is_counted: bool
) -> None:
    log, memory = MemoryLog(), ProducerMemory()
    opened = open_table(lambda topic, name: log.named(name), memory=memory)
    assert await written(opened.get("t-partition-0"), 1) is ErrorCode.NONE
    await opened._tick()
    taken = memory.used
    memory.used = int(share * memory.limit)
    await opened._tick()
    assert (memory.used == taken) is is_counted
    await opened.close()


async def test_partitions_where_producers_wait_are_counted() -> None:
    log, states = MemoryLog(), MemoryStates()
    states.is_away = True
    opened = open_table(lambda topic, name: log.named(name), states=states)
    partition = opened.get("t-partition-0")
    await partition.opened()
    waiting = begin_append(partition, of(1))
    await opened._tick()
    assert metrics.WAITING_PARTITIONS._value.get() == 1
    states.is_away = False
    while not waiting.done():
        await opened._tick()
        await asyncio.sleep(0)
    await opened._tick()
    assert (waiting.result().error, metrics.WAITING_PARTITIONS._value.get()) == (ErrorCode.NONE, 0)
    await opened.close()


async def test_a_partition_where_a_producer_waited_in_vain_is_counted() -> None:
    """The gauge is scraped seldom: producers that give up and come again are to be seen all the same."""
    log, states = MemoryLog(), MemoryStates()
    states.is_away = True
    opened = open_table(lambda topic, name: log.named(name), states=states)
    partition = opened.get("t-partition-0")
    await partition.opened()
    waiting = begin_append(partition, of(1), seconds=0)
    await opened._tick()
    assert (waiting.result().error, metrics.WAITING_PARTITIONS._value.get()) == (ErrorCode.REQUEST_TIMED_OUT, 1)
    await opened._tick()
    assert metrics.WAITING_PARTITIONS._value.get() == 0
    await opened.close()


async def test_those_of_whom_the_window_tells_too_little_are_known_when_all_was_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """However few of their batches end the window."""
    monkeypatch.setattr(replay, "MOST_UNJUDGED", 1)
    log = MemoryLog()
    for sequence in range(20):
        for producer_id in range(6):
            write_without_having_folded(log, producer_id, sequence)
    partition = open_partition(log, replay_entries=10)
    await partition.opened()
    for producer_id in range(6):
        await partition.know([producer_id])
        assert (await append(partition, of(producer_id, 19))).base_offset == 114 + producer_id
        assert (await append(partition, of(producer_id, 17))).base_offset == 102 + producer_id
        assert await written(partition, producer_id, 20) is ErrorCode.NONE
    partition.close()


# --- asleep


async def test_producers_that_write_nothing_for_a_while_fall_asleep() -> None:
    log = MemoryLog()
    partition = open_partition(log)
    for producer_id in range(10):
        assert await written(partition, producer_id) is ErrorCode.NONE
    now = asyncio.get_running_loop().time()
    for _ in range(2):
        now += ASLEEP_AFTER_SECONDS
        partition.tick(now)
        await written(partition, 9, len(log.entries) - 9)
    partition.tick(now + 1)
    assert list((await partition.known_producers()).awake) == [9]
    assert (await append(partition, of(3))).base_offset == 3, "a retry is recognised"
    assert await written(partition, 4, 1) is ErrorCode.NONE
    partition.close()


# --- gone


async def has_expired(partition: Partition, producer_id: int) -> bool:
    return producer_id not in await partition.known_producers()


async def test_who_has_written_nothing_for_a_day_by_the_brokers_clock_may_begin_anywhere() -> None:
    log = MemoryLog()
    partition = open_partition(log)
    assert await written(partition, 1) is ErrorCode.NONE
    assert await written(partition, 2) is ErrorCode.NONE
    now = asyncio.get_running_loop().time()
    for _ in range(MARKS + 2):
        now += DAY_MS / 1_000 / MARKS + 1
        log.clock_ms += DAY_MS // MARKS
        partition.tick(now)  # reads the last entry's time
        assert await written(partition, 2, len(log.entries) - 1) is ErrorCode.NONE
        await partition.confirmed_end()
    assert await has_expired(partition, 1)
    assert not await has_expired(partition, 2)
    assert await written(partition, 1, 77) is ErrorCode.NONE
    partition.close()


async def test_another_sidecar_comes_to_the_same_whatever_it_has_noted() -> None:
    log = MemoryLog()
    log.write(of(1))
    log.clock_ms += 2 * DAY_MS
    log.write(batch(b"other"))
    writer = open_partition(log, "kafka-sidecar-a")
    assert await written(writer, 1, 77) is ErrorCode.NONE, "it has expired"
    follower = open_partition(log, "kafka-sidecar-b")
    assert await written(follower, 1, 78) is ErrorCode.NONE
    assert (await append(writer, of(1, 77))).base_offset == 2
    assert (await append(follower, of(1, 77))).base_offset == 2
    for partition in (writer, follower):
        partition.close()


async def test_who_has_expired_does_not_come_back_with_what_it_wrote_first() -> None:
    """A consumer's sidecar has read for days and never wrote. What it reads of the log's beginning, once it writes, is
    too old to count.
    """
    log = MemoryLog()
    producing = open_partition(log, "kafka-sidecar-producing")
    assert await written(producing, 1) is ErrorCode.NONE
    assert await written(producing, 7) is ErrorCode.NONE
    log.clock_ms += 1_000
    assert await written(producing, 1, 1) is ErrorCode.NONE
    log.clock_ms += 600_000
    for sequence in range(2, 102):
        assert await written(producing, 1, sequence) is ErrorCode.NONE
    consuming = open_partition(log, "kafka-sidecar-consuming")
    await consuming.opened()
    await consuming.confirmed_end()
    for sequence in (1, 2, 3):
        assert await written(producing, 7, sequence) is ErrorCode.NONE
    now = asyncio.get_running_loop().time()
    for sequence in range(MARKS + 6):
        log.clock_ms += DAY_MS // MARKS + 1
        assert await written(producing, 8, sequence) is ErrorCode.NONE
        await consuming.confirmed_end()
        consuming.tick(now + ASLEEP_AFTER_SECONDS * sequence)  # now it forgets who has expired
    assert await written(consuming, 7, 4) is ErrorCode.NONE, "nobody knows the producer, so it may begin anywhere"
    producing.close()
    consuming.close()
