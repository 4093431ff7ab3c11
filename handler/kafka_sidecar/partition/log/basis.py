"""The part of an entry that says what its writer knew, so that a fold may begin behind it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from kafka_sidecar.pulsar.entry import Position

# The property that an entry has tells how it is judged: `basis` as one batch, `bases` batch by batch. Sidecars of
# release 0.1 do not know `bases`.
BASIS_PROPERTY: Final = b"basis"
BASES_PROPERTY: Final = b"bases"
# The property of an entry that is sent again: its first attempt may have been stored.
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


# The transaction number of a batch outside transactions, and of a batch to which its writer gave no number.
NO_TRANSACTION: Final = -1
# Stands for a producer that the writer did not know, and for a batch without a producer id.
UNKNOWN_PRODUCER: Final = KnownProducer(-1, -1)


_LEAST: Final = -2  # the least valid number: ANY_SEQUENCE, or a coordinate of THE_PAST
_INT16: Final = 2**15
_INT32: Final = 2**31
_INT64: Final = 2**63


class Basis(NamedTuple):
    """The knowledge of a writer when it sent an entry: how far it had folded the log, and what the producer's last
    batch was there, for each batch of the entry. It stands in the entry, so that a fold that begins behind `folded_to`
    knows as much.
    """

    folded_to: Position
    producers: Sequence[KnownProducer] = (UNKNOWN_PRODUCER,)
    transactions: Sequence[int] = ()  # transaction number of each batch; empty if no batch has one

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
        """ValueError where no writer says that: anybody may have written it, and a reader may have to begin at its
        place.
        """
        at, *numbers = text.split()
        ledger, entry = at.split(b":")
        folded_to = Position(_number(ledger, _INT64), _number(entry, _INT64))
        if b"/" not in text:
            return cls(
                folded_to, [_known(epoch, last) for epoch, last in zip(numbers[::2], numbers[1::2], strict=True)]
            )
        named = [text.partition(b"/")[::2] for text in numbers[1::2]]
        producers = [_known(epoch, last) for epoch, (last, _) in zip(numbers[::2], named, strict=True)]
        return cls(folded_to, producers, [_number(number, _INT64) if number else NO_TRANSACTION for _, number in named])


def _known(epoch: bytes, last: bytes) -> KnownProducer:
    return KnownProducer(_number(epoch, _INT16), _number(last, _INT32))


def _number(text: bytes, limit: int) -> int:
    number = int(text)
    if not _LEAST <= number < limit:
        raise ValueError(f"{number} is no number of a basis")
    return number


def encode_basis(folded_to: Position, epoch: int, last_sequence: int) -> bytes:
    """The basis of an entry of one batch."""
    return b"%d:%d %d %d" % (folded_to[0], folded_to[1], epoch, last_sequence)
