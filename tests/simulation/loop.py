"""A loop in virtual time. When nothing is left to do now, it is the time of the next timer.

Each callback belongs to the process in whose context it was made. A process that stands still gets its callbacks when
it goes on, all at once; those of a process that was killed are dropped.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from contextvars import Context, ContextVar, copy_context
from enum import Enum, auto
from typing import Any, Final

BEGIN: Final = 1_000.0
# Of wall clocks, when the loop's time is 0.
EPOCH_SECONDS: Final = 1_800_000_000
# A run has some ten or hundred thousand, and one in thousands has millions.
MOST_STEPS: Final = 10_000_000
LAST_TURNS: Final = 1_000


class Life(Enum):
    RUNNING = auto()
    STANDING_STILL = auto()
    KILLED = auto()


class Endless(Exception):
    """The run does not come to its end."""


class Process:
    """What runs in one process."""

    __slots__ = ("__weakref__", "held", "life", "tasks")

    def __init__(self) -> None:
        self.life = Life.RUNNING
        self.held: deque[asyncio.Handle] = deque()
        self.tasks: dict[
            asyncio.Task[Any], None
        ] = {}  # also when nobody else refers to them: what dies when is not for Python to decide


PROCESS: Final[ContextVar[Process | None]] = ContextVar("PROCESS", default=None)


class SimulatedLoop(asyncio.BaseEventLoop):
    """Callbacks run in the order in which they were made ready, as those of a real loop do."""

    def __init__(self, thread_delay: Callable[[], float]) -> None:
        super().__init__()
        self.steps = 0
        self.failures: list[dict[str, Any]] = []  # that nobody has handled
        self.network: Any = None  # where processes listen, in a run that has one
        self._now = BEGIN
        self._is_burying = False
        self._thread_delay = thread_delay
        self.set_exception_handler(lambda _, context: self.failures.append(context))
        self.set_task_factory(self._new_task)

    def time(self) -> float:
        return self._now

    def _new_task(self, _: asyncio.AbstractEventLoop, work: Any, context: Context | None = None) -> asyncio.Task[Any]:
        context = copy_context() if context is None else context
        task: asyncio.Task[Any] = asyncio.Task(work, loop=self, context=context)
        process = context.get(PROCESS)
        if process is not None:
            process.tasks[task] = None
            task.add_done_callback(process.tasks.pop, context=Context())  # whoever began it may be killed
        return task

    def go_on(self, process: Process) -> None:
        """Let a process that stood still go on."""
        process.life = Life.RUNNING
        ready: deque[asyncio.Handle] = self._ready  # type: ignore[attr-defined]
        ready.extend(process.held)
        process.held.clear()

    def bury(self) -> None:
        """End all that is left, also in processes that were killed: nothing of it may run in a later run."""
        self._is_burying = True
        self.set_exception_handler(lambda _, __: None)
        left = list(asyncio.all_tasks(self))
        for task in left:
            task.cancel()
        for _ in range(LAST_TURNS):
            self._run_once()
        for task in left:  # what woke them was dropped with their process
            if not task.done():
                with suppress(BaseException):
                    task.get_coro().close()

    async def _in_no_thread(self, work: Callable[[], Any]) -> Any:
        await asyncio.sleep(self._thread_delay())
        return work()

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *arguments: Any) -> Any:  # type: ignore[override]
        """Here, after a while."""
        return self.create_task(self._in_no_thread(lambda: func(*arguments)))

    async def create_server(self, protocol_factory: Any, host: Any = None, port: Any = None, **_: Any) -> Any:
        """In memory."""
        return self.network.listen(protocol_factory, host, port)

    def _process_events(self, event_list: Any) -> None: ...

    def _write_to_self(self) -> None: ...

    def _run_once(self) -> None:
        timers: list[asyncio.TimerHandle] = self._scheduled  # type: ignore[attr-defined]
        ready: deque[asyncio.Handle] = self._ready  # type: ignore[attr-defined]
        while timers and timers[0].cancelled():
            heapq.heappop(timers)._scheduled = False  # type: ignore[attr-defined]
        if not ready and timers:
            self._now = max(self._now, timers[0].when())
        elif not ready and not self._is_burying:
            raise Endless("nothing is left to happen")
        if self.steps > MOST_STEPS and not self._is_burying:
            raise Endless(f"after {self.steps} steps it goes on")
        while timers and timers[0].when() <= self._now:
            timer = heapq.heappop(timers)
            timer._scheduled = False  # type: ignore[attr-defined]
            if not timer.cancelled():
                ready.append(timer)
        for _ in range(len(ready)):
            handle = ready.popleft()
            if handle.cancelled():
                continue
            process = handle._context.get(PROCESS)  # type: ignore[attr-defined]
            if process is None or process.life is Life.RUNNING or self._is_burying:
                self.steps += 1
                handle._run()
            elif process.life is Life.STANDING_STILL:
                process.held.append(handle)
