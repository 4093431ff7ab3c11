"""Entries from a place on, understood: for one question, until enough is known."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import NamedTuple

from handler.errors import EntryUnreadable
from handler.partition.log.entries import Content, is_from_before_index, read_entry
from handler.partition.log.port import EntryLog
from handler.pulsar.entry import Position, RawEntry
from handler.pulsar.errors import Unavailable
from handler.pulsar.raw_entries import PERMITS, NoEntryCame, raw_entries_from


class ReadEntry(NamedTuple):
    position: Position
    base_offset: int
    next_offset: int
    content: Content | None  # None where it can't be read


async def entries_from(log_: EntryLog, start: Position | None, permits: int = PERMITS) -> AsyncGenerator[ReadEntry, None]:
    """The same, understood; without those that were written before the interceptor was on."""
    begun = False
    async with aclosing(raw_entries_from(log_, start, permits)) as entries:
        async for entry in entries:
            begun = begun or not is_from_before_index(entry)
            if begun:
                yield _understood(entry)


def _understood(entry: RawEntry) -> ReadEntry:
    if entry.last_index is None:
        raise Unavailable(f"entry {entry.position} has no index: it was written without AppendIndexMetadataInterceptor")
    try:
        content = read_entry(entry)
    except EntryUnreadable:
        return ReadEntry(entry.position, entry.last_index, entry.last_index + 1, None)
    base = entry.last_index - content.offset_count + 1
    return ReadEntry(entry.position, base, entry.last_index + 1, content)


async def first_indexed_entry(log_: EntryLog) -> ReadEntry | None:
    """The first entry that has an index, of those that readers are given, in a log that begins with others."""
    first = await _entry_at(log_, await log_.first_indexed())
    # That which follows entries from before the interceptor was on has offset 0, unless it was switched off in between.
    return first if first is None or first.base_offset == 0 else await _entry_at(log_, await log_.first_indexed_of_all())


async def _entry_at(log_: EntryLog, position: Position | None) -> ReadEntry | None:
    try:
        return None if position is None else await first_entry(log_, position)
    except NoEntryCame:  # a marker of Pulsar's own, and nothing behind it yet
        return None


async def first_entry(log_: EntryLog, start: Position | None = None) -> ReadEntry | None:
    """The earliest entry of a log that is not empty, or the first from a place on; None where it has no index."""
    async with aclosing(raw_entries_from(log_, start, permits=1)) as entries:
        entry = await anext(entries)
    return None if entry.last_index is None else _understood(entry)
