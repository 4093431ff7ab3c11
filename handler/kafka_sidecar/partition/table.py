"""All partitions this process has to do with, opened on first use and closed when nobody uses them."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Iterable, Set
from typing import Final

from kafka_sidecar.internal_topics.moved_start import MovedStart
from kafka_sidecar.internal_topics.snapshot_topic import SnapshotTopic
from kafka_sidecar.loop.clock import Clock
from kafka_sidecar.loop.pace import Pace
from kafka_sidecar.loop.supervised import every
from kafka_sidecar.model.partition_name import topic_of
from kafka_sidecar.partition.fold.producer_states import AWAKE_BYTES, ProducerMemory
from kafka_sidecar.partition.follow.failures import EntryFailures
from kafka_sidecar.partition.follow.late_transactions import AskEnded
from kafka_sidecar.partition.log.log_config import LogConfig
from kafka_sidecar.partition.log.port import EntryLog
from kafka_sidecar.partition.log.unfolding import unfolding
from kafka_sidecar.partition.partition import Partition, PartitionLimits
from kafka_sidecar.partition.read.fetch_cache import FetchCache
from kafka_sidecar.partition.search.partition_times import TimeIndexes
from kafka_sidecar.pulsar.entry import Position
from kafka_sidecar.telemetry import metrics
from kafka_sidecar.telemetry.limits import RateLimitedLog

log = RateLimitedLog(logging.getLogger(__name__))

# The tick expires appends, so it is as fine as their deadlines.
TICK_SECONDS: Final = 1.0
# To count the memory of producer states, every partition is visited: every 4 s, and every 1 s once half of the limit is
# used.
COUNTED_SECONDS: Final = 4.0
# If producer states exceed their memory limit, partitions that were unused for 5 s are closed.
UNUSED_SECONDS: Final = 5.0
# A batch that is being decoded, or an entry that waits for that, counts for at most 1/8 of the cache budget.
UNFOLDING_SHARE: Final = 8
# A shutdown waits at most 3 s for snapshots to be stored.
CLOSE_SECONDS: Final = 3.0


class PartitionTable:
    def __init__(
        self,
        open_log: Callable[[str, str], EntryLog],
        writer_name: str,
        cache_bytes: int,
        limits: PartitionLimits,
        memory: ProducerMemory,
        clock: Clock,
        states: SnapshotTopic | None = None,
        ask_ended: AskEnded | None = None,
    ) -> None:
        self._ask_ended = ask_ended
        self._memory = memory
        self._open_log = open_log
        self._writer_name = writer_name
        self._limits = limits
        self._clock = clock
        self._partitions: dict[str, Partition] = {}
        self._ticker = every(TICK_SECONDS, "partition_housekeeping", self._tick)
        self._failures = EntryFailures()
        self._opened = 0
        self._counted_at = -math.inf
        self.opening = 0  # The number of partitions that are being opened; some of them may not exist
        self.cache = FetchCache(cache_bytes)
        unfolding().hold = self._hold_unfolding
        self._indexes = TimeIndexes(self.cache, states)

    def _hold_unfolding(self, more: int) -> None:
        """The cache is not emptied for one batch."""
        most = self.cache.budget // UNFOLDING_SHARE
        self.cache.hold_fixed(max(-most, min(more, most)))

    def start(self) -> None:
        self._ticker.start()

    def __contains__(self, pulsar_topic: str) -> bool:
        return pulsar_topic in self._partitions

    @property
    def has_open_transactions(self) -> bool:
        """Whether a transaction holds back consumers of a partition that is in use here."""
        return any(partition.transactions.undecided for partition in self._partitions.values())

    def names(self) -> list[str]:
        """The partitions that are in use."""
        return list(self._partitions)

    def topics(self) -> set[str]:
        """The topics with a partition that is in use."""
        return set(map(topic_of, self._partitions))

    def existing(self, pulsar_topic: str) -> Partition | None:
        """The partition as it is, also when it has ended; nothing is opened."""
        return self._partitions.get(pulsar_topic)

    def get(self, pulsar_topic: str) -> Partition:
        """The partition over one Pulsar topic. It may still be opening, and may turn out not to exist."""
        partition = self._partitions.get(pulsar_topic)
        if partition is None or partition.ended is not None:
            # A name of its own each time: a partition that is opened again begins its sequence again, and
            # under the old name the fold would take every append for one that was sent again.
            self._opened += 1
            name = f"{self._writer_name}-{self._opened}"
            partition = Partition(
                pulsar_topic,
                self._open_log(pulsar_topic, name),
                name,
                self._indexes,
                self._limits,
                self._failures,
                self._memory,
                self._clock,
                self._ask_ended,
            )
            self._partitions[pulsar_topic] = partition
            self.opening += 1
            partition.when_opened_or_ended(self._on_opened)
        return partition

    def _on_opened(self) -> None:
        self.opening -= 1

    def forget(self, pulsar_topic: str) -> list[asyncio.Task[None]]:
        """The topic is gone or about to go. Returns what its partition does yet."""
        partition = self._partitions.pop(pulsar_topic, None)
        return [] if partition is None else partition.close()

    def set_config(self, names: Iterable[str], config: LogConfig) -> None:
        """Of those partitions of a topic that are in use."""
        for name in names:
            partition = self._partitions.get(name)
            if partition is not None:
                partition.set_config(config)

    def set_skipped(self, name: str, skipped: frozenset[Position]) -> None:
        partition = self._partitions.get(name)
        if partition is not None:
            partition.set_skipped(skipped)

    def on_start_moved(self, name: str, moved: MovedStart) -> None:
        """A client of whatever sidecar has deleted records."""
        partition = self._partitions.get(name)
        if partition is not None:
            partition.on_start_moved(moved)

    async def forget_topics(self, pulsar_topics: Set[str]) -> None:
        """They are gone or about to go. Others run in between: there may be thousands of partitions."""
        pace = Pace()
        for name in [name for name in self._partitions if name in pulsar_topics or topic_of(name) in pulsar_topics]:
            self.forget(name)
            await pace.maybe_yield()

    async def _tick(self) -> None:
        now = asyncio.get_running_loop().time()
        pace = Pace()
        waiting = left_open = 0
        for name, partition in list(self._partitions.items()):
            await pace.maybe_yield()
            try:
                left_open += len(partition.transactions.left_open)
                # Counted before the tick, because the tick may expire appends that wait.
                waiting += partition.has_waiting
                self._tick_one(name, partition, now)
            except Exception:  # A failing partition must not stop the housekeeping of the others
                metrics.INTERNAL_ERRORS.labels("partition_housekeeping").inc()
                log.exception("partition %s: housekeeping failed", name)
        if now - self._counted_at >= COUNTED_SECONDS or self._memory.is_half_full:
            self._counted_at = now
            self._count_producers()
        metrics.PARTITIONS.set(len(self._partitions))
        metrics.WAITING_PARTITIONS.set(waiting)
        metrics.TRANSACTIONS_LEFT_OPEN.set(left_open)
        metrics.CACHE_BYTES.set(self.cache.used)
        metrics.READ_AHEAD_BYTES.set(self.cache.ahead)
        metrics.TRANSACTION_BYTES.set(self.cache.fixed)

    def _count_producers(self) -> None:
        memory = self._memory
        memory.count(table for partition in self._partitions.values() for table in partition.producer_tables())
        metrics.PRODUCER_STATE_BYTES.set(memory.used)
        if memory.is_full:
            self._make_room()

    def _make_room(self) -> None:
        """Close partitions that nobody uses at the moment. What is known of their producers is kept in Pulsar, and
        looked up again.
        """
        now = asyncio.get_running_loop().time()
        unused = [(partition.unused_seconds(now), name) for name, partition in self._partitions.items()]
        for seconds, name in sorted(unused, reverse=True):
            if seconds < UNUSED_SECONDS or not self._memory.is_full:
                break
            size = sum([table.size for table in self._partitions[name].producer_tables()])
            if size >= AWAKE_BYTES:  # Closing a partition with few producer states would free too little
                self._memory.used -= size
                self.forget(name)
        if self._memory.is_full:
            log.warning(
                "what is known of producers takes %d bytes, more than limits.producer_state_bytes: producers that "
                "nobody knows are refused until others expire, or partitions are used no more",
                self._memory.used,
            )

    def _tick_one(self, name: str, partition: Partition, now: float) -> None:
        if partition.ended is not None:
            if self._partitions.get(name) is partition:
                del self._partitions[name]
        elif partition.is_due(now):
            if partition.idle(now):
                self.forget(name)
            else:
                partition.tick(now)

    async def close(self) -> None:
        await self._ticker.stopped()
        closing = [task for name in list(self._partitions) for task in self.forget(name)]
        if closing:
            await asyncio.wait(closing, timeout=CLOSE_SECONDS)
