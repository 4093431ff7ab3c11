"""What of a partition Pulsar has offloaded: the offsets that Kafka asks for by −4, −5 and −6 (KIP-405, KIP-1005,
KIP-1023).

Pulsar offloads whole ledgers, the oldest first, never the open one.
"""

from __future__ import annotations

from contextlib import aclosing
from typing import Protocol

from kafka_sidecar.partition.follow.read_entries import entries_from
from kafka_sidecar.partition.log.port import EntryLog
from kafka_sidecar.partition.search.timestamp_search import NOT_FOUND, TimestampAndOffset
from kafka_sidecar.pulsar.entry import LogStats, Position


class PartitionForTiers(Protocol):
    """The partition, as far as its tiers need it."""

    @property
    def entry_log(self) -> EntryLog: ...
    async def confirmed_start(self) -> int: ...
    async def confirmed_end(self) -> int: ...


async def earliest_local(partition: PartitionForTiers) -> TimestampAndOffset:
    """The first offset that is not offloaded; where nothing is, the log start."""
    stats = await partition.entry_log.stats()
    start = await partition.confirmed_start()
    return TimestampAndOffset(max(start, await _first_local(partition, stats)) if _has_offloaded(stats) else start, -1)


async def latest_tiered(partition: PartitionForTiers) -> TimestampAndOffset:
    """The offset before the first that is not offloaded; −1 where nothing is."""
    stats = await partition.entry_log.stats()
    return TimestampAndOffset(await _first_local(partition, stats) - 1, -1) if _has_offloaded(stats) else NOT_FOUND


async def earliest_pending_upload(partition: PartitionForTiers) -> TimestampAndOffset:
    """The first offset that is still to be offloaded; −1 where nothing is offloaded, for nobody may have asked for
    it.
    """
    stats = await partition.entry_log.stats()
    return await earliest_local(partition) if _has_offloaded(stats) else NOT_FOUND


def _has_offloaded(stats: LogStats) -> bool:
    """Whether the log begins with a ledger that is offloaded. One behind a ledger that is not counts later."""
    return bool(stats.ledgers) and stats.ledgers[0].offloaded


async def _first_local(partition: PartitionForTiers, stats: LogStats) -> int:
    first = next((ledger for ledger in stats.ledgers if not ledger.offloaded), None)
    if first is None:  # Every ledger is offloaded, so the next record will be the first local one
        return await partition.confirmed_end()
    async with aclosing(entries_from(partition.entry_log, Position(first.ledger, 0), permits=1)) as entries:
        return (await anext(entries)).base_offset
