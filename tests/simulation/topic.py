"""A topic of a run."""

from __future__ import annotations

import asyncio
import math
from contextvars import Context
from typing import Final

from kafka_sidecar.pulsar.entry import Position
from kafka_sidecar.pulsar.pulsar_api_pb2 import MessageMetadata
from tests.model.conduct import NOBODYS
from tests.model.topic import Topic
from tests.model.view import View
from tests.simulation.chance import Chance
from tests.simulation.conduct import DrawnCaller, DrawnConduct
from tests.simulation.plan import Bounds

# A ledger is kept for at least so long after it was closed. Brokers keep theirs for minutes.
LEAST_RETENTION_SECONDS: Final = 15.0
# An entry is stored within milliseconds, mostly.
ADDED_SECONDS: Final = 0.003


class SimulatedTopic(Topic):
    def __init__(
        self, loop: asyncio.AbstractEventLoop, chance: Chance, bounds: Bounds, name: str = "t-partition-0"
    ) -> None:
        self._drawn = DrawnConduct(loop, chance, bounds)
        super().__init__(
            self._drawn,
            deduplicates=bounds.deduplicates,
            names_markers=bounds.names_markers,
            wastes_indexes=bounds.wastes_indexes,
        )
        self.counts = bounds.is_replicated
        self.name = name
        self.loop = loop
        self.chance = chance
        self.bounds = bounds
        self.counted: dict[Position, int] = {}  # how many messages the broker was told, of what others have appended
        self._ended: dict[int, float] = {}  # when each ledger was closed

    @property
    def is_calm(self) -> bool:
        return self._drawn.is_calm

    @is_calm.setter
    def is_calm(self, is_calm: bool) -> None:
        self._drawn.is_calm = is_calm

    def seen_by(self, writer_name: str, context: Context) -> View:
        """As a sidecar has it, whose process has this context."""
        return View(self, writer_name, DrawnCaller(self._drawn, writer_name, context))

    def unload(self) -> None:
        self._drawn.unloaded_at = self.loop.time()
        super().unload()

    def _new_ledger(self) -> None:
        self._ended[self.ledger] = self.loop.time()
        super()._new_ledger()

    def append_soon(self, metadata: MessageMetadata, count: int, payload: bytes) -> None:
        """What another program writes, once all that is being added is stored."""
        if self._adding:
            self.loop.call_later(ADDED_SECONDS, self.append_soon, metadata, count, payload, context=NOBODYS)
        else:
            self.counted[self.append(metadata, count, payload)] = count

    def trim(self) -> None:
        """Whole ledgers go, and never the one that is written, or one that was just closed."""
        present = self.present
        if not present:
            return
        first = present[0].position.ledger
        if self._ended.get(first, math.inf) + LEAST_RETENTION_SECONDS < self.loop.time():
            self.trimmed += sum(entry.position.ledger == first for entry in present)
            self.note_index()
