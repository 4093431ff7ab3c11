"""The verdict on a batch as far as it is known before it is sent: by the fold, and by what is in flight. Pure."""

from __future__ import annotations

from kafka_sidecar.partition.fold.producer_state import ProducerState
from kafka_sidecar.partition.fold.producers import (
    ACCEPTED,
    OUT_OF_ORDER,
    UNJUDGED,
    ProducerTable,
    Verdict,
    is_later,
    is_next_sequence,
)
from kafka_sidecar.partition.log.basis import BatchSequence
from kafka_sidecar.partition.write.append import Append
from kafka_sidecar.partition.write.in_flight import BatchesInFlight
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.records import NO_PRODUCER_ID


def precheck(producers: ProducerTable, in_flight: BatchesInFlight, batch: BatchSequence, *, has_all: bool) -> Verdict:
    """UNJUDGED where an earlier part of the log has to tell, unless the fold `has_all`."""
    last = in_flight.last_of(batch.producer_id)
    if last is None or _is_ahead(producers.states.get(batch.producer_id), last):
        return producers.precheck(batch, has_all=has_all)
    if batch.epoch < last.epoch:
        return Verdict(ErrorCode.INVALID_PRODUCER_EPOCH, -1)
    if batch.epoch > last.epoch:
        return ACCEPTED if batch.first == 0 else OUT_OF_ORDER
    if is_next_sequence(last.last_sequence, batch.first):
        return ACCEPTED
    # The sequence does not follow the last one in flight: either the fold knows the batch, or sequences are missing
    # before it.
    known = producers.precheck(batch, has_all=has_all)
    return known if known.duplicate or known is UNJUDGED else OUT_OF_ORDER


def _is_ahead(state: ProducerState | None, last: Append) -> bool:
    """Whether the log has later batches of a producer than the last one that is on its way from here.

    Its client has gone to another sidecar meanwhile, and comes back.
    """
    if state is None or state.epoch < last.epoch:
        return False
    if state.epoch > last.epoch:
        return True
    return state.last >= 0 and is_later(state.last, last.last_sequence)


def is_next_of_producer(
    producers: ProducerTable, in_flight: BatchesInFlight, producer_id: int, epoch: int, first_sequence: int
) -> bool:
    """Whether all is known of the producer, and the batch is its next one. Then `precheck` accepts it."""
    if producer_id == NO_PRODUCER_ID:
        return True
    last = in_flight.last_of(producer_id)
    state = producers.states.awake.get(producer_id)
    if state is None and producers.states.is_asleep(producer_id):
        return False
    if last is not None:
        return (
            last.epoch == epoch and is_next_sequence(last.last_sequence, first_sequence) and not _is_ahead(state, last)
        )
    return state is not None and state.epoch == epoch and is_next_sequence(state.last, first_sequence)
