"""Appends: pipelined SENDs, verdicts from the fold, and what happens when a broker goes away.

    append ── precheck ──▶ in flight ── SEND ──▶ receipt ──▶ awaits the fold ── adjacent to it? ──▶ verdicts
               │  │  ▲          ▲                                │ no
               │  ▼  │          │ after a reconnect              ▼
               │  held appends  └── all that reading to the      the tail reader brings it
               ▼                    end did not resolve
        refused or known

An ordinary batch takes the same way in fewer steps (`is_next`, `append_next`, and in `on_receipt` `Fold.append_own`):
nothing stands before it that could change its verdict, so nothing has to be asked.

How they leave, and what is sent again, is the `sender`'s. Batches that wait share an entry (`in_flight`).

Invariants: SENDs leave in the order of `append`; an append is resolved once, by the fold, by a
broker that refuses it, or by the end of its time or its partition; nothing is sent again before everything the broker
holds has been read, so an entry can only land twice if its first SEND was still under way.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Final, Protocol

from kafka_sidecar.errors import SidecarError
from kafka_sidecar.loop.clock import Clock
from kafka_sidecar.partition.fold.fold import Fold, Folded, IndexAlarm
from kafka_sidecar.partition.fold.producers import UNJUDGED, Verdict
from kafka_sidecar.partition.fold.transactions import TransactionTable
from kafka_sidecar.partition.log.basis import NO_TRANSACTION
from kafka_sidecar.partition.log.entries import Content
from kafka_sidecar.partition.log.errors import SENT_AGAIN, error_code
from kafka_sidecar.partition.log.log_config import AS_IT_COMES, LogConfig
from kafka_sidecar.partition.log.port import EntryLog
from kafka_sidecar.partition.write.append import Append
from kafka_sidecar.partition.write.held_appends import HeldAppends
from kafka_sidecar.partition.write.in_flight import BatchesInFlight, EntryInFlight
from kafka_sidecar.partition.write.log_validator import BatchRefused
from kafka_sidecar.partition.write.precheck import is_next_of_producer, precheck
from kafka_sidecar.partition.write.sender import Sender, note_failure
from kafka_sidecar.partition.write.validation import refuse_records
from kafka_sidecar.pulsar.entry import Position
from kafka_sidecar.pulsar.errors import CHECKSUM_ERROR, NOT_ALLOWED, TOPIC_TERMINATED, PulsarError, Unavailable
from kafka_sidecar.telemetry.limits import RateLimitedLog
from kafka_sidecar.wire.error_code import ErrorCode

log = logging.getLogger(__name__)
limited = RateLimitedLog(log)

# After 5 s without appends the log is read to its end before the next append (see `_fold_may_be_stale`). A partition in
# use learns of other writers' entries within milliseconds.
STALE_FOLD_SECONDS: Final = 5.0
# The batch came after the marker of its transaction. The producer retries it, and the coordinator is queried for the
# ongoing transaction.
TRANSACTION_IS_OVER: Final = ErrorCode.NOT_ENOUGH_REPLICAS

# The memory for producer states is full, and this producer is unknown. Every client retries after this error.
NO_ROOM: Final = ErrorCode.NOT_ENOUGH_REPLICAS


class FoldedEntriesForAppender(Protocol):
    """What hears of that which the appender folds."""

    def add_own(self, base_offset: int, append: Append) -> None:
        """An entry of this appender's was folded by its receipt."""
        ...

    def add(self, folded: Folded, content: Content) -> None:
        """An entry was folded."""
        ...


class PartitionForAppender(Protocol):
    """The partition, as far as its appender needs it."""

    def alarm(self, alarm: IndexAlarm) -> None:
        """The log contradicts itself. The partition ends."""
        ...

    def fail_at(self, position: Position) -> None:
        """The sidecar itself failed at an entry. The partition ends."""
        ...

    def refuse_waiting(self, producer_id: int, error: ErrorCode) -> None:
        """A batch of this producer is refused for a moment. So is what came behind it and has not come to the appender
        yet.
        """
        ...

    def read_on_if_tailed(self) -> None:
        """The same, if anybody consumes the partition."""
        ...

    def read_on(self) -> None:
        """Have the tail reader bring what follows."""
        ...

    async def confirm_end(self) -> None:
        """Until everything is folded that the broker held when this was called. Raises PulsarError."""
        ...

    async def read_back(self) -> None:
        """Until an earlier part of the log is known. Raises SidecarError."""
        ...

    async def know(self, producer_ids: Iterable[int]) -> None:
        """Until all is known of these producers that can be. Raises SidecarError."""
        ...


