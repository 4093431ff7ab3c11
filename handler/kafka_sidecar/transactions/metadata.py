"""A transactional id and the transaction that it has, in Kafka's words (TransactionMetadata, TransactionState)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

NO_PRODUCER_ID: Final = -1
NO_PRODUCER_EPOCH: Final = -1
MAX_EPOCH: Final = 2**15 - 1

TopicPartition = tuple[str, int]


class TransactionState(IntEnum):
    """As they are stored, and as DescribeTransactions names them."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def title(self) -> str:
        return self.name.title().replace("_", "")


PREPARED: Final = frozenset({TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT})
COMPLETED: Final = frozenset({TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT})
# `transactional.id.expiration.ms` applies to these.
AT_REST: Final = frozenset({TransactionState.EMPTY, *COMPLETED})


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionMetadata:
    transactional_id: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    state: TransactionState
    last_update_timestamp: int
    previous_producer_id: int = NO_PRODUCER_ID  # of the last committed transaction
    next_producer_id: int = NO_PRODUCER_ID  # the producer gets it where its epochs are used up
    last_producer_epoch: int = NO_PRODUCER_EPOCH
    partitions: frozenset[TopicPartition] = frozenset()
    start_timestamp: int = -1
    client_version: int = 0  # of transactions: 2 where the epoch grows with each (KIP-890)
    # How many transactions this id has begun: the number of the one that is there. Kafka has none (see
    # ARCHITECTURE.md).
    number: int = 0
    # From this number on all markers are in the logs that the producer wrote to; 0 where that is not known. Where a
    # sidecar of 0.2 had to do with it, a marker may be in the log of another namespace's topic. As a coordinator it
    # doesn't store this, so it is forgotten.
    marked_from: int = 0

    @property
    def is_epoch_exhausted(self) -> bool:
        """The greatest epoch is kept for fencing."""
        return is_exhausted(self.producer_epoch)

    @property
    def bumps_epochs(self) -> bool:
        return self.client_version >= 2

    @property
    def producer_ids(self) -> set[int]:
        """The present one, and the one before."""
        return {self.producer_id, self.previous_producer_id} - {NO_PRODUCER_ID}

    @property
    def ended_number(self) -> int:
        """The greatest number that has ended, with all its markers."""
        return self.number if self.state in AT_REST else self.number - 1

    @property
    def is_committed(self) -> bool:
        return self.state in (TransactionState.PREPARE_COMMIT, TransactionState.COMPLETE_COMMIT)


def is_exhausted(epoch: int) -> bool:
    return epoch >= MAX_EPOCH - 1
