"""What a fold knows of producers, as it is kept in Pulsar: who opens the partition next recognises their retries."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from google.protobuf.message import DecodeError

from handler.partition import kept_state_pb2 as kept
from handler.partition.fold.columns import differences
from handler.partition.fold.fold import BEFORE_ALL, Fold
from handler.partition.fold.producers import (
    MAX_PRODUCERS,
    REMEMBERED_BATCHES,
    Before,
    ProducerState,
    ProducerTable,
    Unjudged,
    WrittenBatch,
)
from handler.partition.fold.transactions import TransactionVerdicts
from handler.partition.log.basis import BatchSequence, KnownProducer
from handler.pulsar.entry import Position


class _Row(NamedTuple):
    """A producer's state, copied."""

    producer_id: int
    epoch: int
    last: int
    at: Position
    max_timestamp: int
    batches: Sequence[WrittenBatch]
    follows: Before | None
    has_expired: bool


class KnownProducers(NamedTuple):
    """What a fold knew of producers at one of its entries."""

    last: Position  # BEFORE_ALL where the log had none
    next_offset: int
    began: Position | None  # where it had begun; None: at the start of the log
    producers: Sequence[_Row]  # the one that wrote last is last
    writers: Sequence[tuple[bytes, int]]
    unjudged: Sequence[Unjudged]

    @classmethod
    def of(cls, fold: Fold) -> KnownProducers:
        """A copy, so that it may be encoded while the fold goes on."""
        table = fold.producers
        rows = [
            _Row(one, state.epoch, state.last, state.at, state.max_timestamp, tuple(state.batches), state.follows, state.has_expired)
            for one, state in table.states.items()
        ]
        unjudged = [one for unsure in table.unsure.values() for one in unsure.seen]
        unjudged += [one for row in rows if row.follows is not None for one in row.follows.seen]
        return cls(fold.last_position or BEFORE_ALL, fold.next_offset, fold.replayed_from, rows, list(fold.writers.items()), unjudged)

    def is_surer_than(self, fold: Fold) -> bool:
        """Whether it knows of an earlier part of the log than a fold that has come further."""
        began = fold.replayed_from
        return began is not None and self.next_offset <= fold.next_offset and (self.began is None or self.began < began)

    def fold(self, transactions: TransactionVerdicts) -> Fold:
        """A fold that goes on from there."""
        fold = Fold(self.began, transactions)
        fold.restore(self.last, self.next_offset, self.next_offset)
        self.put_into(fold.producers)
        fold.writers = OrderedDict(self.writers)
        return fold

    def put_into(self, table: ProducerTable) -> None:
        for row in self.producers:
            batches = deque(row.batches, REMEMBERED_BATCHES)
            state = ProducerState(row.epoch, row.last, row.at, row.max_timestamp, batches, row.follows, row.has_expired)
            table.states[row.producer_id] = state
        for one in self.unjudged:
            _put_unjudged(table, one)

    def encode(self) -> bytes:
        """May be done in a thread."""
        return self.message().SerializeToString()

    def message(self) -> kept.Producers:
        rows = self.producers
        batches = [one for row in rows for one in row.batches]
        began = self.began or Position(0, 0)
        incomplete = [(place, row.follows) for place, row in enumerate(rows) if row.follows is not None]
        return kept.Producers(
            next_offset=self.next_offset, last_ledger=self.last.ledger, last_entry=self.last.entry,
            began_within=self.began is not None, began_ledger=began.ledger, began_entry=began.entry,
            ids=[row.producer_id for row in rows], epochs=[row.epoch for row in rows], last_sequences=[row.last for row in rows],
            at_ledgers=differences(row.at.ledger for row in rows), at_entries=differences(row.at.entry for row in rows),
            max_timestamps=differences(row.max_timestamp for row in rows),
            batch_counts=[len(row.batches) for row in rows],
            first_sequences=[one.first for one in batches], batch_last_sequences=[one.last for one in batches],
            base_offsets=differences(one.base_offset for one in batches),
            ledgers=differences(one.position.ledger for one in batches), entries=differences(one.position.entry for one in batches),
            incomplete=[place for place, _ in incomplete], follows_epochs=[follows.known.epoch for _, follows in incomplete],
            follows_sequences=[follows.known.last_sequence for _, follows in incomplete],
            writers=[kept.Writer(name=name, last_sequence=last) for name, last in self.writers],
            unjudged=map(_encoded, self.unjudged),
            expired=[place for place, row in enumerate(rows) if row.has_expired],
        )  # fmt: skip

    @classmethod
    def decode(cls, data: bytes) -> KnownProducers:
        """ValueError where it makes no sense: anybody may have written it. May be done in a thread."""
        try:
            stored = kept.Producers.FromString(data)
        except DecodeError as error:
            raise ValueError(str(error)) from error
        return cls.of_message(stored)

    @classmethod
    def of_message(cls, stored: kept.Producers) -> KnownProducers:
        """ValueError likewise."""
        last = Position(stored.last_ledger, stored.last_entry)
        if (last != BEFORE_ALL and min(last) < 0) or stored.next_offset < 0 or len(stored.ids) > MAX_PRODUCERS:
            raise ValueError(f"it ends at entry {last} with offset {stored.next_offset}, and has {len(stored.ids)} producers")
        began = Position(stored.began_ledger, stored.began_entry) if stored.began_within else None
        writers = [(one.name, one.last_sequence) for one in stored.writers]
        return cls(last, stored.next_offset, began, list(_rows(stored)), writers, list(map(_decoded, stored.unjudged)))


