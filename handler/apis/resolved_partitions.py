"""Partitions by the words of requests: what was found out for one request is there for the next."""

from __future__ import annotations

from collections.abc import Hashable
from weakref import WeakValueDictionary

from handler.partition.partition import Partition
from handler.topics.catalog import Catalog


class ResolvedPartitions:
    """The partitions that requests of one API and one principal have found.

    They are good for as long as the catalogue has forgotten no topic since. A topic that was deleted, or made again under its
    name, is one that the catalogue forgets; a partition that has ended says so itself. They keep none alive: there are as many
    as there are partitions in use, by as many names as clients give them.
    """

    __slots__ = ("_forgotten", "_partitions")

    def __init__(self) -> None:
        self._forgotten = 0  # as the catalogue counts them
        self._partitions: WeakValueDictionary[tuple[Hashable, int], Partition] = WeakValueDictionary()

    def get(self, topic: Hashable, index: int) -> Partition | None:
        """The partition that these words mean; call `drop_stale` before."""
        return self._partitions.get((topic, index))

    def put(self, topic: Hashable, index: int, partition: Partition) -> None:
        self._partitions[topic, index] = partition

    def drop_stale(self, catalog: Catalog) -> None:
        """Once for each request: drop all if any of it may not be so any more."""
        if self._forgotten != catalog.forgotten:
            self._partitions.clear()
            self._forgotten = catalog.forgotten
