"""ListOffsets by time where producers' clocks do not agree with the broker's."""

from __future__ import annotations

import pytest

from handler.partition.read import timestamp_search
from handler.partition.read.timestamp_search import TimestampAndOffset, by_time
from handler.pulsar.entry import LedgerInfo, LogStats, Position
from tests.support.batches import batch
from tests.support.memory_log import MemoryLog
from tests.support.partitions import open_partition

HOUR_MS = 3_600_000


def a_log(*records: tuple[int, int], each: int = 1) -> MemoryLog:
    """The broker's time of an entry, and what its record says."""
    log = MemoryLog()
    for written_at, says in records:
        for _ in range(each):
            log.write(batch(b"v", timestamp=says))
            log.entries[-1].broker_timestamp = written_at
    return log


async def test_a_record_of_a_clock_that_is_ahead_is_found_before_a_later_one() -> None:
    partition = open_partition(a_log((HOUR_MS, 2 * HOUR_MS - 1), (2 * HOUR_MS - 10, 2 * HOUR_MS - 5), (2 * HOUR_MS, 2 * HOUR_MS)))
    assert await by_time(partition, 2 * HOUR_MS - 3) == TimestampAndOffset(0, 2 * HOUR_MS - 1)
    assert await by_time(partition, 2 * HOUR_MS) == TimestampAndOffset(2, 2 * HOUR_MS)
    partition.close()


async def test_it_is_found_where_nothing_was_written_since() -> None:
    partition = open_partition(a_log((HOUR_MS, 2 * HOUR_MS - 1)))
    assert await by_time(partition, 2 * HOUR_MS - 3) == TimestampAndOffset(0, 2 * HOUR_MS - 1)
    partition.close()


async def test_too_much_is_not_looked_through_for_it(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(timestamp_search, "AHEAD_ENTRIES", 50)
    caplog.set_level("INFO")
    partition = open_partition(a_log((HOUR_MS, 2 * HOUR_MS - 1), (2 * HOUR_MS, 2 * HOUR_MS), each=60))
    assert await by_time(partition, 2 * HOUR_MS - 3) == TimestampAndOffset(60, 2 * HOUR_MS)
    assert "60 entries may have records of clocks that are ahead" in caplog.text
    partition.close()


@pytest.mark.parametrize(
    ("first", "end", "entries"),
    [((1, 0), (1, 0), 0), ((1, 2), (1, 7), 5), ((1, 2), (2, 3), 11), ((1, 9), (4, 1), 12), ((1, 0), (9, 0), 30), ((2, 0), (1, 0), 0)],
)
def test_entries_between_two_places_are_counted(first: tuple[int, int], end: tuple[int, int], entries: int) -> None:
    stats = LogStats(tuple(LedgerInfo(ledger, 10, 100) for ledger in (1, 2, 4)))
    assert stats.between(Position(*first), Position(*end)) == (entries, 10 * entries)
