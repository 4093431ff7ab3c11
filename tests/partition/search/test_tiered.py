"""What of a log is offloaded, in Kafka's offsets."""

from __future__ import annotations

import pytest

from kafka_sidecar.partition.search.tiered import earliest_local, earliest_pending_upload, latest_tiered
from tests.support.batches import batch
from tests.support.memory_log import MemoryLog
from tests.support.partitions import open_partition

LEDGERS, ENTRIES, RECORDS = 4, 3, 2


@pytest.mark.parametrize(
    ("offloaded", "local", "tiered", "pending"),
    [
        ((), 0, -1, -1),
        ((1,), 6, 5, 6),
        ((1, 2, 3), 18, 17, 18),
        ((1, 2, 3, 4), 24, 23, 24),  # the open ledger is empty
        ((1, 3), 6, 5, 6),  # one that failed: what is behind it counts later
    ],
)
async def test_offsets_of_the_tiers(offloaded: tuple[int, ...], local: int, tiered: int, pending: int) -> None:
    log = MemoryLog()
    for _ in range(LEDGERS):
        for _ in range(ENTRIES):
            log.write(batch(*[b"v"] * RECORDS))
        log.roll()
    log.offloaded.update(offloaded)
    partition = open_partition(log)
    assert (await earliest_local(partition)).offset == local
    assert (await latest_tiered(partition)).offset == tiered
    assert (await earliest_pending_upload(partition)).offset == pending
    partition.close()


async def test_a_marker_at_the_end_of_what_is_offloaded_is_offloaded_too() -> None:
    log = MemoryLog()
    log.write(batch(b"v"))
    log.mark()
    log.roll()
    log.write(batch(b"v"))
    log.offloaded.add(1)
    partition = open_partition(log)
    assert (await latest_tiered(partition)).offset == 1
    assert (await earliest_local(partition)).offset == 2
    partition.close()


async def test_a_log_whose_start_was_trimmed_begins_there() -> None:
    log = MemoryLog()
    for _ in range(2):
        for _ in range(ENTRIES):
            log.write(batch(b"v"))
        log.roll()
    log.trim(ENTRIES)
    partition = open_partition(log)
    assert (await earliest_local(partition)).offset == ENTRIES
    partition.close()
