"""The part of an entry that says what its writer knew, so that a fold may begin behind it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from handler.pulsar.entry import Position

# By which of these it has, an entry says how it is judged: as one batch, or batch by batch. Sidecars of 0.1 do not know the second.
BASIS_PROPERTY: Final = b"basis"
BASES_PROPERTY: Final = b"bases"
# Of an entry that was sent before: its first try may have landed.
AGAIN_PROPERTY: Final = b"again"


class BatchSequence(NamedTuple):
    """A batch as its producer numbers it."""

    producer_id: int
    epoch: int
    first: int
    last: int


class KnownProducer(NamedTuple):
    """The last batch of a producer, as a writer knew it."""

    epoch: int
    last_sequence: int


# Of a batch that belongs to none, and of one whose writer gave it no number.
NO_TRANSACTION: Final = -1
# Of a producer that was not known, and of a batch that has none.
UNKNOWN_PRODUCER: Final = KnownProducer(-1, -1)


class Basis(NamedTuple):
    """The knowledge of a writer when it sent an entry: how far it had folded the log, and what the producer's last batch was
    there, for each batch of the entry. It stands in the entry, so that whoever begins to fold behind `folded_to` knows as much.
    """

    folded_to: Position
    producers: Sequence[KnownProducer] = (UNKNOWN_PRODUCER,)
    transactions: Sequence[int] = ()  # the number of each batch's, where any of them has one

    def encode(self) -> bytes:
        known = [b" %d %d" % producer for producer in self.producers]
        if self.transactions:
            known = [
                text if number == NO_TRANSACTION else b"%b/%d" % (text, number)
                for text, number in zip(known, self.transactions, strict=True)
            ]
        return b"%d:%d" % self.folded_to[:2] + b"".join(known)

    @classmethod
    def decode(cls, text: bytes) -> Basis:
        at, *numbers = text.split()
        ledger, entry = at.split(b":")
        folded_to = Position(int(ledger), int(entry))
        if b"/" not in text:
            return cls(folded_to, [KnownProducer(int(epoch), int(last)) for epoch, last in zip(numbers[::2], numbers[1::2], strict=True)])
        named = [text.partition(b"/")[::2] for text in numbers[1::2]]
        producers = [KnownProducer(int(epoch), int(last)) for epoch, (last, _) in zip(numbers[::2], named, strict=True)]
        return cls(folded_to, producers, [int(number) if number else NO_TRANSACTION for _, number in named])


def encode_basis(folded_to: Position, epoch: int, last_sequence: int) -> bytes:
    """The basis of an entry of one batch."""
    return b"%d:%d %d %d" % (folded_to[0], folded_to[1], epoch, last_sequence)
