"""Topics and partitions of Produce requests, by the bytes that name them in a request."""

from __future__ import annotations

from typing import Final

from handler.partition.partition import Partition

# Each is a few hundred bytes beside a partition that is open anyway.
MAX_TARGETS: Final = 20_000


class ProduceTargets:
    """Partitions that a request of this principal has found: the next ones find them here.

    They are good for as long as the catalogue has forgotten no topic since. A topic that was deleted, or made again under its
    name, is one that the catalogue forgets; a partition that has ended says so itself.
    """

    __slots__ = ("_partitions", "forgotten")

    def __init__(self) -> None:
        self.forgotten = 0  # as the catalogue counts them
        self._partitions: dict[tuple[bytes, int], Partition] = {}

    def get(self, target: tuple[bytes, int]) -> Partition | None:
        return self._partitions.get(target)

    def put(self, key: bytes, index: int, partition: Partition) -> None:
        if len(self._partitions) >= MAX_TARGETS:
            self._partitions.clear()
        self._partitions[key, index] = partition

    def clear(self, forgotten: int) -> None:
        self._partitions.clear()
        self.forgotten = forgotten
