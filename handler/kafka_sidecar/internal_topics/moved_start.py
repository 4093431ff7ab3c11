"""Where a client has moved the start of a log to (Kafka's DeleteRecords)."""

from __future__ import annotations

from typing import NamedTuple

from kafka_sidecar.pulsar.entry import Position

_VERSION = b"1"


class MovedStart(NamedTuple):
    """Ordered: of two of one partition the greater counts.

    The ids of ledgers only grow. So the position also tells a topic from one of the same name that was deleted before:
    a move that lies before the first entry of a log is none of it, or is overtaken by retention.
    """

    # Position of the entry that holds `offset`, or of the next entry if no entry holds it yet. If retention removed the
    # entry meanwhile, the position of the first remaining entry.
    position: Position
    offset: int

    def encode(self) -> bytes:
        return b"%b %d %d %d" % (_VERSION, self.offset, *self.position)

    @classmethod
    def decode(cls, text: bytes) -> MovedStart:
        """ValueError where that is something else."""
        version, offset, ledger, entry = text.split()
        if version != _VERSION:
            raise ValueError(f"a log start of version {version.decode(errors='replace')}")
        return cls(Position(int(ledger), int(entry)), int(offset))
