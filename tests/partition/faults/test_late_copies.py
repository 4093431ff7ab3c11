"""A batch or a marker whose SEND hung is sent again on another connection, and the second SEND lands late: the log has
it twice.

Whoever knows the first copy hides the second. These are those who do not: readers that begin between both, and whoever
comes after retention has taken the first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from kafka_sidecar.partition.fold import transactions
from kafka_sidecar.partition.partition import Partition
from kafka_sidecar.partition.write.append import Append
from kafka_sidecar.wire.control_records import EndTransactionMarker, write_marker
from kafka_sidecar.wire.error_code import ErrorCode
from tests.support.batches import batch
from tests.support.fake_broker import until
from tests.support.memory_log import MemoryLog
from tests.support.memory_states import MemoryStates
from tests.support.partitions import Outcome, append, begin_append, open_partition, read_all
from tests.support.records import committed_in
from tests.support.transactions import ABORTED, COMMITTED, Coordinator, begin, committed_values, end, write

PRODUCER = 7
Landing = list[Callable[[], None]]


def numbered(sequence: int) -> bytes:
    return batch(b"b%d" % sequence, producer_id=PRODUCER, epoch=0, sequence=sequence)


async def held(log: MemoryLog) -> Landing:
    """What hangs now: calling it lets it land."""
    await until(lambda: bool(log.held))
    landing, log.held = log.held, []
    return landing


def cut(log: MemoryLog, name: str) -> None:
    for writer in list(log.writers):
        if writer.name.startswith(name):
            writer.cut()


async def sent_twice(log: MemoryLog) -> tuple[Landing, Landing]:
    """What sidecar a has begun to send hangs. Its connection is cut, and it sends that again, which hangs likewise."""
    first = await held(log)
    cut(log, "kafka-sidecar-a")
    second = await held(log)
    log.hold_sends = False
    return first, second


async def a_batch_sent_twice(
    log: MemoryLog, a: Partition, b: Partition, coordinator: Coordinator
) -> tuple[Landing, Landing]:
    """The second batch of a transaction, sent by sidecar a. Both know the first one."""
    await write(a, coordinator, b"t0", sequence=0)
    await b.confirmed_end()
    log.hold_sends = True
    begin(a, coordinator, b"t1", sequence=1)
    return await sent_twice(log)


def let_land(landing: Landing) -> None:
    for land in landing:
        land()


async def read_committed_from(partition: Partition, offset: int) -> list[bytes | None]:
    """What a consumer shows that begins there, when nothing of it is in memory."""
    assert await partition.opened() is ErrorCode.NONE
    end_offset, now = await partition.confirmed_end(), asyncio.get_running_loop().time()
    partition._cache.clear()
    until_read = now + 10
    while True:
        run = partition.read_committed(offset, 1_000_000, at_least_one=True, since=asyncio.get_running_loop().time())
        if run is not None and run.next_offset >= end_offset:
            aborted = partition.transactions.aborted_between(offset, run.next_offset)
            return [value for _, value in committed_in(run.parts, aborted)]
        assert asyncio.get_running_loop().time() < until_read
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("between", [10, 70], ids=["it sees both copies", "it sees the second alone"])
async def test_a_marker_that_comes_again_does_not_end_the_next_transaction_for_who_reads_from_there(
    between: int,
) -> None:
    log, states, coordinator = MemoryLog(), MemoryStates(), Coordinator(100)
    a, b = (open_partition(log, f"kafka-sidecar-{name}", states=states) for name in "ab")
    await write(b, coordinator, b"of 100", sequence=0)
    await append(a, batch(b"plain"))
    await a.confirmed_end()
    log.hold_sends = True
    marker = write_marker(PRODUCER, 0, EndTransactionMarker(False, 0), 1_000)
    a.append(Append.of_marker(marker, 100, asyncio.get_running_loop().time() + 60, Outcome(), 0))
    first, second = await sent_twice(log)
    let_land(first)
    await a.confirmed_end()
    await b.confirmed_end()
    coordinator.number = 101
    await write(b, coordinator, b"aborted 1", sequence=1)
    for number in range(between):
        await append(b, batch(b"between %d" % number))
    middle = await b.confirmed_end()
    await write(b, coordinator, b"aborted 2", sequence=2)
    let_land(second)
    await write(b, coordinator, b"aborted 3", sequence=3)
    await end(b, ABORTED, number=101)
    await append(b, batch(b"the last one"))
    await asyncio.gather(*a.close(), *b.close())
    reads = open_partition(log, "kafka-sidecar-c", states=states)
    assert await read_committed_from(reads, middle) == [b"the last one"]
    reads.close()


@pytest.mark.parametrize("is_first_before", [True, False], ids=["around the marker", "both behind it"])
async def test_a_batch_that_comes_again_behind_its_abort_is_not_shown_when_the_first_copy_is_gone(
    is_first_before: bool,
) -> None:
    log, states, coordinator = MemoryLog(), MemoryStates(), Coordinator(100)
    a, b = (open_partition(log, f"kafka-sidecar-{name}", states=states) for name in "ab")
    first, second = await a_batch_sent_twice(log, a, b, coordinator)
    if is_first_before:
        let_land(first)
    await end(b, ABORTED)
    if not is_first_before:
        let_land(first)
    in_the_first_ledger = len(log.entries)
    log.roll()
    let_land(second)
    await append(b, batch(b"plain"))
    await b.confirmed_end()
    await asyncio.gather(*a.close(), *b.close())
    log.trim(in_the_first_ledger)
    reads = open_partition(log, "kafka-sidecar-c", states=states)
    await reads.opened()
    assert await committed_values(reads, reads.log_start) == [b"plain"]
    reads.close()


async def test_retention_hides_nothing_that_was_acknowledged_behind_a_copy() -> None:
    """The copy counts as its producer's first in what is left. What was written behind it knew of a later one, which is
    gone.
    """
    log, states = MemoryLog(), MemoryStates()
    a, b = (open_partition(log, f"kafka-sidecar-{name}", states=states) for name in "ab")
    await append(a, numbered(0))
    await append(b, batch(b"plain"))
    log.hold_sends = True
    begin_append(a, numbered(1), 60)
    await held(log)  # and is lost with its connection
    log.hold_sends = False
    await append(b, numbered(1))
    log.hold_sends = True
    cut(log, "kafka-sidecar-a")
    copy = await held(log)
    log.hold_sends = False
    await append(b, numbered(2))
    in_the_first_ledger = len(log.entries)
    log.roll()
    let_land(copy)
    written = await append(b, numbered(3))
    assert written.error is ErrorCode.NONE
    await append(b, numbered(4))
    log.trim(in_the_first_ledger)
    reads = open_partition(log, "kafka-sidecar-c", states=states)
    await reads.opened()
    assert [value for _, value in await read_all(reads, reads.log_start) if value] == [b"b3", b"b4"]
    assert (await append(reads, numbered(3))).base_offset == written.base_offset
    for partition in (reads, a, b):
        partition.close()


async def test_a_copy_of_what_is_no_longer_remembered_opens_no_transaction(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transactions, "MAX_ENDED", 3)
    log, states, coordinator = MemoryLog(), MemoryStates(), Coordinator(100)
    a, b = (open_partition(log, f"kafka-sidecar-{name}", states=states) for name in "ab")
    first, second = await a_batch_sent_twice(log, a, b, coordinator)
    let_land(first)
    await b.confirmed_end()
    await end(b, COMMITTED)
    for other in range(50, 55):
        await write(b, coordinator, b"other", sequence=0, producer=other)
        await end(b, COMMITTED, producer=other)
    let_land(second)
    await append(b, batch(b"plain"))
    assert await b.confirmed_end() == b.last_stable_offset
    for partition in (a, b):
        partition.close()
