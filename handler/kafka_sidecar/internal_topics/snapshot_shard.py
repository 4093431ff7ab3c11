"""One partition of `__kept_states`: values are stored in it, whole or in parts, and what they replace is deleted."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Final

from kafka_sidecar.internal_topics.compacted_topic import MARKER_KEY, KeyedWrites
from kafka_sidecar.internal_topics.internal_topic import count_of
from kafka_sidecar.internal_topics.own_parts import OwnParts
from kafka_sidecar.internal_topics.snapshot_parts import PART_BYTES, Head, split
from kafka_sidecar.internal_topics.snapshot_places import Kept, SnapshotPlaces
from kafka_sidecar.loop.clock import Clock
from kafka_sidecar.loop.ids import WRITER_PREFIX, NewId
from kafka_sidecar.model.partition_name import partition_name
from kafka_sidecar.pulsar.errors import PulsarError, Unavailable
from kafka_sidecar.pulsar.ports import Admin, Client
from kafka_sidecar.telemetry import metrics
from kafka_sidecar.telemetry.limits import RateLimitedLog

log = RateLimitedLog(logging.getLogger(__name__))

# `find` may miss what was stored in the last 5 s: an older snapshot only makes the partition read some more entries.
LOOK_SECONDS: Final = 5.0
# A lookup is retried, because compaction may remove a value between finding its position and reading it.
LOOKS: Final = 5


class MadeAnew(Unavailable):
    """The topic was made again, and this shard is of the one before, or of another count of partitions. It is to be
    replaced.
    """


class SnapshotShard:
    def __init__(
        self,
        client: Client,
        admin: Admin,
        whole_topic: str,
        number: int,
        count: int,
        clock: Clock,
        new_id: NewId,
        on_remade: Callable[[SnapshotShard], None],
    ) -> None:
        self._clock = clock
        self._new_id = new_id
        self._on_remade = on_remade
        self._client = client
        self._admin = admin
        self._whole_topic = whole_topic
        self._count = count
        self._topic = topic = partition_name(whole_topic, number)
        self._places = SnapshotPlaces(client, admin, topic, self, clock)
        self._parts = OwnParts()
        self._keeping: dict[bytes, int] = {}  # number of stores in progress, by key
        # Keys stored while old values are being deleted: these are not deleted.
        self._stored_meanwhile: set[bytes] | None = None
        self._writes: KeyedWrites | None = None
        self._opening = asyncio.Lock()
        self._closed: PulsarError | None = None
        self._created_at: str | None = None  # creation time of the topic, as the broker last reported it
        self.times_remade = 0  # how often the topic was seen to be recreated: values stored before that are lost

    @property
    def progress(self) -> int:
        """Grows while something is read."""
        return self._places.progress

    def close(self, reason: PulsarError) -> None:
        """Callers of `store` get `reason` from now on."""
        self._closed = reason
        if self._writes is not None:
            self._end(self._writes, reason)

    def _end(self, writes: KeyedWrites, reason: PulsarError) -> None:
        if writes.producer is not None:
            writes.producer.close()
        writes.fail(reason)

    # --- found

    async def find(self, key: bytes) -> Kept | None:
        await self._places.read_if_not_since(asyncio.get_running_loop().time() - LOOK_SECONDS)
        place = self._places.of(key)
        kept = None if place is None else await self._places.value_at(place, key)
        return None if kept is None else await self._whole(key, kept)

    async def look_up(self, key: bytes) -> Kept | None:
        await self._know_when_created()
        missing = 0
        torn: bytes | None = None
        for _ in range(LOOKS):
            has_read = await self._places.read_if_not_since(asyncio.get_running_loop().time())
            place = self._places.of(key)
            if place is None:
                # The key may have a value all the same: compaction may have removed the older one before it was read,
                # and the newer one stands behind the end of that read.
                missing += 1
                if missing == LOOKS - 1 or not has_read:
                    return None
                continue
            kept = await self._places.value_at(place, key)
            if kept is None:
                continue
            whole = await self._whole(key, kept)
            if whole is not None:
                return whole
            if torn == kept.value:
                return None  # a full reread found the same head again, and its parts are still missing
            torn = kept.value
            self._places.are_outdated()
        raise Unavailable(f"{self._topic} was compacted whenever a value was looked for")

    async def names(self, prefix: bytes) -> list[bytes]:
        """The keys that begin so, of all values that anybody kept before this call."""
        await self._know_when_created()
        for _ in range(LOOKS):
            # Compaction may have removed a key's older value before it was read, and its newer value may stand behind
            # the end of that read. So the topic is read until nothing new comes.
            if not await self._places.read_if_not_since(asyncio.get_running_loop().time()):
                break
        return [key for key in self._places.all() if key.startswith(prefix)]

    async def _whole(self, key: bytes, kept: Kept) -> Kept | None:
        """The value itself, where `kept` is the head of its parts."""
        head = Head.decode(kept.value)
        if head is None:
            return kept
        places = self._places.all()
        parts = []
        for part_key in head.keys(key):
            place = places.get(part_key)
            part = None if place is None else await self._places.value_at(place, part_key)
            if part is None:
                break
            parts.append(part.value)
        value = head.joined(parts)
        if value is None:
            metrics.TORN_KEPT_STATES.inc()
            log.warning("%s has a value with missing parts, so its log is read instead", self._topic)
            return None
        return Kept(value, kept.written_at)

    # --- kept

    async def keep(self, key: bytes, value: bytes) -> None:
        if self._stored_meanwhile is not None:
            self._stored_meanwhile.add(key)
        self._keeping[key] = self._keeping.get(key, 0) + 1
        try:
            await self._keep(key, value)
        finally:
            self._keeping[key] -= 1
            if not self._keeping[key]:
                del self._keeping[key]

    async def _keep(self, key: bytes, value: bytes) -> None:
        writes = await self._writer()
        before, known = self._parts.heads(key), self._places.head(key)
        if len(value) <= PART_BYTES:
            await writes.send(key, value)
        else:
            await self._keep_in_parts(writes, key, value)
        replaced = [(key, head) for head in {*before, known} if head is not None]
        unnamed = self._parts.unnamed
        await self._delete([part_key for of, head in [*replaced, *unnamed] for part_key in head.keys(of)])
        self._parts.has_replaced(key, before)
        self._parts.are_deleted(unnamed)

    async def _keep_in_parts(self, writes: KeyedWrites, key: bytes, value: bytes) -> None:
        head, parts = split(value, self._new_id())
        try:
            await asyncio.gather(
                *[writes.send(part_key, part) for part_key, part in zip(head.keys(key), parts, strict=True)]
            )
        except BaseException:
            self._parts.head_was_not_sent(key, head)
            raise
        self._parts.head_is_sent(key, head)
        await writes.send(key, head.encode())

    async def forget(self, key: bytes) -> None:
        before, known = self._parts.heads(key), self._places.head(key)
        await self._delete(
            [key, *[part_key for head in {*before, known} if head is not None for part_key in head.keys(key)]]
        )
        self._parts.has_replaced(key, before)

    async def _delete(self, keys: Iterable[bytes]) -> None:
        deleted = dict.fromkeys(keys)
        if not deleted:
            return
        writes = await self._writer()
        for key in deleted:
            writes.send(key, None)
        # Compaction drops deletions: without a marker behind them, a reader that waits for the last entry would not
        # get it.
        await self.write_marker()

    async def _writer(self) -> KeyedWrites:
        async with self._opening:
            if self._closed is not None:
                raise self._closed
            if self._writes is None or self._writes.ended is not None:
                # A broker may create a single partition of a deleted topic when a producer connects. So the partition
                # count is checked first.
                if await count_of(self._admin, self._whole_topic) != self._count:
                    raise MadeAnew(f"{self._whole_topic} was made again with another count of partitions")
                await self._ask_when_created()
                writes = KeyedWrites(self._topic, self._clock)
                writes.producer = await self._client.producer(
                    self._topic, WRITER_PREFIX + self._new_id(), writes, purpose="lead"
                )
                if self._closed is not None:
                    self._end(writes, self._closed)
                self._writes = writes
            return self._writes

    async def _know_when_created(self) -> None:
        """Who finds a value has to know later that it is gone with its topic."""
        if self._created_at is None:
            async with self._opening:
                if self._created_at is None:
                    await self._ask_when_created()

    async def look_when_created(self) -> None:
        """Notice if the topic was made again. A sidecar that never asked has stored nothing there. Raises
        PulsarError.
        """
        if self._created_at is not None:
            await self._ask_when_created()

    async def _ask_when_created(self) -> None:
        try:
            created_at = await self._admin.topics.created_at(self._topic)
        except Unavailable:
            await self._admin.topics.log_stats(
                self._topic
            )  # if the topic is missing, brokers answer 404 to this call, but 500 to `created_at`
            raise
        is_another = self._created_at not in (None, created_at)
        self._created_at = created_at
        if is_another:
            self.times_remade += 1
            self._on_remade(self)

    # --- Housekeeping, for readers

    def on_replaced(self, key: bytes, head: Head) -> None:
        self._parts.another_has_replaced(key, head)

    async def delete_old(self, still_old: Callable[[], Awaitable[Iterable[bytes]]]) -> None:
        self._stored_meanwhile = stored_meanwhile = set(self._keeping)
        try:
            await self._writer()
            await self._delete([key for key in await still_old() if key not in stored_meanwhile])
        finally:
            self._stored_meanwhile = None

    async def write_marker(self) -> None:
        writes = await self._writer()
        await writes.send(MARKER_KEY, b"after deletions")
