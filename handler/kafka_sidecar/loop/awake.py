"""Whether this process has stood still: a stopped container, a suspended machine.

Meanwhile another sidecar has served its clients. What then stands in their sockets they have given up, and sent again
elsewhere, and without a producer id nothing shows that it is old. So it is not read.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from kafka_sidecar.loop.clock import awake

BEAT_SECONDS: Final = 0.5
# Clients do not give up a request within 10 s (request.timeout.ms is 30 s by default), and ordinary work never blocks
# the event loop for 10 s.
STOOD_STILL_SECONDS: Final = 10.0
# While the process is suspended, the kernel still completes TCP connections. The event loop accepts them in its first
# turns after that.
ACCEPTS_SECONDS: Final = 2.0


class Awake:
    __slots__ = ("_at", "_clock", "_matters", "_woken_at")

    def __init__(self, matters: Callable[[], bool], clock: Callable[[], float] = awake) -> None:
        """`matters`: whether anybody else could have served clients."""
        self._clock = clock
        self._at = clock()
        self._matters = matters
        self._woken_at = -math.inf

    def wake(self) -> None:
        """It has stood still, and goes on."""
        self._woken_at = self._at = self._clock()

    def has_just_woken(self) -> bool:
        """Whether a connection that is accepted now may have been made, and its first request sent, while this process
        stood still.
        """
        return self._clock() - self._woken_at < ACCEPTS_SECONDS

    def beat(self) -> None:
        self._at = self._clock()

    def stood_still(self) -> bool:
        return self._clock() - self._at > STOOD_STILL_SECONDS and self._matters()
