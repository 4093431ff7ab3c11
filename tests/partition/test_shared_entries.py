"""Entries of several batches: who shares one, and what each batch of it gets, whatever happens to the entry."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kafka_sidecar.partition.fold.producers import Verdict
from kafka_sidecar.partition.partition import Partition
from kafka_sidecar.partition.search.timestamp_search import greatest_timestamp
from kafka_sidecar.partition.write import sender
from kafka_sidecar.partition.write.sender import MAX_ENTRIES_IN_FLIGHT, MAX_WAIT_SECONDS
from kafka_sidecar.pulsar.entry import RawEntry
from kafka_sidecar.pulsar.errors import NOT_ALLOWED
from kafka_sidecar.pulsar.pulsar_api_pb2 import MessageMetadata
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.records import split_batches
from tests.model.connections import Writer
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


def properties(entry: RawEntry) -> set[bytes]:
    return {pair.key for pair in entry.message_metadata.properties}


def batches_of(log: MemoryLog, begin: int = 0) -> list[int]:
    """How many batches each entry has."""
    return [len(list(split_batches(entry.payload))) for entry in log.entries[begin:]]


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only receipts end the wait."""
    monkeypatch.setattr(sender, "MAX_WAIT_SECONDS", 60.0)


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
    assert [(verdict.error, verdict.base_offset) for verdict in verdicts] == [
        (ErrorCode.NONE, CROWD + number) for number in range(CROWD)
    ]
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
    written = {b"%d:%d" % (one, sequence) for one in range(CROWD) for sequence in (0, 1)}
    assert {value for _, value in served} == written
    assert len(served) == len(written)
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
    for source in (partition, open_partition(log, "kafka-sidecar-later", replay_entries=1)):
        run = await fetch(source, wanted)
        first, _ = next(split_batches(b"".join(run.parts)))
        assert first.base_offset == wanted
        assert [header.base_offset for header, _ in split_batches(b"".join(run.parts))] == [
            wanted,
            wanted + 1,
            wanted + 2,
        ]
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
    log.let_go()
    log.refuse_sends, log.refuse_with, log.refuse_saying = 1, NOT_ALLOWED, "Exceed maximum message size"
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
    assert (await append(partition, numbered(CROWD - 1, 1))).error is ErrorCode.NONE, (
        "it was not written, and comes again"
    )
    partition.close()


async def test_batches_without_a_producer_have_no_basis_until_they_are_sent_again(patient: None) -> None:
    log = MemoryLog()
    partition = open_partition(log)
    await append(partition, batch(b"first"))
    log.hold_sends = True
    outcomes = [begin_append(partition, batch(b"%d" % number)) for number in range(CROWD)]
    held, log.held = log.held, []
    for land in held:
        land()
    async with asyncio.timeout(5):
        while not log.held:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
    assert all(not {b"basis", b"bases"} & properties(entry) for entry in log.entries)
    log.held.clear()
    log.hold_sends = False
    log.disconnect()
    await in_time(outcomes)
    assert batches_of(log)[-1] == CROWD - MAX_ENTRIES_IN_FLIGHT
    assert b"bases" in properties(log.entries[-1])
    partition.close()


@pytest.mark.parametrize("parts_are_sent", [False, True])
async def test_an_entry_that_was_taken_apart_and_lands_as_a_whole_is_the_only_copy(parts_are_sent: bool) -> None:
    log = MemoryLog()
    partition = open_partition(log)
    await append(partition, batch(b"first"))
    log.hold_sends = True
    outcomes = [begin_append(partition, batch(b"%d" % number)) for number in range(CROWD)]
    async with asyncio.timeout(5):
        while len(log.held) <= MAX_ENTRIES_IN_FLIGHT:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
    *others, shared = log.held
    log.held = []
    for land in others:
        land()
    await asyncio.sleep(0.01)
    log.disconnect()  # and the shared one is still on its way
    log.hold_sends = False
    log.refuse_sends, log.refuse_with, log.refuse_saying = 1, NOT_ALLOWED, "Exceed maximum message size"
    async with asyncio.timeout(5):
        while log.refuse_sends:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
    log.hold_sends = True
    if parts_are_sent:
        async with asyncio.timeout(5):
            while len(log.held) < CROWD - MAX_ENTRIES_IN_FLIGHT:  # noqa: ASYNC110
                await asyncio.sleep(0.001)
    shared()  # its first copy was under way after all
    log.hold_sends = False
    log.let_go()
    verdicts = await in_time(outcomes)
    assert [(verdict.error, verdict.base_offset) for verdict in verdicts] == [
        (ErrorCode.NONE, 1 + number) for number in range(CROWD)
    ]
    assert [value for _, value in await read_all(partition, 1)] == [b"%d" % number for number in range(CROWD)]
    assert partition.ended is None
    other = open_partition(log, "kafka-sidecar-other")
    assert [value for _, value in await read_all(other, 1)] == [b"%d" % number for number in range(CROWD)]
    for one in (partition, other):
        one.close()


