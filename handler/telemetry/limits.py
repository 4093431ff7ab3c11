"""Logging that a flood can't turn into a flood of its own."""

from __future__ import annotations

import logging
import time


class RateLimitedLog:
    """A token bucket over one logger; says how many lines it kept back."""

    def __init__(self, logger: logging.Logger, per_second: float, burst: int) -> None:
        self._logger = logger
        self._per_second = per_second
        self._burst = float(burst)
        self._tokens = float(burst)
        self._at = time.monotonic()
        self._suppressed = 0

    def warning(self, message: str, *arguments: object) -> None:
        now = time.monotonic()
        self._tokens = min(self._burst, self._tokens + (now - self._at) * self._per_second)
        self._at = now
        if self._tokens < 1:
            self._suppressed += 1
            return
        self._tokens -= 1
        if self._suppressed:
            message += f" ({self._suppressed} more like this were not logged)"
            self._suppressed = 0
        self._logger.warning(message, *arguments)
