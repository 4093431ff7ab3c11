"""What a sidecar consists of, in the order in which one needs another.

What has to wait for something, `Sidecar.start` begins itself: the control server first, the fleet and the listener
last.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

from kafka_sidecar.loop.supervised import SupervisedTask

log = logging.getLogger(__name__)


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
        """One that can't be stopped keeps none of the others running."""
        for part in reversed(self._parts):
            try:
                stopping = part.stop()
                if inspect.isawaitable(stopping):
                    await stopping
            except Exception:
                log.exception("can't stop a part of this sidecar: the others are stopped")
