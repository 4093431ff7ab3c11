"""What sidecars keep of logs, in memory."""

from __future__ import annotations

from kafka_sidecar.internal_topics.snapshot_places import Kept
from kafka_sidecar.loop.byte_rate import ByteRate
from kafka_sidecar.pulsar.errors import PulsarError, Unavailable

MARKS = b"appends:"  # marks are not what is worked out of logs


class MemoryStates:
    """Every sidecar that is given it finds what another has kept. `is_away`: as while nobody can read or write the
    topic.
    """

    def __init__(self) -> None:
        self.values: dict[bytes, bytes] = {}
        self.kept: list[bytes] = []  # of each value, as they were kept, without marks: its key up to a zero byte
        self.is_away = False
        self.remade = 0
        self._ids = 0
        self.written_at = 10**15
        self.rate = ByteRate(2**40, 2**40)

    def times_remade(self, key: bytes) -> int:
        return self.remade

    async def find(self, key: bytes) -> Kept | None:
        return Kept(self.values[key], self.written_at) if key in self.values and not self.is_away else None

    async def look_up(self, key: bytes) -> Kept | None:
        if self.is_away:
            raise Unavailable("no broker")
        return await self.find(key)

    async def names(self, prefix: bytes) -> list[bytes]:
        if self.is_away:
            raise Unavailable("no broker")
        return [key for key in self.values if key.startswith(prefix)]

    def new_id(self) -> str:
        self._ids += 1
        return f"{self._ids}"

    async def keep(self, key: bytes, value: bytes) -> bool:
        try:
            await self.store(key, value)
        except PulsarError:
            return False
        return True

    async def store(self, key: bytes, value: bytes) -> None:
        if self.is_away:
            raise Unavailable("no broker")
        if value:
            self.values[key] = value
            if not key.startswith(MARKS):
                self.kept.append(key.partition(b"\0")[0])
        else:
            self.values.pop(key, None)
