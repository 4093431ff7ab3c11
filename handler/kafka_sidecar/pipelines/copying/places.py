"""Places of a log that have no offset, as numbers that stand before all offsets. Pure.

Entries from before AppendIndexMetadataInterceptor was on have no index, so their records have no offsets. A record of
runs names them by their place: the entry's position, and the record's number in it. As a number it is below zero, and
ordered as the log is.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from kafka_sidecar.partition.log.packed_offsets import PackedOffset, place_of
from kafka_sidecar.pipelines.copying.offset_runs import Run
from kafka_sidecar.pulsar.entry import LedgerInfo, LogStats, Position

_BATCH_BITS: Final = 32
_ENTRY_BITS: Final = 32
_NEXT_ENTRY: Final = 1 << _BATCH_BITS
_NEXT_LEDGER: Final = 1 << (_ENTRY_BITS + _BATCH_BITS)
_LOWEST: Final = -(1 << 127)  # the number of the first record of ledger 0


class RecordPlace(NamedTuple):
    position: Position
    in_entry: int

    def __str__(self) -> str:
        return f"{self.position}:{self.in_entry}"


def number_of(position: Position, in_entry: int = 0) -> int:
    assert position.entry < 1 << _ENTRY_BITS, position
    return _LOWEST + position.ledger * _NEXT_LEDGER + position.entry * _NEXT_ENTRY + in_entry


def record_place(number: int) -> RecordPlace | None:
    """None for an offset."""
    if number >= 0:
        return None
    ledger, rest = divmod(number - _LOWEST, _NEXT_LEDGER)
    entry, in_entry = divmod(rest, _NEXT_ENTRY)
    return RecordPlace(Position(ledger, entry), in_entry)


def shown(number: int) -> str:
    """For people: an offset, or the place ledger:entry:record."""
    return str(record_place(number) or number)


def told(number: int) -> int | str:
    """For programs."""
    return number if number >= 0 else shown(number)


def number_of_packed(offset: int, runs: Iterable[Run]) -> int:
    """What a group has read up to that has committed this offset. Undecided where nobody can tell.

    Kafka-on-Pulsar before 2.8 packed the place into the offset, with only 20 bits for the ledger: `runs` tell which
    ledgers there are. Where they have none, what was copied had such offsets in the source itself.
    """
    packed = PackedOffset.of(offset)
    log = _log_of(runs)
    if packed is None or log.first is None:
        return offset
    found = place_of(packed, log)
    return number_of(log.first) if found is None else number_of(found, packed.in_batch)


def _log_of(runs: Iterable[Run]) -> LogStats:
    """The log before the index, as far as it was copied."""
    entries: dict[int, int] = {}
    for run in runs:
        last = run.source + (run.times - 1) * run.stride
        for number in range(run.source, last + 1, run.stride) if run.stride >= _NEXT_LEDGER else (run.source, last):
            place = record_place(number)
            if place is not None:
                entries[place.position.ledger] = max(place.position.entry + 1, entries.get(place.position.ledger, 0))
    return LogStats(tuple(LedgerInfo(ledger, count, 0) for ledger, count in sorted(entries.items())))
