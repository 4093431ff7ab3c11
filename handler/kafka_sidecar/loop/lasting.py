"""What is believed once it has been said again and again for a while: a broker that has just started may say what is
not so.
"""

from __future__ import annotations

from typing import Final

TIMES: Final = 3


class Lasting:
    __slots__ = ("_last", "_longest_pause", "_seconds", "_since", "_times")

    def __init__(self, seconds: float, longest_pause: float) -> None:
        """`longest_pause`: between two times that it is said. A question may fail in between, which says nothing. After
        a longer pause the count begins again.
        """
        self._seconds = seconds
        self._longest_pause = longest_pause
        self._times = 0
        self._since = self._last = 0.0

    def say(self, now: float) -> None:
        if not self._times or now - self._last > self._longest_pause:
            self._since, self._times = now, 0
        self._times += 1
        self._last = now

    def deny(self) -> None:
        """It is said that it is not so."""
        self._times = 0

    def is_believed(self, now: float) -> bool:
        """Now that it has been said."""
        has_lasted = self._last - self._since >= self._seconds and now - self._last <= self._longest_pause
        return self._times >= TIMES and has_lasted
