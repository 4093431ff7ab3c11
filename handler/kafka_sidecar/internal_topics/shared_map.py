"""A compacted internal topic that every sidecar follows, and any may write. Its values are facts. One counts more than
another, whichever sidecar states it.

    put ──▶ the topic ──▶ all sidecars: `on_change`
      │ stored                 ▲
      └──▶ who asked           └── from its beginning, when a sidecar starts

The values of a key tell which one counts, in whatever order they come, so nobody has to be elected to write. Compaction
keeps the last. So a sidecar that reads a value behind one that counts more writes that one again. A deletion says which
value it deletes: one that counts more, of a topic that was made again meanwhile, is written again too.

The topic is made with the first value. Until then it is looked for once a second. Who only follows it writes nothing,
so it is read also where nobody can write.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Final, Generic, Protocol, TypeVar

from kafka_sidecar.errors import SidecarError
from kafka_sidecar.internal_topics.compacted_topic import MARKER_KEY, KeyedWrites, check_beginning, deleted_by
from kafka_sidecar.internal_topics.internal_topic import count_of, partitions_of
from kafka_sidecar.internal_topics.left_out import entries_left_out
from kafka_sidecar.internal_topics.shared_map_reader import NOWHERE, Overtaken, SharedMapReader, take_messages
from kafka_sidecar.loop.clock import Clock
from kafka_sidecar.loop.ids import WRITER_PREFIX, NewId
from kafka_sidecar.loop.lasting import Lasting
from kafka_sidecar.loop.pace import Pace
from kafka_sidecar.loop.single_flight import SingleFlight
from kafka_sidecar.loop.supervised import SupervisedTask
from kafka_sidecar.model.partition_name import partition_name
from kafka_sidecar.pulsar.entry import CompactionStats, Position
from kafka_sidecar.pulsar.errors import NotPermitted, PulsarError, Unavailable
from kafka_sidecar.pulsar.messages import Message
from kafka_sidecar.pulsar.ports import Admin, Client
from kafka_sidecar.telemetry.limits import RateLimitedLog

log = RateLimitedLog(logging.getLogger(__name__))

LOOK_SECONDS: Final = 1.0
# Loading took up to 13 s on a broker under load; a reader that hears nothing for longer is opened again.
SILENCE_SECONDS: Final = 15.0
LOAD_SECONDS: Final = 120.0
# Time limit for reading the topic up to its last entry. A connected reader is only some milliseconds behind.
CURRENT_SECONDS: Final = 10.0
# A topic that existed counts as deleted after it was missing for 30 s: a broker that has just started may not know it.
GONE_SECONDS: Final = 30.0
# Longest pause between two lookups that count towards these 30 s. The topic is looked up each second.
PAUSE_SECONDS: Final = 15.0

V = TypeVar("V")


class MergeRule(Protocol[V]):
    """The values of a topic."""

    def encode(self, value: V) -> bytes: ...
    def decode(self, data: bytes) -> V:
        """ValueError where it isn't one."""
        ...

    def supersedes(self, value: V, other: V) -> bool:
        """Whether `value` is to be believed where both were stated."""
        ...


def log_of(topic: str) -> str:
    return partition_name(topic, 0)


def _nobody(_: str, __: object) -> None: ...


