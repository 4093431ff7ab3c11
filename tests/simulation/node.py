"""A sidecar, as far as one partition goes: it is opened again when it has ended, and the process may be killed or stand still."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Coroutine
from contextvars import copy_context
from random import Random
from typing import Any, Final, TypeVar

from handler.clock import Clock
from handler.partition.failures import EntryFailures
from handler.partition.fold.producer_states import ProducerMemory
from handler.partition.log.moved_start import MovedStart
from handler.partition.partition import Partition, PartitionLimits
from handler.partition.read.fetch_cache import FetchCache
from handler.partition.read.partition_times import TimeIndexes
from handler.partition.table import TICK_SECONDS
from tests.model.connections import Connection
from tests.simulation.loop import EPOCH_SECONDS, PROCESS, Life, Process, SimulatedLoop
from tests.simulation.plan import Bounds
from tests.simulation.topic import SimulatedTopic

NAME: Final = "t-partition-0"
T = TypeVar("T")


class _FlippingMemory(ProducerMemory):
    """That other partitions of the process take, and give back."""

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


class Node:
    def __init__(self, loop: SimulatedLoop, topic: SimulatedTopic, name: str, skew: float = 0.0) -> None:
        self.name = name
        self.life = 0  # how often it was started
        self.partition: Partition | None = None
        self._loop = loop
        self._topic = topic
        self._clock = Clock(lambda: int((EPOCH_SECONDS + loop.time() + skew) * 1000), loop.time)
        self._opened = 0
        self.opened_in = 0  # the generation of the topic for which the partition's object was made
        self._begin()

    def _begin(self) -> None:
        self.life += 1
        self._awake_since = self._loop.time()
        self.partition = None
        self.process = Process()
        self._context = copy_context()
        self._context.run(PROCESS.set, self.process)
        self.cache = FetchCache(self._topic.bounds.cache_bytes)
        keeps = self._topic.bounds.keeps
        self._states = self._topic.kept.states(f"{self.name}/{self.life}", self._clock, self._context) if keeps else None
        self._ticking = self._loop.call_later(TICK_SECONDS, self._tick, context=self._context)

    def run(self, work: Callable[[], T]) -> T:
        """Do something in this process, at once."""
        return self._context.copy().run(work)

    def begin(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Do something in this process that takes time. It never ends if the process is killed."""
        task = self._loop.create_task(work, context=self._context.copy())
        task.add_done_callback(_looked_at)
        return task

    @property
    def is_running(self) -> bool:
        return self.process.life is Life.RUNNING

    def owes_an_answer(self, life: int, asked_at: float) -> bool:
        """Whether it has been at work since then: as the same process, which did not stand still."""
        return self.life == life and self._awake_since <= asked_at

    @property
    def written_to(self) -> int:
        """The end of the log by the broker's index, what is being added included."""
        return self._topic.index + 1

    def current(self) -> Partition:
        if self.partition is None or self.partition.ended is not None:
            self.partition = self.run(self._open)
        return self.partition

    def _open(self) -> Partition:
        self._opened += 1
        self.opened_in = self._topic.generation
        name = f"kafka-sidecar-{self.name}-{self._opened}"
        bounds = self._topic.bounds
        limits = PartitionLimits(replay_entries=bounds.replay_entries, batches_per_entry=bounds.batches_per_entry)
        indexes = TimeIndexes(self.cache, self._states)
        memory = ProducerMemory(most_awake=bounds.most_awake, expiry_ms=bounds.expiry_ms)
        if bounds.flips:
            memory = _FlippingMemory(bounds, self._loop, self._topic.chance.of(f"{name}/memory"))
        return Partition(NAME, self._topic.seen_by(name, self._context), name, indexes, limits, EntryFailures(), memory, self._clock)

    def on_start_moved(self, moved: MovedStart) -> None:
        """A client has deleted records, through whichever sidecar."""
        if self.partition is not None:
            self._loop.call_soon(self.partition.on_start_moved, moved, context=self._context.copy())

    def on_config(self) -> None:
        """The topic's configs have changed. A process that stands still hears of it when it goes on."""
        if self.partition is not None and self.opened_in == self._topic.generation:
            self._loop.call_soon(self.partition.set_config, self._topic.log_config, context=self._context.copy())

    def on_made_anew(self) -> None:
        """It has become known here that the topic is another one, as the catalog tells (`PartitionTable.forget_topic`)."""
        partition = self.partition
        if partition is not None and self.opened_in != self._topic.generation:
            self._loop.call_soon(partition.close, context=self._context.copy())

    def _tick(self) -> None:
        if self.partition is not None and self.partition.ended is None:
            self.partition.tick(self._loop.time())
        self._ticking = self._loop.call_later(TICK_SECONDS, self._tick, context=self._context)

    # --- faults

    def kill(self) -> None:
        """With kill -9, and begin anew: what it has sent may land."""
        self.process.life = Life.KILLED
        self.process.held.clear()
        for connection in self._connections():
            connection.vanish()
        self._begin()

    def lose_connections(self) -> None:
        """The broker has heard nothing of this process for a while (keepAliveIntervalSeconds)."""
        for connection in self._connections():
            connection.cut()

    def _connections(self) -> list[Connection]:
        return self._topic.connections_of(self._context)

    def stand_still(self) -> None:
        self.process.life = Life.STANDING_STILL
        self._awake_since = math.inf

    def go_on(self) -> None:
        if self.process.life is Life.STANDING_STILL:
            self._awake_since = self._loop.time()
            self._loop.go_on(self.process)

    def close_partition(self) -> None:
        if self.partition is not None and self.is_running:
            self.run(self.partition.close)

    def close(self) -> None:
        self.close_partition()
        self._ticking.cancel()

    def let_go(self) -> None:
        """What was to be kept is kept."""
        if self._states is not None:
            self.run(self._states.close)


def _looked_at(task: asyncio.Task[Any]) -> None:
    if not task.cancelled():
        task.exception()
