"""Retention has taken all of a log, and producers go on in it."""

from __future__ import annotations

from handler.partition.partition import Partition
from handler.wire.error_code import ErrorCode
from tests.support.batches import batch
from tests.support.memory_log import MemoryLog
from tests.support.memory_states import MemoryStates
from tests.support.partitions import append, open_partition

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


async def test_who_opens_it_next_goes_on_from_what_was_kept_last() -> None:
    """The first that is kept tells of a log that holds nothing. It gives way to what is kept of what was written since."""
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
