"""The index of a partition's times: read once, kept up, stored for the next sidecar, and let go where its bytes are
wanted.
"""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from kafka_sidecar.partition.partition import Partition
from kafka_sidecar.partition.search import partition_times, timestamp_search
from kafka_sidecar.partition.search.time_index import MAX_BYTES
from kafka_sidecar.partition.search.timestamp_search import TimestampAndOffset, by_time, greatest_timestamp
from kafka_sidecar.pulsar.entry import Position
from kafka_sidecar.pulsar.errors import Unavailable
from kafka_sidecar.wire.error_code import ErrorCode
from tests.support.batches import batch
from tests.support.memory_log import MemoryLog
from tests.support.memory_states import MemoryStates
from tests.support.partitions import append, open_partition

ENTRIES = 300
BEGIN = Position(1, 0)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timestamp_search, "AHEAD_ENTRIES", 20)
    monkeypatch.setattr(partition_times, "STORED_FROM_BYTES", 1)
    monkeypatch.setattr(partition_times, "LITTLE_ENTRIES", 20)


def a_log(entries: int = ENTRIES) -> MemoryLog:
    log = MemoryLog()
    for entry in range(entries):
        log.write(batch(b"v", timestamp=1_000 + entry))
    return log


def opened(log: MemoryLog, states: MemoryStates) -> Partition:
    return open_partition(log, states=states)


async def test_it_is_stored_and_the_next_sidecar_reads_only_what_came_since() -> None:
    log, states = a_log(), MemoryStates()
    first = opened(log, states)
    assert await greatest_timestamp(first) == TimestampAndOffset(ENTRIES - 1, 1_000 + ENTRIES - 1)
    assert not states.values
    await tick(first)
    assert len(states.values) == 1
    first.close()
    for entry in range(10):
        log.write(batch(b"v", timestamp=5_000 + entry))
    log.opened_at.clear()
    second = opened(log, states)
    assert await by_time(second, 5_003) == TimestampAndOffset(ENTRIES + 3, 5_003)
    assert await by_time(second, 1_007) == TimestampAndOffset(7, 1_007)
    assert Position(1, ENTRIES) in log.opened_at
    second.close()


async def tick(partition: Partition) -> None:
    partition.tick(asyncio.get_running_loop().time())
    await asyncio.sleep(0.01)


async def test_one_of_a_topic_that_had_this_name_is_not_believed() -> None:
    states = MemoryStates()
    before = opened(a_log(), states)
    await greatest_timestamp(before)
    await tick(before)
    before.close()
    log = MemoryLog(ledger=77)
    log.write(batch(b"v", timestamp=5))
    after = opened(log, states)
    assert await greatest_timestamp(after) == TimestampAndOffset(0, 5)
    after.close()


async def test_one_that_makes_no_sense_is_read_anew(caplog: pytest.LogCaptureFixture) -> None:
    log, states = a_log(), MemoryStates()
    states.values[b"time-index:t-partition-0"] = b"\xff\xff"
    partition = opened(log, states)
    assert await greatest_timestamp(partition) == TimestampAndOffset(ENTRIES - 1, 1_000 + ENTRIES - 1)
    assert "makes no sense" in caplog.text
    partition.close()


async def test_one_of_long_ago_that_is_used_is_stored_again() -> None:
    log, states = a_log(), MemoryStates()
    first = opened(log, states)
    await greatest_timestamp(first)
    await tick(first)
    first.close()
    kept = dict(states.values)
    for written_at, is_stored_again in ((10**15, False), (0, True)):
        states.written_at = written_at
        partition = opened(log, states)
        await greatest_timestamp(partition)
        states.values = {key: b"" for key in kept}
        await tick(partition)
        assert (states.values == kept) is is_stored_again
        states.values = dict(kept)
        partition.close()


async def test_what_is_appended_is_added_whoever_wrote_it() -> None:
    log = a_log()
    partition = open_partition(log)
    await greatest_timestamp(partition)
    log.opened_at.clear()
    assert (await append(partition, batch(b"mine", timestamp=9_000))).error is ErrorCode.NONE
    log.write(batch(b"another's", timestamp=8_000))
    log.index += 1  # as brokers before 2.9.2 leave it after an add that failed
    log.write(batch(b"another's", timestamp=9_500))
    assert await greatest_timestamp(partition) == TimestampAndOffset(ENTRIES + 3, 9_500)
    assert await by_time(partition, 8_500) == TimestampAndOffset(ENTRIES, 9_000)
    assert BEGIN not in log.opened_at, "the log is not read again"
    partition.close()


async def test_those_not_used_for_longest_are_let_go_where_bytes_are_wanted() -> None:
    logs = [a_log(30) for _ in range(3)]
    partitions = [open_partition(logs[0], cache=1_200_000)]
    indexes = partitions[0].times._indexes
    for log in logs[1:]:
        partitions.append(open_partition(log))
        partitions[-1].times._indexes = indexes
    for partition in partitions:
        await greatest_timestamp(partition)
        await greatest_timestamp(partitions[0])
    held = [partition.times.index is not None for partition in partitions]
    assert held == [True, False, True]
    assert indexes.cache.indexed == 2 * MAX_BYTES
    assert await greatest_timestamp(partitions[1]) == TimestampAndOffset(29, 1_029)
    for partition in partitions:
        partition.close()
    assert indexes.cache.indexed == 0


async def test_searches_of_many_times_read_the_log_one_after_another_and_mostly_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    log = a_log()
    for number, entry in enumerate(log.entries):
        entry.broker_timestamp = 10**7 + number
    partition = open_partition(log)
    await partition.opened()
    wanted = [1_000 + entry for entry in range(0, ENTRIES, 10)]
    found = await asyncio.gather(*(by_time(partition, timestamp) for timestamp in wanted))
    assert [one.timestamp for one in found] == wanted
    assert 1 <= caplog.text.count("were read for their timestamps") <= 2
    partition.close()


async def test_a_partition_that_is_closed_ends_the_search() -> None:
    log = a_log()
    partition = open_partition(log)
    await partition.opened()
    log.read_delay = 5
    search = asyncio.create_task(greatest_timestamp(partition))
    await asyncio.sleep(0.01)
    partition.close()
    with pytest.raises(Unavailable):
        await search


async def test_what_retention_has_taken_is_forgotten() -> None:
    log = MemoryLog()
    for ledger in range(5):
        for entry in range(200):
            log.write(batch(b"v" * 2_000, timestamp=10_000 - ledger * 1_000 - entry))
        log.roll()
    partition = open_partition(log)
    assert await greatest_timestamp(partition) == TimestampAndOffset(0, 10_000)
    log.trim(200)
    assert await partition.ask_log_start() == 200
    await tick(partition)
    assert await greatest_timestamp(partition) == TimestampAndOffset(200, 9_000)
    index = cast(Any, partition.times.index)
    assert index.reaching(-1, 0)[0].base_offset <= 200 < index.reaching(-1, 0)[1].base_offset
    partition.close()
