"""Logging that a flood can't turn into a flood of its own."""

from __future__ import annotations

import logging
import time
from typing import Final

# An outage repeats the same few log lines for each partition, group and client. Five lines of a kind are logged at
# once, then one every 10 s.
BURST: Final = 5
PER_SECOND: Final = 0.1


class _Bucket:
    __slots__ = ("at", "suppressed", "tokens")

    def __init__(self, tokens: float, at: float) -> None:
        self.tokens = tokens
        self.at = at
        self.suppressed = 0


class RateLimitedLog:
    """A token bucket for each kind of line; says how many lines of that kind it kept back.

    A kind is a message without its arguments, so there are as many as there are lines of code that log.
    """

    def __init__(self, logger: logging.Logger, per_second: float = PER_SECOND, burst: int = BURST) -> None:
        self._logger = logger
        self._per_second = per_second
        self._burst = float(burst)
        self._buckets: dict[str, _Bucket] = {}

    def info(self, message: str, *arguments: object) -> None:
        self._log(logging.INFO, message, arguments, False)

    def warning(self, message: str, *arguments: object) -> None:
        self._log(logging.WARNING, message, arguments, False)

    def exception(self, message: str, *arguments: object) -> None:
        """An error with the traceback of the exception that is being handled."""
        self._log(logging.ERROR, message, arguments, True)

    def _log(self, level: int, message: str, arguments: tuple[object, ...], traceback: bool) -> None:
        if not self._logger.isEnabledFor(level):
            return
        now = time.monotonic()
        bucket = self._buckets.setdefault(message, _Bucket(self._burst, now))
        bucket.tokens = min(self._burst, bucket.tokens + (now - bucket.at) * self._per_second)
        bucket.at = now
        if bucket.tokens < 1:
            bucket.suppressed += 1
            return
        bucket.tokens -= 1
        if bucket.suppressed:
            message += f" ({bucket.suppressed} more like this were not logged)"
            bucket.suppressed = 0
        self._logger.log(level, message, *arguments, exc_info=traceback)
