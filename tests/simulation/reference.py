"""The log folded from its first entry, without any bound and without what writers knew: by Kafka's rules alone.

It shares no code with the product.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from kafka_sidecar.pulsar.entry import RawEntry
from tests.simulation.stored import NATIVE, SEQUENCES, Batch, batches_of, is_unreadable, numbers_of, values_in

_REMEMBERED: Final = 5


@dataclass(slots=True)
class _Producer:
    epoch: int
    last: int
    batches: list[tuple[int, int]] = field(default_factory=list)  # first and last sequence

    def takes(self, batch: Batch) -> bool:
        if batch.epoch < self.epoch:
            return False
        if batch.epoch > self.epoch:
            return batch.first == 0
        if (batch.first, batch.last) in self.batches:
            return False
        return batch.first == (self.last + 1) % SEQUENCES


@dataclass(slots=True)
class Reference:
    """What the log holds for its readers."""

    values: dict[int, bytes] = field(default_factory=dict)
    strays: dict[int, bytes] = field(default_factory=dict)  # what may be there or not, by offset
    hidden: dict[int, bytes] = field(default_factory=dict)
    unreadable: set[int] = field(
        default_factory=set
    )  # offsets of entries that nobody can read, and of what is missing before these
    end: int = 0

    @property
    def counts_first_tries(self) -> bool:
        """Whether all that is hidden is a second try. Else something was refused that comes again, or never came."""
        counted = {value: offset for offset, value in self.values.items()}
        return all(counted.get(value, self.end) < offset for offset, value in self.hidden.items())


@dataclass(slots=True)
class _Transactions:
    """The greatest number of each producer that was begun, and that has ended."""

    begun: dict[int, int] = field(default_factory=dict)
    ended: dict[int, int] = field(default_factory=dict)

    def is_over(self, producer: int, number: int) -> bool:
        return number <= self.ended.get(producer, -1) or number < self.begun.get(producer, -1)


def fold(entries: Sequence[RawEntry], is_stray: Callable[[int, int], bool] = lambda *_: False) -> Reference:
    found = Reference()
    producers: dict[int, _Producer] = {}
    transactions = _Transactions()
    written: dict[bytes, int] = {}  # by writer
    for entry in entries:
        metadata = entry.message_metadata
        if metadata.HasField("marker_type"):
            continue
        if is_unreadable(entry):
            assert entry.last_index is not None
            found.unreadable.update(range(found.end, entry.last_index + 1))
            found.end = entry.last_index + 1
        batches = list(batches_of(entry))
        known = -1 if metadata.producer_name == NATIVE else written.get(metadata.producer_name, -1)
        written[metadata.producer_name] = max(known, metadata.sequence_id + len(batches) - 1)
        in_entry = enumerate(zip(batches, numbers_of(metadata, len(batches)), strict=True))
        for place, (batch, number) in in_entry:
            found.end = batch.offset + batch.count
            if metadata.sequence_id + place <= known:
                if not batch.is_control:
                    found.hidden.update(zip(range(batch.offset, found.end), values_in(batch), strict=True))
                continue
            if batch.is_control:
                _end(producers, transactions, batch, number)
                continue
            if batch.producer >= 0 and is_stray(batch.producer, batch.epoch):
                found.strays.update(zip(range(batch.offset, found.end), values_in(batch), strict=True))
                continue
            if batch.producer >= 0 and not _takes(producers, transactions, batch, number):
                found.hidden.update(zip(range(batch.offset, found.end), values_in(batch), strict=True))
                continue
            found.values.update(zip(range(batch.offset, found.end), values_in(batch), strict=True))
    return found


def _end(producers: dict[int, _Producer], transactions: _Transactions, marker: Batch, number: int) -> None:
    if transactions.is_over(marker.producer, number):
        return
    transactions.ended[marker.producer] = number
    known = producers.get(marker.producer)
    if known is None or marker.epoch > known.epoch:
        producers[marker.producer] = _Producer(marker.epoch, -1)


def _takes(producers: dict[int, _Producer], transactions: _Transactions, batch: Batch, number: int) -> bool:
    known = producers.get(batch.producer)
    if known is None and batch.first != 0:
        # It was sent behind the first, which was refused: all producers here begin with 0, and none is forgotten
        return False
    if known is not None and not known.takes(batch):
        return False
    if batch.is_transactional:
        if transactions.is_over(batch.producer, number):
            return False
        transactions.begun[batch.producer] = number
    if known is None or known.epoch != batch.epoch:
        known = producers[batch.producer] = _Producer(batch.epoch, batch.last)
    known.last = batch.last
    known.batches = [*known.batches, (batch.first, batch.last)][-_REMEMBERED:]
    return True
