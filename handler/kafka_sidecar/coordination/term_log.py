"""One shard of an internal topic as its leader uses it: taken, read to its end, written.

`TermLog` is the port of a term; the tests have a twin of it. A sidecar that takes a log writes a marker as its
first entry and reads up to it: producers before are gone by then, so nothing of theirs comes behind
the marker, and unlike the last entry a broker names, the marker is always delivered, compaction or not.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final, Generic, Protocol, TypeVar

from kafka_sidecar.coordination.codec import Codec, Pair
from kafka_sidecar.coordination.home import Home
from kafka_sidecar.coordination.named_topics import NamedTopics
from kafka_sidecar.internal_topics.compacted_topic import check_beginning, first_index_of
from kafka_sidecar.loop.clock import Clock
from kafka_sidecar.loop.ids import NewId
from kafka_sidecar.loop.pace import Pace
from kafka_sidecar.pulsar.entry import Position, RawEntry
from kafka_sidecar.pulsar.errors import PulsarError, Unavailable
from kafka_sidecar.pulsar.events import ConsumerEvents
from kafka_sidecar.pulsar.messages import Message, read_messages, write_batch
from kafka_sidecar.pulsar.ports import Admin, BatchProducer, Client, EntryReader
from kafka_sidecar.pulsar.producer import WAIT_FOR_EXCLUSIVE
from kafka_sidecar.pulsar.raw_entries import permits_of
from kafka_sidecar.telemetry import metrics

log = logging.getLogger(__name__)

# The key of a marker has a record type that Kafka does not know, so Kafka's tools skip the marker.
MARKER_KEY: Final = b"\x7f\xffkafka-sidecar"
# Key of the record that names the namespace of this log's short topic names (see `home`).
HOME_KEY: Final = b"\x7f\xffkafka-sidecar-home"
# Flow permits of the reader, as Pulsar's default receiverQueueSize.
PERMITS: Final = 1_000
# Loading took up to 13 s on a broker under load; a reader that hears nothing for longer is opened again.
SILENCE_SECONDS: Final = 15.0
# A broker drops the exclusive producer of a dead sidecar within 60 s (twice keepAliveIntervalSeconds).
EXCLUSIVE_SECONDS: Final = 60.0
METADATA_ALLOWANCE: Final = 1_024
# Tenant/namespace, with the characters that Pulsar's NamedEntity allows.
_NAMESPACE: Final = re.compile(r"[a-zA-Z0-9_.=:-]+/[a-zA-Z0-9_.=:-]+")
NOWHERE: Final = Position(-1, -1)


R = TypeVar("R")
# Called with a record, and with True for a legacy record that compaction would lose (see `codec.LegacyReader`).
OnRecord = Callable[[R, bool], None]


class TermLog(Protocol[R]):
    """A log for one term. Every call may raise PulsarError; once it has a `lost_reason` nothing is written any more."""

    lost_reason: PulsarError | None

    def fail(self, reason: PulsarError) -> None: ...

    async def become_only_writer(self, on_lost: Callable[[PulsarError], None]) -> None: ...
    async def read(self, on_record: OnRecord[R]) -> None: ...
    def append_marker(self) -> None: ...
    def append(self, records: Sequence[R], stored: Callable[[], None]) -> None: ...
    def delete_legacy(self) -> None: ...
    def fits(self, record: R) -> bool: ...
    def oldest_write(self) -> float | None: ...
    def close(self) -> None: ...


class PulsarTermLog(TermLog[R]):
    def __init__(
        self,
        client: Client,
        admin: Admin,
        topic: str,
        codec: Codec[R],
        home: Home,
        producer: str,
        clock: Clock,
        new_id: NewId,
    ) -> None:
        self._clock = clock
        self._new_id = new_id
        self._codec = codec
        self._home = home
        self._producer_name = producer
        self._client = client
        self._admin = admin
        self._topic = topic
        self._loop = asyncio.get_running_loop()
        self._producer: BatchProducer | None = None
        self._on_lost: Callable[[PulsarError], None] = lambda _: None
        self._next = 0
        self._stored = -1  # sequence id of the last write that has its receipt
        # Callbacks, each with the sequence id of the receipt that it waits for.
        self._waiting: deque[tuple[int, Callable[[], None]]] = deque()
        self._sent_at: deque[float] = deque()
        self.lost_reason: PulsarError | None = None
        self._marker_at: asyncio.Future[Position] = self._loop.create_future()
        self._home_announced: asyncio.Future[None] = self._loop.create_future()
        self._legacy_keys: set[bytes] = set()

    async def become_only_writer(self, on_lost: Callable[[PulsarError], None]) -> None:
        """Become the only producer. The one before can't write any more when this returns.

        By waiting for the other to go, which it does when it loses the election or its broker. Taking the
        place at once (PIP-161) lets two in when both try at the same time: the broker fences whom it has,
        not a producer that is about to come. And brokers before 2.11 take that mode for no mode at all.
        """
        self._on_lost = on_lost
        # Each producer gets a new name: a broker with deduplication would discard sequence ids that it knows of an old
        # name.
        name = f"{self._producer_name}-{self._new_id()}"
        self._producer = await self._client.producer(
            self._topic, name, self, access_mode=WAIT_FOR_EXCLUSIVE, wait_seconds=EXCLUSIVE_SECONDS, purpose="lead"
        )
        self.append_marker()

    async def read(self, on_record: OnRecord[R]) -> None:
        """Everything up to the marker, in order; of what was compacted only the last of each key.

        Where short names are found to mean other topics than was taken for granted, it has to be read again.
        """
        before = await self._admin.topics.compacted_ledger(self._topic)
        self._legacy_keys.clear()
        reading = _Reading(self._topic, self._codec, self._home, on_record, self._marker_at, self._legacy_keys)
        reader = await self._client.reader(self._topic, None, reading, compacted=True, purpose="load")
        try:
            await reading.to_marker(reader)
        finally:
            reader.close()
        if await self._admin.topics.compacted_ledger(self._topic) != before:
            # A record that was read before the compaction may have been deleted since, and compaction may have removed
            # its tombstone.
            raise Unavailable(f"{self._topic} was compacted while it was read")
        await check_beginning(self._client, self._topic, before, reading.first_index)
        if not reading.says_home:
            await self._say_home(reading.named)

    async def _say_home(self, named: NamedTopics) -> None:
        """Return when it is stored. A broker may refuse an entry and take the one behind it, which would have short
        names.
        """
        namespace = await self._home.whose(named.ids)
        _check_home(self._topic, self._home, namespace)
        self._send([(HOME_KEY, namespace.encode())])
        self.after_writes(self._on_home_stored)
        await self._home_announced

    def _on_home_stored(self) -> None:
        if not self._home_announced.done():  # a receipt may still arrive after the producer is lost
            self._home_announced.set_result(None)

    def append_marker(self) -> None:
        """A record that says nothing. Its receipt proves that nobody else has written since this one became the only
        writer.
        """
        self._send([(MARKER_KEY, self._topic.encode())])

    def append(self, records: Sequence[R], stored: Callable[[], None]) -> None:
        """Write the records as one entry, or as several: at the size limit, and wherever tombstones and values meet.

        The log calls `stored` when all of them have their receipts, in the order of the appends.
        """
        messages = [self._written(record) for record in records]
        assert self._producer is not None
        room = self._producer.max_message_size - METADATA_ALLOWANCE
        part: list[Pair] = []
        used = 0
        for key, value in messages:
            size = _size(key, value)
            # Compaction in Pulsar before 2.10.6 and 2.11.3 may drop a whole batch that contains a tombstone
            # (apache/pulsar#20980). So tombstones and values go into separate entries.
            mixed = bool(part) and (part[-1][1] is None) != (value is None)
            if part and (mixed or used + size > room):
                self._send(part)
                part, used = [], 0
            part.append((key, value))
            used += size
        if part:
            self._send(part)
        self.after_writes(stored)

    def fits(self, record: R) -> bool:
        """Whether a record can be written at all."""
        assert self._producer is not None
        return _size(*self._written(record)) <= self._producer.max_message_size - METADATA_ALLOWANCE

    def _written(self, record: R) -> Pair:
        names = self._home.to_stored
        return self._codec.write(record if names is None else self._codec.translated(record, names))

    def oldest_write(self) -> float | None:
        """Since when a write has waited for its receipt."""
        return self._sent_at[0] if self._sent_at else None

    def after_writes(self, done: Callable[[], None]) -> None:
        """Call `done` when all that was written so far is stored: now, if nothing is under way."""
        if self._stored < self._next - 1:
            self._waiting.append((self._next - 1, done))
        else:
            done()

    def delete_legacy(self) -> None:
        """Delete the messages of Kafka-on-Pulsar, by their own keys. The records that count must have been written
        again.
        """
        keys, self._legacy_keys = self._legacy_keys, set()
        for key in sorted(keys):
            self._send([(key, None)])

    def _send(self, messages: Sequence[Pair]) -> None:
        if self._producer is None:
            raise Unavailable(f"{self._topic} is not taken")
        payload = write_batch(messages, self._clock.wall())
        self._producer.send_batch(self._next, len(messages), payload)
        self._sent_at.append(self._loop.time())
        self._next += 1

    def close(self) -> None:
        self._on_lost = lambda _: None
        if self._producer is not None:
            self._producer.close()
            self._producer = None
        self._waiting.clear()
        self._sent_at.clear()
        for waiting in (self._marker_at, self._home_announced):
            if not waiting.done():
                waiting.cancel()

    # --- from the producer

    def on_receipt(self, sequence: int, ledger: int, entry: int) -> None:
        if sequence == 0 and not self._marker_at.done():
            self._marker_at.set_result(Position(ledger, entry))
        if sequence != self._stored + 1 or ledger >= 2**63:
            self.fail(Unavailable(f"{self._topic}: receipt {sequence} at {ledger}:{entry} came after {self._stored}"))
            return
        self._stored = sequence
        self._sent_at.popleft()
        while self._waiting and self._waiting[0][0] <= sequence:
            self._waiting.popleft()[1]()

    def on_send_error(self, sequence: int, code: int, message: str) -> None:
        self.fail(Unavailable(f"{self._topic} could not be written (error {code}): {message}"))

    def on_end(self, reason: PulsarError) -> None:
        self.fail(reason)

    def fail(self, reason: PulsarError) -> None:
        """Nothing is written any more. The term hears of it, whether it still reads or serves already."""
        if self.lost_reason is None:
            self.lost_reason = reason
            for waiting in (self._marker_at, self._home_announced):
                if not waiting.done():
                    waiting.set_exception(reason)
                    # Marks the exception as retrieved: asyncio would log it if nobody awaits the future yet.
                    waiting.exception()
            self._on_lost(reason)


def _check_home(topic: str, home: Home, namespace: str) -> None:
    """Raises Unavailable where the log was read as if it meant other topics by short names."""
    if namespace != home.namespace:
        home.learn(namespace)
        raise Unavailable(f"{topic} has short names for the topics of {namespace}: it is read once more")


def _size(key: bytes, value: bytes | None) -> int:
    """The bytes that a message takes in an entry, and a few more."""
    return 2 * len(key) + len(value or b"") + 64


class _Reading(ConsumerEvents, Generic[R]):
    """A reader on its way to the marker."""

    def __init__(
        self,
        topic: str,
        codec: Codec[R],
        home: Home,
        on_record: OnRecord[R],
        marker_at: asyncio.Future[Position],
        legacy_keys: set[bytes],
    ) -> None:
        self._topic = topic
        self._codec = codec
        self._home = home
        self.says_home = False
        self.named = NamedTopics()
        self._on_record = on_record
        self._legacy_reader = codec.legacy_reader()
        self._legacy_keys = legacy_keys  # message keys whose last message is from Kafka-on-Pulsar
        self._marker_at = marker_at
        self._entries: deque[RawEntry] = deque()  # bounded by the flow permits granted to the broker
        self._reached: Position | None = None
        self.first_index: int | None = None
        self._ended: PulsarError | None = None
        self._news = asyncio.Event()
        marker_at.add_done_callback(lambda _: self._news.set())

    async def to_marker(self, reader: EntryReader) -> None:
        """Tell of every record up to the marker. Raises PulsarError."""
        pace = Pace()
        taken = 0
        reader.grant(PERMITS)
        while not self._is_at_marker():
            if not self._entries:
                await self._wait()
                continue
            entry = self._entries.popleft()
            if self._reached is not None and entry.position <= self._reached:
                continue  # the broker's dispatcher has rewound, and sends this entry again
            for message in self._messages(entry):
                self._deliver(message, entry.position)
                await pace.maybe_yield()
            self._reached = entry.position
            taken += permits_of(entry)
            if taken >= PERMITS // 2:
                reader.grant(taken)
                taken = 0

    def _is_at_marker(self) -> bool:
        """Raises what the marker could not be written for."""
        if self._marker_at.cancelled():
            raise Unavailable("the term is over")
        return self._marker_at.done() and self._marker_at.result() <= (self._reached or NOWHERE)

    async def _wait(self) -> None:
        if self._ended is not None:
            raise self._ended
        self._news.clear()
        try:
            async with asyncio.timeout(SILENCE_SECONDS):
                await self._news.wait()
        except TimeoutError as error:
            raise Unavailable(f"nothing came for {SILENCE_SECONDS:.0f} s") from error

    def _deliver(self, message: Message, position: Position) -> None:
        if message.key is None or message.key == MARKER_KEY:
            return
        if message.key == HOME_KEY:
            self._note_home(message.value or b"")
            return
        try:
            pairs = self._legacy_reader.records(message.value) if message.value else None
            (self._legacy_keys.discard if pairs is None else self._legacy_keys.add)(message.key)
            for key, value in pairs if pairs is not None else [(message.key, message.value or None)]:
                record = self._codec.read(key, value)
                if record is not None:
                    if not self.says_home:
                        self.named.note(self._codec.topics_of(record))
                    names = self._home.to_own
                    self._on_record(
                        record if names is None else self._codec.translated(record, names), pairs is not None
                    )
        except Exception as error:  # any client may have written invalid bytes to the topic
            metrics.UNREADABLE_ENTRIES.inc()
            log.error("a message in entry %s of %s is passed over: %s", position, self._topic, error)

    def _note_home(self, value: bytes) -> None:
        namespace = value.decode(errors="replace")
        if not _NAMESPACE.fullmatch(namespace):
            log.error("%s does not say which namespace has short names: %r", self._topic, namespace)
            return
        self.says_home = True
        _check_home(self._topic, self._home, namespace)

    def _messages(self, entry: RawEntry) -> list[Message]:
        try:
            if self._reached is None:
                self.first_index = first_index_of(entry)
            return read_messages(entry.message_metadata, entry.payload)
        except Exception as error:  # any client may have written invalid bytes to the topic
            metrics.UNREADABLE_ENTRIES.inc()
            log.error("entry %s of %s can't be read and is passed over: %s", entry.position, self._topic, error)
            return []

    # --- from the reader

    def on_entry(self, entry: RawEntry) -> None:
        self._entries.append(entry)
        self._news.set()

    def on_end(self, reason: PulsarError) -> None:
        self._ended = reason
        self._news.set()
