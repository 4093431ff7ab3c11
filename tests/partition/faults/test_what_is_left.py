"""All that retention has left is read, and what others keep is looked up once more. Nothing is written twice, whatever
comes meanwhile.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import pytest

from kafka_sidecar.partition.fold.fold import Fold
from kafka_sidecar.pulsar.entry import LogStats
from kafka_sidecar.pulsar.errors import Unavailable
from kafka_sidecar.telemetry import metrics
from kafka_sidecar.wire.error_code import ErrorCode
from tests.support.batches import batch
from tests.support.memory_log import MemoryLog
from tests.support.memory_states import MemoryStates
from tests.support.partitions import append, begin_append, open_partition, read_all
from tests.support.virtual_time import in_virtual_time
from tests.support.what_is_left import (
    PRODUCER,
    StoresLate,
    another,
    check_retry,
    closed,
    consuming,
    first_append,
    five_behind_what_is_gone,
    five_in_what_is_left,
    five_whose_value_lands_later,
    go_on_behind_a_marker,
    numbered,
    other,
    ticking,
    unreadable,
    when_a_fold_begins,
    when_all_that_is_left_is_read,
)


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
    """Another sidecar opens the partition after the next step of retention, is done sooner, and keeps what it has
    read.
    """

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
    """A sidecar that stood still wrote b2 once more, behind b4: every reader hides it. What is left begins with that
    copy.
    """

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

        async def fail() -> None:
            states.look_is_away = True
            loop.call_later(3.0, setattr, states, "look_is_away", False)
            loop.call_later(1.0, go_on_behind_a_marker, log)
            loop.call_later(seconds, states.may_land.set)

        when_all_that_is_left_is_read(partition, fail)
        consumer = asyncio.create_task(consuming(partition))
        await check_retry(partition, offset)
        consumer.cancel()
        await closing

    in_virtual_time(play())


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
    monkeypatch.setattr("kafka_sidecar.partition.follow.replay.TOO_FAR_ENTRIES", 200)

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

        when_all_that_is_left_is_read(partition, fail)
        consumer = asyncio.create_task(consuming(partition))
        await check_retry(partition, offset)
        consumer.cancel()

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


def test_a_gap_of_markers_while_the_broker_is_asked_what_is_left_is_noticed() -> None:
    """What stood between the old beginning and the gap is read as well."""

    async def play() -> None:
        log, states = MemoryLog(), MemoryStates()
        before = open_partition(log, "kafka-sidecar-first", states=states)
        await first_append(before, another(8))
        log.roll()
        for _ in range(3):
            log.write(other())
        log.roll()
        gone = len(log.entries)
        for _ in range(450):
            log.write(other())
        log.trim(gone)
        partition = open_partition(log, "kafka-sidecar-a", states=states, replay_entries=100)
        assert await partition.opened() is ErrorCode.NONE
        consumer = asyncio.create_task(consuming(partition))
        await asyncio.sleep(1.0)
        await closed(before)
        elsewhere = open_partition(log, "kafka-sidecar-elsewhere", states=MemoryStates())  # what it keeps is lost
        offsets = {number: (await append(elsewhere, numbered(number))).base_offset for number in range(5)}
        for _ in range(5):
            log.write(other())
        await asyncio.sleep(1.0)
        replay, asked = partition._replay, log.stats
        fold_all, is_asked = replay._fold_all_that_is_left, False

        async def slow_stats() -> LogStats:
            nonlocal is_asked
            if replay._was_trimmed and not is_asked:
                is_asked = True
                asyncio.get_running_loop().call_later(0.25, go_on_behind_a_marker, log)
                await asyncio.sleep(0.5)
            return await asked()

        async def folds() -> bool:
            log.stats = slow_stats  # type: ignore[method-assign]
            return await fold_all()

        replay._fold_all_that_is_left = folds  # type: ignore[method-assign]
        assert (await begin_append(partition, another(9), 20)).error is ErrorCode.NONE
        assert is_asked
        for number in (4, 3):
            assert (await begin_append(partition, numbered(number), 20)).base_offset == offsets[number]
        consumer.cancel()
        await closed(partition)

    in_virtual_time(play())


def of_another(sequence: int) -> bytes:
    return batch(b"c%d" % sequence, producer_id=12, epoch=0, sequence=sequence)


@pytest.mark.parametrize("kind", ["what is left", "a value"])
def test_what_a_partition_has_read_is_not_read_again_behind_a_marker(kind: str) -> None:
    """A marker of Pulsar's comes while it is read what stood before. Then retention takes what the partition has read
    itself.
    """

    async def play() -> None:
        log, states = MemoryLog(), MemoryStates()
        offsets = await five_in_what_is_left(log, states, 300)
        if kind == "a value":
            before = open_partition(log, "kafka-sidecar-second", states=states)
            await first_append(before, another(10))
            await closed(before)
            for _ in range(300):
                log.write(other())
        partition = open_partition(log, "kafka-sidecar-a", states=states)
        assert await partition.opened() is ErrorCode.NONE
        elsewhere = open_partition(log, "kafka-sidecar-elsewhere", states=MemoryStates())  # what it keeps is lost
        later = {
            number: (await append(elsewhere, batch(b"c", producer_id=12, epoch=0, sequence=number))).base_offset
            for number in range(5)
        }
        log.roll()
        gone = len(log.entries)
        for _ in range(5):
            log.write(other())
        consumer = asyncio.create_task(consuming(partition))
        await asyncio.sleep(1.0)
        when_a_fold_begins(partition, log, partial(go_on_behind_a_marker, log), 0.02, left=kind == "what is left")
        replay, fold_up_to, is_trimmed = partition._replay, partition._replay._fold_up_to, False

        async def up_to(earlier: Fold, *rest: Any) -> int:
            nonlocal is_trimmed
            size = await fold_up_to(earlier, *rest)
            if not is_trimmed:
                is_trimmed = True
                log.trim(gone)
            return size

        replay._fold_up_to = up_to  # type: ignore[method-assign,assignment]
        assert (await begin_append(partition, another(9), 20)).error is ErrorCode.NONE
        assert is_trimmed
        assert (await begin_append(partition, numbered(4), 20)).base_offset == offsets[4]
        for number in (4, 3):
            assert (await begin_append(partition, of_another(number), 20)).base_offset == later[number]
        consumer.cancel()
        await closed(partition)

    in_virtual_time(play())


@pytest.mark.parametrize(
    ("older", "marked"),
    [(False, False), (True, False), (True, True)],
    ids=["last ledger", "older ledger", "behind a marker"],
)
def test_a_value_and_what_is_left_are_put_together_also_while_the_value_is_read_on_from(
    older: bool, marked: bool
) -> None:
    """The value has been read on from for some entries when retention takes its place, and the entries behind it."""

    async def play() -> None:
        log, states = MemoryLog(), StoresLate()
        before = open_partition(log, "kafka-sidecar-first", states=states)
        await first_append(before, another(8))
        log.roll()
        for _ in range(3):
            log.write(other())
        offsets = [(await append(before, numbered(number))).base_offset for number in range(5)]
        log.roll()
        gone = len(log.entries)
        for _ in range(20):
            log.write(other())
        await before.confirmed_end()
        states.may_land.clear()
        closing = asyncio.gather(*before.close())
        await asyncio.sleep(0.01)
        for _ in range(300):
            log.write(other())
        taken = len(log.entries)
        if older:
            log.roll()
            for _ in range(300):
                log.write(other())
        log.trim(gone)
        partition = open_partition(log, "kafka-sidecar-a", states=states)
        assert await partition.opened() is ErrorCode.NONE
        consumer = asyncio.create_task(consuming(partition))
        await asyncio.sleep(1.0)

        async def lands() -> None:
            states.may_land.set()
            await closing

        def goes() -> None:
            if marked:
                log.mark()
            log.roll()
            end = len(log.entries)
            for _ in range(5):
                log.write(other())
            log.trim(taken if older else end)

        when_all_that_is_left_is_read(partition, lands)
        replay, fold_up_to, is_slow = partition._replay, partition._replay._fold_up_to, False

        async def up_to(earlier: Fold, *rest: Any) -> int:
            nonlocal is_slow
            if not is_slow and replay._has_read_left:
                is_slow = True
                log.read_delay, log.at_once = 0.05, 20
                asyncio.get_running_loop().call_later(0.02, goes)
            return await fold_up_to(earlier, *rest)

        replay._fold_up_to = up_to  # type: ignore[method-assign,assignment]
        assert (await begin_append(partition, another(9), 20)).error is ErrorCode.NONE
        for number in (4, 3):
            assert (await begin_append(partition, numbered(number), 20)).base_offset == offsets[number]
        assert is_slow
        consumer.cancel()
        await closed(partition)

    in_virtual_time(play())


@pytest.mark.parametrize("begins_with", ["a late copy", "a marker"])
@pytest.mark.parametrize("trims", [False, True])
def test_what_is_left_and_a_value_that_has_come_behind_its_beginning_tell_the_same_in_any_order(
    begins_with: str, trims: bool
) -> None:
    """Retention takes what is left, and where the value ends, while the value is read on from. Both are put together
    then.
    """

    async def play() -> None:
        log, states = MemoryLog(), StoresLate()
        before = open_partition(log, "kafka-sidecar-first", states=states)
        await first_append(before, another(8))
        log.roll()
        offsets = [(await append(before, numbered(number))).base_offset for number in range(2)]
        stood_still = open_partition(log, "kafka-sidecar-slow", states=states)
        await first_append(stood_still, another(11))
        log.hold_sends = begins_with == "a late copy"
        if log.hold_sends:
            begin_append(stood_still, numbered(2), 20)
            while not log.held:  # noqa: ASYNC110
                await asyncio.sleep(0)
            log.hold_sends = False
        offsets += [(await append(before, numbered(number))).base_offset for number in range(2, 5)]
        if begins_with == "a marker":
            await before.confirmed_end()
        log.roll()
        gone = len(log.entries)
        if begins_with == "a late copy":
            log.let_go()
            for _ in range(30):
                log.write(other())
            await before.confirmed_end()
        states.may_land.clear()
        closing = asyncio.gather(*before.close())
        await asyncio.sleep(0.01)
        if begins_with == "a marker":
            log.mark()
        for _ in range(40):
            log.write(other())
        log.roll()
        taken = len(log.entries)
        for _ in range(200):
            log.write(other())
        log.trim(gone)
        partition = open_partition(log, "kafka-sidecar-a", states=states)
        assert await partition.opened() is ErrorCode.NONE
        replay, read_on, has_landed = partition._replay, partition._replay._read_on, False

        async def lands() -> None:
            nonlocal has_landed
            states.may_land.set()
            await closing
            has_landed = True

        async def reads_on(earlier: Fold) -> None:
            if has_landed and trims:
                log.read_delay, log.at_once = 0.05, 20
                asyncio.get_running_loop().call_later(0.03, log.trim, taken)
            await read_on(earlier)

        replay._read_on = reads_on  # type: ignore[method-assign]
        when_all_that_is_left_is_read(partition, lands)
        ticks = asyncio.create_task(ticking(partition))
        assert (await begin_append(partition, another(9), 20)).error is ErrorCode.NONE
        assert has_landed
        for number in (3, 4):
            assert (await begin_append(partition, numbered(number), 20)).base_offset == offsets[number]
        assert (await begin_append(partition, numbered(5), 20)).error is ErrorCode.NONE
        ticks.cancel()
        await closed(partition)

    in_virtual_time(play())
