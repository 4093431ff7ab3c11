"""What is in flight on its way to the broker: one producer for as long as it is of use, entries that batches share, and
all of it sent again in order when a broker goes away.

With many entries in flight a batch waits for the next receipt, and all that wait share an entry (`in_flight`). Nothing
is sent again before everything the broker holds has been read.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Iterable
from typing import Final, Protocol

from kafka_sidecar.errors import SidecarError
from kafka_sidecar.loop.backoff import Backoff
from kafka_sidecar.loop.supervised import SupervisedTask
from kafka_sidecar.partition.fold.fold import Fold
from kafka_sidecar.partition.fold.producer_state import ANY_SEQUENCE
from kafka_sidecar.partition.log.basis import (
    AGAIN_PROPERTY,
    BASES_PROPERTY,
    BASIS_PROPERTY,
    UNKNOWN_PRODUCER,
    KnownProducer,
)
from kafka_sidecar.partition.log.formats import KAFKA
from kafka_sidecar.partition.log.port import EntryLog, LogWriter
from kafka_sidecar.partition.write.append import AREA, Append
from kafka_sidecar.partition.write.in_flight import BatchesInFlight, EntryInFlight
from kafka_sidecar.pulsar.errors import PulsarError, Unavailable
from kafka_sidecar.pulsar.events import ProducerEvents
from kafka_sidecar.pulsar.pulsar_api_pb2 import KeyValue, MessageMetadata
from kafka_sidecar.telemetry import metrics
from kafka_sidecar.telemetry.limits import RateLimitedLog

limited = RateLimitedLog(logging.getLogger(__name__))

# Brokers drop SENDs of producers that they do not know (Pulsar 2.9 to 2.11) and SENDs during bundle transfers. A SEND
# without a receipt after 10 s will not get one.
ANSWER_SECONDS: Final = 10.0
# Kafka producers retry for two minutes (delivery.timeout.ms). With 1 s between attempts at most, the sidecar soon finds
# a broker that is back.
MAX_DELAY: Final = 1.0
# While fewer than 10 entries are in flight, a batch is sent at once, in an entry of its own. 10 is twice what one Kafka
# producer has in flight. Further batches wait for a receipt and share the next entry. With 100 producers of small
# batches, shared entries cost the broker half and the sidecar two thirds of the work; with 10 producers they cost no
# throughput (ADR 13).
MAX_ENTRIES_IN_FLIGHT: Final = 10
# Limit for an entry of several batches. A reader of old data gets the whole entry, even for one of its batches.
MAX_ENTRY_BYTES: Final = 256 * 1024
# A batch waits for about 5 ms at most: where receipts take longer, more than 10 entries are in flight.
MAX_WAIT_SECONDS: Final = 0.005
_AS_IT_IS: Final = KAFKA.fields
_AGAIN: Final = MessageMetadata(properties=[KeyValue(key=AGAIN_PROPERTY, value=b"")]).SerializePartialToString()
# Room for the MessageMetadata of an entry: producer name, times, three properties. With the longest of each it has 160
# bytes.
METADATA_ALLOWANCE: Final = 256
# No size limit while no Pulsar producer is open: the broker's maxMessageSize is known only when one opens.
UNKNOWN_SIZE: Final = sys.maxsize


class AppenderForSender(ProducerEvents, Protocol):
    """The appender, as far as its sender needs it. It hears of receipts itself."""

    async def confirm_end(self) -> None:
        """Until everything is folded that the broker held when this was called. Raises PulsarError."""
        ...

    async def know(self, producer_ids: Iterable[int]) -> None:
        """Until all is known of these producers that can be. Raises SidecarError."""
        ...

    def on_let_go(self) -> None:
        """There is no producer any more: what it has answered is read."""
        ...

    def on_failed(self, reason: SidecarError) -> None:
        """Trying again won't help."""
        ...


def note_failure() -> None:
    metrics.INTERNAL_ERRORS.labels(AREA).inc()
    limited.exception("a batch could not be appended")


