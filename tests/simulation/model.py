"""Pulsar, as far as one topic goes: its ledgers, the index, the connections to its broker, and what its admin API answers.

    SEND ──▶ on its way ──▶ lands: has a place and an index ──▶ stored: readers are given it ──▶ receipt on its way
               │ cut: lost, or lands late   │ crash: recovered, or gone, and its index is given again

Messages of one connection keep their order in both directions. Where Pulsar's own code says so, its class and method are named.
"""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Callable
from contextvars import Context
from dataclasses import dataclass
from random import Random
from typing import Final

from handler.coordination.kept_places import Kept
from handler.partition.log.log_config import AS_IT_COMES, LogConfig
from handler.partition.log.moved_start import MovedStart
from handler.pulsar.entry import LedgerInfo, LogStats, Position, RawEntry
from handler.pulsar.errors import CHECKSUM_ERROR, PulsarError, Unavailable
from handler.pulsar.events import ConsumerEvents, ProducerEvents
from handler.pulsar.pulsar_api_pb2 import MessageMetadata
from handler.pulsar.raw_entries import permits_of
from tests.simulation.chance import Chance
from tests.simulation.plan import Bounds

# MessageDeduplication answers a duplicate with MessageId(-1, -1), which is unsigned in the protocol.
# A ledger is kept for at least so long after it was closed. Brokers keep theirs for minutes.
LEAST_RETENTION_SECONDS: Final = 15.0
KNOWN_ALREADY: Final = 2**64 - 1
# PersistenceError: the producer is to connect again.
REFUSED: Final = 2
MARKER: Final = b"pulsar.marker"
# A topic that was moved is often moved again: two brokers balance their load.
ORPHANED_WITHIN_SECONDS: Final = 2.0
MAX_MESSAGE_SIZE: Final = 5 * 1024 * 1024
NOBODYS: Final = Context()


@dataclass(slots=True)
class _Adding:
    entry: RawEntry
    writer: Writer
    sequence: int