class Appender:
    def __init__(
        self,
        name: str,
        log_: EntryLog,
        writer_name: str,
        fold: Fold,
        transactions: TransactionTable,
        folded: FoldedEntriesForAppender,
        partition: PartitionForAppender,
        batches_per_entry: int,
        clock: Clock,
    ) -> None:
        self._name = name
        self.config: LogConfig = AS_IT_COMES
        self.writer_name = writer_name.encode()
        self._fold = fold
        self._transactions = transactions
        self._folded = folded
        self._partition = partition
        self._held = HeldAppends(name, self)
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._in_flight = BatchesInFlight()
        self._awaiting_fold: deque[tuple[Position, int]] = deque()
        self._sender = Sender(name, log_, self.writer_name, fold, self._in_flight, self, batches_per_entry)

    def set_counting(self, *, counts_records: bool) -> None:
        """Whether entries say from now on how many records they have (see `EntryLog.counts_records`)."""
        self._sender.counts_records = counts_records

    def is_in_flight(self, producer_id: int) -> bool:
        return self._in_flight.last_of(producer_id) is not None or self._held.holds(producer_id)

    @property
    def used_at(self) -> float:
        return self._sender.used_at

    @property
    def has_appended(self) -> bool:
        """Whether anything was appended through this one."""
        return self._sender.used_at != self._sender.made_at

    @property
    def heard_at(self) -> float:
        return self._sender.heard_at

    @property
    def pending(self) -> int:
        return len(self._in_flight) + len(self._held)

    @property
    def awaited(self) -> Position | None:
        """An entry that is stored, and is to be folded when all before it is read."""
        return self._awaiting_fold[0][0] if self._awaiting_fold else None

    @property
    def is_at_work(self) -> bool:
        return bool(self._in_flight) or bool(self._held.appends)

    async def confirm_end(self) -> None:
        await self._partition.confirm_end()

    async def read_back(self) -> None:
        await self._partition.read_back()

    async def know(self, producer_ids: Iterable[int]) -> None:
        await self._partition.know(producer_ids)

    # --- an ordinary batch

    def is_next(self, size: int, producer_id: int, epoch: int, first_sequence: int, now: float) -> bool:
        """Whether `append` would neither hold nor refuse a batch of this size at this place in its producer's sequence.
        Changes nothing.

        Without a last position its basis would lie before where the fold began, and the verdict would not be
        conclusive.
        """
        if (
            self._sender.writer is None
            or self._held.appends
            or size > self._sender.max_batch_size
            or self._fold.last_position is None
        ):
            return False
        if self.config is not AS_IT_COMES:
            return False
        if not self._in_flight and now - self._sender.used_at > STALE_FOLD_SECONDS:
            return False
        return is_next_of_producer(self._fold.producers, self._in_flight, producer_id, epoch, first_sequence)

    def append_next(self, append: Append, now: float) -> None:
        """Append a batch for which `is_next` is true."""
        try:
            self._sender.begin(append, now)
        except Exception:
            self._failed_at(append)

    # --- append

    def append(self, append: Append, end_is_known: bool = False) -> None:
        """Append one checked batch; its request gets the outcome, maybe before this returns.

        `end_is_known`: the log was read to its end after the append came.
        """
        try:
            self._append(append, end_is_known)
        except Exception:
            self._failed_at(append)

    def _failed_at(self, append: Append) -> None:
        note_failure()
        if any(pending is append for pending in self._in_flight):
            self.on_end(Unavailable("the sidecar failed at a SEND"))  # The log is read to see which SENDs have landed
        else:
            append.refuse(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def _append(self, append: Append, end_is_known: bool) -> None:
        if len(append.data) > self._sender.max_batch_size:
            append.refuse(ErrorCode.MESSAGE_TOO_LARGE)
            return
        try:
            append.validate(self.config, self._clock.wall())
        except BatchRefused as refused:
            refuse_records(self._name, append, refused)
            return
        if append.size > self._sender.max_batch_size:
            append.refuse(ErrorCode.MESSAGE_TOO_LARGE)
            return
        if append.has_producer:
            if self._held.holds(append.producer_id) or (self._fold_may_be_stale() and not end_is_known):
                self._held.hold(append)
                return
            first_try = self._in_flight.retry_target(append)
            if first_try is not None:
                first_try.share(append)
                return
            if self._has_ended(append):
                append.refuse(TRANSACTION_IS_OVER)
                return
            known = precheck(self._fold.producers, self._in_flight, append.sequence, has_all=self._fold.has_all)
            if known is UNJUDGED:
                self._held.hold_for_the_past(append)
                return
            if known.error is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER and not end_is_known:
                self._held.hold(append)
                return
            if (
                known.error is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
                and self._in_flight.last_of(append.producer_id) is not None
            ):
                # The producer's batches in flight may be out of order themselves: the broker has refused an earlier
                # batch, and this append may be a part of it that the client sends again.
                self._held.hold_for_others(append)
                return
            if not known.accepted:
                append.resolve(known.error, known.base_offset)
                return
            if (
                self._fold.producers.has_no_room_for(append.producer_id)
                and self._in_flight.last_of(append.producer_id) is None
            ):
                append.refuse(NO_ROOM)
                return
        self._sender.begin(append, self._loop.time())

    def _has_ended(self, append: Append) -> bool:
        return append.transaction != NO_TRANSACTION and self._transactions.has_ended(
            append.producer_id, append.transaction
        )

    def _fold_may_be_stale(self) -> bool:
        """Whether this sidecar has appended nothing for so long that others may have written much since.

        The append then waits until the log is read to its end. A basis with an old position would send catch-up readers
        back that far.
        """
        return (
            not self._in_flight
            and self._sender.writer is not None
            and self._loop.time() - self._sender.used_at > STALE_FOLD_SECONDS
        )

    def tick(self, now: float, idle_seconds: float) -> None:
        """Once a second: expire appends, give up on a silent broker, close an unused producer."""
        self._held.expire(now)
        for entry in list(self._in_flight.entries.values()):
            for append in entry.appends:
                if append.is_awaited and append.deadline <= now:
                    append.refuse(ErrorCode.REQUEST_TIMED_OUT)
                    self._refuse_behind(append, ErrorCode.REQUEST_TIMED_OUT)
        for producer_id in self._in_flight.expire_waiting(now):
            self._refuse_unsent(producer_id, ErrorCode.REQUEST_TIMED_OUT)
        self._sender.give_up_silent(now)
        if not self._in_flight and self._sender.writer is not None and now - self._sender.used_at > idle_seconds:
            self.close()

    def close(self) -> None:
        self._sender.close()

    # --- from the sender

    def on_let_go(self) -> None:
        # The tail reader resolves these entries, because an entry may be split or numbered again by then.
        self._awaiting_fold.clear()

    def on_failed(self, reason: SidecarError) -> None:
        log.warning("appending failed for good: %s", reason)
        error = error_code(reason)
        for producer_id in self._fail_all(error):
            if error in SENT_AGAIN:
                self._refuse_unsent(producer_id, error)

    # --- from the producer

    def on_receipt(self, writer_sequence: int, ledger: int, entry: int) -> None:
        sent = self._in_flight.entries.get(writer_sequence)
        now = self._sender.heard_at = self._loop.time()
        if ledger < 2**63:
            self._sender.took_at = now
        if sent is None:
            return
        sent.sent_at = 0.0
        self._take_receipt(writer_sequence, sent, ledger, entry)
        if self._in_flight.waiting:
            self._sender.send_others()

    def _take_receipt(self, writer_sequence: int, sent: EntryInFlight, ledger: int, entry: int) -> None:
        if (
            not self._awaiting_fold
            and not sent.log_append_time
            and self._fold.is_adjacent(ledger, entry)
            and self._fold_own(writer_sequence, sent, ledger, entry)
        ):
            return
        if ledger >= 2**63 or entry >= 2**63:
            # The broker's deduplication knew this entry, or a later one that overtook it. Reading to the log end shows
            # which, and entries that are missing there are sent again.
            self.on_end(Unavailable("deduplication does not say where an entry stands"))
            return
        # A later entry may have overtaken a resent one, and then every fold hides the resent one.
        is_first_try = not sent.sent_again
        if (
            is_first_try
            and all([append.is_marker for append in sent.appends])
            and not self._is_next_to_fold(ledger, entry)
        ):
            # A marker that is stored needs no verdict. To get one, gigabytes of other writers might have to be read
            # first.
            self._resolve(writer_sequence, [Verdict(ErrorCode.NONE, 0)] * len(sent.appends))
            self._partition.read_on_if_tailed()
            return
        self._awaiting_fold.append((Position(ledger, entry), writer_sequence))
        self._advance()

    def _is_next_to_fold(self, ledger: int, entry: int) -> bool:
        return not self._awaiting_fold and self._fold.is_adjacent(ledger, entry)

    def on_send_error(self, writer_sequence: int, code: int, message: str) -> None:
        sent = self._in_flight.entries.get(writer_sequence)
        if sent is None:
            return
        if code in (NOT_ALLOWED, TOPIC_TERMINATED):
            too_large = "size" in message.lower()
            if too_large and len(sent.appends) > 1:  # The topic has a size limit below that of the broker
                self._sender.batches_per_entry = 1
                self._in_flight.take_apart()
                self.on_end(Unavailable("the topic takes no entry of this size, its batches are sent one by one"))
                return
            self._resolve_all(writer_sequence, ErrorCode.MESSAGE_TOO_LARGE if too_large else ErrorCode.POLICY_VIOLATION)
            self._sender.send_others()
            return
        level = logging.ERROR if code == CHECKSUM_ERROR else logging.INFO
        log.log(level, "the broker could not append (error %d): %s", code, message)
        self.on_end(Unavailable(message))

    def on_end(self, reason: PulsarError) -> None:
        self._sender.lose(reason)

    # --- verdicts

    def _fold_own(self, writer_sequence: int, sent: EntryInFlight, ledger: int, entry: int) -> bool:
        """Fold a batch that comes next in the log and in its producer's sequence; False where it has to be judged."""
        append = sent.appends[0]
        if len(sent.appends) > 1 or sent.transactions or append.is_marker:
            return False
        try:
            base_offset = self._fold.append_own(
                self.writer_name,
                writer_sequence,
                ledger,
                entry,
                append.offset_count,
                append.max_timestamp,
                append.producer_id,
                append.epoch,
                append.first_sequence,
                append.last_sequence,
            )
            if base_offset < 0:
                return False
            self._folded.add_own(base_offset, append)
        except Exception:
            self._partition.fail_at(Position(ledger, entry))
            return True
        self._in_flight.remove(writer_sequence)
        append.resolve(ErrorCode.NONE, base_offset)
        if self._held.appends:
            self._held.on_resolved()
        return True

    def on_fold_moved(self) -> None:
        """The tail reader has brought something: what has a receipt may follow it now."""
        self._advance()
        self._sender.send_others()

    def _advance(self) -> None:
        """Fold what has a receipt and follows what is folded already."""
        awaiting = self._awaiting_fold
        fold = self._fold
        while awaiting:
            position, writer_sequence = awaiting[0]
            if fold.last_position is not None and position <= fold.last_position:
                awaiting.popleft()  # it was read before its receipt came
                # It is still in flight only if retention removed it before it was read.
                if writer_sequence in self._in_flight.entries:
                    self._resolve_all(writer_sequence, ErrorCode.NOT_LEADER_OR_FOLLOWER)
                continue
            sent = self._in_flight.entries.get(writer_sequence)
            if sent is None or sent.log_append_time or not fold.is_adjacent(position.ledger, position.entry):
                self._partition.read_on()
                return
            awaiting.popleft()
            try:
                content = sent.content(self.writer_name, writer_sequence)
                folded = fold.by_receipt(position, content)
                self._folded.add(folded, content)
            except IndexAlarm as alarm:
                self._partition.alarm(alarm)
                return  # The partition has ended and has refused all pending appends
            except Exception:
                self._partition.fail_at(position)
                return
            self._resolve(writer_sequence, folded.verdicts)

    def on_read(self, content: Content, verdicts: Sequence[Verdict]) -> None:
        """An entry of a sidecar was read and folded; if it is one of ours in flight, these are the verdicts on its
        batches.
        """
        if content.writer != self.writer_name:
            return
        entries = self._in_flight.entries
        sent = entries.get(content.writer_sequence)
        if sent is not None and len(sent.appends) == len(verdicts):
            if sent.log_append_time and verdicts[0].accepted:
                sent.appends[0].tell_log_append_time(content.max_timestamp)
            self._resolve(content.writer_sequence, verdicts)
            return
        # The entry was split after its SEND, but landed as a whole. A part that landed before has its verdict, and a
        # part that was numbered again will get one.
        for number, verdict in enumerate(verdicts):
            if verdict.base_offset >= 0 and content.writer_sequence + number in entries:
                self._resolve(content.writer_sequence + number, (verdict,))

    def _resolve(self, writer_sequence: int, verdicts: Sequence[Verdict]) -> None:
        sent = self._in_flight.remove(writer_sequence)
        self._held.on_resolved()
        refused: dict[int, ErrorCode] = {}  # Producer id → the error with which its later batches are refused
        for append, verdict in zip(sent.appends, verdicts, strict=True):
            # The batch is a duplicate of one whose offset is unknown. A success without an offset must not be sent, so
            # the client has to retry.
            lost = verdict.error is ErrorCode.NONE and verdict.base_offset < 0
            error = ErrorCode.NOT_LEADER_OR_FOLLOWER if lost else verdict.error
            if error is ErrorCode.INVALID_TXN_STATE and not append.is_marker:
                error = TRANSACTION_IS_OVER
            if error is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER and self._in_flight.is_missing_before(append):
                # The broker has refused only an earlier batch, which the sidecar sends again. Behind that batch, this
                # one and those that wait are in order.
                error = ErrorCode.NOT_LEADER_OR_FOLLOWER
            if error is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
                # An earlier batch of this producer in the same entry was refused with that error.
                error = refused.get(append.producer_id, error)
            append.resolve(error, verdict.base_offset)
            if error in SENT_AGAIN:
                refused[append.producer_id] = error
                self._refuse_behind(append, error)

    def _refuse_behind(self, append: Append, error: ErrorCode) -> None:
        """A producer does not hear what became of a batch: nor of those that it has sent behind it.

        Else it would send on when a later one is acknowledged. Then the log would hold more than five batches behind
        the first, and its retry would not be recognised.
        """
        if append.has_producer:
            self._in_flight.refuse_behind(append, error)
            self._refuse_unsent(append.producer_id, error)

    def _refuse_unsent(self, producer_id: int, error: ErrorCode) -> None:
        """What a producer has sent behind all that is in flight."""
        self._held.refuse_of(producer_id, error)
        self.refuse_waiting(producer_id, error)

    def refuse_waiting(self, producer_id: int, error: ErrorCode) -> None:
        self._partition.refuse_waiting(producer_id, error)

    def _resolve_all(self, writer_sequence: int, error: ErrorCode) -> None:
        for append in self._in_flight.remove(writer_sequence).appends:
            append.refuse(error)
        self._held.on_resolved()

    def _fail_all(self, code: ErrorCode) -> set[int]:
        """Returns the producers of what was in flight."""
        failed = [append for entry in self._in_flight.entries.values() for append in entry.appends]
        for writer_sequence in list(self._in_flight.entries):
            self._resolve_all(writer_sequence, code)
        waiting = self._in_flight.remove_all_waiting()
        for append in waiting:
            append.refuse(code)
        return {append.producer_id for append in [*failed, *waiting] if append.has_producer}

    def fail(self, code: ErrorCode) -> None:
        """The partition stops: everything pending is answered with `code`."""
        self.close()
        self._held.close()
        self._held.fail(code)
        self._fail_all(code)
