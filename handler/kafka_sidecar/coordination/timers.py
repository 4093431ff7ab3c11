"""Timers by key (Kafka's CoordinatorTimer)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class Timers:
    """`on_due` is called with a key at its time, or a little before."""

    def __init__(self, on_due: Callable[[str], None]) -> None:
        self._on_due = on_due
        self._loop = asyncio.get_running_loop()
        # A uvloop handle whose time has passed has no `when()`, so the time is stored beside the handle.
        self._set: dict[str, tuple[float, asyncio.Handle]] = {}

    def set(self, key: str, at: float) -> None:
        """No later than `at`, on the loop's clock."""
        alarm = self._set.get(key)
        if alarm is not None:
            due, timer = alarm
            if due <= at:
                return
            timer.cancel()
        self._set[key] = at, self._loop.call_at(at, self._due, key)

    def _due(self, key: str) -> None:
        self._set.pop(key, None)
        self._on_due(key)

    def clear(self) -> None:
        for _, timer in self._set.values():
            timer.cancel()
        self._set.clear()
