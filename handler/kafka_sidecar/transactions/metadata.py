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
# The states in which `transactional.id.expiration.ms` applies.
AT_REST: Final = frozenset({TransactionState.EMPTY, *COMPLETED})


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionMetadata:
    transactional_id: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    state: TransactionState
    last_update_timestamp: int
    previous_producer_id: int = NO_PRODUCER_ID  # producer id of the last committed transaction
    next_producer_id: int = NO_PRODUCER_ID  # producer id that follows when the epochs of producer_id are exhausted
    last_producer_epoch: int = NO_PRODUCER_EPOCH
    partitions: frozenset[TopicPartition] = frozenset()
    start_timestamp: int = -1
    client_version: int = 0  # transaction version of the client: from 2 on each transaction bumps the epoch (KIP-890)
    # How many transactions this id has begun, which is the number of the current one. Kafka has no such field (see
    # docs/design/transactions.md).
    number: int = 0
    # From this transaction number on, all markers are in the logs that the producer wrote to; 0 if unknown. If a
    # sidecar of version 0.2 took part, a marker may be in the log of another namespace's topic. A coordinator of
    # version 0.2 does not store this field, which resets it to 0.
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
