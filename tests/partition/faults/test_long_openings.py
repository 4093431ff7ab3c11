"""A log that takes longer to fold than a client waits is opened all the same."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from kafka_sidecar.partition import partition
from kafka_sidecar.partition.fold.fold import BEFORE_ALL
from kafka_sidecar.partition.follow import read_to_end
from kafka_sidecar.partition.snapshots import fold_snapshots
from kafka_sidecar.wire.error_code import ErrorCode
from tests.support.batches import batch
from tests.support.memory_log import MemoryLog
from tests.support.memory_states import MemoryStates
from tests.support.partitions import append, open_partition, read_all

ENTRIES = 400


@pytest.fixture
def slow_log(monkeypatch: pytest.MonkeyPatch) -> MemoryLog:
    """A log with transactions, so that all of it is folded: for five times as long as anybody waits."""
    monkeypatch.setattr(partition, "OPEN_SECONDS", 0.2)
    monkeypatch.setattr(read_to_end, "READ_SECONDS", 0.2)
    log = MemoryLog(read_delay=0.02, at_once=8, transactions_behind=BEFORE_ALL)
    for number in range(ENTRIES):
        log.write(batch(b"%d" % number))
    return log


async def test_who_asks_is_told_to_come_again_and_finds_it_open_one_day(slow_log: MemoryLog) -> None:
    opening = open_partition(slow_log)
    answers: list[ErrorCode] = []
    async with asyncio.timeout(20):
        while not answers or answers[-1] is not ErrorCode.NONE:
            answers.append(await opening.opened())
    assert len(answers) > 2
    assert set(answers[:-1]) == {ErrorCode.NOT_LEADER_OR_FOLLOWER}
    assert len(await read_all(opening)) == ENTRIES
    opening.close()


async def test_a_log_of_which_nothing_comes_is_given_up(slow_log: MemoryLog) -> None:
    slow_log.read_delay = 60
    opening = open_partition(slow_log)
    async with asyncio.timeout(5):
        while opening.ended is None:
            assert await opening.opened() is ErrorCode.NOT_LEADER_OR_FOLLOWER
    opening.close()


async def test_what_is_folded_is_kept_meanwhile(slow_log: MemoryLog, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fold_snapshots, "STORED_AGAIN_AFTER", 50)
    states = MemoryStates()
    opening = open_partition(slow_log, states=states)
    async with asyncio.timeout(5):
        while not states.kept:
            opening.tick(asyncio.get_running_loop().time() + 60)
            await asyncio.sleep(0.01)
    assert not opening.is_open
    opening.close()


@contextlib.asynccontextmanager
async def load(through: partition.Partition) -> AsyncIterator[None]:
    async def write() -> None:
        while True:
            await append(through, batch(b"y"))
            await asyncio.sleep(0.002)

    writing = asyncio.create_task(write())
    try:
        yield
    finally:
        writing.cancel()


async def test_a_load_that_goes_on_does_not_keep_the_past_from_being_learnt() -> None:
    log = MemoryLog(read_delay=0.01)
    for _ in range(200):
        log.write(batch(b"x"))
    writer = open_partition(log, "kafka-sidecar-2")
    assert await writer.opened() is ErrorCode.NONE
    async with load(writer), asyncio.timeout(5):
        await asyncio.sleep(0.1)
        await writer.known_producers()
    writer.close()
