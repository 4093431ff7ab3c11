"""What retention has left is read in part, or not judged, when something goes wrong: nothing is concluded that was not
read.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kafka_sidecar.partition.fold.fold import Fold
from kafka_sidecar.partition.follow import replay
from kafka_sidecar.partition.follow.replay import Replay
from kafka_sidecar.pulsar.entry import RawEntry
from kafka_sidecar.pulsar.errors import Unavailable
from kafka_sidecar.pulsar.pulsar_api_pb2 import MessageMetadata
from kafka_sidecar.wire.error_code import ErrorCode
from tests.support.batches import batch
from tests.support.memory_log import MemoryLog
from tests.support.memory_states import MemoryStates
from tests.support.partitions import append, begin_append, open_partition
from tests.support.virtual_time import in_virtual_time
from tests.support.what_is_left import (
    StoresLate,
    another,
    check_retry,
    closed,
    first_append,
    five_in_what_is_left,
    numbered,
    other,
    ticking,
    when_all_that_is_left_is_read,
)


def unreadable_with(log: MemoryLog, messages: int) -> None:
    metadata = MessageMetadata(
        producer_name=b"native",
        sequence_id=0,
        publish_time=1,
        compression=1,
        uncompressed_size=50,
        num_messages_in_batch=messages,
    )
    log.append(metadata, messages, b"\xff" * 40)


def a_fold_begins_with(log: MemoryLog, messages: int) -> int:
    """With an entry that nobody can read, and others behind it. How many entries stand before it."""
    log.roll()
    before = len(log.entries)
    unreadable_with(log, messages)
    for _ in range(63):
        log.write(other())
    return before


def test_a_look_that_fails_is_made_again_where_too_many_batches_wait_for_verdicts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The value judges none of these batches. It still tells of the producer that has written none of what is left."""
    monkeypatch.setattr(replay, "MOST_UNJUDGED", 3)

    async def play() -> None:
        log, states = MemoryLog(), StoresLate()
        before = open_partition(log, "kafka-sidecar-first", states=states)
        await first_append(before, another(8))
        log.roll()
        offsets = [(await append(before, numbered(number))).base_offset for number in range(5)]
        await before.confirmed_end()
        third = open_partition(log, "kafka-sidecar-third", states=MemoryStates())
        await first_append(third, another(12))
        await third.confirmed_end()
        log.hold_sends = True
        late = [begin_append(third, another(20 + number), 20) for number in range(6)]
        while not log.held:  # noqa: ASYNC110
            await asyncio.sleep(0)
        log.hold_sends = False
        await before.confirmed_end()
        log.roll()
        gone = len(log.entries)
        log.let_go()
        for one in late:
            assert (await one).error is ErrorCode.NONE
        await before.confirmed_end()
        states.may_land.clear()
        closing = asyncio.gather(*before.close())
        await asyncio.sleep(0.01)
        for _ in range(300):
            log.write(other())
        log.trim(gone)

        partition = open_partition(log, "kafka-sidecar-a", states=states)
        assert await partition.opened() is ErrorCode.NONE

        async def the_value_lands_and_the_look_fails() -> None:
            states.look_is_away = True
            asyncio.get_running_loop().call_later(3.0, setattr, states, "look_is_away", False)
            states.may_land.set()
            await closing

        when_all_that_is_left_is_read(partition, the_value_lands_and_the_look_fails)
        ticks = asyncio.create_task(ticking(partition))
        assert (await begin_append(partition, another(9), 20)).error is ErrorCode.NONE
        assert (await begin_append(partition, numbered(4), 20)).base_offset == offsets[4]
        ticks.cancel()
        await closed(partition)

    in_virtual_time(play())


