"""What sidecars keep of logs, in memory."""

from __future__ import annotations

from handler.coordination.kept_places import Kept
from handler.pulsar.errors import Unavailable
from handler.tasks import BytesASecond


class MemoryStates:
    """Every sidecar that is given it finds what another has kept. `is_away`: as while nobody can read or write the topic."""

    def __init__(self) -> None:
        self.values: dict[bytes, bytes] = {}
        self.kept: list[bytes] = []  # the key of each value, as they were kept
        self.is_away = False
        self.written_at = 10**15
        self.rate = BytesASecond(2**40, 2**40)

    async def find(self, key: bytes) -> Kept | None:
        return Kept(self.values[key], self.written_at) if key in self.values and not self.is_away else None

    async def look_up(self, key: bytes) -> Kept | None:
        if self.is_away:
            raise Unavailable("no broker")
        return await self.find(key)

    async def keep(self, key: bytes, value: bytes) -> bool:
        if not self.is_away:
            await self.store(key, value)
        return not self.is_away

    async def store(self, key: bytes, value: bytes) -> None:
        if self.is_away:
            raise Unavailable("no broker")
        self.values[key] = value
        self.kept.append(key)
