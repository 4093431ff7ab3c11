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
import math
from collections.abc import Awaitable, Iterable
from contextlib import aclosing, suppress
from typing import Final, NamedTuple

from handler.clock import Clock
from handler.coordination.compacted_topic import MARKER_KEY, CompactedTopic, KeyedWrites
from handler.coordination.internal_topic import partitions_of
from handler.coordination.kept_parts import PART_BYTES, Head, split
from handler.ids import WRITER_PREFIX, NewId
from handler.pulsar.admin import AlreadyExists, PulsarAdmin
from handler.pulsar.client import PulsarClient
from handler.pulsar.entry import Position, RawEntry
from handler.pulsar.errors import PulsarError, TopicMissing, Unavailable
from handler.pulsar.messages import Message, read_messages
from handler.pulsar.raw_entries import raw_entries_from
from handler.tasks import BytesASecond
from handler.telemetry import metrics
from handler.telemetry.limits import RateLimitedLog
from handler.wire.crc import crc32c

log = RateLimitedLog(logging.getLogger(__name__))

# So that who looks for one value reads a part of all.
PARTITIONS: Final = 16
# An older value costs its reader some entries more.
LOOK_SECONDS: Final = 5.0
ASK_SECONDS: Final = 10.0
# Compaction may move a value while one looks for it.
LOOKS: Final = 5
PERMITS: Final = 64
# A value of more than a part is stored in parts, of which brokers take each. Nothing that is kept comes near this.
MAX_BYTES: Final = 64 * 1024 * 1024
COMPACT_AFTER: Final = 500  # messages that were read and say nothing
COMPACT_AFTER_BYTES: Final = 64 * 1024 * 1024  # that were written
LEAST_BYTES_A_SECOND: Final = 1024 * 1024  # that Pulsar takes of a large value
# Of one process.
BYTES_A_SECOND: Final = 1024 * 1024
BYTES_AT_ONCE: Final = 8 * 1024 * 1024
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
        self.rate = BytesASecond(BYTES_A_SECOND, BYTES_AT_ONCE)  # for what is kept again and again

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

    async def look_up(self, key: bytes) -> Kept | None:
        """What was kept last by anybody, before this call. Raises PulsarError where that can't be told."""
        try:
            async with asyncio.timeout(ASK_SECONDS):
                if not self._shards:
                    await self._begin(self._admin.topics.partitions(self._topic))
                return await self._shard(key).look_up(key)
        except TopicMissing:
            return None
        except TimeoutError as error:
            raise Unavailable(f"{self._topic} could not be read within {ASK_SECONDS:.0f} s") from error

    async def keep(self, key: bytes, value: bytes) -> bool:
        """Store a value, if Pulsar takes it now; an empty one is none."""
        if len(value) > MAX_BYTES:
            log.warning("a value of %d bytes is too large for %s: its log is read again instead", len(value), self._topic)
            return False
        try:
            async with asyncio.timeout(ASK_SECONDS + len(value) / LEAST_BYTES_A_SECOND):
                if not self._shards:
                    await self._begin(partitions_of(self._admin, self._topic, PARTITIONS))
                await (self._shard(key).keep(key, value) if value else self._shard(key).forget(key))
        except (PulsarError, TimeoutError) as error:
            log.warning("%s can't be written, so logs may have to be read again: %s", self._topic, error or "no answer")
            return False
        return True

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
        self._looked_at = -math.inf  # when the last look began
        self._is_outdated = False  # what is known of places
        self._turn = asyncio.Lock()
        self._writes: KeyedWrites | None = None
        self._opening = asyncio.Lock()
        self._written = 0
        self._written_bytes = 0
        self._heads: dict[bytes, Head] = {}  # of the values that are in parts

    async def find(self, key: bytes) -> Kept | None:
        await self._read_if_not_since(asyncio.get_running_loop().time() - LOOK_SECONDS)
        place = self._places.get(key)
        kept = None if place is None else await self._value_at(place, key)
        return None if kept is None else await self._whole(key, kept)

    async def look_up(self, key: bytes) -> Kept | None:
        torn: bytes | None = None
        for _ in range(LOOKS):
            await self._read_if_not_since(asyncio.get_running_loop().time())
            place = self._places.get(key)
            if place is None:
                return None
            kept = await self._value_at(place, key)
            if kept is None:
                continue
            whole = await self._whole(key, kept)
            if whole is not None:
                return whole
            if torn == kept.value:
                return None  # its parts are not there, and nobody has stored others meanwhile
            torn = kept.value
        raise Unavailable(f"{self._topic} was compacted whenever a value was looked for")

    async def _whole(self, key: bytes, kept: Kept) -> Kept | None:
        """The value itself, where `kept` is the head of its parts."""
        head = Head.decode(kept.value)
        if head is None:
            return kept
        parts = []
        for part_key in head.keys(key):
            place = self._places.get(part_key)
            part = None if place is None else await self._value_at(place, part_key)
            if part is None:
                break
            parts.append(part.value)
        value = head.joined(parts)
        if value is None:
            metrics.TORN_KEPT_STATES.inc()
            log.warning("%s has a value of which parts are missing, so its log is read instead", self._topic)
            return None
        return Kept(value, kept.written_at)

    async def _read_if_not_since(self, moment: float) -> None:
        """Know where values stand that were kept before `moment`. Those who ask at the same time share one look."""
        async with self._turn:
            if self._looked_at <= moment or self._is_outdated:
                begun = asyncio.get_running_loop().time()
                if self._is_outdated:
                    self._places, self._heads, self._read_to, self._is_outdated = {}, {}, None, False
                await self._read_on()
                self._looked_at = begun

    async def _value_at(self, place: Position, key: bytes) -> Kept | None:
        async with aclosing(raw_entries_from(CompactedTopic(self._client, self._topic), place, 1)) as entries:
            for message in _messages(await anext(entries)):
                if message.key == key and message.value is not None:
                    return Kept(message.value, message.timestamp)
        # It was compacted: there is a later one, or it was deleted, and of that nothing is left.
        self._is_outdated = True
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
            self._note_head(message.key, Head.decode(message.value))
        else:
            self._places.pop(message.key, None)
            self._note_head(message.key, None)

    def _note_head(self, key: bytes, head: Head | None) -> None:
        if head is None:
            self._heads.pop(key, None)
        else:
            self._heads[key] = head

    async def _delete(self, keys: Iterable[bytes]) -> None:
        writes = await self._writer()
        for key in keys:
            writes.send(key, None)
        # Compaction leaves out deletions. Behind them stands an entry that it leaves: who reads to the last one finds it.
        await writes.send(MARKER_KEY, b"after deletions")

    async def keep(self, key: bytes, value: bytes) -> None:
        writes = await self._writer()
        before = self._heads.get(key)
        if len(value) <= PART_BYTES:
            await writes.send(key, value)
            self._note_head(key, None)
        else:
            head, parts = split(value, self._new_id())
            await asyncio.gather(*[writes.send(part_key, part) for part_key, part in zip(head.keys(key), parts, strict=True)])
            await writes.send(key, head.encode())
            self._note_head(key, head)
        if before is not None:
            await self._delete(before.keys(key))
        self._written += 1
        self._written_bytes += len(value)
        if self._written >= COMPACT_AFTER or self._written_bytes >= COMPACT_AFTER_BYTES:
            self._written = self._written_bytes = 0
            await self._compact()

    async def forget(self, key: bytes) -> None:
        before = self._heads.pop(key, None)
        await self._delete([key] if before is None else [key, *before.keys(key)])

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
