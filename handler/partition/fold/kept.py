"""A fold as it is kept in Pulsar (see `kept_fold`): a partition with transactions need not be folded from their beginning."""

from __future__ import annotations

from array import array
from collections import OrderedDict, deque
from collections.abc import Iterable
from itertools import accumulate, pairwise

from google.protobuf.message import DecodeError

from handler.partition import kept_state_pb2 as kept
from handler.partition.fold.fold import Fold
from handler.partition.fold.producers import REMEMBERED_BATCHES, ProducerState, WrittenBatch
from handler.partition.fold.transactions import OpenTransaction, TransactionTable
from handler.pulsar.entry import Position


def encode(fold: Fold, transactions: TransactionTable) -> bytes:
    """Of a fold that knows of all transactions, and has come to an entry."""
    assert fold.last_position is not None
    began = fold.replayed_from or Position(0, 0)
    return kept.Fold(
        first_offset=fold.first_offset, next_offset=fold.next_offset,
        last_ledger=fold.last_position.ledger, last_entry=fold.last_position.entry,
        began_within=fold.replayed_from is not None, began_ledger=began.ledger, began_entry=began.entry,
        producers=[_producer(producer_id, state) for producer_id, state in fold.producers.states.items()],
        writers=[kept.Writer(name=name, last_sequence=last) for name, last in fold.writers.items()],
        transactions=_transactions(transactions),
    ).SerializeToString()  # fmt: skip


def position_of(data: bytes) -> Position:
    """The last entry that is folded in it. ValueError where it makes no sense."""
    try:
        stored = kept.Fold.FromString(data)
    except DecodeError as error:
        raise ValueError(str(error)) from error
    return Position(stored.last_ledger, stored.last_entry)


def restore(data: bytes, fold: Fold, transactions: TransactionTable) -> None:
    """Give a fold that has folded nothing, and its table, what was kept. ValueError where it makes no sense."""
    try:
        stored = kept.Fold.FromString(data)
        restored = _transaction_table(stored.transactions)
    except (DecodeError, OverflowError) as error:
        raise ValueError(str(error)) from error
    position = Position(stored.last_ledger, stored.last_entry)
    if position.ledger < 0 or position.entry < 0 or not 0 <= stored.first_offset <= stored.next_offset:
        raise ValueError(f"it ends at entry {position} with offset {stored.next_offset}")
    fold.restore(position, stored.first_offset, stored.next_offset)
    fold.replayed_from = Position(stored.began_ledger, stored.began_entry) if stored.began_within else None
    fold.producers.states = OrderedDict((one.id, _state(one)) for one in stored.producers)
    fold.writers = OrderedDict((one.name, one.last_sequence) for one in stored.writers)
    transactions.take(restored)


def _producer(producer_id: int, state: ProducerState) -> kept.Producer:
    return kept.Producer(
        id=producer_id, epoch=state.epoch, last_sequence=state.last, not_conclusive=not state.conclusive,
        at_ledger=state.at.ledger, at_entry=state.at.entry, max_timestamp=state.max_timestamp,
        batches=[
            kept.Batch(
                first_sequence=one.first, last_sequence=one.last, base_offset=one.base_offset,
                ledger=one.position.ledger, entry=one.position.entry,
            )
            for one in state.batches
        ],
    )  # fmt: skip


def _state(stored: kept.Producer) -> ProducerState:
    batches = (
        WrittenBatch(one.first_sequence, one.last_sequence, one.base_offset, Position(one.ledger, one.entry)) for one in stored.batches
    )
    return ProducerState(
        stored.epoch, stored.last_sequence, not stored.not_conclusive, Position(stored.at_ledger, stored.at_entry), stored.max_timestamp,
        deque(batches, maxlen=REMEMBERED_BATCHES),
    )  # fmt: skip


def _transactions(table: TransactionTable) -> kept.Transactions:
    return kept.Transactions(
        open_producers=list(table.open), open_numbers=[one.number for one in table.open.values()],
        open_first_offsets=[one.first_offset for one in table.open.values()],
        ended_producers=list(table.ended), ended_numbers=list(table.ended.values()),
        aborted_producers=table.aborted_producers, aborted_first_offsets=_differences(table.aborted_first),
        aborted_last_offsets=_differences(table.aborted_last), aborted_stable_offsets=_differences(table.aborted_stable),
        hidden_offsets=sorted(table.hidden),
    )  # fmt: skip


def _transaction_table(stored: kept.Transactions) -> TransactionTable:
    table = TransactionTable()
    opened = zip(stored.open_producers, stored.open_numbers, stored.open_first_offsets, strict=True)
    table.open = {producer_id: OpenTransaction(number, first) for producer_id, number, first in opened}
    table.ended = OrderedDict(zip(stored.ended_producers, stored.ended_numbers, strict=True))
    table.aborted_producers = array("q", stored.aborted_producers)
    table.aborted_first, table.aborted_last, table.aborted_stable = (
        array("q", accumulate(column))
        for column in (stored.aborted_first_offsets, stored.aborted_last_offsets, stored.aborted_stable_offsets)
    )
    if len({len(table.aborted_producers), len(table.aborted_first), len(table.aborted_last), len(table.aborted_stable)}) != 1:
        raise ValueError("its aborted transactions are not whole")
    table.hidden = set(stored.hidden_offsets)
    return table


def _differences(column: Iterable[int]) -> list[int]:
    return [later - earlier for earlier, later in pairwise([0, *column])]
