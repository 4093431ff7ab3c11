"""A sidecar's process: it may be killed, or stand still. Its partitions share what it has."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Final, TypeVar

from kafka_sidecar.loop.clock import Clock
from kafka_sidecar.partition.fold.producer_states import ProducerMemory
from kafka_sidecar.partition.follow.failures import EntryFailures
from kafka_sidecar.partition.read.fetch_cache import FetchCache
from kafka_sidecar.partition.search.partition_times import TimeIndexes
from kafka_sidecar.partition.table import TICK_SECONDS
from tests.model.connections import Connection
from tests.simulation.chance import Chance
from tests.simulation.conduct import DrawnWay
from tests.simulation.history import Violation
from tests.simulation.loop import EPOCH_SECONDS, SimulatedLoop
from tests.simulation.machine import Machine
from tests.simulation.plan import Bounds
from tests.simulation.snapshot_topic import SnapshotLog

if TYPE_CHECKING:
    from tests.simulation.node import Node

T = TypeVar("T")
# Beside its budget a cache has the entry that came last, and that of the reader which wants one.
MOST_BESIDE_THE_CACHE: Final = 40_000
MOST_TASKS: Final = 200


class _FlippingMemory(ProducerMemory):
    """That other partitions of the process take, and give back."""

    __slots__ = ("_changes_at", "_draw", "_full_until", "_loop")

    def __init__(self, bounds: Bounds, loop: SimulatedLoop, draw: Random) -> None:
        super().__init__(most_awake=bounds.most_awake, expiry_ms=bounds.expiry_ms)
        self._loop, self._draw = loop, draw
        self._full_until = self._changes_at = 0.0

    @property
    def is_full(self) -> bool:
        now = self._loop.time()
        if now >= self._changes_at:
            self._full_until = now + self._draw.choice((0.0, 0.0, 1.0))
            self._changes_at = now + 2.0
        return now < self._full_until

    @property
    def most_awake(self) -> int:
        return self._draw.choice((1, 2, 3, super().most_awake))


class Sidecar(Machine):
    def __init__(
        self, loop: SimulatedLoop, chance: Chance, kept: SnapshotLog, bounds: Bounds, name: str, skew: float = 0.0
    ) -> None:
        super().__init__(loop, name)
        self.nodes: list[Node] = []  # one for each partition
        self.clock = Clock(lambda: int((EPOCH_SECONDS + loop.time() + skew) * 1000), loop.time)
        self._chance = chance
        self._kept = kept
        self._bounds = bounds
        self._begin()

    def _begin(self) -> None:
        bounds = self._bounds
        self._begin_life()
        self.cache = FetchCache(bounds.cache_bytes)
        self._states = self._kept.states(f"{self.name}/{self.life}", self.clock, self.context) if bounds.keeps else None
        self.indexes = TimeIndexes(self.cache, self._states)
        self.failures = EntryFailures()
        self.memory = ProducerMemory(most_awake=bounds.most_awake, expiry_ms=bounds.expiry_ms)
        if bounds.flips:
            self.memory = _FlippingMemory(bounds, self._loop, self._chance.of(f"{self.name}/{self.life}/memory"))
        for node in self.nodes:
            node.partition = None
        self._ticking = self._loop.call_later(TICK_SECONDS, self._tick, context=self.context)

    def _tick(self) -> None:
        """Each second, whatever `PartitionTable` would leave out."""
        self._ticking = self._loop.call_later(TICK_SECONDS, self._tick, context=self.context)
        partitions = [
            node.partition for node in self.nodes if node.partition is not None and node.partition.ended is None
        ]
        for partition in partitions:
            partition.tick(self._loop.time())
        self.memory.count(table for partition in partitions for table in partition.producer_tables())
        self.check_bounds()

    def check_bounds(self) -> None:
        """What it holds is bounded, whatever happens."""
        cache = self.cache
        held = cache.used + cache.ahead + cache.indexed + cache.fixed
        if held > cache.budget + MOST_BESIDE_THE_CACHE:
            parts = (
                f"{cache.used} of recent batches, {cache.ahead} read ahead, {cache.indexed} of indexes, "
                f"{cache.fixed} that stay"
            )
            raise Violation(f"{self.name} has a cache of {cache.budget} bytes, and holds {parts}")
        if len(self.process.tasks) > MOST_TASKS:
            raise Violation(f"{self.name} has {len(self.process.tasks)} tasks")

    # --- faults

    def kill(self) -> None:
        """With kill -9, and begin anew: what it has sent may land."""
        self._end_life()
        for connection in self._connections():
            connection.vanish()
        self._begin()

    def lose_connections(self) -> None:
        """The broker has heard nothing of this process for a while (keepAliveIntervalSeconds)."""
        for connection in self._connections():
            connection.cut()

    def _connections(self) -> list[Connection]:
        all_there = [*(one for node in self.nodes for one in node.topic.connections), *self._kept.connections]
        return [one for one in all_there if isinstance(one.way, DrawnWay) and one.way.context is self.context]

    # --- the end

    def close(self) -> None:
        for node in self.nodes:
            node.close_partition()
        self._ticking.cancel()

    def let_go(self) -> None:
        """What was to be kept is kept."""
        if self._states is not None:
            self.run(self._states.close)

    def check_closed(self) -> None:
        cache = self.cache
        if cache.used or cache.ahead or cache.indexed or cache.fixed:
            held = f"{cache.used}, {cache.ahead}, {cache.indexed} and {cache.fixed}"
            raise Violation(f"{self.name} has closed all, and {held} bytes of its cache are taken")
        if self.process.tasks:
            raise Violation(f"{self.name} has closed all, and goes on with {next(iter(self.process.tasks))}")
