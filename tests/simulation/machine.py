"""A process that may be killed, or stand still. What is begun in it ends with it."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Coroutine
from contextvars import Context, copy_context
from typing import Any, TypeVar

from tests.simulation.loop import PROCESS, Life, Process, SimulatedLoop

T = TypeVar("T")


class Machine:
    def __init__(self, loop: SimulatedLoop, name: str) -> None:
        self.name = name
        self.life = 0  # how often it was started
        self._loop = loop
        self.process: Process
        self.context: Context

    def _begin_life(self) -> None:
        self.life += 1
        self._awake_since = self._loop.time()
        self.process = Process()
        self.context = copy_context()
        self.context.run(PROCESS.set, self.process)

    def _end_life(self) -> None:
        self.process.life = Life.KILLED
        self.process.held.clear()

    def run(self, work: Callable[[], T]) -> T:
        """Do something in this process, at once."""
        return self.context.copy().run(work)

    def begin(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Do something in this process that takes time. It never ends if the process is killed."""
        task = self._loop.create_task(work, context=self.context.copy())
        task.add_done_callback(_looked_at, context=Context())  # whoever asked may be killed
        return task

    @property
    def is_running(self) -> bool:
        return self.process.life is Life.RUNNING

    def owes_an_answer(self, life: int, asked_at: float) -> bool:
        """Whether it has been at work since then: as the same process, which did not stand still."""
        return self.life == life and self._awake_since <= asked_at

    def stand_still(self) -> None:
        self.process.life = Life.STANDING_STILL
        self._awake_since = math.inf

    def go_on(self) -> None:
        if self.process.life is Life.STANDING_STILL:
            self._awake_since = self._loop.time()
            self._loop.go_on(self.process)


def _looked_at(task: asyncio.Task[Any]) -> None:
    if not task.cancelled():
        task.exception()
