"""What is believed only once it has been said for a while, and nothing else: a broker that has just started may say what is not so."""

from __future__ import annotations


class Lasting:
    __slots__ = ("_seconds", "_since")

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._since: float | None = None

    def note(self, is_said: bool, now: float) -> None:
        """Any other answer, and a question that failed, is a break."""
        if not is_said:
            self._since = None
        elif self._since is None:
            self._since = now

    def is_believed(self, now: float) -> bool:
        return self._since is not None and now - self._since >= self._seconds