@pytest.mark.parametrize("marker", [False, True])
def test_a_value_is_not_taken_over_what_was_read_in_part_and_is_gone(
    monkeypatch: pytest.MonkeyPatch, marker: bool
) -> None:
    """The connection is lost while what is left is read. Retention takes all of it. Then the value comes that ends
    where it began.
    """
    take, taken = Replay._take, 0

    async def play() -> None:
        log, states = MemoryLog(), StoresLate()
        before = open_partition(log, "kafka-sidecar-first", states=states)
        await first_append(before, another(8))
        log.roll()
        for _ in range(3):
            log.write(other())
        for number in range(3):
            await append(before, numbered(number))
        await before.confirmed_end()
        states.may_land.clear()
        closing = asyncio.gather(*before.close())
        await asyncio.sleep(0.01)
        log.roll()
        gone = len(log.entries)
        if marker:
            log.mark()
        third = open_partition(log, "kafka-sidecar-third", states=MemoryStates())
        assert await third.opened() is ErrorCode.NONE
        await asyncio.sleep(0.01)
        for number in range(3, 7):
            await append(third, numbered(number))
        for _ in range(300):
            log.write(other())
        log.trim(gone)

        partition = open_partition(log, "kafka-sidecar-a", states=states)
        assert await partition.opened() is ErrorCode.NONE

        def takes(self: Replay, entry: RawEntry, earlier: object) -> None:
            nonlocal taken
            if earlier is partition._replay._left:
                taken += 1
            if taken == 50:
                taken += 1
                log.roll()
                for _ in range(5):
                    log.write(other())
                log.trim(len(log.entries) - 5)
                states.may_land.set()
                raise Unavailable("the broker restarts")
            take(self, entry, earlier)  # type: ignore[arg-type]

        monkeypatch.setattr(Replay, "_take", takes)
        ticks = asyncio.create_task(ticking(partition))
        assert (await begin_append(partition, another(9), 20)).error is ErrorCode.NONE
        assert taken > 50
        assert (await begin_append(partition, numbered(7), 20)).error is ErrorCode.NONE
        ticks.cancel()
        await closing
        await closed(partition)

    in_virtual_time(play())


@pytest.mark.parametrize("told", [1, 5])
@pytest.mark.parametrize("count", [200, 1])
def test_a_first_entry_that_nobody_can_read_may_say_what_it_likes_of_itself(told: int, count: int) -> None:
    """Another program tells the broker of one message, and the entry's metadata tell of five."""

    async def play() -> None:
        log, states = MemoryLog(), MemoryStates()
        before = open_partition(log, "kafka-sidecar-first", states=states)
        await first_append(before, another(8))
        offsets = [(await append(before, numbered(number))).base_offset for number in range(5)]
        await before.confirmed_end()
        await closed(before)
        for _ in range(100):
            log.write(other())
        for _ in range(count):
            metadata = MessageMetadata(
                producer_name=b"native",
                sequence_id=0,
                publish_time=1,
                compression=1,
                uncompressed_size=50,
                num_messages_in_batch=5,
            )
            log.append(metadata, told, b"\xff" * 40)
        if count == 1:  # the fold begins with it
            for _ in range(63):
                log.write(other())
        partition = open_partition(log, "kafka-sidecar-a", states=states)
        assert await partition.opened() is ErrorCode.NONE
        ticks = asyncio.create_task(ticking(partition))
        assert (await begin_append(partition, another(9), 20)).error is ErrorCode.NONE
        assert (await begin_append(partition, numbered(4), 20)).base_offset == offsets[4]
        ticks.cancel()
        await closed(partition)

    in_virtual_time(play())


@pytest.mark.parametrize("messages", [1, 5])
def test_a_late_value_is_taken_right_before_an_entry_that_nobody_can_read(messages: int) -> None:
    """What is left begins with that entry. Its metadata and the end of the value agree."""

    async def play() -> None:
        log, states = MemoryLog(), StoresLate()
        before = open_partition(log, "kafka-sidecar-first", states=states)
        await first_append(before, another(8))
        log.roll()
        log.write(other())
        offsets = [(await append(before, numbered(number))).base_offset for number in range(5)]
        await before.confirmed_end()
        log.roll()
        gone = len(log.entries)
        states.may_land.clear()
        closing = asyncio.gather(*before.close())
        await asyncio.sleep(0.01)
        unreadable_with(log, messages)
        for _ in range(300):
            log.write(other())
        log.trim(gone)
        partition = open_partition(log, "kafka-sidecar-a", states=states)
        assert await partition.opened() is ErrorCode.NONE

        async def lands() -> None:
            states.may_land.set()
            await closing

        when_all_that_is_left_is_read(partition, lands)
        ticks = asyncio.create_task(ticking(partition))
        assert (await begin_append(partition, another(9), 20)).error is ErrorCode.NONE
        assert (await begin_append(partition, numbered(4), 20)).base_offset == offsets[4]
        ticks.cancel()
        await closing
        await closed(partition)

    in_virtual_time(play())


