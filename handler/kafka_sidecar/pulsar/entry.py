"""The values that cross the entry line."""

from __future__ import annotations

from typing import NamedTuple

from kafka_sidecar.pulsar.pulsar_api_pb2 import MessageMetadata


class Position(NamedTuple):
    """Where an entry stands. Ordered as the log is ordered."""

    ledger: int
    entry: int

    def after(self) -> Position:
        """Where the next entry may stand. A reader that starts here also finds the next ledger's first."""
        return Position(self.ledger, self.entry + 1)

    def __str__(self) -> str:
        return f"{self.ledger}:{self.entry}"


class RawEntry:
    """One stored entry, as a broker hands it out."""

    __slots__ = ("_message_metadata", "broker_timestamp", "content", "last_index", "metadata", "payload", "position")

    def __init__(
        self,
        position: Position,
        last_index: int | None,
        broker_timestamp: int | None,
        metadata: bytes,
        payload: memoryview,
    ) -> None:
        self.position = position
        # Index of the LAST message in the entry (PIP-70); None where the broker adds no index.
        self.last_index = last_index
        self.broker_timestamp = broker_timestamp
        self.metadata = metadata
        self.payload = payload
        self._message_metadata: MessageMetadata | None = None
        self.content: object = None  # content that a partition has decoded in advance; else None

    @property
    def message_metadata(self) -> MessageMetadata:
        """The metadata, read once. May raise DecodeError."""
        if self._message_metadata is None:
            self._message_metadata = MessageMetadata.FromString(self.metadata)
        return self._message_metadata


class LedgerInfo(NamedTuple):
    ledger: int
    entries: int
    size: int
    offloaded: bool = False  # in tiered storage; BookKeeper keeps its copy for a while


class LogStats(NamedTuple):
    """A partition as the broker's managed ledger describes it."""

    ledgers: tuple[LedgerInfo, ...]  # in log order, without empty ledgers
    # The empty last ledger, if there is one: the next entry is stored in it, or in a later one.
    empty_ledger: int | None = None

    @property
    def first(self) -> Position | None:
        return Position(self.ledgers[0].ledger, 0) if self.ledgers else None

    @property
    def last(self) -> Position | None:
        return Position(self.ledgers[-1].ledger, self.ledgers[-1].entries - 1) if self.ledgers else None

    @property
    def end(self) -> Position | None:
        """Whatever is written next stands behind this place."""
        return self.last if self.empty_ledger is None else Position(self.empty_ledger, -1)

    def may_hold(self, position: Position) -> bool:
        """Whether an entry of this position is here, or was added since.

        The number of a ledger is never used again. One that is not here is of a topic that was deleted, or all of it
        has gone.
        """
        if self.ledgers and self.ledgers[-1].ledger == position.ledger:
            return True
        return any(info.ledger == position.ledger and position.entry < info.entries for info in self.ledgers)

    def entry_before(self, position: Position) -> Position | None:
        if position.entry > 0:
            return Position(position.ledger, position.entry - 1)
        earlier = [info for info in self.ledgers if info.ledger < position.ledger]
        return Position(earlier[-1].ledger, earlier[-1].entries - 1) if earlier else None

    def between(self, first: Position, end: Position) -> tuple[int, int]:
        """How many entries there are from one place on to another, and about how many bytes."""
        count = size = 0
        for info in self.ledgers:
            if first.ledger <= info.ledger <= end.ledger:
                begin = first.entry if info.ledger == first.ledger else 0
                entries = max(0, min(info.entries, end.entry if info.ledger == end.ledger else info.entries) - begin)
                count += entries
                size += entries * (info.size // max(1, info.entries))
        return count, size

    def before(self, position: Position, entries: int, size: int) -> Position:
        """A position at most `entries` entries and about `size` bytes before `position`."""
        at = position
        for ledger in reversed([info for info in self.ledgers if info.ledger <= position.ledger]):
            last = at.entry if ledger.ledger == position.ledger else ledger.entries - 1
            average = max(1, ledger.size // max(1, ledger.entries))
            take = min(entries, max(1, size // average), last + 1)
            at = Position(ledger.ledger, last + 1 - take) if take else at
            if take < last + 1:
                return at
            entries -= take
            size -= take * average
            if entries <= 0 or size <= 0:
                return at
        return at


class CompactionStats(NamedTuple):
    """A partition of a compacted topic as the broker describes it."""

    log: LogStats
    compacted_to: (
        Position | None
    )  # position of the __compaction cursor, which protects all later entries from deletion; None without a cursor
    # Ledger with the compacted form of all entries up to there, by the loaded topic; -1 where none is known.
    compacted_ledger: int
    cursors_ledger: int  # the same ledger, by the cursor's properties: the broker uses it when it loads the topic again
    compacted_entries: int
    compacted_bytes: int

    @property
    def has_news(self) -> bool:
        """Whether anything stands behind what is compacted."""
        last = self.log.last
        return last is not None and (self.compacted_to is None or last > self.compacted_to)

    @property
    def is_held(self) -> bool:
        """Whether a finite retention takes nothing that counts, also when its broker has loaded the partition again."""
        return (
            self.compacted_to is not None
            and self.compacted_ledger >= 0
            and self.compacted_ledger == self.cursors_ledger
        )
