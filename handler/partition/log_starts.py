"""Where clients have moved the starts of logs to: an internal topic that every sidecar follows, and any may write.

    DeleteRecords ──▶ move ──▶ __log_starts ──▶ all sidecars: the partition's log start
                        │ stored                       ▲
                        └──▶ the client is answered    └── from its beginning, when a sidecar starts

A start only moves forward, so nobody has to be elected: of two moves of one partition the greater counts, in whatever order they
come. Compaction keeps the last. So whoever reads a lesser move behind a greater one writes the greater again.

The topic is made with the first move. Until then it is looked for once a second.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import uuid
from collections.abc import Callable
from contextlib import aclosing
from typing import Final

from handler.coordination.compacted_topic import MARKER_KEY, CompactedTopic, KeyedWrites
from handler.coordination.internal_topic import partitions_of
from handler.partition.log.moved_start import MovedStart
from handler.pulsar.admin import AlreadyExists, PulsarAdmin
from handler.pulsar.client import PulsarClient
from handler.pulsar.entry import RawEntry
from handler.pulsar.errors import NotPermitted, PulsarError, Unavailable
from handler.pulsar.events import ConsumerEvents
from handler.pulsar.messages import read_messages
from handler.pulsar.raw_entries import NoEntryCame, raw_entries_from
from handler.tasks import KeptAlive
from handler.telemetry import metrics
from handler.telemetry.limits import RateLimitedLog

log = RateLimitedLog(logging.getLogger(__name__))

LOOK_SECONDS: Final = 1.0
# Loading took up to 13 s on a broker under load; a reader that hears nothing for longer is opened again.
SILENCE_SECONDS: Final = 15.0
LOAD_SECONDS: Final = 120.0
PERMITS: Final = 1_000
# Of this process: Streams moves the starts of its repartition topics every half minute.
WRITES_BETWEEN_COMPACTIONS: Final = 500


def topic_in(namespace: str) -> str:
    return f"persistent://{namespace}/__log_starts"


def log_of(topic: str) -> str:
    return f"{topic}-partition-0"


class LogStarts:
    def __init__(self, client: PulsarClient, admin: PulsarAdmin, namespace: str, on_moved: Callable[[str, MovedStart], None]) -> None:
        self._client = client
        self._admin = admin
        self._topic = topic_in(namespace)
        self._on_moved = on_moved
        self._starts: dict[str, MovedStart] = {}  # by partition, in Pulsar's words
        self._loaded = asyncio.Event()
        self._writes: KeyedWrites | None = None
        self._lesser: set[str] = set()  # of which a lesser move was read behind a greater one, while loading
        self._since_compaction = 0
        self._found = asyncio.Event()  # somebody has just made the topic
        self._task = KeptAlive("log_starts", self._topic, self._follow)

    def start(self) -> None:
        self._task.start()

    async def close(self) -> None:
        await self._task.stopped()

    async def of(self, partition: str) -> MovedStart | None:
        """Where the start of a partition was moved to last. Waits until what is stored has been read."""
        await self._loaded.wait()
        return self._starts.get(partition)

    async def move(self, partition: str, moved: MovedStart) -> None:
        """Move a start. It is stored when this returns. May raise PulsarError; who calls it knows how long to wait."""
        await partitions_of(self._admin, self._topic, 1)
        self._found.set()
        while (writes := self._writes) is None or writes.ended is not None:  # noqa: ASYNC110 - it is opened again before long
            await asyncio.sleep(LOOK_SECONDS / 50)
        known = self._starts.get(partition)
        if known is not None and known >= moved:
            return
        await writes.send(partition.encode(), moved.encode())
        self._take(partition, moved)
        self._since_compaction += 1
        if self._since_compaction >= WRITES_BETWEEN_COMPACTIONS:
            await self._compact()

    def forget(self, partitions: list[str]) -> None:
        """Their topic is deleted."""
        for partition in partitions:
            if self._starts.pop(partition, None) is not None and self._writes is not None:
                self._writes.send(partition.encode(), None)

    async def _compact(self) -> None:
        """Whoever loads it next reads what counts. Until it has been done once no cursor keeps what retention would take."""
        self._since_compaction = 0
        try:
            await self._admin.topics.compact(log_of(self._topic))
        except AlreadyExists:
            pass
        except PulsarError as error:  # what was moved is stored
            log.warning("%s can't be compacted now: %s", self._topic, error)

    async def _compact_once(self) -> None:
        try:
            if self._since_compaction < WRITES_BETWEEN_COMPACTIONS and await self._admin.topics.is_compacted(log_of(self._topic)):
                return
        except PulsarError as error:
            log.warning("%s: whether it is compacted can't be asked: %s", self._topic, error)
            return
        await self._compact()

    # --- following the topic

    async def _follow(self) -> None:
        await self._wait_for_topic()
        writes = KeyedWrites(self._topic)
        following = _Following(self._on_message, writes.fail)
        # A name of its own each time: a deduplicating broker must know none of its sequences.
        name = f"kafka-sidecar-{uuid.uuid4().hex[:16]}"
        producer = await self._client.producer(log_of(self._topic), name, writes, purpose="lead")
        reader = None
        try:
            writes.producer = producer
            self._marker = name.encode()
            self._marker_read = asyncio.get_running_loop().create_future()
            reader = await self._client.reader(log_of(self._topic), None, following, compacted=True, purpose="load")
            following.grant = reader.grant
            reader.grant(PERMITS)
            writes.send(MARKER_KEY, self._marker)
            await self._read_to_marker(following, writes)
            self._writes = writes
            for partition in self._lesser:
                if partition in self._starts:
                    writes.send(partition.encode(), self._starts[partition].encode())
            self._lesser.clear()
            self._loaded.set()
            self._task.backoff.reset()
            self._since_compaction = following.messages
            await self._compact_once()
            raise await writes.lost
        finally:
            self._writes = None
            producer.close()
            if reader is not None:
                reader.close()

    async def _read_to_marker(self, following: _Following, writes: KeyedWrites) -> None:
        messages = -1
        begun = asyncio.get_running_loop().time()
        while not self._marker_read.done():
            if messages == following.messages:
                raise Unavailable(f"nothing came of {self._topic} for {SILENCE_SECONDS:.0f} s")
            if asyncio.get_running_loop().time() - begun > LOAD_SECONDS:  # compaction may have taken the marker: the next is another
                raise Unavailable(f"{self._topic} was not read within {LOAD_SECONDS:.0f} s")
            messages = following.messages
            await asyncio.wait({self._marker_read, writes.lost}, timeout=SILENCE_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            if writes.ended is not None:
                raise writes.ended

    async def _wait_for_topic(self) -> None:
        while True:
            try:
                if await self._admin.topics.is_partitioned(self._topic):
                    return
            except NotPermitted as error:
                log.warning("%s may not be looked for, so DeleteRecords of others is not heard of: %s", self._topic, error)
            self._loaded.set()  # nobody has moved a start yet
            self._found.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_SECONDS):
                    await self._found.wait()

    def _on_message(self, key: bytes, value: bytes | None) -> None:
        if key == MARKER_KEY:
            if value == self._marker and not self._marker_read.done():
                self._marker_read.set_result(None)
            return
        partition = key.decode()
        if value:
            self._take(partition, MovedStart.decode(value))
        else:
            self._starts.pop(partition, None)
            self._lesser.discard(partition)

    def _take(self, partition: str, moved: MovedStart) -> None:
        known = self._starts.get(partition)
        if known is not None and known > moved:
            if self._writes is not None:
                self._writes.send(partition.encode(), known.encode())
            else:
                self._lesser.add(partition)
            return
        self._lesser.discard(partition)
        if known != moved:
            self._starts[partition] = moved
            self._on_moved(partition, moved)


async def stored_starts(client: PulsarClient, admin: PulsarAdmin, namespace: str) -> dict[str, MovedStart]:
    """Where the starts of all partitions have been moved to, for who looks once and writes nothing. May raise PulsarError."""
    topic = topic_in(namespace)
    starts: dict[str, MovedStart] = {}
    if not await admin.topics.is_partitioned(topic):
        return starts
    last = (await admin.topics.log_stats(log_of(topic))).last
    with contextlib.suppress(NoEntryCame):  # compaction leaves out a deletion, also where it is the last entry
        async with aclosing(raw_entries_from(CompactedTopic(client, log_of(topic)), None, PERMITS)) as entries:
            while last is not None:
                entry = await anext(entries)
                for message in read_messages(entry.message_metadata, entry.payload)[0]:
                    if message.key is not None and message.key != MARKER_KEY:
                        with contextlib.suppress(ValueError):  # anybody may have written it
                            _put(starts, message.key.decode(), MovedStart.decode(message.value) if message.value else None)
                if entry.position >= last:
                    break
    return starts


def _put(starts: dict[str, MovedStart], partition: str, moved: MovedStart | None) -> None:
    if moved is None:
        starts.pop(partition, None)
    else:
        starts[partition] = max(moved, starts.get(partition, moved))


class _Following(ConsumerEvents):
    """The reader: every message, from the beginning on."""

    def __init__(self, on_message: Callable[[bytes, bytes | None], None], on_lost: Callable[[PulsarError], None]) -> None:
        self._on_message = on_message
        self._on_lost = on_lost
        self._taken = 0
        self.messages = 0
        self.grant: Callable[[int], None] = lambda _: None

    def on_entry(self, entry: RawEntry) -> None:
        count = 1
        try:
            messages, count = read_messages(entry.message_metadata, entry.payload)
            for message in messages:
                if message.key is not None:
                    self._on_message(message.key, message.value)
        except Exception as error:  # anybody may have written it
            metrics.UNREADABLE_ENTRIES.inc()
            log.warning("entry %s of the log starts is passed over: %s", entry.position, error)
        self._taken += max(1, count)
        self.messages += max(1, count)
        if self._taken >= PERMITS // 2:
            self.grant(self._taken)
            self._taken = 0

    def on_end(self, reason: PulsarError) -> None:
        self._on_lost(reason)
