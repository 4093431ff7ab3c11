"""The twin of Pulsar at entry level: an in-memory log with an index generator and scripted faults."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from dataclasses import dataclass, field

from handler.partition.log.formats import KAFKA
from handler.partition.log.log_config import AS_IT_COMES, LogConfig
from handler.partition.log.moved_start import MovedStart
from handler.partition.log.port import EntryLog, LogReader, LogWriter
from handler.pulsar.entry import LedgerInfo, LogStats, Position, RawEntry
from handler.pulsar.errors import PulsarError, Unavailable
from handler.pulsar.events import ConsumerEvents, ProducerEvents
from handler.pulsar.pulsar_api_pb2 import MessageMetadata
from handler.pulsar.raw_entries import permits_of
from handler.wire.records import read_produced


@dataclass
class MemoryLog:
    """One partition. `writer_name` is that of the next writer opened through this object."""

    writer_name: str = "kafka-sidecar-test"
    entries: list[RawEntry] = field(default_factory=list)
    ledger: int = 1
    index: int = -1
    trimmed: int = 0  # entries at the front that retention removed
    max_message_size: int = 5 * 1024 * 1024
    swallow_receipts: bool = False
    refuse_sends: int = 0
    refuse_with: int = 2
    refuse_saying: str = "scripted"
    hold_sends: bool = False  # a slow connection: what is sent lands when it is let go
    held: list[Callable[[], None]] = field(default_factory=list)
    writers: list[MemoryWriter] = field(default_factory=list)
    readers: list[MemoryReader] = field(default_factory=list)
    read_delay: float = 0.0
    at_once: int = sys.maxsize  # entries that a reader is given, then it waits for `read_delay`
    bytes_read: int = 0  # by all readers
    foreign: int = -1
    markers: set[Position] = field(default_factory=set)  # entries that no reader is given
    log_config: LogConfig = AS_IT_COMES
    skips: frozenset[Position] = frozenset()
    counts: bool = False  # whether its entries have to say how many records they hold
    start_moved_to: MovedStart | None = None
    was_made_anew: bool = False
    transactions_behind: Position | None = None
    noted_without_index: bool = False
    offloaded: set[int] = field(default_factory=set)  # ledgers
    opened_at: list[Position | None] = field(default_factory=list)  # where each reader began
    find_last_stretch: bool = False
    clock_ms: int = 1_000  # the broker's, but for a millisecond for each entry
    orphans: int = 0  # so many of the next readers stand at what the broker has closed (see `TailWatch`)
    names_markers: bool = True  # as the last entry, as brokers before 3.3 do

    def named(self, writer_name: str) -> EntryLog:
        """The same log as another sidecar sees it."""
        return _View(self, writer_name)

    def append(self, metadata: MessageMetadata, count: int, payload: bytes) -> Position:
        """What the broker does: next entry id, next index, and readers are told."""
        in_ledger = sum(1 for entry in self.entries if entry.position.ledger == self.ledger)
        position = Position(self.ledger, in_ledger)
        self.index += count
        entry = RawEntry(position, self.index, self.clock_ms + len(self.entries), metadata.SerializeToString(), memoryview(payload))
        self.entries.append(entry)
        for reader in list(self.readers):
            reader.wake()
        return position

    def write(self, data: bytes) -> Position:
        """A batch of some other sidecar's, of which nobody here has heard."""
        self.foreign += 1
        metadata = MessageMetadata(producer_name=b"kafka-sidecar-before", sequence_id=self.foreign, publish_time=1)
        metadata.MergeFromString(KAFKA.fields)
        return self.append(metadata, read_produced(data).offset_count, data)

    def mark(self) -> None:
        """A marker of Pulsar's own, which takes an index and no reader is given."""
        self.markers.add(self.append(MessageMetadata(producer_name=b"pulsar.marker", sequence_id=0, publish_time=1), 1, b""))

    def let_go(self) -> None:
        held, self.held = self.held, []
        for land in held:
            land()

    def roll(self) -> None:
        self.ledger += 1

    def trim(self, entries: int) -> None:
        self.trimmed = entries

    def disconnect(self) -> None:
        """Every writer and reader loses its connection."""
        ends: list[MemoryWriter | MemoryReader] = [*self.writers, *self.readers]
        for end in ends:
            end.lose(Unavailable("connection lost"))
        self.writers.clear()
        self.readers.clear()

    @property
    def present(self) -> list[RawEntry]:
        return self.entries[self.trimmed :]

    # --- EntryLog

    async def config(self) -> LogConfig:
        return self.log_config

    async def is_another(self) -> bool:
        return self.was_made_anew

    async def counts_records(self) -> bool:
        return self.counts

    async def skipped(self) -> frozenset[Position]:
        return self.skips

    async def moved_start(self) -> MovedStart | None:
        return self.start_moved_to

    async def transactions_from(self) -> Position | None:
        return self.transactions_behind

    async def begin_transactions(self, behind: Position) -> None:
        await asyncio.sleep(0)
        self.transactions_behind = behind if self.transactions_behind is None else min(behind, self.transactions_behind)

    async def writer(self, events: ProducerEvents) -> LogWriter:
        return await self.writer_as(self.writer_name, events)

    async def writer_as(self, name: str, events: ProducerEvents) -> LogWriter:
        await asyncio.sleep(0)
        opened = MemoryWriter(self, events, name)
        self.writers.append(opened)
        return opened

    async def reader(self, start: Position | None, events: ConsumerEvents) -> LogReader:
        return await self.reader_as("", start, events)

    async def reader_as(self, _: str, start: Position | None, events: ConsumerEvents) -> LogReader:
        await asyncio.sleep(0)
        opened = MemoryReader(self, start, events)
        self.opened_at.append(start)
        self.readers.append(opened)
        return opened

    async def stats(self) -> LogStats:
        ledgers: dict[int, list[RawEntry]] = {}
        for entry in self.present:
            ledgers.setdefault(entry.position.ledger, []).append(entry)
        listed = tuple(
            LedgerInfo(ledger, items[-1].position.entry + 1, sum(len(item.payload) for item in items), ledger in self.offloaded)
            for ledger, items in ledgers.items()
        )
        return LogStats(listed)

    async def index_property(self) -> int | None:
        return self.index

    async def index_of(self, position: Position) -> int | None:
        return next((entry.last_index for entry in self.present if entry.position == position), None)

    async def last_readable(self, last: Position, behind: Position) -> Position | None:
        looked_at = [one.position for one in self.present if one.position <= last]
        found = [position for position in looked_at if position <= behind or position not in self.markers]
        return found[-1] if found else None

    async def first_indexed_of_all(self) -> Position | None:
        return next((entry.position for entry in self.present if entry.last_index is not None), None)

    async def first_indexed(self) -> Position | None:
        """By halves, as it is done: of several stretches the last one may be found."""
        if not self.find_last_stretch:
            return await self.first_indexed_of_all()
        found = None
        for entry in reversed(self.present):
            if entry.last_index is None:
                break
            found = entry.position
        return found

    def note_entries_without_index(self) -> None:
        self.noted_without_index = True

    async def find_index(self, index: int) -> Position | None:
        return next((entry.position for entry in self.present if entry.last_index is not None and entry.last_index >= index), None)

    async def find_time(self, timestamp: int) -> Position | None:
        found = (entry.position for entry in self.present if (entry.broker_timestamp or 0) >= timestamp)
        return next(found, self.entries[-1].position.after() if self.entries else Position(self.ledger, 0))


