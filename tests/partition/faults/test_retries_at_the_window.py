"""What is known of producers, and how far back it reaches: a retry is recognised, and a verdict is told only by who
knows.
"""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from kafka_sidecar.partition.follow.replay import PIECE_BYTES
from kafka_sidecar.partition.partition import PartitionLimits
from kafka_sidecar.wire.error_code import ErrorCode
from tests.support.batches import batch
from tests.support.memory_log import MemoryLog
from tests.support.memory_states import MemoryStates
from tests.support.partitions import append, begin_append, open_partition, read_all

PRODUCER = 7
OTHERS = 1_000


def numbered(sequence: int, size: int = 0) -> bytes:
    return batch(b"b%d" % sequence + b"." * size, producer_id=PRODUCER, epoch=0, sequence=sequence)


async def hide_two_behind_one_that_is_too_large(
    log: MemoryLog, size: int, others: int, limits: PartitionLimits
) -> None:
    """b1 is larger than its topic takes. b2 and b3 were in flight behind it, and are in the log for nobody. Then the
    sidecar dies.
    """
    partition = open_partition(log, "kafka-sidecar-a", replay_entries=limits.replay_entries)
    await append(partition, numbered(0, size))
    log.refuse_sends, log.refuse_with, log.refuse_saying = 1, 22, "Exceed maximum message size"
    unheard = await asyncio.gather(*(begin_append(partition, numbered(sequence, size)) for sequence in (1, 2, 3)))
    assert [one.error for one in unheard] == [
        ErrorCode.MESSAGE_TOO_LARGE,
        *[ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER] * 2,
    ]
    for number in range(others):
        await append(partition, batch(b"other" + b"." * size, producer_id=OTHERS + number, epoch=0, sequence=0))
    partition.close()


@pytest.mark.parametrize(
    ("size", "others", "limits"),
    [(950_000, 15, PartitionLimits()), (10, 2, PartitionLimits(replay_entries=4))],
    ids=["default limits", "four entries"],
)
@pytest.mark.parametrize("retried", [(2, 3), (1, 2, 3)])
async def test_what_is_acknowledged_is_read(
    size: int, others: int, limits: PartitionLimits, retried: tuple[int, ...]
) -> None:
    log = MemoryLog()
    await hide_two_behind_one_that_is_too_large(log, size, others, limits)
    partition = open_partition(log, "kafka-sidecar-b", cache=100_000_000, replay_entries=limits.replay_entries)
    told = await asyncio.gather(*(begin_append(partition, numbered(sequence, size), 20) for sequence in retried))
    acknowledged = {one.base_offset for one in told if one.error is ErrorCode.NONE}
    found = {offset for offset, value in await read_all(partition, 0, 20) if value and value.startswith(b"b")}
    partition.close()
    assert acknowledged <= found


async def test_a_batch_that_lands_late_does_not_replace_what_is_known() -> None:
    log = MemoryLog()
    stopped, leader = (open_partition(log, f"kafka-sidecar-{number}", replay_entries=10) for number in (1, 2))
    await append(stopped, numbered(0))
    await append(leader, batch(b"x"))
    log.hold_sends = True
    begin_append(stopped, numbered(1), 60)  # it lies in the socket of a sidecar that stands still
    while not log.held:  # noqa: ASYNC110
        await asyncio.sleep(0)
    (land,), log.held, log.hold_sends = log.held, [], False
    for sequence in range(1, 31):
        await append(leader, numbered(sequence))
    third = open_partition(log, "kafka-sidecar-3", replay_entries=10)
    assert [(await append(third, numbered(sequence))).error for sequence in (31, 32)] == [ErrorCode.NONE] * 2
    land()
    await third.confirmed_end()
    told = await append(third, numbered(33))
    for partition in (stopped, leader, third):
        partition.close()
    assert told.error is ErrorCode.NONE


