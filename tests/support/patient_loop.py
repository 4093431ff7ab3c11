"""An event loop that no busy machine can hurry, and that never really sleeps.

A test that sleeps for 10 ms means: until all that was begun has come as far as it can. On a busy machine those 10 ms
may pass in the middle of it. Here a timer is due only when nobody else is ready, no socket has anything to read, and no
thread is at work. Where nothing can come from outside, the time until the next timer passes at once.
"""

from __future__ import annotations

import asyncio
import selectors
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

# A turn with work to do counts as so much at most, so that what waits by asking for the time comes to its end.
LONGEST_TURN: Final = 0.000_05
# A thread that waits for something of the loop's own is waited for no longer.
PATIENCE_SECONDS: Final = 0.5
# What threads and the kernel are given before it is said that nothing comes of them.
ONE_LOOK: Final = 0.005


class PatientSelector(selectors.BaseSelector):
    """Tells the loop's time: what was really waited, and no more than was asked for."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self.now = time.monotonic()
        self.threads = 0  # at work
        self._looked_at = self.now

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        begun = time.monotonic()
        self.now += min(begun - self._looked_at, LONGEST_TURN)
        found = self._selector.select(0)
        if not found and timeout and self._nothing_can_come:
            self.now += timeout
        elif not found and timeout != 0:
            found = self._selector.select(timeout)
            took = time.monotonic() - begun
            if timeout is not None and took >= timeout:
                found = found or self._wait_for_others()
                took = timeout
            self.now += took
        self._looked_at = time.monotonic()
        return found

    @property
    def _nothing_can_come(self) -> bool:
        """No thread is at work, no socket is open but the one by which threads wake the loop, and no process is waited
        for, which asyncio does in threads of that name.
        """
        is_quiet = not self.threads and len(self._selector.get_map()) <= 1
        return is_quiet and not any(one.name.startswith("asyncio-waitpid") for one in threading.enumerate())

    def _wait_for_others(self) -> list[tuple[selectors.SelectorKey, int]]:
        """The time is over. But the machine may have had other things to do, and a thread, or the kernel, not the
        processor.
        """
        until = time.monotonic() + PATIENCE_SECONDS
        found = self._selector.select(0)
        while not found and self.threads and time.monotonic() < until:
            found = self._selector.select(ONE_LOOK)
        return found

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._selector.register(fileobj, events, data)

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._selector.unregister(fileobj)

    def modify(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._selector.modify(fileobj, events, data)

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._selector.get_map()

    def close(self) -> None:
        self._selector.close()


class PatientLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._patient = PatientSelector()
        super().__init__(self._patient)

    def time(self) -> float:
        return self._patient.now

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *arguments: Any) -> Any:  # type: ignore[override]
        self._patient.threads += 1
        work = super().run_in_executor(executor, func, *arguments)
        work.add_done_callback(self._thread_is_done)
        return work

    def _thread_is_done(self, _: Any) -> None:
        self._patient.threads -= 1
