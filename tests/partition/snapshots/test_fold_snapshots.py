"""When a fold with transactions is kept, and when what was kept is asked for."""

from __future__ import annotations

import asyncio

import pytest

from kafka_sidecar.internal_topics.snapshot_places import Kept
from kafka_sidecar.partition.fold.extent import Extent
from kafka_sidecar.partition.fold.fold import BEFORE_ALL
from kafka_sidecar.partition.partition import Partition
from kafka_sidecar.partition.snapshots import fold_snapshots
from kafka_sidecar.partition.snapshots.snapshot_values import extent_in, extent_text
from kafka_sidecar.wire.error_code import ErrorCode
from tests.support.batches import batch
from tests.support.fold_snapshots import KEY, folds, keys, known_from_here
from tests.support.memory_log import MemoryLog
from tests.support.memory_states import MemoryStates
from tests.support.partitions import append, open_partition
from tests.support.transactions import ABORTED, COMMITTED, Coordinator, committed_values, end, write


async def with_a_transaction(log: MemoryLog, states: MemoryStates, coordinator: Coordinator) -> Partition:
    """As a first sidecar has it open."""
    partition = open_partition(log, "kafka-sidecar-a", states=states)
    assert (await write(partition, coordinator, b"first", sequence=0)).error is ErrorCode.NONE
    return partition


@pytest.mark.parametrize("what", ["fails", "hangs"])
async def test_at_the_end_all_is_kept_also_where_keeping_it_before(what: str) -> None:
    log, states, coordinator = MemoryLog(), MemoryStates(), Coordinator()
    partition = open_partition(log, states=states)
    assert (await write(partition, coordinator, b"first", sequence=0)).error is ErrorCode.NONE
    look_up, may_go_on = states.look_up, asyncio.Event()

    async def slow(key: bytes) -> Kept | None:
        await may_go_on.wait()
        return await look_up(key)

    if what == "hangs":
        states.look_up = slow  # type: ignore[method-assign]
    else:
        assert (await end(partition, ABORTED)).error is ErrorCode.NONE
        states.is_away = True
    partition._folds._keep()
    assert partition._folds.keeping is not None
    if what == "hangs":
        assert (await end(partition, ABORTED)).error is ErrorCode.NONE
    else:
        await partition._folds.keeping
        states.is_away = False
    closing = partition.close()
    may_go_on.set()
    await asyncio.gather(*closing)
    assert [one.position for one in folds(states)] == [log.entries[-1].position]


@pytest.mark.parametrize("records", [1, 3])
async def test_a_log_that_is_whole_opens_while_nothing_that_was_kept_can_be_read(records: int) -> None:
    log, states, coordinator = MemoryLog(), MemoryStates(), Coordinator()
    first = open_partition(log, "kafka-sidecar-a", states=states)
    assert (await write(first, coordinator, *[b"first"] * records, sequence=0)).error is ErrorCode.NONE
    assert (await end(first, COMMITTED)).error is ErrorCode.NONE
    await asyncio.gather(*first.close())
    states.is_away = True
    second = open_partition(log, "kafka-sidecar-b", states=states)
    assert await second.opened() is ErrorCode.NONE
    assert await committed_values(second) == [b"first"] * records
    second.close()


async def test_a_fold_that_lands_late_does_not_count() -> None:
    """As of a sidecar that stood still while it stored. Retention has taken the ledger in which its transaction
    ended.
    """
    log, states, late, coordinator = MemoryLog(), MemoryStates(), MemoryStates(), Coordinator()
    late.values = states.values
    first, second = (
        open_partition(log, "kafka-sidecar-a", states=late),
        open_partition(log, "kafka-sidecar-b", states=states),
    )
    assert (await write(first, coordinator, b"first", sequence=0)).error is ErrorCode.NONE
    await second.opened()
    await second.confirmed_end()
    sent: list[tuple[bytes, bytes]] = []

    async def hangs(key: bytes, value: bytes) -> None:
        sent.append((key, value))

    late.store = hangs  # type: ignore[method-assign]
    first._folds._keep()
    assert first._folds.keeping is not None
    await first._folds.keeping
    assert (await end(second, ABORTED)).error is ErrorCode.NONE
    await asyncio.gather(*second.close())
    (kept,) = folds(states)
    for one in sent:
        await states.store(*one)
    third = open_partition(log, "kafka-sidecar-c", states=states)
    assert await third.opened() is ErrorCode.NONE
    assert third._folds._restored == kept.position
    for partition in (first, third):
        partition.close()


