"""What of a partition has no index: its head, and the pieces in which that is read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from kafka_sidecar.partition.fold.fold import BEFORE_ALL
from kafka_sidecar.partition.follow.read_entries import first_indexed_entry
from kafka_sidecar.partition.log.port import EntryLog
from kafka_sidecar.pipelines.copying.places import RecordPlace, number_of
from kafka_sidecar.pulsar.entry import LogStats, Position

# One Spark task reads about 64 MiB.
PIECE_BYTES: Final = 64 * 1_024 * 1_024
MOST_PIECES: Final = 500  # per partition and round


class Piece(NamedTuple):
    """Entries of one ledger, the last one included."""

    topic: str
    partition: int
    ledger: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Head:
    stats: LogStats
    first: Position
    last: Position
    # Offset of the first record behind the head; None while no entry has an index and more entries without one may
    # come.
    first_offset: int | None

    @property
    def entries(self) -> int:
        return self.stats.between(self.first, self.last.after())[0]


async def head_of(log: EntryLog) -> Head | None:
    """None where every entry has an index, or there is none. May raise PulsarError."""
    indexed = await first_indexed_entry(log)
    stats = await log.stats()
    if stats.first is None or stats.last is None:
        return None
    if indexed is not None:
        last = stats.entry_before(indexed.position)
        return None if last is None else Head(stats, stats.first, last, indexed.base_offset)
    last = await log.last_readable(stats.last, BEFORE_ALL)
    return None if last is None else Head(stats, stats.first, last, None)


def rest_of(head: Head, begin: RecordPlace | None) -> Iterator[tuple[int, int, int, int]]:
    """Ledgers with the first and the last entry that are left to read, and about how many bytes that is."""
    for one in head.stats.ledgers:
        first = begin.position.entry if begin is not None and one.ledger == begin.position.ledger else 0
        last = head.last.entry if one.ledger == head.last.ledger else one.entries - 1
        is_wanted = (begin is None or one.ledger >= begin.position.ledger) and one.ledger <= head.last.ledger
        if is_wanted and first <= last:
            yield one.ledger, first, last, (last - first + 1) * _entry_bytes(one.size, one.entries)


def _entry_bytes(size: int, entries: int) -> int:
    return max(1, size // max(1, entries))


class Round(NamedTuple):
    pieces: list[Piece]
    end: int  # the source number behind the last piece
    size: int  # bytes, estimated


def round_of(topic: str, partition: int, head: Head, begin: RecordPlace | None, most_bytes: int) -> Round:
    """What is left to read of a head, or as much of it as is read at a time: one piece at least."""
    pieces: list[Piece] = []
    taken = 0
    for ledger, first, last, size in rest_of(head, begin):
        step = max(1, (last - first + 1) * PIECE_BYTES // max(1, size))
        for at in range(first, last + 1, step):
            if pieces and (taken >= most_bytes or len(pieces) >= MOST_PIECES):
                return Round(pieces, number_of(Position(ledger, at)), taken)
            piece = Piece(topic, partition, ledger, at, min(last, at + step - 1))
            pieces.append(piece)
            taken += size * (piece.last - piece.first + 1) // (last - first + 1)
    return Round(pieces, number_of(head.last.after()) if head.first_offset is None else head.first_offset, taken)
