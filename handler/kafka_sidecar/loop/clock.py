"""What a process knows of time. It is passed down to where it is needed, so that a test decides what time it is."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, NamedTuple

# CLOCK_BOOTTIME also counts while the machine is suspended. Not every platform has it.
AWAKE: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class Clock(NamedTuple):
    """How long something takes is measured by the loop, which has a time of its own."""

    wall: Callable[[], int]  # milliseconds since 1970
    awake: Callable[[], float]  # seconds, also while the machine sleeps


def wall() -> int:
    return time.time_ns() // 1_000_000


def awake() -> float:
    return time.clock_gettime(AWAKE)


SYSTEM_CLOCK: Final = Clock(wall, awake)
