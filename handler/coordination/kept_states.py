"""What was worked out of logs, kept in Pulsar: a compacted internal topic that any sidecar reads and writes.

    partition ── what it knows, up to an entry ──▶ __kept_states ──▶ whoever opens the partition next: reads the log on from that entry

A value is a function of its log, so nobody is elected to write it and it matters little which of two is found. Who finds none, or one that
makes no sense, reads the log. Nobody waits for a value to be stored, and a failure here is no failure of who asked.

In memory there is only where each value stands. A value that nobody has written anew for a month is deleted by whoever comes upon it:
its topic may be gone.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Iterable
from contextlib import aclosing, suppress
from typing import Final, NamedTuple

from handler.clock import Clock
from handler.coordination.compacted_topic import MARKER_KEY, CompactedTopic, KeyedWrites
from handler.coordination.internal_topic import partitions_of
from handler.ids import WRITER_PREFIX, NewId
from handler.pulsar.admin import AlreadyExists, PulsarAdmin
from handler.pulsar.client import PulsarClient
from handler.pulsar.entry import Position, RawEntry
from handler.pulsar.errors import PulsarError, TopicMissing
from handler.pulsar.messages import Message, read_messages
from handler.pulsar.raw_entries import raw_entries_from
from handler.telemetry import metrics
from handler.telemetry.limits import RateLimitedLog
from handler.wire.crc import crc32c

log = RateLimitedLog(logging.getLogger(__name__))

# So that who looks for one value reads a part of all.
PARTITIONS: Final = 16
# An older value costs its reader some entries more.
LOOK_SECONDS: Final = 5.0
ASK_SECONDS: Final = 10.0
PERMITS: Final = 64
# Brokers take 5 MiB by default.
MAX_BYTES: Final = 4 * 1024 * 1024
COMPACT_AFTER: Final = 500  # messages that were read and say nothing
EXPIRY_MS: Final = 30 * 24 * 3_600_000
WRITE_ANEW_MS: Final = EXPIRY_MS // 4


class Kept(NamedTuple):
    value: bytes
    written_at: int

    def is_old(self, now_ms: int) -> bool:
        """Whether who still uses it had better write it again."""
        return now_ms - self.written_at > WRITE_ANEW_MS


class KeptStates:
    def __init__(self, client: PulsarClient, admin: PulsarAdmin, namespace: str, clock: Clock, new_id: NewId) -> None:
        self._clock = clock
        self._new_id = new_id
        self._client = client
        self._admin = admin
        self._topic = f"persistent://{namespace}/__kept_states"
        self._shards: list[_Shard] = []

    async def find(self, key: bytes) -> Kept | None:
        """What was kept last, as far as is known; None also where that can't be told now."""
        try:
            async with asyncio.timeout(ASK_SECONDS):
                if not self._shards:
                    await self._begin(self._admin.topics.partitions(self._topic))
                return await self._shard(key).find(key) if self._shards else None
        except TopicMissing:
            return None
        except (PulsarError, TimeoutError) as error:
            log.warning("%s can't be read, so logs are read instead: %s", self._topic, error or "no answer")
            return None

    async def keep(self, key: bytes, value: bytes) -> None:
        """Store a value, if Pulsar takes it now."""
        if len(value) > MAX_BYTES:
            log.warning("a value of %d bytes is too large for %s: its log is read again instead", len(value), self._topic)
            return
        try:
            async with asyncio.timeout(ASK_SECONDS):
                if not self._shards:
                    await self._begin(partitions_of(self._admin, self._topic, PARTITIONS))
                await self._shard(key).keep(key, value)
        except (PulsarError, TimeoutError) as error:
            log.warning("%s can't be written, so logs may have to be read again: %s", self._topic, error or "no answer")

    def close(self) -> None:
        for shard in self._shards:
            shard.close()

    async def _begin(self, counting: Awaitable[int]) -> None:
        count = await counting
        if not self._shards:  # else another has begun meanwhile
            self._shards = [
                _Shard(self._client, self._admin, f"{self._topic}-partition-{number}", self._clock, self._new_id) for number in range(count)
            ]

    def _shard(self, key: bytes) -> _Shard:
        return self._shards[crc32c(key) % len(self._shards)]