@pytest.mark.parametrize("large", [60, 0])
async def test_a_retry_is_recognised_whatever_was_written_around_it(large: int) -> None:
    """The first answer was lost; a bulk load stood before it, small batches of others behind it."""
    log = MemoryLog()
    partition = open_partition(log, "kafka-sidecar-a")
    for _ in range(large):
        await append(partition, batch(b"L" * 900_000))
    first = await append(partition, numbered(0))
    for number in range(40):
        await append(partition, batch(b"small", producer_id=OTHERS + number, epoch=0, sequence=0))
    partition.close()
    partition = open_partition(log, "kafka-sidecar-b")
    again = await append(partition, numbered(0))
    found = [offset for offset, value in await read_all(partition, large, 20) if value == b"b0"]
    partition.close()
    assert (again.error, again.base_offset, found) == (ErrorCode.NONE, first.base_offset, [first.base_offset])


@pytest.mark.parametrize(("tiny", "large"), [(2_000, 60), (1_000, 300)])
async def test_a_replay_reads_no_more_than_its_bytes(tiny: int, large: int) -> None:
    """A ledger of tiny entries that ends with large ones, which the average of its entries does not show."""
    size, limit, log = 100_000, 2_000_000, MemoryLog()
    for number in range(tiny):
        log.write(batch(b"t", producer_id=OTHERS, epoch=0, sequence=number))
    for number in range(large):
        log.write(batch(b"L" * size, producer_id=OTHERS, epoch=0, sequence=tiny + number))
    log.write(batch(b"the last one"))
    partition = open_partition(log, cache=1, replay_bytes=limit)
    await partition.opened()
    read_before = log.bytes_read
    assert (await append(partition, numbered(0), 20)).error is ErrorCode.NONE
    partition.close()
    # A piece that is too large is read in smaller ones, and the last entry and the piece before it may go beyond.
    assert log.bytes_read - read_before <= limit + 2 * PIECE_BYTES


async def test_what_was_in_flight_when_a_sidecar_died_is_recognised() -> None:
    """More than the window holds. The sidecar has kept what it knew when it began to append."""
    producers, in_flight, log, states = 20, 2, MemoryLog(), MemoryStates()
    partition = open_partition(log, "kafka-sidecar-a", states=states)
    await append(partition, numbered(0))
    partition.tick(asyncio.get_running_loop().time())
    while not states.kept:  # noqa: ASYNC110
        await asyncio.sleep(0.001)
    log.swallow_receipts = True
    sent = [
        batch(b"%03d-%d" % (number, sequence) + b"." * 950_000, producer_id=OTHERS + number, epoch=0, sequence=sequence)
        for sequence in range(in_flight)
        for number in range(producers)
    ]
    for data in sent:
        begin_append(partition, data, 60)
    while len(log.entries) < len(sent) + 1:  # noqa: ASYNC110
        await asyncio.sleep(0.001)
    log.swallow_receipts = False
    states.is_away = True  # it dies, and keeps nothing more
    partition.close()
    states.is_away = False
    partition = open_partition(log, "kafka-sidecar-b", cache=200_000_000, states=states)
    told = await asyncio.gather(*(append(partition, data, 20) for data in sent))
    found = Counter(value[:5] for _, value in await read_all(partition, 1, 20) if value)
    partition.close()
    assert Counter(one.error for one in told) == {ErrorCode.NONE: len(sent)}
    assert set(found.values()) == {1}


async def test_a_batch_whose_writer_knew_what_retention_took_is_read() -> None:
    """b0 and b1 were on their way together, and b0's ledger is gone: b1 is the first that is left of its producer."""
    log = MemoryLog()
    partition = open_partition(log, "kafka-sidecar-a")
    await append(partition, batch(b"x"))
    log.hold_sends = True
    sent = [begin_append(partition, numbered(sequence)) for sequence in range(3)]
    while len(log.held) < len(sent):  # noqa: ASYNC110
        await asyncio.sleep(0)
    first, *others = log.held
    first()
    log.roll()
    for land in others:
        land()
    log.held, log.hold_sends = [], False
    assert [(await one).base_offset for one in sent] == [1, 2, 3]
    partition.close()
    log.trim(2)
    partition = open_partition(log, "kafka-sidecar-b")
    assert [value for _, value in await read_all(partition, 2)] == [b"b1", b"b2"]
    assert (await append(partition, numbered(3))).base_offset == 4
    partition.close()