@pytest.mark.parametrize("before", [0, 3])
async def test_what_a_consumers_sidecar_has_kept_early_is_not_gone_on_from(before: int) -> None:
    """It had the partition open before somebody announced transactions, and knows no more of them than their writer."""
    log, states, coordinator = MemoryLog(), MemoryStates(), Coordinator()
    for _ in range(before):
        log.write(batch(b"before"))
    consuming = open_partition(log, "kafka-sidecar-consuming", states=states)
    assert await consuming.opened() is ErrorCode.NONE
    log.write(batch(b"before the announcement"))
    writing = open_partition(log, "kafka-sidecar-writing", states=states)
    assert (await write(writing, coordinator, b"1", sequence=0)).error is ErrorCode.NONE
    await consuming.confirmed_end()
    await asyncio.gather(*consuming.close())
    assert (await end(writing, COMMITTED)).error is ErrorCode.NONE
    await asyncio.gather(*writing.close())
    third = open_partition(log, "kafka-sidecar-third", states=states)
    assert await third.opened() is ErrorCode.NONE
    assert third._folds._restored == log.entries[-1].position
    third.close()


async def test_what_a_sidecar_of_0_2_has_kept_is_found() -> None:
    log, states, coordinator = MemoryLog(), MemoryStates(), Coordinator()
    first = await with_a_transaction(log, states, coordinator)
    await asyncio.gather(*first.close())
    (key,) = keys(states)
    states.values[KEY] = states.values.pop(key)
    second = open_partition(log, "kafka-sidecar-b", states=states)
    assert await second.opened() is ErrorCode.NONE
    assert second._folds._restored == log.entries[-1].position
    second.close()


async def test_of_what_0_2_has_kept_and_this_release_that_counts_which_ends_last() -> None:
    """A fleet may have gone back to 0.2 for a while."""
    log, states, coordinator = MemoryLog(), MemoryStates(), Coordinator()
    for name, sequence in (("a", 0), ("b", 1)):
        partition = open_partition(log, f"kafka-sidecar-{name}", states=states)
        assert (await write(partition, coordinator, b"in a transaction", sequence=sequence)).error is ErrorCode.NONE
        before = dict(states.values)
        await asyncio.gather(*partition.close())
    (later,) = keys(states)
    states.values[KEY] = states.values.pop(later)
    states.values |= {key: value for key, value in before.items() if key.startswith(KEY)}
    third = open_partition(log, "kafka-sidecar-c", states=states)
    assert await third.opened() is ErrorCode.NONE
    assert third._folds._restored == log.entries[-1].position
    third.close()


async def test_who_needs_all_transactions_goes_on_from_a_value_that_tells_all() -> None:
    """And not from one that ends later, of a sidecar that knew nothing of those before."""
    log, states, coordinator = MemoryLog(), MemoryStates(), Coordinator()
    first = await with_a_transaction(log, states, coordinator)
    await asyncio.gather(*first.close())
    (tells_all,) = keys(states)
    told = extent_in(tells_all)
    assert told is not None
    assert told.began is None, "they were announced when the log was empty"
    second = open_partition(log, "kafka-sidecar-b", states=states)
    assert (await write(second, coordinator, b"second", sequence=1)).error is ErrorCode.NONE
    before = dict(states.values)
    await asyncio.gather(*second.close())
    (later,) = keys(states)
    here = Extent(log.entries[-1].position, log.entries[-1].position)
    states.values[b"%b\0%b:x" % (KEY, extent_text(here))] = known_from_here(states.values.pop(later))
    states.values[tells_all] = before[tells_all]
    await log.begin_transactions(BEFORE_ALL)  # one of another's was found
    third = open_partition(log, "kafka-sidecar-c", states=states)
    assert await third.opened() is ErrorCode.NONE
    assert third._folds._restored == log.entries[0].position
    third.close()


