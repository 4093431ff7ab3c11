"""Retention has taken all of a log, and producers go on in it."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from kafka_sidecar.partition.fold.extent import Extent
from kafka_sidecar.partition.partition import Partition
from kafka_sidecar.partition.snapshots.snapshot_values import extent_in
from kafka_sidecar.pulsar.entry import Position
from kafka_sidecar.pulsar.errors import Unavailable
from kafka_sidecar.wire.error_code import ErrorCode
from tests.support.batches import batch
from tests.support.memory_log import MemoryLog
from tests.support.memory_states import MemoryStates
from tests.support.partitions import append, begin_append, open_partition

ENTRIES = 300


def numbered(sequence: int) -> bytes:
    return batch(b"b%d" % sequence, producer_id=7, epoch=0, sequence=sequence)


async def emptied() -> MemoryLog:
    log = MemoryLog()
    partition = open_partition(log, "kafka-sidecar-before")
    await append(partition, batch(b"old"))
    partition.close()
    log.roll()
    log.trim(1)
    return log


async def closed(partition: Partition) -> None:
    for keeping in partition.close():
        await keeping


async def left_unread(log: MemoryLog, states: MemoryStates, *, goes_on: bool) -> tuple[Partition, int]:
    """A sidecar has opened the log, and reads no more. Another one writes b0 to b4, and retention takes them. The
    offset of b4.
    """
    unaware = open_partition(log, "kafka-sidecar-a", states=states)
    assert await unaware.opened() is ErrorCode.NONE
    unaware.tick(asyncio.get_running_loop().time() + 20)
    other = open_partition(log, "kafka-sidecar-b", states=states)
    for number in range(5):
        written = await append(other, numbered(number))
    log.roll()
    if goes_on:
        await append(other, batch(b"x", producer_id=8, epoch=0, sequence=0))
    await closed(other)
    log.trim(6)
    return unaware, written.base_offset


@pytest.mark.parametrize("asks", [False, True], ids=["appends at once", "asks for the end before"])
@pytest.mark.parametrize("goes_on", [False, True], ids=["all is taken", "something is left"])
async def test_what_was_written_and_taken_unread_is_known_by_what_others_have_kept(asks: bool, goes_on: bool) -> None:
    log, states = await emptied(), MemoryStates()
    unaware, offset = await left_unread(log, states, goes_on=goes_on)
    if not goes_on:
        plain = open_partition(log, "kafka-sidecar-c", states=states)
        await append(plain, batch(b"plain"))
        await closed(plain)
    if asks:
        with suppress(Unavailable):
            await unaware.confirmed_end()
    while (
        told := await append(unaware, batch(b"y", producer_id=9, epoch=0, sequence=0))
    ).error is ErrorCode.NOT_LEADER_OR_FOLLOWER:
        unaware = open_partition(log, "kafka-sidecar-a2", states=states)
    assert told.error is ErrorCode.NONE
    await closed(unaware)
    fresh = open_partition(log, "kafka-sidecar-fresh", states=states)
    assert (await append(fresh, numbered(4))).base_offset == offset
    await closed(fresh)


@pytest.mark.parametrize("written_since", [False, True])
async def test_a_retry_of_what_was_written_and_taken_unread_is_recognised(written_since: bool) -> None:
    log, states = await emptied(), MemoryStates()
    partition, offset = await left_unread(log, states, goes_on=False)
    if written_since:
        plain = open_partition(log, "kafka-sidecar-c", states=states)
        await append(plain, batch(b"plain"))
        await closed(plain)
    while (told := await append(partition, numbered(4))).error is ErrorCode.NOT_LEADER_OR_FOLLOWER:
        partition = open_partition(log, "kafka-sidecar-a2", states=states)
    assert (told.error, told.base_offset) == (ErrorCode.NONE, offset)
    await closed(partition)


async def test_who_opens_it_next_goes_on_from_what_was_kept_last() -> None:
    """The first that is kept tells of a log that holds nothing. It gives way to what is kept of what was written
    since.
    """
    log, states = await emptied(), MemoryStates()
    written = 0
    for number in range(4):
        partition = open_partition(log, f"kafka-sidecar-{number}", states=states)
        before = log.bytes_read
        assert (await append(partition, numbered(written))).error is ErrorCode.NONE
        entries_read = (log.bytes_read - before) // len(numbered(0))
        assert entries_read < ENTRIES // 2, f"opening {number} reads {entries_read} entries"
        written += 1
        for _ in range(ENTRIES):
            assert (await append(partition, numbered(written))).error is ErrorCode.NONE
            written += 1
        if number == 2:
            log.roll()
        await closed(partition)
        assert len([key for key in states.values if key.startswith(b"producer-states")]) == 1


async def test_what_was_kept_of_an_emptied_log_is_deleted_where_what_followed_is_gone() -> None:
    """It began earlier than what is kept from now on. Each sidecar would find it first, and could not use it."""
    log, states = MemoryLog(), MemoryStates()
    before = open_partition(log, "kafka-sidecar-before", states=states)
    await append(before, numbered(0))
    states.is_away = True
    log.roll()
    await append(before, numbered(1))
    await closed(before)
    log.roll()
    log.trim(2)
    states.is_away = False
    partition = open_partition(log, "kafka-sidecar-a", states=states)
    assert (await append(partition, numbered(2))).error is ErrorCode.NONE
    await closed(partition)
    assert len([key for key in states.values if key.startswith(b"producer-states")]) == 1


@pytest.mark.parametrize("knows", [False, True], ids=["nothing asked before", "recognised before"])
@pytest.mark.parametrize("by", ["the sidecar", "a native producer", "whom a fresh sidecar has not seen"])
async def test_a_marker_behind_what_retention_took_hides_nothing_that_was_kept(by: str, knows: bool) -> None:
    """It takes an index, and no reader is given it. Nothing else stands before the next entry."""
    log, states = MemoryLog(), MemoryStates()
    before = open_partition(log, "kafka-sidecar-before", states=states)
    for number in range(5):
        written = await append(before, numbered(number))
    await closed(before)
    log.roll()
    log.trim(5)
    partition = open_partition(log, "kafka-sidecar-a", states=states)
    assert await partition.opened() is ErrorCode.NONE
    if knows:
        assert await append(partition, numbered(4)) == written
    log.mark()
    if by == "the sidecar":
        assert (await append(partition, batch(b"x", producer_id=8, epoch=0, sequence=0))).error is ErrorCode.NONE
    else:
        log.write(batch(b"native"))
    if by == "whom a fresh sidecar has not seen":
        await closed(partition)
        partition = open_partition(log, "kafka-sidecar-b", states=states)
    await partition.confirmed_end()
    assert (await append(partition, numbered(4))).base_offset == written.base_offset
    await closed(partition)


async def test_a_gap_while_it_is_asked_whether_a_marker_stands_first_loses_nothing() -> None:
    """What is learnt then has to be of what stands before the gap and behind it."""
    log, states = MemoryLog(), MemoryStates()
    before = open_partition(log, "kafka-sidecar-before", states=states)
    await append(before, numbered(0))
    await closed(before)
    log.roll()
    log.trim(1)
    log.mark()
    log.write(batch(b"native"))
    partition = open_partition(log, "kafka-sidecar-a", states=states)
    assert await partition.opened() is ErrorCode.NONE
    partition.tick(asyncio.get_running_loop().time() + 20)  # it reads no more
    index_of, asked, may_answer = log.index_of, asyncio.Event(), asyncio.Event()
    questions = 0

    async def slow(position: Position) -> int | None:
        nonlocal questions
        found = await index_of(position)
        questions += 1
        if questions == 2:  # right before it learns what was kept
            asked.set()
            await may_answer.wait()
        return found

    log.index_of = slow  # type: ignore[method-assign]
    appending = begin_append(partition, batch(b"x", producer_id=8, epoch=0, sequence=0))
    await asked.wait()
    log.index_of = index_of  # type: ignore[method-assign]
    other = open_partition(log, "kafka-sidecar-b", states=states)
    written = await append(other, numbered(1))
    log.roll()
    await append(other, batch(b"y", producer_id=9, epoch=0, sequence=0))
    await closed(other)
    log.trim(len(log.entries) - 1)
    with pytest.raises(Unavailable):
        await partition.read_to_end()
    may_answer.set()
    assert (await appending).error is ErrorCode.NOT_LEADER_OR_FOLLOWER
    partition = open_partition(log, "kafka-sidecar-a2", states=states)
    assert (await append(partition, numbered(1))).base_offset == written.base_offset
    await closed(partition)


async def test_a_marker_before_the_first_entry_takes_nothing_from_what_is_known_at_the_next_ledger() -> None:
    """Nothing is kept anywhere, and more than the window is written. Then a ledger begins with a marker."""
    log = await emptied()
    partition = open_partition(log, "kafka-sidecar-a", replay_entries=20)
    await partition.known_producers()
    log.mark()
    log.roll()
    for number in range(5):
        written = await append(partition, numbered(number))
    for _ in range(100):
        await append(partition, batch(b"plain"))
    log.roll()
    log.mark()
    await append(partition, batch(b"plain"))
    assert (await append(partition, numbered(4))).base_offset == written.base_offset
    partition.close()


async def test_what_was_kept_of_a_window_gives_way_also_where_its_producer_goes_on_in_an_emptied_log() -> None:
    log, states = MemoryLog(), MemoryStates()
    writer = open_partition(log, "kafka-sidecar-w", batches_per_entry=1)
    for _ in range(80):
        await append(writer, batch(b"plain"))
    await append(writer, numbered(0))
    log.hold_sends = True
    sent = [begin_append(writer, numbered(number)) for number in range(1, 6)]
    while len(log.held) < len(sent):  # noqa: ASYNC110
        await asyncio.sleep(0)
    log.hold_sends = False
    log.let_go()
    await asyncio.gather(*sent)
    writer.close()
    for _ in range(66):
        log.write(batch(b"x"))
    window = open_partition(log, "kafka-sidecar-window", states=states, replay_entries=68)
    await append(window, batch(b"y", producer_id=8, epoch=0, sequence=0))
    assert 7 in window._fold.producers.unsure
    await closed(window)
    log.roll()
    log.trim(len(log.entries))
    for number in (6, 7):
        partition = open_partition(log, f"kafka-sidecar-{number}", states=states)
        assert (await append(partition, numbered(number))).error is ErrorCode.NONE
        await closed(partition)
    assert len([key for key in states.values if key.startswith(b"producer-states")]) == 1


async def test_what_was_kept_of_a_topic_that_had_this_name_is_thrown_away_wherever_it_ended() -> None:
    """The topic that has the name now begins with an entry of several records, and the other one had come to its last
    offset.
    """
    states = MemoryStates()
    before = open_partition(MemoryLog(ledger=1), "kafka-sidecar-before", states=states)
    for number in range(14):
        await append(before, numbered(number))
    await closed(before)
    log = MemoryLog(ledger=7)
    writer = open_partition(log, "kafka-sidecar-writer")
    for _ in range(10):
        await append(writer, batch(b"plain"))
    log.roll()
    await append(writer, batch(*[b"plain"] * 5))
    writer.close()
    log.trim(10)
    partition = open_partition(log, "kafka-sidecar-a", states=states)
    assert (await append(partition, numbered(0))).error is ErrorCode.NONE
    await closed(partition)


async def test_a_log_that_begins_with_markers_has_lost_nothing() -> None:
    """It was empty when it was opened. Later values begin where the first one does, so it gives way to them."""
    log, states = MemoryLog(), MemoryStates()
    partition = open_partition(log, "kafka-sidecar-a", states=states)
    assert await partition.opened() is ErrorCode.NONE
    log.hold_sends = True
    first = begin_append(partition, numbered(0))
    while not log.held:  # noqa: ASYNC110
        await asyncio.sleep(0)
    for _ in range(20):
        log.mark()
    log.hold_sends = False
    log.let_go()
    if (await first).error is not ErrorCode.NONE:
        assert (await append(partition, numbered(0))).error is ErrorCode.NONE
    await closed(partition)
    (key,) = [key for key in states.values if key.startswith(b"producer-states")]
    assert extent_in(key) == Extent(None, log.entries[-1].position)