@pytest.mark.parametrize("messages", [1, 5])
def test_what_was_read_to_its_end_is_not_lost_where_the_fold_began_with_an_entry_that_nobody_can_read(
    messages: int,
) -> None:
    """Retention takes what was read with its last entry."""

    async def play() -> None:
        log, states = MemoryLog(), MemoryStates()
        offsets = await five_in_what_is_left(log, states, 200)
        before = a_fold_begins_with(log, messages)
        partition = open_partition(log, "kafka-sidecar-a", states=states)
        assert await partition.opened() is ErrorCode.NONE
        replay = partition._replay
        take = replay._take

        def take_and_trim(entry: RawEntry, earlier: Fold) -> None:
            take(entry, earlier)
            if earlier is replay._left and entry.position == log.entries[before - 1].position:
                log.trim(before)

        replay._take = take_and_trim  # type: ignore[method-assign]
        await check_retry(partition, offsets[4])
        assert log.trimmed == before

    in_virtual_time(play())


@pytest.mark.parametrize("messages", [1, 5])
def test_a_late_value_is_taken_where_the_fold_began_with_an_entry_that_nobody_can_read(messages: int) -> None:
    """What is left began with a batch of two records, right behind the value. Then retention takes it."""

    async def play() -> None:
        log, states = MemoryLog(), StoresLate()
        before = open_partition(log, "kafka-sidecar-first", states=states)
        await first_append(before, another(8))
        log.roll()
        log.write(other())
        offsets = [(await append(before, numbered(number))).base_offset for number in range(5)]
        await before.confirmed_end()
        log.roll()
        gone = len(log.entries)
        states.may_land.clear()
        closing = asyncio.gather(*before.close())
        await asyncio.sleep(0.01)
        log.write(batch(b"p", b"q"))
        for _ in range(300):
            log.write(other())
        first_of_fold = a_fold_begins_with(log, messages)
        log.trim(gone)
        partition = open_partition(log, "kafka-sidecar-a", states=states)
        assert await partition.opened() is ErrorCode.NONE
        replay = partition._replay
        read_what_is_left = replay._read_what_is_left

        async def read_and_land() -> None:
            await read_what_is_left()
            log.trim(first_of_fold)
            states.may_land.set()
            await closing

        replay._read_what_is_left = read_and_land  # type: ignore[method-assign]
        await check_retry(partition, offsets[4])

    in_virtual_time(play())


def test_what_retention_takes_before_it_is_read_says_nothing_of_a_late_value() -> None:
    """It began right behind that value, and held b3 to b5."""

    async def play() -> None:
        log, states = MemoryLog(), StoresLate()
        before = open_partition(log, "kafka-sidecar-first", states=states)
        await first_append(before, another(8))
        log.roll()
        log.write(other())
        for number in range(3):
            await append(before, numbered(number))
        await before.confirmed_end()
        log.roll()
        gone = len(log.entries)
        states.may_land.clear()
        closing = asyncio.gather(*before.close())
        await asyncio.sleep(0.01)
        log.write(other())
        third = open_partition(log, "kafka-sidecar-third", states=MemoryStates())
        await third.opened()
        await asyncio.sleep(0.01)
        for number in range(3, 6):
            await append(third, numbered(number))
        log.roll()
        first_of_fold = len(log.entries)
        for _ in range(64):
            log.write(other())
        log.trim(gone)
        partition = open_partition(log, "kafka-sidecar-a", states=states)
        assert await partition.opened() is ErrorCode.NONE
        replay = partition._replay
        fold_up_to = replay._fold_up_to

        async def trim_and_fold_up_to(earlier: Fold, *rest: Any) -> int:
            if earlier is replay._left and not states.may_land.is_set():
                log.trim(first_of_fold)
                states.may_land.set()
                await closing
            return await fold_up_to(earlier, *rest)

        replay._fold_up_to = trim_and_fold_up_to  # type: ignore[method-assign,assignment]
        ticks = asyncio.create_task(ticking(partition))
        assert (await begin_append(partition, another(9), 20)).error is ErrorCode.NONE
        assert states.may_land.is_set()
        assert (await begin_append(partition, numbered(6), 20)).error is ErrorCode.NONE
        ticks.cancel()
        await closed(partition)

    in_virtual_time(play())