class Topic:
    def __init__(self, loop: asyncio.AbstractEventLoop, chance: Chance, bounds: Bounds) -> None:
        self.loop = loop
        self.bounds = bounds
        self.chance = chance
        self.is_calm = False  # faults are over
        self.entries: list[RawEntry] = []
        self.trimmed = 0  # entries at the front that retention took
        self.index = -1
        self.index_property: int | None = None
        self.transactions_behind: Position | None = None
        self.connections: dict[Connection, None] = {}
        self.writers: list[Writer] = []  # that the broker knows, or has known
        self.moved_start: MovedStart | None = None  # by clients
        self.kept: dict[bytes, list[Kept]] = {}  # what sidecars have kept of the log, by key: every value
        self._ledger = 1
        self._ended: dict[int, float] = {}  # when each ledger was closed
        self._in_ledger = 0
        self._adding: deque[_Adding] = deque()
        self._stored_at = 0.0
        self._pushed: dict[str, int] = {}  # MessageDeduplication.highestSequencedPushed
        self._opened: dict[str, int] = {}
        self._disk = chance.of("disk")
        self._orphans = chance.of("orphans")
        self._unloaded_at = -math.inf

    @property
    def present(self) -> list[RawEntry]:
        return self.entries[self.trimmed :]

    # --- what is appended

    def land(self, writer: Writer, sequence: int, metadata: MessageMetadata, count: int, payload: bytes) -> None:
        draw = writer.draw
        if not self.is_calm and draw.random() < self.bounds.refused_sends:
            is_alone = draw.random() < 0.5  # Producer.checkAndStartPublish: a wrong checksum is of no other entry's concern
            writer.down(lambda: writer.events.on_send_error(sequence, CHECKSUM_ERROR if is_alone else REFUSED, "scripted"))
            writer.is_known = is_alone
            return
        if self.bounds.deduplicates:
            if sequence <= self._pushed.get(writer.name, -1):
                writer.down(lambda: writer.events.on_receipt(sequence, KNOWN_ALREADY, KNOWN_ALREADY))
                return
            self._pushed[writer.name] = sequence
        position = Position(self._ledger, self._in_ledger)
        self._in_ledger += 1
        self.index += count
        stamp = int(self.loop.time() * 1000)
        entry = RawEntry(position, self.index, stamp, metadata.SerializeToString(), memoryview(payload))
        self._adding.append(_Adding(entry, writer, sequence))
        self._stored_at = max(self._stored_at + 1e-6, self.loop.time() + self._disk.choice((0.0, 0.0005, 0.002, 0.02)))
        self.loop.call_at(self._stored_at, self._store, entry, context=NOBODYS)

    def mark(self) -> None:
        """ReplicatedSubscriptionsController.writeMarker: a message of the broker's own."""
        if self._adding:
            return
        position = Position(self._ledger, self._in_ledger)
        self._in_ledger += 1
        self.index += 1
        metadata = MessageMetadata(producer_name=MARKER, sequence_id=0, publish_time=1, marker_type=10)
        self.entries.append(RawEntry(position, self.index, int(self.loop.time() * 1000), metadata.SerializeToString(), memoryview(b"")))

    def _store(self, entry: RawEntry) -> None:
        if not self._adding or self._adding[0].entry is not entry:
            return  # it was lost, or recovered
        added = self._adding.popleft()
        self._keep(added.entry)
        writer = added.writer
        if self.is_calm or writer.draw.random() >= self.bounds.lost_receipts:
            writer.down(lambda: writer.events.on_receipt(added.sequence, entry.position.ledger, entry.position.entry))

    def _keep(self, entry: RawEntry) -> None:
        self.entries.append(entry)
        for connection in list(self.connections):
            if isinstance(connection, Reader):
                connection.wake()

    def copy(self, metadata: MessageMetadata, count: int, payload: bytes) -> None:
        """PersistentReplicator: an entry of another cluster is stored."""
        position = Position(self._ledger, self._in_ledger)
        self._in_ledger += 1
        self.index += count
        self._keep(RawEntry(position, self.index, int(self.loop.time() * 1000), metadata.SerializeToString(), memoryview(payload)))

    @property
    def next_position(self) -> Position:
        return Position(self._ledger, self._in_ledger)

    # --- what becomes of the topic

    def roll(self) -> None:
        if not self._adding:
            self._new_ledger()

    def unload(self) -> None:
        """What was being added is stored; nobody hears of it any more."""
        self._unloaded_at = self.loop.time()
        self._end(len(self._adding))

    def is_being_closed(self) -> bool:
        """PersistentTopic.close: a subscription that is added behind those that it has ended stands at what is closed, unnoticed."""
        is_near = self.loop.time() - self._unloaded_at < ORPHANED_WITHIN_SECONDS
        return is_near and not self.is_calm and self._orphans.random() < self.bounds.orphans

    def crash(self) -> None:
        """Ledger recovery keeps what some bookie has: from the first on, as far as it goes."""
        self._end(self._disk.randint(0, len(self._adding)))

    def _end(self, recovered: int) -> None:
        for added in list(self._adding)[:recovered]:
            self.entries.append(added.entry)
        self._adding.clear()
        self.index = self.entries[-1].last_index if self.entries else -1  # type: ignore[assignment]
        for connection in list(self.connections):
            connection.cut()
            if isinstance(connection, Writer):
                connection.is_known = False  # what is on its way comes to a broker that does not know it
        self._pushed = self._stored_sequences() if self.bounds.deduplicates else {}
        self._new_ledger()

    def _new_ledger(self) -> None:
        self._ended[self._ledger] = self.loop.time()
        self._ledger += 1
        self._in_ledger = 0
        self._note_index()

    def _note_index(self) -> None:
        """ManagedLedgerInterceptorImpl.onUpdateManagedLedgerInfo: as it is now, also of what is being added."""
        self.index_property = self.index if self.index >= 0 else None

    def _stored_sequences(self) -> dict[str, int]:
        """MessageDeduplication.replayCursor"""
        found: dict[str, int] = {}
        for entry in self.entries:
            metadata = entry.message_metadata
            if is_marker(entry):
                continue
            name = metadata.producer_name.decode()
            found[name] = max(found.get(name, -1), metadata.highest_sequence_id or metadata.sequence_id)
        return found

    def trim(self) -> None:
        """Whole ledgers go, and never the one that is written, or one that was just closed."""
        present = self.present
        if not present:
            return
        first = present[0].position.ledger
        if self._ended.get(first, math.inf) + LEAST_RETENTION_SECONDS < self.loop.time():
            self.trimmed += sum(entry.position.ledger == first for entry in present)
            self._note_index()

    # --- what it answers

    def opens(self, kind: str, owner: str) -> str:
        """The name of a connection: of its owner, and which one of its kind it is."""
        key = f"{owner}/{kind}"
        self._opened[key] = self._opened.get(key, 0) + 1
        return f"{key}/{self._opened[key]}"

    def stats(self) -> LogStats:
        ledgers: dict[int, list[RawEntry]] = {}
        for entry in self.present:
            ledgers.setdefault(entry.position.ledger, []).append(entry)
        return LogStats(
            tuple(LedgerInfo(one, held[-1].position.entry + 1, sum(len(entry.payload) for entry in held)) for one, held in ledgers.items())
        )

    def last_named(self) -> Position | None:
        named = [one for one in self.present if self.bounds.names_markers or not is_marker(one)]
        return named[-1].position if named else None

    def has_writer(self, name: str) -> bool:
        return any(one.name == name and one.is_known for one in self.writers)


