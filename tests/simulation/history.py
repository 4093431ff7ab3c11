"""What clients did and were told, for the checker."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field


class Violation(Exception):
    """Something happened that may not, whatever the faults."""


@dataclass(slots=True)
class History:
    acknowledged: dict[bytes, list[int]] = field(default_factory=dict)  # offsets told, by value
    seen: dict[int, bytes | None] = field(default_factory=dict)  # what consumers found at an offset; None where no record is
    committed: dict[bytes, None] = field(default_factory=dict)
    aborted: dict[bytes, None] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    end: int = 0  # behind all that was acknowledged so far
    # Whether retention has taken all that tells why the batch at an offset is hidden. It may be shown from then on (ADR 21).
    lost_its_reason: Callable[[int], bool] = lambda _: False
    shown_late: set[int] = field(default_factory=set)

    @property
    def operations(self) -> int:
        """Requests that carried or returned a record, or ended a transaction."""
        return self.counts["produce"] + self.counts["fetch"] + self.counts["end transaction"]

    def acknowledge(self, values: list[bytes], base_offset: int) -> None:
        self.end = max(self.end, base_offset + len(values))
        for number, value in enumerate(values):
            self.acknowledged.setdefault(value, []).append(base_offset + number)

    def see(self, offset: int, value: bytes | None, by: str) -> None:
        before = self.seen.setdefault(offset, value)
        if before == value:
            return
        if before is None and self.lost_its_reason(offset):
            self.shown_late.add(offset)
        elif value is not None or offset not in self.shown_late:
            raise Violation(f"offset {offset} was {before!r} and is {value!r} for {by}")
