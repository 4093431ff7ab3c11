"""When a log had come to which entry, by the broker's clock: that is how producers expire. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Final, NamedTuple

from kafka_sidecar.pulsar.entry import Position

# Kafka's default of producer.id.expiration.ms.
DAY_MS: Final = 86_400_000
# The number of marks within producer.id.expiration.ms: a producer expires late by up to 1/24 of that time.
MARKS: Final = 24
# Less than every other position, including the special ones BEFORE_ALL (-1) and THE_PAST (-2).
NOWHERE: Final = Position(-3, -3)


class Mark(NamedTuple):
    position: Position  # all entries up to this position were stored by the time `at`
    at: int  # time by the broker's clock, in milliseconds since 1970


class LogTimes:
    """A few marks are enough: nobody needs to know within minutes when a producer expires."""

    __slots__ = ("_expiry_ms", "_last_at", "_next_at", "expired_to", "marks")

    def __init__(self, expiry_ms: int) -> None:
        self._expiry_ms = expiry_ms
        self.marks: deque[Mark] = deque()
        # Time of the last mark and least time of the next one, in milliseconds since 1970.
        self._last_at = self._next_at = 0
        self.expired_to = NOWHERE  # a producer that wrote nothing behind this position has expired

    def note(self, position: Position, at: int) -> None:
        """The broker stored this entry at that time. Entries come in order, but for some that are read once more."""
        if self._last_at <= at < self._next_at:
            return
        marks = self.marks
        if marks and position <= marks[-1].position:
            return
        while marks and at < marks[-1].at:  # the broker that stored the marked entry had a clock that was ahead
            marks.pop()
        if not marks or at >= marks[-1].at + self._expiry_ms // MARKS:
            marks.append(Mark(position, at))
            self._expire(at)
        self._last_at = marks[-1].at
        self._next_at = self._last_at + self._expiry_ms // MARKS

    def go_on(self, later: Iterable[Mark]) -> None:
        """Another has noted these, some of them further on."""
        for mark in later:
            self.note(mark.position, mark.at)

    def learn(self, later: LogTimes) -> None:
        """A producer that has expired for one of both has expired."""
        self.expired_to = max(self.expired_to, later.expired_to)
        self.go_on(later.marks)

    def _expire(self, now: int) -> None:
        """The last mark of those that are old enough stays: a fold that goes on from stored marks knows as much."""
        while len(self.marks) > 1 and self.marks[1].at <= now - self._expiry_ms:
            self.marks.popleft()
        if self.marks[0].at <= now - self._expiry_ms:
            self.expired_to = max(self.expired_to, self.marks[0].position)
