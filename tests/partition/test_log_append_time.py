"""Topics whose records have the broker's time: it is known when an entry is read, and the same for everybody."""

from __future__ import annotations

import asyncio

import pytest
from aiokafka.record.default_records import DefaultRecordBatch

from kafka_sidecar.partition.log.formats import KAFKA, PULSAR, EntryFormat
from kafka_sidecar.partition.log.log_config import AS_IT_COMES, LogConfig
from kafka_sidecar.partition.partition import Partition
from kafka_sidecar.partition.search.timestamp_search import TimestampAndOffset, by_time, greatest_timestamp
from kafka_sidecar.wire.error_code import ErrorCode
from tests.support.batches import batch
from tests.support.memory_log import MemoryLog
from tests.support.partitions import append, begin, fetch, open_partition, read_all

pytestmark = pytest.mark.parametrize("entry_format", [KAFKA, PULSAR], ids=lambda one: str(one.name))


def numbered(sequence: int) -> bytes:
    return batch(b"%d" % sequence, producer_id=7, epoch=0, sequence=sequence, timestamp=5)


async def times(partition: Partition, end: int) -> list[tuple[int, int, int]]:
    """Offset, time and kind of time of each record, as a consumer has them; checksums are right."""
    offset, found = 0, []
    while offset < end:
        run = await fetch(partition, offset)
        for part in run.parts:
            records = DefaultRecordBatch(bytes(part))
            assert records.validate_crc()
            found += [(record.offset, record.timestamp, record.timestamp_type) for record in records]
        offset = run.next_offset
    return found


async def test_producers_and_consumers_are_told_the_brokers_time(entry_format: EntryFormat) -> None:
    log = MemoryLog(log_config=LogConfig(entry_format, log_append_time=True))
    partition = open_partition(log, "kafka-sidecar-mine")
    outcomes = [begin(partition, numbered(sequence)) for sequence in range(3)]
    assert [(await outcome.result).base_offset for outcome in outcomes] == [0, 1, 2]
    assert [outcome.log_append_time for outcome in outcomes] == [1_000, 1_001, 1_002]
    other = open_partition(log, "kafka-sidecar-other")
    for reader in (partition, other):
        assert await read_all(reader) == [(number, b"%d" % number) for number in range(3)]
        assert await times(reader, 3) == [(number, 1_000 + number, 1) for number in range(3)]
        assert await by_time(reader, 1_001) == TimestampAndOffset(1, 1_001)
        assert await greatest_timestamp(reader) == TimestampAndOffset(2, 1_002)
    partition.close()
    other.close()


async def test_a_retry_is_recognised_and_what_has_landed_is_not_sent_again(entry_format: EntryFormat) -> None:
    log = MemoryLog(log_config=LogConfig(entry_format, log_append_time=True))
    partition = open_partition(log)
    await append(partition, numbered(0))
    log.swallow_receipts = True
    under_way = begin(partition, numbered(1))
    await asyncio.sleep(0.01)
    log.swallow_receipts = False
    log.disconnect()
    assert (await under_way.result).base_offset == 1
    assert (await append(partition, numbered(1))).base_offset == 1
    assert (await append(partition, numbered(3))).error is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert len(log.entries) == 2
    partition.close()


async def test_a_topic_may_change_from_one_time_to_the_other_and_back(entry_format: EntryFormat) -> None:
    log = MemoryLog(log_config=LogConfig(entry_format))
    partition = open_partition(log)
    for sequence in range(6):
        partition.set_config(LogConfig(entry_format, log_append_time=True) if sequence % 2 else AS_IT_COMES)
        assert (await append(partition, numbered(sequence))).base_offset == sequence
    expected = [(number, 1_000 + number if number % 2 else 5, number % 2) for number in range(6)]
    assert await times(partition, 6) == expected
    later = open_partition(log, "kafka-sidecar-later")
    await later.opened()
    assert await times(later, 6) == expected
    partition.close()
    later.close()


async def test_many_at_once_are_acknowledged_in_order(entry_format: EntryFormat) -> None:
    log = MemoryLog(log_config=LogConfig(entry_format, log_append_time=True))
    partition = open_partition(log)
    outcomes = [begin(partition, numbered(sequence)) for sequence in range(200)]
    assert [(await outcome.result).base_offset for outcome in outcomes] == list(range(200))
    assert all(outcome.log_append_time == 1_000 + number for number, outcome in enumerate(outcomes))
    partition.close()
