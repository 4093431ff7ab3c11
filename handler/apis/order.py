"""Requests of one client about one group that must not overtake each other, although some take a longer way."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

T = TypeVar("T")


class Order:
    def __init__(self) -> None:
        self._last: WeakKeyDictionary[object, dict[str, asyncio.Task[Any]]] = WeakKeyDictionary()

    def is_waiting(self, client: object, group_id: str) -> bool:
        return group_id in self._last.get(client, ())

    async def wait(self, client: object, group_id: str) -> bool:
        """Until all that has come up to now is done; True."""
        last = self._last.get(client, {}).get(group_id)
        if last is not None:
            await asyncio.wait({last})
        return True

    def run(self, client: object, group_id: str, work: Callable[[], Awaitable[T]]) -> asyncio.Task[T]:
        """Do `work` when all that came before it is done. It has its place when this returns."""
        queues = self._last.setdefault(client, {})
        task = queues[group_id] = asyncio.create_task(_after(queues.get(group_id), work))
        task.add_done_callback(lambda done: queues.pop(group_id) if queues.get(group_id) is done else None)
        return task


async def _after(before: asyncio.Task[Any] | None, work: Callable[[], Awaitable[T]]) -> T:
    if before is not None:
        await asyncio.wait({before})
    return await work()
