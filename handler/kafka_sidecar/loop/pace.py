"""Long work that lets other work run."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import ClassVar, Final

# Less than 5 ms, with the one piece of work that goes on when it is over.
AT_A_TIME_SECONDS: Final = 0.003


class Pace:
    """Lets others run in the middle of long work, so that nothing holds the loop for longer than 5 ms."""

    __slots__ = ("_yielded_at",)

    # How fast this machine works decides when others run: a simulation decides it itself.
    clock: ClassVar[Callable[[], float]] = time.perf_counter

    def __init__(self) -> None:
        self._yielded_at = Pace.clock()

    async def maybe_yield(self) -> None:
        """To be called between pieces of work that are short."""
        if Pace.clock() - self._yielded_at > AT_A_TIME_SECONDS:
            await asyncio.sleep(0)
            self._yielded_at = Pace.clock()
