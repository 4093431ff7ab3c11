"""A mark in `__kept_states`: a sidecar may have appended batches of producers that what is kept of them does not have
yet.

    before the first batch ──▶ mark ──▶ batches … ──▶ all of them are kept, or none was sent ──▶ taken back

A sidecar that is killed leaves its mark. Then the sidecar that opens the partition next reads all entries behind what
was kept, however many they are. If there is no mark, no sidecar has written these entries, and it passes over them.
Each mark has a key of its own, because sidecars put and take back theirs at the same time.
"""

from __future__ import annotations

import math
from typing import Final

from kafka_sidecar.internal_topics.snapshot_topic import SnapshotTopic
from kafka_sidecar.loop.clock import Clock

# The part of the key before the zero byte selects the partition of `__kept_states`, so all keys of one log are stored
# together.
_KEY: Final = b"appends:%b\0"
# A sidecar that goes on appending stores its mark again after 6 h.
_ANEW_SECONDS: Final = 6 * 3_600.0
# If that is impossible, it sends no more batches of idempotent producers after 12 h without a new mark.
_OVERDUE_SECONDS: Final = 12 * 3_600.0
# A mark has the timestamp of the sidecar that stored it. The clock of the sidecar that reads it may differ by up to 25
# h.
_CLOCKS_DIFFER_SECONDS: Final = 25 * 3_600.0


class AppendingMark:
    def __init__(self, name: str, states: SnapshotTopic, clock: Clock, expiry_ms: int) -> None:
        self._prefix = _KEY % name.encode()
        self._states = states
        self._clock = clock
        # A mark older than this does not count, since all producers that it stands for have expired.
        self._counts_ms = expiry_ms + int((_OVERDUE_SECONDS + _CLOCKS_DIFFER_SECONDS) * 1000)
        self._key = b""
        self._put_at = -math.inf
        self._times_remade = 0  # `times_remade` of the topic when the mark was stored

    @property
    def may_be_put(self) -> bool:
        """Also where nobody can tell whether its store has landed."""
        return bool(self._key)

    def is_due(self, now: float) -> bool:
        """Whether it is to be put, or put again."""
        return now - self._put_at >= _ANEW_SECONDS or self._times_remade != self._states.times_remade(self._prefix)

    def is_overdue(self, now: float) -> bool:
        """Whether others may ignore it before the producers of a batch that is sent now have expired."""
        return now - self._put_at >= _OVERDUE_SECONDS

    async def put(self, now: float) -> None:
        """Unless it was put lately. May raise PulsarError."""
        if not self.is_due(now):
            return
        if not self._key or (
            self._put_at > -math.inf and self.is_overdue(now)
        ):  # Another sidecar may be about to delete an overdue mark, so the new one has a new key
            # From here on the mark may be in Pulsar, even if the store fails.
            self._key = self._prefix + self._states.new_id().encode()
        times_remade = self._states.times_remade(self._prefix)
        await self._states.store(self._key, b"1")
        self._put_at, self._times_remade = now, times_remade

    async def take_back(self) -> None:
        """May raise PulsarError."""
        if self._key:
            await self._states.store(self._key, b"")
            self._key, self._put_at = b"", -math.inf

    async def delete_expired(self) -> None:
        """Marks that count no more. Nobody else would delete them, and every sidecar remembers their keys. May raise
        PulsarError.
        """
        for key in await self._states.names(self._prefix):
            if not await self._counts(key):
                await self._states.store(key, b"")

    async def is_any_put(self) -> bool:
        """May raise PulsarError."""
        for key in await self._states.names(self._prefix):
            if await self._counts(key):
                return True
        return False

    async def _counts(self, key: bytes) -> bool:
        found = await self._states.look_up(key)
        return found is not None and found.written_at >= self._clock.wall() - self._counts_ms
