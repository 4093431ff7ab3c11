"""Requests of one client about one group that must not overtake each other, although some take a longer way."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar
from weakref import WeakKeyDictionary

T = TypeVar("T")


async def _nothing() -> None: ...


class _Queue:
    __slots__ = ("length", "lock")

    def __init__(self) -> None:
        self.lock = asyncio.Lock()  # first come, first served
        self.length = 0


class Order:
    def __init__(self) -> None:
        self._queues: WeakKeyDictionary[object, dict[str, _Queue]] = WeakKeyDictionary()

    def is_waiting(self, client: object, group_id: str) -> bool:
        return group_id in self._queues.get(client, ())

    async def wait(self, client: object, group_id: str) -> bool:
        """Until all that has come up to now is done; True."""
        if self.is_waiting(client, group_id):
            await self.run(client, group_id, _nothing)
        return True

    async def run(self, client: object, group_id: str, work: Callable[[], Awaitable[T]]) -> T:
        """Do `work` when all that came before it is done. It takes its place when this is first awaited."""
        queues = self._queues.setdefault(client, {})
        queue = queues.setdefault(group_id, _Queue())
        queue.length += 1
        try:
            async with queue.lock:
                return await work()
        finally:
            queue.length -= 1
            if not queue.length:
                queues.pop(group_id, None)
