"""What a fold knows of one producer."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from kafka_sidecar.partition.log.basis import BatchSequence, KnownProducer
from kafka_sidecar.pulsar.entry import Position
from kafka_sidecar.wire.records import NO_TIMESTAMP

# ProducerStateEntry.NUM_BATCHES_TO_RETAIN: as many as a producer may have in flight.
REMEMBERED_BATCHES: Final = 5

# The `folded_to` of a batch that was replicated from another cluster. No single position in this log decides how it is
# judged: all entries before it do.
THE_PAST: Final = Position(-2, -2)

# The sequence of a producer if only its epoch is known, from a marker: its next batch may have any sequence.
ANY_SEQUENCE: Final = -2


class WrittenBatch(NamedTuple):
    first: int
    last: int
    base_offset: int
    position: Position


class Unjudged(NamedTuple):
    """A batch that others may have accepted or not: this fold does not know."""

    batch: BatchSequence  # a marker has ANY_SEQUENCE as its first and last sequence
    base_offset: int
    position: Position
    max_timestamp: int
    folded_to: Position  # position up to which the batch's writer had folded the log; THE_PAST for a replicated batch
    known: KnownProducer  # the producer's last batch, as the batch's writer knew it
    writer: bytes = b""
    writer_sequence: int = 0
    sent_again: bool = False

    @property
    def is_marker(self) -> bool:
        return self.batch.first == ANY_SEQUENCE

    @property
    def is_replicated(self) -> bool:
        return self.folded_to == THE_PAST


class Before(NamedTuple):
    """What a producer wrote before the batches that are remembered of it."""

    known: KnownProducer  # the last of these earlier batches
    seen: tuple[Unjudged, ...] = ()  # those of the earlier batches that this fold has read, but could not judge


@dataclass(slots=True)
class ProducerState:
    epoch: int
    last: int
    at: Position  # no batch of the producer stands between its last one and this position
    max_timestamp: int = NO_TIMESTAMP  # of the last batch; NO_TIMESTAMP if this fold has not read that batch
    batches: deque[WrittenBatch] = field(default_factory=lambda: deque(maxlen=REMEMBERED_BATCHES))
    follows: Before | None = None  # what came before the remembered batches; None: no batch is missing there
    # The producer counted as expired before its batches here; what a writer knew of it overrides this.
    has_expired: bool = False
    began_at: int | None = None  # for a producer of another cluster: its first sequence here, accepted without a check
    # Last sequence of the accepted batches that come before `began_at` in sequence, but later in the log.
    filled_to: int | None = None
    # Nothing was known of the producer when its first batch here was folded.
    is_first: bool = field(default=False, compare=False)

    def copy(self) -> ProducerState:
        return ProducerState(
            self.epoch,
            self.last,
            self.at,
            self.max_timestamp,
            self.batches.copy(),
            self.follows,
            self.has_expired,
            self.began_at,
            self.filled_to,
            self.is_first,
        )

    @property
    def has_markers_alone(self) -> bool:
        """Whether a marker is all that was seen of it: then its epoch is known, and no sequence."""
        return self.last == ANY_SEQUENCE and not self.batches

    @property
    def is_the_least(self) -> bool:
        """Whether the fold has seen no batch of it that counts. Then the producer has come to this epoch and sequence
        at least.
        """
        return not self.batches and (self.has_expired or self.last == ANY_SEQUENCE)

    @property
    def knows_its_batches(self) -> bool:
        """Whether a batch that is not among the remembered ones is none of the last five."""
        return self.follows is None or len(self.batches) == REMEMBERED_BATCHES


@dataclass(slots=True)
class UnsureProducer:
    seen: list[Unjudged] = field(default_factory=list)

    @property
    def known_from(self) -> Position:
        """A fold that began here could judge all that was seen, but for what was replicated."""
        return min((one.folded_to for one in self.seen if not one.is_replicated), default=THE_PAST)
