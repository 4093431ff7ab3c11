"""A mark in `__kept_states`: a sidecar may have appended batches of producers that what is kept of them does not have yet.

    before the first batch ──▶ mark ──▶ batches … ──▶ all of them are kept, or none was sent ──▶ taken back

A sidecar that is killed leaves its mark. Then the sidecar that opens the partition next reads all entries behind what was kept, however
many they are. If there is no mark, no sidecar has written these entries, and it passes over them. Each mark has a key of its own, because
sidecars put and take back theirs at the same time.
"""

from __future__ import annotations

import asyncio
from typing import Final

from handler.clock import Clock
from handler.coordination.kept_states import KeptStates

# The part before the zero byte decides where a key is kept: those of one partition are together.
_KEY: Final = b"appends:%b\0"
# A sidecar that goes on appending puts its mark again after so long.
_ANEW_SECONDS: Final = 6 * 3_600.0


class AppendingMark:
    def __init__(self, name: str, states: KeptStates, clock: Clock, expiry_ms: int) -> None:
        self._prefix = _KEY % name.encode()
        self._states = states
        self._clock = clock
        self._counts_ms = expiry_ms + int(2 * _ANEW_SECONDS * 1000)  # of a mark that is older, all producers have expired
        self._key = b""
        self._put_at = 0.0

    @property
    def is_put(self) -> bool:
        return bool(self._key)

    def is_due(self, now: float) -> bool:
        """Whether it is to be put again."""
        return self.is_put and now - self._put_at >= _ANEW_SECONDS

    def is_overdue(self, now: float) -> bool:
        """Whether it may count no more before it is put again."""
        return self.is_put and now - self._put_at >= self._counts_ms / 1000 - _ANEW_SECONDS

    async def put(self) -> None:
        """Unless it was put lately. May raise PulsarError."""
        now = asyncio.get_running_loop().time()
        if self.is_put and not self.is_due(now):
            return
        key = self._key or self._prefix + self._states.new_id().encode()
        await self._states.store(key, b"1")
        self._key, self._put_at = key, now

    async def take_back(self) -> None:
        """And delete the marks of others that count no more: nobody else would, and every sidecar remembers their keys. May raise
        PulsarError.
        """
        if not self.is_put:
            return
        await self._states.store(self._key, b"")
        self._key = b""
        for key in await self._states.names(self._prefix):
            if not await self._counts(key):
                await self._states.store(key, b"")

    async def is_any_put(self) -> bool:
        """Raises PulsarError where that can't be told."""
        for key in await self._states.names(self._prefix):
            if await self._counts(key):
                return True
        return False

    async def _counts(self, key: bytes) -> bool:
        found = await self._states.look_up(key)
        return found is not None and found.written_at >= self._clock.wall() - self._counts_ms
