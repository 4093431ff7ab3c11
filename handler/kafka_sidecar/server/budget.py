"""The bytes that requests without an answer may hold, for the whole process.

A request's bytes are reserved from its four length bytes, before its body is read, so nothing that holds bytes
waits for more. A client that reserves bytes and then sends nothing is put out when others wait (see `listener`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from kafka_sidecar.telemetry import metrics


class ByteBudget:
    """Reservations are granted in order of asking; one larger than the whole budget is granted alone."""

    __slots__ = ("_queue", "limit", "used")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = 0
        metrics.REQUEST_BYTES.set_function(lambda: self.used)
        self._queue: deque[tuple[int, Callable[[], None]]] = deque()

    def _fits(self, size: int) -> bool:
        return self.used == 0 or self.used + size <= self.limit

    def reserve(self, size: int, granted: Callable[[], None]) -> bool:
        """True when granted at once; else `granted` is called when it is its turn."""
        if not self._queue and self._fits(size):
            self._take(size)
            return True
        self._queue.append((size, granted))
        return False

    def try_take(self, size: int) -> bool:
        """Count bytes that are here already, if there is room and nobody waits for it."""
        if self._queue or not self._fits(size):
            return False
        self._take(size)
        return True

    def take(self, size: int) -> None:
        """Count bytes that are here already: a small request that came whole in one read."""
        self.used += size

    def release(self, size: int) -> None:
        self.used -= size
        self._grant()

    def _grant(self) -> None:
        while self._queue and self._fits(self._queue[0][0]):
            waiting, granted = self._queue.popleft()
            self._take(waiting)
            granted()

    @property
    def is_wanted(self) -> bool:
        """Whether requests wait for others' bytes."""
        return bool(self._queue)

    def withdraw(self, granted: Callable[[], None]) -> bool:
        """Leave the queue; False when it was granted already."""
        for item in self._queue:
            if item[1] == granted:
                self._queue.remove(item)
                self._grant()  # requests queued behind the withdrawn one may be smaller and fit now
                return True
        return False

    def _take(self, size: int) -> None:
        self.used += size
