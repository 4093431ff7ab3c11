"""The storage of old ledgers is slow or away: what stands in other ledgers is served nevertheless."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from kafka_sidecar.internal_topics.moved_start import MovedStart
from kafka_sidecar.partition import opening
from kafka_sidecar.partition.partition import Partition
from kafka_sidecar.partition.read import catch_up_reader, catch_up_readers, log_start
from kafka_sidecar.partition.read.fetch_cache import FetchedRun
from kafka_sidecar.pulsar import raw_entries
from kafka_sidecar.pulsar.errors import Unavailable
from kafka_sidecar.wire.error_code import ErrorCode
from tests.support.batches import batch
from tests.support.fake_broker import until
from tests.support.memory_log import MemoryLog
from tests.support.memory_states import MemoryStates
from tests.support.partitions import append, fetch, open_partition
from tests.support.transactions import ABORTED, Coordinator, end, write

OLD, RECENT = 1, 2
EACH = 200


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(raw_entries, "ENTRY_SECONDS", 0.05)
    monkeypatch.setattr(log_start, "BEGIN_SECONDS", 0.05)
    monkeypatch.setattr(log_start, "CONFIRM_SECONDS", 0.1)
    monkeypatch.setattr(opening, "SILENT_SECONDS", 0.1)
    monkeypatch.setattr(catch_up_reader, "MOVES_SECONDS", 0.05)


def two_ledgers(in_the_last: int = EACH) -> MemoryLog:
    log = MemoryLog()
    for number in range(EACH):
        log.write(batch(b"%d" % number))
    log.roll()
    for number in range(EACH, EACH + in_the_last):
        log.write(batch(b"%d" % number))
    return log


async def opened(log: MemoryLog, name: str = "kafka-sidecar-a", states: MemoryStates | None = None) -> Partition:
    partition = open_partition(log, name, cache=1, states=states)
    assert await partition.opened() is ErrorCode.NONE
    return partition


async def test_a_partition_opens_and_learns_its_start_later() -> None:
    log = two_ledgers()
    log.silent.add(OLD)
    partition = await opened(log)
    assert (await append(partition, batch(b"new"))).base_offset == 2 * EACH
    assert (await fetch(partition, EACH)).error is ErrorCode.NONE
    with pytest.raises(Unavailable):
        await partition.confirmed_start()
    log.silent.clear()
    await until(lambda: partition._log_start._task is None or partition._log_start._task.done())
    assert await partition.confirmed_start() == 0
    partition.close()


async def test_what_retention_took_is_out_of_range_though_the_start_was_not_known_at_first() -> None:
    log = two_ledgers()
    log.roll()
    log.write(batch(b"the last one"))
    log.trim(EACH)
    log.silent.add(RECENT)
    partition = await opened(log)
    assert partition.log_start == 0
    log.silent.clear()
    assert (await fetch(partition, 5)).error is ErrorCode.OFFSET_OUT_OF_RANGE
    assert await partition.confirmed_start() == EACH
    partition.close()


@pytest.mark.parametrize("in_the_last", [1, 10])
async def test_a_partition_opens_whose_last_ledger_is_short(in_the_last: int) -> None:
    """What is written next is judged by the last entries, which reach into the ledger that is away."""
    log = two_ledgers(in_the_last)
    log.silent.add(OLD)
    partition = await opened(log)
    assert await partition.confirmed_end() == EACH + in_the_last
    assert (await append(partition, batch(b"new"))).base_offset == EACH + in_the_last
    partition.close()


async def test_a_partition_with_transactions_goes_on_from_what_was_kept() -> None:
    log, states, coordinator = two_ledgers(), MemoryStates(), Coordinator()
    partition = await opened(log, states=states)
    await write(partition, coordinator, b"gone", sequence=0)
    await end(partition, ABORTED)
    await asyncio.gather(*partition.close())
    log.silent.add(OLD)
    again = await opened(log, "kafka-sidecar-b", states)
    assert (await append(again, batch(b"new"))).base_offset == 2 * EACH + 2
    assert again.last_stable_offset == 2 * EACH + 3
    again.close()


async def test_the_patience_with_slow_storage_grows_until_it_is_enough() -> None:
    log = two_ledgers()
    partition = await opened(log)
    log.read_delay = 0.12
    assert (await fetch(partition, 3)).error is ErrorCode.NONE
    assert raw_entries.ENTRY_SECONDS < log.patience.at(None, None) <= raw_entries.LONGEST_SECONDS
    partition.close()


async def polled(partition: Partition, offset: int) -> FetchedRun:
    """As a consumer asks, which waits only so long for each answer."""
    while True:
        with contextlib.suppress(TimeoutError):
            return await fetch(partition, offset, 0.1)


@pytest.mark.parametrize("stuck", [1, catch_up_readers.MAX_READERS])
async def test_who_waits_for_storage_that_is_away_holds_up_nobody_else(stuck: int) -> None:
    log = two_ledgers()
    partition = await opened(log)
    await partition.confirmed_end()
    log.silent.add(OLD)
    waiting = [asyncio.create_task(polled(partition, 10 * number)) for number in range(stuck, 0, -1)]
    await asyncio.sleep(0)
    assert (await asyncio.wait_for(polled(partition, EACH + 20), 10)).error is ErrorCode.NONE
    assert not any(task.done() for task in waiting)
    for task in waiting:
        task.cancel()
    partition.close()


async def test_a_start_that_a_client_has_moved_is_told_though_the_first_entry_can_not_be_read() -> None:
    log = two_ledgers()
    partition = await opened(log)
    position = await log.find_index(EACH + 50)
    assert position is not None
    log.start_moved_to = MovedStart(position, EACH + 50)
    partition.close()
    log.silent.add(OLD)
    again = await opened(log, "kafka-sidecar-b")
    assert await again.confirmed_start() == EACH + 50
    again.close()
