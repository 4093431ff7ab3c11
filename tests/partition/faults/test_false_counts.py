"""An entry says that it holds more messages than the broker has counted. So it seems to begin before the end of what is
known: that hides no gap before it, and nothing that waits before it.
"""

from __future__ import annotations

import asyncio

import pytest

from kafka_sidecar.partition.partition import Partition
from kafka_sidecar.pulsar.pulsar_api_pb2 import MessageMetadata
from kafka_sidecar.wire.error_code import ErrorCode
from tests.support.memory_log import MemoryLog
from tests.support.memory_states import MemoryStates
from tests.support.partitions import append, begin_append, fetch, open_partition
from tests.support.records import records_in
from tests.support.virtual_time import in_virtual_time
from tests.support.what_is_left import (
    StoresLate,
    another,
    check_retry,
    closed,
    first_append,
    numbered,
    other,
    ticking,
    when_all_that_is_left_is_read,
)

AN_EMPTY_MESSAGE = b"\0\0\0\x02\x18\0"  # the size of its metadata, which say that its payload has none


@pytest.fixture(params=[True, False], ids=["readable", "unreadable"])
def is_readable(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


def native(log: MemoryLog, messages: int, *, is_readable: bool) -> None:
    """Of which the broker was told that it holds one message."""
    metadata = MessageMetadata(producer_name=b"native", sequence_id=0, publish_time=1, num_messages_in_batch=messages)
    if not is_readable:
        metadata.compression, metadata.uncompressed_size = 1, 50
    log.append(metadata, 1, AN_EMPTY_MESSAGE * messages if is_readable else b"\xff" * 40)


async def five_are_kept(log: MemoryLog, states: MemoryStates) -> Partition:
    partition = open_partition(log, "kafka-sidecar-first", states=states)
    await first_append(partition, another(8))
    for number in range(5):
        await append(partition, numbered(number))
    partition.tick(asyncio.get_running_loop().time() + 100)
    await asyncio.sleep(0.1)
    return partition


@pytest.mark.parametrize("messages", [1, 20])
def test_what_waits_behind_a_gap_is_not_overtaken(messages: int, is_readable: bool) -> None:
    """A marker of Pulsar's makes the gap: batches behind it are held until the broker has said so."""

    async def play() -> None:
        log, states = MemoryLog(), MemoryStates()
        killed = await five_are_kept(log, states)
        log.mark()
        log.roll()
        offsets = [(await append(killed, numbered(number))).base_offset for number in range(5, 8)]
        native(log, messages, is_readable=is_readable)
        log.write(other())

        partition = open_partition(log, "kafka-sidecar-a", states=states)
        assert await partition.opened() is ErrorCode.NONE
        shown = list(records_in((await fetch(partition, offsets[0])).parts))
        assert shown[:3] == list(zip(offsets, (b"b5", b"b6", b"b7"), strict=True))
        ticks = asyncio.create_task(ticking(partition))
        assert (await begin_append(partition, numbered(7), 20)).base_offset == offsets[2]
        assert (await begin_append(partition, numbered(8), 20)).error is ErrorCode.NONE
        ticks.cancel()
        await closed(partition)

    in_virtual_time(play())


@pytest.mark.parametrize("messages", [1, 1_000])
def test_a_tail_notices_what_retention_has_taken(messages: int, is_readable: bool) -> None:
    """Another sidecar has written b5 there, and has kept what it knew."""

    async def play() -> None:
        log, states = MemoryLog(), MemoryStates()
        idle = await five_are_kept(log, states)
        ticks = asyncio.create_task(ticking(idle))
        await asyncio.sleep(70.0)
        other_sidecar = open_partition(log, "kafka-sidecar-b", states=states)
        await other_sidecar.opened()
        await asyncio.sleep(0.01)
        log.roll()
        written = await append(other_sidecar, numbered(5))
        await closed(other_sidecar)
        log.roll()
        gone = len(log.entries)
        native(log, messages, is_readable=is_readable)
        log.write(other())
        log.trim(gone)

        assert (await begin_append(idle, numbered(5), 20)).error is ErrorCode.NOT_LEADER_OR_FOLLOWER
        ticks.cancel()
        again = open_partition(log, "kafka-sidecar-a", states=states)
        await again.opened()
        assert (await begin_append(again, numbered(5), 20)).base_offset == written.base_offset
        await closed(again)

    in_virtual_time(play())


@pytest.mark.parametrize("messages", [1, 1_000])
def test_what_was_kept_is_not_taken_over_a_gap(messages: int, is_readable: bool) -> None:
    """b5 to b9 were acknowledged, and are gone. So the producer may go on anywhere."""

    async def play() -> None:
        log, states = MemoryLog(), MemoryStates()
        killed = await five_are_kept(log, states)
        log.roll()
        for number in range(5, 10):
            await append(killed, numbered(number))
        log.roll()
        gone = len(log.entries)
        native(log, messages, is_readable=is_readable)
        for _ in range(200):
            log.write(other())
        log.trim(gone)

        partition = open_partition(log, "kafka-sidecar-a", states=states)
        assert await partition.opened() is ErrorCode.NONE
        ticks = asyncio.create_task(ticking(partition))
        assert (await begin_append(partition, another(9), 20)).error is ErrorCode.NONE
        assert (await begin_append(partition, numbered(10), 20)).error is ErrorCode.NONE
        ticks.cancel()
        await closed(partition)

    in_virtual_time(play())


@pytest.mark.parametrize("behind", [0, 10, 200])
@pytest.mark.parametrize("is_late", [True, False], ids=["stored late", "stored in time"])
@pytest.mark.parametrize("messages", [1, 3, 20])
def test_what_was_kept_is_taken_right_before_such_an_entry(
    messages: int, is_late: bool, behind: int, is_readable: bool
) -> None:
    """What is left begins with it. Where it begins only its metadata say, and what was kept ends behind that."""

    async def play() -> None:
        log, states = MemoryLog(), StoresLate()
        for _ in range(30):
            log.write(other())
        before = open_partition(log, "kafka-sidecar-first", states=states)
        await first_append(before, another(8))
        log.roll()
        for number in range(5):
            written = await append(before, numbered(number))
        await before.confirmed_end()
        log.roll()
        gone = len(log.entries)
        if is_late:
            states.may_land.clear()
        closing = asyncio.gather(*before.close())
        await asyncio.sleep(0.01)
        native(log, messages, is_readable=is_readable)
        for _ in range(behind):
            log.write(other())
        log.trim(gone)
        partition = open_partition(log, "kafka-sidecar-a", states=states)
        assert await partition.opened() is ErrorCode.NONE

        async def lands() -> None:
            states.may_land.set()
            await closing

        when_all_that_is_left_is_read(partition, lands)
        if is_late and behind < 200:  # then nothing is left that the partition has not read by itself
            await lands()
        await check_retry(partition, written.base_offset)
        await closing

    in_virtual_time(play())
