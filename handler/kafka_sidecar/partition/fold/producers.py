"""Idempotence by Kafka's rules: what each producer id wrote last (KIP-98, KIP-360).

The rules are those of ProducerAppendInfo and ProducerStateEntry: the last five batches of a
producer are remembered, a batch equal to one of them is a duplicate and is answered with the offset
it got then; otherwise the sequence must follow the last one. A producer that is not known
may begin anywhere: its state may have expired.

A fold that began in the middle of a log does not know what stood before. So there are two tables. `states` has what
every fold comes to, wherever it began: verdicts come from nothing else. `unsure` has producers whose batches are here,
and can't be judged here:

    batch whose writer had folded up to where this fold began, or further ──▶ states
    batch whose writer had folded less far ──▶ unsure ──▶ states     when a later batch, or the log before, tells enough
    batch of a producer that is in states ──▶ states                 nothing unsure replaces what is sure

Where a log has lost its beginning to retention, nobody can know what stood there: a producer whose batches were there
has expired, and its first batch that is left counts, whatever its sequence is.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from kafka_sidecar.partition.fold.producer_state import (
    ANY_SEQUENCE,
    REMEMBERED_BATCHES,
    THE_PAST,
    Before,
    ProducerState,
    Unjudged,
    UnsureProducer,
    WrittenBatch,
)
from kafka_sidecar.partition.fold.producer_states import ProducerMemory, ProducerStates
from kafka_sidecar.partition.fold.transactions import TransactionVerdicts
from kafka_sidecar.partition.log.basis import UNKNOWN_PRODUCER, BatchSequence, KnownProducer
from kafka_sidecar.pulsar.entry import Position
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.records import MAX_SEQUENCE

# Approximate bytes of an unjudged batch.
UNJUDGED_BYTES: Final = 512

_SEQUENCES: Final = MAX_SEQUENCE + 1


class Verdict(NamedTuple):
    """The outcome of an append: its base offset, or why it is refused."""

    error: ErrorCode
    base_offset: int
    duplicate: bool = False

    @property
    def accepted(self) -> bool:
        return self.error is ErrorCode.NONE and not self.duplicate

    @property
    def is_hidden(self) -> bool:
        """Whether nobody is given the batch, for certain."""
        return not self.accepted and self is not UNJUDGED


ACCEPTED: Final = Verdict(ErrorCode.NONE, -1)
OUT_OF_ORDER: Final = Verdict(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
# No verdict yet: it depends on entries further back in the log. No client ever gets this value as its answer.
UNJUDGED: Final = Verdict(ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)


class ProducerTable:
    __slots__ = ("begins_expired", "knows_the_past", "memory", "states", "unsure")

    def __init__(self, memory: ProducerMemory | None = None, transactions: TransactionVerdicts | None = None) -> None:
        self.memory = memory or ProducerMemory()
        self.states = ProducerStates(self.memory, transactions)
        # Producers whose batches cannot be judged yet; none is also in `states`
        self.unsure: dict[int, UnsureProducer] = {}
        # Retention has removed the entries before this fold. Producers that wrote there count as unknown, like expired
        # ones.
        self.begins_expired = False
        # True: a producer in neither table has not written for long, so its next batch may have any sequence. False:
        # such a producer may have written before the entries that are folded.
        self.knows_the_past = False

    def __len__(self) -> int:
        return len(self.states) + len(self.unsure)

    # --- what is known

    def check(self, batch: BatchSequence) -> Verdict:
        """The verdict that `batch` would get now, of a producer that is not unsure. Changes nothing."""
        return _verdict(self.judging_state(batch), batch)

    def judging_state(self, batch: BatchSequence) -> ProducerState | None:
        """The state of a batch's producer; None where it does not judge this batch.

        Behind *the least* that a producer has written, retention may have taken batches of it.
        """
        state = self.states.get(batch.producer_id)
        if state is not None and self.begins_expired and state.is_the_least and _comes_behind(batch, state):
            return None
        return state

    def precheck(self, batch: BatchSequence, *, has_all: bool) -> Verdict:
        """The same for a batch that is not in the log yet; UNJUDGED where an earlier part of the log has to tell,
        unless it `has_all`.

        One that is out of order may be a retry of a batch that was written before what is known here.
        """
        state = self.judging_state(batch)
        if state is None and (not self.knows_the_past or (batch.producer_id in self.unsure and not has_all)):
            return UNJUDGED
        verdict = _verdict(state, batch)
        if (
            verdict is OUT_OF_ORDER
            and state is not None
            and not has_all
            and batch.epoch == state.epoch
            and not state.knows_its_batches
        ):
            return verdict if is_later(batch.first, state.last) else UNJUDGED
        return verdict

    @property
    def unjudged(self) -> int:
        """Batches of those that are unsure, and what was seen before batches that are sure."""
        before = [len(state.follows.seen) for state in self.states.awake.values() if state.follows is not None]
        return sum(before) + sum([len(unsure.seen) for unsure in self.unsure.values()])

    @property
    def size(self) -> int:
        """About how many bytes all of it takes."""
        return self.states.size + UNJUDGED_BYTES * self.unjudged

    def has_no_room_for(self, producer_id: int) -> bool:
        """Whether nothing is known of a producer, and there is no room to remember what it writes."""
        return self.memory.is_full and producer_id not in self.states

    # --- what the log says

    def is_judged(self, one: Unjudged, known_from: Position | None) -> bool:
        """Whether this fold, which began at `known_from` (None: at the start), comes to the verdict of all others: that
        of `check`.

        To be asked before `check`, with each batch of a sidecar, in order. It takes over what the batch's writer knew
        of its producer.
        """
        if one.is_replicated:
            return self._is_judged_here(one, known_from)
        is_covered = not self.begins_expired if known_from is None else one.folded_to.after() >= known_from
        producer_id = one.batch.producer_id
        if producer_id in self.unsure:
            return is_covered and self._resolve(producer_id, one.folded_to, one.known)
        if is_covered:
            self.adopt_basis(producer_id, one.folded_to, one.known)
            return True
        state = self.states.get(producer_id)
        if state is not None and state.has_markers_alone and one.known.epoch >= 0 and not self.begins_expired:
            # Only a marker of this producer is known here. The batch's writer knew earlier batches, which stand before
            # all folded entries. So the producer becomes unsure.
            del self.states[producer_id]
            fenced = BatchSequence(producer_id, state.epoch, ANY_SEQUENCE, ANY_SEQUENCE)
            self.record_unsure(one._replace(batch=fenced, position=state.at, known=UNKNOWN_PRODUCER))
            return False
        self._learn_the_least(one, state)
        return state is not None or self.begins_expired

    def _learn_the_least(self, one: Unjudged, state: ProducerState | None) -> None:
        """A batch's writer knew what its producer had written at least. Others may have known of more.

        That counts where nothing is known. It also counts where retention has made a batch the first: it may be a late
        copy.
        """
        if (
            self.begins_expired
            and state is not None
            and state.has_markers_alone
            and max(one.known.epoch, one.batch.epoch) > state.epoch
        ):
            state = None  # a state known from markers alone does not judge a batch of a later epoch (`judging_state`)
        knew_more = (
            (self.begins_expired and _is_old(one))
            if state is None
            else (state.has_expired and _is_ahead(one.known, state))
        )
        if knew_more:
            least = ProducerState(*one.known, one.folded_to, follows=Before(one.known), has_expired=True)
            self.states.put_though_old(one.batch.producer_id, least)

    @property
    def has_replicated(self) -> bool:
        """Whether a producer waits for a verdict whose batches were all replicated."""
        return any(unsure.known_from == THE_PAST for unsure in self.unsure.values())

    def _is_judged_here(self, one: Unjudged, known_from: Position | None) -> bool:
        """The same for a batch that was replicated: it is judged by what this log has of its producer, in the order of
        this log.

        Where its writer knew of later batches, this log lacks some: they were not replicated. Then the producer goes on
        from here.
        """
        producer_id = one.batch.producer_id
        state = self.states.get(producer_id)
        if state is None:
            return known_from is None or self.begins_expired or self.knows_the_past
        if state.last == ANY_SEQUENCE and one.known == (one.batch.epoch, -1) and state.epoch == one.batch.epoch:
            # A marker began this epoch, and the batch's writer knew no batch in it: the next sequence must be 0.
            state.last = -1
        again = self._by_its_writers_word(one, state)
        if again is not None:
            self.states[producer_id] = again
        elif _is_ahead(one.known, state):
            epoch, last = one.known
            begins = one.batch.epoch == epoch and is_later(one.batch.first, last)
            self.states[producer_id] = known = ProducerState(epoch, ANY_SEQUENCE if begins else last, state.at)
            if begins and last == -1:
                known.began_at = one.batch.first  # the batch's writer knew no earlier batch in this epoch
        return True

    def _by_its_writers_word(self, one: Unjudged, state: ProducerState) -> ProducerState | None:
        """What counts of a producer whose first batch here counted whatever it was. `one` was sent again; None where
        that tells nothing.

        The writer had read its log to the end before it sent this again, so it knew all that counted there. Batches
        that it sent again together with this one follow what it knew, and count. Where `one` does not follow them, its
        writer's word tells nothing: retention has taken some of them here, or the other cluster hides `one` as well.
        """
        if not state.has_expired or not one.sent_again or one.known.epoch < 0 or one.batch.epoch < state.epoch:
            return None
        if self._comes_before_all(one.batch):
            return None
        again = _judged_again(one.batch.producer_id, state, THE_PAST, one.known)
        again.at = state.at
        return again if _verdict(again, one.batch).error is ErrorCode.NONE else None

    def check_replicated(self, batch: BatchSequence) -> Verdict:
        """The verdict on a batch that was replicated, when `is_judged` has been asked. Changes nothing."""
        return ACCEPTED if self._comes_before_all(batch) else self.check(batch)

    def record_replicated(
        self,
        batch: BatchSequence,
        base_offset: int,
        position: Position,
        max_timestamp: int,
        *,
        may_follow: bool = False,
    ) -> None:
        """It is in the log and counts."""
        producer_id = batch.producer_id
        if self._comes_before_all(batch):
            self.states[producer_id].filled_to = batch.last
            return
        begins = producer_id not in self.states
        self.record(batch, base_offset, position, max_timestamp, may_follow=may_follow)
        state = self.states[producer_id]
        if begins:
            state.began_at = batch.first
        elif state.began_at is not None and state.batches and state.batches[0].first != state.began_at:
            # Five batches have come since, and a producer has at most five in flight: no earlier one can follow.
            state.began_at = state.filled_to = None

    def note_copy(self, batch: BatchSequence, position: Position) -> None:
        """A replicator has copied a batch once more. Retention may have taken the first copy, and what stands behind it
        follows that.
        """
        state = self.states.get(batch.producer_id)
        if state is None or not self.begins_expired or not state.has_expired or batch.epoch < state.epoch:
            return
        if batch.epoch > state.epoch:
            self.states[batch.producer_id] = ProducerState(batch.epoch, batch.last, position, has_expired=True)
        elif state.last != ANY_SEQUENCE and is_later(batch.last, state.last):
            state.last = batch.last

    def _comes_before_all(self, batch: BatchSequence) -> bool:
        """Whether a batch stands in its producer's sequence before the first that this log has of it, so it is no copy
        of anything here.

        The other cluster has hidden those that came first, for its broker had refused this one alone. Here nobody knew.
        """
        state = self.states.get(batch.producer_id)
        if (
            state is None
            or state.began_at is None
            or state.epoch != batch.epoch
            or not is_later(state.began_at, batch.last)
        ):
            return False
        return state.filled_to is None or is_next_sequence(state.filled_to, batch.first)

    def settle_fenced(self) -> None:
        """The past is known. Where only markers were seen of a producer, its next batch counts, as that of a producer
        that nobody knows.
        """
        for producer_id, unsure in list(self.unsure.items()):
            if all(one.is_marker for one in unsure.seen):
                del self.unsure[producer_id]
                for marker in unsure.seen:
                    self.states[producer_id] = _fenced(self.states.get(producer_id), marker)

    def settle_replicated(self) -> None:
        """No more of the log is read for them: of a producer whose batches were replicated, the first that was seen
        counts.
        """
        for producer_id, unsure in list(self.unsure.items()):
            if unsure.known_from == THE_PAST:
                del self.unsure[producer_id]
                for one in unsure.seen:
                    if one.is_marker:
                        self.states[producer_id] = _fenced(self.states.get(producer_id), one)
                    elif self._is_judged_here(one, None) and self.check_replicated(one.batch).accepted:
                        self.record_replicated(one.batch, one.base_offset, one.position, one.max_timestamp)

    def adopt_basis(self, producer_id: int, folded_to: Position, known: KnownProducer) -> None:
        """Take over what a batch's writer knew of its producer when it had folded the log up to `folded_to`.

        A fold that began later has not seen the producer's earlier batches, and would refuse, or accept, another batch
        than the writer did. The writer's word counts, unless a batch of the producer stands behind `folded_to`.

        Also where the writer knew nothing: its state had expired, and the batch that it accepted then was acknowledged.
        """
        state = self.states.get(producer_id)
        if state is None:
            if known.epoch >= 0:
                self.states.put_though_old(
                    producer_id, ProducerState(known.epoch, known.last_sequence, folded_to, follows=Before(known))
                )
        elif state.at <= folded_to and (state.epoch, state.last) == known:
            # A fold that began behind the producer's last batch knows its state only from this position on.
            state.at = folded_to
            state.has_expired = state.is_first = False
        elif state.has_expired and known.epoch >= 0:
            self.states.put_though_old(producer_id, _judged_again(producer_id, state, folded_to, known))
        elif state.has_markers_alone and known.epoch >= 0 and state.at > folded_to:
            self.states.put_though_old(producer_id, _behind_a_marker(state, known))
        elif state.at > folded_to:
            # The batch is not the producer's first if its writer knew earlier ones.
            state.is_first = state.is_first and known.epoch < 0
        elif known.epoch >= 0:
            # The writer's knowledge replaces the state: earlier batches of the producer no longer count.
            self.states.put_though_old(producer_id, ProducerState(known.epoch, known.last_sequence, folded_to))
        else:
            del self.states[producer_id]

    def record(
        self,
        batch: BatchSequence,
        base_offset: int,
        position: Position,
        max_timestamp: int,
        *,
        may_follow: bool = False,
    ) -> None:
        """A batch is in the log and counts. `may_follow`: others of its producer may stand before it, if none of them
        is known.
        """
        producer_id = batch.producer_id
        unsure = self.unsure.pop(producer_id, None)
        state = self.judging_state(batch)
        if state is None or state.epoch != batch.epoch:
            before = None
            has_expired = state is None and self.begins_expired
            if state is None and may_follow:
                before = Before(KnownProducer(batch.epoch, ANY_SEQUENCE), () if unsure is None else tuple(unsure.seen))
            state = ProducerState(
                batch.epoch, batch.last, position, follows=before, is_first=state is None, has_expired=has_expired
            )
            self.states[producer_id] = state
        _append(state, batch, base_offset, position, max_timestamp)
        self.states.move_to_end(producer_id)

    def record_unsure(self, one: Unjudged) -> None:
        """A batch is in the log, and can't be judged here."""
        producer_id = one.batch.producer_id
        unsure = self.unsure.get(producer_id)
        if unsure is None:
            unsure = self.unsure[producer_id] = UnsureProducer()
        unsure.seen.append(one)

    def fence(self, marker: Unjudged, known_from: Position | None) -> None:
        """A marker says which epoch its producer has now: an older one may write no more
        (ProducerAppendInfo.appendEndTxnMarker).
        """
        producer_id = marker.batch.producer_id
        state = self.states.get(producer_id)
        knows_nobody = known_from is None or self.begins_expired or self.knows_the_past
        if state is None and (producer_id in self.unsure or not knows_nobody):
            self.record_unsure(marker)
            return
        fenced = _fenced(None if self._may_lack_what_began_its_epoch(state, marker) else state, marker)
        if fenced is not state:
            # What a writer of this cluster knew of the producer overrides a replicated marker.
            fenced.has_expired = state is None and marker.is_replicated
            self.states[producer_id] = fenced
        self.states.move_to_end(producer_id)

    def _may_lack_what_began_its_epoch(self, state: ProducerState | None, marker: Unjudged) -> bool:
        """Whether retention may have taken batches that stood before a marker in its epoch."""
        if state is None or not self.begins_expired or marker.batch.epoch <= state.epoch:
            return False
        return state.has_expired or state.has_markers_alone

    def append(
        self,
        producer_id: int,
        state: ProducerState,
        first: int,
        last: int,
        base_offset: int,
        position: Position,
        max_timestamp: int,
    ) -> None:
        """Record the next batch of a producer in its epoch, whose `state` is known."""
        state.last = last
        state.max_timestamp = max_timestamp
        state.at = position
        state.batches.append(WrittenBatch(first, last, base_offset, position))
        self.states.awake.move_to_end(producer_id)

    def learn(
        self, earlier: ProducerTable, reached: Position, known_from: Position | None, writers: Mapping[bytes, int]
    ) -> None:
        """Know what a table knows whose fold began at `known_from`, before this one's, and has come to `reached`: to
        the place before where this one's began, or further. `writers` are the last sequences of writers up to there.
        What is unsure here is judged behind that; `earlier` is used up.
        """
        for producer_id, unsure in self.unsure.items():
            earlier._go_on(unsure.seen, reached, known_from, writers)
            if producer_id in earlier.states:
                earlier.states.move_to_end(producer_id)
        for producer_id, state in list(self.states.that_follow()):
            assert state.follows is not None
            earlier._go_on(state.follows.seen, reached, known_from, writers)
            earlier._tell_of_before(producer_id, state, state.follows, known_from)
            self.states[producer_id] = state
        earlier._take_later(self)
        self.states, self.unsure, self.begins_expired = earlier.states, earlier.unsure, earlier.begins_expired

    def _take_later(self, later: ProducerTable) -> None:
        """What is known of a producer later on is what counts. Of both tables the smaller one is gone through."""
        self.states.learn_expired(later.states)
        if self.begins_expired and not later.begins_expired:
            later.states.expire_first(self.states)
        if len(later.states) <= len(self.states):
            for producer_id, state in later.states.items():
                self.unsure.pop(producer_id, None)
                self.states[producer_id] = state
                self.states.move_to_end(producer_id)
            return
        for producer_id in list(self.unsure):
            if producer_id in later.states:
                del self.unsure[producer_id]
        for producer_id, state in self.states.items():
            if producer_id not in later.states.awake and not later.states.is_asleep(producer_id):
                later.states[producer_id] = state
        self.states = later.states

    def _go_on(
        self, seen: Iterable[Unjudged], reached: Position, known_from: Position | None, writers: Mapping[bytes, int]
    ) -> None:
        written: dict[bytes, Unjudged] = {}  # the last batch of each writer behind `reached`
        for one in seen:
            if one.position <= reached:
                continue  # this table already contains the batch
            if one.writer_sequence <= writers.get(one.writer, -1) or _is_copy(one, written.get(one.writer)):
                if one.is_replicated and not one.is_marker:
                    self.note_copy(one.batch, one.position)
                continue  # second copy of an entry that its writer sent again
            written[one.writer] = one
            if one.is_marker:
                self.fence(one, known_from)
            elif not self.is_judged(one, known_from):
                self.record_unsure(one)
            elif one.is_replicated:
                if self.check_replicated(one.batch).accepted:
                    self.record_replicated(one.batch, one.base_offset, one.position, one.max_timestamp)
            elif self.check(one.batch).accepted:
                self.record(one.batch, one.base_offset, one.position, one.max_timestamp)

    def _tell_of_before(
        self, producer_id: int, state: ProducerState, follows: Before, known_from: Position | None
    ) -> None:
        """`state` is of later, and lacks the batches before those that it remembers: they are here, if it goes on from
        them.
        """
        begin = state.batches[0].position if state.batches else state.at.after()
        before = self.states.get(producer_id)
        unsure = self.unsure.get(producer_id)
        if unsure is not None:
            state.follows = Before(follows.known, tuple(unsure.seen))
            return
        if before is None:
            state.follows = None if known_from is None or self.begins_expired else Before(follows.known)
            return
        is_here = before.at >= begin and before.epoch == state.epoch
        state.follows = None
        if is_here or (
            before.epoch == follows.known.epoch and follows.known.last_sequence in (ANY_SEQUENCE, before.last)
        ):
            if not state.batches:
                state.max_timestamp = before.max_timestamp
            earlier = [written for written in before.batches if written.position < begin]
            state.batches = deque([*earlier, *state.batches], maxlen=REMEMBERED_BATCHES)
            state.follows = before.follows

    def _resolve(self, producer_id: int, folded_to: Position, known: KnownProducer) -> bool:
        """The writer of a later batch tells what the producer's last batch was at `folded_to`: then what was seen
        behind that can be judged. So: the writer knew sequence 9 at entry 40, this fold began at 38 and saw sequences
        10 to 14 at entry 41. It takes over 9, judges 10 to 14, and goes on. False where that is not certain: one that
        is refused may have been accepted by its own writer's word.
        """
        unsure = self.unsure[producer_id]
        seen = unsure.seen
        before = tuple([one for one in seen if one.position <= folded_to])
        state = None
        if known.epoch >= 0:
            state = ProducerState(known.epoch, known.last_sequence, folded_to, follows=Before(known, before))
        certain = None  # position of the last batch that the producer has certainly written
        for one in seen:
            if one.position <= folded_to:
                if not one.is_marker and (one.batch.epoch, one.batch.last) == known:
                    certain = one.position
            elif one.is_marker:
                state = _fenced(state, one)
            elif state is None:
                return False
            elif _verdict(state, one.batch).accepted:
                if one.sent_again or _knew_more_than_markers(one.known, state):
                    return False
                if state.epoch != one.batch.epoch:
                    state = ProducerState(one.batch.epoch, one.batch.last, one.position)
                _append(state, one.batch, one.base_offset, one.position, one.max_timestamp)
                certain = one.position
            elif (certain is None or certain <= one.folded_to) and one.known != (state.epoch, state.last):
                return False
        del self.unsure[producer_id]
        if state is not None:
            self.states.put_though_old(producer_id, state)
        return True