@pytest.mark.parametrize("code", [NOT_ALLOWED, 2])
async def test_places_that_become_free_are_taken_at_once(patient: None, code: int) -> None:
    log = MemoryLog()
    partition = open_partition(log)
    await known_to(partition)
    log.hold_sends = True
    outcomes = crowd(partition)
    held, log.held = log.held, []
    log.hold_sends = False
    if code == NOT_ALLOWED:  # each is refused
        for writer in log.writers:
            for sequence in range(CROWD, CROWD + len(held)):
                writer.events.on_send_error(sequence, NOT_ALLOWED, "not here")
    else:  # none of the receipts follows what is folded here
        log.write(batch(b"foreign"))
        log.roll()
        for land in held:
            land()
    await in_time(outcomes)
    assert batches_of(log)[-1] == CROWD - MAX_ENTRIES_IN_FLIGHT
    partition.close()


async def test_a_shared_entry_is_no_larger_than_the_broker_takes(patient: None) -> None:
    log = MemoryLog(max_message_size=1_000)
    partition = open_partition(log)
    await known_to(partition)
    log.hold_sends = True
    outcomes = crowd(partition)
    log.hold_sends = False
    log.let_go()
    await in_time(outcomes)
    assert 1 < max(batches_of(log)) < CROWD - MAX_ENTRIES_IN_FLIGHT
    assert all(len(entry.payload) + len(entry.metadata) <= 1_000 for entry in log.entries)
    partition.close()


async def test_those_that_wait_are_told_when_the_partition_closes(patient: None) -> None:
    log = MemoryLog()
    partition = open_partition(log)
    await known_to(partition)
    log.hold_sends = True
    outcomes = crowd(partition)
    partition.close()
    assert {verdict.error for verdict in await in_time(outcomes)} == {ErrorCode.NOT_LEADER_OR_FOLLOWER}


async def test_an_entry_at_whose_send_the_sidecar_fails_is_sent_again(
    patient: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = MemoryLog()
    partition = open_partition(log)
    await known_to(partition)
    log.hold_sends = True
    outcomes = crowd(partition)
    send = Writer.send

    def fails(self: Writer, sequence: int, count: int, *rest: Any) -> None:
        if count > 1:
            monkeypatch.setattr(Writer, "send", send)
            raise ZeroDivisionError
        send(self, sequence, count, *rest)

    monkeypatch.setattr(Writer, "send", fails)
    log.hold_sends = False
    log.let_go()
    assert {verdict.error for verdict in await in_time(outcomes)} == {ErrorCode.NONE}
    partition.close()


async def test_the_greatest_timestamp_is_that_of_its_batch_and_of_none_that_is_hidden(patient: None) -> None:
    log = MemoryLog()
    partition = open_partition(log)
    await append(partition, batch(b"0", producer_id=1, epoch=0, sequence=0, timestamp=1_000))
    last = batch(b"1", producer_id=1, epoch=0, sequence=1, timestamp=9_000)
    foreign = MessageMetadata(producer_name=b"kafka-sidecar-before-1", sequence_id=0, publish_time=1)
    foreign.properties.add(key=b"entry.format", value=b"kafka")
    gap = batch(b"hidden", producer_id=1, epoch=0, sequence=100, timestamp=9_000)
    log.append(foreign, 4, batch(b"a", b"b", timestamp=2_000) + gap + last)
    found = await greatest_timestamp(partition)
    assert (found.offset, found.timestamp) == (4, 9_000)
    partition.close()


async def test_a_refused_entry_takes_none_apart_that_only_waits_to_be_folded(
    patient: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sender, "MAX_ENTRIES_IN_FLIGHT", 2)
    log = MemoryLog()
    partition = open_partition(log, batches_per_entry=3)
    await known_to(partition, producers=8)
    log.hold_sends = True
    outcomes = crowd(partition, producers=8)
    log.let_go()  # two of one batch each, and their receipts send two of three
    async with asyncio.timeout(5):
        while len(log.held) < 2:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
    landed, _ = log.held  # the second is refused
    log.held = []
    log.hold_sends = False
    log.read_delay = 0.01
    log.write(batch(b"foreign"))
    landed()  # behind it: its receipt is not adjacent to what is folded
    await asyncio.sleep(0)
    (writer,) = log.writers
    writer.events.on_send_error(8 + 2 + 3, NOT_ALLOWED, "Exceed maximum message size")
    verdicts = await in_time(outcomes)
    assert partition.ended is None
    assert [verdict.base_offset for verdict in verdicts] == [8, 9, 11, 12, 13, 14, 15, 16]
    assert [value for _, value in await read_all(partition, 8)].count(b"foreign") == 1
    partition.close()
