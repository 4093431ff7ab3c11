"""A fold as it is kept in Pulsar (see `fold_snapshots`): a partition with transactions need not be folded from their
beginning.
"""

from __future__ import annotations

from array import array
from collections import OrderedDict, deque
from collections.abc import Iterator, Sequence
from itertools import accumulate, chain, islice
from typing import Final, NamedTuple

from google.protobuf.message import DecodeError

from kafka_sidecar.partition import snapshot_pb2 as pb
from kafka_sidecar.partition.fold.columns import differences
from kafka_sidecar.partition.fold.fold import BEFORE_ALL, Fold
from kafka_sidecar.partition.fold.known_producers import KnownProducers
from kafka_sidecar.partition.fold.left_open import ByProducer, LeftOpen, Undone
from kafka_sidecar.partition.fold.producer_state import (
    ANY_SEQUENCE,
    REMEMBERED_BATCHES,
    Before,
    ProducerState,
    Unjudged,
    WrittenBatch,
)
from kafka_sidecar.partition.fold.producers import ProducerTable
from kafka_sidecar.partition.fold.transactions import OpenTransaction, TransactionTable
from kafka_sidecar.partition.log.basis import UNKNOWN_PRODUCER, BatchSequence, KnownProducer
from kafka_sidecar.pulsar.entry import Position

MAX_PRODUCERS_IN_0_2: Final = 10_000


class Snapshot(NamedTuple):
    """What a fold knew at one moment. The long part of it is not encoded yet: that may be done in a thread."""

    fold: pb.Fold
    producers: KnownProducers
    transactions: TransactionTable

    @property
    def position(self) -> Position:
        """The last entry that is folded in it."""
        return _position(self.fold)

    def encode(self) -> bytes:
        self.fold.known.CopyFrom(self.producers.message())
        self.fold.producers.extend(_for_sidecars_of_0_2(self.producers))
        self.fold.transactions.CopyFrom(_transactions(self.transactions))
        return self.fold.SerializeToString()


class DecodedSnapshot(NamedTuple):
    """What was kept, decoded."""

    fold: pb.Fold
    producers: KnownProducers | None
    transactions: TransactionTable

    @property
    def position(self) -> Position:
        """The last entry that is folded in it."""
        return _position(self.fold)


def _position(fold: pb.Fold) -> Position:
    return Position(fold.last_ledger, fold.last_entry)


def snapshot_of(fold: Fold, transactions: TransactionTable) -> Snapshot:
    """Of a fold that knows of all transactions, and has come to an entry."""
    assert fold.last_position is not None
    began = fold.replayed_from or Position(0, 0)
    stored = pb.Fold(
        first_offset=fold.first_offset,
        next_offset=fold.next_offset,
        last_ledger=fold.last_position.ledger,
        last_entry=fold.last_position.entry,
        began_within=fold.replayed_from is not None,
        began_ledger=began.ledger,
        began_entry=began.entry,
        writers=[pb.Writer(name=name, last_sequence=last) for name, last in fold.writers.items()],
    )
    return Snapshot(stored, KnownProducers.of(fold), transactions.copy())


def decode(data: bytes) -> DecodedSnapshot:
    """ValueError where it makes no sense: anybody may have written it. May be done in a thread."""
    try:
        stored = pb.Fold.FromString(data)
        known = KnownProducers.of_message(stored.known) if stored.HasField("known") else None
        found = DecodedSnapshot(stored, known, _transaction_table(stored.transactions))
    except (DecodeError, OverflowError, IndexError) as error:
        raise ValueError(str(error)) from error
    position = found.position
    if position.ledger < 0 or position.entry < 0 or not 0 <= stored.first_offset <= stored.next_offset:
        raise ValueError(f"it ends at entry {position} with offset {stored.next_offset}")
    return found


def restore(found: DecodedSnapshot, fold: Fold, transactions: TransactionTable) -> None:
    """Give a fold that has folded nothing, and its table, what was kept."""
    stored, position = found.fold, found.position
    fold.restore(position, stored.first_offset, stored.next_offset)
    fold.replayed_from = Position(stored.began_ledger, stored.began_entry) if stored.began_within else None
    if found.producers is not None:
        found.producers.put_into(fold.producers)
    else:
        _restore_producers(fold.producers, stored)
    fold.writers = OrderedDict((one.name, one.last_sequence) for one in stored.writers)
    transactions.take(found.transactions)


def _for_sidecars_of_0_2(producers: KnownProducers) -> Iterator[pb.Producer]:
    """They know as many as this, and take a doubtful one for what its last batches say."""
    asleep = islice(producers.asleep.items(), max(0, MAX_PRODUCERS_IN_0_2 - len(producers.awake)))
    for producer_id, state in chain(asleep, producers.awake):
        yield _producer(producer_id, state)
    unsure: dict[int, list[Unjudged]] = {}
    for one in producers.unjudged:
        unsure.setdefault(one.batch.producer_id, []).append(one)
    for producer_id, state in producers.awake:
        if state.follows is not None and state.follows.seen:
            unsure.pop(producer_id, None)
    for producer_id, seen in unsure.items():
        yield _unsure(producer_id, seen)


