"""Whether this process has stood still: a stopped container, a suspended machine.

Meanwhile another sidecar has served its clients. What then stands in their sockets they have given up, and sent again elsewhere, and
without a producer id nothing shows that it is old. So their connections are ended unread.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

BEAT_SECONDS: Final = 0.5
# As long as the others wait until they take a silent sidecar for gone.
STOOD_STILL_SECONDS: Final = 3.0


class Awake:
    __slots__ = ("_at", "_matters")

    def __init__(self, now: float, matters: Callable[[], bool]) -> None:
        """`matters`: whether anybody else could have served clients."""
        self._at = now
        self._matters = matters

    def beat(self, now: float) -> None:
        self._at = now

    def stood_still(self, now: float) -> bool:
        return now - self._at > STOOD_STILL_SECONDS and self._matters()
