"""Partitions by the words of requests: what was found out for one request is there for the next."""

from __future__ import annotations

from collections.abc import Hashable
from weakref import WeakValueDictionary

from kafka_sidecar.partition.partition import Partition


class ResolvedPartitions:
    """The partitions that requests of one API and one principal have found, and that this sidecar leads.

    They are good for as long as the catalogue has forgotten no topic since, and the fleet is the same. A topic that was
    deleted, or made again under its name, is one that the catalogue forgets; a partition that has ended says so itself.
    They keep none alive: there are as many as there are partitions in use, by as many names as clients give them.
    """

    __slots__ = ("_generation", "_partitions")

    def __init__(self) -> None:
        self._generation = 0  # see `Services.generation`
        self._partitions: WeakValueDictionary[tuple[Hashable, int], Partition] = WeakValueDictionary()

    def get(self, topic: Hashable, index: int) -> Partition | None:
        """The partition that these words mean; call `drop_stale` before."""
        return self._partitions.get((topic, index))

    def put(self, topic: Hashable, index: int, partition: Partition) -> None:
        self._partitions[topic, index] = partition

    def drop_stale(self, generation: int) -> None:
        """Once for each request: drop all if any of it may not be so any more."""
        if self._generation != generation:
            self._partitions.clear()
            self._generation = generation
