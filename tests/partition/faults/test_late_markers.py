"""A marker that comes late, when retention has taken all else of its producer."""

from __future__ import annotations

import asyncio

import pytest

from kafka_sidecar.wire.error_code import ErrorCode
from tests.support.batches import batch
from tests.support.memory_log import MemoryLog
from tests.support.memory_states import MemoryStates
from tests.support.partitions import append, open_partition
from tests.support.transactions import COMMITTED, Coordinator, committed_values, end, write


@pytest.mark.parametrize("late_epochs", [(0,), (1,), (0, 1)])
@pytest.mark.parametrize("is_kept", [False, True])
async def test_a_producer_goes_on_in_its_newer_epoch(is_kept: bool, late_epochs: tuple[int, ...]) -> None:
    log, states = MemoryLog(), MemoryStates() if is_kept else None
    first = open_partition(log, "kafka-sidecar-a", states=states)
    for epoch in (0, 1):
        assert (
            await write(first, Coordinator(100 + epoch), b"%d" % epoch, sequence=0, epoch=epoch)
        ).error is ErrorCode.NONE
        assert (await end(first, COMMITTED, 100 + epoch, epoch=epoch)).error is ErrorCode.NONE
    await asyncio.gather(*first.close())
    log.roll()
    gone = len(log.entries)
    second = open_partition(log, "kafka-sidecar-b", states=states)
    for epoch in late_epochs:  # its coordinator did not hear of the first try
        assert (await end(second, COMMITTED, 100 + epoch, epoch=epoch)).error in (
            ErrorCode.NONE,
            ErrorCode.INVALID_TXN_STATE,
        )
    await asyncio.gather(*second.close())
    log.trim(gone)
    third = open_partition(log, "kafka-sidecar-c", states=states)
    assert (await write(third, Coordinator(102), b"next", sequence=1, epoch=1)).error is ErrorCode.NONE
    assert (await end(third, COMMITTED, 102, epoch=1)).error is ErrorCode.NONE
    late = open_partition(log, "kafka-sidecar-d", states=states)
    for one in (third, late):
        assert await one.opened() is ErrorCode.NONE
        assert await committed_values(one, one.log_start) == [b"next"]
        await asyncio.gather(*one.close())


async def test_a_producer_goes_on_also_where_a_late_marker_is_all_that_was_kept_of_it() -> None:
    log, states = MemoryLog(), MemoryStates()
    first = open_partition(log, "kafka-sidecar-a")
    for epoch in (0, 1):
        assert (
            await write(first, Coordinator(100 + epoch), b"%d" % epoch, sequence=0, epoch=epoch)
        ).error is ErrorCode.NONE
        assert (await end(first, COMMITTED, 100 + epoch, epoch=epoch)).error is ErrorCode.NONE
    first.close()
    log.roll()
    gone = len(log.entries)
    second = open_partition(log, "kafka-sidecar-b")
    assert (await end(second, COMMITTED, 100, epoch=0)).error is ErrorCode.NONE
    second.close()
    log.trim(gone)
    keeping = open_partition(log, "kafka-sidecar-c", states=states)
    assert (await append(keeping, batch(b"other", producer_id=99, epoch=0, sequence=0))).error is ErrorCode.NONE
    await asyncio.gather(*keeping.close())
    restored = open_partition(log, "kafka-sidecar-d", states=states)
    assert (await write(restored, Coordinator(102), b"next", sequence=1, epoch=1)).error is ErrorCode.NONE
    restored.close()