def _is_copy(one: Unjudged, last: Unjudged | None) -> bool:
    """Whether its entry is a second copy of one that its writer wrote up to `last`. An entry may hold several batches.

    Others than sidecars have no name, and number nothing.
    """
    return (
        last is not None
        and one.writer != b""
        and one.position != last.position
        and one.writer_sequence <= last.writer_sequence
    )


def _verdict(state: ProducerState | None, batch: BatchSequence) -> Verdict:
    if state is None:
        return ACCEPTED
    if batch.epoch < state.epoch:
        return Verdict(ErrorCode.INVALID_PRODUCER_EPOCH, -1)
    if batch.epoch > state.epoch:
        # "A new epoch must begin at sequence 0" (ProducerAppendInfo.checkSequence).
        return ACCEPTED if batch.first == 0 else OUT_OF_ORDER
    for written in state.batches:
        if written.first == batch.first and written.last == batch.last:
            return Verdict(ErrorCode.NONE, written.base_offset, duplicate=True)
    if state.last != ANY_SEQUENCE and not is_next_sequence(state.last, batch.first):
        return OUT_OF_ORDER
    return ACCEPTED


def _comes_behind(batch: BatchSequence, state: ProducerState) -> bool:
    if batch.epoch != state.epoch:
        return batch.epoch > state.epoch
    return state.last != ANY_SEQUENCE and is_later(batch.first, state.last)


