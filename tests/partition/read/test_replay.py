"""What a partition reads back of its past: nothing for those who read, and all that tells a retry for those who write."""

from __future__ import annotations

import asyncio

import pytest

from handler.partition.fold.fold import Fold
from handler.pulsar.entry import Position
from handler.wire.error_code import ErrorCode
from tests.support.batches import batch
from tests.support.memory_log import MemoryLog
from tests.support.partitions import append, begin_append, open_partition, read_all

ENTRIES = 40


def numbered(sequence: int) -> bytes:
    return batch(b"%d" % sequence, producer_id=7, epoch=0, sequence=sequence)


def a_log() -> MemoryLog:
    log = MemoryLog()
    for sequence in range(ENTRIES):
        log.write(numbered(sequence))
    return log


async def test_a_partition_that_is_only_read_reads_back_its_last_entry_alone() -> None:
    log = a_log()
    partition = open_partition(log)
    assert await partition.opened() is ErrorCode.NONE
    assert await partition.confirmed_end() == ENTRIES
    assert partition.timestamps_known_from == ENTRIES - 1
    assert partition.log_start == 0
    assert (await append(partition, batch(b"of no producer"))).base_offset == ENTRIES
    assert partition.timestamps_known_from == ENTRIES - 1
    partition.close()


@pytest.mark.parametrize("opened_by", ["a reader", "the append"])
async def test_a_retry_of_what_another_sidecar_wrote_is_recognised_whoever_opened_the_partition(opened_by: str) -> None:
    log = a_log()
    partition = open_partition(log)
    if opened_by == "a reader":
        await partition.opened()
    retry, following, hole = (begin_append(partition, numbered(sequence)) for sequence in (ENTRIES - 3, ENTRIES, ENTRIES + 5))
    assert (await retry).base_offset == ENTRIES - 3
    assert (await following).base_offset == ENTRIES
    assert (await hole).error is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert partition.timestamps_known_from == 0
    assert len(await read_all(partition)) == ENTRIES + 1
    partition.close()


async def test_the_replay_goes_back_no_further_than_its_bound() -> None:
    log = a_log()
    partition = open_partition(log, replay_entries=10)
    await partition.opened()
    assert (await append(partition, numbered(ENTRIES - 2))).base_offset == ENTRIES - 2
    assert partition.timestamps_known_from == ENTRIES - 10
    partition.close()


async def test_appends_keep_their_order_while_the_past_is_read() -> None:
    log = a_log()
    partition = open_partition(log)
    await partition.opened()
    log.read_delay = 0.02
    with_producer = begin_append(partition, numbered(ENTRIES))
    await asyncio.sleep(0.001)
    assert not partition.is_next(100, -1, -1, -1, asyncio.get_running_loop().time())
    behind = begin_append(partition, batch(b"of no producer"))
    assert [(await one).base_offset for one in (with_producer, behind)] == [ENTRIES, ENTRIES + 1]
    assert partition.is_next(100, 7, 0, ENTRIES + 1, asyncio.get_running_loop().time())
    partition.close()


async def test_the_replay_ends_while_others_write_and_own_appends_are_under_way() -> None:
    log = a_log()
    partition = open_partition(log, "kafka-sidecar-mine")
    await append(partition, batch(b"of no producer"))
    log.read_delay = 0.002
    log.hold_sends = True
    under_way = begin_append(partition, batch(b"under way"))
    retry = begin_append(partition, numbered(ENTRIES - 1))
    written = 0
    while written < 10 or not retry.done():
        log.write(batch(b"foreign %d" % written))
        written += 1
        if written == 5:
            log.hold_sends = False
            log.let_go()
        await asyncio.sleep(0.001)
    assert (await retry).base_offset == ENTRIES - 1
    assert (await under_way).error is ErrorCode.NONE
    values = [value for _, value in await read_all(partition)]
    assert values.count(b"under way") == 1
    assert len(values) == len(log.entries)
    partition.close()


async def test_a_broken_connection_only_delays_the_replay() -> None:
    log = a_log()
    partition = open_partition(log)
    await partition.opened()
    log.read_delay = 0.02
    retry = begin_append(partition, numbered(ENTRIES - 1))
    await asyncio.sleep(0.01)
    log.disconnect()
    assert (await retry).base_offset == ENTRIES - 1
    partition.close()


async def test_what_waits_for_the_replay_has_an_answer_when_the_partition_ends() -> None:
    log = a_log()
    partition = open_partition(log)
    await partition.opened()
    log.read_delay = 1
    waiting = begin_append(partition, numbered(ENTRIES))
    await asyncio.sleep(0.01)
    partition.close()
    assert (await waiting).error is ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_an_entry_of_the_past_at_which_the_sidecar_fails_ends_the_partition(monkeypatch: pytest.MonkeyPatch) -> None:
    apply = Fold._apply

    def fails(self: Fold, position: Position, *rest: object) -> object:
        if position == Position(1, 20):
            raise ZeroDivisionError(position)
        return apply(self, position, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(Fold, "_apply", fails)
    partition = open_partition(a_log())
    assert await partition.opened() is ErrorCode.NONE
    assert (await append(partition, numbered(ENTRIES))).error is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert partition.ended is ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_a_log_that_ends_in_more_markers_than_are_read_back_has_its_end_and_its_past(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("handler.partition.read.read_to_end.ARRIVAL_SECONDS", 0.05)
    log = a_log()
    for _ in range(3):
        log.mark()
    partition = open_partition(log)
    assert await partition.opened() is ErrorCode.NONE
    assert await partition.confirmed_end() == ENTRIES
    assert (await append(partition, numbered(ENTRIES - 1))).base_offset == ENTRIES - 1
    assert (await append(partition, numbered(ENTRIES))).base_offset == ENTRIES
    partition.close()


async def test_a_log_that_retention_emptied_meanwhile_has_no_past() -> None:
    log = a_log()
    partition = open_partition(log)
    await partition.opened()
    log.trim(ENTRIES)
    assert (await append(partition, numbered(ENTRIES))).base_offset == ENTRIES
    partition.close()
