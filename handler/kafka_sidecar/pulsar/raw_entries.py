"""Short readers for one question: entries from a place on, as the broker hands them out, until enough is known."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Final, Protocol

from google.protobuf.message import DecodeError

from kafka_sidecar.loop.pace import Pace
from kafka_sidecar.pulsar.entry import Position, RawEntry
from kafka_sidecar.pulsar.errors import PulsarError, Unavailable
from kafka_sidecar.pulsar.events import ConsumerEvents

# A broker dispatches an entry within milliseconds, but a broker under load took seconds.
ENTRY_SECONDS: Final = 10.0
LONGEST_SECONDS: Final = 80.0
# Patience remembers a longer timeout for at most 64 positions of a log.
MOST_PLACES: Final = 64
# Entries in flight to a short reader. Those behind the entry that the caller looks for are wasted.
PERMITS: Final = 32
# Entries in flight wait in memory while the caller inspects one, so a reader gets fewer permits where entries are
# large. FIRST_PERMITS applies until an entry size is known.
AHEAD_BYTES: Final = 16 * 1024 * 1024
FIRST_PERMITS: Final = 16


class Patience:
    """What readers of one log learn for those behind them: how large entries are, and how long a reader may bring
    nothing before it is opened again.

    The broker may have forgotten it. Or its data lies in slow storage, and a new reader waits from the start. So a
    reader that waited in vain at an entry lets the next one wait twice as long at that entry. When the entry comes,
    readers may wait as long at other entries. All wait less again when readers begin faster.
    """

    __slots__ = ("_in_vain", "_least", "_most", "_usual", "delays", "entry_bytes")

    def __init__(self, least: float | None = None, most: float | None = None) -> None:
        self._least = least
        self._most = most
        self.entry_bytes: float | None = None  # decaying maximum of bytes per flow permit; None before the first entry
        self.delays = 0  # how often an entry that had arrived was delayed in this process
        self._usual = 0.0
        # Position at which a reader timed out → next timeout in seconds.
        self._in_vain: dict[Position | None, float] = {}

    def note_size(self, of_one: float) -> None:
        """What a permit has brought. A reader forgets it sooner than those behind it."""
        self.entry_bytes = max(of_one, 1.0, 0.0 if self.entry_bytes is None else 0.98 * self.entry_bytes)

    def note_delay(self) -> None:
        self.delays += 1

    def at(self, start: Position | None, reached: Position | None) -> float:
        """Of a reader that began at `start`, and has `reached` an entry."""
        usual = max(self._shortest, self._usual)
        return max(usual, self._in_vain.get(_behind(start, reached), 0.0)) if self._in_vain else usual

    def was_too_short(self, start: Position | None, reached: Position | None, waited: float) -> None:
        place = _behind(start, reached)
        self._in_vain[place] = max(self._in_vain.pop(place, 0.0), self._twice(waited))
        if len(self._in_vain) > MOST_PLACES:
            del self._in_vain[next(iter(self._in_vain))]

    def has_begun(self, waited: float) -> None:
        """A reader has brought its first entry. The storage is as slow for the next piece."""
        self._usual = max(self._usual / 2, self._twice(waited))

    def has_come(self, start: Position | None, reached: Position | None, waited: float) -> None:
        """The entry behind `reached` has come. `waited` may be too long, because the reader may have had no permits."""
        place = _behind(start, reached) if self._in_vain else None
        if place not in self._in_vain:
            return
        grown = self._in_vain.pop(place)
        self._usual = max(self._usual, min(grown, self._twice(waited)))
        still = max(grown / 2, self._twice(waited))
        if still > self._shortest:
            self._in_vain[place] = still

    @property
    def _shortest(self) -> float:
        return ENTRY_SECONDS if self._least is None else self._least

    def _twice(self, waited: float) -> float:
        return min(2 * waited, LONGEST_SECONDS if self._most is None else self._most)


def _behind(start: Position | None, reached: Position | None) -> Position | None:
    return start if reached is None else reached.after()


class NoEntryCame(Unavailable):
    """The broker is there, and was silent."""


def permits_of(entry: RawEntry) -> int:
    """The flow permits that an entry cost: its messages, as the broker counts them."""
    try:
        return max(1, entry.message_metadata.num_messages_in_batch)
    except DecodeError:
        return 1


class _Permits:
    """How many permits a reader has: so many entries may be on their way, and so many bytes."""

    def __init__(self, most: int, patience: Patience) -> None:
        self._most = most
        self._patience = patience
        self._size = patience.entry_bytes  # decaying maximum of bytes per flow permit
        self._left = self.first = self._wanted

    @property
    def _wanted(self) -> int:
        return (
            min(self._most, FIRST_PERMITS)
            if self._size is None
            else max(1, min(self._most, int(AHEAD_BYTES / self._size)))
        )

    def more(self, entry: RawEntry) -> int:
        """To be granted when this entry has been taken."""
        cost = permits_of(entry)
        self._left -= cost
        size = len(entry.payload) / cost
        self._size = max(size, 1.0, 0.0 if self._size is None else 0.9 * self._size)
        self._patience.note_size(size)
        wanted = self._wanted
        if self._left > wanted // 2:
            return 0
        granted, self._left = wanted - self._left, wanted
        return granted


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


async def raw_entries_from(
    log_: HasReader, start: Position | None, permits: int = PERMITS
) -> AsyncGenerator[RawEntry, None]:
    """Entries from `start` on, without an end: the caller knows where to stop. Silence is a failure, never an
    answer.
    """
    events = _Queue()
    reader = await log_.reader(start, events)
    try:
        reached, patience = None, log_.patience
        granted = _Permits(permits, patience)
        reader.grant(granted.first)
        pace = Pace()
        loop = asyncio.get_running_loop()
        has_begun = False
        while True:
            # Entries that are queued already are returned without an event loop turn, and would starve other tasks.
            await pace.maybe_yield()
            seconds, asked_at = patience.at(start, reached), loop.time()
            try:
                async with asyncio.timeout(seconds):
                    entry = await events.entries.get()
            except TimeoutError as error:
                if not events.entries.empty():
                    continue  # the process was paused, so the timer fired although an entry had arrived
                patience.was_too_short(start, reached, seconds)
                raise NoEntryCame(f"no entry came within {seconds:.0f} s") from error
            if isinstance(entry, PulsarError):
                raise entry
            waited = loop.time() - asked_at
            if not has_begun:
                patience.has_begun(waited)
                has_begun = True
            patience.has_come(start, reached, waited)
            reached = entry.position
            yield entry
            reader.grant(granted.more(entry))
    finally:
        reader.close()
