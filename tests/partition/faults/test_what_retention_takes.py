"""Retention takes what a fold has not read, or what tells how a batch is judged: nothing that was acknowledged is
hidden by that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from kafka_sidecar.partition.log.port import LogReader
from kafka_sidecar.partition.partition import Partition
from kafka_sidecar.partition.write.sender import MAX_ENTRIES_IN_FLIGHT
from kafka_sidecar.pulsar.entry import LogStats, Position
from kafka_sidecar.pulsar.events import ConsumerEvents
from kafka_sidecar.wire.error_code import ErrorCode
from tests.support.batches import batch
from tests.support.memory_log import MemoryLog
from tests.support.memory_states import MemoryStates
from tests.support.partitions import append, begin_append, open_partition, read_all

PRODUCER = 7


def numbered(sequence: int) -> bytes:
    return batch(b"b%d" % sequence, producer_id=PRODUCER, epoch=0, sequence=sequence)


def other() -> bytes:
    return batch(b"other")


def a_failed_add(log: MemoryLog) -> None:
    """As on brokers before 2.10: its index is spent, and a new ledger begins."""
    log.index += 2
    log.roll()


async def in_flight_over_two_ledgers(log: MemoryLog, before: int, behind: int, markers: int = 0) -> list[int]:
    """b0 is the last entry of a ledger; b1 and b2 were on their way together with it, and begin the next. Their
    offsets.
    """
    writer = open_partition(log, "kafka-sidecar-writer")
    for _ in range(before):
        await append(writer, other())
    log.hold_sends = True
    sent = [begin_append(writer, numbered(sequence)) for sequence in range(3)]
    while len(log.held) < len(sent):  # noqa: ASYNC110
        await asyncio.sleep(0)
    first, *others = log.held
    first()
    log.roll()
    for _ in range(markers):
        log.mark()
        log.roll()
    for land in others:
        land()
    log.held, log.hold_sends = [], False
    offsets = []
    for sequence, one in enumerate(sent):
        told = await one
        if told.error is ErrorCode.NOT_LEADER_OR_FOLLOWER:  # it can't be told from a gap, so the past is learnt anew
            told = await append(writer, numbered(sequence))
        offsets.append(told.base_offset)
    for _ in range(behind):
        await append(writer, other())
    writer.close()
    return offsets


def when_it_is_read(log: MemoryLog, who: str, do: Callable[[], None]) -> None:
    """Before a reader of this kind is opened."""
    opened = log.reader

    async def reader(start: Position | None, events: ConsumerEvents) -> LogReader:
        if type(events).__name__ == who:
            do()
        return await opened(start, events)

    log.reader = reader  # type: ignore[method-assign,assignment]


@pytest.mark.parametrize(
    ("who", "behind"),
    [("CatchUpReader", 200), ("TailReader", 10), ("_Queue", 72)],
    ids=["a consumer", "an opening", "a replay"],
)
async def test_what_goes_between_the_question_where_to_begin_and_the_reader_hides_nothing(
    who: str, behind: int
) -> None:
    log = MemoryLog()
    offsets = await in_flight_over_two_ledgers(log, 100, behind)
    when_it_is_read(log, who, lambda: log.trim(offsets[1]))
    partition = open_partition(log, "kafka-sidecar-b", cache=1)
    if who == "_Queue":
        assert (await append(partition, numbered(3))).error is ErrorCode.NONE
    found = dict(await read_all(partition, offsets[1]))
    assert [found[offset] for offset in offsets[1:]] == [b"b1", b"b2"]
    if who != "_Queue":
        assert (await append(partition, numbered(3))).error is ErrorCode.NONE
    partition.close()


async def test_markers_in_between_are_no_beginning() -> None:
    log = MemoryLog()
    offsets = await in_flight_over_two_ledgers(log, 1, 78, markers=1)
    log.trim(2)
    partition = open_partition(log, "kafka-sidecar-b")
    assert (await append(partition, numbered(3))).error is ErrorCode.NONE
    found = dict(await read_all(partition, offsets[1]))
    assert [found[offset] for offset in offsets[1:]] == [b"b1", b"b2"]
    partition.close()


async def test_a_late_first_try_at_the_beginning_does_not_hide_what_came_behind_the_second() -> None:
    log = MemoryLog()
    writer = open_partition(log, "kafka-sidecar-a")
    await append(writer, numbered(0))
    log.hold_sends = True
    second = begin_append(writer, numbered(1), 60)
    while not log.held:  # noqa: ASYNC110
        await asyncio.sleep(0)
    first_try = log.held.pop()
    log.disconnect()
    while not log.held:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    log.let_go()
    log.hold_sends = False
    told = [await second, await append(writer, numbered(2))]
    log.roll()
    log.write(other())
    await writer.confirmed_end()
    log.hold_sends = True
    third = begin_append(writer, numbered(3), 60)
    while not log.held:  # noqa: ASYNC110
        await asyncio.sleep(0)
    first_try()
    log.let_go()
    log.hold_sends = False
    told += [await third, await append(writer, numbered(4))]
    assert [one.base_offset for one in told] == [1, 2, 5, 6]
    writer.close()
    log.trim(3)
    partition = open_partition(log, "kafka-sidecar-b", cache=1)
    found = dict(await read_all(partition, 3))
    assert (found[5], found[6]) == (b"b3", b"b4")
    partition.close()


@pytest.mark.parametrize("sequences", [(0, 1), (1, 2)], ids=["new", "known before"])
@pytest.mark.parametrize("has_markers", [False, True])
@pytest.mark.parametrize("meanwhile", [None, MemoryLog.unload, MemoryLog.crash])
async def test_a_producer_goes_on_in_a_log_that_retention_has_emptied_when_the_first_of_its_batches_is_refused(
    meanwhile: Callable[[MemoryLog], None] | None, has_markers: bool, sequences: tuple[int, int]
) -> None:
    """Nobody knows it, so it may begin anywhere. But what it has sent together begins with the first of it."""
    log = MemoryLog()
    before = open_partition(log, "kafka-sidecar-a")
    await append(before, numbered(0) if sequences[0] else other())
    before.close()
    log.roll()
    if has_markers:
        log.mark()
    log.trim(1)
    partition = open_partition(log, "kafka-sidecar-b", batches_per_entry=1)
    assert await partition.opened() is ErrorCode.NONE
    if meanwhile is not None:
        meanwhile(log)
    log.hold_sends = True
    sent = [begin_append(partition, numbered(sequence)) for sequence in sequences]
    while len(log.held) < len(sent):  # noqa: ASYNC110
        await asyncio.sleep(0)
    log.hold_sends, log.refuse_sends = False, 1
    log.let_go()
    for sequence, one in zip(sequences, sent, strict=True):
        if (await one).error is ErrorCode.NOT_LEADER_OR_FOLLOWER:
            assert (await append(partition, numbered(sequence))).error is ErrorCode.NONE
    late = open_partition(log, "kafka-sidecar-c")
    for reading in (partition, late):
        found = [value for _, value in await read_all(reading, 1 + has_markers) if value is not None]
        assert found == [b"b%d" % sequence for sequence in sequences]
        reading.close()


async def test_what_was_kept_of_an_emptied_log_goes_on_with_its_first_entry() -> None:
    """It was kept before anything was written. Then the broker refused the first batch of a producer alone."""
    log, states = MemoryLog(), MemoryStates()
    before = open_partition(log, "kafka-sidecar-a")
    await append(before, numbered(0))
    before.close()
    log.roll()
    log.trim(1)
    killed = open_partition(log, "kafka-sidecar-b", batches_per_entry=1, states=states)
    assert await killed.opened() is ErrorCode.NONE
    log.hold_sends = True
    sent = [begin_append(killed, numbered(sequence)) for sequence in (1, 2)]
    while len(log.held) < len(sent):  # noqa: ASYNC110
        await asyncio.sleep(0)
    log.hold_sends, log.refuse_sends = False, 1
    log.let_go()
    first, second = [await one for one in sent]
    assert (first.error, second.error) == (ErrorCode.NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    for _ in range(100):
        log.write(other())
    partition = open_partition(log, "kafka-sidecar-c", states=states)
    assert await append(partition, numbered(1)) == first
    assert (await append(partition, numbered(2))).error is ErrorCode.NONE
    assert [value for _, value in await read_all(partition, 1) if value not in (None, b"other")] == [b"b1", b"b2"]
    for one in (killed, partition):
        one.close()


async def test_what_was_sent_together_to_a_log_of_markers_alone_is_read_by_others() -> None:
    """Its writer says that it had read up to the place before the first entry of an empty ledger. No reader can begin
    at that place.
    """
    log = MemoryLog()
    before = open_partition(log, "kafka-sidecar-a")
    await append(before, other())
    before.close()
    log.roll()
    log.mark()
    log.trim(1)
    log.unload()
    partition = open_partition(log, "kafka-sidecar-b", batches_per_entry=1)
    assert await partition.opened() is ErrorCode.NONE
    log.hold_sends = True
    sent = [begin_append(partition, numbered(sequence)) for sequence in range(100)]
    while len(log.held) < MAX_ENTRIES_IN_FLIGHT:  # noqa: ASYNC110
        await asyncio.sleep(0)
    log.hold_sends = False
    log.let_go()
    assert {one.error for one in await asyncio.gather(*sent)} == {ErrorCode.NONE}
    partition.close()
    late = open_partition(log, "kafka-sidecar-c", cache=1)
    assert await read_all(late, 101) == [(101, b"b99")]
    late.close()


@pytest.mark.parametrize("gap", [False, True])
async def test_an_append_that_is_held_is_not_judged_by_a_fold_that_begins_again(gap: bool) -> None:
    log, states = MemoryLog(), MemoryStates()
    log.write(other())
    partition = open_partition(log, "kafka-sidecar-a", states=states)
    offsets = [(await append(partition, numbered(sequence))).base_offset for sequence in range(3)]
    partition._tail.stop()
    partition._appender._sender.used_at -= 10  # so the log is read to its end first
    if gap:
        a_failed_add(log)
    log.write(other())
    assert (await append(partition, numbered(2))).base_offset == offsets[2]
    partition.close()


@pytest.mark.parametrize("gap", [False, True])
async def test_what_is_sent_again_says_what_was_known_before_the_gap(gap: bool) -> None:
    log, states = MemoryLog(), MemoryStates()
    log.write(other())
    mine, theirs = (open_partition(log, f"kafka-sidecar-{name}", states=states) for name in "ab")
    for sequence in range(5):
        await append(mine, numbered(sequence))
    await append(theirs, other())
    log.hold_sends = True
    lost = begin_append(mine, numbered(5), 20)
    while not log.held:  # noqa: ASYNC110
        await asyncio.sleep(0)
    log.held.clear()
    log.hold_sends = False
    acknowledged = [await append(theirs, numbered(sequence)) for sequence in (5, 6)]
    if gap:
        a_failed_add(log)
    await append(theirs, other())
    log.disconnect()
    assert await lost == acknowledged[0]
    assert (await append(theirs, numbered(7))).error is ErrorCode.NONE
    for partition in (mine, theirs):
        partition.close()
    reader = open_partition(log, "kafka-sidecar-reader")
    values = [value for _, value in await read_all(reader) if value and value.startswith(b"b")]
    assert values == [b"b%d" % sequence for sequence in range(8)]
    reader.close()


async def test_what_waits_for_an_entry_is_known_behind_a_gap() -> None:
    """It was judged by what was known before. Its client has written it through another sidecar meanwhile."""
    log = MemoryLog()
    partition = open_partition(log, "kafka-sidecar-a")
    for sequence in range(3):
        await append(partition, numbered(sequence))
    log.hold_sends = True
    sent = [begin_append(partition, other()) for _ in range(MAX_ENTRIES_IN_FLIGHT)]
    waits, waits_too = begin_append(partition, numbered(3)), begin_append(partition, other())
    while len(log.held) < len(sent):  # noqa: ASYNC110
        await asyncio.sleep(0)
    log.write(numbered(3))  # its client has gone to another sidecar meanwhile
    behind = begin_append(partition, numbered(5))  # the log is read to its end before it is refused
    await a_gap(log, partition)
    log.hold_sends = False
    log.let_go()
    assert (await waits).base_offset == 3
    assert (await behind).error is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert (await waits_too).error is ErrorCode.NONE
    partition.close()
    reader = open_partition(log, "kafka-sidecar-reader")
    values = [value for _, value in await read_all(reader) if value and value.startswith(b"b")]
    assert values == [b"b%d" % sequence for sequence in range(4)]
    reader.close()


async def test_batches_that_were_sent_before_a_gap_and_land_behind_it_are_acknowledged() -> None:
    log = MemoryLog()
    partition = open_partition(log, "kafka-sidecar-a")
    await append(partition, other())
    log.hold_sends = True
    sent = [begin_append(partition, numbered(sequence)) for sequence in range(3)]
    while len(log.held) < len(sent):  # noqa: ASYNC110
        await asyncio.sleep(0)
    log.roll()
    log.mark()
    log.roll()
    first, *others = log.held
    first()
    assert (await sent[0]).base_offset == 2
    for land in others:
        land()
    log.hold_sends = False
    assert [(await one).base_offset for one in sent] == [2, 3, 4]
    assert [(await append(partition, numbered(sequence))).base_offset for sequence in range(3)] == [2, 3, 4]
    partition.close()


async def test_a_retry_from_before_the_beginning_is_refused_after_one_look() -> None:
    log = MemoryLog()
    writer = open_partition(log, "kafka-sidecar-a")
    await append(writer, other())
    for sequence in range(10):
        await append(writer, numbered(sequence))
    log.roll()
    await append(writer, other())
    await append(writer, numbered(10))
    writer.close()
    log.trim(11)
    partition = open_partition(log, "kafka-sidecar-b")
    assert (await append(partition, numbered(11))).error is ErrorCode.NONE
    assert (await append(partition, numbered(3))).error is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    partition.close()


async def a_gap(log: MemoryLog, partition: Partition) -> None:
    """Markers of Pulsar's own fill a ledger: offsets are missing there, as where retention took entries unread."""
    log.roll()
    log.mark()
    log.roll()
    log.write(other())
    await partition.confirmed_end()


