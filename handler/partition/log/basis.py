"""The part of an entry that says what its writer knew, so that a fold may begin behind it."""

from __future__ import annotations

from typing import NamedTuple

from handler.pulsar.entry import Position


class BatchSequence(NamedTuple):
    """A batch as its producer numbers it."""

    producer_id: int
    epoch: int
    first: int
    last: int


class Basis(NamedTuple):
    """The knowledge of a writer when it sent an entry: how far it had folded the log, and what the producer's
    last batch was there. It stands in the entry, so that whoever begins to fold behind `folded_to` knows as much."""

    folded_to: Position
    epoch: int = -1  # −1 for a producer that was not known
    last_sequence: int = -1

    def encode(self) -> bytes:
        return encode_basis(self.folded_to, self.epoch, self.last_sequence)

    @classmethod
    def decode(cls, text: bytes) -> Basis:
        at, epoch, last = text.split()
        ledger, entry = at.split(b":")
        return cls(Position(int(ledger), int(entry)), int(epoch), int(last))


def encode_basis(folded_to: Position, epoch: int, last_sequence: int) -> bytes:
    return b"%d:%d %d %d" % (folded_to[0], folded_to[1], epoch, last_sequence)
