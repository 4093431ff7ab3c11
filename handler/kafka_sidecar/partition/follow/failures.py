"""Entries at which the sidecar itself has failed.

An unforeseen exception, while an entry is folded, ends the partition's object, and the next request
opens another. An entry at which that has happened twice is treated as one that can't be read: an error to
consumers at its offset, and a counter. So it is never passed over, and never opens partitions without end.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

from kafka_sidecar.pulsar.entry import Position

# A first failure at an entry may have another cause in the process. So an entry counts as unreadable only after the
# second.
ATTEMPTS: Final = 2
# The number of failed entries that are remembered. More would mean that the sidecar fails everywhere. The oldest are
# forgotten, and then tried again.
MAX_REMEMBERED: Final = 10_000


class EntryFailures:
    def __init__(self) -> None:
        self._failed: OrderedDict[tuple[str, Position], int] = OrderedDict()
        self._unannounced: OrderedDict[str, None] = OrderedDict()

    def note(self, topic: str, position: Position) -> None:
        at = topic, position
        self._failed[at] = self._failed.get(at, 0) + 1
        self._failed.move_to_end(at)
        if len(self._failed) > MAX_REMEMBERED:
            self._failed.popitem(last=False)

    def is_given_up(self, topic: str, position: Position) -> bool:
        return bool(self._failed) and self._failed.get((topic, position), 0) >= ATTEMPTS

    def note_transactions(self, topic: str) -> None:
        """Others have written transactions there. Whether Pulsar has stored that is not known."""
        self._unannounced[topic] = None
        if len(self._unannounced) > MAX_REMEMBERED:
            self._unannounced.popitem(last=False)

    def has_transactions(self, topic: str) -> bool:
        return topic in self._unannounced