async def a_batch_before_the_window(log: MemoryLog) -> tuple[Partition, int]:
    for _ in range(300):
        log.write(other())
    partition = open_partition(log, "kafka-sidecar-a", replay_entries=10)
    written = await append(partition, numbered(0))
    return partition, written.base_offset


async def test_a_retry_is_recognised_when_markers_filled_the_ledgers_since() -> None:
    log = MemoryLog()
    partition, offset = await a_batch_before_the_window(log)
    for _ in range(2):
        for _ in range(20):
            await append(partition, other())
        await a_gap(log, partition)
    assert (await append(partition, numbered(0))).base_offset == offset
    partition.close()


async def test_what_is_known_is_learnt_again_before_retention_takes_it() -> None:
    log = MemoryLog()
    partition, offset = await a_batch_before_the_window(log)
    await a_gap(log, partition)
    await asyncio.sleep(0.01)
    log.trim(len(log.entries) - 1)
    assert (await append(partition, numbered(0))).base_offset == offset
    partition.close()


async def test_what_stands_behind_a_gap_does_not_make_it_too_wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafka_sidecar.partition.follow.replay.TOO_FAR_ENTRIES", 50)
    log = MemoryLog()
    partition, offset = await a_batch_before_the_window(log)
    log.roll()
    log.mark()
    log.roll()
    for _ in range(60):
        log.write(other())
    await partition.confirmed_end()
    assert (await append(partition, numbered(0))).base_offset == offset
    partition.close()


