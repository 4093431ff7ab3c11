"""The offsets of Kafka-on-Pulsar before 2.8: a message's place, packed into 64 bits. Pure.

    63        44 43            12 11          0
    ledger       entry            in the batch

A group that committed one has read all before that place. Continuous offsets are never so large: for 2^44 records a
partition would need a year at half a million a second.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kafka_sidecar.pulsar.entry import LedgerInfo, LogStats, Position

LEDGER_BITS: Final = 20
ENTRY_BITS: Final = 32
BATCH_BITS: Final = 12
SMALLEST: Final = 1 << (ENTRY_BITS + BATCH_BITS)  # The packed offset of ledger 1, entry 0


@dataclass(frozen=True, slots=True)
class PackedOffset:
    ledger: int  # The lowest 20 bits of the ledger id
    entry: int
    in_batch: int

    @classmethod
    def of(cls, offset: int) -> PackedOffset | None:
        """None where it is a continuous offset."""
        if offset < SMALLEST:
            return None
        in_batch = offset & ((1 << BATCH_BITS) - 1)
        return cls(offset >> (ENTRY_BITS + BATCH_BITS), (offset >> BATCH_BITS) & ((1 << ENTRY_BITS) - 1), in_batch)

    def __str__(self) -> str:
        return f"{self.ledger}:{self.entry}:{self.in_batch}"


class Undecided(Exception):
    """The text says why nobody can tell which place is meant."""


def place_of(packed: PackedOffset, stats: LogStats) -> Position | None:
    """The entry that is meant; None where retention has removed its ledger. Undecided where it may be one of several,
    or none.
    """
    mask = (1 << LEDGER_BITS) - 1
    found = [one for one in stats.ledgers if one.ledger & mask == packed.ledger and packed.entry <= one.entries]
    if len(found) > 1:
        raise Undecided(f"it may be of ledger {_listed(found)}: only 20 bits of a ledger's number were kept")
    if found:
        return Position(found[0].ledger, packed.entry)
    if not stats.ledgers:
        return None
    if stats.ledgers[-1].ledger <= mask and packed.ledger < stats.ledgers[0].ledger:
        return None
    raise Undecided("no ledger of the log has this number, and its beginning has not been removed for certain")


def _listed(ledgers: list[LedgerInfo]) -> str:
    return " or ".join(str(one.ledger) for one in ledgers)
