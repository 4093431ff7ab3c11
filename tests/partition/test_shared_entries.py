"""Entries of several batches: who shares one, and what each batch of it gets, whatever happens to the entry."""

from __future__ import annotations

import asyncio

import pytest

from handler.partition.fold.producers import Verdict
from handler.partition.log.pulsar_log import BASIS_PROPERTY
from handler.partition.partition import Partition
from handler.partition.write import appender
from handler.partition.write.appender import MAX_ENTRIES_IN_FLIGHT, MAX_WAIT_SECONDS
from handler.pulsar.errors import NOT_ALLOWED
from handler.wire.error_code import ErrorCode
from handler.wire.records import split_batches
from tests.support.batches import batch
from tests.support.memory_log import MemoryLog
from tests.support.partitions import append, begin_append, fetch, open_partition, read_all

CROWD = 3 * MAX_ENTRIES_IN_FLIGHT


def numbered(producer_id: int, sequence: int) -> bytes:
    return batch(b"%d:%d" % (producer_id, sequence), producer_id=producer_id, epoch=0, sequence=sequence)


async def known_to(partition: Partition, producers: int = CROWD) -> None:
    """The first batch of each producer, one after the other."""
    for producer_id in range(producers):
        assert (await append(partition, numbered(producer_id, 0))).error is ErrorCode.NONE


def crowd(partition: Partition, sequence: int = 1, producers: int = CROWD) -> list[asyncio.Future[Verdict]]:
    return [begin_append(partition, numbered(producer_id, sequence)) for producer_id in range(producers)]


async def in_time(outcomes: list[asyncio.Future[Verdict]]) -> list[Verdict]:
    async with asyncio.timeout(5):
        return await asyncio.gather(*outcomes)