@pytest.mark.parametrize("marks", [False, True])
async def test_an_append_does_not_wait_where_retention_took_all_behind_a_gap(marks: bool) -> None:
    log = MemoryLog()
    partition, _ = await a_batch_before_the_window(log)
    partition._replay.start = lambda: None  # type: ignore[method-assign]
    await a_gap(log, partition)
    del partition._replay.start
    log.trim(len(log.entries))
    if marks:
        log.roll()
        log.mark()
    assert (await append(partition, numbered(1))).error is ErrorCode.NONE
    partition.close()


async def test_a_broker_that_is_silent_while_the_log_is_read_back_is_asked_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("kafka_sidecar.pulsar.raw_entries.ENTRY_SECONDS", 0.1)
    log = MemoryLog()
    before, offset = await a_batch_before_the_window(log)
    before.close()
    for _ in range(100):
        log.write(other())
    partition = open_partition(log, "kafka-sidecar-b")

    class Silent:
        def grant(self, permits: int) -> None: ...
        def close(self) -> None: ...

    opened = log.reader
    silent = [Silent()]

    async def reader(start: Position | None, events: ConsumerEvents) -> LogReader:
        if type(events).__name__ == "_Queue" and silent:
            return silent.pop()  # type: ignore[return-value]
        return await opened(start, events)

    log.reader = reader  # type: ignore[method-assign,assignment]
    assert (await append(partition, numbered(0))).base_offset == offset
    assert not silent
    partition.close()


