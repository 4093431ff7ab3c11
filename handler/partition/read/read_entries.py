"""Short readers for one question: the first entry, or entries from a place on until enough is known."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final, NamedTuple, Protocol

from handler.errors import EntryUnreadable
from handler.partition.log.entries import Content, is_from_before_index, permits_of, read_entry
from handler.partition.log.port import EntryLog, LogReader
from handler.pulsar.entry import Position, RawEntry
from handler.pulsar.errors import PulsarError, Unavailable
from handler.pulsar.events import ConsumerEvents
from handler.tasks import Pace

# A broker hands entries out within milliseconds; one under load took seconds.
ENTRY_SECONDS: Final = 10.0
# Entries on their way at a time: those behind the one that is looked for come in vain.
PERMITS: Final = 32


class NoEntryCame(Unavailable):
    """The broker is there, and was silent."""


class ReadEntry(NamedTuple):
    position: Position
    base_offset: int
    next_offset: int
    content: Content | None  # None where it can't be read


class _Queue(ConsumerEvents):
    """Events of a reader as a queue; bounded by the permits granted."""

    def __init__(self) -> None:
        self.entries: asyncio.Queue[RawEntry | PulsarError] = asyncio.Queue()

    def on_entry(self, entry: RawEntry) -> None:
        self.entries.put_nowait(entry)

    def on_end(self, reason: PulsarError) -> None:
        self.entries.put_nowait(reason)


class HasReader(Protocol):
    async def reader(self, start: Position | None, events: ConsumerEvents) -> LogReader: ...


async def raw_entries_from(log_: HasReader, start: Position | None, permits: int = PERMITS) -> AsyncGenerator[RawEntry, None]:
    """Entries from `start` on, without an end: the caller knows where to stop. Silence is a failure, never an answer."""
    events = _Queue()
    reader = await log_.reader(start, events)
    try:
        reader.grant(permits)
        taken = 0
        pace = Pace()
        while True:
            await pace.rest()  # entries that are here already are handed out without a turn of the loop
            try:
                async with asyncio.timeout(ENTRY_SECONDS):
                    entry = await events.entries.get()
            except TimeoutError as error:
                raise NoEntryCame(f"no entry came within {ENTRY_SECONDS:.0f} s") from error
            if isinstance(entry, PulsarError):
                raise entry
            taken += permits_of(entry)
            yield entry
            if taken >= permits // 2:
                reader.grant(taken)
                taken = 0
    finally:
        reader.close()


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


async def first_entry(log_: EntryLog, start: Position | None = None) -> ReadEntry | None:
    """The earliest entry of a log that is not empty, or the first from a place on; None where it has no index."""
    async with aclosing(raw_entries_from(log_, start, permits=1)) as entries:
        entry = await anext(entries)
    return None if entry.last_index is None else _understood(entry)