class Sender:
    def __init__(
        self,
        name: str,
        log_: EntryLog,
        writer_name: bytes,
        fold: Fold,
        in_flight: BatchesInFlight,
        appender: AppenderForSender,
        batches_per_entry: int,
    ) -> None:
        self._log = log_
        self._writer_name = writer_name
        self._fold = fold
        self._in_flight = in_flight
        self._appender = appender
        self._loop = asyncio.get_running_loop()
        self.batches_per_entry = batches_per_entry
        self.counts_records = False
        self._wait_timer: asyncio.TimerHandle | None = None
        self._waiting_since = 0.0
        self.writer: LogWriter | None = None
        self._task = SupervisedTask(
            "appender", name, self._write, on_final=appender.on_failed, backoff=Backoff(longest=MAX_DELAY)
        )
        self._ended: asyncio.Future[PulsarError] | None = None
        self.max_batch_size = UNKNOWN_SIZE
        self.used_at = self.made_at = self._loop.time()
        self.heard_at = 0.0  # time of the last receipt
        self.took_at = 0.0  # time of the last receipt with a position; receipts of deduplicated entries have none

    def begin(self, append: Append, now: float) -> None:
        """The batch is on its way: in an entry of its own, or in one with all that wait."""
        self.used_at = now
        in_flight = self._in_flight
        if self.writer is None:
            in_flight.add(append)
            self._task.start()
        elif in_flight.waiting or len(in_flight.entries) >= MAX_ENTRIES_IN_FLIGHT:
            self._waiting_since = self._waiting_since if in_flight.waiting else now
            in_flight.add(append)
            self._send_waiting(now, MAX_ENTRIES_IN_FLIGHT)
        else:
            self._send(*in_flight.add_alone(append), now)

    def _send_waiting(self, now: float, max_entries: int) -> None:
        """Send what waits, up to so many entries in flight. What is left goes with the next receipt, or when its time
        is over.
        """
        in_flight = self._in_flight
        while in_flight.waiting:
            if len(in_flight.entries) >= max_entries:
                if self._wait_timer is None:
                    self._wait_timer = self._loop.call_at(self._waiting_since + MAX_WAIT_SECONDS, self._on_waited)
                return
            writer_sequence, entry = in_flight.next_entry(
                self.batches_per_entry, min(MAX_ENTRY_BYTES, self.max_batch_size)
            )
            self._send(writer_sequence, entry, now)

    def _on_waited(self) -> None:
        self._wait_timer = None
        is_due = (
            self._loop.time() >= self._waiting_since + MAX_WAIT_SECONDS / 2
        )  # else the batches for which the timer was set have left already
        self.send_others(sys.maxsize if is_due else MAX_ENTRIES_IN_FLIGHT)

    def send_others(self, max_entries: int = MAX_ENTRIES_IN_FLIGHT) -> None:
        """An entry is no longer in flight, or time has passed: those that wait may go."""
        if not self._in_flight.waiting or self.writer is None:
            return
        try:
            self._send_waiting(self._loop.time(), max_entries)
        except Exception:
            note_failure()
            # The next producer reads the log to see which entries were stored.
            self.lose(Unavailable("the sidecar failed at a SEND"))

    def _send(self, writer_sequence: int, entry: EntryInFlight, now: float) -> None:
        assert self.writer is not None
        entry.basis = self._basis(entry)
        entry.sent_at = now
        encoded = entry.encoded
        fields = _AS_IT_IS if encoded is None else encoded.fields
        if entry.was_sent:
            entry.sent_again = True
            fields += _AGAIN
        if self.counts_records and entry.offset_count > 1:
            fields += MessageMetadata(num_messages_in_batch=entry.offset_count).SerializePartialToString()
        entry.was_sent = True
        self.writer.send(
            writer_sequence, entry.offset_count, fields, entry.data if encoded is None else encoded.payload, entry.basis
        )

    def _basis(self, entry: EntryInFlight) -> tuple[bytes, bytes] | None:
        """Without a producer only a second try depends on what came before it: its first may have landed."""
        if not entry.was_sent and not entry.has_producer and not entry.transactions:
            return None
        is_alone = len(entry.appends) == 1
        if is_alone and not entry.transactions:
            known = self._fold.basis(entry.appends[0].producer_id)
            if known is not None:
                return BASIS_PROPERTY, known
        # A generator, because most folds do not need the batches.
        batches = (append.sequence for append in entry.appends if append.has_producer)
        known_producers = [self._known_producer(append) for append in entry.appends]
        basis = self._fold.basis_with(batches, known_producers, entry.transactions)
        return BASIS_PROPERTY if is_alone else BASES_PROPERTY, basis

    def _known_producer(self, append: Append) -> KnownProducer:
        if not append.has_producer:
            return UNKNOWN_PRODUCER
        known = self._fold.known_to_judge(append.sequence)
        if known is not None and known.last_sequence != ANY_SEQUENCE:
            return known
        before = self._in_flight.before_first(append)
        return before if known is None or known.epoch == before.epoch else known

    # --- the writer's life

    async def _write(self) -> None:
        """A producer for as long as there is something to append, or it is of use."""
        while self._in_flight:
            ended = self._ended = self._loop.create_future()
            try:
                await self._open()
                opened_at = self._loop.time()
                reason = await ended
                if self.took_at >= opened_at:  # else a broker that stores nothing would be retried without a pause
                    self._task.backoff.reset()
                raise reason  # the supervised task pauses, then runs _write again
            finally:
                if self._ended is ended:  # else a newer run of _write owns the producer: this one was closed before
                    self._let_go()

    async def _open(self) -> None:
        """A producer, and everything in flight on its way: first learn what landed, then send the rest in order."""
        writer = await self._log.writer(self._appender)
        try:
            await self._appender.confirm_end()
            await self._know_producers()
        except BaseException:
            writer.close()
            raise
        if self._ended is not None and self._ended.done():
            writer.close()
            raise Unavailable("the producer ended while the log was read to its end")
        self.writer = writer
        self.max_batch_size = writer.max_message_size - METADATA_ALLOWANCE
        now = self._loop.time()
        self._in_flight.renumber_overtaken(self._fold.writer_sequence(self._writer_name))
        self._in_flight.remove_abandoned()
        self._in_flight.refuse_larger(self.max_batch_size)
        for writer_sequence, entry in list(self._in_flight.entries.items()):
            self._send(writer_sequence, entry, now)
        self._send_waiting(now, MAX_ENTRIES_IN_FLIGHT)

    async def _know_producers(self) -> None:
        """What is sent again says what is known of its producers. That is all that can be."""
        sent = {
            append.producer_id
            for entry in self._in_flight.entries.values()
            for append in entry.appends
            if append.has_producer
        }
        if sent:
            await self._appender.know(sent)

    def _let_go(self) -> None:
        self._appender.on_let_go()
        if self.writer is not None:
            self.writer.close()
            self.writer = None
            self.max_batch_size = UNKNOWN_SIZE

    def lose(self, reason: PulsarError) -> None:
        """The producer is of no use any more: another one sends again what is in flight."""
        self._let_go()  # at once: an append that comes before the task wakes up must wait for the next producer
        if self._ended is not None and not self._ended.done():
            self._ended.set_result(reason)

    def give_up_silent(self, now: float) -> None:
        """End a connection on which a SEND is not answered."""
        # Receipts still arrive: the link is slow, but the broker answers.
        if self.writer is None or now - self.heard_at <= ANSWER_SECONDS:
            return
        if any(
            entry.sent_at > 0 and now - entry.sent_at > ANSWER_SECONDS for entry in self._in_flight.entries.values()
        ):
            self.writer.abort_connection(Unavailable(f"a SEND had no answer for {ANSWER_SECONDS:.0f} s"))

    def close(self) -> None:
        self._task.stop()
        self._let_go()
        if self._wait_timer is not None:
            self._wait_timer.cancel()
            self._wait_timer = None
