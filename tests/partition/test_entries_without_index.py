"""Topics that were written before the interceptor was on: they are served from the first entry on that has an index."""

from __future__ import annotations

import asyncio

import pytest

from kafka_sidecar.partition.search.timestamp_search import TimestampAndOffset, by_time, greatest_timestamp
from kafka_sidecar.pulsar import raw_entries
from kafka_sidecar.pulsar.entry import Position, RawEntry
from kafka_sidecar.pulsar.pulsar_api_pb2 import MessageMetadata
from kafka_sidecar.wire.error_code import ErrorCode
from tests.model.connections import Reader
from tests.support.batches import batch
from tests.support.memory_log import MemoryLog
from tests.support.memory_states import MemoryStates
from tests.support.partitions import append, begin_append, fetch, open_partition, read_all
from tests.support.virtual_time import in_virtual_time
from tests.support.what_is_left import closed, ticking

WINDOW_ENTRIES = 2_000


def a_log(old: int, new: int) -> MemoryLog:
    log = MemoryLog()
    write_old(log, old)
    log.roll()  # to switch it on a broker is restarted
    log.index = -1
    log.note_index()
    for number in range(new):
        log.write(batch(b"%d" % number, timestamp=number))
    return log


def write_old(log: MemoryLog, count: int) -> None:
    for _ in range(count):
        log.append(MessageMetadata(producer_name=b"native", sequence_id=0, publish_time=1), 1, b"old")
        last = log.entries[-1]
        log.entries[-1] = RawEntry(last.position, None, None, last.metadata, last.payload)


@pytest.mark.parametrize(("old", "new"), [(3, 5), (3, 300), (300, 5), (300, 300), (1, 1)])
async def test_what_has_an_index_is_served_from_offset_0_on(old: int, new: int) -> None:
    log = a_log(old, new)
    partition = open_partition(log)
    values = [(number, b"%d" % number) for number in range(new)]
    assert await read_all(partition) == values
    assert (await partition.confirmed_start(), await partition.confirmed_end()) == (0, new)
    assert log.noted_without_index
    assert await by_time(partition, 0) == TimestampAndOffset(0, 0)
    assert await greatest_timestamp(partition) == TimestampAndOffset(new - 1, new - 1)
    assert (await append(partition, batch(b"next", producer_id=7, epoch=0, sequence=0))).base_offset == new
    assert (await append(partition, batch(b"next", producer_id=7, epoch=0, sequence=0))).base_offset == new
    partition.close()
    later = open_partition(log, "kafka-sidecar-later")
    assert await read_all(later) == [*values, (new, b"next")]
    assert (await append(later, batch(b"next", producer_id=7, epoch=0, sequence=0))).base_offset == new
    later.close()


@pytest.mark.parametrize("old", [1, 100])
async def test_a_log_in_which_nothing_has_an_index_yet_is_empty_and_can_be_written(old: int) -> None:
    log = a_log(old, 0)
    partition = open_partition(log)
    assert await read_all(partition) == []
    assert (await partition.confirmed_start(), await partition.confirmed_end()) == (0, 0)
    for number in range(3):
        assert (await append(partition, batch(b"%d" % number))).base_offset == number
    log.disconnect()
    assert (await append(partition, batch(b"3"))).base_offset == 3
    assert await read_all(partition) == [(number, b"%d" % number) for number in range(4)]
    partition.close()


async def test_an_interceptor_that_is_switched_off_is_an_alarm_and_nothing_is_skipped() -> None:
    log = a_log(0, 5)
    partition = open_partition(log)
    assert len(await read_all(partition)) == 5
    write_old(log, 1)
    await partition.opened()
    with pytest.raises(Exception, match="without an index"):
        await partition.confirmed_end()
    assert partition.ended is ErrorCode.KAFKA_STORAGE_ERROR


async def test_a_log_whose_last_entries_have_no_index_any_more_is_not_opened_as_an_empty_one() -> None:
    log = a_log(0, 5)
    write_old(log, 200)
    partition = open_partition(log)
    assert await partition.opened() is ErrorCode.KAFKA_STORAGE_ERROR


async def test_what_is_between_is_an_error_where_it_stands() -> None:
    log = a_log(0, 5)
    write_old(log, 10)
    for number in range(200):
        log.write(batch(b"later %d" % number))
    partition = open_partition(log)
    await partition.opened()
    run = await fetch(partition, 0)
    while run.error is ErrorCode.NONE and run.next_offset < 5:
        run = await fetch(partition, run.next_offset)
    assert (await fetch(partition, 5)).error is ErrorCode.KAFKA_STORAGE_ERROR
    partition.close()


class MisledLog(MemoryLog):
    """Searches by halves are misled by entries without an index."""

    async def find_index(self, index: int) -> Position | None:
        behind = [entry.position for entry in self.present if entry.last_index is not None and entry.last_index >= 10]
        return behind[0]