@dataclass
class _View:
    """One log under another writer's name."""

    log: MemoryLog
    name: str

    async def config(self) -> LogConfig:
        return await self.log.config()

    async def is_another(self) -> bool:
        return await self.log.is_another()

    async def counts_records(self) -> bool:
        return await self.log.counts_records()

    async def skipped(self) -> frozenset[Position]:
        return await self.log.skipped()

    async def moved_start(self) -> MovedStart | None:
        return await self.log.moved_start()

    async def transactions_from(self) -> Position | None:
        return await self.log.transactions_from()

    async def begin_transactions(self, behind: Position) -> None:
        await self.log.begin_transactions(behind)

    async def writer(self, events: ProducerEvents) -> LogWriter:
        return await self.log.writer_as(self.name, events)

    async def reader(self, start: Position | None, events: ConsumerEvents) -> LogReader:
        return await self.log.reader_as(self.name, start, events)

    async def stats(self) -> LogStats:
        return await self.log.stats()

    async def index_property(self) -> int | None:
        return await self.log.index_property()

    async def index_of(self, position: Position) -> int | None:
        return await self.log.index_of(position)

    async def last_readable(self, last: Position, behind: Position) -> Position | None:
        return await self.log.last_readable(last, behind)

    async def first_indexed_of_all(self) -> Position | None:
        return await self.log.first_indexed_of_all()

    async def first_indexed(self) -> Position | None:
        return await self.log.first_indexed()

    def note_entries_without_index(self) -> None:
        self.log.note_entries_without_index()

    async def find_index(self, index: int) -> Position | None:
        return await self.log.find_index(index)

    async def find_time(self, timestamp: int) -> Position | None:
        return await self.log.find_time(timestamp)


