"""Short readers for one question: entries from a place on, as the broker hands them out, until enough is known."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Final, Protocol

from google.protobuf.message import DecodeError

from handler.pulsar.entry import Position, RawEntry
from handler.pulsar.errors import PulsarError, Unavailable
from handler.pulsar.events import ConsumerEvents
from handler.tasks import Pace

# A broker hands entries out within milliseconds; one under load took seconds.
ENTRY_SECONDS: Final = 10.0
LONGEST_SECONDS: Final = 80.0
# Entries on their way at a time: those behind the one that is looked for come in vain.
PERMITS: Final = 32


class Patience:
    """How long a reader of one log may bring nothing before it is opened again. Old data may lie in slow storage, so each reader that
    waits in vain doubles this for the next. It shrinks again when entries come sooner: the broker may only have forgotten a reader.
    """

    __slots__ = ("_grown_to", "_least")

    def __init__(self, least: float | None = None) -> None:
        self._least = least
        self._grown_to = 0.0

    @property
    def seconds(self) -> float:
        return max(ENTRY_SECONDS if self._least is None else self._least, self._grown_to)

    def was_too_short(self, waited: float) -> None:
        """Of several readers that wait at the same time the first makes it grow."""
        self._grown_to = max(self._grown_to, min(2 * waited, LONGEST_SECONDS))

    def has_come(self, waited: float) -> None:
        """A reader has brought its first entry. The storage is as slow for the next piece."""
        self._grown_to = max(self._grown_to / 2, min(2 * waited, LONGEST_SECONDS))


class NoEntryCame(Unavailable):
    """The broker is there, and was silent."""


def permits_of(entry: RawEntry) -> int:
    """The flow permits that an entry cost: its messages, as the broker counts them."""
    try:
        return max(1, entry.message_metadata.num_messages_in_batch)
    except DecodeError:
        return 1


class _Queue(ConsumerEvents):
    """Events of a reader as a queue; bounded by the permits granted."""

    def __init__(self) -> None:
        self.entries: asyncio.Queue[RawEntry | PulsarError] = asyncio.Queue()

    def on_entry(self, entry: RawEntry) -> None:
        self.entries.put_nowait(entry)

    def on_end(self, reason: PulsarError) -> None:
        self.entries.put_nowait(reason)


class TakesPermits(Protocol):
    def grant(self, permits: int) -> None: ...
    def close(self) -> None: ...


class HasReader(Protocol):
    @property
    def patience(self) -> Patience: ...
    async def reader(self, start: Position | None, events: ConsumerEvents) -> TakesPermits: ...


async def raw_entries_from(log_: HasReader, start: Position | None, permits: int = PERMITS) -> AsyncGenerator[RawEntry, None]:
    """Entries from `start` on, without an end: the caller knows where to stop. Silence is a failure, never an answer."""
    events = _Queue()
    reader = await log_.reader(start, events)
    try:
        reader.grant(permits)
        taken = 0
        pace = Pace()
        began: float | None = asyncio.get_running_loop().time()
        while True:
            await pace.rest()  # entries that are here already are handed out without a turn of the loop
            seconds = log_.patience.seconds
            try:
                async with asyncio.timeout(seconds):
                    entry = await events.entries.get()
            except TimeoutError as error:
                if not events.entries.empty():
                    continue  # this process stood still, and the timer came first
                log_.patience.was_too_short(seconds)
                raise NoEntryCame(f"no entry came within {seconds:.0f} s") from error
            if isinstance(entry, PulsarError):
                raise entry
            if began is not None:
                log_.patience.has_come(asyncio.get_running_loop().time() - began)
                began = None
            taken += permits_of(entry)
            yield entry
            if taken >= permits // 2:
                reader.grant(taken)
                taken = 0
    finally:
        reader.close()