def batches_of(log: MemoryLog, begin: int = 0) -> list[int]:
    """How many batches each entry has."""
    return [len(list(split_batches(entry.payload))) for entry in log.entries[begin:]]


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only receipts end the wait."""
    monkeypatch.setattr(appender, "MAX_WAIT_SECONDS", 60.0)


async def test_what_waits_for_a_receipt_shares_an_entry(patient: None) -> None:
    log = MemoryLog()
    partition = open_partition(log)
    await known_to(partition)
    log.hold_sends = True
    outcomes = crowd(partition)
    await asyncio.sleep(2 * MAX_WAIT_SECONDS)
    assert len(log.held) == MAX_ENTRIES_IN_FLIGHT
    log.hold_sends = False
    log.let_go()
    verdicts = await in_time(outcomes)
    assert batches_of(log, CROWD) == [1] * MAX_ENTRIES_IN_FLIGHT + [CROWD - MAX_ENTRIES_IN_FLIGHT]
    assert [(verdict.error, verdict.base_offset) for verdict in verdicts] == [(ErrorCode.NONE, CROWD + number) for number in range(CROWD)]
    expected = [(CROWD + number, b"%d:1" % number) for number in range(CROWD)]
    assert await read_all(partition, CROWD) == expected
    other = open_partition(log, "kafka-sidecar-other")
    assert await read_all(other, CROWD) == expected, "who reads it comes to the same"
    for one in (partition, other):
        one.close()


async def test_no_batch_waits_for_longer_than_its_time() -> None:
    log = MemoryLog()
    partition = open_partition(log)
    await known_to(partition)
    log.hold_sends = True
    outcomes = crowd(partition)
    async with asyncio.timeout(5):
        while len(log.held) <= MAX_ENTRIES_IN_FLIGHT:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
    log.let_go()
    await in_time(outcomes)
    assert batches_of(log, CROWD)[-1] == CROWD - MAX_ENTRIES_IN_FLIGHT
    partition.close()


async def test_a_refused_batch_is_an_empty_one_and_the_others_stand(patient: None) -> None:
    log = MemoryLog()
    ours = open_partition(log)
    await known_to(ours)
    log.hold_sends = True
    outcomes = crowd(ours)
    held, log.held = log.held, []
    log.hold_sends = False
    theirs = open_partition(log, "kafka-sidecar-other")
    last = CROWD - 2
    raced = await append(theirs, numbered(last, 1))  # the client's second try, through another sidecar
    for land in held:
        land()
    verdicts = await in_time(outcomes)
    assert verdicts[last].base_offset == raced.base_offset, "it stands where it came first"
    served = await read_all(ours)
    assert [value for _, value in served].count(b"%d:1" % last) == 1
    assert sorted(value for _, value in served) == sorted(b"%d:%d" % (one, sequence) for one in range(CROWD) for sequence in (0, 1))  # type: ignore[type-var]
    assert await read_all(theirs) == served
    for verdict, number in zip(verdicts, range(CROWD), strict=True):
        assert (verdict.base_offset, b"%d:1" % number) in served
    for one in (ours, theirs):
        one.close()


async def test_a_fetch_begins_at_the_batch_that_holds_its_offset(patient: None) -> None:
    log = MemoryLog()
    partition = open_partition(log)
    await known_to(partition)
    log.hold_sends = True
    outcomes = crowd(partition)
    log.hold_sends = False
    log.let_go()
    await in_time(outcomes)
    wanted = 2 * CROWD - 3
    for source in (partition, open_partition(log, "kafka-sidecar-later", replay_entries=1), open_partition(log, cache=1)):
        run = await fetch(source, wanted)
        first, _ = next(split_batches(b"".join(run.parts)))
        assert first.base_offset == wanted
        assert [header.base_offset for header, _ in split_batches(b"".join(run.parts))] == [wanted, wanted + 1, wanted + 2]
        source.close()


async def test_an_entry_whose_fate_is_unknown_is_sent_again_as_it_was(patient: None) -> None:
    log = MemoryLog()
    partition = open_partition(log)
    await known_to(partition)
    log.hold_sends = True
    outcomes = crowd(partition)
    held, log.held = log.held, []
    for land in held[:-1]:
        land()
    async with asyncio.timeout(5):
        while not log.held:  # noqa: ASYNC110
            await asyncio.sleep(0.001)  # the first receipt has sent what waited
    shared = log.held.pop()
    log.disconnect()
    log.hold_sends = False
    verdicts = await in_time(outcomes)
    assert {verdict.error for verdict in verdicts} == {ErrorCode.NONE}
    served = await read_all(partition)
    payload = bytes(log.entries[-1].payload)
    shared()  # the first copy was still under way
    assert bytes(log.entries[-1].payload) == payload
    assert log.entries[-1].message_metadata.sequence_id == log.entries[-2].message_metadata.sequence_id
    assert await read_all(partition) == served, "nobody sees a second copy"
    assert [value for _, value in served[CROWD:]] == [b"%d:1" % number for number in range(CROWD)]
    partition.close()


async def test_an_entry_that_the_topic_does_not_take_is_sent_batch_by_batch(patient: None) -> None:
    log = MemoryLog()
    partition = open_partition(log)
    await known_to(partition)
    log.hold_sends = True
    outcomes = crowd(partition)
    log.hold_sends = False
    log.refuse_sends, log.refuse_with, log.refuse_saying = 1, NOT_ALLOWED, "Exceed maximum message size"
    log.let_go()
    verdicts = await in_time(outcomes)
    assert {verdict.error for verdict in verdicts} == {ErrorCode.NONE}
    assert [value for _, value in await read_all(partition, CROWD)] == [b"%d:1" % number for number in range(CROWD)]
    assert set(batches_of(log)) == {1}
    await in_time(crowd(partition, 2))
    assert set(batches_of(log)) == {1}, "and no others are tried"
    partition.close()


async def test_a_batch_that_waits_is_told_when_its_time_is_over(patient: None) -> None:
    log = MemoryLog()
    partition = open_partition(log)
    await known_to(partition)
    log.hold_sends = True
    outcomes = crowd(partition, producers=MAX_ENTRIES_IN_FLIGHT)
    late = begin_append(partition, numbered(CROWD - 1, 1), seconds=0.01)
    behind = begin_append(partition, numbered(CROWD - 1, 2))
    await asyncio.sleep(0.02)
    partition.tick(asyncio.get_running_loop().time())
    assert {(await one).error for one in (late, behind)} == {ErrorCode.REQUEST_TIMED_OUT}
    log.hold_sends = False
    log.let_go()
    assert {(await one).error for one in outcomes} == {ErrorCode.NONE}
    assert (await append(partition, numbered(CROWD - 1, 1))).error is ErrorCode.NONE, "it was not written, and comes again"
    partition.close()


async def test_batches_without_a_producer_have_no_basis_until_they_are_sent_again(patient: None) -> None:
    log = MemoryLog()
    partition = open_partition(log)
    await append(partition, batch(b"first"))
    log.hold_sends = True
    outcomes = [begin_append(partition, batch(b"%d" % number)) for number in range(CROWD)]
    log.hold_sends = False
    log.let_go()
    await in_time(outcomes)
    assert batches_of(log)[-1] == CROWD - MAX_ENTRIES_IN_FLIGHT
    assert all(pair.key != BASIS_PROPERTY for entry in log.entries for pair in entry.message_metadata.properties)
    partition.close()