def _producer(producer_id: int, state: ProducerState) -> pb.Producer:
    return pb.Producer(
        id=producer_id,
        epoch=state.epoch,
        last_sequence=state.last,
        at_ledger=state.at.ledger,
        at_entry=state.at.entry,
        max_timestamp=state.max_timestamp,
        batches=[_batch(one) for one in state.batches],
    )


def _unsure(producer_id: int, seen: Sequence[Unjudged]) -> pb.Producer:
    last = seen[-1]
    written = [
        WrittenBatch(one.batch.first, one.batch.last, one.base_offset, one.position)
        for one in seen[-REMEMBERED_BATCHES:]
    ]
    return pb.Producer(
        id=producer_id,
        epoch=last.batch.epoch,
        last_sequence=last.batch.last,
        not_conclusive=True,
        at_ledger=last.position.ledger,
        at_entry=last.position.entry,
        max_timestamp=last.max_timestamp,
        batches=[_batch(one) for one in written],
    )


def _batch(one: WrittenBatch) -> pb.Batch:
    return pb.Batch(
        first_sequence=one.first,
        last_sequence=one.last,
        base_offset=one.base_offset,
        ledger=one.position.ledger,
        entry=one.position.entry,
    )


def _state(stored: pb.Producer, *, is_whole: bool) -> ProducerState:
    batches = (
        WrittenBatch(one.first_sequence, one.last_sequence, one.base_offset, Position(one.ledger, one.entry))
        for one in stored.batches
    )
    return ProducerState(
        stored.epoch,
        stored.last_sequence,
        Position(stored.at_ledger, stored.at_entry),
        stored.max_timestamp,
        deque(batches, maxlen=REMEMBERED_BATCHES),
        None if is_whole else Before(KnownProducer(stored.epoch, ANY_SEQUENCE)),
    )


def _restore_producers(table: ProducerTable, stored: pb.Fold) -> None:
    """Of what a sidecar of 0.2 has kept."""
    for one in stored.producers:
        if one.not_conclusive:
            _restore_unsure(table, one)
        else:
            table.states[one.id] = _state(one, is_whole=not stored.began_within)


def _restore_unsure(table: ProducerTable, stored: pb.Producer) -> None:
    for one in stored.batches:
        batch = BatchSequence(stored.id, stored.epoch, one.first_sequence, one.last_sequence)
        place = Position(one.ledger, one.entry)
        table.record_unsure(Unjudged(batch, one.base_offset, place, stored.max_timestamp, BEFORE_ALL, UNKNOWN_PRODUCER))


def _transactions(table: TransactionTable) -> pb.Transactions:
    assert table.known_from is not None
    known_from = table.known_from
    producers = {producer_id: place for place, producer_id in enumerate(dict.fromkeys(table.aborted_producers))}
    return pb.Transactions(
        open_producers=list(table.open),
        open_numbers=[one.number for one in table.open.values()],
        open_first_offsets=[one.first_offset for one in table.open.values()],
        ended_producers=list(table.ended),
        ended_numbers=list(table.ended.values()),
        producers=list(producers),
        aborted_producers=[producers[producer_id] for producer_id in table.aborted_producers],
        aborted_first_offsets=differences(table.aborted_first),
        aborted_last_offsets=differences(table.aborted_last),
        aborted_stable_offsets=differences(table.aborted_stable),
        hidden_offsets=sorted(table.hidden),
        known_from_ledger=known_from.ledger,
        known_from_entry=known_from.entry,
        left_producers=[one.producer_id for one in table.left_open],
        left_numbers=[one.number for one in table.left_open],
        left_first_offsets=[one.first_offset for one in table.left_open],
        left_behind=[one.behind for one in table.left_open],
        undone_producers=[one.producer_id for one in table.undone],
        undone_first_offsets=[one.first_offset for one in table.undone],
        undone_behind=[one.behind for one in table.undone],
    )


def _transaction_table(stored: pb.Transactions) -> TransactionTable:
    table = TransactionTable()
    table.known_from = Position(stored.known_from_ledger, stored.known_from_entry)
    opened = zip(stored.open_producers, stored.open_numbers, stored.open_first_offsets, strict=True)
    table.open = {producer_id: OpenTransaction(number, first) for producer_id, number, first in opened}
    table.ended = OrderedDict(zip(stored.ended_producers, stored.ended_numbers, strict=True))
    producers = stored.producers
    table.aborted_producers = array("q", (producers[place] for place in stored.aborted_producers))
    table.aborted_first, table.aborted_last, table.aborted_stable = (
        array("q", accumulate(column))
        for column in (stored.aborted_first_offsets, stored.aborted_last_offsets, stored.aborted_stable_offsets)
    )
    if (
        len(
            {len(table.aborted_producers), len(table.aborted_first), len(table.aborted_last), len(table.aborted_stable)}
        )
        != 1
    ):
        raise ValueError("its aborted transactions are not whole")
    table.hidden = set(stored.hidden_offsets)
    left = zip(stored.left_producers, stored.left_numbers, stored.left_first_offsets, stored.left_behind, strict=True)
    table.left_open = ByProducer(LeftOpen(*one) for one in left)
    undone = zip(stored.undone_producers, stored.undone_first_offsets, stored.undone_behind, strict=True)
    table.undone = ByProducer(Undone(*one) for one in undone)
    return table
