"""What sidecars have kept of a partition's producers is looked up, while retention takes what stood behind it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from kafka_sidecar.internal_topics.snapshot_places import Kept
from kafka_sidecar.partition.fold.fold import Fold
from kafka_sidecar.partition.fold.known_producers import KnownProducers
from kafka_sidecar.partition.partition import Partition
from kafka_sidecar.pulsar.errors import Unavailable
from kafka_sidecar.wire.error_code import ErrorCode
from tests.support.batches import batch
from tests.support.memory_log import MemoryLog
from tests.support.memory_states import MemoryStates
from tests.support.partitions import append, open_partition
from tests.support.what_is_left import closed, numbered, other


class FailsBehindAValue(MemoryStates):
    """Who has read one of its values, and looks again, is told once that no broker is there."""

    has_read = fails = False

    async def look_up(self, key: bytes) -> Kept | None:
        self.has_read = True
        return await super().look_up(key)

    async def names(self, prefix: bytes) -> list[bytes]:
        if self.fails and self.has_read:
            self.fails = False
            raise Unavailable("no broker")
        return await super().names(prefix)


async def test_all_that_is_left_behind_what_was_kept_is_read_though_questions_fail() -> None:
    """Retention has taken what stood right behind the value. A retry may be older than the window."""
    log, states = MemoryLog(), FailsBehindAValue()
    log.write(other())
    before = open_partition(log, "kafka-sidecar-a", states=states)
    await append(before, numbered(0))
    states.is_away = True
    log.roll()
    await append(before, other())
    log.roll()
    written = await append(before, numbered(1))
    for _ in range(300):
        log.write(other())
    await closed(before)
    log.trim(3)
    states.is_away, states.has_read, states.fails = False, False, True
    partition = open_partition(log, "kafka-sidecar-b", states=states, replay_entries=10)
    assert (await append(partition, numbered(1))).base_offset == written.base_offset
    assert not states.fails
    partition.close()


async def five_that_were_kept(log: MemoryLog, states: MemoryStates) -> int:
    """The offset of b4."""
    before = open_partition(log, "kafka-sidecar-first", states=states)
    for number in range(5):
        written = await append(before, numbered(number))
    assert written.error is ErrorCode.NONE
    await closed(before)
    return written.base_offset


async def check_recognised(log: MemoryLog, states: MemoryStates, offset: int) -> None:
    fresh = open_partition(log, "kafka-sidecar-fresh", states=states)
    assert (await append(fresh, numbered(3))).base_offset == offset - 1
    await closed(fresh)


@pytest.mark.parametrize("behind", [10, 100], ids=["a short log", "a long log"])
@pytest.mark.parametrize("marker", [False, True])
async def test_what_was_kept_counts_where_the_log_goes_on_right_behind_it(marker: bool, behind: int) -> None:
    log, states = MemoryLog(), MemoryStates()
    offset = await five_that_were_kept(log, states)
    log.roll()
    log.trim(5)
    if marker:
        log.mark()
    for _ in range(behind):
        log.write(other())
    partition = open_partition(log, "kafka-sidecar-a", states=states)
    assert (await append(partition, numbered(4))).base_offset == offset
    await closed(partition)
    await check_recognised(log, states, offset)


@pytest.mark.parametrize("natives", [1, 100])
async def test_a_sidecar_knows_what_it_wrote_when_the_log_goes_on_behind_that_with_a_marker(natives: int) -> None:
    """It reads on when retention has taken its own entries. Nothing that it has not read is gone."""
    log, states = MemoryLog(), MemoryStates()
    partition = open_partition(log, "kafka-sidecar-a", states=states)
    for number in range(5):
        written = await append(partition, numbered(number))
    count = len(log.entries)
    partition.tick(asyncio.get_running_loop().time() + 20)
    log.roll()
    log.mark()
    for _ in range(natives):
        log.write(other())
    log.trim(count)
    await partition.confirmed_end()
    assert (await append(partition, numbered(4))).base_offset == written.base_offset
    await closed(partition)
    await check_recognised(log, states, written.base_offset)


async def test_who_has_read_on_from_where_a_value_ends_goes_on_from_it() -> None:
    """Retention has taken the ledger since. The log begins right behind the value, so everybody can use it."""
    log, states = MemoryLog(), MemoryStates()
    for _ in range(20):
        log.write(other())
    before = open_partition(log, "kafka-sidecar-first", states=states)
    for number in range(5):
        written = await append(before, numbered(number))
    for number in range(100):
        await append(before, batch(b"x", producer_id=8, epoch=0, sequence=number))
    await closed(before)
    count = len(log.entries)
    log.roll()
    partition = open_partition(log, "kafka-sidecar-a", states=states)
    assert await partition.opened() is ErrorCode.NONE
    for _ in range(3):
        log.write(other())
    await partition.confirmed_end()
    log.trim(count)
    await append(partition, batch(b"y", producer_id=9, epoch=0, sequence=0))
    assert (await append(partition, numbered(4))).base_offset == written.base_offset
    await closed(partition)
    await check_recognised(log, states, written.base_offset)


async def taken_in_parts(
    log: MemoryLog, states: MemoryStates, natives: int
) -> tuple[Partition, int, Callable[[], Awaitable[None]]]:
    """A partition whose first ledgers are gone, with what stood behind a kept value. The offset of b4. And what goes
    on: the other sidecar keeps what it knows, and retention takes the ledger of b4 as well.
    """
    before = open_partition(log, "kafka-sidecar-first", states=states)
    for _ in range(3):
        await append(before, other())
    await append(before, numbered(0))
    log.roll()
    await append(before, numbered(1))
    log.roll()
    for number in range(2, 5):
        written = await append(before, numbered(number))
    for _ in range(100):
        log.write(other())
    third = len(log.entries)
    log.roll()
    for _ in range(natives):
        log.write(other())
    await before.confirmed_end()
    log.trim(5)
    partition = open_partition(log, "kafka-sidecar-a", states=states)
    assert await partition.opened() is ErrorCode.NONE

    async def go_on() -> None:
        await closed(before)
        log.trim(third)

    return partition, written.base_offset, go_on


@pytest.mark.parametrize("natives", [100, 30], ids=["something is left", "nothing is left to be read"])
async def test_what_is_kept_is_looked_up_anew_where_retention_has_taken_more(natives: int) -> None:
    """What was kept before was of no use. Then another sidecar keeps what it knows, and its entries are taken."""
    log, states = MemoryLog(), MemoryStates()
    partition, offset, go_on = await taken_in_parts(log, states, natives)
    replay = partition._replay
    fold, times = replay._fold_all_that_is_left, 0

    async def late() -> bool:
        nonlocal times
        times += replay._was_trimmed
        if times == 1 and replay._was_trimmed:
            await go_on()
        return await fold()

    replay._fold_all_that_is_left = late  # type: ignore[method-assign]
    await append(partition, batch(b"y", producer_id=9, epoch=0, sequence=0))
    assert times > 0
    assert (await append(partition, numbered(4))).base_offset == offset
    await closed(partition)
    await check_recognised(log, states, offset)


async def test_what_is_kept_right_behind_the_look_is_looked_up_anew() -> None:
    log, states = MemoryLog(), MemoryStates()
    partition, offset, go_on = await taken_in_parts(log, states, 100)
    kept = partition._replay._snapshots
    look_up, has_gone_on = kept.look_up, False

    async def looked_up() -> KnownProducers | None:
        nonlocal has_gone_on
        found = await look_up()
        if found is None and not has_gone_on:
            has_gone_on = True
            await go_on()
        return found

    kept.look_up = looked_up  # type: ignore[method-assign]
    await append(partition, batch(b"y", producer_id=9, epoch=0, sequence=0))
    assert has_gone_on
    assert (await append(partition, numbered(4))).base_offset == offset
    await closed(partition)
    await check_recognised(log, states, offset)


async def test_what_is_kept_while_all_that_is_left_is_read_is_found() -> None:
    """Retention takes nothing more. The other sidecar knows what was taken before."""
    log, states = MemoryLog(), MemoryStates()
    before = open_partition(log, "kafka-sidecar-first", states=states)
    for _ in range(3):
        await append(before, other())
    await append(before, numbered(0))
    log.roll()
    for number in range(1, 5):
        written = await append(before, numbered(number))
    log.roll()
    for _ in range(200):
        log.write(other())
    await before.confirmed_end()
    log.trim(8)
    partition = open_partition(log, "kafka-sidecar-a", states=states)
    assert await partition.opened() is ErrorCode.NONE
    replay = partition._replay
    fold_up_to, has_kept = replay._fold_up_to, False

    async def slowly(*arguments: Any) -> int:
        nonlocal has_kept
        size = await fold_up_to(*arguments)
        if replay._left is not None and not has_kept:
            has_kept = True
            await closed(before)
        return size

    replay._fold_up_to = slowly  # type: ignore[method-assign,assignment]
    await append(partition, batch(b"y", producer_id=9, epoch=0, sequence=0))
    assert has_kept
    assert (await append(partition, numbered(4))).base_offset == written.base_offset
    assert replay._left is None
    await closed(partition)
    await check_recognised(log, states, written.base_offset)


@pytest.mark.parametrize("is_emptied", [False, True])
@pytest.mark.parametrize("natives", [0, 30, 64])
async def test_who_has_read_all_that_follows_a_value_goes_on_from_it(natives: int, is_emptied: bool) -> None:
    """Also where it began to read right behind the value, and where nothing is left of the log."""
    log, states = MemoryLog(), MemoryStates()
    for _ in range(20):
        log.write(other())
    offset = await five_that_were_kept(log, states)
    for _ in range(natives):
        log.write(other())
    partition = open_partition(log, "kafka-sidecar-a", states=states)
    assert await partition.opened() is ErrorCode.NONE
    log.roll()
    count = len(log.entries)
    for _ in range(3):
        log.write(other())
    await partition.confirmed_end()
    if is_emptied:
        log.roll()
    log.trim(count + 3 * is_emptied)
    await append(partition, batch(b"y", producer_id=9, epoch=0, sequence=0))
    assert (await append(partition, numbered(4))).base_offset == offset
    await closed(partition)


@pytest.mark.parametrize("trims", [False, True])
async def test_what_another_keeps_while_it_is_asked_for_marks_is_what_is_gone_on_from(
    trims: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Very much stands behind the first value. The second one ends behind the window's beginning."""
    monkeypatch.setattr("kafka_sidecar.partition.follow.replay.TOO_FAR_ENTRIES", 50)
    log, states = MemoryLog(), MemoryStates()
    offset = await five_that_were_kept(log, states)
    log.roll()
    for _ in range(10):
        log.write(other())
    gone = len(log.entries)
    log.roll()
    for _ in range(100):
        log.write(other())
    second = open_partition(log, "kafka-sidecar-b", states=states)
    partition = open_partition(log, "kafka-sidecar-a", states=states, replay_entries=10)
    assert await partition.opened() is ErrorCode.NONE
    replay = partition._replay
    look_up, looks, go_on = replay._snapshots.look_up, 0, replay._read_on

    async def looked_up() -> KnownProducers | None:
        nonlocal looks
        looks += 1
        if looks == 2:
            await append(second, batch(b"x", producer_id=8, epoch=0, sequence=0))
            await closed(second)
        return await look_up()

    async def gone_on(earlier: Fold) -> None:
        if trims and looks == 2:
            log.trim(gone)
        await go_on(earlier)

    replay._snapshots.look_up = looked_up  # type: ignore[method-assign]
    replay._read_on = gone_on  # type: ignore[method-assign]
    await append(partition, batch(b"y", producer_id=9, epoch=0, sequence=0))
    assert looks >= 2
    assert (await append(partition, numbered(4))).base_offset == offset
    await closed(partition)
    await check_recognised(log, states, offset)
