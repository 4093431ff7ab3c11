"""What is known of transactions behind a gap in the offsets."""

from __future__ import annotations

import asyncio

import pytest

from kafka_sidecar.pulsar.entry import LogStats
from kafka_sidecar.pulsar.errors import Unavailable
from kafka_sidecar.wire.error_code import ErrorCode
from tests.support.batches import batch
from tests.support.fake_broker import until
from tests.support.memory_log import MemoryLog
from tests.support.memory_states import MemoryStates
from tests.support.partitions import append, open_partition
from tests.support.transactions import ABORTED, COMMITTED, Coordinator, begin, committed_values, end, write


def ledgers_up_to(log: MemoryLog, ledger: int) -> int:
    return sum(1 for entry in log.entries if entry.position.ledger <= ledger)


@pytest.mark.parametrize("committed", [ABORTED, COMMITTED])
async def test_a_marker_that_retention_took_unread_leaves_no_transaction_open(committed: bool) -> None:
    log, states, coordinator = MemoryLog(), MemoryStates(), Coordinator()
    idle, busy = (open_partition(log, f"kafka-sidecar-{name}", states=states) for name in ("idle", "busy"))
    await busy.opened()
    assert (await write(idle, coordinator, b"first", sequence=0)).error is ErrorCode.NONE
    await busy.confirmed_end()
    idle._tail.stop_unless_held()  # nobody reads there
    log.roll()
    assert (await end(busy, committed)).error is ErrorCode.NONE
    log.roll()
    for _ in range(2):
        assert (await append(busy, batch(b"plain"))).error is ErrorCode.NONE
    log.trim(ledgers_up_to(log, 2))
    with pytest.raises(Unavailable):
        await idle.confirmed_end()
    assert idle.ended is not None
    assert b"fold:t-partition-0" not in states.kept, "what it knew was not certain"
    opened = open_partition(log, "kafka-sidecar-opened", states=states)
    assert await opened.opened() is ErrorCode.NONE
    assert opened.last_stable_offset == await opened.confirmed_end()
    assert await committed_values(opened, opened.log_start) == [b"plain", b"plain"]
    for one in (busy, opened):
        one.close()


async def test_markers_of_pulsars_own_leave_what_is_known_of_transactions() -> None:
    log, states, coordinator = MemoryLog(), MemoryStates(), Coordinator()
    partition = open_partition(log, states=states)
    assert (await write(partition, coordinator, b"first", sequence=0)).error is ErrorCode.NONE
    log.mark()
    log.roll()
    log.write(batch(b"plain"))
    assert await partition.confirmed_end() == 3
    await until(lambda: not partition._gaps.is_in_doubt)
    assert (await end(partition, COMMITTED)).error is ErrorCode.NONE
    assert await committed_values(partition) == [b"first", b"plain"]
    assert partition.ended is None
    partition.close()


async def test_a_gap_behind_a_log_that_was_empty_is_one() -> None:
    log, states, coordinator = MemoryLog(), MemoryStates(), Coordinator()
    log.write(batch(b"plain"))
    log.trim(1)
    idle, busy = (open_partition(log, f"kafka-sidecar-{name}", states=states) for name in ("idle", "busy"))
    assert await idle.opened() is ErrorCode.NONE
    assert await idle.confirmed_end() == 1
    idle._tail.stop_unless_held()
    assert (await write(busy, coordinator, b"first", sequence=0)).error is ErrorCode.NONE
    assert (await end(busy, ABORTED)).error is ErrorCode.NONE
    log.roll()
    assert (await append(busy, batch(b"plain"))).error is ErrorCode.NONE
    log.trim(ledgers_up_to(log, 1))
    await idle.confirmed_end()
    await until(lambda: idle.ended)
    busy.close()


async def test_a_gap_that_comes_while_another_is_asked_about_is_asked_about_as_well() -> None:
    log, states, coordinator = MemoryLog(), MemoryStates(), Coordinator()
    idle, busy = (open_partition(log, f"kafka-sidecar-{name}", states=states) for name in ("idle", "busy"))
    await busy.opened()
    assert (await write(idle, coordinator, b"first", sequence=0)).error is ErrorCode.NONE
    assert idle._fold.last_position is not None
    stats, may_answer = await log.stats(), asyncio.Event()
    ask = idle._gaps._log.stats

    async def late() -> LogStats:
        if not may_answer.is_set():
            await may_answer.wait()
            return stats
        return await ask()

    idle._gaps._log.stats = late  # type: ignore[method-assign]
    idle._gaps.begin(idle._fold.last_position)
    await asyncio.sleep(0)
    log.roll()
    assert (await end(busy, ABORTED)).error is ErrorCode.NONE
    log.roll()
    assert (await append(busy, batch(b"plain"))).error is ErrorCode.NONE
    log.trim(ledgers_up_to(log, 2))
    idle._gaps.begin(idle._fold.last_position)
    may_answer.set()
    await until(lambda: idle.ended)
    busy.close()


async def test_without_transactions_a_partition_is_opened_again_too() -> None:
    """What stood in the gap may have been its producers'."""
    log = MemoryLog()
    partition = open_partition(log, states=MemoryStates())
    assert (await append(partition, batch(b"plain"))).error is ErrorCode.NONE
    partition._tail.stop_unless_held()
    for ledger in (2, 3):
        log.roll()
        log.write(batch(b"in ledger %d" % ledger))
    log.trim(ledgers_up_to(log, 2))
    with pytest.raises(Unavailable):
        await partition.confirmed_end()
    assert partition.ended is ErrorCode.NOT_LEADER_OR_FOLLOWER
    partition = open_partition(log, states=MemoryStates())
    assert await partition.confirmed_end() == 3
    partition.close()


@pytest.mark.parametrize("second_announces", [False, True])
async def test_who_opened_it_before_its_first_transaction_knows_of_all(second_announces: bool) -> None:
    """It had read further than the one that announced the first, or announced one itself from where it had come to."""
    log, states, coordinator = MemoryLog(), MemoryStates(), Coordinator()
    behind = open_partition(log, "kafka-sidecar-behind", states=states)
    await behind.opened()
    behind._tail.stop_unless_held()
    if not second_announces:
        log.write(batch(b"plain"))
    ahead = open_partition(log, "kafka-sidecar-ahead", states=states)
    await ahead.opened()
    assert (await write(behind, coordinator, b"first", sequence=0)).error is ErrorCode.NONE
    await ahead.confirmed_end()
    if second_announces:
        assert (await write(ahead, Coordinator(5), b"mine", sequence=0, producer=8)).error is ErrorCode.NONE
        assert (await end(ahead, COMMITTED, 5, producer=8)).error is ErrorCode.NONE
    log.hold_sends = True
    late = begin(behind, coordinator, b"late", sequence=1)
    await until(lambda: log.held)
    log.hold_sends = False
    assert (await end(ahead, ABORTED)).error is ErrorCode.NONE
    log.roll()
    assert (await append(ahead, batch(b"plain"))).error is ErrorCode.NONE
    log.let_go()
    await asyncio.wait_for(late.result, 5)
    await ahead.confirmed_end()
    await asyncio.gather(*ahead.close())
    log.trim(ledgers_up_to(log, 1))
    opened = open_partition(log, "kafka-sidecar-opened", states=states)
    assert await opened.opened() is ErrorCode.NONE
    assert opened.last_stable_offset == await opened.confirmed_end()
    assert b"late" not in await committed_values(opened, opened.log_start)
    for one in (behind, opened):
        one.close()
