"""Batches of which the records are looked into, in their order, whatever they unfold to."""

from __future__ import annotations

import asyncio

import pytest
from aiokafka.record.default_records import DefaultRecordBatchBuilder

from kafka_sidecar.partition.fold.producers import Verdict
from kafka_sidecar.partition.log import unfolding
from kafka_sidecar.partition.log.formats import PULSAR
from kafka_sidecar.partition.log.log_config import AS_IT_COMES, LogConfig
from kafka_sidecar.partition.partition import Partition
from kafka_sidecar.partition.write.append import Append
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.records import read_produced
from tests.support.batches import batch, with_header
from tests.support.memory_log import MemoryLog
from tests.support.partitions import Outcome, append, begin, begin_append, open_partition, read_all
from tests.support.turns import longest_turn

ZSTD = 4
BOMB_BYTES = 8_000_000
BOMBS = 30
MOST_TURN_SECONDS = 0.05


async def opened(config: LogConfig | None = None) -> Partition:
    partition = open_partition(MemoryLog(log_config=LogConfig(PULSAR) if config is None else config))
    assert (await append(partition, batch(b"first"))).error is ErrorCode.NONE
    return partition


def bomb(sequence: int) -> bytes:
    return batch(bytes(BOMB_BYTES), producer_id=7, epoch=0, sequence=sequence, codec=ZSTD)


async def test_what_unfolds_to_much_does_not_hold_the_loop_and_is_not_overtaken() -> None:
    partition = await opened()
    assert len(bomb(0)) < 2_000
    bombs = [bomb(sequence) for sequence in range(BOMBS)]
    outcomes: list[asyncio.Future[Verdict]] = []

    async def write() -> None:
        for data in bombs:
            outcomes.append(begin_append(partition, data, seconds=60))
            outcomes.append(begin_append(partition, batch(b"small"), seconds=60))
        await asyncio.wait(outcomes)

    longest, _ = await longest_turn(write())
    assert longest < MOST_TURN_SECONDS, "of processor time"
    offsets = [outcome.result() for outcome in outcomes]
    expected = [(ErrorCode.NONE, 1 + number) for number in range(2 * BOMBS)]
    assert [(one.error, one.base_offset) for one in offsets] == expected
    partition.close()


@pytest.fixture
def all_take_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unfolding, "LARGE_RECORDS", 0)


@pytest.mark.usefixtures("all_take_long")
async def test_producers_stay_in_order_while_configs_change() -> None:
    partition = await opened()
    outcomes = []
    for sequence in range(30):
        if sequence % 7 == 0:
            partition.set_config(AS_IT_COMES if sequence % 2 else LogConfig(PULSAR))
        outcomes.append(begin_append(partition, batch(b"%d" % sequence, producer_id=7, epoch=0, sequence=sequence)))
        if sequence % 5 == 0:
            await asyncio.sleep(0.001)
    await asyncio.wait(outcomes)
    assert [outcome.result().error for outcome in outcomes] == [ErrorCode.NONE] * 30
    assert [value for _, value in await read_all(partition, 1)] == [b"%d" % sequence for sequence in range(30)]
    partition.close()


@pytest.mark.usefixtures("all_take_long")
async def test_one_that_can_not_be_read_is_refused_and_others_go_on() -> None:
    partition = await opened()
    broken = bytearray(batch(b"x" * 100, codec=ZSTD))
    broken[-10:] = bytes(10)
    first, second = begin(partition, with_header(bytes(broken))), begin_append(partition, batch(b"good"))
    assert (await second).error is ErrorCode.NONE
    assert (await first.result).error is ErrorCode.CORRUPT_MESSAGE
    assert first.refused is not None
    partition.close()


@pytest.mark.usefixtures("all_take_long")
async def test_what_waits_when_the_partition_ends_is_refused() -> None:
    partition = await opened()
    outcomes = [
        begin_append(partition, batch(b"v", producer_id=7, epoch=0, sequence=sequence)) for sequence in range(3)
    ]
    assert partition.is_in_flight(7)
    assert partition.unused_seconds(partition._loop.time() + 100) == 0
    partition.close()
    await asyncio.wait(outcomes)
    assert {outcome.result().error for outcome in outcomes} == {ErrorCode.NOT_LEADER_OR_FOLLOWER}


@pytest.mark.usefixtures("all_take_long")
async def test_what_waits_for_too_long_is_refused_with_all_that_its_producer_wrote_behind_it() -> None:
    partition = await opened()
    times = (60.0, 0.0, 60.0)
    outcomes = [
        begin_append(partition, batch(b"v", producer_id=7, epoch=0, sequence=sequence), seconds=seconds)
        for sequence, seconds in enumerate(times)
    ]
    other = begin_append(partition, batch(b"v", producer_id=8, epoch=0, sequence=0), seconds=60)
    partition._validation.expire(partition._loop.time() + 1)
    await asyncio.wait([*outcomes, other])
    assert [outcome.result().error.name for outcome in outcomes] == ["NONE", "REQUEST_TIMED_OUT", "REQUEST_TIMED_OUT"]
    assert other.result().error is ErrorCode.NONE
    partition.close()


async def test_one_that_was_taken_as_it_came_is_not_looked_into_later() -> None:
    """It waited for what is known of its producer, and the topic has another format by now."""
    partition = await opened(AS_IT_COMES)
    one = Append.of(read_produced(batch(b"v")), batch(b"v"), partition._loop.time() + 5, Outcome(), 0)
    one.validate(AS_IT_COMES, 1_000)
    one.validate(LogConfig(PULSAR), 1_000)
    assert one.encoded is None
    partition.close()


async def test_many_headers_do_not_hold_the_loop() -> None:
    partition = await opened()
    headers = [(f"{number}", b"") for number in range(20_000)]
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=ZSTD,
        is_transactional=False,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        batch_size=10_000_000,
    )
    builder.append(0, 1_000, None, b"v", headers)
    data = bytes(builder.build())

    async def write() -> None:
        await asyncio.wait([begin_append(partition, data, seconds=60) for _ in range(10)])

    longest, _ = await longest_turn(write())
    assert longest < MOST_TURN_SECONDS, "of processor time"
    partition.close()
