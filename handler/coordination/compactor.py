"""Has partitions of internal topics compacted when much of them says nothing. One process does so for each partition."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable

from handler.coordination.internal_storage import is_worth_compacting
from handler.pulsar.admin import AlreadyExists
from handler.pulsar.entry import CompactionStats
from handler.pulsar.errors import PulsarError
from handler.pulsar.ports import Admin
from handler.telemetry.limits import RateLimitedLog

log = RateLimitedLog(logging.getLogger(__name__))

WriteMarker = Callable[[str], Awaitable[None]]


class Compactor:
    def __init__(self, admin: Admin, write_marker: WriteMarker) -> None:
        """`write_marker` puts an entry behind all others of a partition."""
        self._admin = admin
        self._write_marker = write_marker
        self._seen: dict[str, tuple[int, float]] = {}  # by partition: the ledger of what is compacted, and when that was seen first

    def forget(self, partition: str) -> None:
        """It is another's to compact."""
        self._seen.pop(partition, None)

    def forget_all(self) -> None:
        self._seen.clear()

    async def look(self, partition: str, stats: CompactionStats) -> None:
        """Have it compacted, if that is due. Where that fails it is due at the next look as well."""
        now = asyncio.get_running_loop().time()
        ledger, since = self._seen.setdefault(partition, (stats.compacted_ledger, now))
        if ledger != stats.compacted_ledger:
            # A broker that is killed behind two compactions within a second may know neither of them (apache/pulsar#26631).
            self._seen[partition] = stats.compacted_ledger, now
            return
        try:
            if not stats.is_held:
                if not stats.has_news:  # a compaction that finds nothing new changes nothing
                    await self._write_marker(partition)
                await self._compact(partition)
            elif is_worth_compacting(stats, now - since):
                await self._compact(partition)
        except PulsarError as error:
            log.info("%s can't be compacted now: %s", partition, error)

    async def _compact(self, partition: str) -> None:
        with contextlib.suppress(AlreadyExists):
            await self._admin.topics.compact(partition)