class Connection:
    """To the broker, of one producer or consumer."""

    def __init__(self, topic: Topic, name: str, context: Context) -> None:
        self.topic = topic
        self.draw = topic.chance.of(name)
        self.is_open = True  # as its client sees it
        self._context = context
        self._up_at = 0.0
        self._down_at = 0.0
        topic.connections[self] = None

    def delay(self) -> float:
        return delay(self.draw, self.topic.bounds)

    def up(self, arrive: Callable[[], None]) -> None:
        self._up_at = max(self._up_at + 1e-6, self.topic.loop.time() + self.delay())
        self.topic.loop.call_at(self._up_at, arrive, context=NOBODYS)

    def down(self, arrive: Callable[[], None]) -> None:
        self._down_at = max(self._down_at + 1e-6, self.topic.loop.time() + self.delay())
        self.topic.loop.call_at(self._down_at, self._arrived, arrive, context=self._context)

    def _arrived(self, arrive: Callable[[], None]) -> None:
        if self.is_open:
            arrive()

    def belongs_to(self, context: Context) -> bool:
        return self._context is context

    def vanish(self) -> None:
        """The process at its other end is gone, and hears no more."""
        self.is_open = False
        self.cut()

    def forget(self) -> None:
        self.topic.connections.pop(self, None)

    def cut(self, reason: PulsarError | None = None) -> None:
        self.forget()
        if self.is_open:
            self.topic.loop.call_later(self.delay(), self._lost, reason or Unavailable("cut"), context=self._context)

    def _lost(self, reason: PulsarError) -> None:
        if self.is_open:
            self.is_open = False
            self.tell_end(reason)

    def tell_end(self, reason: PulsarError) -> None:
        raise NotImplementedError


class Writer(Connection):
    max_message_size = MAX_MESSAGE_SIZE

    def __init__(self, topic: Topic, name: str, events: ProducerEvents, context: Context) -> None:
        super().__init__(topic, topic.opens("writer", name), context)
        self.events = events
        self.name = name
        self.is_known = True  # to the broker; what lands of another is dropped (ServerCnx.handleSend)
        topic.writers = [one for one in topic.writers if one.is_known]
        topic.writers.append(self)

    def send(self, sequence: int, count: int, fields: bytes, payload: bytes | bytearray, basis: tuple[bytes, bytes] | None) -> None:
        if not self.is_open:
            return
        metadata = MessageMetadata(producer_name=self.name.encode(), sequence_id=sequence, publish_time=1)
        metadata.MergeFromString(fields)
        if basis is not None:
            metadata.properties.add(key=basis[0], value=basis[1])
        data = bytes(payload)
        self.up(lambda: self.topic.land(self, sequence, metadata, count, data) if self.is_known else None)

    def cut(self, reason: PulsarError | None = None) -> None:
        if self.draw.random() < 0.5:
            self.is_known = False
        else:
            self.up(self._unknown)  # ServerCnx.channelInactive: what is on its way lands first, and keeps the name taken
        super().cut(reason)

    def close(self) -> None:
        self.is_open = False
        self.up(self._closed)  # behind what was sent

    def _closed(self) -> None:
        self._unknown()
        self.forget()

    def _unknown(self) -> None:
        self.is_known = False

    def abort_connection(self, reason: PulsarError) -> None:
        self.cut(reason)

    def tell_end(self, reason: PulsarError) -> None:
        self.events.on_end(reason)


