"""Topics that were written before the interceptor was on: they are served from the first entry on that has an index."""

from __future__ import annotations

import pytest

from handler.partition.read.timestamp_search import TimestampAndOffset, by_time, greatest_timestamp
from handler.pulsar.entry import RawEntry
from handler.pulsar.pulsar_api_pb2 import MessageMetadata
from handler.wire.error_code import ErrorCode
from tests.support.batches import batch
from tests.support.memory_log import MemoryLog
from tests.support.partitions import append, fetch, open_partition, read_all


def a_log(old: int, new: int) -> MemoryLog:
    log = MemoryLog()
    write_old(log, old)
    log.roll()  # to switch it on a broker is restarted
    log.index = -1
    for number in range(new):
        log.write(batch(b"%d" % number, timestamp=number))
    return log


def write_old(log: MemoryLog, count: int) -> None:
    for _ in range(count):
        log.append(MessageMetadata(producer_name=b"native", sequence_id=0, publish_time=1), 1, b"old")
        last = log.entries[-1]
        log.entries[-1] = RawEntry(last.position, None, None, last.metadata, last.payload)


@pytest.mark.parametrize(("old", "new"), [(3, 5), (3, 300), (300, 5), (300, 300), (1, 1)])
async def test_what_has_an_index_is_served_from_offset_0_on(old: int, new: int) -> None:
    log = a_log(old, new)
    partition = open_partition(log)
    values = [(number, b"%d" % number) for number in range(new)]
    assert await read_all(partition) == values
    assert (await partition.confirmed_start(), await partition.confirmed_end()) == (0, new)
    assert log.noted_without_index
    assert await by_time(partition, 0) == TimestampAndOffset(0, 0)
    assert await greatest_timestamp(partition) == TimestampAndOffset(new - 1, new - 1)
    assert (await append(partition, batch(b"next", producer_id=7, epoch=0, sequence=0))).base_offset == new
    assert (await append(partition, batch(b"next", producer_id=7, epoch=0, sequence=0))).base_offset == new
    partition.close()
    later = open_partition(log, "kafka-sidecar-later")
    assert await read_all(later) == [*values, (new, b"next")]
    assert (await append(later, batch(b"next", producer_id=7, epoch=0, sequence=0))).base_offset == new
    later.close()


@pytest.mark.parametrize("old", [1, 100])
async def test_a_log_in_which_nothing_has_an_index_yet_is_empty_and_can_be_written(old: int) -> None:
    log = a_log(old, 0)
    partition = open_partition(log)
    assert await read_all(partition) == []
    assert (await partition.confirmed_start(), await partition.confirmed_end()) == (0, 0)
    for number in range(3):
        assert (await append(partition, batch(b"%d" % number))).base_offset == number
    log.disconnect()
    assert (await append(partition, batch(b"3"))).base_offset == 3
    assert await read_all(partition) == [(number, b"%d" % number) for number in range(4)]
    partition.close()


async def test_an_interceptor_that_is_switched_off_is_an_alarm_and_nothing_is_skipped() -> None:
    log = a_log(0, 5)
    partition = open_partition(log)
    assert len(await read_all(partition)) == 5
    write_old(log, 1)
    await partition.opened()
    with pytest.raises(Exception, match="without an index"):
        await partition.confirmed_end()
    assert partition.ended is ErrorCode.KAFKA_STORAGE_ERROR


async def test_a_log_whose_last_entries_have_no_index_any_more_is_not_opened_as_an_empty_one() -> None:
    log = a_log(0, 5)
    write_old(log, 200)
    partition = open_partition(log)
    assert await partition.opened() is ErrorCode.KAFKA_STORAGE_ERROR


async def test_what_is_between_is_an_error_where_it_stands() -> None:
    log = a_log(0, 5)
    write_old(log, 10)
    for number in range(200):
        log.write(batch(b"later %d" % number))
    partition = open_partition(log)
    await partition.opened()
    run = await fetch(partition, 0)
    while run.error is ErrorCode.NONE and run.next_offset < 5:
        run = await fetch(partition, run.next_offset)
    assert (await fetch(partition, 5)).error is ErrorCode.KAFKA_STORAGE_ERROR
    partition.close()
