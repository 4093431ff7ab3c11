"""Idempotence by Kafka's rules: what each producer id wrote last (KIP-98, KIP-360).

The rules are those of ProducerAppendInfo and ProducerStateEntry: the last five batches of a
producer are remembered, a batch equal to one of them is a duplicate and is answered with the offset
it got then; otherwise the sequence must follow the last one. A producer of which nothing is known
may begin anywhere: its state may have expired.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from handler.partition.log.basis import BatchSequence, KnownProducer
from handler.pulsar.entry import Position
from handler.wire.error_code import ErrorCode
from handler.wire.records import MAX_SEQUENCE, NO_TIMESTAMP

# ProducerStateEntry.NUM_BATCHES_TO_RETAIN: as many as a producer may have in flight.
REMEMBERED_BATCHES: Final = 5
# Kafka forgets a producer id after a day (producer.id.expiration.ms); here the least recently used
# one goes when there are too many, so the memory of a partition has a bound.
MAX_PRODUCERS: Final = 10_000


# Of a producer of which only the epoch is known, from a marker: it may begin anywhere.
ANY_SEQUENCE: Final = -2


class Verdict(NamedTuple):
    """The outcome of an append: its base offset, or why it is refused."""

    error: ErrorCode
    base_offset: int
    duplicate: bool = False

    @property
    def accepted(self) -> bool:
        return self.error is ErrorCode.NONE and not self.duplicate


class WrittenBatch(NamedTuple):
    first: int
    last: int
    base_offset: int
    position: Position


ACCEPTED: Final = Verdict(ErrorCode.NONE, -1)


@dataclass(slots=True)
class ProducerState:
    epoch: int
    last: int
    conclusive: bool  # every fold comes to this, wherever it began
    at: Position  # where the last batch stands, at the latest
    max_timestamp: int = NO_TIMESTAMP  # of the last batch, where this fold has seen it
    batches: deque[WrittenBatch] = field(default_factory=lambda: deque(maxlen=REMEMBERED_BATCHES))


class ProducerTable:
    __slots__ = ("states",)

    def __init__(self) -> None:
        self.states: OrderedDict[int, ProducerState] = OrderedDict()  # by producer id; the one that wrote last is last

    def __len__(self) -> int:
        return len(self.states)

    def check(self, batch: BatchSequence) -> Verdict:
        """The verdict that `batch` would get now. Changes nothing."""
        state = self.states.get(batch.producer_id)
        if state is None:
            return ACCEPTED
        if batch.epoch < state.epoch:
            return Verdict(ErrorCode.INVALID_PRODUCER_EPOCH, -1)
        if batch.epoch > state.epoch:
            # "A new epoch must begin at sequence 0" (ProducerAppendInfo.checkSequence).
            return ACCEPTED if batch.first == 0 else Verdict(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
        for written in state.batches:
            if written.first == batch.first and written.last == batch.last:
                return Verdict(ErrorCode.NONE, written.base_offset, duplicate=True)
        if state.last != ANY_SEQUENCE and not is_next_sequence(state.last, batch.first):
            return Verdict(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
        return ACCEPTED

    def fence(self, producer_id: int, epoch: int, position: Position, *, conclusive: bool) -> None:
        """A marker says which epoch its producer has now: an older one may write no more (ProducerAppendInfo.appendEndTxnMarker)."""
        state = self.states.get(producer_id)
        if state is None:
            self._put(producer_id, ProducerState(epoch, ANY_SEQUENCE, conclusive, position))
        elif epoch > state.epoch:
            self._put(producer_id, ProducerState(epoch, -1, conclusive, position))  # the first of a new epoch is 0
        self.states.move_to_end(producer_id)

    def adopt_basis(self, producer_id: int, folded_to: Position, known: KnownProducer) -> None:
        """Before a batch is judged: take over what its writer knew of its producer when it had folded the log up to `folded_to`.

        A fold that began later has not seen the producer's earlier batches, and would refuse, or accept, another batch than the
        writer did. The writer's word counts, unless this fold has itself seen a batch of the producer behind `folded_to`, or knows the
        same. Batches behind `folded_to` that this fold has seen are then judged again on top of it. So: the writer knew sequence 9 at
        entry 40, this fold began at 38 and saw sequences 10 to 14 at entry 41. It takes over 9, judges 10 to 14 again, and goes on.

        Also where the writer knew nothing: its state had expired, and the batch that it accepted then was acknowledged.
        """
        state = self.states.get(producer_id)
        if state is None:
            if known.epoch >= 0:
                self._put(producer_id, ProducerState(known.epoch, known.last_sequence, conclusive=True, at=folded_to))
            return
        if state.conclusive and (state.at > folded_to or (state.epoch == known.epoch and state.last == known.last_sequence)):
            return
        later = [written for written in state.batches if written.position > folded_to]
        del self.states[producer_id]
        self.adopt_basis(producer_id, folded_to, known)
        for written in later:
            batch = BatchSequence(producer_id, state.epoch, written.first, written.last)
            if self.check(batch).accepted:
                self.record(batch, written.base_offset, written.position, max_timestamp=state.max_timestamp, conclusive=True)

    def record(self, batch: BatchSequence, base_offset: int, position: Position, *, max_timestamp: int, conclusive: bool) -> None:
        state = self.states.get(batch.producer_id)
        if state is None or state.epoch != batch.epoch:
            state = ProducerState(batch.epoch, batch.last, conclusive, position)
            self._put(batch.producer_id, state)
        state.last = batch.last
        state.conclusive = conclusive
        state.at = position
        state.max_timestamp = max_timestamp
        state.batches.append(WrittenBatch(batch.first, batch.last, base_offset, position))
        self.states.move_to_end(batch.producer_id)

    def append(
        self, producer_id: int, state: ProducerState, first: int, last: int, base_offset: int, position: Position, max_timestamp: int
    ) -> None:
        """Record the next batch of a producer in its epoch: `state` is its, and all is known of it."""
        state.last = last
        state.max_timestamp = max_timestamp
        state.at = position
        state.batches.append(WrittenBatch(first, last, base_offset, position))
        self.states.move_to_end(producer_id)

    def _put(self, producer_id: int, state: ProducerState) -> None:
        self.states[producer_id] = state
        if len(self.states) > MAX_PRODUCERS:
            self.states.popitem(last=False)


def is_next_sequence(last: int, first: int) -> bool:
    """Whether sequence `first` comes right after `last`; 0 comes after 2^31−1."""
    return first == last + 1 if last < MAX_SEQUENCE else first == 0