def _is_old(one: Unjudged) -> bool:
    """Whether its writer knew of a newer epoch of its producer, or of this batch, or of one behind it."""
    known, batch = one.known, one.batch
    if known.epoch != batch.epoch:
        return known.epoch > batch.epoch
    return known.last_sequence >= 0 and not is_later(batch.first, known.last_sequence)


def _is_ahead(known: KnownProducer, state: ProducerState) -> bool:
    if known.epoch != state.epoch:
        return known.epoch > state.epoch
    return known.last_sequence >= 0 and is_later(known.last_sequence, state.last)


def _judged_again(producer_id: int, state: ProducerState, folded_to: Position, known: KnownProducer) -> ProducerState:
    """Of a producer whose first batch here counted whatever it was: what came of its batches by what a writer knew at
    `folded_to`.
    """
    again = ProducerState(known.epoch, known.last_sequence, folded_to)
    before = [written for written in state.batches if written.position <= folded_to]
    # These batches end with the one that the writer knew as the last, so it knew them too.
    if before and (state.epoch, before[-1].last) == known:
        again.batches.extend(before)
    for written in state.batches:
        batch = BatchSequence(producer_id, state.epoch, written.first, written.last)
        if written.position > folded_to and _verdict(again, batch).accepted:
            if again.epoch != batch.epoch:
                again = ProducerState(batch.epoch, batch.last, written.position)
            _append(again, batch, written.base_offset, written.position, state.max_timestamp)
    return again


