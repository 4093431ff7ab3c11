"""Partitions over the model of Pulsar, and what a client would do with them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast

from kafka_sidecar.internal_topics.snapshot_topic import SnapshotTopic
from kafka_sidecar.loop.clock import SYSTEM_CLOCK
from kafka_sidecar.partition.fold.producer_states import ProducerMemory
from kafka_sidecar.partition.fold.producers import Verdict
from kafka_sidecar.partition.follow.failures import EntryFailures
from kafka_sidecar.partition.follow.late_transactions import AskEnded
from kafka_sidecar.partition.log.port import EntryLog
from kafka_sidecar.partition.partition import Partition, PartitionLimits
from kafka_sidecar.partition.read.fetch_cache import FetchCache, FetchedRun
from kafka_sidecar.partition.search.partition_times import TimeIndexes
from kafka_sidecar.partition.table import PartitionTable
from kafka_sidecar.partition.write.append import Append
from kafka_sidecar.partition.write.log_validator import BatchRefused
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.records import read_produced
from tests.support.memory_log import MemoryLog
from tests.support.memory_states import MemoryStates
from tests.support.records import records_in


def open_partition(
    log: MemoryLog,
    name: str = "kafka-sidecar-test",
    cache: int = 1_000_000,
    states: MemoryStates | None = None,
    memory: ProducerMemory | None = None,
    failures: EntryFailures | None = None,
    ask_ended: AskEnded | None = None,
    **limits: int,
) -> Partition:
    indexes = TimeIndexes(FetchCache(cache), cast("SnapshotTopic | None", states))
    memory = memory or ProducerMemory()
    failures = failures or EntryFailures()
    return Partition(
        "t-partition-0",
        log.named(name),
        name,
        indexes,
        PartitionLimits(**limits),
        failures,
        memory,
        SYSTEM_CLOCK,
        ask_ended,
    )


def open_table(
    open_log: Callable[[str, str], EntryLog],
    name: str = "kafka-sidecar-t",
    cache: int = 1_000_000,
    states: MemoryStates | None = None,
    memory: ProducerMemory | None = None,
    **limits: int,
) -> PartitionTable:
    kept = cast("SnapshotTopic | None", states)
    return PartitionTable(
        open_log, name, cache, PartitionLimits(**limits), memory or ProducerMemory(), SYSTEM_CLOCK, kept
    )


class Told:
    """Who waits for news of a partition."""

    def __init__(self, event: asyncio.Event) -> None:
        self._event = event

    def on_partition_changed(self, partition: Partition) -> None:
        self._event.set()


class Outcome:
    """A request of one batch that waits for what becomes of it."""

    def __init__(self) -> None:
        self.result: asyncio.Future[Verdict] = asyncio.get_running_loop().create_future()
        self.refused: BatchRefused | None = None
        self.log_append_time: int | None = None

    def on_appended(self, number: int, error: ErrorCode, base_offset: int) -> None:
        assert number == 0
        if not self.result.done():
            self.result.set_result(Verdict(error, base_offset))

    def on_refused(self, number: int, refused: BatchRefused) -> None:
        self.refused = refused

    def on_log_append_time(self, number: int, timestamp: int) -> None:
        self.log_append_time = timestamp


def begin_append(partition: Partition, data: bytes, seconds: float = 5) -> asyncio.Future[Verdict]:
    return begin(partition, data, seconds).result


def begin(partition: Partition, data: bytes, seconds: float = 5) -> Outcome:
    outcome = Outcome()
    partition.append(Append.of(read_produced(data), data, asyncio.get_running_loop().time() + seconds, outcome, 0))
    return outcome


async def append(partition: Partition, data: bytes, seconds: float = 5) -> Verdict:
    return await asyncio.wait_for(begin_append(partition, data, seconds), seconds + 2)


async def read_all(
    partition: Partition, offset: int = 0, seconds: float = 5, max_bytes: int = 100_000
) -> list[tuple[int, bytes | None]]:
    """Everything from `offset` to the end as a consumer would gather it."""
    assert await partition.opened() is ErrorCode.NONE
    found: list[tuple[int, bytes | None]] = []
    end = await partition.confirmed_end()
    began = asyncio.get_running_loop().time()
    async with asyncio.timeout(seconds):
        while offset < end:
            run = partition.read(offset, max_bytes, at_least_one=True, since=began)
            if run is None or not run.parts:
                assert run is None or run.error is ErrorCode.NONE, run.error
                changed = asyncio.Event()
                partition.watch(Told(changed))
                await changed.wait()
                continue
            found += [(at, value) for at, value in records_in(run.parts) if at >= offset]
            offset = run.next_offset
    return found


async def fetch(partition: Partition, offset: int, seconds: float = 5) -> FetchedRun:
    """What a consumer at `offset` gets first: data or an error."""
    began = asyncio.get_running_loop().time()
    async with asyncio.timeout(seconds):
        while True:
            run = partition.read(offset, 100_000, at_least_one=True, since=began)
            if run is not None and (run.parts or run.error is not ErrorCode.NONE):
                return run
            changed = asyncio.Event()
            partition.watch(Told(changed))
            await changed.wait()
