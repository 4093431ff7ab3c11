"""The partitions that transactions write to, by what a sidecar's Partition promises. The simulation of partitions
proves that it keeps it.

A batch counts behind nothing but its own transaction's marker: one that comes later is refused. A marker counts once.
What is sent may land long after who sent it has given it up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, NamedTuple

from kafka_sidecar.pulsar.errors import Unavailable
from kafka_sidecar.wire.control_records import read_marker
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.records import read_header
from tests.model.conduct import NOBODYS
from tests.simulation.chance import Chance
from tests.simulation.coordinators.offsets import HOME
from tests.simulation.coordinators.plan import Bounds
from tests.simulation.history import Violation

TOPIC: Final = "data"
COUNT: Final = 3
# Until something lands that hangs.
HANGS_SECONDS: Final = (0.5, 3.0, 20.0, 60.0)
APPEND_SECONDS: Final = 10.0


class Transaction(NamedTuple):
    producer_id: int
    number: int


class Marker(NamedTuple):
    of: Transaction
    committed: bool


class Batch(NamedTuple):
    of: Transaction
    value: str


# Told of each marker when it lands for the first time.
OnMarker = Callable[[Marker], None]


class WrittenPartition:
    def __init__(self, loop: asyncio.AbstractEventLoop, chance: Chance, bounds: Bounds, on_marker: OnMarker) -> None:
        self.entries: list[Batch | Marker] = []  # those that count
        self.is_calm = False
        self._loop = loop
        self._draw = chance.of("partition")
        self._bounds = bounds
        self._on_marker = on_marker
        self._ended: set[Transaction] = set()
        self._values: set[str] = set()

    async def opened(self) -> ErrorCode:
        if not self.is_calm and self._draw.random() < self._bounds.moods.missing_topics:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if not self.is_calm and self._draw.random() < self._bounds.roughness.failed_questions:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return ErrorCode.NONE

    async def append(self, of: Transaction, value: str) -> ErrorCode:
        return await self._sent(lambda: self._land(of, value), APPEND_SECONDS)

    async def end_transaction(self, marker: bytes, number: int, deadline: float) -> ErrorCode:
        read = read_marker(marker)
        assert read is not None
        ends = Marker(Transaction(read_header(marker).producer_id, number), read.committed)
        return await self._sent(lambda: self._land_marker(ends), deadline - self._loop.time())

    async def _sent(self, land: Callable[[], ErrorCode], seconds: float) -> ErrorCode:
        """It lands, and who sent it may not hear of that."""
        told: asyncio.Future[ErrorCode] = self._loop.create_future()
        draw, is_rough = self._draw, not self.is_calm
        seconds_up = draw.choice((0.0005, 0.002, self._bounds.roughness.slowest))
        if is_rough and draw.random() < self._bounds.lost_appends:
            seconds_up += draw.choice(HANGS_SECONDS)
        is_lost = is_rough and draw.random() < self._bounds.lost_appends

        def arrive() -> None:
            error = land()
            if not told.done() and not is_lost:
                told.set_result(error)

        self._loop.call_later(seconds_up, arrive, context=NOBODYS)
        try:
            async with asyncio.timeout(seconds):
                return await told
        except TimeoutError as error:
            raise Unavailable("nothing is heard of it") from error

    def _land(self, of: Transaction, value: str) -> ErrorCode:
        if value in self._values:
            return ErrorCode.NONE
        if of in self._ended:
            return ErrorCode.INVALID_TXN_STATE
        self._values.add(value)
        self.entries.append(Batch(of, value))
        return ErrorCode.NONE

    def _land_marker(self, marker: Marker) -> ErrorCode:
        if marker.of in self._ended:
            return ErrorCode.INVALID_TXN_STATE
        self._on_marker(marker)
        self._ended.add(marker.of)
        self.entries.append(marker)
        return ErrorCode.NONE

    # --- what consumers are given

    def fates(self) -> dict[str, bool | None]:
        """Whether what is here is for consumers of read_committed; None where that is not decided."""
        ends = {entry.of: entry.committed for entry in self.entries if isinstance(entry, Marker)}
        return {entry.value: ends.get(entry.of) for entry in self.entries if isinstance(entry, Batch)}


class WrittenPartitions:
    """As sidecars have them, by their Pulsar names."""

    def __init__(self, all_of_them: list[WrittenPartition]) -> None:
        self.all = all_of_them

    def get(self, name: str) -> WrittenPartition:
        topic, _, number = name.rpartition("-partition-")
        if topic != f"persistent://{HOME}/{TOPIC}":
            raise Violation(f"a marker is for {topic}, which no transaction has written to")
        return self.all[int(number)]
