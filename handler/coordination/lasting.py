"""What is believed once it has been said again and again for a while: a broker that has just started may say what is not so."""

from __future__ import annotations

from typing import Final

# Between two times that it is said. Questions may fail in between, which says nothing. After a longer pause the count begins anew.
PAUSE_SECONDS: Final = 10.0


class Lasting:
    __slots__ = ("_last", "_seconds", "_since")

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._since: float | None = None
        self._last = 0.0

    def say(self, now: float) -> None:
        if self._since is None or now - self._last > PAUSE_SECONDS:
            self._since = now
        self._last = now

    def deny(self) -> None:
        """It is said that it is not so."""
        self._since = None

    def is_believed(self, now: float) -> bool:
        return self._since is not None and self._last - self._since >= self._seconds and now - self._last <= PAUSE_SECONDS