@pytest.mark.parametrize("began_later", ["what ends first", "what ends last"])
@pytest.mark.parametrize("left", [0, 1])
async def test_of_all_that_retention_has_made_useless_it_is_known_who_has_ended(left: int, began_later: str) -> None:
    """In whichever order it is read."""
    log, states, coordinator = MemoryLog(), MemoryStates(), Coordinator()
    first = await with_a_transaction(log, states, coordinator)
    first._folds._keep()
    assert first._folds.keeping is not None
    await first._folds.keeping
    ends_first = states.values[keys(states)[0]]
    assert (await end(first, ABORTED)).error is ErrorCode.NONE
    await asyncio.gather(*first.close())
    (key,) = keys(states)
    ends_last = states.values.pop(key)
    one, last = log.entries[0].position, log.entries[-1].position
    extents = (
        (Extent(None, one), Extent(one, last))
        if began_later == "what ends last"
        else (Extent(one, one), Extent(None, last))
    )
    for number, (extent, value) in enumerate(zip(extents, (ends_first, ends_last), strict=True)):
        states.values[b"%b\0%b:%d" % (KEY, extent_text(extent), number)] = value
    log.roll()
    for _ in range(left):
        log.write(batch(b"left"))
    log.trim(len(log.entries) - left)
    second = open_partition(log, "kafka-sidecar-b", states=states)
    assert await second.opened() is ErrorCode.NONE
    assert dict(second.transactions.ended) == dict(first.transactions.ended) != {}
    second.close()


async def test_what_grows_old_while_the_partition_is_open_is_kept_anew() -> None:
    log, states, coordinator = MemoryLog(), MemoryStates(), Coordinator()
    partition = await with_a_transaction(log, states, coordinator)
    partition._folds._keep()
    assert partition._folds.keeping is not None
    await partition._folds.keeping
    old = keys(states)
    partition._folds._stored_since -= 8 * 24 * 3_600
    partition._folds.tick(asyncio.get_running_loop().time() + fold_snapshots.STORE_EVERY_SECONDS)
    await partition._folds.keeping
    (anew,) = keys(states)
    assert [anew] != old
    partition.close()


async def test_of_two_that_are_equal_and_old_one_is_kept_anew() -> None:
    log, states, coordinator = MemoryLog(), MemoryStates(), Coordinator()
    first = await with_a_transaction(log, states, coordinator)
    await asyncio.gather(*first.close())
    (old,) = keys(states)
    twins = {old, old + b"x"}
    states.values[old + b"x"] = states.values[old]
    states.written_at = 0
    second = open_partition(log, "kafka-sidecar-b", states=states)
    assert await second.opened() is ErrorCode.NONE
    await asyncio.gather(*second.close())
    assert set(keys(states)) - twins


async def test_what_is_old_is_kept_anew_also_where_nothing_was_written_since() -> None:
    """Whoever finds a value that nobody has written anew for a month deletes it."""
    log, states, coordinator = MemoryLog(), MemoryStates(), Coordinator()
    first = await with_a_transaction(log, states, coordinator)
    await asyncio.gather(*first.close())
    old, states.written_at = keys(states), 0
    second = open_partition(log, "kafka-sidecar-b", states=states)
    assert await second.opened() is ErrorCode.NONE
    await asyncio.gather(*second.close())
    (anew,) = keys(states)
    assert anew not in old
    assert [one.position for one in folds(states)] == [log.entries[-1].position]


async def test_what_another_has_kept_since_is_not_thrown_away() -> None:
    log, states, coordinator = MemoryLog(), MemoryStates(), Coordinator()
    first = await with_a_transaction(log, states, coordinator)
    await asyncio.gather(*first.close())
    second, third = (open_partition(log, f"kafka-sidecar-{name}", states=states) for name in ("b", "c"))
    assert await second.opened() is await third.opened() is ErrorCode.NONE
    assert (await append(third, batch(b"plain"))).error is ErrorCode.NONE
    await asyncio.gather(*third.close())
    since = keys(states)
    second._folds.distrust()
    assert second._folds.keeping is not None
    await second._folds.keeping
    assert keys(states) == since
    second.close()


async def test_a_value_of_a_sidecar_that_others_had_announced_transactions_to_knows_of_theirs() -> None:
    """0.2 kept the place where a sidecar itself had begun to write transactions, though it knew of those before."""
    log, states, coordinator = MemoryLog(), MemoryStates(), Coordinator()
    first = open_partition(log, "kafka-sidecar-a", states=states)
    assert (await write(first, coordinator, b"first", sequence=0)).error is ErrorCode.NONE
    assert (await end(first, COMMITTED)).error is ErrorCode.NONE
    for _ in range(100):
        await append(first, batch(b"plain"))
    await asyncio.gather(*first.close())
    (key,) = keys(states)
    states.values[key] = known_from_here(states.values[key])
    second = open_partition(log, "kafka-sidecar-b", states=states)
    assert (await committed_values(second))[0] == b"first"
    assert (second.ended, second.transactions.known_from) == (None, log.transactions_behind)
    second.close()
