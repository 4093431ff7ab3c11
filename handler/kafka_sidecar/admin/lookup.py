"""Kafka's offsets and Pulsar's message ids, each found by the other."""

from __future__ import annotations

from contextlib import aclosing
from typing import Final, NamedTuple

from kafka_sidecar.errors import EntryUnreadable
from kafka_sidecar.fleet.rpc import Aborted, NotLikeThat, NotThere
from kafka_sidecar.partition.follow.read_entries import base_offset_of, holds_records, understood
from kafka_sidecar.partition.log.port import EntryLog
from kafka_sidecar.partition.partition import Partition
from kafka_sidecar.partition.read.chunked_messages import read_chunked
from kafka_sidecar.pulsar.entry import Position, RawEntry
from kafka_sidecar.pulsar.raw_entries import NoEntryCame, raw_entries_from
from kafka_sidecar.wire.error_code import ErrorCode

# Where an entry is one message for native clients.
NO_BATCH: Final = -1


class NotInTheLog(NotThere):
    """There is no such offset, or no such entry."""


class CanNotLookUp(Aborted):
    """The partition can't be looked at now."""


class Found(NamedTuple):
    position: Position
    batch_index: int
    offset: int
    base_offset: int
    offset_count: int


class Unreadable(NamedTuple):
    position: Position
    next_offset: int
    why: str


async def find_offset(partition: Partition, offset: int) -> Found:
    """Where a record is in Pulsar."""
    await _opened(partition)
    start, end = await partition.confirmed_start(), await partition.confirmed_end()
    if not start <= offset < end:
        raise NotInTheLog(
            f"offset {offset} is not in the log: it has offsets {start} to {end - 1}"
            if start < end
            else "the log is empty"
        )
    position = await partition.entry_log.find_index(offset)
    entry = None if position is None else await _entry_from(partition.entry_log, position)
    if entry is None:
        raise NotInTheLog(f"the entry that holds offset {offset} is not given to readers")
    base, count = await _offsets(partition.entry_log, entry)
    if not base <= offset < base + count:
        raise NotInTheLog(f"offset {offset} has no record: the next one is {base}")
    return Found(entry.position, offset - base if _is_batch(entry) else NO_BATCH, offset, base, count)


async def find_unreadable(partition: Partition, offset: int) -> Unreadable:
    """The entry that holds an offset and can't be read. NotLikeThat where it can."""
    await _opened(partition)
    position = await partition.entry_log.find_index(offset)
    entry = None if position is None else await _entry_from(partition.entry_log, position)
    if entry is None or entry.last_index is None or offset > entry.last_index:
        raise NotInTheLog(f"no entry holds offset {offset}")
    why = await _why_unreadable(partition, entry)
    if why is None:
        raise NotLikeThat(
            f"entry {entry.position} can be read, so it is not skipped: consumers may seek, and records can be deleted"
        )
    return Unreadable(entry.position, entry.last_index + 1, why)


async def _why_unreadable(partition: Partition, entry: RawEntry) -> str | None:
    if partition.has_given_up(entry.position):
        return "this sidecar failed at it twice"
    one = await understood(partition.entry_log, entry)
    if one.content is None:
        return one.unreadable
    if one.content.lacks_chunks:
        try:
            await read_chunked(partition.entry_log, entry)
        except EntryUnreadable as error:
            return str(error)
    return None


async def find_message_id(partition: Partition, position: Position, batch_index: int) -> Found:
    """Which offset a message has."""
    await _opened(partition)
    last = (await partition.entry_log.stats()).last
    entry = await _entry_from(partition.entry_log, position) if last is not None and position <= last else None
    if entry is None or entry.position != position:
        raise NotInTheLog(
            f"there is no entry {position}: the next one is {entry.position if entry is not None else 'not there yet'}"
        )
    base, count = await _offsets(partition.entry_log, entry)
    in_entry = max(batch_index, 0)
    if in_entry >= count:
        raise NotInTheLog(f"entry {position} has {count} records: there is no batch index {batch_index}")
    return Found(position, batch_index, base + in_entry, base, count)


async def _opened(partition: Partition) -> None:
    error = await partition.opened()
    if error is not ErrorCode.NONE:
        raise CanNotLookUp(f"{partition.name} can't be opened: {error.name}")


async def _entry_from(log: EntryLog, position: Position) -> RawEntry | None:
    try:
        async with aclosing(raw_entries_from(log, position, 1)) as entries:
            return await anext(entries)
    except NoEntryCame:
        if await holds_records(log, position):
            raise
        return None


async def _offsets(log: EntryLog, entry: RawEntry) -> tuple[int, int]:
    """The first, and how many."""
    if entry.last_index is None:
        raise NotInTheLog(
            f"entry {entry.position} has no index: it is from before AppendIndexMetadataInterceptor was on"
        )
    try:
        base = await base_offset_of(log, entry)
    except EntryUnreadable as error:
        raise CanNotLookUp(f"entry {entry.position} can't be read: {error}") from error
    return base, entry.last_index - base + 1


def _is_batch(entry: RawEntry) -> bool:
    return entry.message_metadata.HasField("num_messages_in_batch")