class Reader(Connection):
    def __init__(self, topic: Topic, owner: str, start: Position | None, events: ConsumerEvents, context: Context) -> None:
        super().__init__(topic, topic.opens("reader", owner), context)
        self._next = start
        self._events = events
        self._permits = 0
        self._is_woken = False
        self._last_of_closed = [topic.last_named()] if topic.is_being_closed() else []

    def grant(self, permits: int) -> None:
        self.up(lambda: self._granted(permits))

    def _granted(self, permits: int) -> None:
        self._permits += permits
        self.wake()

    def skip_to(self, position: Position) -> None:
        self.up(lambda: self._skipped(position))

    def _skipped(self, position: Position) -> None:
        if self._next is None or self._next <= position:
            self._next = position.after()

    def wake(self) -> None:
        if self.is_open and not self._is_woken and self in self.topic.connections:
            self._is_woken = True
            self.topic.loop.call_later(self.delay(), self._dispatch, context=NOBODYS)

    def _dispatch(self) -> None:
        self._is_woken = False
        if self._last_of_closed:
            return
        for entry in self.topic.present:
            if not self.is_open or self._permits <= 0 or self not in self.topic.connections:
                return
            if is_marker(entry):  # AbstractBaseDispatcher.filterEntriesForConsumer
                continue
            if self._next is None or entry.position >= self._next:
                self._permits -= permits_of(entry)
                self._next = entry.position.after()
                self.down(lambda entry=entry: self._events.on_entry(entry))  # type: ignore[misc]

    async def last_position(self) -> Position | None:
        answer: asyncio.Future[Position | None] = asyncio.get_running_loop().create_future()
        self.up(lambda: self._tell_last(answer))
        return await answer

    def _tell_last(self, answer: asyncio.Future[Position | None]) -> None:
        if self in self.topic.connections:
            last = self._last_of_closed[0] if self._last_of_closed else self.topic.last_named()
            self.topic.loop.call_later(self.delay(), _complete, answer, last, context=self._context)
        else:
            self.topic.loop.call_later(self.delay(), _fail, answer, context=self._context)

    def close(self) -> None:
        self.is_open = False
        self.forget()

    def tell_end(self, reason: PulsarError) -> None:
        self._events.on_end(reason)


def is_marker(entry: RawEntry) -> bool:
    return entry.message_metadata.producer_name == MARKER


def delay(draw: Random, bounds: Bounds) -> float:
    """One way."""
    return draw.choice((0.0005, 0.002, 0.002, 0.01, bounds.slowest))


def _complete(answer: asyncio.Future[Position | None], last: Position | None) -> None:
    if not answer.done():
        answer.set_result(last)


def _fail(answer: asyncio.Future[Position | None]) -> None:
    if not answer.done():
        answer.set_exception(Unavailable("cut"))


class View:
    """The topic as a partition of a node has it: an EntryLog."""

    def __init__(self, topic: Topic, writer_name: str, context: Context) -> None:
        self._topic = topic
        self._name = writer_name
        self._context = context
        self._draw = topic.chance.of(f"{writer_name}/questions")

    async def _way(self) -> None:
        await asyncio.sleep(delay(self._draw, self._topic.bounds))

    async def _ask(self) -> None:
        await self._way()
        if not self._topic.is_calm and self._draw.random() < self._topic.bounds.failed_questions:
            raise Unavailable("scripted")

    async def config(self) -> LogConfig:
        await self._ask()
        return AS_IT_COMES

    async def is_another(self) -> bool:
        return False

    async def counts_records(self) -> bool:
        return False

    async def skipped(self) -> frozenset[Position]:
        return frozenset()

    async def moved_start(self) -> MovedStart | None:
        await self._ask()
        return self._topic.moved_start

    async def transactions_from(self) -> Position | None:
        await self._ask()
        return self._topic.transactions_behind

    async def begin_transactions(self, behind: Position) -> None:
        await self._ask()
        known = self._topic.transactions_behind
        self._topic.transactions_behind = behind if known is None else min(known, behind)
        await self._way()

    async def writer(self, events: ProducerEvents) -> Writer:
        await self._ask()
        if self._topic.has_writer(self._name):  # PersistentTopic.addProducer: NamingException
            raise Unavailable("a producer of this name is connected")
        return Writer(self._topic, self._name, events, self._context)

    async def reader(self, start: Position | None, events: ConsumerEvents) -> Reader:
        await self._ask()
        return Reader(self._topic, self._name, start, events, self._context)

    async def stats(self) -> LogStats:
        await self._ask()
        found = self._topic.stats()
        await self._way()
        return found

    async def index_property(self) -> int | None:
        await self._ask()
        return self._topic.index_property

    async def index_of(self, position: Position) -> int | None:
        await self._ask()
        return next((one.last_index for one in self._topic.present if one.position == position), None)

    async def last_readable(self, last: Position, behind: Position) -> Position | None:
        await self._ask()
        found = [one.position for one in self._topic.present if one.position <= last and (one.position <= behind or not is_marker(one))]
        return found[-1] if found else None

    async def first_indexed(self) -> Position | None:
        await self._ask()
        present = self._topic.present
        return present[0].position if present else None

    async def first_indexed_of_all(self) -> Position | None:
        return await self.first_indexed()

    def note_entries_without_index(self) -> None: ...

    async def find_index(self, index: int) -> Position | None:
        await self._ask()
        return next((one.position for one in self._topic.present if one.last_index is not None and one.last_index >= index), None)

    async def find_time(self, timestamp: int) -> Position | None:
        await self._ask()
        found = (one.position for one in self._topic.present if (one.broker_timestamp or 0) >= timestamp)
        return next(found, self._topic.next_position)
