"""A transaction has no marker in the log, and its producer has gone on with the next one.

Releases before 0.3 left such logs behind, where sidecars of two namespaces shared groups: a marker went to the other
team's topic.
"""

from __future__ import annotations

import logging

import pytest

from kafka_sidecar.partition.follow import late_transactions
from kafka_sidecar.partition.partition import Partition
from kafka_sidecar.telemetry.limits import RateLimitedLog
from tests.support.batches import batch
from tests.support.memory_log import MemoryLog
from tests.support.memory_states import MemoryStates
from tests.support.partitions import append, open_partition, read_all
from tests.support.transactions import ABORTED, COMMITTED, PRODUCER, Coordinator, committed_values, end, write

LEFT, NEXT = 100, 101


async def a_log_with_one_left_open(states: MemoryStates | None = None) -> tuple[MemoryLog, Partition]:
    log = MemoryLog()
    partition, coordinator = open_partition(log, states=states), Coordinator(LEFT)
    await write(partition, coordinator, b"left", sequence=0)
    await append(partition, batch(b"other"))
    coordinator.number = NEXT
    await write(partition, coordinator, b"next", sequence=1)
    return log, partition


@pytest.mark.parametrize("of_next", [COMMITTED, ABORTED])
async def test_the_marker_of_the_next_one_decides_nothing_of_it(of_next: bool) -> None:
    _, partition = await a_log_with_one_left_open()
    await end(partition, of_next, NEXT)
    assert (partition.last_stable_offset, partition.end_offset) == (0, 4)
    assert await committed_values(partition) == []
    assert [value for _, value in await read_all(partition)][:3] == [b"left", b"other", b"next"]
    partition.close()


@pytest.mark.parametrize("is_cold", [False, True])
@pytest.mark.parametrize("of_left", [COMMITTED, ABORTED])
@pytest.mark.parametrize("of_next", [COMMITTED, ABORTED, None])
async def test_its_own_marker_ends_it_whatever_became_of_the_next(
    of_left: bool, of_next: bool | None, is_cold: bool
) -> None:
    """Also for who has served it before, for who comes later, and from what was kept of the fold."""
    states = MemoryStates()
    log, partition = await a_log_with_one_left_open(states)
    watching = open_partition(log, "kafka-sidecar-watching")
    await read_all(watching)
    if of_next is not None:
        await end(partition, of_next, NEXT)
    assert (await end(partition, of_left, LEFT)).error.name == "NONE"
    if of_next is None:
        assert (await end(partition, COMMITTED, NEXT)).error.name == "NONE"
    await append(partition, batch(b"behind"))
    shown = [*[b"left"] * of_left, b"other", *[b"next"] * (of_next is not False), b"behind"]
    partition.close()
    coming, going_on = (
        open_partition(log, "kafka-sidecar-coming"),
        open_partition(log, "kafka-sidecar-going-on", states=states),
    )
    for one in (watching, coming, going_on):
        if is_cold:
            await one.confirmed_end()
            one._cache.clear()
        assert await committed_values(one) == shown
        assert one.last_stable_offset == one.end_offset
        one.close()


async def test_its_producer_goes_on_where_it_was() -> None:
    """What it wrote in the transaction that is aborted late counts for its sequence, wherever a reader begins."""
    log, partition = await a_log_with_one_left_open()
    await end(partition, COMMITTED, NEXT)
    await end(partition, ABORTED, LEFT)
    coordinator = Coordinator(NEXT + 1)
    assert (await write(partition, coordinator, b"last", sequence=2)).base_offset == 5
    await end(partition, COMMITTED, NEXT + 1)
    partition._cache.clear()
    assert await committed_values(partition) == [b"other", b"next", b"last"]
    later = open_partition(log, "kafka-sidecar-later")
    assert await committed_values(later) == [b"other", b"next", b"last"]
    for one in (partition, later):
        one.close()


async def test_an_operator_is_warned_of_it_and_finds_where_it_begins(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(late_transactions, "limited", RateLimitedLog(late_transactions.log))
    _, partition = await a_log_with_one_left_open()
    with caplog.at_level(logging.WARNING):
        partition.tick(partition._loop.time() + 100)
    assert "kafka-transactions.sh abort" in caplog.text
    assert partition.transactions.first_undecided(PRODUCER) == (LEFT, 0)
    partition.close()
