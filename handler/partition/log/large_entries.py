"""Entries that take long to read are read in a thread, before the loop looks at them.

A native entry of 147 bytes may hold 250,000 messages, which take half a second. A fold reads entries at once and in their order, so what
comes behind such an entry waits for it.

broker ─▶ small, and nothing waits ─────────────────────────────▶ reader
            │ large, or behind one                                  ▲
            ▼                                                       │
          waiting ─▶ the first: its content, read in a thread ──────┘
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from functools import partial
from typing import Final, Protocol

from google.protobuf.message import DecodeError

from handler.partition.log.entries import is_unfolded, read_beforehand
from handler.partition.log.formats.pulsar import has_facts
from handler.partition.unfolding import unfolding
from handler.pulsar.codecs import MAX_UNCOMPRESSED
from handler.pulsar.entry import RawEntry
from handler.pulsar.errors import PulsarError, Unavailable
from handler.pulsar.events import ConsumerEvents
from handler.tasks import Pace
from handler.telemetry import metrics
from handler.telemetry.limits import RateLimitedLog

log = RateLimitedLog(logging.getLogger(__name__))

# Each takes some 20 ms.
LARGE_BYTES: Final = 8 * 1024 * 1024
LARGE_MESSAGES: Final = 5_000
LARGE_METADATA: Final = 128 * 1024  # a message may have many properties
# What waits behind a large entry of one reader. If more comes, it is dropped, and the reader begins again behind what has waited.
MOST_WAITING_BYTES: Final = 32 * 1024 * 1024
# A message as an object, while its entry is looked into.
MESSAGE_BYTES: Final = 500
# How often a reader hears that it waits for this process, and not for its broker.
DELAY_SECONDS: Final = 2.0


def unfolded_size(entry: RawEntry, *, headers_alone: bool = False) -> int:
    """About how many bytes a large entry takes; 0 where it is small, or nothing has to be unfolded."""
    if len(entry.metadata) > LARGE_METADATA:
        return len(entry.metadata) * 10
    try:
        metadata = entry.message_metadata
    except DecodeError:
        return 0
    messages, size = metadata.num_messages_in_batch, metadata.uncompressed_size
    if messages <= LARGE_MESSAGES and size <= LARGE_BYTES:
        return 0
    if not is_unfolded(metadata) or (headers_alone and has_facts(metadata)):
        return 0
    return min(size, MAX_UNCOMPRESSED) + messages * MESSAGE_BYTES


async def look_beforehand(entry: RawEntry, *, headers_alone: bool = False) -> None:
    """Before an entry is read by who waits for entries one by one."""
    if size := unfolded_size(entry, headers_alone=headers_alone):
        await unfolding().look_into(size, partial(read_beforehand, entry))


class PatientEvents(ConsumerEvents, Protocol):
    """The events of one reader, for who must tell a slow broker from a busy sidecar."""

    def on_delayed(self) -> None:
        """Entries have come, and wait in this process."""


class LargeEntries(ConsumerEvents):
    """The events of one reader, for who takes entries as they come."""

    def __init__(self, events: PatientEvents) -> None:
        self._events = events
        self._waiting: deque[RawEntry] = deque()
        self._waiting_bytes = 0
        self._handing_on: asyncio.Task[None] | None = None
        self._has_dropped = False
        self._is_over = False

    def on_entry(self, entry: RawEntry) -> None:
        if not self._waiting and not self._is_over and not unfolded_size(entry):
            self._events.on_entry(entry)
            return
        if self._is_over or self._has_dropped:
            return  # it would come behind what is missing
        if self._waiting and self._waiting_bytes + len(entry.payload) > MOST_WAITING_BYTES:
            self._has_dropped = True
            return
        self._waiting.append(entry)
        self._waiting_bytes += len(entry.payload)
        if self._handing_on is None:
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
                    await self._look_into(entry, size)
                if self._is_over:
                    return
                self._waiting.popleft()
                self._waiting_bytes -= len(entry.payload)
                self._events.on_entry(entry)
            if self._has_dropped and not self._is_over:
                self.on_end(Unavailable("more bytes than are kept have come behind an entry that takes long to read"))
        except Exception:
            metrics.INTERNAL_ERRORS.labels("large_entries").inc()
            log.exception("an entry could not be handed on")
            self.on_end(Unavailable("the sidecar failed at an entry"))
        finally:
            self._handing_on = None

    async def _look_into(self, entry: RawEntry, size: int) -> None:
        work = unfolding().look_into(size, partial(read_beforehand, entry), lambda: not self._is_over)
        looking = asyncio.ensure_future(work)
        while not looking.done():
            await asyncio.wait({looking}, timeout=DELAY_SECONDS)
            if self._is_over:
                return
            self._events.on_delayed()
        looking.result()
