"""Entries of which retention may have taken the first copy. Pure.

Pulsar's replicator may begin again some entries before. Where retention has taken these meanwhile, what it copies once more is the first
copy that is left: it counts, or what its producers wrote behind it would be out of order.
"""

from __future__ import annotations

from typing import Final

MAX_WRITERS: Final = 1_000


class FirstCopies:
    __slots__ = ("_missing",)

    def __init__(self) -> None:
        self._missing: dict[bytes, tuple[int, int]] = {}  # by writer: sequences from and up to which none of its entries was seen

    def begin(self, writer: bytes, sequence: int) -> None:
        """The first entry that is seen of a writer of another cluster, in a log whose beginning is gone."""
        if sequence > 0 and len(self._missing) < MAX_WRITERS:
            self._missing[writer] = 0, sequence

    def lacks(self, writer: bytes, sequence: int) -> bool:
        begin, end = self._missing.get(writer, (0, 0))
        return begin <= sequence < end

    def note(self, writer: bytes, sequence: int, count: int) -> None:
        """One that was lacking is here now, and so are those that stood before it, if they come at all: the replicator goes on in order."""
        begin, end = sequence + count, self._missing[writer][1]
        if begin < end:
            self._missing[writer] = begin, end
        else:
            del self._missing[writer]
