"""Appends: pipelined SENDs, verdicts from the fold, and what happens when a broker goes away.

    append ── precheck ──▶ pending ── SEND ──▶ receipt ──▶ awaits the fold ── adjacent to it? ──▶ verdict
               │  │  ▲         ▲                              │ no
               │  ▼  │         │ after a reconnect            ▼
               │  held appends └── all that reading to the    the tail reader brings it
               ▼                   end did not resolve
        refused or known

An ordinary batch takes the same way in fewer steps (`is_next`, `append_next`, and in `on_receipt` `Fold.append_own`): nothing
stands before it that could change its verdict, so nothing has to be asked.

Invariants: SENDs leave in the order of `append`; a pending append is resolved once, by the fold, by a
broker that refuses it, or by the end of its time or its partition; nothing is sent again before everything the broker
holds has been read, so a second copy can only come from a write that was still under way.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import Final, Protocol

from handler.errors import SidecarError
from handler.partition.errors import error_code
from handler.partition.fold.fold import Fold, Folded, IndexAlarm
from handler.partition.fold.producers import ACCEPTED, Verdict, is_next_sequence
from handler.partition.log.basis import BatchSequence
from handler.partition.log.entries import Content
from handler.partition.log.port import EntryLog, LogWriter
from handler.partition.write.append import AREA, Append
from handler.partition.write.held_appends import HeldAppends
from handler.pulsar.entry import Position
from handler.pulsar.errors import CHECKSUM_ERROR, NOT_ALLOWED, TOPIC_TERMINATED, PulsarError, Unavailable
from handler.tasks import Backoff, KeptAlive
from handler.telemetry import metrics
from handler.telemetry.limits import RateLimitedLog
from handler.wire.error_code import ErrorCode
from handler.wire.records import NO_PRODUCER_ID

log = logging.getLogger(__name__)
limited = RateLimitedLog(log)

# A SEND that has no answer for so long will not get one: brokers drop SENDs of producers they do not
# know (2.9 to 2.11) and during bundle transfers.
ANSWER_SECONDS: Final = 10.0
# See `_knows_old_news`. A partition in use hears of others' entries within milliseconds.
OLD_NEWS_SECONDS: Final = 5.0
# Producers retry for two minutes (delivery.timeout.ms); a broker that is back is found within a second.
MAX_DELAY: Final = 1.0
# MessageMetadata of an entry: producer name, times, two properties. Measured at 120 bytes and less.
METADATA_ALLOWANCE: Final = 256


class PartitionForAppender(Protocol):
    """The partition, as far as its appender needs it."""

    def keep(self, folded: Folded, content: Content) -> None:
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

    def keep_own(self, base_offset: int, append: Append) -> None:
        """An entry of this appender's was folded by its receipt."""
        ...

    async def confirm_end(self) -> None:
        """Until everything is folded that the broker held when this was called. Raises PulsarError."""
        ...


