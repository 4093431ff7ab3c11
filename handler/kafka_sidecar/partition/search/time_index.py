"""The greatest timestamps of a log, by stretches of its entries: where to look for records of a time, whatever
producers' clocks said.

Kafka has one for each segment (its TimeIndex), of the greatest timestamp so far. Here a log loses its beginning ledger
by ledger, so each stretch has its own greatest, and a search looks at all of them. There are never more than
MAX_STRETCHES: where there would be, each two become one, and from then on stretches are twice as long.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from itertools import accumulate, pairwise
from typing import Final, NamedTuple

from google.protobuf.message import DecodeError

from kafka_sidecar.partition.snapshot_pb2 import TimeIndex as StoredTimeIndex
from kafka_sidecar.pulsar.entry import Position

MAX_STRETCHES: Final = 2_048
# A full index takes 64 KiB: four 8-byte numbers for each stretch.
MAX_BYTES: Final = MAX_STRETCHES * 4 * 8
# A search reads a whole stretch, so its size is limited. To read an entry costs as much as 2,048 bytes more.
FIRST_STRETCH_BYTES: Final = 256 * 1024
ENTRY_COST: Final = 2_048


class Stretch(NamedTuple):
    """Entries that follow one another."""

    start: Position
    base_offset: int
    next_offset: int
    greatest: int  # An upper bound of the record timestamps; batches that the fold refused count as well


class TimeIndex:
    __slots__ = (
        "_bases",
        "_bytes_in_last",
        "_entries",
        "_greatest",
        "_ledgers",
        "_stretch_bytes",
        "begin",
        "last",
        "next_offset",
    )

    def __init__(self, begin: Position) -> None:
        self.begin = begin  # Every entry from this position up to `last` was added
        self._bases = array("q")
        self._ledgers = array("q")
        self._entries = array("q")
        self._greatest = array("q")
        self._stretch_bytes = FIRST_STRETCH_BYTES
        self._bytes_in_last = FIRST_STRETCH_BYTES
        self.last: Position | None = None  # the last entry that was added
        self.next_offset = 0

    def __len__(self) -> int:
        return len(self._bases)

    @property
    def bytes_covered(self) -> int:
        """About how much it stands for."""
        return len(self._bases) * self._stretch_bytes

    def add(self, position: Position, base_offset: int, next_offset: int, greatest: int, size: int) -> None:
        """The next entry of the log. One that another has added before it was stored is passed over."""
        if self.last is not None and position <= self.last:
            return
        if self._bytes_in_last >= self._stretch_bytes:
            self._begin_stretch(position, base_offset)
        if greatest > self._greatest[-1]:
            self._greatest[-1] = greatest
        self._bytes_in_last += size + ENTRY_COST
        self.last = position
        self.next_offset = next_offset

    def _begin_stretch(self, position: Position, base_offset: int) -> None:
        if len(self._bases) == MAX_STRETCHES:
            self._greatest = array("q", map(max, self._greatest[::2], self._greatest[1::2]))
            self._bases, self._ledgers, self._entries = self._bases[::2], self._ledgers[::2], self._entries[::2]
            self._stretch_bytes *= 2
        self._bases.append(base_offset)
        self._ledgers.append(position.ledger)
        self._entries.append(position.entry)
        self._greatest.append(-1)
        self._bytes_in_last = 0

    def drop_before(self, log_start: int) -> None:
        """Forget the stretches that retention has taken whole."""
        gone = 0
        for _, following in pairwise(self._bases):
            if following > log_start:
                break
            gone += 1
        for column in (self._bases, self._ledgers, self._entries, self._greatest):
            del column[:gone]

    def reaching(self, timestamp: int, log_start: int) -> list[Stretch]:
        """The stretches that may hold a record of `timestamp` or later, in order."""
        return [one for one in self._from(log_start) if one.greatest >= timestamp]

    def greatest_first(self, log_start: int) -> list[Stretch]:
        """All stretches, that with the greatest timestamp first; the earlier of two that are equal."""
        return sorted(self._from(log_start), key=lambda one: -one.greatest)

    def _from(self, log_start: int) -> Iterator[Stretch]:
        ends = [*self._bases[1:], self.next_offset] if self._bases else []
        for base, ledger, entry, greatest, end in zip(
            self._bases, self._ledgers, self._entries, self._greatest, ends, strict=True
        ):
            if end > log_start:
                yield Stretch(Position(ledger, entry), base, end, greatest)

    def encode(self) -> bytes:
        assert self.last is not None, "nothing was added"
        return StoredTimeIndex(
            base_offsets=_differences(self._bases),
            ledgers=_differences(self._ledgers),
            entries=_differences(self._entries),
            greatest_timestamps=_differences(self._greatest),
            stretch_bytes=self._stretch_bytes,
            bytes_in_last=self._bytes_in_last,
            begin_ledger=self.begin.ledger,
            begin_entry=self.begin.entry,
            last_ledger=self.last.ledger,
            last_entry=self.last.entry,
            next_offset=self.next_offset,
        ).SerializeToString()

    @classmethod
    def decode(cls, data: bytes) -> TimeIndex:
        """ValueError where it isn't one: anybody may have written it."""
        try:
            kept = StoredTimeIndex.FromString(data)
            index = cls(Position(kept.begin_ledger, kept.begin_entry))
            index._bases, index._ledgers, index._entries, index._greatest = (
                array("q", accumulate(column))
                for column in (kept.base_offsets, kept.ledgers, kept.entries, kept.greatest_timestamps)
            )
        except (DecodeError, OverflowError) as error:
            raise ValueError(str(error)) from error
        index._stretch_bytes, index._bytes_in_last = max(kept.stretch_bytes, FIRST_STRETCH_BYTES), kept.bytes_in_last
        index.last, index.next_offset = Position(kept.last_ledger, kept.last_entry), kept.next_offset
        index._check()
        return index

    def _check(self) -> None:
        if (
            not 0 < len(self) <= MAX_STRETCHES
            or len({len(self._bases), len(self._ledgers), len(self._entries), len(self._greatest)}) != 1
        ):
            raise ValueError(f"it has {len(self)} stretches")
        starts = [Position(*place) for place in zip(self._ledgers, self._entries, strict=True)]
        assert self.last is not None
        if any(one >= other for one, other in pairwise(starts)) or self.begin > starts[0] or starts[-1] > self.last:
            raise ValueError("its stretches are not in the order of the log")
        if any(one >= other for one, other in pairwise([*self._bases, self.next_offset])):
            raise ValueError("its offsets do not grow")


def _differences(column: array[int]) -> list[int]:
    return [later - earlier for earlier, later in pairwise([0, *column])]
