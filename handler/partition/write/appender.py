"""Appends: pipelined SENDs, verdicts from the fold, and what happens when a broker goes away.

    append ── precheck ──▶ in flight ── SEND ──▶ receipt ──▶ awaits the fold ── adjacent to it? ──▶ verdicts
               │  │  ▲          ▲                                │ no
               │  ▼  │          │ after a reconnect              ▼
               │  held appends  └── all that reading to the      the tail reader brings it
               ▼                    end did not resolve
        refused or known

An ordinary batch takes the same way in fewer steps (`is_next`, `append_next`, and in `on_receipt` `Fold.append_own`): nothing
stands before it that could change its verdict, so nothing has to be asked.

With many entries in flight a batch waits for the next receipt, and all that wait share an entry (`in_flight`).

Invariants: SENDs leave in the order of `append`; an append is resolved once, by the fold, by a
broker that refuses it, or by the end of its time or its partition; nothing is sent again before everything the broker
holds has been read, so an entry can only land twice if its first SEND was still under way.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from collections import deque
from collections.abc import Sequence
from typing import Final, Protocol

from handler.errors import SidecarError
from handler.partition.errors import error_code
from handler.partition.fold.fold import Fold, Folded, IndexAlarm
from handler.partition.fold.producers import Verdict
from handler.partition.log.basis import BASES_PROPERTY, BASIS_PROPERTY, UNKNOWN_PRODUCER, KnownProducer
from handler.partition.log.entries import Content
from handler.partition.log.formats import KAFKA
from handler.partition.log.log_config import AS_IT_COMES, LogConfig
from handler.partition.log.port import EntryLog, LogWriter
from handler.partition.write.append import AREA, Append
from handler.partition.write.held_appends import HeldAppends
from handler.partition.write.in_flight import BatchesInFlight, EntryInFlight
from handler.partition.write.log_validator import BatchRefused
from handler.partition.write.precheck import is_next_of_producer, precheck
from handler.pulsar.entry import Position
from handler.pulsar.errors import CHECKSUM_ERROR, NOT_ALLOWED, TOPIC_TERMINATED, PulsarError, Unavailable
from handler.tasks import Backoff, KeptAlive
from handler.telemetry import metrics
from handler.telemetry.limits import RateLimitedLog
from handler.wire.error_code import ErrorCode

log = logging.getLogger(__name__)
limited = RateLimitedLog(log)

# A SEND that has no answer for so long will not get one: brokers drop SENDs of producers they do not
# know (2.9 to 2.11) and during bundle transfers.
ANSWER_SECONDS: Final = 10.0
# See `_fold_may_be_stale`. A partition in use hears of others' entries within milliseconds.
STALE_FOLD_SECONDS: Final = 5.0
# Producers retry for two minutes (delivery.timeout.ms); a broker that is back is found within a second.
MAX_DELAY: Final = 1.0
# A batch that comes while fewer entries are in flight is sent at once: twice what one Kafka producer has in flight. Others wait for
# a receipt and share the next entry. A hundred producers of small batches then cost the broker half and the sidecar two
# thirds; ten of them lose nothing (ADR 13).
MAX_ENTRIES_IN_FLIGHT: Final = 10
# Of an entry of several. Readers of old data get an entry as a whole.
MAX_ENTRY_BYTES: Final = 256 * 1024
# No batch waits for longer, nearly: where receipts are slow, more entries are in flight.
MAX_WAIT_SECONDS: Final = 0.005
_AS_IT_IS: Final = KAFKA.fields
# MessageMetadata of an entry: producer name, times, two properties. Measured at 120 bytes and less.
METADATA_ALLOWANCE: Final = 256


class PartitionForAppender(Protocol):
    """The partition, as far as its appender needs it."""

    def on_folded(self, folded: Folded, content: Content) -> None:
        """An entry was folded."""
        ...

    def alarm(self, alarm: IndexAlarm) -> None:
        """The log contradicts itself. The partition ends."""
        ...

    def fail_at(self, position: Position) -> None:
        """The sidecar itself failed at an entry. The partition ends."""
        ...

    def read_on(self) -> None:
        """Have the tail reader bring what follows."""
        ...

    def on_own_folded(self, base_offset: int, append: Append) -> None:
        """An entry of this appender's was folded by its receipt."""
        ...

    async def confirm_end(self) -> None:
        """Until everything is folded that the broker held when this was called. Raises PulsarError."""
        ...


