"""What a fold knows of producers, as it is kept in Pulsar: who opens the partition next recognises their retries."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from itertools import accumulate, chain
from typing import NamedTuple

from google.protobuf.message import DecodeError

from kafka_sidecar.partition import snapshot_pb2 as pb
from kafka_sidecar.partition.fold.columns import differences
from kafka_sidecar.partition.fold.extent import Extent
from kafka_sidecar.partition.fold.fold import BEFORE_ALL, Fold
from kafka_sidecar.partition.fold.log_times import Mark
from kafka_sidecar.partition.fold.packed_states import PackedStates
from kafka_sidecar.partition.fold.producer_state import ProducerState, Unjudged
from kafka_sidecar.partition.fold.producer_states import ProducerMemory
from kafka_sidecar.partition.fold.producers import ProducerTable
from kafka_sidecar.partition.fold.transactions import TransactionVerdicts
from kafka_sidecar.partition.log.basis import BatchSequence, KnownProducer
from kafka_sidecar.pulsar.entry import Position

Row = tuple[int, ProducerState]


class KnownProducers(NamedTuple):
    """What a fold knew of producers at one of its entries."""

    last: Position  # the last folded entry; BEFORE_ALL for an empty log
    next_offset: int
    began: Position | None  # position at which the fold had begun; None: at the start of the log
    asleep: PackedStates
    awake: Sequence[Row]  # in the order of their last writes, the latest last
    writers: Sequence[tuple[bytes, int]]
    unjudged: Sequence[Unjudged]
    marks: Sequence[Mark]  # positions with the broker's time, by which producers expire
    begins_expired: bool = False  # retention had taken what stood before `began`

    @classmethod
    def of(cls, fold: Fold) -> KnownProducers:
        """A copy, so that it may be encoded while the fold goes on."""
        table = fold.producers
        asleep, awake = table.states.copy()
        unjudged = [one for unsure in table.unsure.values() for one in unsure.seen]
        unjudged += [one for _, state in awake if state.follows is not None for one in state.follows.seen]
        writers, marks = list(fold.writers.items()), list(table.states.times.marks)
        last, began = fold.last_position or BEFORE_ALL, fold.replayed_from
        return cls(last, fold.next_offset, began, asleep, awake, writers, unjudged, marks, table.begins_expired)

    @property
    def extent(self) -> Extent:
        return Extent(self.began, self.last)

    @property
    def rows(self) -> Iterator[Row]:
        return chain(self.asleep.items(), self.awake)

    def fold(self, transactions: TransactionVerdicts, memory: ProducerMemory) -> Fold:
        """A fold that goes on from there."""
        fold = Fold(self.began, transactions, memory)
        fold.restore(self.last, self.next_offset, self.next_offset)
        self.put_into(fold.producers)
        fold.writers = OrderedDict(self.writers)
        return fold

    def put_into(self, table: ProducerTable) -> None:
        """Of a fold that knows of no producer yet."""
        table.begins_expired = self.begins_expired
        table.states.take(self.asleep.copy())
        table.states.times.go_on(self.marks)
        for producer_id, state in self.awake:
            table.states[producer_id] = state.copy()
        for one in self.unjudged:
            _put_unjudged(table, one)

    def encode(self) -> bytes:
        """May be done in a thread."""
        return self.message().SerializeToString()

    def message(self) -> pb.Producers:
        packed = self.asleep.copy()
        for row in self.awake:
            packed.add(*row)
        began = self.began or Position(0, 0)
        return pb.Producers(
            next_offset=self.next_offset,
            last_ledger=self.last.ledger,
            last_entry=self.last.entry,
            began_within=self.began is not None,
            began_ledger=began.ledger,
            began_entry=began.entry,
            begins_expired=self.begins_expired,
            pages=packed.pages,
            writers=[pb.Writer(name=name, last_sequence=last) for name, last in self.writers],
            unjudged=map(_encoded, self.unjudged),
            mark_ledgers=differences(mark.position.ledger for mark in self.marks),
            mark_entries=differences(mark.position.entry for mark in self.marks),
            mark_times=differences(mark.at for mark in self.marks),
        )

    @classmethod
    def decode(cls, data: bytes) -> KnownProducers:
        """ValueError where it makes no sense: anybody may have written it. May be done in a thread."""
        try:
            stored = pb.Producers.FromString(data)
        except DecodeError as error:
            raise ValueError(str(error)) from error
        return cls.of_message(stored)

    @classmethod
    def of_message(cls, stored: pb.Producers) -> KnownProducers:
        """ValueError likewise."""
        last = Position(stored.last_ledger, stored.last_entry)
        if (last != BEFORE_ALL and min(last) < 0) or stored.next_offset < 0:
            raise ValueError(f"it ends at entry {last} with offset {stored.next_offset}")
        began = Position(stored.began_ledger, stored.began_entry) if stored.began_within else None
        writers = [(one.name, one.last_sequence) for one in stored.writers]
        columns = zip(
            accumulate(stored.mark_ledgers), accumulate(stored.mark_entries), accumulate(stored.mark_times), strict=True
        )
        marks = [Mark(Position(ledger, entry), at) for ledger, entry, at in columns]
        asleep = PackedStates.of_pages(stored.pages)
        unjudged = list(map(_decoded, stored.unjudged))
        return cls(last, stored.next_offset, began, asleep, [], writers, unjudged, marks, stored.begins_expired)


def _put_unjudged(table: ProducerTable, one: Unjudged) -> None:
    """It stands before what is sure of its producer, or nothing is."""
    known = table.states.get(one.batch.producer_id)
    if known is None:
        table.record_unsure(one)
    elif known.follows is not None:
        known.follows = known.follows._replace(seen=(*known.follows.seen, one))


def _encoded(one: Unjudged) -> pb.UnjudgedBatch:
    return pb.UnjudgedBatch(
        producer_id=one.batch.producer_id,
        epoch=one.batch.epoch,
        first_sequence=one.batch.first,
        last_sequence=one.batch.last,
        base_offset=one.base_offset,
        ledger=one.position.ledger,
        entry=one.position.entry,
        max_timestamp=one.max_timestamp,
        folded_to_ledger=one.folded_to.ledger,
        folded_to_entry=one.folded_to.entry,
        known_epoch=one.known.epoch,
        known_sequence=one.known.last_sequence,
        writer=one.writer,
        writer_sequence=one.writer_sequence,
        sent_again=one.sent_again,
    )


def _decoded(stored: pb.UnjudgedBatch) -> Unjudged:
    return Unjudged(
        BatchSequence(stored.producer_id, stored.epoch, stored.first_sequence, stored.last_sequence),
        stored.base_offset,
        Position(stored.ledger, stored.entry),
        stored.max_timestamp,
        Position(stored.folded_to_ledger, stored.folded_to_entry),
        KnownProducer(stored.known_epoch, stored.known_sequence),
        stored.writer,
        stored.writer_sequence,
        stored.sent_again,
    )
