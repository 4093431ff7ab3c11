"""What a sidecar consists of, in the order in which one needs another.

What has to wait for something, `Sidecar.start` begins itself: the control server first, the fleet and the listener last.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from kafka_sidecar.loop.supervised import SupervisedTask


def _nothing() -> None: ...


class Part(NamedTuple):
    stop: Callable[[], Awaitable[object] | None]
    start: Callable[[], None] = _nothing


def part_of(task: SupervisedTask) -> Part:
    return Part(task.stopped, task.start)


class Parts:
    """They start in their order, and stop in the reverse."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self._parts = parts

    def start(self) -> None:
        for part in self._parts:
            part.start()

    async def stop(self) -> None:
        for part in reversed(self._parts):
            stopping = part.stop()
            if inspect.isawaitable(stopping):
                await stopping