async def test_a_search_that_is_misled_by_entries_without_an_index_skips_nothing() -> None:
    log = MisledLog()
    for number in range(10):
        log.write(batch(b"%d" % number))
    write_old(log, 80)
    for _ in range(200):
        log.append(MessageMetadata(producer_name=b"native", sequence_id=0, publish_time=1), 1, b"later")
    log.index = 9
    for entry in log.entries[90:]:
        log.index += 1
        entry.last_index = log.index
    partition = open_partition(log)
    await partition.opened()
    assert (await fetch(partition, 5)).error is ErrorCode.KAFKA_STORAGE_ERROR
    partition.close()


async def test_old_entries_are_not_read_again_for_the_first_batch_behind_them() -> None:
    log = a_log(1_000, 0)
    partition = open_partition(log)
    for sequence in range(3):
        await append(partition, batch(b"x", producer_id=7, epoch=0, sequence=sequence))
    partition.close()
    later = open_partition(log, "kafka-sidecar-later")
    await later.opened()
    given = 0
    deliver = Reader._hand_out

    def counted(reader: Reader) -> None:
        nonlocal given
        before = reader._next
        deliver(reader)
        if reader._next is not None and reader._next.ledger == 1:
            given += reader._next.entry - (0 if before is None else before.entry)

    Reader._hand_out = counted  # type: ignore[assignment,method-assign]
    try:
        assert [value for _, value in await read_all(later)] == [b"x"] * 3
    finally:
        Reader._hand_out = deliver  # type: ignore[method-assign]
    assert given < 200
    later.close()


async def test_what_others_write_while_a_log_without_indexes_is_opened_counts() -> None:
    log = a_log(3, 0)

    async def index_property() -> int | None:
        log.write(batch(b"a", b"b"))
        await asyncio.sleep(0.05)
        return -1

    log.index_property = index_property  # type: ignore[method-assign]
    partition = open_partition(log)
    await partition.opened()
    assert await partition.confirmed_end() == 2
    assert (await append(partition, batch(b"c"))).base_offset == 2
    partition.close()


async def test_what_a_sidecar_wrote_has_an_index_or_the_broker_does_not_show_it() -> None:
    log = MemoryLog()
    for _ in range(5):
        log.write(batch(b"mine"))
    for number, entry in enumerate(log.entries):
        log.entries[number] = RawEntry(entry.position, None, None, entry.metadata, entry.payload)
    log.index = -1
    partition = open_partition(log)
    assert await partition.opened() is ErrorCode.KAFKA_STORAGE_ERROR


async def test_indexes_that_are_stored_and_not_shown_are_an_alarm() -> None:
    log = a_log(5, 0)
    log.first_indexed = lambda: _first(log)  # type: ignore[method-assign]
    partition = open_partition(log)
    assert await partition.opened() is ErrorCode.KAFKA_STORAGE_ERROR


async def _first(log: MemoryLog) -> Position | None:
    return log.entries[0].position


async def test_the_start_is_that_of_the_first_indexed_entry_also_where_retention_has_removed_some() -> None:
    log = a_log(0, 100)
    write_old(log, 3)
    log.roll()
    for _ in range(200):
        log.write(batch(b"later"))
    log.trim(100)
    partition = open_partition(log)
    await partition.opened()
    assert await partition.confirmed_start() == 103
    partition.close()


async def test_a_gap_behind_old_entries_is_a_gap() -> None:
    log = a_log(100, 5)
    log.index += 1  # a failed write, or a marker
    log.roll()
    for number in range(100):
        log.write(batch(b"later %d" % number))
    partition = open_partition(log)
    assert [offset for offset, _ in await read_all(partition)] == [*range(5), *range(6, 106)]
    partition.close()


async def test_where_only_a_marker_has_an_index_the_partition_opens_behind_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(raw_entries, "ENTRY_SECONDS", 0.05)
    log = a_log(100, 0)
    log.mark()
    log.index = 0
    last = log.entries[-1]
    log.entries[-1] = RawEntry(last.position, 0, None, last.metadata, last.payload)
    partition = open_partition(log)
    assert await partition.opened() is ErrorCode.NONE
    assert (await append(partition, batch(b"first"))).base_offset == 1
    assert await read_all(partition, 1) == [(1, b"first")]
    partition.close()


@pytest.mark.parametrize("old", [0, 3, 300])
def test_a_retry_behind_entries_without_an_index_is_recognised_when_its_sidecar_was_killed(old: int) -> None:
    """It has kept what it knew when no entry had an index. Others have written more than the window behind that."""

    async def play() -> None:
        log, states = a_log(old, 0), MemoryStates()
        killed = open_partition(log, "kafka-sidecar-killed", states=states)
        first = batch(b"first", producer_id=7, epoch=0, sequence=0)
        await killed.opened()
        await asyncio.sleep(0.001)
        assert (await append(killed, first)).base_offset == 0
        await asyncio.sleep(1.0)
        assert states.values, "it has kept something"
        for _ in range(WINDOW_ENTRIES + 100):
            log.write(batch(b"other"))
        partition = open_partition(log, "kafka-sidecar-a", states=states)
        assert await partition.opened() is ErrorCode.NONE
        ticks = asyncio.create_task(ticking(partition))
        assert (await begin_append(partition, first, 20)).base_offset == 0
        ticks.cancel()
        await closed(partition)

    in_virtual_time(play())