class Appender:
    def __init__(
        self, name: str, log_: EntryLog, writer_name: str, fold: Fold, partition: PartitionForAppender, batches_per_entry: int
    ) -> None:
        self._name = name
        self._log = log_
        self.config: LogConfig = AS_IT_COMES
        self.writer_name = writer_name.encode()
        self._fold = fold
        self._partition = partition
        self._held = HeldAppends(name, self)
        self._loop = asyncio.get_running_loop()
        self._in_flight = BatchesInFlight()
        self._batches_per_entry = batches_per_entry
        self._wait_timer: asyncio.TimerHandle | None = None
        self._waiting_since = 0.0
        self._awaiting_fold: deque[tuple[Position, int]] = deque()
        self._writer: LogWriter | None = None
        self._task = KeptAlive("appender", name, self._write, on_final=self._fail_for, backoff=Backoff(longest=MAX_DELAY))
        self._ended: asyncio.Future[PulsarError] | None = None
        self._max_batch_size = 5 * 1024 * 1024 - METADATA_ALLOWANCE
        self.used_at = self._loop.time()
        self.heard_at = 0.0  # when the last receipt came

    @property
    def pending(self) -> int:
        return len(self._in_flight) + len(self._held)

    @property
    def is_at_work(self) -> bool:
        return bool(self._in_flight) or bool(self._held.appends)

    async def confirm_end(self) -> None:
        await self._partition.confirm_end()

    # --- an ordinary batch

    def is_next(self, size: int, producer_id: int, epoch: int, first_sequence: int, now: float) -> bool:
        """Whether `append` would neither hold nor refuse a batch of this size at this place in its producer's sequence. Changes nothing.

        Without a last position its basis would lie before where the fold began, and the verdict would not be conclusive.
        """
        if self._writer is None or self._held.appends or size > self._max_batch_size or self._fold.last_position is None:
            return False
        if self.config is not AS_IT_COMES:
            return False
        if not self._in_flight and now - self.used_at > STALE_FOLD_SECONDS:
            return False
        return is_next_of_producer(self._fold.producers, self._in_flight, producer_id, epoch, first_sequence)

    def append_next(self, append: Append, now: float) -> None:
        """Append a batch of which `is_next` is true."""
        try:
            self._begin(append, now)
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
        self._note_failure()
        if any(pending is append for pending in self._in_flight):
            self.on_end(Unavailable("the sidecar failed at a SEND"))  # reading shows which of them landed
        else:
            append.refuse(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def _note_failure(self) -> None:
        metrics.INTERNAL_ERRORS.labels(AREA).inc()
        limited.exception("a batch could not be appended")

    def _append(self, append: Append, end_is_known: bool) -> None:
        if len(append.data) > self._max_batch_size:
            append.refuse(ErrorCode.MESSAGE_TOO_LARGE)
            return
        try:
            append.validate(self.config, time.time_ns() // 1_000_000)
        except BatchRefused as refused:
            limited.info("a batch for %s was refused: %s", self._name, refused)
            append.refuse_records(refused)
            return
        if append.size > self._max_batch_size:
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
            known = precheck(self._fold.producers, self._in_flight, append.sequence)
            if known.error is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER and not end_is_known:
                self._held.hold(append)
                return
            if not known.accepted:
                append.resolve(known.error, known.base_offset)
                return
        self._begin(append, self._loop.time())

    def _begin(self, append: Append, now: float) -> None:
        """The batch is on its way: in an entry of its own, or in one with all that wait."""
        self.used_at = now
        in_flight = self._in_flight
        if self._writer is None:
            in_flight.add(append)
            self._task.start()
        elif in_flight.waiting or len(in_flight.entries) >= MAX_ENTRIES_IN_FLIGHT:
            self._waiting_since = self._waiting_since if in_flight.waiting else now
            in_flight.add(append)
            self._send_waiting(now, MAX_ENTRIES_IN_FLIGHT)
        else:
            self._send(*in_flight.add_alone(append), now)

    def _fold_may_be_stale(self) -> bool:
        """Whether this sidecar has appended nothing for so long that others may have written much since.

        The append then waits until the log is read to its end. A basis with an old position would send catch-up readers back
        that far.
        """
        return not self._in_flight and self._writer is not None and self._loop.time() - self.used_at > STALE_FOLD_SECONDS

    def _send_waiting(self, now: float, max_entries: int) -> None:
        """Send what waits, up to so many entries in flight. What is left goes with the next receipt, or when its time is over."""
        in_flight = self._in_flight
        while in_flight.waiting:
            if len(in_flight.entries) >= max_entries:
                if self._wait_timer is None:
                    self._wait_timer = self._loop.call_at(self._waiting_since + MAX_WAIT_SECONDS, self._on_waited)
                return
            writer_sequence, entry = in_flight.next_entry(self._batches_per_entry, min(MAX_ENTRY_BYTES, self._max_batch_size))
            self._send(writer_sequence, entry, now)

    def _on_waited(self) -> None:
        self._wait_timer = None
        is_due = self._loop.time() >= self._waiting_since + MAX_WAIT_SECONDS / 2  # else what it was set for has left already
        self._send_others(sys.maxsize if is_due else MAX_ENTRIES_IN_FLIGHT)

    def _send_others(self, max_entries: int = MAX_ENTRIES_IN_FLIGHT) -> None:
        """An entry is no longer in flight, or time has passed: those that wait may go."""
        if not self._in_flight.waiting or self._writer is None:
            return
        try:
            self._send_waiting(self._loop.time(), max_entries)
        except Exception:
            self._note_failure()
            self.on_end(Unavailable("the sidecar failed at a SEND"))  # reading shows what has landed

    def _send(self, writer_sequence: int, entry: EntryInFlight, now: float) -> None:
        assert self._writer is not None
        entry.basis = self._basis(entry)
        entry.sent_at = now
        entry.was_sent = True
        encoded = entry.encoded
        if encoded is None:
            self._writer.send(writer_sequence, entry.offset_count, _AS_IT_IS, entry.data, entry.basis)
        else:
            self._writer.send(writer_sequence, entry.offset_count, encoded.fields, encoded.payload, entry.basis)

    def _basis(self, entry: EntryInFlight) -> tuple[bytes, bytes] | None:
        """Without a producer only a second try depends on what came before it: its first may have landed."""
        if not entry.was_sent and not entry.has_producer:
            return None
        if len(entry.appends) == 1:
            known = self._fold.basis(entry.appends[0].producer_id)
            return BASIS_PROPERTY, known or self._fold.basis_with([self._known_producer(entry.appends[0])])
        return BASES_PROPERTY, self._fold.basis_with([self._known_producer(append) for append in entry.appends])

    def _known_producer(self, append: Append) -> KnownProducer:
        known = self._fold.known_producer(append.producer_id)
        if known is not None:
            return known
        return self._in_flight.before_first(append) if append.has_producer else UNKNOWN_PRODUCER

    # --- the writer's life

    async def _write(self) -> None:
        """A producer for as long as there is something to append, or it is of use."""
        while self._in_flight:
            ended = self._ended = self._loop.create_future()
            try:
                await self._open()
                self._task.backoff.reset()
                reason = await ended
                raise reason  # the task waits a moment, then begins here again
            finally:
                if self._ended is ended:  # else another has begun since this one was closed
                    self._let_go()

    def _fail_for(self, reason: SidecarError) -> None:
        log.warning("appending failed for good: %s", reason)
        self._fail_all(error_code(reason))

    async def _open(self) -> None:
        """A producer, and everything in flight on its way: first learn what landed, then send the rest in order."""
        writer = await self._log.writer(self)
        self._max_batch_size = writer.max_message_size - METADATA_ALLOWANCE
        try:
            await self.confirm_end()
        except BaseException:
            writer.close()
            raise
        if self._ended is not None and self._ended.done():
            writer.close()
            raise Unavailable("the producer ended while the log was read to its end")
        self._writer = writer
        now = self._loop.time()
        self._in_flight.renumber_overtaken(self._fold.writer_sequence(self.writer_name))
        for writer_sequence, entry in list(self._in_flight.entries.items()):
            if not entry.is_awaited and not entry.has_producer:
                self._in_flight.remove(writer_sequence)  # its clients were told that time ran out, and nobody waits
            else:  # with a sequence it may be what a later one follows
                self._send(writer_sequence, entry, now)
        self._send_waiting(now, MAX_ENTRIES_IN_FLIGHT)

    def _let_go(self) -> None:
        self._awaiting_fold.clear()  # reading brings them: by then an entry may have been taken apart, or numbered anew
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def tick(self, now: float, idle_seconds: float) -> None:
        """Once a second: expire appends, give up on a silent broker, close an unused producer."""
        self._held.expire(now)
        silent = False
        heard_lately = now - self.heard_at <= ANSWER_SECONDS  # a slow link is not a silent one
        for entry in list(self._in_flight.entries.values()):
            for append in entry.appends:
                if append.is_awaited and append.deadline <= now:
                    append.refuse(ErrorCode.REQUEST_TIMED_OUT)
            silent = silent or (entry.sent_at > 0 and now - entry.sent_at > ANSWER_SECONDS and not heard_lately)
        self._in_flight.expire_waiting(now)
        if silent and self._writer is not None:
            self._writer.abort_connection(Unavailable(f"a SEND had no answer for {ANSWER_SECONDS:.0f} s"))
        if not self._in_flight and self._writer is not None and now - self.used_at > idle_seconds:
            self.close()

    def close(self) -> None:
        self._task.stop()
        self._let_go()
        if self._wait_timer is not None:
            self._wait_timer.cancel()
            self._wait_timer = None

    # --- from the producer

    def on_receipt(self, writer_sequence: int, ledger: int, entry: int) -> None:
        sent = self._in_flight.entries.get(writer_sequence)
        self.heard_at = self._loop.time()
        if sent is None:
            return
        sent.sent_at = 0.0
        self._take_receipt(writer_sequence, sent, ledger, entry)
        if self._in_flight.waiting:
            self._send_others()

    def _take_receipt(self, writer_sequence: int, sent: EntryInFlight, ledger: int, entry: int) -> None:
        if (
            not self._awaiting_fold and not sent.log_append_time and self._fold.is_adjacent(ledger, entry)
            and self._fold_own(writer_sequence, sent, ledger, entry)
        ):  # fmt: skip
            return
        if ledger >= 2**63 or entry >= 2**63:
            # Deduplication knew it and does not say where it stands: reading finds it.
            self._partition.read_on()
            return
        self._awaiting_fold.append((Position(ledger, entry), writer_sequence))
        self._advance()

    def on_send_error(self, writer_sequence: int, code: int, message: str) -> None:
        sent = self._in_flight.entries.get(writer_sequence)
        if sent is None:
            return
        if code in (NOT_ALLOWED, TOPIC_TERMINATED):
            too_large = "size" in message.lower()
            if too_large and len(sent.appends) > 1:  # a limit of the topic's own
                self._batches_per_entry = 1
                self._in_flight.take_apart()
                self.on_end(Unavailable("the topic takes no entry of this size, its batches are sent one by one"))
                return
            self._resolve_all(writer_sequence, ErrorCode.MESSAGE_TOO_LARGE if too_large else ErrorCode.POLICY_VIOLATION)
            self._send_others()
            return
        level = logging.ERROR if code == CHECKSUM_ERROR else logging.INFO
        log.log(level, "the broker could not append (error %d): %s", code, message)
        self.on_end(Unavailable(message))

    def on_end(self, reason: PulsarError) -> None:
        self._let_go()  # at once: an append that comes before the task wakes up must wait for the next writer
        if self._ended is not None and not self._ended.done():
            self._ended.set_result(reason)

    # --- verdicts

    def _fold_own(self, writer_sequence: int, sent: EntryInFlight, ledger: int, entry: int) -> bool:
        """Fold a batch that comes next in the log and in its producer's sequence; False where it has to be judged."""
        if len(sent.appends) > 1:
            return False
        append = sent.appends[0]
        try:
            base_offset = self._fold.append_own(
                self.writer_name, writer_sequence, ledger, entry, append.offset_count, append.max_timestamp, append.producer_id,
                append.epoch, append.first_sequence, append.last_sequence,
            )  # fmt: skip
            if base_offset < 0:
                return False
            self._partition.on_own_folded(base_offset, append)
        except Exception:
            self._partition.fail_at(Position(ledger, entry))
            return True
        self._in_flight.remove(writer_sequence)
        append.resolve(ErrorCode.NONE, base_offset)
        return True

    def on_fold_moved(self) -> None:
        """The tail reader has brought something: what has a receipt may follow it now."""
        self._advance()
        self._send_others()

    def _advance(self) -> None:
        """Fold what has a receipt and follows what is folded already."""
        awaiting = self._awaiting_fold
        fold = self._fold
        while awaiting:
            position, writer_sequence = awaiting[0]
            if fold.last_position is not None and position <= fold.last_position:
                awaiting.popleft()  # it was read before its receipt came
                continue
            sent = self._in_flight.entries.get(writer_sequence)
            if sent is None or sent.log_append_time or not fold.is_adjacent(position.ledger, position.entry):
                self._partition.read_on()
                return
            awaiting.popleft()
            try:
                content = sent.content(self.writer_name, writer_sequence)
                folded = fold.by_receipt(position, content)
                self._partition.on_folded(folded, content)
            except IndexAlarm as alarm:
                self._partition.alarm(alarm)
                return  # the partition has ended, and with it all that was pending
            except Exception:
                self._partition.fail_at(position)
                return
            self._resolve(writer_sequence, folded.verdicts)

    def on_read(self, content: Content, verdicts: Sequence[Verdict]) -> None:
        """An entry of a sidecar was read and folded; if it is one of ours in flight, these are the verdicts on its batches."""
        sent = self._in_flight.entries.get(content.writer_sequence) if content.writer == self.writer_name else None
        if sent is None:
            return
        if len(sent.appends) == len(verdicts):
            if sent.log_append_time and verdicts[0].accepted:
                sent.appends[0].tell_log_append_time(content.max_timestamp)
            self._resolve(content.writer_sequence, verdicts)
            return
        # It was taken apart since, and landed as a whole after all. A part of it that has landed before has its verdict.
        for number, verdict in enumerate(verdicts):
            if verdict.base_offset >= 0 and content.writer_sequence + number in self._in_flight.entries:
                self._resolve(content.writer_sequence + number, (verdict,))

    def _resolve(self, writer_sequence: int, verdicts: Sequence[Verdict]) -> None:
        sent = self._in_flight.remove(writer_sequence)
        for append, verdict in zip(sent.appends, verdicts, strict=True):
            # A duplicate of something whose place nobody knows: no success without an offset.
            lost = verdict.error is ErrorCode.NONE and verdict.base_offset < 0
            append.resolve(ErrorCode.NOT_LEADER_OR_FOLLOWER if lost else verdict.error, verdict.base_offset)

    def _resolve_all(self, writer_sequence: int, error: ErrorCode) -> None:
        for append in self._in_flight.remove(writer_sequence).appends:
            append.refuse(error)

    def _fail_all(self, code: ErrorCode) -> None:
        for writer_sequence in list(self._in_flight.entries):
            self._resolve_all(writer_sequence, code)
        for append in self._in_flight.remove_all_waiting():
            append.refuse(code)

    def fail(self, code: ErrorCode) -> None:
        """The partition stops: everything pending is answered with `code`."""
        self.close()
        self._held.close()
        self._held.fail(code)
        self._fail_all(code)
