"""Entries that take long to read are read in a thread, before the loop looks at them.

A native entry of 147 bytes may hold 250,000 messages, which take half a second. A fold reads entries at once and in
their order, so what comes behind such an entry waits for it.

broker ─▶ small, and nothing waits ─────────────────────────────▶ reader
            │ large, or behind one                                  ▲
            ▼                                                       │
          waiting ─▶ the first: its content, read in a thread ──────┘
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from functools import partial
from itertools import islice
from typing import Final, Protocol

from google.protobuf.message import DecodeError

from kafka_sidecar.loop.pace import Pace
from kafka_sidecar.partition.log.entries import read_beforehand, stored_format
from kafka_sidecar.partition.log.formats import KAFKA, PULSAR
from kafka_sidecar.partition.log.formats.pulsar import has_facts
from kafka_sidecar.partition.log.unfolding import unfolding
from kafka_sidecar.pulsar.codecs import MAX_UNCOMPRESSED, NONE
from kafka_sidecar.pulsar.entry import RawEntry
from kafka_sidecar.pulsar.errors import PulsarError, Unavailable
from kafka_sidecar.pulsar.events import ConsumerEvents
from kafka_sidecar.pulsar.messages import metadata_size
from kafka_sidecar.telemetry import metrics
from kafka_sidecar.telemetry.limits import RateLimitedLog
from kafka_sidecar.wire.records import HEADER_SIZE, BatchInvalid, BatchMalformed, split_batches

log = RateLimitedLog(logging.getLogger(__name__))

LARGE_MESSAGES: Final = 5_000
LARGE_METADATA: Final = 128 * 1024  # a message may have many properties
# Uncompressed bytes of a batch. Its messages may be full of small properties, and decoding those takes about 20 ms.
LARGE_BATCH: Final = 192 * 1024
# A larger batch still counts as small if it is not compressed, has few messages, and their metadata is short.
FEW_MESSAGES: Final = 16
SHORT_METADATA: Final = 32 * 1024
# Uncompressed bytes of a single compressed message, above which decompression runs in a thread.
LARGE_COMPRESSED: Final = 2 * 1024 * 1024
MANY_BATCHES: Final = 1_000  # Sidecars write far fewer batches into one entry
# A payload of this size has no room for MANY_BATCHES batches.
SMALL_PAYLOAD: Final = MANY_BATCHES * HEADER_SIZE
# The limit for entries that wait behind a large entry in one reader. Entries beyond it are dropped, and a new reader
# begins behind the entries that waited. The limit is far above what a new reader delivers a second time, so each reader
# makes progress.
MOST_WAITING_BYTES: Final = 16 * 1024 * 1024
# The estimated memory of one decoded message object, in bytes.
MESSAGE_BYTES: Final = 500


def unfolded_size(entry: RawEntry, *, headers_alone: bool = False) -> int:
    """About how many bytes a large entry takes; 0 where it is small, or nothing has to be unfolded."""
    if len(entry.metadata) > LARGE_METADATA:
        return len(entry.metadata) * 10
    try:
        metadata = entry.message_metadata
    except DecodeError:
        return 0
    payload, messages, unfolded = len(entry.payload), max(metadata.num_messages_in_batch, 0), metadata.uncompressed_size
    if payload <= SMALL_PAYLOAD and unfolded <= LARGE_BATCH and messages <= LARGE_MESSAGES:
        return 0  # This is small in every entry format
    format_ = stored_format(metadata)
    if format_ is KAFKA and _has_many_batches(entry):
        return payload + MANY_BATCHES * MESSAGE_BYTES
    if format_ is not PULSAR:
        return 0
    is_compressed = metadata.compression != NONE
    size = unfolded if is_compressed else payload
    if not metadata.HasField("num_messages_in_batch"):
        is_small = not is_compressed or size <= LARGE_COMPRESSED
    else:
        is_small = messages <= LARGE_MESSAGES and (
            size <= LARGE_BATCH or (not is_compressed and _has_short_metadata(entry, messages))
        )
    if is_small or (headers_alone and has_facts(metadata)):
        return 0
    return min(size, MAX_UNCOMPRESSED) + messages * MESSAGE_BYTES


def _has_many_batches(entry: RawEntry) -> bool:
    try:
        return next(islice(split_batches(entry.payload), MANY_BATCHES, None), None) is not None
    except (BatchInvalid, BatchMalformed):
        return False


def _has_short_metadata(entry: RawEntry, messages: int) -> bool:
    """Of each of its messages."""
    return messages <= FEW_MESSAGES and metadata_size(entry.payload, messages, SHORT_METADATA) is not None


async def look_beforehand(entry: RawEntry, on_delayed: Callable[[], None], *, headers_alone: bool = False) -> None:
    """For a caller that waits for each entry: before it reads one."""
    if size := unfolded_size(entry, headers_alone=headers_alone):
        await unfolding().questions.look_into(size, partial(read_beforehand, entry), on_delayed=on_delayed)


class PatientEvents(ConsumerEvents, Protocol):
    """The events of a reader that must tell a slow broker from a busy sidecar."""

    def on_delayed(self) -> None:
        """Entries have come, and wait in this process."""


class LargeEntries(ConsumerEvents):
    """The events of a reader that takes entries as they come."""

    def __init__(self, events: PatientEvents) -> None:
        self._events = events
        self._waiting: deque[RawEntry] = deque()
        self._waiting_bytes = 0
        self._unfolding = unfolding()
        self._handing_on: asyncio.Task[None] | None = None
        self._has_dropped = False
        self._is_over = False

    def on_entry(self, entry: RawEntry) -> None:
        if not self._waiting and not self._is_over and not unfolded_size(entry):
            self._events.on_entry(entry)
            return
        if self._is_over or self._has_dropped:
            return  # Entries must be handed on without a gap, and an earlier one was dropped
        if self._waiting and self._waiting_bytes + _size(entry) > MOST_WAITING_BYTES:
            self._has_dropped = True
            return
        self._waiting.append(entry)
        self._count(_size(entry))
        if self._handing_on is None:
            self._handing_on = asyncio.create_task(self._hand_on())

    def on_end(self, reason: PulsarError) -> None:
        """The next reader is given again what waits."""
        self.close()
        self._events.on_end(reason)

    def on_active(self, active: bool) -> None:
        self._events.on_active(active)

    def close(self) -> None:
        self._is_over = True
        while self._waiting:
            self._count(-_size(self._waiting.popleft()))

    async def _hand_on(self) -> None:
        pace = Pace()
        try:
            while self._waiting:
                entry = self._waiting[0]
                await pace.maybe_yield()
                if size := unfolded_size(entry):
                    look = self._unfolding.entries.look_into
                    await look(size, partial(read_beforehand, entry), lambda: not self._is_over, self._on_delayed)
                if self._is_over:
                    return
                self._waiting.popleft()
                self._count(-_size(entry))
                self._events.on_entry(entry)
            if self._has_dropped and not self._is_over:
                self.on_end(Unavailable("more bytes than are kept have come behind an entry that takes long to read"))
        except Exception:
            metrics.INTERNAL_ERRORS.labels("large_entries").inc()
            log.exception("an entry could not be handed on")
            if not self._is_over:
                self.on_end(Unavailable("the sidecar failed at an entry"))
        finally:
            self._handing_on = None

    def _count(self, more: int) -> None:
        self._waiting_bytes += more
        self._unfolding.hold(more)

    def _on_delayed(self) -> None:
        if not self._is_over:
            self._events.on_delayed()


def _size(entry: RawEntry) -> int:
    return len(entry.payload) + len(entry.metadata)
