"""Where the last folded entries have ended: what a receipt says is compared with what the tail reader reads later.

Receipts are believed only while they follow one another in a ledger, so one run of entries is enough: a list of
numbers.
"""

from __future__ import annotations

from array import array
from typing import Final

from kafka_sidecar.pulsar.entry import Position

# End offsets that are remembered, 8 bytes each. Older entries are not compared: the broker's index of a later entry
# proves their record counts.
MOST: Final = 1_024


class RecentEnds:
    __slots__ = ("_ends", "_ledger", "_next_entry")

    def __init__(self) -> None:
        self._ledger = -1
        self._next_entry = 0
        self._ends = array("q")  # end offsets of consecutive entries, the last one of the entry before `_next_entry`

    def add(self, position: Position, next_offset: int) -> None:
        ledger, entry = position
        ends = self._ends
        if entry != self._next_entry or ledger != self._ledger:
            self._ledger = ledger
            del ends[:]
        elif len(ends) >= MOST:
            del ends[: MOST // 2]
        self._next_entry = entry + 1
        ends.append(next_offset)

    def next_offset(self, position: Position) -> int | None:
        """None where that is not remembered."""
        back = self._next_entry - position.entry
        return self._ends[-back] if position.ledger == self._ledger and 0 < back <= len(self._ends) else None
