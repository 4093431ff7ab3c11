"""ListOffsets by time where producers' clocks do not agree with the broker's."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_sidecar.errors import EntryUnreadable
from kafka_sidecar.internal_topics.moved_start import MovedStart
from kafka_sidecar.partition.partition import Partition
from kafka_sidecar.partition.search import time_index, timestamp_search
from kafka_sidecar.partition.search.timestamp_search import NOT_FOUND, TimestampAndOffset, by_time, greatest_timestamp
from kafka_sidecar.pulsar.entry import LedgerInfo, LogStats, Position
from kafka_sidecar.pulsar.errors import Refused, Unavailable
from kafka_sidecar.pulsar.raw_entries import FIRST_PERMITS
from tests.support.batches import batch, records_batch, with_header
from tests.support.memory_log import MemoryLog
from tests.support.partitions import append, open_partition

Searches = Callable[[Partition], Coroutine[None, None, TimestampAndOffset]]

HOUR_MS = 3_600_000
ZSTD = 4


def a_log(*records: tuple[int, int], each: int = 1) -> MemoryLog:
    """The broker's time of an entry, and what its record says."""
    log = MemoryLog()
    for written_at, says in records:
        for _ in range(each):
            log.write(batch(b"v", timestamp=says))
            log.entries[-1].broker_timestamp = written_at
    return log


async def test_a_record_of_a_clock_that_is_ahead_is_found_before_a_later_one() -> None:
    partition = open_partition(
        a_log((HOUR_MS, 2 * HOUR_MS - 1), (2 * HOUR_MS - 10, 2 * HOUR_MS - 5), (2 * HOUR_MS, 2 * HOUR_MS))
    )
    assert await by_time(partition, 2 * HOUR_MS - 3) == TimestampAndOffset(0, 2 * HOUR_MS - 1)
    assert await by_time(partition, 2 * HOUR_MS) == TimestampAndOffset(2, 2 * HOUR_MS)
    partition.close()


async def test_it_is_found_where_nothing_was_written_since() -> None:
    partition = open_partition(a_log((HOUR_MS, 2 * HOUR_MS - 1)))
    assert await by_time(partition, 2 * HOUR_MS - 3) == TimestampAndOffset(0, 2 * HOUR_MS - 1)
    partition.close()


async def test_where_much_was_written_since_it_is_found_by_an_index(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timestamp_search, "AHEAD_ENTRIES", 50)
    log = a_log((HOUR_MS, 2 * HOUR_MS - 1), (2 * HOUR_MS, 2 * HOUR_MS), each=60)
    partition = open_partition(log)
    assert await by_time(partition, 2 * HOUR_MS - 3) == TimestampAndOffset(0, 2 * HOUR_MS - 1)
    log.write(batch(b"v", timestamp=3 * HOUR_MS))
    log.entries[-1].broker_timestamp = 2 * HOUR_MS + 1
    assert await by_time(partition, 2 * HOUR_MS + 1) == TimestampAndOffset(120, 3 * HOUR_MS)  # folded since
    assert await by_time(partition, 4 * HOUR_MS) == NOT_FOUND
    partition.close()


