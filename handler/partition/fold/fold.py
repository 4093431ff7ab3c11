"""The fold: entries in log order in, offsets and verdicts out. Pure; every sidecar that folds the
same entries reaches the same state.

An entry is folded from its receipt when its predecessor in the same ledger is already folded: then
nothing can stand between them (entry ids in a ledger are dense, a failed add starts a new ledger),
so its index is that one's plus its own count. All others are folded as they are read, with the
index the broker gave them. Offsets grow and may have gaps; an index that comes back is an alarm.

A fold may begin in the middle of a log. Each batch that has a producer says what its writer knew of
that producer, and up to where it had folded the log: a fold that began at or before that position comes to
the writer's own verdict, however little it has seen of the producer. All others are not conclusive.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Sequence
from typing import Final, NamedTuple

from handler.errors import SidecarError
from handler.partition.fold.producers import ACCEPTED, ProducerTable, Verdict, is_next_sequence
from handler.partition.fold.transactions import TransactionVerdicts
from handler.partition.log.basis import NO_TRANSACTION, Basis, BatchSequence, KnownProducer, encode_basis
from handler.partition.log.entries import Content, sequence_of
from handler.pulsar.entry import Position, RawEntry
from handler.wire.control_records import read_marker
from handler.wire.error_code import ErrorCode
from handler.wire.records import CONTROL, NO_PRODUCER_ID, TRANSACTIONAL

# Writers whose last sequence is remembered: a sidecar has one for each time that it opens the partition.
MAX_WRITERS: Final = 1_000
BEFORE_ALL: Final = Position(-1, -1)
BEHIND_ITS_MARKER: Final = Verdict(ErrorCode.INVALID_TXN_STATE, -1)
# So many of the last folded entries are compared with what the tail reader reads. Older ones are not compared.
REMEMBERED_ENTRIES: Final = 4_096


SWITCH_ON: Final = "set brokerEntryMetadataInterceptors and exposingBrokerEntryMetadataToClientEnabled=true on every broker"


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
    verdicts: Sequence[Verdict]  # one for each batch; one alone where nobody can read them
    conclusive: bool = True  # False: who began to fold earlier may have come to other verdicts


class Fold:
    __slots__ = (
        "_knows_first_offset",
        "_recent",
        "_recent_order",
        "first_offset",
        "knows_next_offset",
        "last_position",
        "next_offset",
        "passed_to",
        "producers",
        "replayed_from",
        "transactions",
        "writers",
    )

    def __init__(self, replayed_from: Position | None = None, transactions: TransactionVerdicts | None = None) -> None:
        self.transactions = transactions  # None: this one believes every batch and every marker
        self.replayed_from = replayed_from  # None: nothing stands before what is folded
        self.next_offset = 0
        self.knows_next_offset = False  # whether next_offset is known
        self.first_offset = 0  # where folding began
        self._knows_first_offset = False
        self.last_position: Position | None = None
        self.passed_to: Position | None = None  # the last entry before the first that has an index
        self.producers = ProducerTable()
        self.writers: OrderedDict[bytes, int] = OrderedDict()
        self._recent: dict[Position, int] = {}
        self._recent_order: deque[Position] = deque()

    def begin_empty(self, next_offset: int) -> None:
        """An empty log: its end is known without an entry."""
        self.next_offset = self.first_offset = next_offset
        self.knows_next_offset = self._knows_first_offset = True

    def restore(self, position: Position, first_offset: int, next_offset: int) -> None:
        """Go on behind an entry that was folded before, by whomever."""
        self.first_offset, self.next_offset = first_offset, next_offset
        self.knows_next_offset = True  # retention may have taken the first since
        self.last_position = position
        self._remember(position)

    def pass_over(self, position: Position) -> None:
        """An entry that has no index, before the first that has one: it was written before the interceptor was switched on."""
        self.passed_to = position

    @property
    def reached(self) -> Position | None:
        """The last entry that was looked at."""
        return self.last_position or self.passed_to

    @property
    def log_start(self) -> int | None:
        """The first offset of the log, if the fold has seen it."""
        return self.first_offset if self.replayed_from is None and self._knows_first_offset else None

    def is_adjacent(self, ledger: int, entry: int) -> bool:
        """Whether the entry at this place comes right after the last folded one, with nothing between."""
        last = self.last_position
        return last is not None and last.ledger == ledger and last.entry + 1 == entry

    def known_producer(self, producer_id: int) -> KnownProducer | None:
        """The last batch of a producer."""
        state = self.producers.states.get(producer_id)
        return None if state is None else KnownProducer(state.epoch, state.last)

    def basis(self, producer_id: int) -> bytes | None:
        """The fold's knowledge now, encoded, for an entry of one batch that is about to be sent; None where its producer is not known."""
        state = self.producers.states.get(producer_id)
        return None if state is None else encode_basis(self.reached or BEFORE_ALL, state.epoch, state.last)

    def basis_with(self, known: Sequence[KnownProducer], transactions: Sequence[int] = ()) -> bytes:
        """How far the fold is now, encoded, with what is known of the producer of each batch of an entry, and its transaction."""
        return Basis(self.reached or BEFORE_ALL, known, transactions).encode()

    def writer_sequence(self, writer: bytes) -> int:
        """The last sequence of a writer that the log holds, −1 for none."""
        return self.writers.get(writer, -1)

    def check_again(self, position: Position, last_index: int) -> None:
        """Compare an entry that was folded from its receipt with what the broker stored."""
        known = self._recent.get(position)
        if known is not None and known != last_index + 1:
            raise IndexAlarm(f"entry {position} was folded to end before offset {known}, but the broker's index says {last_index + 1}")

    def append_own(
        self, writer: bytes, writer_sequence: int, ledger: int, entry: int, offset_count: int, max_timestamp: int, producer_id: int,
        epoch: int, first_sequence: int, last_sequence: int,
    ) -> int:  # fmt: skip
        """Fold an entry of one batch by its receipt, in few steps, and return its base offset.

        It was written by the one who folds here, `is_adjacent` is true of its place, and it is its producer's next, of whom all is
        known: then `by_receipt` would accept it. If it is not, −1, and nothing has changed.
        """
        if writer_sequence <= self.writers.get(writer, -1):
            return -1
        state = None
        if producer_id != NO_PRODUCER_ID:
            state = self.producers.states.get(producer_id)
            if state is None or not state.conclusive or state.epoch != epoch or not is_next_sequence(state.last, first_sequence):
                return -1
        base = self.next_offset
        position = Position(ledger, entry)
        self._advance(position, base, base + offset_count - 1)
        self._note_writer(writer, writer_sequence)
        if state is not None:
            self.producers.append(producer_id, state, first_sequence, last_sequence, base, position, max_timestamp)
        return base

    def take_over(self, earlier: Fold) -> None:
        """Know what a fold knows that began earlier, and has come to the same entry."""
        if (earlier.last_position, earlier.next_offset) != (self.last_position, self.next_offset):
            raise IndexAlarm(
                f"folded to offset {self.next_offset} at entry {self.last_position}, but read again from further back it is "
                f"offset {earlier.next_offset} at {earlier.last_position}"
            )
        self.replayed_from = earlier.replayed_from
        self.first_offset = earlier.first_offset
        self.producers = earlier.producers
        self.writers = earlier.writers

    def by_receipt(self, position: Position, content: Content) -> Folded:
        return self._apply(position, self.next_offset + content.offset_count - 1, content)

    def by_reading(self, position: Position, last_index: int, content: Content) -> Folded:
        return self._apply(position, last_index, content)

    def unreadable(self, position: Position, last_index: int) -> Folded:
        """An entry nobody can decode still takes its offsets: as many as lead up to it."""
        known = self.knows_next_offset
        base = min(self.next_offset, last_index) if known else last_index
        self._advance(position, base, last_index)
        self._knows_first_offset &= known
        return Folded(position, base, last_index + 1, (Verdict(ErrorCode.CORRUPT_MESSAGE, -1),))

    def _apply(self, position: Position, last_index: int, content: Content) -> Folded:
        base = last_index - content.offset_count + 1
        self._advance(position, base, last_index)
        conclusive = self.replayed_from is None or content.basis is None or content.basis.folded_to >= self.replayed_from
        # Of a marker every fold says the same: its verdict is not a matter of its producer's sequence.
        conclusive = conclusive or all([header.attributes & CONTROL for header, _ in content.batches])
        is_resent = self._is_resent(content)
        verdicts = []
        offset = base
        for number, (header, _) in enumerate(content.batches):
            batch = sequence_of(header)
            if is_resent:
                verdict = self._of_resent(batch)
            elif header.attributes & CONTROL:
                verdict = self._end_transaction(content, number, offset, position, conclusive)
            elif batch is None:
                verdict = ACCEPTED
            else:
                verdict = self._check_and_record(batch, content, number, offset, position, conclusive)
            if verdict.accepted:
                verdict = Verdict(ErrorCode.NONE, offset)
            verdicts.append(verdict)
            offset += header.offset_count
        return Folded(position, base, last_index + 1, verdicts, conclusive)

    def _advance(self, position: Position, base: int, last_index: int) -> None:
        if base < 0 or (self.knows_next_offset and base < self.next_offset):
            raise IndexAlarm(f"entry {position} begins at offset {base}, but the log already reaches {self.next_offset}")
        if self.last_position is not None and position <= self.last_position:
            raise IndexAlarm(f"entry {position} comes after {self.last_position}")
        if not self.knows_next_offset:
            self.knows_next_offset = self._knows_first_offset = True
            self.first_offset = base
        self.next_offset = last_index + 1
        self.last_position = position
        self._remember(position)

    def _remember(self, position: Position) -> None:
        self._recent[position] = self.next_offset
        self._recent_order.append(position)
        if len(self._recent_order) > REMEMBERED_ENTRIES:
            del self._recent[self._recent_order.popleft()]

    def _is_resent(self, content: Content) -> bool:
        """A writer numbers its entries and never goes back, but for sending one again."""
        if content.writer is None:
            return False
        if content.writer_sequence <= self.writers.get(content.writer, -1):
            return True
        self._note_writer(content.writer, content.writer_sequence + len(content.batches) - 1)  # each batch counts as one
        return False

    def _of_resent(self, batch: BatchSequence | None) -> Verdict:
        if batch is not None:
            verdict = self.producers.check(batch)
            if verdict.duplicate:
                return verdict
        return Verdict(ErrorCode.NONE, -1, duplicate=True)

    def _check_and_record(
        self, batch: BatchSequence, content: Content, number: int, offset: int, position: Position, conclusive: bool
    ) -> Verdict:
        # Only what a sidecar wrote is judged: others (KoP) had their own verdict before they wrote.
        if content.writer is not None and conclusive:
            if content.basis is not None:
                self.producers.adopt_basis(batch.producer_id, content.basis.folded_to, content.basis.producers[number])
            verdict = self.producers.check(batch)
            if not verdict.accepted:
                return verdict
        header = content.batches[number][0]
        transactions = self.transactions if header.attributes & TRANSACTIONAL else None
        if transactions is not None and not transactions.append(batch.producer_id, _transaction_of(content, number), offset):
            return BEHIND_ITS_MARKER
        self.producers.record(batch, offset, position, max_timestamp=header.max_timestamp, conclusive=conclusive)
        return ACCEPTED

    def _end_transaction(self, content: Content, number: int, offset: int, position: Position, conclusive: bool) -> Verdict:
        header, at = content.batches[number]
        marker = read_marker(memoryview(content.data)[at : at + header.size])
        if marker is None:
            return ACCEPTED
        numbered = _transaction_of(content, number)
        if self.transactions is not None and not self.transactions.end(header.producer_id, numbered, marker.committed, offset):
            return BEHIND_ITS_MARKER
        self.producers.fence(header.producer_id, header.producer_epoch, position, conclusive=conclusive)
        return ACCEPTED

    def _note_writer(self, writer: bytes, writer_sequence: int) -> None:
        self.writers[writer] = writer_sequence
        self.writers.move_to_end(writer)
        if len(self.writers) > MAX_WRITERS:
            self.writers.popitem(last=False)


def _transaction_of(content: Content, number: int) -> int:
    return content.transactions[number] if content.transactions else NO_TRANSACTION
