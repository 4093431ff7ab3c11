"""A topic: its ledgers, the index, and who is connected.

    SEND ──▶ on its way ──▶ lands: has a place and an index ──▶ stored: readers are given it ──▶ receipt on its way
               │ cut: lost, or lands late   │ crash: recovered, or gone, and its index is given again

Where Pulsar's own code says so, its class and method are named.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Final

from kafka_sidecar.internal_topics.moved_start import MovedStart
from kafka_sidecar.partition.log.log_config import AS_IT_COMES, LogConfig
from kafka_sidecar.pulsar.entry import LedgerInfo, LogStats, Position, RawEntry
from kafka_sidecar.pulsar.errors import PulsarError, Unavailable
from kafka_sidecar.pulsar.events import ConsumerEvents, ProducerEvents
from kafka_sidecar.pulsar.pulsar_api_pb2 import MessageMetadata
from tests.model.conduct import Caller, Conduct
from tests.model.connections import Connection, Reader, Writer

# MessageDeduplication answers a duplicate with MessageId(-1, -1), which is unsigned in the protocol.
KNOWN_ALREADY: Final = 2**64 - 1
MARKER: Final = b"pulsar.marker"


@dataclass(slots=True)
class _Adding:
    entry: RawEntry
    writer: Writer
    sequence: int


class Topic:
    def __init__(
        self, conduct: Conduct, *, deduplicates: bool = False, names_markers: bool = False, wastes_indexes: bool = False
    ) -> None:
        self.conduct = conduct
        self.deduplicates = deduplicates
        self.names_markers = names_markers  # as the last entry, as brokers before 3.3 do
        self.wastes_indexes = wastes_indexes  # brokers before 2.9.2: of an entry that could not be added
        self.max_message_size = 5 * 1024 * 1024
        self.entries: list[RawEntry] = []
        self.generation = 0  # how often it was deleted and made anew
        self.made_at_ms = 0
        self.is_missing = False  # it is deleted, and not made anew yet
        self.trimmed = 0  # entries at the front that retention took
        self.index = -1
        self.stored_index: int | None = None  # in the ledgers' metadata
        self.hidden: set[Position] = set()  # entries that no reader is given, beside markers
        self.offloaded: set[int] = set()  # ledgers
        self.silent: set[int] = set()  # ledgers whose storage is slow, or away: nothing comes of them
        self.log_config: LogConfig = AS_IT_COMES
        self.skips: frozenset[Position] = frozenset()
        self.counts = False  # whether its entries have to say how many records they hold
        self.noted_without_index = False
        self.finds_last_stretch = False  # of entries with an index, by halves, where there are several stretches
        self.opened_at: list[Position | None] = []  # where each reader began
        self.transactions_behind: Position | None = None
        self.start_moved_to: MovedStart | None = None  # by clients
        self.connections: dict[Connection, None] = {}
        self.bytes_read = 0  # by all readers
        self.ledger = 1
        self._in_ledger = 0
        self.known_writers: dict[str, Writer] = {}  # by name
        self._adding: deque[_Adding] = deque()
        self._pushed: dict[str, int] = {}  # MessageDeduplication.highestSequencedPushed
        self._opened: dict[str, int] = {}

    @property
    def present(self) -> list[RawEntry]:
        return self.entries[self.trimmed :]

    @property
    def next_position(self) -> Position:
        return Position(self.ledger, self._in_ledger)

    @property
    def readers(self) -> list[Reader]:
        return [one for one in self.connections if isinstance(one, Reader)]

    @property
    def writers(self) -> list[Writer]:
        return [one for one in self.connections if isinstance(one, Writer)]

    # --- who connects

    def opens(self, kind: str, owner: str) -> str:
        """The name of a connection: of its owner, and which one of its kind it is."""
        key = f"{owner}/{kind}"
        self._opened[key] = self._opened.get(key, 0) + 1
        return f"{key}/{self._opened[key]}"

    def writer_as(self, name: str, events: ProducerEvents, caller: Caller) -> Writer:
        if name in self.known_writers:  # PersistentTopic.addProducer: NamingException
            raise Unavailable("a producer of this name is connected")
        return Writer(self, name, events, caller.way(self.opens("writer", name)))

    def reader_as(self, name: str, start: Position | None, events: ConsumerEvents, caller: Caller) -> Reader:
        assert start is None or min(start) >= 0  # the numbers of a MessageIdData have no sign
        self.opened_at.append(start)
        return Reader(self, start, events, caller.way(self.opens("reader", name)))

    # --- what is appended

    def land(self, writer: Writer, sequence: int, metadata: MessageMetadata, count: int, payload: bytes) -> None:
        refusal = writer.way.refusal()
        if refusal is not None:
            writer.down(lambda: writer.events.on_send_error(sequence, refusal.code, refusal.saying))
            if refusal.ends_writer:
                writer.be_unknown()
                if self.wastes_indexes and not self._adding:
                    self.index += count
                    self._new_ledger()
            return
        if self.deduplicates:
            if sequence <= self._pushed.get(writer.name, -1):
                writer.down(lambda: writer.events.on_receipt(sequence, KNOWN_ALREADY, KNOWN_ALREADY))
                return
            self._pushed[writer.name] = sequence
        entry = self._entry(metadata, count, payload)
        self._adding.append(_Adding(entry, writer, sequence))
        self.conduct.store(lambda: self._store(entry))

    def append(self, metadata: MessageMetadata, count: int, payload: bytes) -> Position:
        """What somebody else writes, a replicator say (PersistentReplicator): it is stored at once."""
        entry = self._entry(metadata, count, payload)
        self._keep(entry)
        return entry.position

    def mark(self) -> None:
        """ReplicatedSubscriptionsController.writeMarker: a message of the broker's own."""
        if not self._adding:
            metadata = MessageMetadata(producer_name=MARKER, sequence_id=0, publish_time=1, marker_type=10)
            self.entries.append(self._entry(metadata, 1, b""))

    def _entry(self, metadata: MessageMetadata, count: int, payload: bytes) -> RawEntry:
        position = self.next_position
        self._in_ledger += 1
        self.index += count
        return RawEntry(position, self.index, self.conduct.now_ms(), metadata.SerializeToString(), memoryview(payload))

    def _store(self, entry: RawEntry) -> None:
        if not self._adding or self._adding[0].entry is not entry:
            return  # it was lost, or recovered
        added = self._adding.popleft()
        self._keep(added.entry)
        writer = added.writer
        if not writer.way.loses_receipt():
            writer.down(lambda: writer.events.on_receipt(added.sequence, entry.position.ledger, entry.position.entry))

    def _keep(self, entry: RawEntry) -> None:
        self.entries.append(entry)
        for reader in self.readers:
            reader.wake()

    # --- what becomes of the topic

    def roll(self) -> None:
        """ManagedLedgerImpl.rollCurrentLedgerIfFull: one that holds nothing is never full, not even for its age."""
        if self._in_ledger and not self._adding:
            self._new_ledger()

    def unload(self) -> None:
        """What was being added is stored; nobody hears of it any more."""
        self._end(len(self._adding))

    def crash(self) -> None:
        """Ledger recovery keeps what some bookie has: from the first on, as far as it goes."""
        self._end(self.conduct.recovered(len(self._adding)))

    def make_anew(self) -> None:
        """Another topic has the name from now on (PersistentTopic.delete): its ledgers have greater ids, and its index
        begins at 0.
        """
        self.generation += 1
        for connection in list(self.connections):
            connection.cut()
            if isinstance(connection, Writer):
                connection.be_unknown()
        self._adding.clear()
        self._pushed = {}
        self.entries, self.trimmed, self.index = [], 0, -1
        self.hidden, self.offloaded, self.skips = set(), set(), frozenset()
        self.transactions_behind = self.start_moved_to = None
        self._new_ledger()

    def disconnect(self, reason: PulsarError | None = None) -> None:
        """All connections end."""
        for connection in list(self.connections):
            connection.cut(reason)

    def _end(self, recovered: int) -> None:
        for added in list(self._adding)[:recovered]:
            self.entries.append(added.entry)
        self._adding.clear()
        # ManagedLedgerInterceptorImpl takes the greater of the two. The ledgers' metadata may count what was being
        # added and is lost.
        last = self.entries[-1].last_index if self.entries else None
        self.index = max(-1 if last is None else last, -1 if self.stored_index is None else self.stored_index)
        for connection in list(self.connections):
            connection.cut()
            if isinstance(connection, Writer):
                connection.be_unknown()  # what is on its way comes to a broker that does not know it
        self._pushed = self._stored_sequences() if self.deduplicates else {}
        self._new_ledger()

    def _new_ledger(self) -> None:
        self.ledger += 1
        self._in_ledger = 0
        self.note_index()

    def note_index(self) -> None:
        """ManagedLedgerInterceptorImpl.onUpdateManagedLedgerInfo: as it is now, also of what is being added."""
        self.stored_index = self.index if self.index >= 0 else None

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

    # --- what it answers

    def stats_now(self) -> LogStats:
        ledgers: dict[int, list[RawEntry]] = {}
        for entry in self.present:
            ledgers.setdefault(entry.position.ledger, []).append(entry)
        infos = [
            LedgerInfo(
                one, held[-1].position.entry + 1, sum(len(entry.payload) for entry in held), one in self.offloaded
            )
            for one, held in ledgers.items()
        ]
        return LogStats(tuple(infos), None if self.ledger in ledgers else self.ledger)

    def is_hidden(self, entry: RawEntry) -> bool:
        """AbstractBaseDispatcher.filterEntriesForConsumer: whether no reader is given it."""
        return is_marker(entry) or entry.position in self.hidden

    def last_named(self) -> Position | None:
        named = (one for one in reversed(self.present) if self.names_markers or not self.is_hidden(one))
        return next((one.position for one in named), None)


def is_marker(entry: RawEntry) -> bool:
    return entry.message_metadata.producer_name == MARKER