@pytest.mark.parametrize("others", [False, True], ids=["alone", "beside another"])
async def test_a_gap_while_it_is_asked_what_others_have_kept_loses_nothing(others: bool) -> None:
    log, states = MemoryLog(), MemoryStates()
    names, may_answer, asked = states.names, asyncio.Event(), asyncio.Event()
    count = 0

    async def slow(prefix: bytes) -> list[bytes]:
        nonlocal count
        count += prefix.startswith(b"producer-states:")
        if count == 2:  # before it is kept for the first time
            asked.set()
            await may_answer.wait()
        return await names(prefix)

    states.names = slow  # type: ignore[method-assign]
    for _ in range(300):
        log.write(other())
    mine = open_partition(log, "kafka-sidecar-a", states=states, replay_entries=10)
    begun = begin_append(mine, numbered(0))
    await asyncio.wait_for(asked.wait(), 5)
    for _ in range(90):
        log.write(other())
    theirs = open_partition(log, "kafka-sidecar-b", states=states, replay_entries=10)
    if others:
        await append(theirs, batch(b"x", producer_id=8, epoch=0, sequence=0))
        await asyncio.sleep(0.01)
    mine._replay.start = lambda: None  # type: ignore[method-assign]
    await a_gap(log, mine)
    del mine._replay.start
    may_answer.set()
    offset = (await begun).base_offset
    assert (await append(mine, numbered(0))).base_offset == offset >= 0
    if not others:
        for _ in range(90):
            log.write(other())
        late = open_partition(log, "kafka-sidecar-c", states=states)
        assert (await append(late, numbered(0))).base_offset == offset
        late.close()
    mine.close()
    theirs.close()


