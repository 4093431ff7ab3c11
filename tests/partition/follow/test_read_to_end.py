"""The end of a partition: what is waited for, and what an end that is known here may refuse."""

from __future__ import annotations

import asyncio

import pytest

from kafka_sidecar.pulsar.errors import Unavailable
from kafka_sidecar.wire.error_code import ErrorCode
from tests.model.connections import Reader
from tests.support.batches import batch
from tests.support.memory_log import MemoryLog
from tests.support.partitions import Told, append, fetch, open_partition, read_all


async def test_an_offset_that_another_sidecar_has_told_is_not_out_of_range() -> None:
    log = MemoryLog()
    ours, theirs = open_partition(log), open_partition(log, "kafka-sidecar-other")
    assert await theirs.opened() is ErrorCode.NONE
    log.read_delay = 0.05
    for number in range(5):
        await append(ours, batch(b"%d" % number))
    changed = asyncio.Event()
    came = asyncio.get_running_loop().time()
    assert theirs.end_offset < 4
    assert theirs.read(4, 1000, at_least_one=True, since=came) is None
    while (run := theirs.read(4, 1000, at_least_one=True, since=came)) is None:
        theirs.watch(Told(changed))
        await asyncio.wait_for(changed.wait(), 5)
        changed.clear()
    assert run.error is ErrorCode.NONE
    assert run.size > 0
    while (beyond := theirs.read(99, 1000, at_least_one=True, since=came)) is None:
        theirs.watch(Told(changed))
        await asyncio.wait_for(changed.wait(), 5)
        changed.clear()
    assert beyond.error is ErrorCode.OFFSET_OUT_OF_RANGE
    ours.close()
    theirs.close()


async def test_an_end_that_was_confirmed_before_a_request_came_refuses_it_nothing() -> None:
    log = MemoryLog()
    ours, theirs = open_partition(log), open_partition(log, "kafka-sidecar-other")
    await append(ours, batch(b"0"))
    log.read_delay = 0.05
    for number in range(1, 10):
        assert await theirs.confirmed_end() == number  # fresh, and stale with the next append
        told = (await append(ours, batch(b"%d" % number))).base_offset
        run = await fetch(theirs, told)
        assert (run.error, run.next_offset) == (ErrorCode.NONE, told + 1)
    assert (await fetch(theirs, 99)).error is ErrorCode.OFFSET_OUT_OF_RANGE
    ours.close()
    theirs.close()


