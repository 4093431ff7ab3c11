"""DeleteRecords moves the log start. The records before it may stay for long, and are read to know what came before
another one.
"""

from __future__ import annotations

import asyncio

import pytest

from kafka_sidecar.internal_topics.moved_start import MovedStart
from kafka_sidecar.partition.partition import Partition
from kafka_sidecar.wire.error_code import ErrorCode
from tests.support.batches import batch
from tests.support.fake_broker import until
from tests.support.memory_log import MemoryLog
from tests.support.partitions import append, open_partition
from tests.support.transactions import Coordinator, begin, committed_values, end, end_while_a_batch_hangs


async def move_start(log: MemoryLog, offset: int, *partitions: Partition) -> None:
    position = await log.find_index(offset)
    assert position is not None
    log.start_moved_to = MovedStart(position, offset)
    for partition in partitions:
        partition.on_start_moved(log.start_moved_to)


async def test_what_is_hidden_before_the_moved_start_hides_nothing_behind_it() -> None:
    """A batch landed behind the end of its transaction. Its second try, in the next one, left before its sidecar could
    know of that.
    """
    log = MemoryLog()
    first, second, third = (open_partition(log, f"kafka-sidecar-{name}", cache=1) for name in ("a", "b", "c"))
    await append(second, batch(b"w"))
    late = await end_while_a_batch_hangs(log, first, third, committed=False)
    await second.confirmed_end()
    held, log.held, log.hold_sends = log.held, [], True
    again = begin(second, Coordinator(101), b"late", sequence=1)
    await until(lambda: log.held)
    log.hold_sends = False
    for land in held:
        land()
    log.let_go()
    assert (await late.result).error is ErrorCode.NOT_ENOUGH_REPLICAS
    offset = (await again.result).base_offset
    assert (await end(second, True, 101)).error is ErrorCode.NONE
    for _ in range(70):
        await append(third, batch(b"x"))
    await move_start(log, offset, first, second, third)
    for partition in (first, second, third):
        await partition.confirmed_end()
        partition.tick(asyncio.get_running_loop().time())
        partition._catch_ups.close()
        assert partition.log_start == offset
        assert (await committed_values(partition, offset))[0] == b"late"
        partition.close()


@pytest.mark.parametrize("is_left", [True, False])
async def test_what_is_hidden_is_forgotten_when_retention_has_taken_it(is_left: bool) -> None:
    log = MemoryLog()
    first, second = (open_partition(log, f"kafka-sidecar-{name}") for name in ("a", "b"))
    await end_while_a_batch_hangs(log, first, second, committed=False)
    log.let_go()
    await first.confirmed_end()
    (hidden,) = first.transactions.hidden
    await append(second, batch(b"x"))
    await move_start(log, hidden + 1, first)
    log.roll()
    await append(second, batch(b"x"))
    if not is_left:
        log.trim(len(log.entries) - 1)
    await first.ask_log_start()
    first.tick(asyncio.get_running_loop().time())
    assert (hidden in first.transactions.hidden) is is_left
    first.close()
    second.close()
