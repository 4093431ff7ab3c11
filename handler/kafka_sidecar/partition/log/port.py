"""A log as a partition needs it, at entry level. `pulsar_log` has it over Pulsar, the tests over a model of it."""

from __future__ import annotations

from typing import Protocol

from kafka_sidecar.internal_topics.moved_start import MovedStart
from kafka_sidecar.partition.log.log_config import LogConfig
from kafka_sidecar.pulsar.entry import LogStats, Position
from kafka_sidecar.pulsar.errors import PulsarError
from kafka_sidecar.pulsar.events import ConsumerEvents, ProducerEvents
from kafka_sidecar.pulsar.raw_entries import Patience


class LogWriter(Protocol):
    @property
    def max_message_size(self) -> int: ...
    def send(
        self, sequence: int, count: int, fields: bytes, payload: bytes | bytearray, basis: tuple[bytes, bytes] | None
    ) -> None:
        """`fields`: see `EncodedEntry`. `basis`: a property, see `basis.Basis`."""
        ...

    def close(self) -> None: ...
    def abort_connection(self, reason: PulsarError) -> None: ...


class LogReader(Protocol):
    def grant(self, permits: int) -> None: ...
    def skip_to(self, position: Position) -> None:
        """Go on behind this entry, if the reader is not there yet. Nothing may be granted and not delivered."""
        ...

    async def last_position(self) -> Position | None: ...
    def close(self) -> None: ...


class EntryLog(Protocol):
    """One partition's log. Every call may raise PulsarError."""

    patience: Patience  # How long readers of this log wait for an entry before they are opened again

    async def writer(self, events: ProducerEvents) -> LogWriter: ...
    async def reader(self, start: Position | None, events: ConsumerEvents) -> LogReader: ...
    async def config(self) -> LogConfig:
        """What the configs of the topic ask now of what is appended."""
        ...

    async def counts_records(self) -> bool:
        """Whether entries have to say how many records they hold, for Pulsar's replicator tells the other broker that
        number, or one.
        """
        ...

    async def skipped(self) -> frozenset[Position]:
        """The entries that an operator has skipped, of those that can't be read."""
        ...

    async def moved_start(self) -> MovedStart | None:
        """Where a client has moved the start of the log to, if one has."""
        ...

    async def transactions_from(self) -> Position | None:
        """The entry behind which transactions may stand; None for a log that has none."""
        ...

    async def begin_transactions(self, behind: Position) -> None:
        """Let it be known to everybody that transactions may stand behind this entry. Stored when it returns."""
        ...

    async def is_another(self) -> bool:
        """Whether the topic was deleted and made again since this was opened."""
        ...

    async def stats(self) -> LogStats: ...
    async def index_property(self) -> int | None:
        """The last index of a log whose entries are all gone; None where there was none."""
        ...

    async def index_of(self, position: Position) -> int | None:
        """The index of an entry as the broker stores it, also of one that no reader is given; None where it has none,
        or is gone.
        """
        ...

    async def last_readable(self, last: Position, behind: Position) -> Position | None:
        """The last entry up to `last` that is handed to readers; None where none is. An entry up to `behind` is not
        looked at, and may be answered.
        """
        ...

    async def first_indexed(self) -> Position | None:
        """The first entry that has an index, as the broker stores it, whether or not it shows it to readers; None where
        none has.
        """
        ...

    async def first_indexed_of_all(self) -> Position | None:
        """The same, where the interceptor was switched off and on again: ledger by ledger."""
        ...

    def note_entries_without_index(self) -> None:
        """The log begins with entries that were written before the interceptor was on. They spoil the broker's own
        search.
        """
        ...

    async def find_index(self, index: int) -> Position | None: ...
    async def find_time(self, timestamp: int) -> Position | None:
        """The first entry that was stored at that time or later; the place behind the last where none was."""
        ...