class SharedMap(Generic[V]):
    def __init__(
        self,
        client: Client,
        admin: Admin,
        topic: str,
        facts: MergeRule[V],
        clock: Clock,
        new_id: NewId,
        on_change: Callable[[str, V], None] = _nobody,
    ) -> None:
        self._client = client
        self._admin = admin
        self.topic = topic
        self._rule = facts
        self._clock = clock
        self._new_id = new_id
        self._on_change = on_change
        self._values: dict[str, V] = {}
        self._read: dict[str, V] | None = None  # values that were read so far while loading; otherwise None
        self._read_deleted: set[str] = set()  # keys whose deletion was read while loading
        self._loaded = asyncio.Event()
        self._writes: KeyedWrites | None = None
        self._opening = asyncio.Lock()
        # Keys, in order, whose last value in the log is less than an earlier one, which is to be written again.
        self._superseded: dict[str, None] = {}
        self._deleted: dict[str, V] = {}  # values to delete from the topic, by key
        self._puts: Counter[str] = Counter()  # puts in flight, by key
        # For keys with a put in flight: the position of the last deletion that was read.
        self._deletions: dict[str, Position] = {}
        self._found = asyncio.Event()  # set when the topic exists, which ends the pause before the next lookup
        self.has_seen_its_topic = False
        self._missing = Lasting(GONE_SECONDS, PAUSE_SECONDS)
        self._following: SharedMapReader | None = None
        # The same reader as `_following`, once it has read all stored values.
        self._reading: SharedMapReader | None = None
        self._seen: Position | None = None  # position of the last entry that an earlier reader delivered
        self._asking: SingleFlight[None, int] = SingleFlight()
        self._question = 0  # number of reads up to the end of the topic that have begun
        self._task = SupervisedTask("followed_topic", topic, self._follow)
        self._mending = SupervisedTask("followed_topic_mending", topic, self._mend, on_final=self._on_not_mended)

    def start(self) -> None:
        self._task.start()

    async def close(self) -> None:
        await self._task.stopped()
        await self._mending.stopped()
        await self._asking.close()
        if self._writes is not None and self._writes.producer is not None:
            self._writes.producer.close()

    async def of(self, key: str) -> V | None:
        """The value of a key. Waits until what is stored has been read."""
        await self._loaded.wait()
        return self._values.get(key)

    async def of_now(self, key: str) -> V | None:
        """The same, of everything that was stored by anybody before this was asked. May raise PulsarError."""
        return (await self.all_now()).get(key)

    @property
    def values(self) -> Mapping[str, V]:
        """All that is known. It changes while the topic is followed."""
        return self._values

    async def all_now(self) -> Mapping[str, V]:
        """`values`, when everything is known that was stored by anybody before this was asked. May raise
        PulsarError.
        """
        before = self._question
        while await self._asking.call(None, self._read_on) <= before:
            pass  # the shared read had begun before this call, so another one is needed
        return self._values

    async def put(self, key: str, value: V) -> None:
        """Store a value. It is stored when this returns. May raise PulsarError; who calls it knows how long to wait."""
        await partitions_of(self._admin, self.topic, 1)
        self._note_that_it_is_there()
        self._found.set()
        await self._loaded.wait()
        writes = await self._writer_before_long()
        known = self._values.get(key)
        if known is not None and not self._rule.supersedes(value, known):
            return
        self._puts[key] += 1
        try:
            self._take_own(key, value, await writes.send(key.encode(), self._rule.encode(value)))
        finally:
            self._puts[key] -= 1
            if not self._puts[key]:
                del self._puts[key]
                self._deletions.pop(key, None)

    def forget(self, values: Mapping[str, V]) -> None:
        """What they are about is deleted. A value that has come since is about its successor, and stays."""
        for key, value in values.items():
            if self._values.get(key) == value:
                self._deleted[key] = self._values.pop(key)
        if self._deleted:
            self._mending.start()

    # --- writing

    async def _writer(self) -> KeyedWrites:
        async with self._opening:
            if self._writes is None or self._writes.ended is not None:
                await count_of(
                    self._admin, self.topic
                )  # a broker may create a deleted partition again when a producer connects
                writes = KeyedWrites(self.topic, self._clock)
                # Each producer gets a new name: a broker with deduplication would discard sequence ids that it knows of
                # an old name.
                name = WRITER_PREFIX + self._new_id()
                writes.producer = await self._client.producer(log_of(self.topic), name, writes, purpose="lead")
                self._writes = writes
            return self._writes

    async def _writer_before_long(self) -> KeyedWrites:
        while True:
            with contextlib.suppress(Unavailable):
                return await self._writer()
            await asyncio.sleep(LOOK_SECONDS / 50)

    async def _mend(self) -> None:
        """Write what counts behind what counts less, and the deletions.

        Another sidecar may have done so by now, or have stored what counts even more. So all is read first: compaction
        keeps the last.
        """
        while self._superseded or self._deleted:
            try:
                await self.all_now()
            except PulsarError as error:  # even a non-retriable error is retried here: the values must still be written
                raise Unavailable(f"{self.topic} can't be read to its end: {error}") from error
            lesser, self._superseded = self._superseded, {}
            deleted, self._deleted = self._deleted, {}
            try:
                writes = await self._writer()
                stored = [
                    writes.send(key.encode(), self._rule.encode(self._values[key]))
                    for key in lesser
                    if key in self._values
                ]
                stored += [
                    writes.send_deletion(key.encode(), self._rule.encode(value)) for key, value in deleted.items()
                ]
                await asyncio.gather(*stored)
            except BaseException:
                self._superseded = lesser | self._superseded
                self._deleted = deleted | self._deleted
                raise

    def _on_not_mended(self, error: SidecarError) -> None:
        log.warning("%s has values behind others that count more, and can't be written: %s", self.topic, error)

    # --- following the topic

    async def _follow(self) -> None:
        await self._wait_for_topic()
        stats = await self._stats()
        # Loading begins with an empty map: compaction may have removed a tombstone together with its value, and the map
        # would never lose that value.
        self._read = {}
        self._read_deleted.clear()
        try:
            left_out = await entries_left_out(self._client, log_of(self.topic), stats, self._seen)
            pace = Pace()
            for entry in left_out:
                take_messages(self.topic, entry, self._on_message)
                await pace.maybe_yield()
            await self._load_and_read_on(stats, left_out[-1].last_index if left_out else None)
        finally:
            self._following = self._reading = self._read = None

    async def _load_and_read_on(self, stats: CompactionStats, last_index: int | None) -> None:
        """`last_index`: of the last entry that is compacted, which compaction may have left out."""
        self._following = following = SharedMapReader(self.topic, self._on_message, stats.compacted_to, last_index)
        reader = await self._client.reader(log_of(self.topic), None, following, compacted=True, purpose="load")
        try:
            following.begin(reader.grant)
            async with asyncio.timeout(LOAD_SECONDS):
                await self._read_all(stats, following)
            following.misses_nothing = True
            if (await self._stats()).compacted_ledger != stats.compacted_ledger:
                # A value that was read before the compaction may have been deleted since, and compaction may have
                # removed its tombstone.
                raise Unavailable(f"{self.topic} was compacted while it was read")
            await check_beginning(self._client, log_of(self.topic), stats.compacted_ledger, following.first_index)
            if following.lost.done():
                raise following.lost.result()
            self._know_what_was_read()
            self._reading = following
            self._note_that_it_is_there()
            self._loaded.set()
            self._task.backoff.reset()
            raise await following.lost
        except TimeoutError as error:
            raise Unavailable(f"{self.topic} was not read within {LOAD_SECONDS:.0f} s") from error
        finally:
            if self._reading is following and following.position != NOWHERE:
                self._seen = following.position
            reader.close()

    async def _stats(self) -> CompactionStats:
        """By the word of the broker that serves it. A reader that its broker has forgotten gets an old end."""
        return await self._admin.topics.compaction_stats(log_of(self.topic))

    async def _read_all(self, stats: CompactionStats, following: SharedMapReader) -> None:
        silent_since = asyncio.get_running_loop().time()
        while not following.has_read_all(stats):
            following.news.clear()
            if following.lost.done():
                raise following.lost.result()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(SILENCE_SECONDS):
                    await following.news.wait()
                silent_since = asyncio.get_running_loop().time()
            if asyncio.get_running_loop().time() - silent_since >= SILENCE_SECONDS:
                raise Unavailable(f"nothing came of {self.topic} for {SILENCE_SECONDS:.0f} s")

    def _know_what_was_read(self) -> None:
        read, self._read = self._read or {}, None
        for key in read:
            known = None if key in self._read_deleted else self._values.get(key)
            if known is not None and self._rule.supersedes(known, read[key]):
                read[key] = known
                self._superseded[key] = None
        before, self._values = self._values, read
        if self._superseded:
            self._mending.start()
        for key, value in read.items():
            if before.get(key) != value:
                self._on_change(key, value)

    async def _wait_for_topic(self) -> None:
        while not await self._is_there("so what other sidecars put there is not heard of"):
            if self._may_be_missing:
                self._loaded.set()  # the topic does not exist, so no value is stored
            self._found.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_SECONDS):
                    await self._found.wait()

    def _on_message(self, message: Message, position: Position) -> None:
        if message.key is None or message.key == MARKER_KEY:
            return
        key = message.key.decode()
        if message.value:
            self._take(key, self._rule.decode(message.value))
        else:
            self._take_deletion(key, deleted_by(message))
            if key in self._puts:
                self._deletions[key] = max(position, self._deletions.get(key, NOWHERE))

    def _take(self, key: str, value: V) -> None:
        values = self._values if self._read is None else self._read
        known = values.get(key)
        if known is not None and self._rule.supersedes(known, value):
            self._owe(key)
            return
        self._superseded.pop(key, None)
        values[key] = value
        if known != value and self._read is None:
            self._on_change(key, value)

    def _take_own(self, key: str, value: V, stored_at: Position) -> None:
        """What this process has stored is known at once, also where what is being read comes to nothing. But the reader
        may have come here first.
        """
        if self._deletions.get(key, NOWHERE) > stored_at:
            return
        read, self._read = self._read, None
        if read is not None:
            self._take(key, value)
        self._read = read
        if self._following is None or self._following.position < stored_at:
            self._take(key, value)
            return
        # If the reader did not deliver the stored value, compaction has removed it: because of a later tombstone, or of
        # a lesser value that was written behind it.
        known = (self._values if read is None else read).get(key)
        if known is not None and self._rule.supersedes(value, known):
            self._take(key, value)
            self._owe(key)

    def _take_deletion(self, key: str, encoded: bytes | None) -> None:
        """Of a value, or of whatever there is, as sidecars of 0.2 wrote it."""
        values = self._values if self._read is None else self._read
        known = values.get(key)
        deleted = None if encoded is None else self._rule.decode(encoded)
        if known is not None and deleted is not None and self._rule.supersedes(known, deleted):
            self._owe(key)
        else:
            values.pop(key, None)
            self._superseded.pop(key, None)
            before = self._values.get(key)
            if self._read is not None and not (
                before is not None and deleted is not None and self._rule.supersedes(before, deleted)
            ):
                self._read_deleted.add(key)

    def _owe(self, key: str) -> None:
        """What counts is to be written again, behind what was read."""
        self._superseded[key] = None
        if self._read is None:
            self._mending.start()

    async def _read_on(self) -> int:
        """Until what is stored now has been read; returns the number of the question."""
        self._question += 1
        question = self._question
        if (
            self._reading is None
            and not await self._is_there("so nobody with this role has put anything there")
            and self._may_be_missing
        ):
            return question
        self._found.set()
        try:
            async with asyncio.timeout(CURRENT_SECONDS):
                await self._have_read_all()
        except TimeoutError as error:
            if self._reading is not None:
                self._reading.on_end(Unavailable("its reader brings nothing"))  # the broker may have lost this reader
            raise Unavailable(f"{self.topic} was not read to its end within {CURRENT_SECONDS:.0f} s") from error
        return question

    async def _have_read_all(self) -> None:
        while True:
            while (reading := self._reading) is None:  # noqa: ASYNC110 - it is opened before long
                await asyncio.sleep(LOOK_SECONDS / 50)
            stats = await self._stats()
            if not reading.is_overtaken(stats):
                with contextlib.suppress(Overtaken):
                    await self._read_all(stats, reading)
                    return
            reading.on_end(
                Overtaken(f"{self.topic} was compacted behind what is read")
            )  # compaction may have removed a tombstone that this reader has not read
            while self._reading is reading:  # noqa: ASYNC110 - it ends at once
                await asyncio.sleep(LOOK_SECONDS / 50)

    async def _is_there(self, consequence: str) -> bool:
        try:
            is_there = await self._admin.topics.is_partitioned(self.topic)
        except NotPermitted as error:
            log.warning("%s may not be looked for, %s: %s", self.topic, consequence, error)
            is_there = False
        if is_there:
            self._note_that_it_is_there()
        else:
            self._missing.say(asyncio.get_running_loop().time())
        return is_there

    def _note_that_it_is_there(self) -> None:
        self.has_seen_its_topic = True
        self._missing.deny()

    @property
    def _may_be_missing(self) -> bool:
        """Whether an answer that the topic is missing is believed now. One that never saw the topic has nothing to hold
        against it.
        """
        return not self.has_seen_its_topic or self._missing.is_believed(asyncio.get_running_loop().time())
