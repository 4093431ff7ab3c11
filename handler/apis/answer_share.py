"""The bytes of fetch answers that clients have not taken yet, for the whole process.

An answer counts from when it is made until it is written to its client's socket. None may take more than a
quarter of what is left, so some is left however many clients are slow. When nothing is left a fetch waits, and
holds no more than its request; clients that take nothing are put out then (see `server.listener`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from handler.telemetry import metrics

PART: Final = 4


class AnswerShare:
    __slots__ = ("_waiting", "limit", "used")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = 0
        self._waiting: set[Callable[[], None]] = set()
        metrics.ANSWER_BYTES.set_function(lambda: self.used)

    @property
    def room(self) -> int:
        """The size of an answer that may be made now. One batch may be larger: it is given alone (KIP-74)."""
        return max(0, self.limit - self.used) // PART

    @property
    def is_wanted(self) -> bool:
        """Whether fetches wait for others' answers to be taken."""
        return bool(self._waiting)

    def take(self, size: int) -> None:
        self.used += size

    def release(self, size: int) -> None:
        self.used -= size
        if self._waiting and self.room:
            waiting, self._waiting = self._waiting, set()
            for go_on in waiting:
                go_on()

    def wait(self, go_on: Callable[[], None]) -> None:
        """Call `go_on` once, when there is room again."""
        self._waiting.add(go_on)

    def withdraw(self, go_on: Callable[[], None]) -> None:
        self._waiting.discard(go_on)
