"""Which parts of large values this process has stored in vain, or will have, once another value stands in their place.
Pure.

    parts are stored ──▶ their head is sent ──▶ a later head, or value, of the same key is stored: delete the parts
                     └── it is not: delete the parts

Without a receipt nobody knows whether a head is stored, so its parts stay until a later one is. What is forgotten here
for want of room stays in the topic until it is old.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import Final

from kafka_sidecar.internal_topics.snapshot_parts import Head

MOST_KEYS: Final = 1_000
MOST_HEADS: Final = 8  # limit of heads per key that have no receipt
MOST_UNNAMED: Final = 100

Heads = tuple[Head, ...]


class OwnParts:
    __slots__ = ("_heads", "_unnamed")

    def __init__(self) -> None:
        self._heads: OrderedDict[bytes, Heads] = OrderedDict()  # by key: all heads that were sent and may be stored
        # Values in parts that no stored head names, so their parts are to be deleted.
        self._unnamed: deque[tuple[bytes, Head]] = deque(maxlen=MOST_UNNAMED)

    def heads(self, key: bytes) -> Heads:
        return self._heads.get(key, ())

    def head_is_sent(self, key: bytes, head: Head) -> None:
        self._put(key, (*self.heads(key), head)[-MOST_HEADS:])

    def head_was_not_sent(self, key: bytes, head: Head) -> None:
        self._unnamed.append((key, head))

    def another_has_replaced(self, key: bytes, head: Head) -> None:
        """It has stored a value at the same time, and knew nothing of this one."""
        if head in self.heads(key):
            self._put(key, tuple([one for one in self.heads(key) if one != head]))
            self._unnamed.append((key, head))

    def has_replaced(self, key: bytes, heads: Heads) -> None:
        """A later value is stored."""
        self._put(key, tuple([one for one in self.heads(key) if one not in heads]))

    @property
    def unnamed(self) -> list[tuple[bytes, Head]]:
        """Values whose parts are to be deleted."""
        return list(self._unnamed)

    def are_deleted(self, values: list[tuple[bytes, Head]]) -> None:
        for value in values:
            if value in self._unnamed:
                self._unnamed.remove(value)

    def _put(self, key: bytes, heads: Heads) -> None:
        self._heads.pop(key, None)
        if heads:
            self._heads[key] = heads
            if len(self._heads) > MOST_KEYS:
                self._heads.popitem(last=False)
