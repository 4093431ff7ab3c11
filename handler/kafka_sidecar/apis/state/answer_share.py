"""The bytes of fetch answers that clients have not taken yet, for the whole process.

An answer counts from when it is made until it is written to its client's socket. None may take more than a
quarter of what is left, so some is left however many clients are slow. When nothing is left a fetch waits, and
holds no more than its request; clients that take nothing are put out then (see `server.listener`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from kafka_sidecar.telemetry import metrics
from kafka_sidecar.wire.messages.fetch import FetchResponse

# The largest answer is a quarter of all, and four slow clients in a row still leave a third of it.
PART: Final = 4


class CountedFetchResponse(FetchResponse):
    """Counts until it is written to its client's socket."""

    __slots__ = ("counted_bytes",)

    counted_bytes: int


class AnswerShare:
    """Other than requests, answers are not admitted whole: a fetch takes as much as there is room for."""

    __slots__ = ("_waiting", "limit", "used")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = 0
        self._waiting: dict[Callable[[], None], None] = {}  # in the order in which they came
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
        if not size:
            return
        self.used -= size
        if self._waiting and self.room:
            waiting, self._waiting = self._waiting, {}
            loop = asyncio.get_running_loop()
            for go_on in waiting:  # not at once: the caller is in the middle of something
                loop.call_soon(go_on)

    def wait(self, go_on: Callable[[], None]) -> None:
        """Call `go_on` once, when there may be room again."""
        self._waiting[go_on] = None

    def withdraw(self, go_on: Callable[[], None]) -> None:
        self._waiting.pop(go_on, None)
