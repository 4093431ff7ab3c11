"""A lock for each key."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class _Turns:
    __slots__ = ("lock", "waiting")

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.waiting = 0


class KeyedLock(Generic[K]):
    """Turns about one subject come in the order in which they were asked for; subjects do not wait for each other."""

    def __init__(self) -> None:
        self._turns: dict[K, _Turns] = {}

    def __len__(self) -> int:
        """Subjects about which somebody waits or has a turn."""
        return len(self._turns)

    def waiting(self, subject: K) -> int:
        turns = self._turns.get(subject)
        return 0 if turns is None else turns.waiting

    @contextlib.asynccontextmanager
    async def turn(self, subject: K) -> AsyncIterator[None]:
        """Wait until all that came before is done, or has given up."""
        turns = self._turns.setdefault(subject, _Turns())
        turns.waiting += 1
        try:
            async with turns.lock:
                yield
        finally:
            turns.waiting -= 1
            if not turns.waiting:
                del self._turns[subject]
