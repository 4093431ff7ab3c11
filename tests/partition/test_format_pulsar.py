"""A partition whose entries are written in format pulsar: the same promises, for batches that are opened."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from aiokafka.record.default_records import DefaultRecordBatchBuilder

from kafka_sidecar.partition.log import opened_batch
from kafka_sidecar.partition.log.formats import PULSAR
from kafka_sidecar.partition.log.log_config import AS_IT_COMES, LogConfig
from kafka_sidecar.partition.partition import Partition
from kafka_sidecar.partition.search.timestamp_search import greatest_timestamp
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.records import with_max_timestamp
from tests.support.batches import batch
from tests.support.memory_log import MemoryLog
from tests.support.partitions import append, begin_append, open_partition, read_all


def numbered(sequence: int, *values: bytes) -> bytes:
    return batch(*(values or (b"%d" % sequence,)), producer_id=7, epoch=0, sequence=sequence)


def a_log() -> MemoryLog:
    return MemoryLog(log_config=LogConfig(PULSAR))


async def both(*partitions: Partition) -> list[list[tuple[int, bytes | None]]]:
    return [await read_all(partition) for partition in partitions]


async def test_what_is_written_is_read_by_who_wrote_it_and_by_others() -> None:
    log = a_log()
    mine, other = open_partition(log, "kafka-sidecar-mine"), open_partition(log, "kafka-sidecar-other")
    for sequence, values in ((0, (b"a", b"b")), (2, (b"c",))):
        assert (await append(mine, numbered(sequence, *values))).base_offset == sequence
    assert (await append(mine, batch(b"of no producer"))).base_offset == 3
    assert [entry.message_metadata.num_messages_in_batch for entry in log.entries] == [2, 1, 1]
    expected = [(0, b"a"), (1, b"b"), (2, b"c"), (3, b"of no producer")]
    assert await both(mine, other) == [expected, expected]
    mine.close()
    other.close()


@pytest.mark.parametrize("through", ["the same", "another", "one opened later"])
async def test_a_retry_is_recognised(through: str) -> None:
    log = a_log()
    partition, other = open_partition(log, "kafka-sidecar-mine"), open_partition(log, "kafka-sidecar-other")
    await append(partition, numbered(0, b"a", b"b"))
    await append(partition, numbered(2))
    later = open_partition(log, "kafka-sidecar-later")
    asked = {"the same": partition, "another": other, "one opened later": later}[through]
    assert (await append(asked, numbered(2))).base_offset == 2
    assert (await append(asked, numbered(9))).error is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert (await append(asked, numbered(3))).base_offset == 3
    assert len(log.entries) == 3
    for one in (partition, other, later):
        one.close()


async def test_a_retry_from_long_ago_is_recognised_after_a_restart() -> None:
    log = a_log()
    partition = open_partition(log, "kafka-sidecar-mine")
    await append(partition, batch(b"early", producer_id=8, epoch=0, sequence=0))
    for sequence in range(150):
        await append(partition, numbered(sequence))
    partition.close()
    later = open_partition(log, "kafka-sidecar-later")
    assert (await append(later, batch(b"early", producer_id=8, epoch=0, sequence=0))).base_offset == 0
    assert (await append(later, numbered(148))).base_offset == 149
    assert (await append(later, numbered(150))).base_offset == 151
    later.close()


async def test_what_landed_without_a_receipt_is_not_sent_again() -> None:
    log = a_log()
    partition = open_partition(log)
    await append(partition, numbered(0))
    log.swallow_receipts = True
    pending = begin_append(partition, numbered(1))
    await asyncio.sleep(0.01)
    log.swallow_receipts = False
    log.disconnect()
    assert (await asyncio.wait_for(pending, 5)).base_offset == 1
    assert len(log.entries) == 2
    partition.close()


async def test_many_that_wait_have_an_entry_each() -> None:
    log = a_log()
    partition = open_partition(log)
    await append(partition, batch(b"first"))
    outcomes = [begin_append(partition, batch(b"%d" % number)) for number in range(50)]
    assert [(await one).base_offset for one in outcomes] == list(range(1, 51))
    assert len(log.entries) == 51
    partition.close()


async def test_a_format_that_changes_holds_for_what_is_appended_after() -> None:
    log = a_log()
    partition, other = open_partition(log, "kafka-sidecar-mine"), open_partition(log, "kafka-sidecar-other")
    for number in range(6):
        partition.set_config(AS_IT_COMES if number % 2 else LogConfig(PULSAR))
        await append(partition, numbered(number))
    named = [
        entry.message_metadata.num_messages_in_batch
        for entry in log.entries
        if entry.message_metadata.HasField("num_messages_in_batch")
    ]
    assert len(named) == 3
    expected = [(number, b"%d" % number) for number in range(6)]
    assert await both(partition, other) == [expected, expected]
    partition.close()
    other.close()


async def test_the_ordinary_way_is_for_what_is_not_opened() -> None:
    log = MemoryLog()
    partition = open_partition(log)
    await append(partition, numbered(0))
    now = asyncio.get_running_loop().time()
    assert partition.is_next(100, 7, 0, 1, now)
    partition.set_config(LogConfig(PULSAR))
    assert not partition.is_next(100, 7, 0, 1, now)
    partition.close()


async def test_a_header_that_says_another_greatest_time_than_its_records_is_set_right() -> None:
    log = a_log()
    mine, other = open_partition(log, "kafka-sidecar-mine"), open_partition(log, "kafka-sidecar-other")
    await append(mine, with_max_timestamp(batch(b"a", timestamp=1_000), 5))
    await other.confirmed_end()
    assert (await greatest_timestamp(mine)).timestamp == (await greatest_timestamp(other)).timestamp == 1_000
    mine.close()
    other.close()


def _garbage() -> bytes:
    data = bytearray(batch(b"a" * 30))
    data[61:63] = b"\x7f\x7f"  # the length of the record
    return with_max_timestamp(data, 1_000)  # with the checksum of what it is now


def _many() -> bytes:
    return batch(*[b""] * 20)


def _with_headers(count: int) -> bytes:
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=4,
        is_transactional=0,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        batch_size=2**30,
    )
    for number in range(2):
        builder.append(number, 1_000, b"k" * 100, None, [("h", b"")] * (count // 2))
    return bytes(builder.build())


@pytest.mark.parametrize(
    ("make", "codes"),
    [
        (_garbage, {ErrorCode.INVALID_RECORD, ErrorCode.CORRUPT_MESSAGE}),
        (_many, {ErrorCode.MESSAGE_TOO_LARGE}),
        (lambda: batch(b"a", timestamp=2**61), {ErrorCode.INVALID_RECORD}),
        (lambda: with_max_timestamp(batch(b"a", timestamp=2**50), 5), {ErrorCode.INVALID_TIMESTAMP}),
        (lambda: _with_headers(600), {ErrorCode.MESSAGE_TOO_LARGE}),
        (lambda: batch(b"a" * 3_000_000, codec=1), {ErrorCode.MESSAGE_TOO_LARGE}),
    ],
)
async def test_what_can_not_be_stored_is_refused_and_nothing_of_it_is_written(
    make: Callable[[], bytes], codes: set[ErrorCode], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opened_batch, "MAX_RECORDS", 10)
    monkeypatch.setattr(opened_batch, "MAX_BYTES", 1_000_000)
    monkeypatch.setattr(opened_batch, "MAX_HEADERS", 500)
    monkeypatch.setattr(opened_batch, "_FEW_BYTES", 1_000)
    log = a_log()
    partition = open_partition(log)
    assert (await append(partition, make())).error in codes
    assert log.entries == []
    assert (await append(partition, batch(b"next"))).base_offset == 0
    partition.close()


async def test_what_is_too_large_as_it_is_stored_is_refused() -> None:
    log = a_log()
    log.max_message_size = 2_000
    partition = open_partition(log)
    await append(partition, batch(b"opens the writer"))
    assert (await append(partition, batch(*[b""] * 200))).error is ErrorCode.MESSAGE_TOO_LARGE
    partition.close()


async def test_old_data_that_unfolds_is_read_no_further_ahead_than_its_bound() -> None:
    log = a_log()
    mine = open_partition(log, "kafka-sidecar-mine")
    for _ in range(200):
        await append(mine, batch(b"x" * 10_000, codec=4))
    other = open_partition(log, "kafka-sidecar-other", read_ahead=50_000)
    await other.opened()
    log.read_delay = 0.001
    now = asyncio.get_running_loop().time()
    other.read(0, 1, at_least_one=True, since=now)
    await asyncio.sleep(0.3)
    (reader,) = other._catch_ups._readers
    assert reader.next_offset * 10_000 < 150_000
    mine.close()
    other.close()
