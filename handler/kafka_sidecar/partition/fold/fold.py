"""The fold: entries in log order in, offsets and verdicts out. Pure; every sidecar that folds the
same entries reaches the same state.

An entry is folded from its receipt when its predecessor in the same ledger is already folded: then
nothing can stand between them (entry ids in a ledger are dense, a failed add starts a new ledger),
so its index is that one's plus its own count. All others are folded as they are read, with the
index the broker gave them. Offsets grow and may have gaps; an index that comes back is an alarm.

A fold may begin in the middle of a log. Each batch that has a producer says what its writer knew of
that producer, and up to where it had folded the log: a fold that began right behind that position or before it comes to
the writer's own verdict, however little it has seen of the producer, and so does one that is sure of the
producer (see `producers`). All others are not conclusive.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from kafka_sidecar.errors import EntryUnreadable, SidecarError
from kafka_sidecar.partition.fold.producer_state import ANY_SEQUENCE, THE_PAST, ProducerState, Unjudged
from kafka_sidecar.partition.fold.producer_states import ProducerMemory
from kafka_sidecar.partition.fold.producers import ACCEPTED, UNJUDGED, ProducerTable, Verdict, is_next_sequence
from kafka_sidecar.partition.fold.recent_ends import RecentEnds
from kafka_sidecar.partition.fold.transactions import BatchIs, MarkerIs, TransactionVerdicts
from kafka_sidecar.partition.log.basis import (
    NO_TRANSACTION,
    UNKNOWN_PRODUCER,
    Basis,
    BatchSequence,
    KnownProducer,
    encode_basis,
)
from kafka_sidecar.partition.log.entries import Content, CountedFewer, sequence_of
from kafka_sidecar.pulsar.entry import Position, RawEntry
from kafka_sidecar.wire.control_records import read_marker
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.records import CONTROL, NO_PRODUCER_ID, TRANSACTIONAL

# The number of writers whose last sequence is remembered. A sidecar is a new writer each time it opens the partition.
MAX_WRITERS: Final = 1_000
BEFORE_ALL: Final = Position(-1, -1)
NOTHING_WRITTEN: Final = Position(-1, 0)  # stands for the end of an empty log: all entries to come stand behind it
BEHIND_ITS_MARKER: Final = Verdict(ErrorCode.INVALID_TXN_STATE, -1)

SWITCH_ON: Final = (
    "set brokerEntryMetadataInterceptors and exposingBrokerEntryMetadataToClientEnabled=true on every broker"
)


class IndexAlarm(SidecarError):
    """The log contradicts itself, or what was said of it: the partition must not be served."""


def index_of(entry: RawEntry) -> int:
    """The broker's index of an entry that is to be folded."""
    if entry.last_index is None:
        raise IndexAlarm(f"entry {entry.position} came without an index: {SWITCH_ON}")
    return entry.last_index


class Folded(NamedTuple):
    position: Position
    base_offset: int
    next_offset: int
    verdicts: Sequence[Verdict]  # one per batch; a single one for an unreadable entry
    # Set if some verdicts are UNJUDGED: a fold that begins at this position can judge these batches.
    sure_from: Position | None = None
    changes_earlier: bool = False  # the entry may hide batches that stand before it

    @property
    def conclusive(self) -> bool:
        """Whether who began to fold earlier comes to the same verdicts."""
        return self.sure_from is None


