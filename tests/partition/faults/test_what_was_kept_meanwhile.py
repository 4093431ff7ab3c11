"""What sidecars have kept of a partition's producers is looked up, while retention takes what stood behind it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from handler.coordination.kept_places import Kept
from handler.partition.fold.fold import Fold
from handler.partition.fold.kept_producers import KnownProducers
from handler.partition.log.formats import KAFKA
from handler.partition.partition import Partition
from handler.pulsar.errors import Unavailable
from handler.pulsar.pulsar_api_pb2 import MessageMetadata
from handler.telemetry import metrics
from handler.wire.error_code import ErrorCode
from tests.support.batches import batch
from tests.support.memory_log import MemoryLog
from tests.support.memory_states import MemoryStates
from tests.support.partitions import append, begin_append, open_partition, read_all
from tests.support.virtual_time import in_virtual_time

PRODUCER = 7


def numbered(sequence: int) -> bytes:
    return batch(b"b%d" % sequence, producer_id=PRODUCER, epoch=0, sequence=sequence)


def another(producer: int) -> bytes:
    return batch(b"x", producer_id=producer, epoch=0, sequence=0)


def other() -> bytes:
    return batch(b"other")


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


async def closed(partition: Partition) -> None:
    for keeping in partition.close():
        await keeping


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


async def taken_in_parts(log: MemoryLog, states: MemoryStates, natives: int) -> tuple[Partition, int, Callable[[], Awaitable[None]]]:
    """A partition whose first ledgers are gone, with what stood behind a kept value. The offset of b4. And what goes on: the other sidecar
    keeps what it knows, and retention takes the ledger of b4 as well.
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
        times += replay._left is not None
        if times == 1 and replay._left is not None:
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
    kept = partition._replay._kept
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
async def test_what_another_keeps_while_it_is_asked_for_marks_is_what_is_gone_on_from(trims: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Very much stands behind the first value. The second one ends behind the window's beginning."""
    monkeypatch.setattr("handler.partition.read.replay.TOO_FAR_ENTRIES", 50)
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
    look_up, looks, go_on = replay._kept.look_up, 0, replay._go_on

    async def looked_up() -> KnownProducers | None:
        nonlocal looks
        looks += 1
        if looks == 2:
            await append(second, batch(b"x", producer_id=8, epoch=0, sequence=0))
            await closed(second)
        return await look_up()

    async def gone_on(earlier: Fold) -> bool:
        if trims and looks == 2:
            log.trim(gone)
        return await go_on(earlier)

    replay._kept.look_up = looked_up  # type: ignore[method-assign]
    replay._go_on = gone_on  # type: ignore[method-assign]
    await append(partition, batch(b"y", producer_id=9, epoch=0, sequence=0))
    assert looks >= 2
    assert (await append(partition, numbered(4))).base_offset == offset
    await closed(partition)
    await check_recognised(log, states, offset)


# --- by the clock


async def ticking(partition: Partition) -> None:
    while True:
        await asyncio.sleep(1.0)
        partition.tick(asyncio.get_running_loop().time())


async def first_append(partition: Partition, data: bytes) -> None:
    """A partition that was opened and written at the same moment would not know that it was written."""
    await partition.opened()
    await asyncio.sleep(0.001)
    await append(partition, data)


async def five_behind_what_is_gone(log: MemoryLog, states: MemoryStates, natives: int) -> int:
    """A sidecar keeps a value, writes b0 to b4 two ledgers on, and is killed. Retention takes what stands between. The offset of b4."""
    before = open_partition(log, "kafka-sidecar-first", states=states)
    await first_append(before, another(8))
    log.roll()
    for _ in range(5):
        log.write(other())
    log.roll()
    gone = len(log.entries)
    for number in range(5):
        written = await append(before, numbered(number))
    for _ in range(natives):
        log.write(other())
    log.trim(gone)
    return written.base_offset


async def check_retry(partition: Partition, offset: int) -> None:
    """The first idempotent append has the past learnt; then b4 comes again."""
    ticks = asyncio.create_task(ticking(partition))
    assert (await begin_append(partition, another(9), 20)).error is ErrorCode.NONE
    assert (await begin_append(partition, numbered(4), 20)).base_offset == offset
    ticks.cancel()
    await closed(partition)


def when_all_that_is_left_is_read(partition: Partition, do: Callable[[], Awaitable[None]]) -> None:
    replay = partition._replay
    fold_up_to, is_done = replay._fold_up_to, False

    async def up_to(earlier: Fold, *rest: Any) -> int:
        nonlocal is_done
        size = await fold_up_to(earlier, *rest)
        if earlier is replay._left and not is_done:
            is_done = True
            await do()
        return size

    replay._fold_up_to = up_to  # type: ignore[method-assign,assignment]


@pytest.mark.parametrize("seconds", [0.04, 3.0], ids=["a broken connection", "a broker that restarts"])
def test_what_was_read_of_all_that_is_left_is_not_lost_when_nobody_tells_what_is_kept(seconds: float) -> None:
    """Retention moves on meanwhile."""

    async def play() -> None:
        log, states = MemoryLog(), MemoryStates()
        offset = await five_behind_what_is_gone(log, states, 200)
        partition = open_partition(log, "kafka-sidecar-a", states=states)
        assert await partition.opened() is ErrorCode.NONE
        log.roll()
        for _ in range(5):
            log.write(other())
        await partition.confirmed_end()

        async def fail() -> None:
            loop = asyncio.get_running_loop()
            states.is_away = True
            loop.call_later(seconds, setattr, states, "is_away", False)
            loop.call_later(seconds / 2, log.trim, len(log.entries) - 5)

        when_all_that_is_left_is_read(partition, fail)
        await check_retry(partition, offset)

    in_virtual_time(play())


def test_what_was_read_of_all_that_is_left_counts_more_than_a_value_that_began_later() -> None:
    """Another sidecar opens the partition after the next step of retention, is done sooner, and keeps what it has read."""

    async def play() -> None:
        log, states = MemoryLog(), MemoryStates()
        offset = await five_behind_what_is_gone(log, states, 50)
        log.roll()
        gone = len(log.entries)
        for _ in range(500):
            log.write(other())
        log.roll()
        for _ in range(100):
            log.write(other())
        partition = open_partition(log, "kafka-sidecar-a", states=states)
        assert await partition.opened() is ErrorCode.NONE

        async def another_does() -> None:
            log.trim(gone)
            sidecar = open_partition(log, "kafka-sidecar-c", states=states)
            await first_append(sidecar, another(10))
            await closed(sidecar)

        when_all_that_is_left_is_read(partition, another_does)
        await check_retry(partition, offset)

    in_virtual_time(play())


class StoresLate(MemoryStates):
    """What is being stored hangs, and lands when it may."""

    def __init__(self) -> None:
        super().__init__()
        self.may_land = asyncio.Event()
        self.may_land.set()
        self.look_is_away = False

    async def names(self, prefix: bytes) -> list[bytes]:
        if self.look_is_away:
            raise Unavailable("no broker")
        return await super().names(prefix)

    async def store(self, key: bytes, value: bytes) -> None:
        await self.may_land.wait()
        await super().store(key, value)


def test_what_the_old_sidecar_keeps_while_all_that_is_left_is_read_counts_though_retention_takes_its_place() -> None:
    """Its value and what was read since know all."""

    async def play() -> None:
        log, states = MemoryLog(), StoresLate()
        before = open_partition(log, "kafka-sidecar-first", states=states)
        await first_append(before, other())
        await append(before, numbered(0))
        log.roll()
        for number in range(1, 5):
            written = await append(before, numbered(number))
        log.roll()
        gone = len(log.entries)
        for _ in range(10):
            log.write(other())
        await before.confirmed_end()
        states.may_land.clear()
        closing = asyncio.gather(*before.close())
        for _ in range(20):
            log.write(other())
        log.roll()
        end_of_value = len(log.entries)
        for _ in range(300):
            log.write(other())
        log.trim(gone)
        partition = open_partition(log, "kafka-sidecar-a", states=states)
        assert await partition.opened() is ErrorCode.NONE

        async def lands() -> None:
            states.may_land.set()
            await closing
            log.trim(end_of_value)

        when_all_that_is_left_is_read(partition, lands)
        await check_retry(partition, written.base_offset)

    in_virtual_time(play())


@pytest.mark.parametrize("lands_late", [False, True])
def test_what_the_old_sidecar_keeps_meanwhile_tells_how_what_is_left_is_judged(lands_late: bool) -> None:
    """A sidecar that stood still wrote b2 once more, behind b4: every reader hides it. What is left begins with that copy."""

    async def play() -> None:
        log, states = MemoryLog(), StoresLate()
        before = open_partition(log, "kafka-sidecar-first", states=states)
        await first_append(before, another(8))
        log.roll()
        written = {number: await append(before, numbered(number)) for number in range(2)}
        stood_still = open_partition(log, "kafka-sidecar-s", states=states)
        await first_append(stood_still, another(11))
        log.hold_sends = True
        copy = begin_append(stood_still, numbered(2), 5)
        while not log.held:  # noqa: ASYNC110
            await asyncio.sleep(0)
        log.hold_sends = False
        written |= {number: await append(before, numbered(number)) for number in range(2, 5)}
        log.roll()
        gone = len(log.entries)
        log.let_go()
        await copy
        await before.confirmed_end()
        states.may_land.clear()
        closing = asyncio.gather(*before.close())
        await asyncio.sleep(0.01)
        for _ in range(200):
            log.write(other())
        log.trim(gone)
        partition = open_partition(log, "kafka-sidecar-a", states=states)
        assert await partition.opened() is ErrorCode.NONE

        async def land() -> None:
            states.may_land.set()
            await closing

        if lands_late:
            when_all_that_is_left_is_read(partition, land)
        else:
            await land()
        ticks = asyncio.create_task(ticking(partition))
        assert (await begin_append(partition, another(9), 20)).error is ErrorCode.NONE
        for number in (3, 4):
            assert (await begin_append(partition, numbered(number), 20)).base_offset == written[number].base_offset
        assert (await begin_append(partition, numbered(5), 20)).error is ErrorCode.NONE
        ticks.cancel()
        await closed(partition)

    in_virtual_time(play())


def test_a_log_that_is_emptied_while_it_is_looked_once_more_takes_appends() -> None:
    """The value that is found goes on from nothing that is there."""

    async def play() -> None:
        log, states = MemoryLog(), StoresLate()
        before = open_partition(log, "kafka-sidecar-first", states=states)
        await first_append(before, another(8))
        log.roll()
        for number in range(5):
            await append(before, numbered(number))
        await before.confirmed_end()
        states.may_land.clear()
        closing = asyncio.gather(*before.close())
        await asyncio.sleep(0.01)
        for _ in range(2):
            for _ in range(10):
                log.write(other())
            log.roll()
        gone = len(log.entries)
        for _ in range(300):
            log.write(other())
        log.trim(gone)
        partition = open_partition(log, "kafka-sidecar-a", states=states)
        assert await partition.opened() is ErrorCode.NONE

        async def lands_and_all_is_taken() -> None:
            states.may_land.set()
            await closing
            log.roll()
            log.trim(len(log.entries))

        when_all_that_is_left_is_read(partition, lands_and_all_is_taken)
        ticks = asyncio.create_task(ticking(partition))
        assert (await begin_append(partition, another(9), 30)).error is ErrorCode.NONE
        ticks.cancel()
        await closed(partition)

    in_virtual_time(play())


async def five_whose_value_lands_later(log: MemoryLog, states: StoresLate, between: int, markers: int, natives: int) -> tuple[int, Any]:
    """The old sidecar has written b0 to b4 and closes; its last value hangs. Retention takes all that it has written. The offset of b4."""
    before = open_partition(log, "kafka-sidecar-first", states=states)
    await first_append(before, another(8))
    log.roll()
    for _ in range(between):
        log.write(other())
    for number in range(5):
        written = await append(before, numbered(number))
    await before.confirmed_end()
    log.roll()
    gone = len(log.entries)
    states.may_land.clear()
    closing = asyncio.gather(*before.close())
    await asyncio.sleep(0.01)
    for _ in range(markers):
        log.mark()
    for _ in range(natives):
        log.write(other())
    log.trim(gone)
    return written.base_offset, closing


@pytest.mark.parametrize("markers", [0, 70, 100])
def test_the_second_look_is_made_also_where_markers_alone_are_left(markers: int) -> None:
    async def play() -> None:
        log, states = MemoryLog(), StoresLate()
        offset, closing = await five_whose_value_lands_later(log, states, 5, markers, 30 if markers else 200)
        partition = open_partition(log, "kafka-sidecar-a", states=states)
        assert await partition.opened() is ErrorCode.NONE

        async def land() -> None:
            states.may_land.set()
            await closing

        when_all_that_is_left_is_read(partition, land)
        await check_retry(partition, offset)

    in_virtual_time(play())


@pytest.mark.parametrize("seconds", [0.5, 2.9])
def test_a_gap_of_markers_does_not_take_the_place_of_the_second_look(seconds: float) -> None:
    """What others keep can't be told for a while. Meanwhile the gap is read, and the old sidecar's value lands."""

    async def play() -> None:
        log, states = MemoryLog(), StoresLate()
        offset, closing = await five_whose_value_lands_later(log, states, 0, 0, 200)
        partition = open_partition(log, "kafka-sidecar-a", states=states)
        assert await partition.opened() is ErrorCode.NONE
        loop = asyncio.get_running_loop()

        def go_on() -> None:
            log.mark()
            log.roll()
            for _ in range(5):
                log.write(other())

        async def fail() -> None:
            states.look_is_away = True
            loop.call_later(3.0, setattr, states, "look_is_away", False)
            loop.call_later(1.0, go_on)
            loop.call_later(seconds, states.may_land.set)

        async def consume() -> None:
            while True:
                await asyncio.sleep(0.2)
                partition.read(partition.end_offset, 1_000, at_least_one=True, since=loop.time())

        when_all_that_is_left_is_read(partition, fail)
        consuming = asyncio.create_task(consume())
        await check_retry(partition, offset)
        consuming.cancel()
        await closing

    in_virtual_time(play())


def go_on_behind_a_marker(log: MemoryLog) -> None:
    """The offsets have a gap there, and no entry is gone."""
    log.mark()
    log.roll()
    for _ in range(5):
        log.write(other())


async def consuming(partition: Partition) -> None:
    while True:
        await asyncio.sleep(0.2)
        if partition.ended is None:
            partition.tick(asyncio.get_running_loop().time())
            partition.read(partition.end_offset, 1_000, at_least_one=True, since=asyncio.get_running_loop().time())


async def five_in_what_is_left(log: MemoryLog, states: MemoryStates, natives: int) -> dict[int, int]:
    """What is kept is of no use, and the sidecar that wrote b0 to b4 was killed. Their offsets."""
    before = open_partition(log, "kafka-sidecar-first", states=states)
    await first_append(before, another(8))
    log.roll()
    for _ in range(3):
        log.write(other())
    log.roll()
    gone = len(log.entries)
    offsets = {number: (await append(before, numbered(number))).base_offset for number in range(5)}
    for _ in range(natives):
        log.write(other())
    log.trim(gone)
    return offsets


@pytest.mark.parametrize("apart", [0.0, 0.01, 0.5])
@pytest.mark.parametrize("gaps", [1, 2, 3])
def test_gaps_of_markers_lose_nothing_of_what_is_left(gaps: int, apart: float) -> None:
    async def play() -> None:
        log, states = MemoryLog(), MemoryStates()
        offsets = await five_in_what_is_left(log, states, 200)
        partition = open_partition(log, "kafka-sidecar-a", states=states, replay_entries=100)
        assert await partition.opened() is ErrorCode.NONE
        loop = asyncio.get_running_loop()

        async def fail() -> None:
            states.is_away = True
            loop.call_later(3.0, setattr, states, "is_away", False)
            for number in range(gaps):
                loop.call_later(1.0 + apart * number, go_on_behind_a_marker, log)

        when_all_that_is_left_is_read(partition, fail)
        consumer = asyncio.create_task(consuming(partition))
        assert (await begin_append(partition, another(9), 20)).error is ErrorCode.NONE
        for number in (0, 4):
            assert (await begin_append(partition, numbered(number), 20)).base_offset == offsets[number]
        consumer.cancel()
        await closed(partition)

    in_virtual_time(play())


def when_a_fold_begins(partition: Partition, log: MemoryLog, do: Callable[[], None], seconds: float, *, left: bool) -> None:
    """Of all that is left, or of what was kept: from then on reading is slow for a while, and `do` comes in the middle."""
    replay = partition._replay
    fold_up_to, is_begun = replay._fold_up_to, False

    def quick() -> None:
        log.read_delay, log.at_once = 0.0, 10**9

    async def up_to(earlier: Fold, *rest: Any) -> int:
        nonlocal is_begun
        if not is_begun and (earlier is replay._left) is left:
            is_begun = True
            loop = asyncio.get_running_loop()
            log.read_delay, log.at_once = seconds, 20
            loop.call_later(8 * seconds, do)
            loop.call_later(40 * seconds, quick)
        return await fold_up_to(earlier, *rest)

    replay._fold_up_to = up_to  # type: ignore[method-assign,assignment]


@pytest.mark.parametrize("seconds", [0.05, 0.3])
def test_a_gap_of_markers_while_all_that_is_left_is_read_does_not_end_that(seconds: float) -> None:
    async def play() -> None:
        log, states = MemoryLog(), MemoryStates()
        offsets = await five_in_what_is_left(log, states, 400)
        partition = open_partition(log, "kafka-sidecar-a", states=states, replay_entries=100)
        assert await partition.opened() is ErrorCode.NONE
        when_a_fold_begins(partition, log, lambda: go_on_behind_a_marker(log), seconds, left=True)
        consumer = asyncio.create_task(consuming(partition))
        assert (await begin_append(partition, another(9), 20)).error is ErrorCode.NONE
        for number in (0, 4):
            assert (await begin_append(partition, numbered(number), 20)).base_offset == offsets[number]
        consumer.cancel()
        await closed(partition)

    in_virtual_time(play())


def test_a_gap_of_markers_does_not_drop_what_has_read_on_from_a_value() -> None:
    """Retention takes the value's place, which was read before."""

    async def play() -> None:
        log, states = MemoryLog(), MemoryStates()
        before = open_partition(log, "kafka-sidecar-first", states=states)
        await first_append(before, other())
        written = [await append(before, numbered(number)) for number in range(5)][-1]
        log.roll()
        gone = len(log.entries)
        await append(before, another(8))
        await before.confirmed_end()
        await closed(before)
        for _ in range(20):
            log.write(other())
        log.roll()
        place_of_the_value = len(log.entries)
        for _ in range(600):
            log.write(other())
        log.trim(gone)
        partition = open_partition(log, "kafka-sidecar-a", states=states, replay_entries=100)
        assert await partition.opened() is ErrorCode.NONE
        loop = asyncio.get_running_loop()

        def go_on() -> None:
            go_on_behind_a_marker(log)
            loop.call_later(0.1, log.trim, place_of_the_value)

        when_a_fold_begins(partition, log, go_on, 0.05, left=False)
        consumer = asyncio.create_task(consuming(partition))
        await check_retry(partition, written.base_offset)
        consumer.cancel()

    in_virtual_time(play())


def test_a_value_and_what_is_left_are_put_together_also_behind_a_gap_of_markers() -> None:
    """The value ends right before what was left; retention has taken that since it was read."""

    async def play() -> None:
        log, states = MemoryLog(), StoresLate()
        offset, closing = await five_whose_value_lands_later(log, states, 0, 0, 20)
        log.roll()
        gone = len(log.entries)
        for _ in range(200):
            log.write(other())
        partition = open_partition(log, "kafka-sidecar-a", states=states)
        assert await partition.opened() is ErrorCode.NONE
        loop = asyncio.get_running_loop()

        async def fail() -> None:
            states.look_is_away = True
            loop.call_later(3.0, setattr, states, "look_is_away", False)
            loop.call_later(0.5, states.may_land.set)
            loop.call_later(1.0, go_on_behind_a_marker, log)
            loop.call_later(2.0, log.trim, gone)

        when_all_that_is_left_is_read(partition, fail)
        consumer = asyncio.create_task(consuming(partition))
        await check_retry(partition, offset)
        consumer.cancel()
        await closing

    in_virtual_time(play())


def test_a_window_that_is_read_at_the_second_look_is_no_new_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    """The value that is found then is far away, and of no use. What was read of all that is left still counts."""
    monkeypatch.setattr("handler.partition.read.replay.TOO_FAR_ENTRIES", 200)

    async def play() -> None:
        log, states = MemoryLog(), StoresLate()
        before = open_partition(log, "kafka-sidecar-first", states=states)
        await first_append(before, another(8))
        log.roll()
        for _ in range(2):
            log.write(other())
        await append(before, batch(b"x", producer_id=8, epoch=0, sequence=1))
        await before.confirmed_end()
        states.may_land.clear()
        closing = asyncio.gather(*before.close())
        await asyncio.sleep(0.01)
        log.roll()
        log.write(other())
        log.roll()
        gone = len(log.entries)
        keeps_nothing = open_partition(log, "kafka-sidecar-second")
        written = await append(keeps_nothing, numbered(0))
        for _ in range(400):
            log.write(other())
        await append(keeps_nothing, another(12))
        for _ in range(10):
            log.write(other())
        keeps_nothing.close()
        log.trim(gone)
        partition = open_partition(log, "kafka-sidecar-a", states=states, replay_entries=150)
        assert await partition.opened() is ErrorCode.NONE

        async def land() -> None:
            states.may_land.set()
            await closing

        when_all_that_is_left_is_read(partition, land)
        ticks = asyncio.create_task(ticking(partition))
        assert (await begin_append(partition, another(9), 20)).error is ErrorCode.NONE
        assert (await begin_append(partition, numbered(0), 20)).base_offset == written.base_offset
        ticks.cancel()
        await closed(partition)

    in_virtual_time(play())


@pytest.mark.parametrize("marks", [0, 1])
def test_a_gap_of_markers_while_nobody_tells_what_is_kept_loses_nothing_of_what_was_read(marks: int) -> None:
    async def play() -> None:
        log, states = MemoryLog(), MemoryStates()
        offset = await five_behind_what_is_gone(log, states, 0)
        log.roll()
        gone = len(log.entries)
        for _ in range(200):
            log.write(other())
        partition = open_partition(log, "kafka-sidecar-a", states=states)
        assert await partition.opened() is ErrorCode.NONE
        loop = asyncio.get_running_loop()

        def go_on() -> None:
            for _ in range(marks):
                log.mark()
            log.roll()
            for _ in range(5):
                log.write(other())
            loop.call_later(0.5, log.trim, gone)

        async def fail() -> None:
            states.is_away = True
            loop.call_later(3.0, setattr, states, "is_away", False)
            loop.call_later(1.0, go_on)

        async def consume() -> None:
            while True:
                await asyncio.sleep(0.2)
                partition.read(partition.end_offset, 1_000, at_least_one=True, since=loop.time())

        when_all_that_is_left_is_read(partition, fail)
        consuming = asyncio.create_task(consume())
        await check_retry(partition, offset)
        consuming.cancel()

    in_virtual_time(play())


@pytest.mark.parametrize("natives", [0, 200, 1_000])
def test_a_value_counts_that_is_taken_while_the_log_is_read_on_over_it(natives: int) -> None:
    async def play() -> None:
        log, states = MemoryLog(), MemoryStates()
        for _ in range(3):
            log.write(other())
        before = open_partition(log, "kafka-sidecar-b", states=states)
        await first_append(before, other())
        for number in range(5):
            written = await append(before, numbered(number))
        for _ in range(100):
            await append(before, other())
        partition = open_partition(log, "kafka-sidecar-a", states=states)
        assert await partition.opened() is ErrorCode.NONE
        ticks = asyncio.create_task(ticking(partition))
        await asyncio.sleep(20.0)  # nobody consumes, so it reads no more
        ticks.cancel()
        for _ in range(50):
            await append(before, other())
        await closed(before)
        last = log.entries[-1].position
        log.roll()
        gone = len(log.entries)
        for _ in range(natives):
            log.write(other())
        log.roll()
        for _ in range(3):
            log.write(other())
        log.read_delay, log.at_once = 0.1, 50

        async def retention() -> None:
            while partition._fold.last_position is None or partition._fold.last_position <= last:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            log.trim(gone)

        takes = asyncio.create_task(retention())
        await check_retry(partition, written.base_offset)
        takes.cancel()

    in_virtual_time(play())


@pytest.mark.parametrize("was_emptied", [False, True])
def test_a_log_that_is_emptied_before_it_is_read_on_from_its_first_value_takes_appends(was_emptied: bool) -> None:
    """The value was kept when nothing was there, so it has no place to go on from."""

    async def play() -> None:
        log, states = MemoryLog(), MemoryStates()
        if was_emptied:
            log.write(other())
            log.roll()
            log.trim(1)
        await first_append(open_partition(log, "kafka-sidecar-first", states=states), another(8))  # it is killed
        for _ in range(200):
            log.write(other())
        log.roll()
        partition = open_partition(log, "kafka-sidecar-a", states=states)
        assert await partition.opened() is ErrorCode.NONE
        fold_up_to, tries = partition._replay._fold_up_to, 0

        async def fails_at_first(*arguments: Any) -> int:
            nonlocal tries
            tries += 1
            if tries == 1:
                log.trim(len(log.entries))
                raise Unavailable("the topic moves")
            return await fold_up_to(*arguments)

        partition._replay._fold_up_to = fails_at_first  # type: ignore[method-assign,assignment]
        errors = metrics.INTERNAL_ERRORS.labels("replay")._value.get()
        ticks = asyncio.create_task(ticking(partition))
        assert (await begin_append(partition, another(9), 30)).error is ErrorCode.NONE
        assert metrics.INTERNAL_ERRORS.labels("replay")._value.get() == errors
        ticks.cancel()
        await closed(partition)

    in_virtual_time(play())


@pytest.mark.parametrize("natives", [163, 164, 165])
async def test_what_was_kept_of_a_topic_that_was_deleted_says_nothing_of_the_next_with_its_name(natives: int) -> None:
    """Not even where the partition is read from just the offset on at which that value ends."""
    log, states = MemoryLog(), MemoryStates()
    before = open_partition(log, "kafka-sidecar-first", states=states)
    for number in range(100):
        await append(before, numbered(number))
    await closed(before)
    log.make_anew()
    for _ in range(natives):
        log.write(other())
    partition = open_partition(log, "kafka-sidecar-a", states=states)
    await append(partition, another(9))
    assert (await append(partition, numbered(99))).error is ErrorCode.NONE
    assert b"b99" in [value for _, value in await read_all(partition)]
    await closed(partition)


def unreadable(log: MemoryLog) -> None:
    metadata = MessageMetadata(producer_name=b"z", sequence_id=1, publish_time=1)
    metadata.MergeFromString(KAFKA.fields)
    log.append(metadata, 1, b"garbage")


@pytest.mark.parametrize("behind", ["an entry", "an unreadable entry", "nothing"])
@pytest.mark.parametrize("is_idempotent", [False, True])
def test_a_batch_that_retention_takes_before_it_is_read_is_sent_again(is_idempotent: bool, behind: str) -> None:
    """It has its receipt, and nobody can tell its offset."""

    async def play() -> None:
        log = MemoryLog()
        states = MemoryStates()
        partition = open_partition(log, "kafka-sidecar-a", states=states)
        await first_append(partition, another(PRODUCER))
        ticks = asyncio.create_task(ticking(partition))
        await asyncio.sleep(2.0)
        log.read_delay = 0.5
        log.write(other())
        data = batch(b"b", producer_id=PRODUCER, epoch=0, sequence=1) if is_idempotent else other()
        taken = begin_append(partition, data, 30)
        await asyncio.sleep(0.1)
        log.roll()
        gone = len(log.entries)
        if behind != "nothing":
            (unreadable if behind == "an unreadable entry" else lambda log: log.write(other()))(log)
        log.trim(gone)
        assert (await taken).error is ErrorCode.NOT_LEADER_OR_FOLLOWER
        ticks.cancel()
        if partition.ended is not None:  # what its broker has is another log
            partition = open_partition(log, "kafka-sidecar-a", states=states)
        assert (await begin_append(partition, data, 30)).error is ErrorCode.NONE
        await closed(partition)

    in_virtual_time(play())
