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
from dataclasses import dataclass, field
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
from handler.tasks import BytesASecond, while_it_goes_on
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
OWN_IDS: Final = 1_000
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
            async with while_it_goes_on(ASK_SECONDS, self._progress):
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
            async with while_it_goes_on(ASK_SECONDS, self._progress):
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

    def _progress(self) -> int:
        return sum([shard.progress for shard in self._shards])

    def _shard(self, key: bytes) -> _Shard:
        return self._shards[crc32c(key) % len(self._shards)]


@dataclass(slots=True)
class _Known:
    """What is known of a shard. It is read anew as a whole."""

    places: dict[bytes, Position] = field(default_factory=dict)  # of the last value of each key
    heads: dict[bytes, Head] = field(default_factory=dict)  # of the values that are in parts
    old: dict[bytes, None] = field(default_factory=dict)  # in order; keys whose value is to be deleted
    read_to: Position | None = None


class _Shard:
    def __init__(self, client: PulsarClient, admin: PulsarAdmin, topic: str, clock: Clock, new_id: NewId) -> None:
        self._clock = clock
        self._new_id = new_id
        self._client = client
        self._admin = admin
        self._topic = topic
        self._known = _Known()
        self._looked_at = -math.inf  # when the last look began
        self._is_outdated = False  # what is known of places
        self._turn = asyncio.Lock()
        self._writes: KeyedWrites | None = None
        self._opening = asyncio.Lock()
        self._written = 0
        self._written_bytes = 0
        self._own_keys: dict[bytes, None] = {}  # of what this one has kept: it is not old, whatever was read
        self._own_ids: dict[bytes, None] = {}  # of values in parts that this one has kept
        self._kept_heads: dict[bytes, Head] = {}  # of the last value that this one has kept in parts, by key
        self._unnamed: dict[bytes, None] = {}  # parts that no head names, maybe
        self.progress = 0  # grows while something is read

    async def find(self, key: bytes) -> Kept | None:
        await self._read_if_not_since(asyncio.get_running_loop().time() - LOOK_SECONDS)
        place = self._known.places.get(key)
        kept = None if place is None else await self._value_at(place, key)
        return None if kept is None else await self._whole(key, kept)

    async def look_up(self, key: bytes) -> Kept | None:
        missing = 0
        torn: bytes | None = None
        for _ in range(LOOKS):
            has_read = await self._read_if_not_since(asyncio.get_running_loop().time())
            place = self._known.places.get(key)
            if place is None:
                # Compaction may have taken an older value before it was read, for a newer one behind what was the end then.
                missing += 1
                if missing == LOOKS - 1 or not has_read:
                    return None
                continue
            kept = await self._value_at(place, key)
            if kept is None:
                continue
            whole = await self._whole(key, kept)
            if whole is not None:
                return whole
            if torn == kept.value:
                return None  # its parts are not there, also for who has read all anew, and nobody has stored others
            torn = kept.value
            self._is_outdated = True
        raise Unavailable(f"{self._topic} was compacted whenever a value was looked for")

    async def _whole(self, key: bytes, kept: Kept) -> Kept | None:
        """The value itself, where `kept` is the head of its parts."""
        head = Head.decode(kept.value)
        if head is None:
            return kept
        places = self._known.places  # it is replaced as a whole
        parts = []
        for part_key in head.keys(key):
            place = places.get(part_key)
            part = None if place is None else await self._value_at(place, part_key)
            if part is None:
                break
            self.progress += 1
            parts.append(part.value)
        value = head.joined(parts)
        if value is None:
            metrics.TORN_KEPT_STATES.inc()
            log.warning("%s has a value of which parts are missing, so its log is read instead", self._topic)
            return None
        return Kept(value, kept.written_at)

    async def _read_if_not_since(self, moment: float) -> bool:
        """Know where values stand that were kept before `moment`. Those who ask at the same time share one look. Whether it has read."""
        async with self._turn:
            if self._looked_at > moment and not self._is_outdated:
                return True
            begun = asyncio.get_running_loop().time()
            known = _Known() if self._is_outdated else self._known
            self._is_outdated = False
            try:
                has_read = await self._read_on(known)
            except BaseException:
                self._is_outdated = self._is_outdated or known is not self._known
                raise
            self._known = known
            self._looked_at = begun
            return has_read

    async def _value_at(self, place: Position, key: bytes) -> Kept | None:
        async with aclosing(raw_entries_from(CompactedTopic(self._client, self._topic), place, 1)) as entries:
            for message in _messages(await anext(entries)):
                if message.key == key and message.value is not None:
                    return Kept(message.value, message.timestamp)
        # It was compacted: there is a later one, or it was deleted, and of that nothing is left.
        self._is_outdated = True
        return None

    async def _read_on(self, known: _Known) -> bool:
        """To the end. Whether there was something to read."""
        last = (await self._admin.topics.log_stats(self._topic)).last
        if last is None or (known.read_to is not None and last <= known.read_to):
            return False
        read = await self._read_up_to(last, known)
        if known.old:
            await self._writer()
            # What is old is deleted behind all that was written meanwhile.
            last = (await self._admin.topics.log_stats(self._topic)).last or last
            read += await self._read_up_to(last, known)
            old, known.old = known.old, {}
            await self._delete([key for key in old if key not in self._own_keys])
        if read > len(known.places) + COMPACT_AFTER:
            await self._compact()
        return True

    async def _read_up_to(self, last: Position, known: _Known) -> int:
        if known.read_to is not None and last <= known.read_to:
            return 0
        read = 0
        oldest = self._clock.wall() - EXPIRY_MS
        begin = None if known.read_to is None else known.read_to.after()
        async with aclosing(raw_entries_from(CompactedTopic(self._client, self._topic), begin, PERMITS)) as entries:
            while known.read_to is None or known.read_to < last:
                entry = await anext(entries)
                self.progress += 1
                for message in _messages(entry):
                    read += 1
                    self._note(known, message, entry.position)
                    if message.key is not None:
                        known.old.pop(message.key, None)
                        if message.timestamp < oldest and message.value and message.key != MARKER_KEY:
                            known.old[message.key] = None
                known.read_to = entry.position
        return read

    def _note(self, known: _Known, message: Message, position: Position) -> None:
        if message.key is None or message.key == MARKER_KEY:
            return
        if message.value:
            known.places[message.key] = position
        else:
            known.places.pop(message.key, None)
        head = Head.decode(message.value) if message.value else None
        before = known.heads.get(message.key)
        if before is not None and before != head and before.id in self._own_ids:
            self._unnamed.update(dict.fromkeys(before.keys(message.key)))  # another has kept a value at the same time
        if head is None:
            known.heads.pop(message.key, None)
        else:
            known.heads[message.key] = head

    async def _delete(self, keys: Iterable[bytes]) -> None:
        writes = await self._writer()
        for key in keys:
            writes.send(key, None)
        # Compaction leaves out deletions. Behind them stands an entry that it leaves: who reads to the last one finds it.
        await writes.send(MARKER_KEY, b"after deletions")

    async def keep(self, key: bytes, value: bytes) -> None:
        self._own_keys[key] = None
        writes = await self._writer()
        replaced = self._parts_of(key)
        self._written += 1
        self._written_bytes += len(value)
        if len(value) <= PART_BYTES:
            await writes.send(key, value)
        else:
            await self._keep_in_parts(writes, key, value)
        await self._delete_unnamed(replaced)
        if self._written >= COMPACT_AFTER or self._written_bytes >= COMPACT_AFTER_BYTES:
            self._written = self._written_bytes = 0
            await self._compact()

    async def _keep_in_parts(self, writes: KeyedWrites, key: bytes, value: bytes) -> None:
        head, parts = split(value, self._new_id())
        keys = head.keys(key)
        self._own_ids[head.id] = None
        if len(self._own_ids) > OWN_IDS:
            self._own_ids.pop(next(iter(self._own_ids)))
        try:
            await asyncio.gather(*[writes.send(part_key, part) for part_key, part in zip(keys, parts, strict=True)])
        except BaseException:
            self._unnamed.update(dict.fromkeys(keys))
            raise
        # Whether the head is stored is not known without a receipt: the parts stay.
        await writes.send(key, head.encode())
        self._kept_heads[key] = head

    def _parts_of(self, key: bytes) -> list[bytes]:
        """The parts of the value that is known, and of that which this one has kept."""
        heads = {head for head in (self._known.heads.get(key), self._kept_heads.pop(key, None)) if head is not None}
        return [part_key for head in heads for part_key in head.keys(key)]

    async def _delete_unnamed(self, keys: Iterable[bytes]) -> None:
        """Parts of values that were replaced, and of those that could not be stored."""
        unnamed, self._unnamed = dict.fromkeys([*keys, *self._unnamed]), {}
        if unnamed:
            await self._delete(unnamed)

    async def forget(self, key: bytes) -> None:
        await self._delete([key, *self._parts_of(key)])

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