def _check_unchanged(payload: bytes | bytearray, stored: bytes) -> None:
    assert bytes(payload) == stored, "what is written to the broker was changed before it had left"


class MemoryWriter:
    def __init__(self, log: MemoryLog, events: ProducerEvents, name: str) -> None:
        self._log = log
        self._events = events
        self._open = True
        self._name = name.encode()

    @property
    def max_message_size(self) -> int:
        return self._log.max_message_size

    def send(self, sequence: int, count: int, fields: bytes, payload: bytes | bytearray, basis: tuple[bytes, bytes] | None) -> None:
        if not self._open:
            return
        if self._log.refuse_sends:
            self._log.refuse_sends -= 1
            asyncio.get_running_loop().call_soon(self._events.on_send_error, sequence, self._log.refuse_with, self._log.refuse_saying)
            return
        metadata = MessageMetadata(producer_name=self._name, sequence_id=sequence, publish_time=1)
        metadata.MergeFromString(fields)
        if basis is not None:
            metadata.properties.add(key=basis[0], value=basis[1])
        if self._log.hold_sends:
            stored = bytes(payload)
            self._log.held.append(lambda: self._land(metadata, count, stored))
        else:
            stored = bytes(payload)
            # The socket holds the sidecar's bytes until the turn is over: nobody may have changed them by then.
            asyncio.get_running_loop().call_soon(_check_unchanged, payload, stored)
            self._land(metadata, count, stored)

    def _land(self, metadata: MessageMetadata, count: int, payload: bytes) -> None:
        position = self._log.append(metadata, count, payload)
        sequence = metadata.sequence_id
        if not self._log.swallow_receipts:
            self._soon(lambda: self._events.on_receipt(sequence, position.ledger, position.entry))

    def _soon(self, tell: Callable[[], None]) -> None:
        asyncio.get_running_loop().call_soon(lambda: tell() if self._open else None)

    def close(self) -> None:
        self._open = False

    def abort_connection(self, reason: PulsarError) -> None:
        self.lose(reason)

    def lose(self, reason: PulsarError) -> None:
        if self._open:
            self._open = False
            self._events.on_end(reason)


class MemoryReader:
    def __init__(self, log: MemoryLog, start: Position | None, events: ConsumerEvents) -> None:
        self._log = log
        self._next = start
        self._events = events
        self._open = True
        self.permits = 0
        self._woken = False
        self._is_orphan = log.orphans > 0
        log.orphans -= self._is_orphan
        self._last_of_closed = self._last()

    def grant(self, permits: int) -> None:
        self.permits += permits
        self.wake()

    def skip_to(self, position: Position) -> None:
        assert self.permits <= 0, "what is granted is on its way"
        if self._next is None or self._next <= position:
            self._next = position.after()

    def wake(self) -> None:
        if self._open and not self._woken and not self._is_orphan:
            self._woken = True
            asyncio.get_running_loop().call_later(self._log.read_delay, self._deliver)

    def _deliver(self) -> None:
        self._woken = False
        given = 0
        for entry in list(self._log.present):
            if not self._open or self.permits <= 0:
                return
            if given >= self._log.at_once:
                self.wake()
                return
            if entry.position in self._log.markers:
                continue
            if self._next is None or entry.position >= self._next:
                self.permits -= permits_of(entry)
                self._log.bytes_read += len(entry.payload)
                self._next = entry.position.after()
                given += 1
                self._events.on_entry(entry)

    async def last_position(self) -> Position | None:
        await asyncio.sleep(0)
        return self._last_of_closed if self._is_orphan else self._last()

    def _last(self) -> Position | None:
        log = self._log
        named = [entry.position for entry in log.present if log.names_markers or entry.position not in log.markers]
        return named[-1] if named else None

    def close(self) -> None:
        self._open = False
        if self in self._log.readers:
            self._log.readers.remove(self)

    def lose(self, reason: PulsarError) -> None:
        if self._open:
            self._open = False
            self._events.on_end(reason)