async def test_while_there_is_no_index_the_log_says_so(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(timestamp_search, "AHEAD_ENTRIES", 50)
    monkeypatch.setattr(timestamp_search, "WAIT_FOR_INDEX_SECONDS", 0.01)
    caplog.set_level("INFO")
    log = a_log((HOUR_MS, 2 * HOUR_MS - 1), (2 * HOUR_MS, 2 * HOUR_MS), each=60)
    partition = open_partition(log)
    await partition.opened()
    log.read_delay = 0.05
    assert await by_time(partition, 2 * HOUR_MS - 3) == TimestampAndOffset(60, 2 * HOUR_MS)
    assert "60 entries may have records of clocks that are ahead" in caplog.text
    await asyncio.sleep(0.2)  # it was read in the background
    assert await by_time(partition, 2 * HOUR_MS - 3) == TimestampAndOffset(0, 2 * HOUR_MS - 1)
    partition.close()


async def test_while_there_is_no_index_nobody_says_that_there_is_no_such_record(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The index takes longer than a search waits for it, and what was written lately is of clocks that are behind."""
    monkeypatch.setattr(timestamp_search, "AHEAD_ENTRIES", 50)
    monkeypatch.setattr(timestamp_search, "WAIT_FOR_INDEX_SECONDS", 0.01)
    partition = open_partition(log := a_log(*[(HOUR_MS, 2 * HOUR_MS - 1)] * 100, *[(2 * HOUR_MS, HOUR_MS)] * 30))
    await partition.opened()
    log.at_once, log.read_delay = 10, 0.01
    assert await by_time(partition, 2 * HOUR_MS - 3) == TimestampAndOffset(0, 2 * HOUR_MS - 1)
    partition.close()


async def test_a_time_that_no_record_reaches_is_looked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timestamp_search, "AHEAD_ENTRIES", 20)
    log = a_log(*((5 * HOUR_MS, HOUR_MS + entry) for entry in range(500)))
    partition = open_partition(log)
    assert await by_time(partition, 5 * HOUR_MS - 1) == NOT_FOUND
    opened = len(log.opened_at)
    for later in range(3):
        assert await by_time(partition, 5 * HOUR_MS - later) == NOT_FOUND
    assert await by_time(partition, HOUR_MS + 400) == TimestampAndOffset(400, HOUR_MS + 400)
    assert len(log.opened_at) == opened + 2, (
        "only the stretch of the record that is there was read, and what consumers get of it"
    )
    partition.close()


@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(1, 3), st.booleans()), min_size=1, max_size=40),
    st.integers(0, 45),
    st.integers(0, 30),
    st.integers(0, 30),
    st.booleans(),
)
def test_the_answers_are_those_of_the_whole_log_read_from_its_start(
    entries: list[tuple[int, int, bool]], timestamp: int, more: int, moved: int, indexed: bool
) -> None:
    """Whatever the records' times, with an index or without; also of what is written behind it, and behind a moved
    start.
    """
    asyncio.run(_compare(entries, timestamp, more, moved, indexed))


async def _compare(entries: list[tuple[int, int, bool]], timestamp: int, more: int, moved: int, indexed: bool) -> None:
    log = MemoryLog()
    records: list[TimestampAndOffset] = []

    def write(step: tuple[int, int, bool]) -> None:
        says, count, rolls = step
        if rolls:
            log.roll()
        log.write(batch(*[b"v"] * count, timestamp=says))
        log.entries[-1].broker_timestamp = len(records)
        first = len(records)
        records.extend(TimestampAndOffset(first + number, says + number) for number in range(count))

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(time_index, "FIRST_STRETCH_BYTES", 5_000)
        patched.setattr(time_index, "MAX_STRETCHES", 4)
        if indexed:
            patched.setattr(timestamp_search, "AHEAD_ENTRIES", 2)
            patched.setattr(timestamp_search, "AHEAD_BYTES", 100)
        cut = min(more, len(entries) - 1)
        for step in entries[: len(entries) - cut]:
            write(step)
        begin = min(moved, len(log.entries) - 1)
        log_start = log.entries[begin].last_index
        assert log_start is not None
        if moved:
            log.start_moved_to = MovedStart(log.entries[begin].position, log_start)
        else:
            log_start = 0
        partition = open_partition(log)
        if indexed:
            await by_time(partition, 10**6)
            await greatest_timestamp(partition)
        for step in entries[len(entries) - cut :]:
            write(step)
        left = [one for one in records if one.offset >= log_start]
        assert await by_time(partition, timestamp) == next(
            (one for one in left if one.timestamp >= timestamp), NOT_FOUND
        )
        assert await greatest_timestamp(partition) == max(left, key=lambda one: (one.timestamp, -one.offset))
        partition.close()


@pytest.mark.parametrize(
    ("first", "end", "entries"),
    [
        ((1, 0), (1, 0), 0),
        ((1, 2), (1, 7), 5),
        ((1, 2), (2, 3), 11),
        ((1, 9), (4, 1), 12),
        ((1, 0), (9, 0), 30),
        ((2, 0), (1, 0), 0),
    ],
)
def test_entries_between_two_places_are_counted(first: tuple[int, int], end: tuple[int, int], entries: int) -> None:
    stats = LogStats(tuple(LedgerInfo(ledger, 10, 100) for ledger in (1, 2, 4)))
    assert stats.between(Position(*first), Position(*end)) == (entries, 10 * entries)


async def scanning(log: MemoryLog) -> None:
    """Until a search reads the log."""
    async with asyncio.timeout(5):
        while not any(reader.permits in (FIRST_PERMITS, timestamp_search.SCAN_PERMITS) for reader in log.readers):  # noqa: ASYNC110
            await asyncio.sleep(0.001)


@pytest.mark.parametrize(
    "end", [Partition.close, lambda partition: partition.end_for(Refused("too many subscriptions"))]
)
async def test_a_search_whose_partition_ends_says_so_and_not_that_there_is_no_record(
    end: Callable[[Partition], object],
) -> None:
    log = a_log(*((HOUR_MS + entry, HOUR_MS + entry) for entry in range(5)))
    partition = open_partition(log)
    await partition.confirmed_end()
    log.read_delay = 0.02
    search = asyncio.create_task(by_time(partition, HOUR_MS + 2))
    await scanning(log)
    end(partition)
    with pytest.raises(Unavailable):
        await search


async def test_a_search_that_consumers_readers_can_not_follow_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    log = a_log((HOUR_MS, HOUR_MS), each=300)
    partition = open_partition(log, cache=1)
    await partition.confirmed_end()

    async def refused(index: int) -> Position:
        raise Refused("not allowed")

    monkeypatch.setattr(partition._catch_ups._log, "find_index", refused)
    with pytest.raises(Unavailable):
        await by_time(partition, HOUR_MS)
    partition.close()


async def test_who_asks_while_a_search_is_under_way_does_not_miss_what_was_acknowledged_before() -> None:
    log = a_log((HOUR_MS, HOUR_MS), each=5)
    partition = open_partition(log)
    await partition.confirmed_end()
    log.read_delay = 0.02
    first = asyncio.create_task(by_time(partition, 2 * HOUR_MS))
    greatest = asyncio.create_task(greatest_timestamp(partition))
    await scanning(log)
    written = await append(partition, batch(b"later", timestamp=2 * HOUR_MS))
    assert await by_time(partition, 2 * HOUR_MS) == TimestampAndOffset(written.base_offset, 2 * HOUR_MS)
    assert await greatest_timestamp(partition) == TimestampAndOffset(written.base_offset, 2 * HOUR_MS)
    assert await first == NOT_FOUND, "it was not there when this one asked"
    await greatest
    partition.close()


async def test_a_partition_is_not_idle_while_it_is_searched() -> None:
    log = a_log((HOUR_MS, HOUR_MS), each=5)
    partition = open_partition(log)
    await partition.confirmed_end()
    log.read_delay = 0.02
    search = asyncio.create_task(by_time(partition, HOUR_MS))
    await scanning(log)
    in_a_day = asyncio.get_running_loop().time() + 86_400
    assert not partition.idle(in_a_day)
    await search
    await asyncio.sleep(0)
    assert partition.idle(in_a_day)
    partition.close()


async def test_a_batch_that_unfolds_to_more_than_is_opened_is_unreadable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timestamp_search, "MAX_UNFOLDED", 10_000)
    log = MemoryLog()
    log.write(batch(bytes(100_000), timestamp=HOUR_MS, codec=ZSTD))
    partition = open_partition(log)
    for search in (by_time(partition, HOUR_MS), greatest_timestamp(partition)):
        with pytest.raises(EntryUnreadable, match="10000 bytes"):
            await search
    partition.close()


def of_a_producer(*timestamps: int, sequence: int) -> bytes:
    data = records_batch([(None, b"r", timestamp) for timestamp in timestamps])
    return with_header(data, producer_id=7, producer_epoch=0, base_sequence=sequence)


async def with_hidden_batches(log: MemoryLog, hidden: int, records: int) -> Partition:
    """The greatest timestamps of the log are in batches that no consumer is given."""
    partition = open_partition(log)
    for sequence in range(2):
        await append(partition, of_a_producer(HOUR_MS + sequence, sequence=sequence))
    partition.close()
    for number in range(hidden):
        log.write(of_a_producer(*[2 * HOUR_MS + number] * records, sequence=500))
    for _ in range(50):
        log.write(batch(bytes(1_000), timestamp=HOUR_MS))
    return open_partition(log)


async def test_hidden_records_do_not_have_the_log_read_again() -> None:
    log = MemoryLog()
    partition = await with_hidden_batches(log, hidden=3, records=200)
    assert await greatest_timestamp(partition) == TimestampAndOffset(1, HOUR_MS + 1)
    size = sum(len(entry.payload) for entry in log.entries)
    assert log.bytes_read < 8 * size
    partition.close()


async def test_the_greatest_is_found_behind_more_hidden_batches_than_are_remembered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(timestamp_search, "MOST_CANDIDATES", 2)
    partition = await with_hidden_batches(MemoryLog(), hidden=9, records=2)
    assert await greatest_timestamp(partition) == TimestampAndOffset(1, HOUR_MS + 1)
    partition.close()


async def test_of_a_batch_the_greatest_record_behind_the_log_start_is_found() -> None:
    log = MemoryLog()
    log.write(records_batch([(None, b"r", HOUR_MS + at) for at in (9, 8, 2, 7)]))
    log.write(batch(b"r", timestamp=HOUR_MS + 3))
    partition = open_partition(log)
    assert await greatest_timestamp(partition) == TimestampAndOffset(0, HOUR_MS + 9)
    partition.on_start_moved(MovedStart(log.entries[0].position, 2))
    assert await greatest_timestamp(partition) == TimestampAndOffset(3, HOUR_MS + 7)
    partition.close()


@pytest.mark.parametrize("search", [lambda one: by_time(one, HOUR_MS + 49), greatest_timestamp])
async def test_where_the_start_moves_meanwhile_what_is_left_is_searched(search: Searches) -> None:
    log = a_log(*((HOUR_MS + entry, HOUR_MS + entry) for entry in range(50)))
    partition = open_partition(log)
    await partition.confirmed_end()
    log.read_delay, log.at_once = 0.02, 10
    found = asyncio.create_task(search(partition))
    await scanning(log)
    log.write(batch(b"later", timestamp=2 * HOUR_MS))
    await partition.confirmed_end()
    partition.on_start_moved(MovedStart(log.entries[-1].position, 50))
    assert await found == TimestampAndOffset(50, 2 * HOUR_MS)
    partition.close()


async def test_the_greatest_is_one_of_the_log_as_it_was_at_one_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    """The start passes the greatest record when a greater one has been written: the second was the greatest of no
    log.
    """
    log = a_log((HOUR_MS, HOUR_MS + 9), (HOUR_MS, HOUR_MS + 7))
    partition = open_partition(log)
    await partition.confirmed_end()
    whole = timestamp_search._greatest_timestamp

    async def looked_through(searched: Partition, log_start: int) -> TimestampAndOffset:
        if log_start == 0:
            log.write(batch(b"later", timestamp=2 * HOUR_MS))
            partition.on_start_moved(MovedStart(log.entries[1].position, 1))
            return TimestampAndOffset(1, HOUR_MS + 7)
        return await whole(searched, log_start)

    monkeypatch.setattr(timestamp_search, "_greatest_timestamp", looked_through)
    assert await greatest_timestamp(partition) == TimestampAndOffset(2, 2 * HOUR_MS)
    partition.close()


async def test_the_greatest_is_found_though_the_start_moves_during_each_look(monkeypatch: pytest.MonkeyPatch) -> None:
    partition = open_partition(log := a_log(*[(HOUR_MS, HOUR_MS)] * 50, (HOUR_MS, 2 * HOUR_MS)))
    await partition.confirmed_end()
    whole, looks = timestamp_search._greatest_timestamp, 0

    async def looked_through(searched: Partition, log_start: int) -> TimestampAndOffset:
        nonlocal looks
        looks += 1
        partition.on_start_moved(MovedStart(log.entries[looks].position, looks))
        log.write(batch(b"later", timestamp=HOUR_MS))
        return await whole(searched, log_start)

    monkeypatch.setattr(timestamp_search, "_greatest_timestamp", looked_through)
    assert await greatest_timestamp(partition) == TimestampAndOffset(50, 2 * HOUR_MS)
    assert looks <= 2
    partition.close()


async def test_a_record_that_is_deleted_meanwhile_is_not_waited_for_while_pulsar_is_away() -> None:
    partition = open_partition(a_log((HOUR_MS, HOUR_MS), (HOUR_MS + 1, HOUR_MS + 1)))
    await partition.opened()
    partition.on_start_moved(MovedStart(partition.last_position or Position(0, 0), 1))

    async def away() -> None:
        raise Unavailable("no broker")

    partition.read_to_end = away  # type: ignore[method-assign]
    async with asyncio.timeout(5):
        assert not await timestamp_search._is_served(partition, 0)
    partition.close()


async def test_a_long_search_without_a_result_reads_nothing_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Storage that takes seconds for a log: clients wait for five."""
    monkeypatch.setattr(timestamp_search, "LASTING_SECONDS", 0.01)
    log = a_log((HOUR_MS, HOUR_MS), each=5)
    partition = open_partition(log)
    await partition.confirmed_end()
    log.read_delay = 0.02
    opened = len(log.opened_at)
    assert await by_time(partition, 2 * HOUR_MS) == NOT_FOUND
    assert len(log.opened_at) == opened + 1
    partition.close()


class WrittenMeanwhile(MemoryLog):
    """While the broker is asked for a time, others write, and the reader that is opened then begins behind the first of
    that.
    """

    def __init__(self) -> None:
        super().__init__()
        self.meanwhile: list[int] = []  # times of records
        self.seconds = 0.0

    async def find_time(self, timestamp: int) -> Position | None:
        found = await super().find_time(timestamp)
        if self.meanwhile:
            await asyncio.sleep(self.seconds)
            for says in self.meanwhile:
                self.write(batch(b"later", timestamp=says))
                self.entries[-1].broker_timestamp = says
            self.meanwhile = []
            return self.entries[-1].position
        return found


@pytest.mark.parametrize("seconds", [0.0, 1.1])
async def test_what_was_written_during_a_search_is_found_from_its_first_record_on_or_not_at_all(seconds: float) -> None:
    log = WrittenMeanwhile()
    for _ in range(3):
        log.write(batch(b"v", timestamp=HOUR_MS))
        log.entries[-1].broker_timestamp = HOUR_MS
    partition = open_partition(log)
    await partition.opened()
    log.meanwhile, log.seconds = [2 * HOUR_MS] * 3, seconds
    found = await by_time(partition, 2 * HOUR_MS - 1)
    assert found == (NOT_FOUND if seconds == 0.0 else TimestampAndOffset(3, 2 * HOUR_MS))
    assert await by_time(partition, 2 * HOUR_MS - 1) == TimestampAndOffset(3, 2 * HOUR_MS)
    partition.close()
