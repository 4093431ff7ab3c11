"""Entries as their reader gets them: in their order, a large one once a thread has looked into it.

A native entry of 147 bytes may hold 250,000 messages, which take half a second. What comes behind one waits for it.

broker ─▶ small, and nothing waits ─────────────────────────────▶ reader
            │ large, or behind one                                  ▲
            ▼                                                       │
          waiting ─▶ the first: its content, read in a thread ──────┘
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import Final

from google.protobuf.message import DecodeError

from handler.partition.log.entries import is_unfolded, read_beforehand
from handler.partition.log.port import LogReader
from handler.partition.unfolding import LARGE_BYTES, LARGE_RECORDS, Unfolding
from handler.pulsar.codecs import MAX_UNCOMPRESSED
from handler.pulsar.entry import Position, RawEntry
from handler.pulsar.errors import PulsarError, Unavailable
from handler.pulsar.events import ConsumerEvents
from handler.tasks import Pace
from handler.telemetry import metrics
from handler.telemetry.limits import RateLimitedLog

log = RateLimitedLog(logging.getLogger(__name__))

# What waits behind a large entry of one reader. Where it is more, the reader begins again from the entry that it has come to.
MOST_WAITING_BYTES: Final = 32 * 1024 * 1024
# A message as an object, while its entry is looked into.
MESSAGE_BYTES: Final = 500


def unfolded_size(entry: RawEntry) -> int:
    """About how many bytes a large entry takes; 0 where it is small, or nothing has to be unfolded."""
    try:
        metadata = entry.message_metadata
    except DecodeError:
        return 0
    messages, size = metadata.num_messages_in_batch, metadata.uncompressed_size
    if messages <= LARGE_RECORDS and size <= LARGE_BYTES:
        return 0
    return min(size, MAX_UNCOMPRESSED) + messages * MESSAGE_BYTES if is_unfolded(metadata) else 0


class LargeEntries(ConsumerEvents):
    """The events of one reader."""

    def __init__(self, events: ConsumerEvents, unfolding: Unfolding) -> None:
        self._events = events
        self._unfolding = unfolding
        self._waiting: deque[RawEntry] = deque()
        self._waiting_bytes = 0
        self._handing_on: asyncio.Task[None] | None = None
        self._is_over = False

    def on_entry(self, entry: RawEntry) -> None:
        if not self._waiting and not self._is_over and not unfolded_size(entry):
            self._events.on_entry(entry)
            return
        if self._is_over:
            return  # it would be given behind what has been dropped
        self._waiting.append(entry)
        self._waiting_bytes += len(entry.payload)
        if self._waiting_bytes > MOST_WAITING_BYTES and len(self._waiting) > 1:
            self.on_end(Unavailable("too many bytes have come behind an entry that takes long to read"))
        elif self._handing_on is None:
            self._handing_on = asyncio.create_task(self._hand_on())

    def on_end(self, reason: PulsarError) -> None:
        """What waits comes again to who goes on."""
        self.close()
        self._events.on_end(reason)

    def on_active(self, active: bool) -> None:
        self._events.on_active(active)

    def close(self) -> None:
        self._is_over = True
        self._waiting.clear()
        self._waiting_bytes = 0

    async def _hand_on(self) -> None:
        pace = Pace()
        try:
            while self._waiting:
                entry = self._waiting[0]
                await pace.rest()
                if size := unfolded_size(entry):
                    await self._unfolding.look_into(size, lambda entry=entry: read_beforehand(entry))  # type: ignore[misc]
                if self._is_over:
                    return
                self._waiting.popleft()
                self._waiting_bytes -= len(entry.payload)
                self._events.on_entry(entry)
        except Exception:
            metrics.INTERNAL_ERRORS.labels("large_entries").inc()
            log.exception("an entry could not be handed on")
            self.on_end(Unavailable("the sidecar failed at an entry"))
        finally:
            self._handing_on = None


class LargeEntriesReader(LogReader):
    """A reader whose events go through `LargeEntries`."""

    def __init__(self, reader: LogReader, entries: LargeEntries) -> None:
        self._reader = reader
        self._entries = entries

    def grant(self, permits: int) -> None:
        self._reader.grant(permits)

    def skip_to(self, position: Position) -> None:
        self._reader.skip_to(position)

    async def last_position(self) -> Position | None:
        return await self._reader.last_position()

    def close(self) -> None:
        self._reader.close()
        self._entries.close()
