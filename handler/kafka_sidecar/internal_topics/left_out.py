"""What compaction has left out of a topic that merges its values by a rule of its own.

Compaction keeps the last value of a key. That may be a lesser one: its writer had not heard of the greatest, and the
compaction came before anybody had written the greatest again. The log itself still has both for a while.
"""

from __future__ import annotations

import asyncio
import contextlib
from contextlib import aclosing
from typing import Final, NamedTuple

from kafka_sidecar.internal_topics import shared_map_reader
from kafka_sidecar.pulsar.entry import CompactionStats, Position, RawEntry
from kafka_sidecar.pulsar.events import ConsumerEvents
from kafka_sidecar.pulsar.ports import Client, EntryReader
from kafka_sidecar.pulsar.raw_entries import NoEntryCame, Patience, raw_entries_from

# Entries of the uncompacted log that are read before the compacted ones. These are enough: a value that was written
# behind a greater one is repaired within seconds.
ENTRIES: Final = 1_000
# A sidecar that has read the topic before resumes behind the last entry that it read, at most 20,000 entries back.
MOST_ENTRIES: Final = 20_000
# Assumed size of an entry in bytes. A value is far smaller.
ENTRY_BYTES: Final = 1024
# The read is given up after 2 s; some thousand entries arrive within 0.1 s. Requests wait until the compacted entries
# are read, so slow storage must not delay them twice.
SECONDS: Final = 2.0


async def entries_left_out(client: Client, topic: str, stats: CompactionStats, seen: Position | None) -> list[RawEntry]:
    """The last entries of the log that compaction has gone over, all of them or none. `seen`: the last entry that was
    read before.

    A part of these entries would be worse than none: it may have a value without the deletion behind it.
    """
    horizon = stats.compacted_to
    end = None if horizon is None else stats.log.entry_before(horizon.after())
    if horizon is None or end is None or not stats.log.may_hold(end):
        return []
    start = _so_far_before(end, stats, ENTRIES)
    if seen is not None and seen < start:
        start = max(seen.after(), _so_far_before(end, stats, MOST_ENTRIES))
    wanted, _ = stats.log.between(start, end.after())
    found: list[RawEntry] = []
    with contextlib.suppress(NoEntryCame, TimeoutError):
        async with asyncio.timeout(SECONDS):
            async with aclosing(
                raw_entries_from(_Uncompacted(client, topic, Patience()), start, shared_map_reader.PERMITS)
            ) as entries:
                while not found or found[-1].position < end:
                    found.append(await anext(entries))
    return found if len(found) == wanted and found[-1].position == end else []


def _so_far_before(end: Position, stats: CompactionStats, entries: int) -> Position:
    return stats.log.before(end, entries, entries * ENTRY_BYTES)


class _Uncompacted(NamedTuple):
    """The log as it was written."""

    client: Client
    topic: str
    patience: Patience

    async def reader(self, start: Position | None, events: ConsumerEvents) -> EntryReader:
        return await self.client.reader(self.topic, start, events, purpose="load")