async def test_a_gap_while_it_is_asked_what_is_left_does_not_end_the_past() -> None:
    log = MemoryLog()
    for _ in range(300):
        log.write(other())
        log.roll()
    partition = open_partition(log, "kafka-sidecar-a", replay_entries=10)
    written = await append(partition, numbered(0))
    for _ in range(20):
        await append(partition, other())
    begin = partition._fold.replayed_from
    log.trim(next(number for number, entry in enumerate(log.entries) if entry.position == begin))
    stats, may_answer, asked = log.stats, asyncio.Event(), asyncio.Event()

    async def slow() -> LogStats:
        found = await stats()
        if not asked.is_set():
            asked.set()
            await may_answer.wait()
        return found

    await asyncio.sleep(0.01)
    log.stats = slow  # type: ignore[method-assign]
    reading = asyncio.create_task(partition.read_back())
    await asked.wait()
    await a_gap(log, partition)
    may_answer.set()
    await reading
    assert (await append(partition, numbered(0))).base_offset == written.base_offset
    partition.close()


async def test_markers_are_what_is_left_of_a_log_whose_producers_were_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retention takes the records between the opening and the first append. No reader is given what stands behind
    them.
    """
    monkeypatch.setattr("kafka_sidecar.pulsar.raw_entries.ENTRY_SECONDS", 0.05)
    log, states = MemoryLog(), MemoryStates()
    before = open_partition(log, "kafka-sidecar-a", states=states)
    await append(before, numbered(0))
    for keeping in before.close():
        await keeping
    for _ in range(100):
        log.write(other())
    partition = open_partition(log, "kafka-sidecar-b", states=states)
    assert await partition.opened() is ErrorCode.NONE
    log.roll()
    log.mark()
    log.trim(101)
    assert (await append(partition, numbered(1), 5)).error in (ErrorCode.NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    partition.close()
