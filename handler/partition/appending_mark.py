"""A mark that batches of producers may have been appended of which what is kept does not tell yet.

    before the first batch ──▶ mark ──▶ batches … ──▶ all is kept, and nobody else has a mark ──▶ taken back

A sidecar that is killed leaves its mark, and then whoever opens the partition has to read all that was written since something was
kept, however much that is. Without a mark others wrote it, and a window of it is enough. Each mark has a key of its own, for sidecars
put and take back theirs at the same time.
"""

from __future__ import annotations

import asyncio
from typing import Final

from handler.clock import Clock
from handler.coordination.kept_states import KeptStates

# The part before the zero byte decides where a key is kept: those of one partition are together.
_KEY: Final = b"appends:%b\0"
# It is put again so often, while its sidecar appends.
_ANEW_SECONDS: Final = 6 * 3_600.0


class AppendingMark:
    def __init__(self, name: str, states: KeptStates, clock: Clock, expiry_ms: int) -> None:
        self._prefix = _KEY % name.encode()
        self._states = states
        self._clock = clock
        self._counts_ms = expiry_ms + int(2 * _ANEW_SECONDS * 1000)  # when a mark was put earlier, its producers have expired
        self._key = b""
        self._put_at = 0.0

    @property
    def is_put(self) -> bool:
        return bool(self._key)

    async def put(self) -> None:
        """Unless it was put lately. May raise PulsarError."""
        now = asyncio.get_running_loop().time()
        if self.is_put and now - self._put_at < _ANEW_SECONDS:
            return
        key = self._key or self._prefix + self._states.new_id().encode()
        await self._states.store(key, b"1")
        self._key, self._put_at = key, now

    async def take_back(self) -> None:
        """Where no other is there: what another sidecar keeps later may tell less than what this one has kept. May raise PulsarError."""
        if self.is_put and await self._states.names(self._prefix) == [self._key]:
            await self._states.store(self._key, b"")
            self._key = b""

    async def is_any_put(self) -> bool:
        """Raises PulsarError where that can't be told."""
        oldest = self._clock.wall() - self._counts_ms
        for key in await self._states.names(self._prefix):
            found = await self._states.look_up(key)
            if found is not None and found.written_at >= oldest:
                return True
        return False
