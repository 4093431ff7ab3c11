"""The broker refuses one entry, and stores a later one of the same connection so slowly that the sidecar reads to the
end before that.

The sidecar sends both again, under their numbers, and the first try of the later one overtakes them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from kafka_sidecar.loop.backoff import Backoff
from kafka_sidecar.partition.write import sender
from kafka_sidecar.pulsar.events import ProducerEvents
from kafka_sidecar.wire.error_code import ErrorCode
from tests.model.conduct import Caller
from tests.model.connections import Writer
from tests.support.batches import batch
from tests.support.fake_broker import until
from tests.support.memory_log import MemoryLog
from tests.support.memory_states import MemoryStates
from tests.support.partitions import append, begin_append, open_partition, read_all
from tests.support.transactions import ABORTED, COMMITTED, Coordinator, committed_values, end, write

PRODUCER = 7


class SlowlyStored(MemoryLog):
    """With bookies that answer when they are told to."""

    def __init__(self) -> None:
        super().__init__()
        self.is_slow = False
        self._storing: list[Callable[[], None]] = []

    def store(self, stored: Callable[[], None]) -> None:
        if self.is_slow:
            self._storing.append(stored)
        else:
            stored()

    def answer(self) -> None:
        self.is_slow = False
        for stored in self._storing:
            stored()


def numbered(value: bytes, sequence: int) -> bytes:
    return batch(value, producer_id=PRODUCER, epoch=0, sequence=sequence)


async def sent(log: MemoryLog, count: int) -> list[Callable[[], None]]:
    """What is on its way now, as soon as it is so much: calling one lets it come to the broker."""
    await until(lambda: len(log.held) == count)
    landing, log.held = log.held, []
    return landing


async def overtaken(log: SlowlyStored, first_sent: Callable[[], None], other_sent: Callable[[], None]) -> None:
    """The broker refuses the first, and takes what was sent behind it. Both are sent again."""
    log.refuse_sends, log.is_slow = 1, True
    first_sent()
    other_sent()
    await until(lambda: len(log.held) == 2)
    log.answer()
    log.hold_sends = False
    log.let_go()


@pytest.mark.parametrize("deduplicates", [False, True])
@pytest.mark.parametrize("next_ends", [COMMITTED, ABORTED])
async def test_a_marker_that_no_fold_counts_is_not_told_to_be_written(next_ends: bool, deduplicates: bool) -> None:
    """Else the committed transaction would stay open, and the producer's next one would take it along."""
    log = SlowlyStored()
    log.deduplicates = deduplicates
    partition = open_partition(log)
    assert (await write(partition, Coordinator(100), b"committed", sequence=0)).error is ErrorCode.NONE
    log.hold_sends = True
    ending = asyncio.create_task(end(partition, COMMITTED, 100))
    await until(lambda: len(log.held) == 1)
    other = begin_append(partition, batch(b"other"))
    marker_sent, other_sent = await sent(log, 2)
    await overtaken(log, marker_sent, other_sent)
    verdict = await ending
    while verdict.error is not ErrorCode.NONE:  # a coordinator goes on until a marker is written
        assert verdict.error is ErrorCode.NOT_LEADER_OR_FOLLOWER
        verdict = await end(partition, COMMITTED, 100)
    assert (await other).error is ErrorCode.NONE
    assert (await write(partition, Coordinator(101), b"next", sequence=1)).error is ErrorCode.NONE
    assert (await end(partition, next_ends, 101)).error is ErrorCode.NONE
    late = open_partition(log, "kafka-sidecar-late")
    for one in (partition, late):
        assert sorted(await committed_values(one), key=str) == [
            b"committed",
            *([b"next"] if next_ends else []),
            b"other",
        ]
        one.close()


@pytest.mark.parametrize("deduplicates", [False, True])
async def test_a_batch_that_was_overtaken_is_written_under_another_number(deduplicates: bool) -> None:
    """A broker that deduplicates takes it for a second copy, does not store it, and says nothing of where the first one
    stands.
    """
    log = SlowlyStored()
    log.deduplicates = deduplicates
    partition = open_partition(log)
    await append(partition, numbered(b"a0", 0))
    log.hold_sends = True
    first = begin_append(partition, numbered(b"a1", 1))
    other = begin_append(partition, batch(b"other"))
    first_sent, other_sent = await sent(log, 2)
    await overtaken(log, first_sent, other_sent)
    assert (await other).error is ErrorCode.NONE
    if (await first).error is not ErrorCode.NONE:
        assert (await append(partition, numbered(b"a1", 1))).error is ErrorCode.NONE
    assert (await append(partition, numbered(b"a2", 2))).error is ErrorCode.NONE
    assert [value for _, value in await read_all(partition) if value is not None] == [b"a0", b"other", b"a1", b"a2"]
    assert not partition._appender.pending
    partition.close()


