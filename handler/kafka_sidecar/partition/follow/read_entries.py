"""Entries from a place on, understood: for one question, until enough is known."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import NamedTuple

from kafka_sidecar.errors import EntryUnreadable
from kafka_sidecar.partition.fold.fold import BEFORE_ALL
from kafka_sidecar.partition.log.entries import Content, CountedFewer, is_from_before_index, read_entry
from kafka_sidecar.partition.log.large_entries import look_beforehand
from kafka_sidecar.partition.log.port import EntryLog
from kafka_sidecar.pulsar.entry import Position, RawEntry
from kafka_sidecar.pulsar.errors import Unavailable
from kafka_sidecar.pulsar.raw_entries import PERMITS, NoEntryCame, raw_entries_from


class ReadEntry(NamedTuple):
    position: Position
    base_offset: int
    next_offset: int
    content: Content | None  # None if the entry cannot be read
    unreadable: str = ""  # the reason why the entry cannot be read


async def end_before(log_: EntryLog, position: Position) -> int:
    """The offset behind the entry that readers are given before this one, or behind a marker where none is left; 0
    where nothing is.

    It tells where an entry begins whose count of records only its writer knows. May raise PulsarError.
    """
    stats = await log_.stats()
    before = stats.entry_before(position)
    if before is None:
        return 0
    readable = await log_.last_readable(before, BEFORE_ALL)
    index = await log_.index_of(before if readable is None else readable)
    return 0 if index is None else index + 1


async def begins_with(log_: EntryLog, first: Position | None) -> bool:
    """Whether an entry is the first that was ever written with an index: a marker of Pulsar's, or one record. May raise
    PulsarError.
    """
    return first is not None and await log_.index_of(first) == 0


async def begins_right_behind(log_: EntryLog, last: Position, next_offset: int) -> bool:
    """Whether retention has taken an entry, and nothing that stood behind it: the log begins with a marker of Pulsar's,
    which no reader is given, and the marker has the next offset. May raise PulsarError.
    """
    first = (await log_.stats()).first
    return first is not None and last < first and await log_.index_of(first) == next_offset


async def entries_from(
    log_: EntryLog, start: Position | None, permits: int = PERMITS
) -> AsyncGenerator[ReadEntry, None]:
    """The same, understood; without those that were written before the interceptor was on."""
    end = None
    async with aclosing(raw_entries_from(log_, start, permits)) as entries:
        async for entry in entries:
            if end is not None or not is_from_before_index(entry):
                one = await understood(log_, entry, end if start is not None or end is not None else 0)
                end = one.next_offset
                yield one


async def base_offset_of(log_: EntryLog, entry: RawEntry) -> int:
    """Where an entry begins that has an index. Raises EntryUnreadable."""
    one = await understood(log_, entry)
    if one.content is None:
        raise EntryUnreadable(one.unreadable)
    return one.base_offset


async def understood(log_: EntryLog, entry: RawEntry, end: int | None = None) -> ReadEntry:
    """An entry, where the one before it ends at offset `end`. That is asked for where it matters and is not known."""
    if entry.last_index is None:
        raise Unavailable(f"entry {entry.position} has no index: it was written without AppendIndexMetadataInterceptor")
    next_offset = entry.last_index + 1
    await look_beforehand(entry, log_.patience.note_delay)
    try:
        content = read_entry(entry)
    except EntryUnreadable as error:
        return ReadEntry(entry.position, entry.last_index, next_offset, None, str(error))
    base = next_offset - content.offset_count
    if end is None and content.is_foreign and content.offset_count > 1:
        end = await end_before(log_, entry.position)
    if content.is_foreign and base < (end or 0):
        return ReadEntry(
            entry.position, entry.last_index, next_offset, None, str(CountedFewer(entry.position, content))
        )
    return ReadEntry(entry.position, base, next_offset, content)


class NothingToRead(Unavailable):
    """All that is left are markers of Pulsar's own, which readers are not given."""


async def holds_records(log_: EntryLog, start: Position | None = None) -> bool:
    """Whether readers are given anything from a place on: the broker is asked. That no entry comes says nothing, for
    the broker may be slow, and this process may have stood still. May raise PulsarError.
    """
    last = (await log_.stats()).last
    if last is None or (start is not None and start > last):
        return False
    readable = await log_.last_readable(last, BEFORE_ALL)
    return readable is not None and (start is None or readable >= start)


async def first_indexed_entry(log_: EntryLog) -> ReadEntry | None:
    """The first entry that has an index, of those that readers are given, in a log that begins with others."""
    first = await _entry_at(log_, await log_.first_indexed())
    # The first entry behind those from before AppendIndexMetadataInterceptor was switched on has offset 0, unless the
    # interceptor was switched off in between.
    return (
        first if first is None or first.base_offset == 0 else await _entry_at(log_, await log_.first_indexed_of_all())
    )


async def _entry_at(log_: EntryLog, position: Position | None) -> ReadEntry | None:
    try:
        return None if position is None else await first_entry(log_, position)
    except NothingToRead:
        return None


async def first_entry(log_: EntryLog, start: Position | None = None) -> ReadEntry | None:
    """The earliest entry of a log that is not empty, or the first from a place on; None where it has no index. Raises
    NothingToRead.
    """
    try:
        async with aclosing(raw_entries_from(log_, start, permits=1)) as entries:
            entry = await anext(entries)
    except NoEntryCame as silence:
        if await holds_records(log_, start):
            raise
        raise NothingToRead("the log holds nothing that readers are given") from silence
    return None if entry.last_index is None else await understood(log_, entry, 0 if start is None else None)