def _put_unjudged(table: ProducerTable, one: Unjudged) -> None:
    """It stands before what is sure of its producer, or nothing is."""
    known = table.states.get(one.batch.producer_id)
    if known is None:
        table.record_unsure(one)
    elif known.follows is not None:
        known.follows = known.follows._replace(seen=(*known.follows.seen, one))


def _rows(stored: kept.Producers) -> Iterator[_Row]:
    incomplete = zip(stored.incomplete, stored.follows_epochs, stored.follows_sequences, strict=True)
    follows = {place: Before(KnownProducer(epoch, sequence)) for place, epoch, sequence in incomplete}
    places = map(Position, accumulate(stored.ledgers), accumulate(stored.entries))
    columns = zip(stored.first_sequences, stored.batch_last_sequences, accumulate(stored.base_offsets), places, strict=True)
    batches = [WrittenBatch(first, last, base_offset, place) for first, last, base_offset, place in columns]
    expired = set(stored.expired)
    taken = 0
    rows = zip(
        stored.ids, stored.epochs, stored.last_sequences, map(Position, accumulate(stored.at_ledgers), accumulate(stored.at_entries)),
        accumulate(stored.max_timestamps), stored.batch_counts, strict=True,
    )  # fmt: skip
    for number, (producer_id, epoch, last, at, max_timestamp, count) in enumerate(rows):
        if count > REMEMBERED_BATCHES or taken + count > len(batches):
            raise ValueError(f"producer {producer_id} has {count} batches")
        its = tuple(batches[taken : taken + count])
        yield _Row(producer_id, epoch, last, at, max_timestamp, its, follows.get(number), number in expired)
        taken += count


def _encoded(one: Unjudged) -> kept.UnjudgedBatch:
    return kept.UnjudgedBatch(
        producer_id=one.batch.producer_id, epoch=one.batch.epoch, first_sequence=one.batch.first, last_sequence=one.batch.last,
        base_offset=one.base_offset, ledger=one.position.ledger, entry=one.position.entry, max_timestamp=one.max_timestamp,
        folded_to_ledger=one.folded_to.ledger, folded_to_entry=one.folded_to.entry, known_epoch=one.known.epoch,
        known_sequence=one.known.last_sequence, writer=one.writer, writer_sequence=one.writer_sequence, sent_again=one.sent_again,
    )  # fmt: skip


def _decoded(stored: kept.UnjudgedBatch) -> Unjudged:
    return Unjudged(
        BatchSequence(stored.producer_id, stored.epoch, stored.first_sequence, stored.last_sequence), stored.base_offset,
        Position(stored.ledger, stored.entry), stored.max_timestamp, Position(stored.folded_to_ledger, stored.folded_to_entry),
        KnownProducer(stored.known_epoch, stored.known_sequence), stored.writer, stored.writer_sequence, stored.sent_again,
    )  # fmt: skip
