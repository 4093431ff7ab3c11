"""Long work that lets other work run."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import ClassVar, Final

# The piece of work that runs when these 3 ms are over still has to end: together they stay below 5 ms.
AT_A_TIME_SECONDS: Final = 0.003


class Pace:
    """Lets others run in the middle of long work, so that nothing holds the loop for longer than 5 ms."""

    __slots__ = ("_yielded_at",)

    # The speed of the machine decides when other tasks run. A simulation replaces this clock to decide it itself.
    clock: ClassVar[Callable[[], float]] = time.perf_counter

    def __init__(self) -> None:
        self._yielded_at = Pace.clock()

    async def maybe_yield(self) -> None:
        """To be called between pieces of work that are short."""
        if Pace.clock() - self._yielded_at > AT_A_TIME_SECONDS:
            await asyncio.sleep(0)
            self._yielded_at = Pace.clock()
