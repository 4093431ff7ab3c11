"""A record in `__transactional_partitions` is missing: another fleet has announced it elsewhere, or the internal topics
are lost.

Entries say themselves that they are parts of transactions. Who reads one that should have been announced announces it,
and folds the log from its start before it serves that entry.
"""

from __future__ import annotations

import asyncio

import pytest

from kafka_sidecar.partition.fold.fold import BEFORE_ALL
from kafka_sidecar.partition.partition import Partition
from kafka_sidecar.wire.error_code import ErrorCode
from tests.support.batches import batch
from tests.support.memory_log import MemoryLog
from tests.support.memory_states import MemoryStates
from tests.support.partitions import append, open_partition, read_all
from tests.support.transactions import ABORTED, COMMITTED, Coordinator, committed_values, end, write


async def a_log_with_transactions(behind: int) -> tuple[MemoryLog, Partition]:
    """One that was aborted, one that was committed and one that is open, and so many entries behind that."""
    log = MemoryLog()
    writer = open_partition(log, "kafka-sidecar-a", states=MemoryStates())
    coordinator = Coordinator(1)
    for number, (value, outcome) in enumerate([(b"aborted", ABORTED), (b"committed", COMMITTED), (b"open", None)]):
        coordinator.number = number + 1
        await write(writer, coordinator, value, sequence=number)
        if outcome is not None:
            await end(writer, outcome, number + 1)
    for _ in range(behind):
        await append(writer, batch(b"plain"))
    assert log.transactions_behind is not None
    log.transactions_behind = None
    return log, writer


async def opened_again(log: MemoryLog, partition: Partition, states: MemoryStates) -> Partition:
    """As whoever asks next finds it, once it has ended."""
    if await partition.opened() is ErrorCode.NONE and partition.ended is None:
        return partition
    return open_partition(log, "kafka-sidecar-c", states=states, failures=partition._failures)


@pytest.mark.parametrize("behind", [0, 10, 70, 200])
async def test_who_reads_one_announces_it_and_serves_no_record_that_was_not_committed(behind: int) -> None:
    log, writer = await a_log_with_transactions(behind)
    states = MemoryStates()
    reads = open_partition(log, "kafka-sidecar-b", states=states)
    async with asyncio.timeout(5):
        while True:
            reads = await opened_again(log, reads, states)
            await read_all_there_is(reads)
            if reads.ended is None:
                break
    assert log.transactions_behind == BEFORE_ALL
    assert reads.last_stable_offset == writer.last_stable_offset
    assert await committed_values(reads) == [b"committed"]
    for partition in (writer, reads):
        partition.close()


async def read_all_there_is(partition: Partition) -> None:
    try:
        await read_all(partition)
    except AssertionError:
        assert partition.ended is not None


async def test_the_first_transaction_of_another_sidecar_makes_none_unannounced() -> None:
    """Both have the partition open. The record says where the first one began, and the second sidecar knows all behind
    that.
    """
    log, states = MemoryLog(), MemoryStates()
    a, b = (open_partition(log, f"kafka-sidecar-{name}", states=states, cache=1) for name in "ab")
    for partition in (a, b):
        await append(partition, batch(b"plain"))
    await a.confirmed_end()
    await write(b, Coordinator(1), b"b", sequence=0)
    await end(b, COMMITTED, 1)
    announced = log.transactions_behind
    await a.confirmed_end()
    await write(a, Coordinator(2), b"a", sequence=0, producer=8)
    await end(a, COMMITTED, 2, producer=8)
    kept = open_partition(log, "kafka-sidecar-c", states=states, cache=1)
    for partition in (a, kept):
        assert await committed_values(partition) == [b"plain", b"plain", b"b", b"a"]
        assert partition.ended is None
    assert log.transactions_behind == announced
    for partition in (a, b, kept):
        partition.close()


@pytest.mark.parametrize("is_announced_later", [False, True])
async def test_a_marker_without_a_batch_need_not_be_announced(is_announced_later: bool) -> None:
    """A partition was added to a transaction that was aborted before it wrote there."""
    log = MemoryLog()
    a = open_partition(log, "kafka-sidecar-a", states=MemoryStates())
    await append(a, batch(b"plain"))
    await end(a, ABORTED, 1)
    if is_announced_later:
        await write(a, Coordinator(2), b"x", sequence=0)
    announced = log.transactions_behind
    assert (announced is not None) is is_announced_later
    reads = open_partition(log, "kafka-sidecar-b", states=MemoryStates())
    await read_all(reads)
    assert (reads.ended, log.transactions_behind) == (None, announced)
    for partition in (a, reads):
        partition.close()


async def test_what_was_announced_is_announced_no_more() -> None:
    """Also by who has opened the partition before the first transaction."""
    log = MemoryLog()
    a, b = (open_partition(log, f"kafka-sidecar-{name}", states=MemoryStates()) for name in "ab")
    await append(a, batch(b"plain"))
    await b.confirmed_end()
    coordinator = Coordinator(1)
    await write(a, coordinator, b"open", sequence=0)
    announced = log.transactions_behind
    assert announced not in (None, BEFORE_ALL)
    await append(b, batch(b"plain"))
    assert await b.confirmed_end() == a.end_offset
    cold = open_partition(log, "kafka-sidecar-c", states=MemoryStates())
    await read_all(cold)
    for partition in (a, b, cold):
        assert (partition.ended, partition.last_stable_offset) == (None, 1)
        partition.close()
    assert log.transactions_behind == announced
