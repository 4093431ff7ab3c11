"""The message that an entry is the last part of. Its other parts are looked for before it, as far back as it takes."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from functools import partial
from typing import Final
from weakref import WeakKeyDictionary

from kafka_sidecar.errors import EntryUnreadable
from kafka_sidecar.partition.log.formats import PULSAR
from kafka_sidecar.partition.log.formats.chunk import is_last_chunk
from kafka_sidecar.partition.log.port import EntryLog
from kafka_sidecar.partition.log.unfolding import unfolding
from kafka_sidecar.pulsar.codecs import MAX_UNCOMPRESSED
from kafka_sidecar.pulsar.entry import Position, RawEntry
from kafka_sidecar.pulsar.pulsar_api_pb2 import MessageMetadata
from kafka_sidecar.pulsar.raw_entries import raw_entries_from

# Each chunk is nearly as large as an entry may be, so few permits are granted.
PERMITS: Final = 4
# A producer sends its chunks one after another. Up to this much of other producers may stand between them.
MAX_ENTRIES_BACK: Final = 50_000
MAX_BYTES_BACK: Final = 512 * 1024 * 1024
FURTHER_EACH_TIME: Final = 16


_turns: Final[WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock]] = WeakKeyDictionary()


class Parts:
    """The parts of one message in log order, as Pulsar's consumers take them (`ConsumerImpl.processMessageChunk`): a
    first part begins the message again, one that was sent twice is passed over, and one that is missing ends it. Pure.
    """

    def __init__(self, uuid: bytes, producer: bytes) -> None:
        self._of = (uuid, producer)
        self._parts: list[bytes] | None = None
        self._size = 0
        self.has_begun = False  # Whether the first chunk was among the entries read

    def is_of(self, metadata: MessageMetadata) -> bool:
        return (metadata.uuid, metadata.producer_name) == self._of and metadata.num_chunks_from_msg > 1

    def take(self, metadata: MessageMetadata, payload: memoryview) -> list[bytes] | None:
        """All parts, if this was the last one and none is missing."""
        number = metadata.chunk_id
        if number == 0:
            self.has_begun = True
            self._parts = []
            self._size = 0
        parts = self._parts
        if parts is None or number < len(parts):
            return None
        if number > len(parts):
            self._parts = None
            return None
        parts.append(bytes(payload))
        self._size += len(payload)
        if self._size > MAX_UNCOMPRESSED:  # The total size in the chunk's metadata may be wrong
            raise EntryUnreadable(
                f"a chunked message of {self._size} bytes and more is over the limit of {MAX_UNCOMPRESSED}"
            )
        if not is_last_chunk(metadata):
            return None
        self._parts = None
        return parts


async def read_chunked(log_: EntryLog, last: RawEntry) -> bytes | bytearray | None:
    """The batch of a message whose last part is this entry, without its offset; None where Pulsar's consumers get none
    either, for parts of it were never written, or are gone. EntryUnreadable, PulsarError.
    """
    # A chunked message is in memory several times while it is assembled, outside all budgets. So this process assembles
    # one at a time.
    async with _turns.setdefault(asyncio.get_running_loop(), asyncio.Lock()):
        return await _read_chunked(log_, last)


async def _read_chunked(log_: EntryLog, last: RawEntry) -> bytes | bytearray | None:
    metadata = last.message_metadata
    if metadata.total_chunk_msg_size > MAX_UNCOMPRESSED:
        raise EntryUnreadable(
            f"a chunked message of {metadata.total_chunk_msg_size} bytes is over the limit of {MAX_UNCOMPRESSED}"
        )
    stats = await log_.stats()
    back = metadata.num_chunks_from_msg - 1
    while True:
        start = stats.before(last.position, back, MAX_BYTES_BACK)
        parts = Parts(metadata.uuid, metadata.producer_name)
        found = await _read_parts(log_, start, last, parts)
        if found is not None:
            whole = memoryview(b"".join(found))
            found.clear()
            return await unfolding().questions.look_into(
                len(whole) + metadata.uncompressed_size, partial(_decoded, metadata, whole)
            )
        if parts.has_begun or start == stats.first:
            return None
        further = min(back * FURTHER_EACH_TIME, MAX_ENTRIES_BACK)
        if further == back or stats.before(last.position, further, MAX_BYTES_BACK) == start:
            raise EntryUnreadable(
                f"the first part of the chunked message that ends at {last.position} is too far before it"
            )
        back = further


def _decoded(metadata: MessageMetadata, whole: memoryview) -> bytes | bytearray:
    try:
        return PULSAR.decode(metadata, whole)
    except EntryUnreadable:
        raise
    # Any client may have written the message, so decoding can fail in ways that nobody foresaw.
    except Exception as error:
        raise EntryUnreadable(f"a chunked message can't be read: {error}") from error


async def _read_parts(log_: EntryLog, start: Position, last: RawEntry, parts: Parts) -> list[bytes] | None:
    async with aclosing(raw_entries_from(log_, start, PERMITS)) as entries:
        async for entry in entries:
            if entry.position > last.position:
                return None
            metadata = entry.message_metadata
            if parts.is_of(metadata):
                found = parts.take(metadata, entry.payload)
                if entry.position == last.position:
                    return found
    return None