class Fold:
    __slots__ = (
        "_begins_at_most",
        "_is_said_to_begin_at",
        "_knows_first_offset",
        "_learns_where_it_begins",
        "_recent_ends",
        "begins_at_first",
        "begins_behind",
        "first_offset",
        "follows_offset",
        "has_learnt",
        "is_of_the_whole_log",
        "knows_next_offset",
        "last_position",
        "memory",
        "next_offset",
        "own_writer",
        "passed_to",
        "producers",
        "replayed_from",
        "transactions",
        "was_emptied",
        "writers",
    )

    def __init__(
        self,
        replayed_from: Position | None = None,
        transactions: TransactionVerdicts | None = None,
        memory: ProducerMemory | None = None,
    ) -> None:
        # None: every batch and every marker is accepted, whatever the state of its transaction.
        self.transactions = transactions
        self.memory = memory or ProducerMemory()
        self.replayed_from = replayed_from  # position at which this fold began; None: at the first entry in the log
        self.begins_at_first = replayed_from is None  # whether this fold began at the first entry in the log
        # Whether no entry was ever removed from the log; None: not checked. A first offset above 0 is no proof of a
        # removal, because Pulsar's own markers may stand before the first entry.
        self.is_of_the_whole_log: bool | None = None
        self._learns_where_it_begins = True  # whether the first folded entry decides where this fold began
        self.has_learnt = False  # whether it has taken over what an earlier fold knows of producers
        self.was_emptied = False  # the log is empty because retention has removed all its entries
        self.begins_behind = BEFORE_ALL  # every record that is left stands behind this place
        self.next_offset = 0
        self.knows_next_offset = False  # whether next_offset is known
        # End offset of the entry before the first one of this fold; None: not looked up.
        self.follows_offset: int | None = None
        self.first_offset = 0  # the offset at which folding began
        self._knows_first_offset = False
        # The last offset of the first entry, if only a writer other than this cluster's sidecars has said how many
        # records it holds. Then the entry may begin anywhere up to this offset.
        self._begins_at_most: int | None = None
        # Base offset of an unreadable first entry, by the message count in its metadata.
        self._is_said_to_begin_at: int | None = None
        self.last_position: Position | None = None
        self.passed_to: Position | None = None  # the last entry without a broker index, before the first with one
        # Name of this sidecar's own writer; None: it does not write to the partition.
        self.own_writer: bytes | None = None
        self.producers = ProducerTable(self.memory, self.transactions)
        self.writers: OrderedDict[bytes, int] = OrderedDict()
        self._recent_ends = RecentEnds()

    def begin_empty(self, next_offset: int) -> None:
        """An empty log: its end is known without an entry."""
        self.next_offset = self.first_offset = next_offset
        self.knows_next_offset = self._knows_first_offset = True
        self.was_emptied = next_offset > 0

    def restore(self, position: Position, first_offset: int, next_offset: int) -> None:
        """Go on behind an entry that was folded before, by whomever."""
        self.first_offset, self.next_offset = first_offset, next_offset
        # `_knows_first_offset` stays false: retention may have removed the first entry since.
        self.knows_next_offset = True
        self._learns_where_it_begins = False
        self.last_position = position
        self._recent_ends.add(position, self.next_offset)

    def pass_over_to(self, position: Position, next_offset: int) -> None:
        """Go on behind an entry as if all up to there had been folded. At which offset that entry itself ends stays
        unknown: an index that no reader is given may stand behind it.
        """
        self.last_position, self.next_offset = position, next_offset
        self._recent_ends = RecentEnds()

    def pass_over(self, position: Position) -> None:
        """An entry that has no index, before the first that has one: it was written before the interceptor was switched
        on.
        """
        self.passed_to = position

    @property
    def reached(self) -> Position | None:
        """The last entry that was looked at."""
        return self.last_position or self.passed_to

    @property
    def seen_from(self) -> int | None:
        """The offset of the first entry that was folded, if it is known."""
        return self.first_offset if self._knows_first_offset else None

    def begins_where_ends(self, earlier: Fold) -> bool:
        """Whether the first entry that was folded stands right behind all that another fold knows, by its offset. What
        an entry that nobody can read says of itself counts where the other's end agrees.
        """
        return earlier.next_offset in (self.seen_from, self._is_said_to_begin_at)

    def is_adjacent(self, ledger: int, entry: int) -> bool:
        """Whether the entry at this place comes right after the last folded one, with nothing between."""
        last = self.last_position
        return last is not None and last.ledger == ledger and last.entry + 1 == entry

    def is_gap(self, position: Position, base_offset: int) -> bool:
        """Whether offsets are missing (`misses_before`), and this fold knows something of what stood before. Of a log
        that was empty it knows nothing until `end_of_the_past`.
        """
        is_known = self.last_position is not None or self.has_learnt or self._was_never_written
        return is_known and self.misses_before(position, base_offset)

    def misses_before(self, position: Position, base_offset: int) -> bool:
        """Whether offsets are missing before an entry that comes next: retention took entries that were not read yet,
        or none had them.

        Retention takes whole ledgers. What is missing within one are markers of Pulsar's, and indexes that no entry
        has.
        """
        return self.knows_next_offset and base_offset > self.next_offset and position.ledger != self._ledger

    def base_by(self, said: int, last_index: int) -> int:
        """Where an entry may begin whose writer says that it begins at `said`. If the log reaches further already, that
        is false: then all before its last offset may be missing.
        """
        return last_index if self.knows_next_offset and said < self.next_offset else said

    @property
    def _ledger(self) -> int:
        """The ledger of the last entry. In a log that held nothing: the ledger that is written next."""
        last = self.last_position
        return self.begins_behind.ledger if last is None or last == BEFORE_ALL else last.ledger

    @property
    def _was_never_written(self) -> bool:
        """Whether the log held nothing yet when this began."""
        return self.knows_next_offset and not self.was_emptied and not self.producers.begins_expired

    def note_time(self, entry: RawEntry) -> None:
        """Of one that is folded: when the broker stored it, if that is known."""
        if entry.broker_timestamp is not None:
            self.producers.states.times.note(entry.position, entry.broker_timestamp)

    def known_to_judge(self, batch: BatchSequence) -> KnownProducer | None:
        """The last batch of its producer, if that judges this one."""
        return _known(self.producers.judging_state(batch))

    def known_up_to(self, batches: Iterable[BatchSequence]) -> Position:
        """The place up to which this fold knows the producers of these batches.

        Where it has only another writer's word for one of them, that is the place which that writer had reached.
        """
        reached = self.reached or self.begins_behind
        if not self.producers.begins_expired:
            return reached
        states = [self.producers.judging_state(batch) for batch in batches]
        return min(
            [
                reached,
                *(
                    state.at
                    for state in states
                    if state is not None and state.is_the_least and state.last != ANY_SEQUENCE
                ),
            ]
        )

    def basis(self, producer_id: int) -> bytes | None:
        """The fold's knowledge now, encoded, for an entry of one batch that is to be sent; None where its producer may
        begin anywhere.
        """
        state = self.producers.states.get(producer_id)
        if state is None or (not state.batches and state.is_the_least):
            return None
        return encode_basis(self.reached or self.begins_behind, state.epoch, state.last)

    def basis_with(
        self, batches: Iterable[BatchSequence], known: Sequence[KnownProducer], transactions: Sequence[int] = ()
    ) -> bytes:
        """How far the fold is now, encoded, with what is known of the producer of each batch of an entry, and its
        transaction.
        """
        return Basis(self.known_up_to(batches), known, transactions).encode()

    def writer_sequence(self, writer: bytes) -> int:
        """The last sequence of a writer that the log holds, −1 for none."""
        return self.writers.get(writer, -1)

    def check_again(self, position: Position, last_index: int) -> None:
        """Compare an entry that was folded from its receipt with what the broker stored."""
        known = self.end_of(position)
        if known is not None and known != last_index + 1:
            raise IndexAlarm(
                f"entry {position} was folded to end before offset {known}, but the broker's index says "
                f"{last_index + 1}"
            )

    def append_own(
        self,
        writer: bytes,
        writer_sequence: int,
        ledger: int,
        entry: int,
        offset_count: int,
        max_timestamp: int,
        producer_id: int,
        epoch: int,
        first_sequence: int,
        last_sequence: int,
    ) -> int:
        """Fold an entry of one batch by its receipt, in few steps, and return its base offset.

        It was written by the one who folds here, `is_adjacent` is true of its place, and it is its producer's next, of
        whom all is known: then `by_receipt` would accept it. If it is not, −1, and nothing has changed.
        """
        if writer_sequence <= self.writers.get(writer, -1):
            return -1
        state = None
        if producer_id != NO_PRODUCER_ID:
            # A producer that is asleep (packed) is left to `by_receipt`
            state = self.producers.states.awake.get(producer_id)
            if state is None or state.epoch != epoch or not is_next_sequence(state.last, first_sequence):
                return -1
        base = self.next_offset
        position = Position(ledger, entry)
        self._advance(position, base, base + offset_count - 1)
        self._note_writer(writer, writer_sequence)
        if state is not None:
            self.producers.append(producer_id, state, first_sequence, last_sequence, base, position, max_timestamp)
        return base

    @property
    def knows_the_past(self) -> bool:
        """Whether enough of what stands before is folded to judge what was replicated."""
        return self.has_all or self.producers.knows_the_past

    @property
    def has_all(self) -> bool:
        """Whether nothing that is left of the log stands before what is folded."""
        return self.producers.begins_expired or (self.replayed_from is None and not self.was_emptied)

    def end_of_the_past(self, *, is_whole: bool) -> None:
        """Nothing stands before what is folded. Retention has taken it, unless the log `is_whole`."""
        is_whole = is_whole or self.seen_from == 0
        began = self.replayed_from
        if began is None and self.last_position is None and self.begins_behind != BEFORE_ALL:
            began = self.begins_behind.after()  # all entries to come stand at this position or behind it
        nothing = Fold(None if is_whole else began, self.transactions, self.memory)
        nothing.producers.begins_expired = not is_whole
        self.learn(nothing)

    def end_of(self, position: Position) -> int | None:
        """The offset behind an entry that was folded lately; None where that is not remembered."""
        return self._recent_ends.next_offset(position)

    def learn(self, earlier: Fold) -> None:
        """Know what a fold knows that began earlier, and has come to the place before where this one began, or
        further.
        """
        began, ended = self.replayed_from, earlier.last_position
        first = self.first_offset if self._begins_at_most is None else self._begins_at_most
        if (
            ended is not None
            and (began is None or ended < began)
            and self.knows_next_offset
            and earlier.next_offset > first
        ):
            raise IndexAlarm(
                f"entry {ended} reaches offset {earlier.next_offset}, but offset {first} stands at {began} or behind"
            )
        self.producers.learn(
            earlier.producers, earlier.last_position or BEFORE_ALL, earlier.replayed_from, earlier.writers
        )
        mine, self.writers = self.writers, earlier.writers
        for writer, sequence in mine.items():
            self._note_writer(writer, max(sequence, self.writers.get(writer, -1)))
        if (
            earlier.knows_next_offset
            and earlier.replayed_from is not None
            and (began is None or began < earlier.replayed_from)
        ):
            # `earlier` began later in the log than this fold did. Its start is taken over, so the entries before it
            # must be read again.
            self.first_offset = earlier.first_offset
        elif earlier.knows_next_offset:
            self.first_offset = min(self.first_offset, earlier.first_offset)
        if earlier.knows_next_offset:
            self._knows_first_offset = earlier._knows_first_offset
            self._is_said_to_begin_at = earlier._is_said_to_begin_at
            self._begins_at_most = earlier._begins_at_most
        self.replayed_from = earlier.replayed_from
        self.has_learnt = True
        self.was_emptied = self._learns_where_it_begins = False

    @property
    def _least_offset(self) -> int | None:
        """No entry that comes now begins before it; None where that is not known."""
        return self.next_offset if self.knows_next_offset else self.follows_offset

    def check_count(self, position: Position, last_index: int, content: Content) -> None:
        """Raises EntryUnreadable where another writer announced fewer records to the broker than it wrote. A sidecar's
        own is an alarm.
        """
        if content.is_foreign and last_index - content.offset_count + 1 < (self._least_offset or 0):
            raise CountedFewer(position, content)

    def lacks_proof(self, content: Content) -> bool:
        """Whether only another writer's word tells where this entry begins: it is the first here, and others stand
        before it.
        """
        is_first = self._least_offset is None and not self.begins_at_first
        return is_first and content.is_foreign and content.offset_count > 1

    def begin_behind(self, position: Position, last_index: int, content: Content) -> Folded:
        """Begin behind an entry that `lacks_proof`: a fold that reads what stood before knows where it begins, and what
        came of it.

        Its transactions count nevertheless. Where it says that it begins is the least that they can be open from.
        """
        offset = max(0, last_index - content.offset_count + 1)
        for number, (header, _) in enumerate(content.batches):
            if header.attributes & TRANSACTIONAL and not header.attributes & CONTROL and self.transactions is not None:
                self.transactions.append(header.producer_id, _transaction_of(content, number), offset)
        self.restore(position, last_index + 1, last_index + 1)
        self.replayed_from = position.after()
        return Folded(position, last_index, last_index + 1, [UNJUDGED] * len(content.batches), sure_from=position)

    def by_receipt(self, position: Position, content: Content) -> Folded:
        return self._apply(position, self.next_offset + content.offset_count - 1, content)

    def by_reading(self, position: Position, last_index: int, content: Content) -> Folded:
        return self._apply(position, last_index, content)

    def unreadable(
        self, position: Position, last_index: int, why: EntryUnreadable | None = None, messages: int = 1
    ) -> Folded:
        """An entry nobody can decode still takes its offsets: as many as lead up to it. Where the first entry begins
        nobody knows: by its metadata the broker gave each of its `messages` an index.
        """
        least = self._least_offset
        base = last_index if least is None else min(least, last_index)
        self._advance(position, base, last_index)
        if least is None:
            self._knows_first_offset, self._is_said_to_begin_at = False, last_index - messages + 1
        if isinstance(why, CountedFewer) and why.content.known_there is not None:
            self._note_sequences(why.content, base, position)
        return Folded(position, base, last_index + 1, (Verdict(ErrorCode.CORRUPT_MESSAGE, -1),))

    def _note_sequences(self, content: Content, offset: int, position: Position) -> None:
        """Of an entry from another cluster that nobody can read: what its producers wrote behind it is in order."""
        copies = self._note_batches(content)
        for number, (header, _) in enumerate(content.batches):
            batch = sequence_of(header)
            is_resent = number < copies and self.knows_the_past
            if is_resent and batch is not None:
                self.producers.note_copy(batch, position)
            elif header.attributes & CONTROL and not is_resent:
                self._end_transaction(content, number, offset, position)
            elif batch is not None:
                self._check_and_record(batch, content, number, offset, position)

    def _apply(self, position: Position, last_index: int, content: Content) -> Folded:
        base = last_index - content.offset_count + 1
        if not self.knows_next_offset and content.is_foreign:
            self._begins_at_most = last_index
        self._advance(position, base, last_index)
        # A replicated batch is not judged before enough of the log in front of it is known, not even whether it is a
        # second copy.
        is_unsure = content.known_there is not None and not self.knows_the_past
        copies = self._note_batches(content)
        verdicts: list[Verdict] = []
        sure_from: Position | None = None
        changes_earlier = False
        offset = base
        for number, (header, _) in enumerate(content.batches):
            batch = sequence_of(header)
            if number < copies:
                self._note_resent(content, number, offset)
                if is_unsure:
                    verdict, sure_from = UNJUDGED, THE_PAST
                else:
                    if content.known_there is not None and batch is not None:
                        self.producers.note_copy(batch, position)
                    verdict = self._of_resent(batch)
            elif header.attributes & CONTROL:
                verdict = self._end_transaction(content, number, offset, position)
                changes_earlier |= verdict.duplicate
                if is_unsure:
                    verdict, sure_from = UNJUDGED, THE_PAST
            elif batch is None:
                verdict = ACCEPTED
                # This sidecar has already folded the first attempt of its own entry, if that was stored.
                is_own = content.writer == self.own_writer
                if is_unsure:
                    verdict, sure_from = UNJUDGED, THE_PAST
                elif content.basis is not None and not is_own and not self._has_folded_since(content.basis.folded_to):
                    verdict, sure_from = UNJUDGED, min(sure_from or content.basis.folded_to, content.basis.folded_to)
            else:
                verdict = self._check_and_record(batch, content, number, offset, position)
                if verdict is UNJUDGED:
                    needed = self._judged_from(batch.producer_id, content)
                    sure_from = needed if sure_from is None else min(sure_from, needed)
            if verdict.accepted:
                verdict = Verdict(ErrorCode.NONE, offset)
            verdicts.append(verdict)
            offset += header.offset_count
        return Folded(position, base, last_index + 1, verdicts, sure_from, changes_earlier)

    def _advance(self, position: Position, base: int, last_index: int) -> None:
        if base < 0 or (self.knows_next_offset and base < self.next_offset):
            raise IndexAlarm(
                f"entry {position} begins at offset {base}, but the log already reaches {self.next_offset}"
            )
        if self.last_position is not None and position <= self.last_position:
            raise IndexAlarm(f"entry {position} comes after {self.last_position}")
        if not self.knows_next_offset:
            self.knows_next_offset = self._knows_first_offset = True
            self.first_offset = base
        # BEFORE_ALL: the fold was restored from the snapshot of an empty log.
        if self.last_position is None or self.last_position == BEFORE_ALL:
            self._begin_at(position, base)
        self.next_offset = last_index + 1
        self.last_position = position
        self._recent_ends.add(position, self.next_offset)

    def _begin_at(self, position: Position, offset: int) -> None:
        began, begins_expired = self.replayed_from, self.producers.begins_expired
        if self.has_learnt and not (began is None and begins_expired):
            # The start stays: the fold has taken over an earlier one, and this entry continues at that one's end offset
            return
        if (
            began is not None
            and position.ledger != began.ledger
            and self.own_writer is not None
            and self.passed_to is None
        ):
            # Retention may have removed the entries between the planned start and this one since that start was looked
            # up.
            self.replayed_from = position
        elif began is None and (self.was_emptied or begins_expired):
            self.replayed_from = position
            if position.ledger != self._ledger:
                # Others may have written to the emptied log since, and retention may have removed all of that.
                self.first_offset = offset
        elif began is None and self.seen_from == 0 and position.ledger == self._ledger:
            # The fold still has the whole log: only Pulsar's own markers stood in the empty ledger before this entry.
            pass
        elif not self._learns_where_it_begins:
            return
        elif self.begins_at_first and (offset == 0 or self.is_of_the_whole_log):
            self.replayed_from = None
        elif offset > 0 and self.replayed_from is None:
            self.replayed_from = position
            self.producers.begins_expired = True
        self.was_emptied = False

    def _note_batches(self, content: Content) -> int:
        """How many of an entry's batches the log has had before: its first ones. A writer numbers its batches, and
        never goes back but for sending some again, in the same entry or in another.
        """
        if content.writer is None:
            return 0
        known = self.writers.get(content.writer, -1)
        last = content.writer_sequence + len(content.batches) - 1
        if last > known:
            self._note_writer(content.writer, last)
        return max(0, known - content.writer_sequence + 1)

    def _note_resent(self, content: Content, number: int, offset: int) -> None:
        """A second copy of a batch or a marker is hidden behind its transaction's marker, as a late batch is. A reader
        that has not seen the first copy would serve it: consumers would be given aborted data, or take a marker for the
        end of the next transaction.
        """
        if self.transactions is not None:
            self.transactions.note_copy(
                content.batches[number][0].producer_id, _transaction_of(content, number), offset
            )

    def _of_resent(self, batch: BatchSequence | None) -> Verdict:
        if batch is not None:
            verdict = self.producers.check(batch)
            if verdict.duplicate:
                return verdict
        return Verdict(ErrorCode.NONE, -1, duplicate=True)

    def _has_folded_since(self, position: Position) -> bool:
        return self.has_all or (self.replayed_from is not None and position.after() >= self.replayed_from)

    def _check_and_record(
        self, batch: BatchSequence, content: Content, number: int, offset: int, position: Position
    ) -> Verdict:
        header = content.batches[number][0]
        is_transactional = bool(header.attributes & TRANSACTIONAL)
        producers, basis = self.producers, content.basis
        one = None
        if content.known_there:
            one = _unjudged(batch, content, number, offset, position, THE_PAST, content.known_there[number])
            is_judged = producers.is_judged(one, self.replayed_from)
        elif content.writer is not None and basis is not None:
            one = _unjudged(batch, content, number, offset, position, basis.folded_to, basis.producers[number])
            is_judged = producers.is_judged(one, self.replayed_from)
        else:
            is_judged = content.writer is not None and batch.producer_id in producers.states
        # Sequences are checked only for batches that a sidecar wrote: other writers (KoP) checked them before they
        # wrote.
        is_replicated = one is not None and one.is_replicated
        if is_judged:
            verdict = producers.check_replicated(batch) if is_replicated else producers.check(batch)
            if not verdict.accepted:
                if is_transactional:
                    self._note_hidden(batch.producer_id, _transaction_of(content, number), offset)
                return verdict
        its_transaction = BatchIs.GOOD
        if is_transactional:
            its_transaction = self._append_to_transaction(batch.producer_id, _transaction_of(content, number), offset)
            if its_transaction is BatchIs.LATE:
                return BEHIND_ITS_MARKER
        if one is not None and not is_judged:
            producers.record_unsure(one)
            return UNJUDGED
        may_follow = (one is None or is_replicated) and not self.has_all
        record = producers.record_replicated if is_replicated else producers.record
        record(batch, offset, position, header.max_timestamp, may_follow=may_follow)
        # The batch follows its producer's last one. But if it was sent again, its first attempt may stand before the
        # start of this fold, and may have been refused there. Then readers fold from further back for the verdict.
        is_uncertain = (
            one is not None and one.sent_again and not is_replicated and not self._has_folded_since(one.folded_to)
        )
        if is_uncertain:
            return UNJUDGED
        return ACCEPTED if its_transaction is BatchIs.GOOD else BEHIND_ITS_MARKER

    def _append_to_transaction(self, producer_id: int, transaction: int, offset: int) -> BatchIs:
        return BatchIs.GOOD if self.transactions is None else self.transactions.append(producer_id, transaction, offset)

    def _note_hidden(self, producer_id: int, transaction: int, offset: int) -> None:
        """A hidden batch belongs to its transaction too. Once retention has taken what hides the batch, a reader may
        show it (ADR 21). Then consumers must know whether the transaction was aborted. Batches that other programs
        wrote have no number: they may stand behind their marker, and would open a transaction that nobody ends.
        """
        if transaction != NO_TRANSACTION:
            self._append_to_transaction(producer_id, transaction, offset)

    def _judged_from(self, producer_id: int, content: Content) -> Position:
        """A fold that begins there comes to a verdict."""
        unsure = self.producers.unsure.get(producer_id)
        if content.known_there is not None:
            return THE_PAST
        assert content.basis is not None
        return content.basis.folded_to if unsure is None or unsure.known_from == THE_PAST else unsure.known_from

    def _end_transaction(self, content: Content, number: int, offset: int, position: Position) -> Verdict:
        header, at = content.batches[number]
        marker = read_marker(memoryview(content.data)[at : at + header.size])
        if marker is None:
            return ACCEPTED
        numbered = _transaction_of(content, number)
        if self.transactions is not None:
            match self.transactions.end(header.producer_id, numbered, marker.committed, offset):
                case MarkerIs.LATE:
                    return BEHIND_ITS_MARKER
                case MarkerIs.FOR_ONE_LEFT_OPEN:
                    return Verdict(
                        ErrorCode.NONE, offset, duplicate=True
                    )  # the marker has ended a transaction that was left open, and consumers do not get it
        batch = BatchSequence(header.producer_id, header.producer_epoch, ANY_SEQUENCE, ANY_SEQUENCE)
        folded_to = (
            THE_PAST
            if content.known_there is not None
            else BEFORE_ALL
            if content.basis is None
            else content.basis.folded_to
        )
        one = _unjudged(batch, content, number, offset, position, folded_to, UNKNOWN_PRODUCER)
        self.producers.fence(one, self.replayed_from)
        return ACCEPTED

    def _note_writer(self, writer: bytes, writer_sequence: int) -> None:
        self.writers[writer] = writer_sequence
        self.writers.move_to_end(writer)
        if len(self.writers) > MAX_WRITERS:
            self.writers.popitem(last=False)


def _known(state: ProducerState | None) -> KnownProducer | None:
    return None if state is None else KnownProducer(state.epoch, state.last)


def _unjudged(
    batch: BatchSequence,
    content: Content,
    number: int,
    offset: int,
    position: Position,
    folded_to: Position,
    known: KnownProducer,
) -> Unjudged:
    return Unjudged(
        batch,
        offset,
        position,
        content.batches[number][0].max_timestamp,
        folded_to,
        known,
        content.writer or b"",
        content.writer_sequence + number,
        content.sent_again,
    )


def _transaction_of(content: Content, number: int) -> int:
    return content.transactions[number] if content.transactions else NO_TRANSACTION