async def test_the_end_is_found_also_where_the_broker_does_not_name_the_last_entry(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """After a reload some brokers name entry −1 of the ledger that is open."""

    async def nothing(_: Reader) -> None:
        await asyncio.sleep(0)

    log = MemoryLog()
    ours, theirs = open_partition(log), open_partition(log, "kafka-sidecar-other")
    await append(ours, batch(b"0"))
    assert await theirs.confirmed_end() == 1
    theirs._tail.stop()
    for number in range(1, 6):
        await append(ours, batch(b"%d" % number))
    monkeypatch.setattr(Reader, "last_position", nothing)
    assert await theirs.confirmed_end() == 6
    ours.close()
    theirs.close()


async def test_the_tail_stays_open_for_who_waits_for_the_end() -> None:
    log = MemoryLog()
    ours, theirs = open_partition(log), open_partition(log, "kafka-sidecar-other")
    await append(ours, batch(b"0"))
    assert await theirs.opened() is ErrorCode.NONE
    log.read_delay = 0.1
    await append(ours, batch(b"1"))
    asked = asyncio.create_task(theirs.confirmed_end())
    for _ in range(10):
        await asyncio.sleep(0.02)
        theirs.tick(asyncio.get_running_loop().time() + 60)
    assert await asyncio.wait_for(asked, 1) == 2
    await asyncio.sleep(0)
    theirs.tick(asyncio.get_running_loop().time() + 60)
    assert not theirs._tail.running
    ours.close()
    theirs.close()


async def test_an_entry_that_is_known_by_its_receipt_is_not_waited_for() -> None:
    log = MemoryLog()
    partition = open_partition(log)
    await append(partition, batch(b"0"))
    log.read_delay = 60
    log.swallow_receipts = True
    appending = asyncio.create_task(append(partition, batch(b"1"), 10))
    await asyncio.sleep(0.01)
    asked = asyncio.create_task(partition.confirmed_end())
    await asyncio.sleep(0.01)
    assert not asked.done()
    last = log.entries[-1].position
    log.writers[-1].events.on_receipt(1, last.ledger, last.entry)
    assert await asyncio.wait_for(asked, 0.5) == 2
    assert (await appending).base_offset == 1
    partition.close()


async def test_who_gives_up_waiting_for_an_entry_leaves_no_waiter() -> None:
    log = MemoryLog()
    ours, theirs = open_partition(log), open_partition(log, "kafka-sidecar-other")
    await append(ours, batch(b"0"))
    assert await theirs.opened() is ErrorCode.NONE
    log.read_delay = 60
    await append(ours, batch(b"1"))
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(theirs._to_end.run(), 0.05)
    assert not theirs._to_end._waiting
    ours.close()
    theirs.close()


@pytest.mark.parametrize("roll", [False, True])
async def test_markers_at_the_end_of_the_log_keep_nobody_waiting(roll: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Brokers before 3.3 say that the last entry is one that no reader is given."""
    monkeypatch.setattr("kafka_sidecar.partition.follow.read_to_end.ARRIVAL_SECONDS", 0.05)
    log = MemoryLog()
    log.write(batch(b"0"))
    for _ in range(3):
        if roll:
            log.roll()
        log.mark()
    partition = open_partition(log)
    assert await partition.opened() is ErrorCode.NONE
    assert await partition.confirmed_end() == 1
    assert (await append(partition, batch(b"1"))).base_offset == 4
    log.mark()
    assert await read_all(partition) == [(0, b"0"), (4, b"1")]
    partition.close()


async def test_a_topic_that_is_made_anew_and_empty_ends_the_partition() -> None:
    """Nothing comes of it that could tell: its end is asked for."""
    log = MemoryLog()
    for number in range(10):
        log.write(batch(b"old %d" % number))
    partition = open_partition(log, "kafka-sidecar-a")
    assert await partition.opened() is ErrorCode.NONE
    assert await partition.confirmed_end() == 10
    partition._tail.stop_unless_held()
    log.make_anew()
    with pytest.raises(Unavailable, match="made again"):
        await partition.confirmed_end()
    assert partition.ended is ErrorCode.NOT_LEADER_OR_FOLLOWER
    again = open_partition(log, "kafka-sidecar-a")
    assert await again.opened() is ErrorCode.NONE
    assert (await append(again, batch(b"new"))).base_offset == 0
    assert await again.confirmed_end() == 1
    again.close()


@pytest.mark.parametrize(
    "is_named", [False, True], ids=["nothing is named as the last entry", "what is gone is named as the last entry"]
)
async def test_what_comes_while_the_end_of_an_emptied_log_is_asked_for_does_not_confirm_an_old_end(
    is_named: bool,
) -> None:
    log = MemoryLog()
    log.write(batch(b"first"))
    log.roll()
    log.trim(1)
    partition = open_partition(log, "kafka-sidecar-a")
    assert await partition.opened() is ErrorCode.NONE
    assert await partition.confirmed_end() == 1
    partition._tail.stop_unless_held()
    for number in range(100):
        log.write(batch(b"%d" % number))
    if is_named:
        named = log.entries[-1].position
        log.last_named = lambda: named if not log.present else log.entries[-1].position  # type: ignore[method-assign]
    log.roll()
    log.trim(101)
    index_property = log.index_property

    async def then_one_is_written() -> int | None:
        found = await index_property()
        log.index_property = index_property  # type: ignore[method-assign]
        log.write(batch(b"new"))
        return found

    log.index_property = then_one_is_written  # type: ignore[method-assign]
    assert await partition.confirmed_end() == 102
    partition.close()
