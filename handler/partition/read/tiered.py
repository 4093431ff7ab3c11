"""What of a partition Pulsar has offloaded: the offsets that Kafka asks for by −4, −5 and −6 (KIP-405, KIP-1005, KIP-1023).

Pulsar offloads whole ledgers, the oldest first, never the open one.
"""

from __future__ import annotations

from contextlib import aclosing
from typing import Protocol

from handler.partition.log.port import EntryLog
from handler.partition.read.read_entries import ReadEntry, entries_from
from handler.partition.read.timestamp_search import NOT_FOUND, TimestampAndOffset
from handler.pulsar.entry import LedgerInfo, LogStats, Position


class PartitionForTiers(Protocol):
    """The partition, as far as its tiers need it."""

    @property
    def entry_log(self) -> EntryLog: ...
    async def confirmed_start(self) -> int: ...
    async def confirmed_end(self) -> int: ...


async def earliest_local(partition: PartitionForTiers) -> TimestampAndOffset:
    """The first offset that is not offloaded; where nothing is, the log start."""
    stats = await partition.entry_log.stats()
    if _last_offloaded(stats) is None:
        return TimestampAndOffset(await partition.confirmed_start(), -1)
    return TimestampAndOffset(await _first_local(partition, stats), -1)


async def latest_tiered(partition: PartitionForTiers) -> TimestampAndOffset:
    """The last offset that is offloaded; −1 where nothing is."""
    last = _last_offloaded(await partition.entry_log.stats())
    if last is None:
        return NOT_FOUND
    entry = await _entry_from(partition.entry_log, Position(last.ledger, last.entries - 1))
    return TimestampAndOffset(entry.next_offset - 1, -1)


async def earliest_pending_upload(partition: PartitionForTiers) -> TimestampAndOffset:
    """The first offset that is still to be offloaded; −1 where nothing is offloaded, for nobody may have asked for it."""
    stats = await partition.entry_log.stats()
    return NOT_FOUND if _last_offloaded(stats) is None else TimestampAndOffset(await _first_local(partition, stats), -1)


def _last_offloaded(stats: LogStats) -> LedgerInfo | None:
    """The last ledger of those at the beginning that are offloaded without a gap."""
    last = None
    for ledger in stats.ledgers:
        if not ledger.offloaded:
            break
        last = ledger
    return last


async def _first_local(partition: PartitionForTiers, stats: LogStats) -> int:
    first = next((ledger for ledger in stats.ledgers if not ledger.offloaded), None)
    if first is None:  # what comes next is the first
        return await partition.confirmed_end()
    return (await _entry_from(partition.entry_log, Position(first.ledger, 0))).base_offset


async def _entry_from(log_: EntryLog, position: Position) -> ReadEntry:
    """The first entry from there on that readers are given."""
    async with aclosing(entries_from(log_, position, permits=1)) as entries:
        return await anext(entries)
