"""A limit of bytes a second."""

from __future__ import annotations

import asyncio
import math

from kafka_sidecar.loop.waiting import pause


class ByteRate:
    """A rate that all who take from it share, in the order in which they ask. What was not taken lately may be taken at
    once.
    """

    def __init__(self, rate: float, at_once: float) -> None:
        self._rate = rate
        self._saved = at_once / rate  # the allowed burst, as its time in seconds at this rate
        self._taken_until = -math.inf  # loop time in seconds at which the rate has caught up with all bytes taken

    async def take(self, count: int) -> None:
        self.spend(count)
        await pause(self._taken_until - asyncio.get_running_loop().time())

    def spend(self, count: int) -> None:
        """Take it at once, whatever was taken before: others wait longer."""
        now = asyncio.get_running_loop().time()
        self._taken_until = max(self._taken_until, now - self._saved) + count / self._rate
