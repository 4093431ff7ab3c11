"""Where an entry of another writer begins is told by the entry before it, and not by what that writer says: whoever
reads it, from
wherever."""

from __future__ import annotations

import asyncio

import pytest

from kafka_sidecar.partition.follow import replay
from kafka_sidecar.partition.follow.read_entries import entries_from, first_entry
from kafka_sidecar.pulsar.entry import Position
from kafka_sidecar.pulsar.messages import write_batch
from kafka_sidecar.pulsar.pulsar_api_pb2 import MessageMetadata
from kafka_sidecar.wire.error_code import ErrorCode
from tests.support.batches import batch
from tests.support.memory_log import MemoryLog
from tests.support.memory_states import MemoryStates
from tests.support.partitions import append, fetch, open_partition, read_all

BEFORE = 80
DISTANCES = [*range(8), 62, 63, 64, 65, 70]  # from the end, which a fold begins 64 entries before


def native(log: MemoryLog, *, counted: int) -> Position:
    """A batch of three messages, of which its producer has told the broker so many."""
    messages = write_batch([(b"", b"m%d" % number) for number in range(3)], 0)
    return log.append(
        MessageMetadata(producer_name=b"native", sequence_id=0, publish_time=1, num_messages_in_batch=3),
        counted,
        messages,
    )


def numbered(sequence: int) -> bytes:
    return batch(b"n%d" % sequence, producer_id=7, epoch=0, sequence=sequence)


async def a_log(distance: int, *, counted: int, states: MemoryStates | None) -> MemoryLog:
    """A producer's batches, others, a batch of a native client's, and so many entries behind it."""
    log = MemoryLog()
    writer = open_partition(log, "kafka-sidecar-writer", states=states)
    for sequence in range(5):
        await append(writer, numbered(sequence))
    for _ in range(BEFORE - 5):
        log.write(batch(b"before"))
    await append(writer, batch(b"before, too"))
    for keeping in writer.close():
        await keeping
    native(log, counted=counted)
    for number in range(distance):
        log.write(batch(b"behind %d" % number))
    return log


@pytest.fixture(params=["pieces", "pieces of one entry", "from what was kept"])
def states(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> MemoryStates | None:
    """How the partition learns what its producers wrote before."""
    if request.param == "pieces of one entry":
        monkeypatch.setattr(replay, "FIRST_ENTRIES", 1)
        monkeypatch.setattr(replay, "MOST_ENTRIES", 1)
    return MemoryStates() if request.param == "from what was kept" else None


@pytest.mark.parametrize("distance", DISTANCES)
async def test_a_batch_with_more_records_than_the_broker_counted_is_unreadable_wherever_a_fold_begins(
    distance: int, states: MemoryStates | None
) -> None:
    log = await a_log(distance, counted=1, states=states)
    at = BEFORE + 1
    partition = open_partition(log, "kafka-sidecar-reader", states=states)
    assert (await append(partition, numbered(4))).base_offset == 4
    for offset in (at - 2, at - 1, at):
        found = await fetch(partition, offset)
        assert (found.error is ErrorCode.CORRUPT_MESSAGE) == (offset == at), offset
    assert [offset for offset, _ in await read_all(partition, at + 1)] == list(range(at + 1, at + 1 + distance))
    assert (await append(partition, numbered(5))).base_offset == at + 1 + distance
    assert partition.ended is None
    partition.close()


@pytest.mark.parametrize("distance", DISTANCES)
async def test_a_batch_that_was_counted_is_served_wherever_a_fold_begins(
    distance: int, states: MemoryStates | None
) -> None:
    log = await a_log(distance, counted=3, states=states)
    at = BEFORE + 1
    partition = open_partition(log, "kafka-sidecar-reader", states=states)
    values = await read_all(partition, at - 1)
    assert values[:4] == [(at - 1, b"before, too"), (at, b"m0"), (at + 1, b"m1"), (at + 2, b"m2")]
    assert (await append(partition, numbered(4))).base_offset == 4
    assert (await append(partition, numbered(5))).base_offset == at + 3 + distance
    partition.close()


async def test_a_log_that_begins_with_such_a_batch_believes_it() -> None:
    """What stood before is gone: nobody can say better."""
    log = MemoryLog()
    for _ in range(5):
        log.write(batch(b"gone"))
    log.roll()
    native(log, counted=3)
    log.trim(5)
    partition = open_partition(log, "kafka-sidecar-reader")
    assert await read_all(partition, 5) == [(5, b"m0"), (6, b"m1"), (7, b"m2")]
    assert partition.log_start == 5
    partition.close()


@pytest.mark.parametrize("markers", [0, 1, 3])
async def test_markers_of_pulsars_before_it_change_nothing(markers: int) -> None:
    log = MemoryLog()
    log.write(batch(b"before"))
    for _ in range(markers):
        log.mark()
    position = native(log, counted=3)
    for _ in range(63):
        log.write(batch(b"behind"))
    partition = open_partition(log, "kafka-sidecar-reader")
    assert [value for _, value in (await read_all(partition, 0))[:4]] == [b"before", b"m0", b"m1", b"m2"]
    first = await first_entry(log.named("kafka-sidecar-reader"), position)
    assert first is not None
    assert first.base_offset == 1 + markers
    partition.close()


async def test_a_search_that_begins_at_it_does_not_believe_it() -> None:
    log = MemoryLog()
    for _ in range(10):
        log.write(batch(b"before"))
    position = native(log, counted=1)
    log.write(batch(b"behind"))
    read = []
    async with asyncio.timeout(5):
        async for entry in entries_from(log.named("kafka-sidecar-reader"), position):
            read.append((entry.base_offset, entry.content is None))
            if len(read) == 2:
                break
    assert read == [(10, True), (11, False)]


@pytest.mark.parametrize("cache", [1, 1_000_000])
@pytest.mark.parametrize("behind", [0, 3, 100])
async def test_an_entry_that_an_operator_has_skipped_has_no_records(cache: int, behind: int) -> None:
    log = MemoryLog()
    for _ in range(3):
        log.write(batch(b"before"))
    position = native(log, counted=1)
    for _ in range(behind):
        log.write(batch(b"behind"))
    partition = open_partition(log, "kafka-sidecar-reader", cache=cache)
    assert (await fetch(partition, 3)).error is ErrorCode.CORRUPT_MESSAGE
    log.skips = frozenset({position, Position(1, 0)})
    partition.set_skipped(log.skips)
    assert partition.ended is ErrorCode.NOT_LEADER_OR_FOLLOWER, "who asks again finds what is known now"
    again = open_partition(log, "kafka-sidecar-reader-2", cache=cache)
    values = [value for _, value in await read_all(again) if value is not None]
    assert values == [b"before"] * 3 + [b"behind"] * behind, "one that can be read is given all the same"
    again.set_skipped(log.skips)
    assert again.ended is None
    again.close()


async def test_an_unreadable_entry_that_comes_is_passed_over_if_it_was_skipped() -> None:
    log = MemoryLog()
    log.skips = frozenset({Position(1, 1)})
    partition = open_partition(log, "kafka-sidecar-reader")
    await append(partition, batch(b"before"))
    native(log, counted=1)
    await append(partition, batch(b"behind"))
    assert [value for _, value in await read_all(partition) if value] == [b"before", b"behind"]
    partition.close()