class _Shard:
    def __init__(self, client: PulsarClient, admin: PulsarAdmin, topic: str, clock: Clock, new_id: NewId) -> None:
        self._clock = clock
        self._new_id = new_id
        self._client = client
        self._admin = admin
        self._topic = topic
        self._places: dict[bytes, Position] = {}  # of the last value of each key
        self._read_to: Position | None = None
        self._looked_at = -LOOK_SECONDS
        self._turn = asyncio.Lock()
        self._writes: KeyedWrites | None = None
        self._opening = asyncio.Lock()
        self._written = 0

    async def find(self, key: bytes) -> Kept | None:
        async with self._turn:
            now = asyncio.get_running_loop().time()
            if now - self._looked_at >= LOOK_SECONDS:
                await self._read_on()
                self._looked_at = now
        place = self._places.get(key)
        if place is None:
            return None
        async with aclosing(raw_entries_from(CompactedTopic(self._client, self._topic), place, 1)) as entries:
            for message in _messages(await anext(entries)):
                if message.key == key and message.value is not None:
                    return Kept(message.value, message.timestamp)
        self._looked_at = -LOOK_SECONDS  # it was compacted: there is a later one
        return None

    async def _read_on(self) -> None:
        last = (await self._admin.topics.log_stats(self._topic)).last
        if last is None or (self._read_to is not None and last <= self._read_to):
            return
        read = 0
        old: dict[bytes, None] = {}  # in order
        oldest = self._clock.wall() - EXPIRY_MS
        begin = None if self._read_to is None else self._read_to.after()
        async with aclosing(raw_entries_from(CompactedTopic(self._client, self._topic), begin, PERMITS)) as entries:
            while self._read_to is None or self._read_to < last:
                entry = await anext(entries)
                for message in _messages(entry):
                    read += 1
                    self._note(message, entry.position)
                    if message.key is not None:
                        old.pop(message.key, None)
                        if message.timestamp < oldest and message.value and message.key != MARKER_KEY:
                            old[message.key] = None
                self._read_to = entry.position
        if old:
            await self._delete(old)
        if read > len(self._places) + COMPACT_AFTER:
            await self._compact()

    def _note(self, message: Message, position: Position) -> None:
        if message.key is None or message.key == MARKER_KEY:
            return
        if message.value:
            self._places[message.key] = position
        else:
            self._places.pop(message.key, None)

    async def _delete(self, keys: Iterable[bytes]) -> None:
        writes = await self._writer()
        for key in keys:
            writes.send(key, None)
        # Compaction leaves out deletions. Behind them stands an entry that it leaves: who reads to the last one finds it.
        await writes.send(MARKER_KEY, b"after deletions")

    async def keep(self, key: bytes, value: bytes) -> None:
        await (await self._writer()).send(key, value)
        self._written += 1
        if self._written >= COMPACT_AFTER:
            self._written = 0
            await self._compact()

    async def _compact(self) -> None:
        with suppress(AlreadyExists):
            await self._admin.topics.compact(self._topic)

    async def _writer(self) -> KeyedWrites:
        async with self._opening:
            return await self._opened_writer()

    async def _opened_writer(self) -> KeyedWrites:
        if self._writes is None or self._writes.ended is not None:
            writes = KeyedWrites(self._topic, self._clock)
            writes.producer = await self._client.producer(self._topic, WRITER_PREFIX + self._new_id(), writes, purpose="lead")
            self._writes = writes
        return self._writes

    def close(self) -> None:
        if self._writes is not None and self._writes.producer is not None:
            self._writes.producer.close()


def _messages(entry: RawEntry) -> list[Message]:
    try:
        return read_messages(entry.message_metadata, entry.payload)[0]
    except Exception as error:  # anybody may have written it
        metrics.UNREADABLE_ENTRIES.inc()
        log.warning("entry %s of the kept states is passed over: %s", entry.position, error)
        return []
