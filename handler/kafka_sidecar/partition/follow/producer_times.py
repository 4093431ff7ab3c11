"""When a partition's producers fall asleep, and how their expiry comes to know the time.

An entry that was folded by its receipt says nothing of when the broker stored it. Where nothing is read for long, the
last entry is.
"""

from __future__ import annotations

from typing import Final, Protocol

from kafka_sidecar.partition.fold.fold import Fold
from kafka_sidecar.partition.fold.log_times import MARKS
from kafka_sidecar.pulsar.entry import Position

# The last folded entry is noted this often. A producer that wrote nothing behind the noted entry falls asleep: its
# state is packed.
ASLEEP_AFTER_SECONDS: Final = 30.0
# The last entry is read at most this often, because the tail reader then stays open for some seconds.
LEAST_SECONDS: Final = 60.0


class Tail(Protocol):
    def want(self) -> None:
        """Read on from the last entry, for some seconds."""
        ...


class ProducerTimes:
    def __init__(self, fold: Fold, tail: Tail, now: float) -> None:
        self._fold = fold
        self._tail = tail
        self._seconds = max(LEAST_SECONDS, fold.memory.expiry_ms / 1_000 / MARKS)
        self._read_again_at = now + self._seconds
        self._ended_noted_at = now
        self._ended_at: Position | None = None  # the last folded entry, when it was last noted

    def tick(self, now: float) -> None:
        """Once in some seconds."""
        fold = self._fold
        states = fold.producers.states
        if not states:
            return
        if now >= self._read_again_at:
            self._read_again_at = now + self._seconds
            self._tail.want()
        if self._ended_at is not None:
            states.put_to_sleep(self._ended_at)
        states.expire()
        if now - self._ended_noted_at >= ASLEEP_AFTER_SECONDS:
            self._ended_noted_at = now
            self._ended_at = fold.last_position
