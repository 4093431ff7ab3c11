"""Transactions that no marker had ended when their producer's next one began, and those of them that were aborted
later. Pure.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import heappop, heappush
from typing import Final, Generic, NamedTuple, TypeVar


class LeftOpen(NamedTuple):
    """A transaction that no marker had ended when its producer's next one began."""

    producer_id: int
    number: int
    first_offset: int
    behind: int  # all batches of the transaction stand before this offset


class Undone(NamedTuple):
    """What a producer wrote at these offsets in a transaction that was left open, and is aborted. Its next ones may be
    committed, so the batches are hidden: a consumer takes all that an aborted producer writes, up to its next marker of
    an abort, for aborted.
    """

    producer_id: int
    first_offset: int
    behind: int


FEW: Final = 100
T = TypeVar("T", LeftOpen, Undone)


class ByProducer(Generic[T]):
    """A log may have thousands of them, of one producer or of many. Each batch and each marker of a transaction asks
    for its producer's. Those of a producer stand in the order of their numbers; `Undone` has none, and stands in the
    order of offsets.
    """

    __slots__ = ("_count", "_first_offsets", "_of", "_removed")

    def __init__(self, those: Iterable[T] = ()) -> None:
        self._of: dict[int, list[T]] = {}
        self._count = 0
        self._first_offsets: list[int] = []  # a heap; it may still hold offsets of removed items
        self._removed: Counter[int] = Counter()
        for one in those:
            self.add(one)

    def add(self, one: T) -> None:
        insort(self._of.setdefault(one.producer_id, []), one)
        self._count += 1
        heappush(self._first_offsets, one.first_offset)

    def remove(self, one: T) -> None:
        """It is there."""
        of_producer = self._of[one.producer_id]
        del of_producer[bisect_left(of_producer, one)]
        if not of_producer:
            del self._of[one.producer_id]
        self._count -= 1
        self._removed[one.first_offset] += 1
        if len(self._first_offsets) > 2 * self._count + FEW:  # most offsets in the heap belong to removed items
            self._first_offsets, self._removed = sorted(other.first_offset for other in self), Counter()

    def that(self, is_wanted: Callable[[T], bool]) -> ByProducer[T]:
        return ByProducer(one for one in self if is_wanted(one))

    def of(self, producer_id: int) -> Sequence[T]:
        return self._of.get(producer_id, ())

    def at(self, producer_id: int, place: int) -> T | None:
        """The last one of the producer with this number, or this first offset, or a lesser one."""
        of_producer = self.of(producer_id)
        found = bisect_left(of_producer, (producer_id, place + 1))
        return of_producer[found - 1] if found else None

    def first_offset(self) -> int:
        """The least one; there is one."""
        while (first := self._first_offsets[0]) in self._removed:
            heappop(self._first_offsets)
            self._removed[first] -= 1
            if not self._removed[first]:
                del self._removed[first]
        return first

    def __iter__(self) -> Iterator[T]:
        for those in self._of.values():
            yield from those

    def __len__(self) -> int:
        return self._count

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ByProducer) and self._of == other._of

    def __copy__(self) -> ByProducer[T]:
        copied = ByProducer[T]()
        copied._of = {producer_id: list(those) for producer_id, those in self._of.items()}
        copied._count, copied._first_offsets, copied._removed = (
            self._count,
            list(self._first_offsets),
            Counter(self._removed),
        )
        return copied
