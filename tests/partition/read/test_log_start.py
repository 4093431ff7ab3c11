"""A broker that says nothing for a while has not said that nothing is there."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from kafka_sidecar.errors import SidecarError
from kafka_sidecar.internal_topics.moved_start import MovedStart
from kafka_sidecar.partition.follow.read_entries import NothingToRead, first_entry
from kafka_sidecar.partition.read.log_start import LogStart
from kafka_sidecar.pulsar import raw_entries
from kafka_sidecar.pulsar.entry import LogStats, Position
from kafka_sidecar.pulsar.raw_entries import NoEntryCame
from kafka_sidecar.wire.error_code import ErrorCode
from tests.support.batches import batch
from tests.support.memory_log import MemoryLog
from tests.support.partitions import append, open_partition


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(raw_entries, "ENTRY_SECONDS", 0.02)


class Ended:
    """A partition of which the end is known."""

    async def confirmed_end(self) -> int:
        return 7

    def changed(self) -> None: ...
    def note_stats(self, stats: LogStats) -> None: ...


async def test_the_start_stays_where_it_is_while_the_broker_is_slow() -> None:
    log = MemoryLog()
    for number in range(7):
        log.write(batch(b"%d" % number))
    log.read_delay = 0.1
    start = LogStart(log, Ended())
    with pytest.raises(NoEntryCame):
        await start.refresh()
    assert start.offset == 0
    log.read_delay = 0.0
    assert await start.refresh() == 0


async def test_the_start_is_the_end_where_all_that_is_left_are_markers() -> None:
    log = MemoryLog()
    for number in range(5):
        log.write(batch(b"%d" % number))
    log.roll()
    log.mark()
    log.mark()
    log.trim(5)
    start = LogStart(log, Ended())
    assert await start.refresh() == 7


async def test_a_record_that_comes_into_an_empty_log_meanwhile_is_the_start() -> None:
    log = MemoryLog()
    for number in range(7):
        log.write(batch(b"%d" % number))

    class Written(Ended):
        async def confirmed_end(self) -> int:
            log.write(batch(b"new"))
            return 7

    start = LogStart(log, Written())
    assert await start.confirmed() == 0
    log.roll()
    log.trim(7)
    assert await start.refresh() == 7
    assert await start.confirmed() == 7


@pytest.mark.parametrize("is_slow", [False, True])
async def test_the_first_entry_is_not_there_only_where_the_broker_says_so(is_slow: bool) -> None:
    log = MemoryLog()
    log.mark()
    if is_slow:
        log.write(batch(b"a"))
        log.read_delay = 0.1
    with pytest.raises(NoEntryCame if is_slow else NothingToRead):
        await first_entry(log)


async def test_a_partition_that_is_opened_meanwhile_begins_at_no_wrong_offset() -> None:
    log = MemoryLog()
    writing = open_partition(log, "kafka-sidecar-writing")
    for number in range(200):
        assert (await append(writing, batch(b"%d" % number))).error is ErrorCode.NONE
    opening = open_partition(log, "kafka-sidecar-opening")
    log.read_delay = 0.05
    await opening.opened()
    assert opening.log_start == 0
    writing.close()
    opening.close()


@pytest.mark.parametrize("comes_after", [0.0, 0.03, 0.2, 0.9])
async def test_what_comes_while_a_log_of_markers_is_looked_at_is_not_before_its_start(comes_after: float) -> None:
    log = MemoryLog()
    asking, writing = open_partition(log, "kafka-sidecar-asking"), open_partition(log, "kafka-sidecar-writing")
    for number in range(5):
        assert (await append(writing, batch(b"%d" % number))).error is ErrorCode.NONE
    assert await asking.opened() is ErrorCode.NONE
    await asking.confirmed_end()
    log.roll()
    log.mark()
    log.mark()
    log.trim(5)
    asked = asyncio.ensure_future(asking.ask_log_start())
    await asyncio.sleep(comes_after)
    written = await append(writing, batch(b"meanwhile"))
    assert written.base_offset == 7
    with contextlib.suppress(SidecarError):
        await asked
    assert asking.log_start <= 7
    asking.close()
    writing.close()


async def test_a_move_that_is_told_while_the_log_is_opened_counts() -> None:
    """An older one was told before, and had the first entry looked for."""
    log = MemoryLog()
    for number in range(7):
        log.write(batch(b"%d" % number))
    start = LogStart(log, Ended())
    start.move_to(MovedStart(Position(1, 2), 2))
    await start.confirmed()
    start.note(MovedStart(Position(1, 4), 4))
    start.note(MovedStart(Position(1, 3), 3))
    await start.begin(await log.stats(), None, 0.0)
    assert start.offset == 4
