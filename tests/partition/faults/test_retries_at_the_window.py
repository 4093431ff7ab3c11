"""What is known of producers, and how far back it reaches: a retry is recognised, and a verdict is told only by who knows."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from handler.partition.partition import PartitionLimits
from handler.pulsar.entry import LedgerInfo, LogStats
from handler.wire.error_code import ErrorCode
from tests.partition.faults import not_mended_yet
from tests.support.batches import batch
from tests.support.memory_log import MemoryLog
from tests.support.partitions import append, begin_append, open_partition, read_all

PRODUCER = 7
OTHERS = 1_000


def numbered(sequence: int, size: int = 0) -> bytes:
    return batch(b"b%d" % sequence + b"." * size, producer_id=PRODUCER, epoch=0, sequence=sequence)


async def hide_two_behind_one_that_is_too_large(log: MemoryLog, size: int, others: int, limits: PartitionLimits) -> None:
    """b1 is larger than its topic takes. b2 and b3 were in flight behind it, and are in the log for nobody. Then the sidecar dies."""
    partition = open_partition(log, "kafka-sidecar-a", replay_entries=limits.replay_entries)
    await append(partition, numbered(0, size))
    log.refuse_sends, log.refuse_with, log.refuse_saying = 1, 22, "Exceed maximum message size"
    unheard = await asyncio.gather(*(begin_append(partition, numbered(sequence, size)) for sequence in (1, 2, 3)))
    assert [one.error for one in unheard] == [ErrorCode.MESSAGE_TOO_LARGE, *[ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER] * 2]
    for number in range(others):
        await append(partition, batch(b"other" + b"." * size, producer_id=OTHERS + number, epoch=0, sequence=0))
    partition.close()


@not_mended_yet("a batch that no reader is given is acknowledged when it is retried at the edge of the window")
@pytest.mark.parametrize(
    ("size", "others", "limits"),
    [(950_000, 15, PartitionLimits()), (10, 2, PartitionLimits(replay_entries=4))],
    ids=["default limits", "four entries"],
)
@pytest.mark.parametrize("retried", [(2, 3), (1, 2, 3)])
async def test_what_is_acknowledged_is_read(size: int, others: int, limits: PartitionLimits, retried: tuple[int, ...]) -> None:
    log = MemoryLog()
    await hide_two_behind_one_that_is_too_large(log, size, others, limits)
    partition = open_partition(log, "kafka-sidecar-b", cache=100_000_000, replay_entries=limits.replay_entries)
    told = await asyncio.gather(*(begin_append(partition, numbered(sequence, size), 20) for sequence in retried))
    acknowledged = {one.base_offset for one in told if one.error is ErrorCode.NONE}
    found = {offset for offset, value in await read_all(partition, 0, 20) if value and value.startswith(b"b")}
    partition.close()
    assert acknowledged <= found


@not_mended_yet("what lands later than the window is long replaces what is known of its producer")
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


@pytest.mark.parametrize("large", [pytest.param(60, marks=not_mended_yet("the window is counted in average entries")), 0])
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


@not_mended_yet("the window is counted in average entries")
@pytest.mark.parametrize("tiny", [1_000_000, 40_000])
def test_a_replay_reads_no_more_than_its_bytes(tiny: int) -> None:
    """A ledger of tiny entries that ends with large ones."""
    limits, large, size = PartitionLimits(), 2_000, 1_000_000
    stats = LogStats((LedgerInfo(5, tiny + large, tiny * 100 + large * size),))
    last = stats.last
    assert last is not None
    start = stats.before(last, limits.replay_entries, limits.replay_bytes)
    assert (last.entry - start.entry) * size <= limits.replay_bytes + size


@not_mended_yet("more may be in flight than the window holds")
async def test_what_was_in_flight_when_a_sidecar_died_is_recognised() -> None:
    producers, in_flight, log = 20, 2, MemoryLog()
    partition = open_partition(log, "kafka-sidecar-a")
    await append(partition, batch(b"x"))
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
    partition.close()
    partition = open_partition(log, "kafka-sidecar-b", cache=200_000_000)
    told = await asyncio.gather(*(append(partition, data, 20) for data in sent))
    found = Counter(value[:5] for _, value in await read_all(partition, 1, 20) if value)
    partition.close()
    assert Counter(one.error for one in told) == {ErrorCode.NONE: len(sent)}
    assert set(found.values()) == {1}
