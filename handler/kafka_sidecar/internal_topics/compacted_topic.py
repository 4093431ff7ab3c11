"""An internal topic in which the last message of each key counts: read it compacted, write a key."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Final

from google.protobuf.message import DecodeError

from kafka_sidecar.internal_topics.internal_storage import may_free
from kafka_sidecar.loop.clock import Clock
from kafka_sidecar.pulsar.entry import Position, RawEntry
from kafka_sidecar.pulsar.errors import PulsarError, Unavailable
from kafka_sidecar.pulsar.events import ConsumerEvents, ProducerEvents
from kafka_sidecar.pulsar.messages import Message, write_batch
from kafka_sidecar.pulsar.ports import BatchProducer, Client, EntryReader
from kafka_sidecar.pulsar.raw_entries import Patience

# Message property of a tombstone: the value that it deletes.
DELETES: Final = "deletes"
# Message key of markers, which are not records.
MARKER_KEY: Final = b"kafka-sidecar"


@dataclass(frozen=True, slots=True)
class CompactedTopic:
    """The topic as it is read; of what was compacted only the last of each key."""

    client: Client
    topic: str
    patience: Patience = field(default_factory=Patience, compare=False)

    async def reader(self, start: Position | None, events: ConsumerEvents) -> EntryReader:
        return await self.client.reader(self.topic, start, events, compacted=True, purpose="load")


def deleted_by(message: Message) -> bytes | None:
    """The value that a deletion says it deletes."""
    return next((value for name, value in message.properties if name == DELETES), None)


def first_index_of(entry: RawEntry) -> int | None:
    """The index of its first message; None where its broker adds none, or where nobody can read how many messages it
    has.
    """
    if entry.last_index is None:
        return None
    try:
        return entry.last_index - max(1, entry.message_metadata.num_messages_in_batch) + 1
    except DecodeError:
        return None


async def check_beginning(client: Client, topic: str, compacted_ledger: int | None, first_index: int | None) -> None:
    """Raise Unavailable where the log of `topic` begins behind its first message, and its broker knows nothing that is
    compacted: what counts may be lost. Brokers to which nothing is given to free are not asked for that, for they may
    have wasted an index.
    """
    if (
        compacted_ledger == -1
        and first_index is not None
        and first_index > 0
        and may_free(await client.version_of_owner(topic))
    ):
        raise Unavailable(
            f"{topic} begins with message {first_index}, and its broker does not know what was compacted of those "
            f"before. To go on without these, run pulsar-admin topics compact {topic}"
        )


class KeyedWrites(ProducerEvents):
    """What was sent to one topic and has no receipt yet."""

    def __init__(self, topic: str, clock: Clock) -> None:
        loop = asyncio.get_running_loop()
        self.producer: BatchProducer | None = None
        self.lost: asyncio.Future[PulsarError] = loop.create_future()
        self._topic = topic
        self._clock = clock
        self._next = 0
        self._waiting: dict[int, asyncio.Future[Position]] = {}

    @property
    def ended(self) -> PulsarError | None:
        return self.lost.result() if self.lost.done() else None

    def send(self, key: bytes, value: bytes | None) -> asyncio.Future[Position]:
        """Where it is stored. Nobody need wait for it."""
        return self._send(write_batch([(key, value)], self._clock.wall()))

    def send_deletion(self, key: bytes, deleted: bytes) -> asyncio.Future[Position]:
        """Of this value, and of none that was written meanwhile."""
        return self._send(write_batch([(key, None)], self._clock.wall(), (DELETES, deleted)))

    def _send(self, payload: bytes) -> asyncio.Future[Position]:
        stored: asyncio.Future[Position] = asyncio.get_running_loop().create_future()
        stored.add_done_callback(_looked_at)
        if self.ended is not None or self.producer is None:
            stored.set_exception(self.ended or Unavailable("there is no producer"))
            return stored
        self.producer.send_batch(self._next, 1, payload)
        self._waiting[self._next] = stored
        self._next += 1
        return stored

    def fail(self, reason: PulsarError) -> None:
        if not self.lost.done():
            self.lost.set_result(reason)
        waiting, self._waiting = self._waiting, {}
        for stored in waiting.values():
            if not stored.done():
                stored.set_exception(reason)

    def on_receipt(self, sequence: int, ledger: int, entry: int) -> None:
        stored = self._waiting.pop(sequence, None)
        if stored is not None and not stored.done():
            stored.set_result(Position(ledger, entry))

    def on_send_error(self, sequence: int, code: int, message: str) -> None:
        self.fail(Unavailable(f"{self._topic} could not be written (error {code}): {message}"))

    def on_end(self, reason: PulsarError) -> None:
        self.fail(reason)


def _looked_at(stored: asyncio.Future[Position]) -> None:
    """Nobody may be waiting for it."""
    if not stored.cancelled():
        stored.exception()
