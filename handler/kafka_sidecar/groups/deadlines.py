"""Deadlines by key. Most are put off before they come."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class Deadlines(Generic[K]):
    def __init__(self) -> None:
        self._at: dict[K, float] = {}
        # No deadline is before this time. `cancel` does not raise it, so a caller may wake up and find nothing due.
        self.earliest: float | None = None

    def set(self, key: K, at: float) -> None:
        self._at[key] = at
        self.earliest = at if self.earliest is None else min(self.earliest, at)

    def set_if_absent(self, key: K, at: float) -> None:
        if key not in self._at:
            self.set(key, at)

    def cancel(self, key: K) -> None:
        self._at.pop(key, None)

    def take_due(self, clock: float) -> list[K]:
        if self.earliest is None or self.earliest > clock:
            return []
        due = [key for key, at in self._at.items() if at <= clock]
        for key in due:
            del self._at[key]
        self.earliest = min(self._at.values(), default=None)
        return due
