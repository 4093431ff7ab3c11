"""One partition in one sidecar. It is opened again when it has ended."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from kafka_sidecar.internal_topics.moved_start import MovedStart
from kafka_sidecar.partition.follow.late_transactions import AskEnded
from kafka_sidecar.partition.partition import Partition, PartitionLimits
from tests.simulation.sidecar import Sidecar
from tests.simulation.topic import SimulatedTopic

T = TypeVar("T")


class Node:
    def __init__(self, sidecar: Sidecar, topic: SimulatedTopic, ask_ended: AskEnded | None = None) -> None:
        self._ask_ended = ask_ended
        self.sidecar = sidecar
        self.topic = topic
        self.partition: Partition | None = None
        self.opened_in = 0  # the generation of the topic for which the partition's object was made
        self._opened = 0
        sidecar.nodes.append(self)

    @property
    def name(self) -> str:
        return self.sidecar.name

    @property
    def life(self) -> int:
        return self.sidecar.life

    def run(self, work: Callable[[], T]) -> T:
        return self.sidecar.run(work)

    def begin(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        return self.sidecar.begin(work)

    def owes_an_answer(self, life: int, asked_at: float) -> bool:
        return self.sidecar.owes_an_answer(life, asked_at)

    @property
    def written_to(self) -> int:
        """The end of the log by the broker's index, what is being added included."""
        return self.topic.index + 1

    def current(self) -> Partition:
        if self.partition is None or self.partition.ended is not None:
            self.partition = self.run(self._open)
        return self.partition

    def _open(self) -> Partition:
        self._opened += 1
        self.opened_in = self.topic.generation
        sidecar, bounds = self.sidecar, self.topic.bounds
        name = f"kafka-sidecar-{sidecar.name}-{self._opened}"
        limits = PartitionLimits(replay_entries=bounds.replay_entries, batches_per_entry=bounds.batches_per_entry)
        return Partition(
            self.topic.name,
            self.topic.seen_by(name, sidecar.context),
            name,
            sidecar.indexes,
            limits,
            sidecar.failures,
            sidecar.memory,
            sidecar.clock,
            self._ask_ended,
        )

    def on_start_moved(self, moved: MovedStart) -> None:
        """A client has deleted records, through whichever sidecar."""
        if self.partition is not None:
            self._soon(lambda partition: partition.on_start_moved(moved))

    def on_config(self) -> None:
        """The topic's configs have changed. A process that stands still hears of it when it goes on."""
        if self.opened_in == self.topic.generation:
            config = self.topic.log_config
            self._soon(lambda partition: partition.set_config(config))

    def on_remade(self) -> None:
        """It has become known here that the topic is another one, as the catalog tells
        (`PartitionTable.forget_topics`).
        """
        if self.opened_in != self.topic.generation:
            self._soon(Partition.close)

    def _soon(self, tell: Callable[[Partition], object]) -> None:
        partition = self.partition
        if partition is not None:
            self.topic.loop.call_soon(tell, partition, context=self.sidecar.context.copy())

    def close_partition(self) -> None:
        if self.partition is not None and self.sidecar.is_running:
            self.run(self.partition.close)
