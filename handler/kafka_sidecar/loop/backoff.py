"""Pauses between attempts."""

from __future__ import annotations

import asyncio
from typing import Final

# After an unload a topic is served again within some tens of milliseconds.
FIRST_DELAY: Final = 0.05
# Kafka clients retry every second at the latest (retry.backoff.max.ms is 1 s), so the sidecar retries about as often.
LONGEST_DELAY: Final = 2.0


class Backoff:
    """Pauses that grow until something has worked."""

    __slots__ = ("_first", "_longest", "_next")

    def __init__(self, first: float = FIRST_DELAY, longest: float = LONGEST_DELAY) -> None:
        self._first = first
        self._longest = longest
        self._next = first

    def reset(self) -> None:
        self._next = self._first

    async def pause(self) -> None:
        delay = self._next
        self._next = min(2 * delay, self._longest)
        await asyncio.sleep(delay)
