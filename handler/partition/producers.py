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

from kio.schema.errors import ErrorCode

from handler.wire.records import next_sequence

# ProducerStateEntry.NUM_BATCHES_TO_RETAIN: as many as a producer may have in flight.
REMEMBERED_BATCHES: Final = 5
# Kafka forgets a producer id after a day (producer.id.expiration.ms); here the least recently used
# one goes when there are too many, so the memory of a partition has a bound.
MAX_PRODUCERS: Final = 10_000


class Verdict(NamedTuple):
    """What an append means: its base offset, or why it is refused."""

    error: ErrorCode
    base_offset: int
    duplicate: bool = False
    timestamp: int = -1

    @property
    def accepted(self) -> bool:
        return self.error is ErrorCode.none and not self.duplicate


class Sequence(NamedTuple):
    """A batch as its producer numbers it."""

    producer_id: int
    epoch: int
    first: int
    last: int


class WrittenBatch(NamedTuple):
    first: int
    last: int
    base_offset: int


ACCEPTED: Final = Verdict(ErrorCode.none, -1)


@dataclass(slots=True)
class ProducerState:
    epoch: int
    whole: bool  # whether it is known from its first batch on
    batches: deque[WrittenBatch] = field(default_factory=lambda: deque(maxlen=REMEMBERED_BATCHES))


class ProducerTable:
    __slots__ = ("_states",)

    def __init__(self) -> None:
        self._states: OrderedDict[int, ProducerState] = OrderedDict()

    def __len__(self) -> int:
        return len(self._states)

    def check(self, batch: Sequence) -> Verdict:
        """What appending `batch` now would mean. Changes nothing."""
        state = self._states.get(batch.producer_id)
        if state is None:
            return ACCEPTED
        if batch.epoch < state.epoch:
            return Verdict(ErrorCode.invalid_producer_epoch, -1)
        if batch.epoch > state.epoch:
            # "A new epoch must begin at sequence 0" (ProducerAppendInfo.checkSequence).
            return ACCEPTED if batch.first == 0 else Verdict(ErrorCode.out_of_order_sequence_number, -1)
        for written in state.batches:
            if written.first == batch.first and written.last == batch.last:
                return Verdict(ErrorCode.none, written.base_offset, duplicate=True)
        if state.batches and not follows(state.batches[-1].last, batch.first):
            return Verdict(ErrorCode.out_of_order_sequence_number, -1)
        return ACCEPTED

    def knows_whole(self, producer_id: int) -> bool:
        state = self._states.get(producer_id)
        return state is not None and state.whole

    def record(self, batch: Sequence, base_offset: int) -> None:
        state = self._states.get(batch.producer_id)
        if state is None or state.epoch != batch.epoch:
            state = self._states[batch.producer_id] = ProducerState(batch.epoch, whole=batch.first == 0)
            if len(self._states) > MAX_PRODUCERS:
                self._states.popitem(last=False)
        state.batches.append(WrittenBatch(batch.first, batch.last, base_offset))
        self._states.move_to_end(batch.producer_id)


def follows(last: int, first: int) -> bool:
    """Whether sequence `first` comes right after `last`; 0 comes after 2^31−1."""
    return first == next_sequence(last, 1)
