"""The twin of an internal topic of which the last message of each key counts."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from kafka_sidecar.internal_topics.compacted_topic import MARKER_KEY
from kafka_sidecar.pulsar.admin import COMPACTION
from kafka_sidecar.pulsar.entry import CompactionStats, LedgerInfo, LogStats, Position, RawEntry
from kafka_sidecar.pulsar.errors import TopicMissing, Unavailable
from kafka_sidecar.pulsar.events import ConsumerEvents, ProducerEvents
from kafka_sidecar.pulsar.messages import read_messages
from kafka_sidecar.pulsar.pulsar_api_pb2 import MessageMetadata
from kafka_sidecar.pulsar.raw_entries import permits_of


@dataclass
class InternalTopic:
    """All partitions of one, as if they were one, with its client and its admin API."""

    there: bool = False
    entries: list[RawEntry] = field(default_factory=list)
    readers: list[Reader] = field(default_factory=list)
    writers: list[Writer] = field(default_factory=list)
    refuse: int = 0
    making: int = 1  # partitions
    ledger: int = 1
    compacted_to: Position | None = None
    gone: int = 0  # entries that retention has taken: of these readers are given what is compacted
    left_out: set[int] = field(default_factory=set)  # entries that compaction has left out
    lost: set[int] = field(default_factory=set)  # entries that readers of the log itself are not given
    slow_from: int | None = None  # these readers are given none from there on
    gives_nothing: bool = False  # a broker under load
    compacts_while_read: int = 0  # so many of the next readings
    readers_opened: int = 0
    seconds_until_first: float = 0.0  # that each reader waits for its first entry

    @property
    def cluster(self) -> InternalTopic:
        return self

    async def create_namespace(self, namespace: str) -> None: ...

    async def keep_for_ever(self, namespace: str) -> None: ...

    @property
    def topics(self) -> InternalTopic:
        return self

    @property
    def subscriptions(self) -> InternalTopic:
        return self

    async def acknowledged(self, partition: str, name: str) -> Position | None:
        assert name == COMPACTION
        return self.compacted_to

    async def is_partitioned(self, topic: str) -> bool:
        return self.there

    async def partitions(self, topic: str) -> int:
        if not self.there:
            raise TopicMissing(topic)
        return self.making

    async def create_topic(self, topic: str, partitions: int) -> None:
        self.there = True

    async def create_missing_partitions(self, topic: str) -> None:
        await self.partitions(topic)

    async def created_at(self, topic: str) -> str:
        if not self.there:
            raise Unavailable("500")  # as brokers of all versions do
        return f"when ledger {self.ledger} was"

    async def log_stats(self, topic: str) -> LogStats:
        await self.partitions(topic)
        return LogStats((LedgerInfo(self.ledger, len(self.entries), 1),) if len(self.entries) > self.gone else ())

    async def compaction_stats(self, topic: str) -> CompactionStats:
        ledger = -1 if self.compacted_to is None else 1_000 + self.compacted_to.entry
        return CompactionStats(await self.log_stats(topic), self.compacted_to, ledger, ledger, 0, 0)

    async def compacted_ledger(self, topic: str) -> int:
        return (await self.compaction_stats(topic)).compacted_ledger

    async def producer(self, topic: str, name: str, events: ProducerEvents, purpose: str) -> Writer:
        if self.refuse:
            self.refuse -= 1
            raise Unavailable("no broker")
        await self.partitions(topic)
        self.writers.append(Writer(self, events))
        return self.writers[-1]

    async def reader(
        self, topic: str, start: Position | None, events: ConsumerEvents, compacted: bool = False, purpose: str = ""
    ) -> Reader:
        if not compacted:
            first = self.gone if start is None else max(self.gone, start.entry)
            self.readers.append(Reader(self, events, first, is_compacted=False))
            return self.readers[-1]
        self.readers_opened += 1
        if self.compacts_while_read:
            self.compacts_while_read -= 1
            self.compacted_to = Position(self.ledger, len(self.entries) - 1)
        self.readers.append(Reader(self, events, 0 if start is None or start.ledger != self.ledger else start.entry))
        return self.readers[-1]

    def delete(self) -> None:
        self.lose()
        self.entries.clear()
        self.there = False
        self.ledger += 1

    def lose(self) -> None:
        writers, self.writers = self.writers, []
        readers, self.readers = self.readers, []
        for writer in writers:
            writer.events.on_end(Unavailable("connection lost"))
        for reader in readers:
            reader.events.on_end(Unavailable("connection lost"))

    def stored(self) -> list[tuple[bytes | None, bytes | None]]:
        messages = [
            message for entry in self.entries for message in read_messages(entry.message_metadata, entry.payload)
        ]
        return [(one.key, one.value) for one in messages if one.key != MARKER_KEY]


@dataclass
class Writer:
    topic: InternalTopic
    events: ProducerEvents

    def send_batch(self, sequence: int, count: int, payload: bytes) -> None:
        metadata = MessageMetadata(
            producer_name=b"w", sequence_id=sequence, publish_time=1, num_messages_in_batch=count
        )
        position = Position(self.topic.ledger, len(self.topic.entries))
        self.topic.entries.append(RawEntry(position, None, None, metadata.SerializeToString(), memoryview(payload)))
        asyncio.get_running_loop().call_soon(self.events.on_receipt, sequence, *position)
        for reader in self.topic.readers:
            reader.deliver()

    def close(self) -> None:
        if self in self.topic.writers:
            self.topic.writers.remove(self)


@dataclass
class Reader:
    topic: InternalTopic
    events: ConsumerEvents
    given: int = 0
    permits: int = 0
    is_compacted: bool = True

    def grant(self, permits: int) -> None:
        self.permits += permits
        if self.given or not self.topic.seconds_until_first:
            self.deliver()
        else:
            asyncio.get_running_loop().call_later(self.topic.seconds_until_first, self._deliver_later)

    def _deliver_later(self) -> None:
        if self in self.topic.readers:
            self.deliver()

    def deliver(self) -> None:
        topic, end = self.topic, len(self.topic.entries)
        if not self.is_compacted and topic.slow_from is not None:
            end = min(end, topic.slow_from)
        hidden = topic.left_out if self.is_compacted else topic.lost
        while self.permits > 0 and self.given < end and not topic.gives_nothing:
            self.given += 1
            if self.given - 1 not in hidden:
                entry = topic.entries[self.given - 1]
                self.permits -= permits_of(entry)  # an entry is given whole
                self.events.on_entry(entry)

    def close(self) -> None:
        if self in self.topic.readers:
            self.topic.readers.remove(self)