class Appender:
    def __init__(self, name: str, log_: EntryLog, writer_name: str, fold: Fold, partition: PartitionForAppender) -> None:
        self._log = log_
        self.writer_name = writer_name.encode()
        self._fold = fold
        self._partition = partition
        self._held = HeldAppends(name, self)
        self._loop = asyncio.get_running_loop()
        self._next_writer_sequence = 0
        self._pending: dict[int, Append] = {}  # by writer sequence, in order
        self._by_producer: dict[int, deque[Append]] = {}
        self._awaiting_fold: deque[tuple[Position, int]] = deque()
        self._writer: LogWriter | None = None
        self._task = KeptAlive("appender", name, self._write, on_final=self._fail_for, backoff=Backoff(longest=MAX_DELAY))
        self._ended: asyncio.Future[PulsarError] | None = None
        self._max_batch_size = 5 * 1024 * 1024 - METADATA_ALLOWANCE
        self.used_at = self._loop.time()
        self._heard_at = 0.0  # when the last receipt came

    @property
    def pending(self) -> int:
        return len(self._pending) + len(self._held)

    async def confirm_end(self) -> None:
        await self._partition.confirm_end()

    # --- an ordinary batch

    def is_next(self, size: int, producer_id: int, epoch: int, first_sequence: int, now: float) -> bool:
        """Whether `append` would send such a batch at once, whatever else its records are. Changes nothing.

        Without a last position its basis would lie before where the fold began, and the verdict would not be conclusive.
        """
        if self._writer is None or self._held.appends or size > self._max_batch_size or self._fold.last_position is None:
            return False
        if not self._pending and now - self.used_at > OLD_NEWS_SECONDS:
            return False
        if producer_id == NO_PRODUCER_ID:
            return True
        in_flight = self._by_producer.get(producer_id)
        if in_flight:
            last = in_flight[-1]
            return last.epoch == epoch and is_next_sequence(last.last_sequence, first_sequence)
        state = self._fold.producers.states.get(producer_id)
        return state is not None and state.conclusive and state.epoch == epoch and is_next_sequence(state.last, first_sequence)

    def append_next(self, append: Append, now: float) -> None:
        """Send a batch of which `is_next` is true."""
        writer_sequence = self._next_writer_sequence
        self._next_writer_sequence = writer_sequence + 1
        self._pending[writer_sequence] = append
        producer_id = append.producer_id
        if producer_id != NO_PRODUCER_ID:
            in_flight = self._by_producer.get(producer_id)
            if in_flight is None:
                in_flight = self._by_producer[producer_id] = deque()
            in_flight.append(append)
        self.used_at = now
        try:
            self._send(writer_sequence, append, now)
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
        metrics.INTERNAL_ERRORS.labels(AREA).inc()
        limited.exception("a batch could not be appended")
        if any(pending is append for pending in self._pending.values()):
            self.on_end(Unavailable("the sidecar failed at a SEND"))  # reading shows which of them landed
        else:
            append.refuse(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def _append(self, append: Append, end_is_known: bool) -> None:
        if len(append.data) > self._max_batch_size:
            append.refuse(ErrorCode.MESSAGE_TOO_LARGE)
            return
        if append.has_producer:
            if self._held.holds(append.producer_id) or (self._knows_old_news() and not end_is_known):
                self._held.hold(append)
                return
            same = self._same_in_flight(append)
            if same is not None:
                same.share(append)
                return
            known = self._precheck(append.sequence)
            if known.error is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER and not end_is_known:
                self._held.hold(append)
                return
            if not known.accepted:
                append.resolve(known.error, known.base_offset)
                return
        writer_sequence = self._next_writer_sequence
        self._next_writer_sequence += 1
        self._pending[writer_sequence] = append
        if append.has_producer:
            self._by_producer.setdefault(append.producer_id, deque()).append(append)
        self.used_at = self._loop.time()
        if self._writer is not None:
            self._send(writer_sequence, append, self.used_at)
        else:
            self._task.start()

    def _knows_old_news(self) -> bool:
        """Whether this sidecar has appended nothing for so long that others may have written much since.

        The append then waits until the log is read to its end. A basis with an old position would send catch-up readers back
        that far.
        """
        return not self._pending and self._writer is not None and self._loop.time() - self.used_at > OLD_NEWS_SECONDS

    def _same_in_flight(self, append: Append) -> Append | None:
        """The append in flight of which this one is a second copy."""
        in_flight = self._by_producer.get(append.producer_id, ())
        return next((pending for pending in in_flight if pending.is_copy_of(append)), None)

    def _precheck(self, sequence: BatchSequence) -> Verdict:
        """The verdict as far as it is known already: by the fold, and by what is in flight."""
        in_flight = self._by_producer.get(sequence.producer_id)
        if not in_flight:
            return self._fold.producers.check(sequence)
        last = in_flight[-1]
        if sequence.epoch < last.epoch:
            return Verdict(ErrorCode.INVALID_PRODUCER_EPOCH, -1)
        if sequence.epoch > last.epoch:
            return ACCEPTED if sequence.first == 0 else Verdict(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)
        if is_next_sequence(last.last_sequence, sequence.first):
            return ACCEPTED
        # Not the next one: a batch the fold knows, or a sequence with a hole before it.
        known = self._fold.producers.check(sequence)
        return known if known.duplicate else Verdict(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1)

    def _send(self, writer_sequence: int, append: Append, now: float) -> None:
        assert self._writer is not None
        # Without a producer only a second try depends on what came before it: its first may have landed.
        append.basis = self._fold.basis(append.producer_id) if append.has_producer or append.was_sent else None
        append.sent_at = now
        append.was_sent = True
        self._writer.send(writer_sequence, append.offsets, append.data, append.basis)

    # --- the writer's life

    async def _write(self) -> None:
        """A producer for as long as there is something to append, or it is of use."""
        while self._pending:
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
        """A producer, and everything pending on its way: first learn what landed, then send the rest in order."""
        writer = await self._log.writer(self)
        self._max_batch_size = writer.max_message_size - METADATA_ALLOWANCE
        try:
            self._awaiting_fold.clear()
            await self.confirm_end()
        except BaseException:
            writer.close()
            raise
        if self._ended is not None and self._ended.done():
            writer.close()
            raise Unavailable("the producer ended while the log was read to its end")
        self._writer = writer
        self._renumber_overtaken()
        for writer_sequence, pending in list(self._pending.items()):
            if pending.was_sent and not pending.is_awaited and not pending.has_producer:
                self._forget(writer_sequence, pending)  # its client was told that time ran out, and nobody waits
            else:  # with a sequence it may be what a later one follows
                self._send(writer_sequence, pending, self._loop.time())

    def _renumber_overtaken(self) -> None:
        """Give new sequences to appends that a later one of ours has overtaken in the log.

        They were refused or dropped by the broker and can't land any more, for one connection keeps
        its order. Under their old sequence the fold (and a deduplicating broker) would take them for
        second copies.
        """
        reached = self._fold.writer_sequence(self.writer_name)
        overtaken = False
        for writer_sequence, pending in list(self._pending.items()):
            overtaken = overtaken or (pending.was_sent and writer_sequence <= reached)
            if overtaken:  # and all behind it, so that their order stays
                del self._pending[writer_sequence]
                self._pending[self._next_writer_sequence] = pending
                self._next_writer_sequence += 1

    def _let_go(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def tick(self, now: float, idle_seconds: float) -> None:
        """Once a second: expire appends, give up on a silent broker, close an unused producer."""
        self._held.expire(now)
        silent = False
        heard_lately = now - self._heard_at <= ANSWER_SECONDS  # a slow link is not a silent one
        for writer_sequence, pending in list(self._pending.items()):
            if writer_sequence not in self._pending:
                continue
            if pending.is_awaited and pending.deadline <= now:
                pending.refuse(ErrorCode.REQUEST_TIMED_OUT)
                if not pending.was_sent:
                    self._give_up(writer_sequence, pending)
            silent = silent or (pending.sent_at > 0 and now - pending.sent_at > ANSWER_SECONDS and not heard_lately)
        if silent and self._writer is not None:
            self._writer.abort_connection(Unavailable(f"a SEND had no answer for {ANSWER_SECONDS:.0f} s"))
        if not self._pending and self._writer is not None and now - self.used_at > idle_seconds:
            self.close()

    def _give_up(self, writer_sequence: int, pending: Append) -> None:
        """Forget what was never sent, and what its producer wrote behind it: the log must not have a hole."""
        self._forget(writer_sequence, pending)
        if not pending.has_producer:
            return
        for later, other in list(self._pending.items()):
            if other.producer_id == pending.producer_id and later > writer_sequence and not other.was_sent:
                self._resolve(later, ErrorCode.REQUEST_TIMED_OUT, -1)

    def close(self) -> None:
        self._task.stop()
        self._let_go()

    # --- from the producer

    def on_receipt(self, writer_sequence: int, ledger: int, entry: int) -> None:
        pending = self._pending.get(writer_sequence)
        self._heard_at = self._loop.time()
        if pending is None:
            return
        pending.sent_at = 0.0
        if not self._awaiting_fold and self._fold.is_adjacent(ledger, entry) and self._fold_own(writer_sequence, pending, ledger, entry):
            return
        if ledger >= 2**63 or entry >= 2**63:
            # Deduplication knew it and does not say where it stands: reading finds it.
            self._partition.read_on()
            return
        self._awaiting_fold.append((Position(ledger, entry), writer_sequence))
        self.advance()

    def on_send_error(self, writer_sequence: int, code: int, message: str) -> None:
        pending = self._pending.get(writer_sequence)
        if pending is None:
            return
        if code in (NOT_ALLOWED, TOPIC_TERMINATED):
            too_large = "size" in message.lower()
            self._resolve(writer_sequence, ErrorCode.MESSAGE_TOO_LARGE if too_large else ErrorCode.POLICY_VIOLATION, -1)
            return
        level = logging.ERROR if code == CHECKSUM_ERROR else logging.INFO
        log.log(level, "the broker could not append (error %d): %s", code, message)
        self.on_end(Unavailable(message))

    def on_end(self, reason: PulsarError) -> None:
        self._let_go()  # at once: an append that comes before the task wakes up must wait for the next writer
        if self._ended is not None and not self._ended.done():
            self._ended.set_result(reason)

    # --- verdicts

    def _fold_own(self, writer_sequence: int, append: Append, ledger: int, entry: int) -> bool:
        """Fold an append that comes next in the log and in its producer's sequence; False where it has to be judged."""
        try:
            base_offset = self._fold.append_own(
                self.writer_name, writer_sequence, ledger, entry, append.offsets, append.max_timestamp, append.producer_id, append.epoch,
                append.first_sequence, append.last_sequence,
            )  # fmt: skip
            if base_offset < 0:
                return False
            self._partition.keep_own(base_offset, append)
        except Exception:
            self._partition.fail_at(Position(ledger, entry))
            return True
        del self._pending[writer_sequence]
        if append.producer_id != NO_PRODUCER_ID:
            in_flight = self._by_producer[append.producer_id]
            if in_flight[0] is append:
                in_flight.popleft()
            else:
                in_flight.remove(append)
            if not in_flight:
                del self._by_producer[append.producer_id]
        append.resolve(ErrorCode.NONE, base_offset)
        return True

    def advance(self) -> None:
        """Fold what has a receipt and follows what is folded already."""
        awaiting = self._awaiting_fold
        fold = self._fold
        while awaiting:
            position, writer_sequence = awaiting[0]
            if fold.last_position is not None and position <= fold.last_position:
                awaiting.popleft()  # it was read before its receipt came
                continue
            pending = self._pending.get(writer_sequence)
            if pending is None or not fold.is_adjacent(position.ledger, position.entry):
                self._partition.read_on()
                return
            awaiting.popleft()
            try:
                content = pending.content(self.writer_name, writer_sequence)
                folded = fold.by_receipt(position, content)
                self._partition.keep(folded, content)
            except IndexAlarm as alarm:
                self._partition.alarm(alarm)
                return  # the partition has ended, and with it all that was pending
            except Exception:
                self._partition.fail_at(position)
                return
            self._resolve(writer_sequence, folded.verdict.error, folded.verdict.base_offset)

    def on_read(self, content: Content, verdict: Verdict) -> None:
        """An entry of a sidecar was read and folded; if it is one of ours in work, this is its verdict."""
        if content.writer == self.writer_name and content.writer_sequence in self._pending:
            self._resolve(content.writer_sequence, verdict.error, verdict.base_offset)

    def _resolve(self, writer_sequence: int, error: ErrorCode, base_offset: int) -> None:
        if error is ErrorCode.NONE and base_offset < 0:
            # A second copy of something whose place nobody knows: no success without an offset.
            error = ErrorCode.NOT_LEADER_OR_FOLLOWER
        pending = self._pending[writer_sequence]
        self._forget(writer_sequence, pending)
        pending.resolve(error, base_offset)

    def _forget(self, writer_sequence: int, pending: Append) -> None:
        del self._pending[writer_sequence]
        if pending.has_producer:
            in_flight = self._by_producer[pending.producer_id]
            in_flight.remove(pending)
            if not in_flight:
                del self._by_producer[pending.producer_id]

    def _fail_all(self, code: ErrorCode) -> None:
        for writer_sequence in list(self._pending):
            self._resolve(writer_sequence, code, -1)

    def fail(self, code: ErrorCode) -> None:
        """The partition stops: everything pending is answered with `code`."""
        self.close()
        self._held.close()
        self._held.fail(code)
        self._fail_all(code)
