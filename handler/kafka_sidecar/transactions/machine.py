"""The life of a transactional id: what is there and a request in, what it becomes or an error out. Pure.

           ┌──────────── init_producer_id ◀───────────┐
           ▼                                          │
(new) ─▶ EMPTY ── add_partitions ──▶ ONGOING ── end, time_out, init_producer_id ──▶ PREPARE_… ── complete ─▶ COMPLETE_…
                                      ▲  │ add_partitions                                                     │
                                      └──┴──────────────────────── add_partitions ◀───────────────────────────┘

The rules are TransactionCoordinator's and TransactionMetadata's (KIP-98, KIP-360, KIP-447, KIP-890). While a change is
on its way to the log (`is_changing`) every other is CONCURRENT_TRANSACTIONS.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, replace
from typing import Final

from kafka_sidecar.transactions.metadata import (
    COMPLETED,
    MAX_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    PREPARED,
    TopicPartition,
    TransactionMetadata,
    TransactionState,
    is_exhausted,
)
from kafka_sidecar.wire.error_code import ErrorCode

Next = TransactionMetadata | ErrorCode

# The valid previous states of each state (TransactionState.validPreviousStates).
_EMPTY, _ONGOING = TransactionState.EMPTY, TransactionState.ONGOING
FROM: Final = {
    _EMPTY: {_EMPTY, *COMPLETED},
    _ONGOING: {_ONGOING, _EMPTY, *COMPLETED},
    TransactionState.PREPARE_COMMIT: {_ONGOING},
    TransactionState.PREPARE_ABORT: {
        _ONGOING,
        _EMPTY,
        *COMPLETED,
    },  # transaction version 2 also aborts a transaction to which no partition was added (KIP-890)
    TransactionState.COMPLETE_COMMIT: {TransactionState.PREPARE_COMMIT},
    TransactionState.COMPLETE_ABORT: {TransactionState.PREPARE_ABORT},
}


@dataclass(frozen=True, slots=True)
class Producer:
    """Who a request says it is."""

    producer_id: int
    epoch: int


NOBODY: Final = Producer(NO_PRODUCER_ID, NO_PRODUCER_EPOCH)


def new(transactional_id: str, producer_id: int, timeout_ms: int, now: int) -> TransactionMetadata:
    """One that has never had a producer: `init_producer_id` gives it epoch 0."""
    return TransactionMetadata(
        transactional_id=transactional_id,
        producer_id=producer_id,
        producer_epoch=NO_PRODUCER_EPOCH,
        timeout_ms=timeout_ms,
        state=TransactionState.EMPTY,
        last_update_timestamp=now,
    )


def init_producer_id(
    metadata: TransactionMetadata,
    expected: Producer,
    timeout_ms: int,
    new_producer_id: int,
    now: int,
    is_changing: bool,
) -> Next:
    """A producer begins, or begins again after an error (KIP-360). One that is prepared to abort gets
    CONCURRENT_TRANSACTIONS.
    """
    if is_changing or _knows_its_end(metadata, expected):
        return ErrorCode.CONCURRENT_TRANSACTIONS
    if expected != NOBODY and not _may_be(metadata, expected):
        return ErrorCode.PRODUCER_FENCED
    if metadata.state in PREPARED:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    if metadata.state is TransactionState.ONGOING:
        return fence(metadata, now)
    if metadata.is_epoch_exhausted and (expected == NOBODY or expected.epoch == metadata.producer_epoch):
        last = NO_PRODUCER_EPOCH if expected == NOBODY else metadata.producer_epoch
        return _begun(metadata, new_producer_id, 0, last, timeout_ms, now)
    bumped = metadata.producer_epoch + 1
    if expected == NOBODY:
        return _begun(metadata, metadata.producer_id, bumped, NO_PRODUCER_EPOCH, timeout_ms, now)
    if metadata.producer_epoch in (NO_PRODUCER_EPOCH, expected.epoch):
        return _begun(metadata, metadata.producer_id, bumped, metadata.producer_epoch, timeout_ms, now)
    if expected.epoch == metadata.last_producer_epoch:  # the response to the producer's first InitProducerId was lost
        return _begun(
            metadata, metadata.producer_id, metadata.producer_epoch, metadata.last_producer_epoch, timeout_ms, now
        )
    return ErrorCode.PRODUCER_FENCED


def _may_be(metadata: TransactionMetadata, expected: Producer) -> bool:
    return (
        metadata.producer_epoch == NO_PRODUCER_EPOCH
        or expected.producer_id == metadata.producer_id
        or (expected.producer_id == metadata.previous_producer_id and is_exhausted(expected.epoch))
    )


def _begun(
    metadata: TransactionMetadata, producer_id: int, epoch: int, last_epoch: int, timeout_ms: int, now: int
) -> TransactionMetadata:
    return replace(
        metadata,
        state=TransactionState.EMPTY,
        producer_id=producer_id,
        previous_producer_id=metadata.producer_id,
        next_producer_id=NO_PRODUCER_ID,
        producer_epoch=epoch,
        last_producer_epoch=last_epoch,
        timeout_ms=timeout_ms,
        partitions=frozenset(),
        start_timestamp=-1,
        last_update_timestamp=now,
        client_version=0,
    )


def fence(metadata: TransactionMetadata, now: int) -> TransactionMetadata:
    """Abort what is ongoing, with an epoch that nobody knows: its producer may write no more."""
    return replace(
        metadata,
        state=TransactionState.PREPARE_ABORT,
        producer_epoch=min(metadata.producer_epoch + 1, MAX_EPOCH),
        last_producer_epoch=NO_PRODUCER_EPOCH,
        last_update_timestamp=now,
        client_version=0,
    )


def _knows_its_end(metadata: TransactionMetadata, producer: Producer) -> bool:
    """Whether this is what a producer is behind its transaction's end. It knows, and goes on while the markers are
    being written.
    """
    if metadata.state not in PREPARED:
        return False
    following = complete(metadata, metadata.last_update_timestamp)
    return (following.producer_id, following.producer_epoch) == (producer.producer_id, producer.epoch)


def _refusal(metadata: TransactionMetadata | None, producer: Producer) -> ErrorCode:
    if metadata is not None and _knows_its_end(metadata, producer):
        return ErrorCode.CONCURRENT_TRANSACTIONS
    if metadata is None or metadata.producer_id != producer.producer_id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    return ErrorCode.NONE if metadata.producer_epoch == producer.epoch else ErrorCode.PRODUCER_FENCED


def add_partitions(
    metadata: TransactionMetadata | None,
    producer: Producer,
    partitions: Set[TopicPartition],
    client_version: int,
    now: int,
    is_changing: bool,
    *,
    is_certain: bool = True,
) -> Next:
    """Partitions are to take part. NONE where they do already. `is_certain`: these are the partitions that the producer
    writes to.
    """
    refusal = _refusal(metadata, producer)
    if refusal is not ErrorCode.NONE or metadata is None:
        return refusal
    if is_changing or metadata.state in PREPARED:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    if metadata.state is TransactionState.ONGOING:
        if partitions <= metadata.partitions and (is_certain or not metadata.marked_from):
            return ErrorCode.NONE
        return replace(
            metadata,
            partitions=metadata.partitions | partitions,
            last_update_timestamp=now,
            client_version=client_version,
            marked_from=metadata.marked_from if is_certain else 0,
        )
    return replace(
        metadata,
        state=TransactionState.ONGOING,
        partitions=frozenset(partitions),
        start_timestamp=now,
        last_update_timestamp=now,
        client_version=client_version,
        number=metadata.number + 1,
        marked_from=(metadata.marked_from or metadata.number + 1) if is_certain else 0,
    )


def verify(metadata: TransactionMetadata | None, producer: Producer, partition: TopicPartition) -> ErrorCode:
    """Whether a batch may be appended to a partition (KIP-890). A change under way is of no account: the log tells what
    came first.
    """
    refusal = _refusal(metadata, producer)
    if refusal is not ErrorCode.NONE or metadata is None:
        return refusal
    if metadata.state in PREPARED:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    is_in_it = metadata.state is TransactionState.ONGOING and partition in metadata.partitions
    return ErrorCode.NONE if is_in_it else ErrorCode.TRANSACTION_ABORTABLE


def end(
    metadata: TransactionMetadata | None,
    producer: Producer,
    commit: bool,
    client_version: int,
    new_producer_id: int,
    now: int,
    is_changing: bool,
) -> Next:
    """A producer commits or aborts. NONE where that has been done."""
    if metadata is None:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if _knows_its_end(metadata, producer):
        return ErrorCode.CONCURRENT_TRANSACTIONS
    is_retry = _is_retry(metadata, producer)
    if metadata.producer_id != producer.producer_id and not is_retry:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if not is_retry and (
        metadata.producer_epoch != producer.epoch or (metadata.bumps_epochs and metadata.state in PREPARED)
    ):
        return ErrorCode.PRODUCER_FENCED
    if is_changing:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    state = metadata.state
    if state is TransactionState.ONGOING:
        return (
            ErrorCode.PRODUCER_FENCED if is_retry else _prepared(metadata, commit, client_version, new_producer_id, now)
        )
    if state in PREPARED:
        return ErrorCode.CONCURRENT_TRANSACTIONS if commit is metadata.is_committed else ErrorCode.INVALID_TXN_STATE
    if client_version >= 2 and not is_retry:
        # With transaction version 2 an abort bumps the epoch even if no partition was added to the transaction. A
        # commit of such a transaction is an error.
        return (
            ErrorCode.INVALID_TXN_STATE if commit else _prepared(metadata, commit, client_version, new_producer_id, now)
        )
    is_done = state in COMPLETED and commit is metadata.is_committed
    return ErrorCode.NONE if is_done else ErrorCode.INVALID_TXN_STATE


def _is_retry(metadata: TransactionMetadata, producer: Producer) -> bool:
    """Whether a producer of version 2 says again what has bumped its epoch already."""
    if not metadata.bumps_epochs or metadata.state not in PREPARED | COMPLETED:
        return False
    if metadata.producer_id == producer.producer_id:
        return metadata.producer_epoch == producer.epoch + 1
    return (
        metadata.previous_producer_id == producer.producer_id
        and producer.epoch == MAX_EPOCH - 1
        and metadata.producer_epoch == 0
    )


def _prepared(
    metadata: TransactionMetadata, commit: bool, client_version: int, new_producer_id: int, now: int
) -> TransactionMetadata:
    state = TransactionState.PREPARE_COMMIT if commit else TransactionState.PREPARE_ABORT
    partitions = metadata.partitions if metadata.state is TransactionState.ONGOING else frozenset()
    start = metadata.start_timestamp if metadata.state is TransactionState.ONGOING else now
    changed = replace(
        metadata,
        state=state,
        partitions=partitions,
        start_timestamp=start,
        last_update_timestamp=now,
        client_version=client_version,
    )
    if client_version < 2:
        return changed
    next_producer_id = new_producer_id if metadata.is_epoch_exhausted else NO_PRODUCER_ID
    return replace(
        changed,
        producer_epoch=metadata.producer_epoch + 1,
        last_producer_epoch=metadata.producer_epoch,
        next_producer_id=next_producer_id,
    )


def complete(metadata: TransactionMetadata, now: int) -> TransactionMetadata:
    """All markers are in their logs."""
    state = TransactionState.COMPLETE_COMMIT if metadata.is_committed else TransactionState.COMPLETE_ABORT
    changed = replace(metadata, state=state, partitions=frozenset(), last_update_timestamp=now)
    if not metadata.bumps_epochs:
        return changed
    if metadata.next_producer_id == NO_PRODUCER_ID:
        return replace(changed, previous_producer_id=metadata.producer_id)
    return replace(
        changed,
        producer_id=metadata.next_producer_id,
        producer_epoch=0,
        previous_producer_id=metadata.producer_id,
        next_producer_id=NO_PRODUCER_ID,
    )


def is_timed_out(metadata: TransactionMetadata, now: int) -> bool:
    return metadata.state is TransactionState.ONGOING and metadata.start_timestamp + metadata.timeout_ms < now


assert set(FROM) | {TransactionState.DEAD, TransactionState.PREPARE_EPOCH_FENCE} == set(TransactionState)
