"""The part of a log that a kept value tells of."""

from __future__ import annotations

from typing import NamedTuple

from kafka_sidecar.pulsar.entry import Position


class Extent(NamedTuple):
    began: Position | None  # position at which the fold began; None: at the start of the log
    last: Position

    def covers(self, other: Extent) -> bool:
        return self.last >= other.last and not other.began_earlier(self)

    def began_earlier(self, other: Extent) -> bool:
        return other.began is not None and (self.began is None or self.began < other.began)
