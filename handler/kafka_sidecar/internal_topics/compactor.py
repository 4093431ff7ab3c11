"""Has partitions of internal topics compacted when much of them says nothing. One process does so for each
partition.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable

from kafka_sidecar.internal_topics.internal_storage import is_worth_compacting
from kafka_sidecar.pulsar.admin import AlreadyExists
from kafka_sidecar.pulsar.entry import CompactionStats
from kafka_sidecar.pulsar.errors import PulsarError
from kafka_sidecar.pulsar.ports import Admin
from kafka_sidecar.telemetry.limits import RateLimitedLog

log = RateLimitedLog(logging.getLogger(__name__))

WriteMarker = Callable[[str], Awaitable[None]]
# Returns True if a partition may be compacted: its log has lost no entries, whose loss a compaction would make final.
LacksNothing = Callable[[str, CompactionStats], Awaitable[bool]]


async def nobody_asks(_: str, __: CompactionStats) -> bool:
    """For a sidecar that has read all of it, or can do without."""
    return True


class Compactor:
    def __init__(self, admin: Admin, write_marker: WriteMarker, lacks_nothing: LacksNothing = nobody_asks) -> None:
        """`write_marker` puts an entry behind all others of a partition."""
        self._admin = admin
        self._write_marker = write_marker
        self._lacks_nothing = lacks_nothing
        self._seen: dict[
            str, tuple[int, float]
        ] = {}  # by partition: the id of the compacted ledger, and when it was first seen

    def forget(self, partition: str) -> None:
        """It is another's to compact."""
        self._seen.pop(partition, None)

    def forget_all(self) -> None:
        self._seen.clear()

    async def look(self, partition: str, stats: CompactionStats) -> None:
        """Have it compacted, if that is due. Where that fails it is due at the next look as well."""
        now = asyncio.get_running_loop().time()
        ledger, since = self._seen.get(partition, (-1, now))
        if partition not in self._seen or ledger != stats.compacted_ledger:
            self._seen[partition] = stats.compacted_ledger, now
            if stats.compacted_ledger >= 0:
                # A broker that is killed after two compactions within one second may have stored neither of them
                # (apache/pulsar#26631).
                return
        try:
            if stats.is_held:
                if is_worth_compacting(stats, now - since):
                    await self._compact(partition)
            elif stats.compacted_ledger >= 0 or await self._lacks_nothing(partition, stats):
                if not stats.has_news:  # without a new entry a compaction has no effect
                    await self._write_marker(partition)
                await self._compact(partition)
        except PulsarError as error:
            log.info("%s can't be compacted now: %s", partition, error)

    async def _compact(self, partition: str) -> None:
        with contextlib.suppress(AlreadyExists):
            await self._admin.topics.compact(partition)