async def test_a_broker_that_takes_nothing_because_it_knows_all_is_asked_with_pauses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It has an entry, whose bookies hang."""
    log = SlowlyStored()
    log.deduplicates = True
    partition = open_partition(log)
    await append(partition, numbered(b"a0", 0))
    writer_as = log.writer_as
    opened: list[Writer] = []
    resets: list[Backoff] = []

    def open_one(name: str, events: ProducerEvents, caller: Caller) -> Writer:
        opened.append(writer_as(name, events, caller))
        return opened[-1]

    monkeypatch.setattr(log, "writer_as", open_one)
    monkeypatch.setattr(Backoff, "reset", lambda one: resets.append(one))
    log.is_slow = True
    stuck = begin_append(partition, numbered(b"a1", 1))
    await until(lambda: bool(log._storing))
    log.disconnect()
    await until(lambda: len(opened) == 3)
    log.answer()
    assert (await stuck).error is ErrorCode.NONE
    assert resets.count(partition._appender._sender._task.backoff) <= 1, "the first one was of use"
    partition.close()


async def test_a_batch_of_an_entry_that_lands_as_a_whole_after_all_is_told_where_it_stands(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Though the first batch of that entry was numbered anew, because one before it was refused."""
    monkeypatch.setattr(sender, "MAX_ENTRIES_IN_FLIGHT", 2)
    log = MemoryLog()
    partition = open_partition(log)
    await append(partition, numbered(b"a0", 0))
    log.hold_sends = True
    first = begin_append(partition, numbered(b"a1", 1))
    other = begin_append(partition, batch(b"x"))
    behind, without_id = begin_append(partition, numbered(b"a2", 2)), begin_append(partition, batch(b"n"))
    first_sent, other_sent, shared_sent = await sent(log, 3)
    log.refuse_sends = 1
    first_sent()
    other_sent()
    await until(lambda: log.held)  # the sidecar has read to the end, and sends again
    log.hold_sends = False
    shared_sent()
    log.let_go()
    verdicts = await asyncio.gather(first, other, behind, without_id)
    assert [verdict.error for verdict in verdicts] == [ErrorCode.NONE] * 4
    late = open_partition(log, "kafka-sidecar-late")
    for one in (partition, late):
        assert dict(await read_all(one)) == {
            0: b"a0",
            **{v.base_offset: k for v, k in zip(verdicts, (b"a1", b"x", b"a2", b"n"), strict=True)},
        }
        one.close()


@pytest.mark.parametrize("parts_before", [1, 2])
@pytest.mark.parametrize(("between", "behind"), [(0, 0), (60, 0), (40, 10), (61, 25), (5, 28)])
async def test_a_shared_entry_that_lands_between_its_parts_counts_for_those_that_have_not_landed(
    parts_before: int, between: int, behind: int
) -> None:
    """The broker refuses one entry alone. Then one hangs that several batches share. It is taken apart, and the parts
    are sent.
    """
    log, states = MemoryLog(), MemoryStates()
    write_others(log, 100)
    writer = open_partition(log, "kafka-sidecar-a", states=states)
    shared = [b"shared %d" % number for number in range(3)]

    def of(number: int, sequence: int) -> bytes:
        return batch(shared[number], producer_id=PRODUCER + number, epoch=0, sequence=sequence)

    for number in range(3):
        await append(writer, of(number, 0))
    before = writer.end_offset
    log.hold_sends = True
    alone = [begin_append(writer, batch(b"alone %d" % number), 60) for number in range(10)]
    together = [begin_append(writer, of(number, 1), 60) for number in range(3)]
    held = await sent(log, 11)
    log.refuse_sends = 1
    for land in held[:10]:
        land()
    parts = await sent(log, 4)
    log.hold_sends = False
    for land in parts[:parts_before]:
        land()
    write_others(log, between)
    held[10]()
    write_others(log, behind)
    for land in parts[parts_before:]:
        land()
    offsets = [(await written).base_offset for written in together]
    await asyncio.gather(*alone)
    write_others(log, behind)
    cold = open_partition(log, "kafka-sidecar-cold", states=states)
    for reader in (cold, writer):
        for start in (before, len(log.entries) - behind - 5):
            read = await read_all(reader, start, max_bytes=100)
            shown = [[at for at, one in read if one == value] for value in shared]
            assert shown == [[at] if at >= start else [] for at in offsets], start
    assert [(await append(cold, of(number, 1), 20)).base_offset for number in range(3)] == offsets
    writer.close()
    cold.close()


def write_others(log: MemoryLog, count: int) -> None:
    for _ in range(count):
        log.write(batch(b"other"))