def _append(
    state: ProducerState, batch: BatchSequence, base_offset: int, position: Position, max_timestamp: int
) -> None:
    state.last = batch.last
    state.at = position
    state.max_timestamp = max_timestamp
    state.batches.append(WrittenBatch(batch.first, batch.last, base_offset, position))


def _knew_more_than_markers(known: KnownProducer, state: ProducerState) -> bool:
    """Whether a batch's writer knew its producer's last sequence, and the fold has seen only markers of it."""
    return state.last == ANY_SEQUENCE and known.last_sequence != ANY_SEQUENCE and known.epoch >= 0


def _behind_a_marker(state: ProducerState, known: KnownProducer) -> ProducerState:
    """What is known of a producer when a marker, all that was seen of it, comes behind what a writer knew. A marker of
    an older epoch changes nothing.
    """
    if state.epoch > known.epoch:
        return ProducerState(state.epoch, -1, state.at)
    return ProducerState(known.epoch, known.last_sequence, state.at, follows=Before(known))


def _fenced(state: ProducerState | None, marker: Unjudged) -> ProducerState:
    epoch = marker.batch.epoch
    if state is None:
        return ProducerState(epoch, ANY_SEQUENCE, marker.position)
    # The first sequence of a new epoch is 0, so -1 counts as the last.
    return ProducerState(epoch, -1, marker.position) if epoch > state.epoch else state


def is_later(sequence: int, other: int) -> bool:
    """Whether a sequence comes behind another; they begin again at 0 after 2^31−1."""
    return 0 < (sequence - other) % _SEQUENCES < _SEQUENCES // 2


def is_next_sequence(last: int, first: int) -> bool:
    """Whether sequence `first` comes right after `last`; 0 comes after 2^31−1."""
    return first == last + 1 if last < MAX_SEQUENCE else first == 0
