"""A partition: the fold in the middle, the appender and the tail reader feeding it, answers from it.

Calls may come before it is open; appends then wait in their order. It begins to fold a little before the last entry;
what tells retries from before a restart is read when somebody appends to whom it matters (`Replay`). It ends when the
log contradicts itself or is gone: the table then makes a new one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, Protocol

from kafka_sidecar.errors import SidecarError
from kafka_sidecar.internal_topics.moved_start import MovedStart
from kafka_sidecar.loop.clock import Clock
from kafka_sidecar.loop.single_flight import SingleFlight
from kafka_sidecar.loop.waiting import while_it_goes_on, within
from kafka_sidecar.partition.fold.fold import Fold, IndexAlarm
from kafka_sidecar.partition.fold.producer_states import ProducerMemory, ProducerStates
from kafka_sidecar.partition.fold.producers import ProducerTable
from kafka_sidecar.partition.fold.transactions import TransactionTable
from kafka_sidecar.partition.folded_entries import FoldedEntries
from kafka_sidecar.partition.follow.alarms import raise_alarm
from kafka_sidecar.partition.follow.entry_contents import EntryContents
from kafka_sidecar.partition.follow.failures import EntryFailures
from kafka_sidecar.partition.follow.late_transactions import AskEnded, LateTransactions
from kafka_sidecar.partition.follow.log_end import LogEnd
from kafka_sidecar.partition.follow.producer_times import ProducerTimes
from kafka_sidecar.partition.follow.read_to_end import MustOpenAgain, ReadToEnd
from kafka_sidecar.partition.follow.replay import LEAST_REPLICATED_ENTRIES, Replay
from kafka_sidecar.partition.follow.tail_gap import TailGap
from kafka_sidecar.partition.follow.tail_reader import TailReader
from kafka_sidecar.partition.follow.tail_watch import TailWatch
from kafka_sidecar.partition.follow.unannounced_transactions import UnannouncedTransactions
from kafka_sidecar.partition.log.errors import PartitionEnded, error_code
from kafka_sidecar.partition.log.log_config import LogConfig
from kafka_sidecar.partition.log.port import EntryLog
from kafka_sidecar.partition.opening import begin_fold
from kafka_sidecar.partition.read.catch_up_readers import CatchUpReaders
from kafka_sidecar.partition.read.fetch_cache import FetchedRun
from kafka_sidecar.partition.read.log_start import LogStart
from kafka_sidecar.partition.search.partition_times import PartitionTimes, TimeIndexes
from kafka_sidecar.partition.search.timestamp_search import Searched
from kafka_sidecar.partition.snapshots.fold_snapshots import FoldSnapshots
from kafka_sidecar.partition.snapshots.gap_check import GapCheck
from kafka_sidecar.partition.snapshots.producer_snapshots import ProducerSnapshots
from kafka_sidecar.partition.tail_fold import TailFold
from kafka_sidecar.partition.write.append import Append, MarkerWritten, expire, pass_on
from kafka_sidecar.partition.write.appender import Appender
from kafka_sidecar.partition.write.validation import Validation
from kafka_sidecar.partition.write.verified_appends import Verification, VerifiedAppends
from kafka_sidecar.pulsar.entry import LogStats, Position, RawEntry
from kafka_sidecar.pulsar.errors import PulsarError, Unavailable
from kafka_sidecar.pulsar.raw_entries import permits_of
from kafka_sidecar.telemetry import metrics
from kafka_sidecar.telemetry.limits import RateLimitedLog
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.records import NO_PRODUCER_ID

log = logging.getLogger(__name__)
limited = RateLimitedLog(log)

# As long as Kafka clients wait for an answer (request.timeout.ms).
OPEN_SECONDS: Final = 30.0
# The tail reader normally delivers an acknowledged entry within some milliseconds. After 5 s the log end is confirmed
# instead.
AWAITED_SECONDS: Final = 5.0
# Confirming the log end normally takes some milliseconds. Clients wait ten times as long (request.timeout.ms).
CHECK_SECONDS: Final = 3.0
# A partition that is only written needs no tail: it would read back every entry for nobody.
TAIL_IDLE_SECONDS: Final = 5.0
# The interval of ticks while nothing is appended. It is shorter than TAIL_IDLE_SECONDS.
QUIET_TICK_SECONDS: Final = 4.0
# A search without clients runs on longer than any client backs off before its retry (retry.backoff.max.ms is 1 s).
SEARCH_LINGER_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionLimits:
    replay_entries: int = 2_000
    replay_bytes: int = 16 * 1024 * 1024
    read_ahead: int = 4 * 1024 * 1024
    idle_seconds: float = 60.0
    catch_up_idle_seconds: float = 15.0
    batches_per_entry: int = 100


class Watcher(Protocol):
    def on_partition_changed(self, partition: Partition) -> None: ...


class Partition:
    def __init__(
        self,
        name: str,
        log_: EntryLog,
        writer_name: str,
        indexes: TimeIndexes,
        limits: PartitionLimits,
        failures: EntryFailures,
        memory: ProducerMemory,
        clock: Clock,
        ask_ended: AskEnded | None = None,
    ) -> None:
        self.name = name
        self.producer_memory = memory
        self.ended: ErrorCode | None = None
        self.transactions = TransactionTable()
        self._log = log_
        self._limits = limits
        self._failures = failures
        self._loop = asyncio.get_running_loop()
        self._fold = Fold(None, self.transactions, memory)
        self._fold.own_writer = writer_name.encode()
        self._gaps = GapCheck(name, log_, self.transactions, self)
        self._folds = FoldSnapshots(
            name, self._fold, self.transactions, indexes.states, self._gaps, clock, self.on_late_hidden
        )
        self._unannounced = UnannouncedTransactions(log_, self._fold, self.transactions)
        self._contents = contents = EntryContents(name, failures, self._unannounced, self._folds, self)
        self._cache = indexes.cache.partition()
        self._opened: asyncio.Future[None] = self._loop.create_future()
        self._waiting: list[Append] = []
        self._watchers: dict[Watcher, None] = {}  # An ordered set: watchers are woken in the order in which they came
        self._log_start = LogStart(log_, self)
        self._catch_ups = CatchUpReaders(name, log_, self._cache, limits.read_ahead, contents, self)
        # ListOffsets searches in flight, by timestamp. A client that retries joins the search that is in flight. A
        # search whose clients have disconnected stops before it has read the whole log.
        self.searches: SingleFlight[int, Searched] = SingleFlight(linger=SEARCH_LINGER_SECONDS)
        self.times = PartitionTimes(name, log_, self, indexes, clock)
        self.used_at = self._begun_at = self._loop.time()
        self._next_tick_at = 0.0
        self._tail = TailReader(name, log_, self)
        self._tail_watch = TailWatch(name, log_, self._fold, self._tail)
        self._to_end = ReadToEnd(name, log_, self._tail, self._tail_watch, self._fold)
        self._log_end = LogEnd(self)
        folded = FoldedEntries(self._fold, self._cache, self.times, self._to_end, self.changed, self.serve_again)
        self._appender = Appender(
            name, log_, writer_name, self._fold, self.transactions, folded, self, limits.batches_per_entry, clock
        )
        self._validation = Validation(name, self, clock)
        self._producer_snapshots = ProducerSnapshots(name, self._fold, indexes.states, self, clock)
        self._replay = Replay(
            name, log_, self._fold, contents, self._producer_snapshots, self, limits.replay_entries, limits.replay_bytes
        )
        self._tail_gap = TailGap(name, log_, self._fold, self)
        self._tail_fold = TailFold(
            name,
            log_,
            self._fold,
            contents,
            self._appender,
            self._to_end,
            folded,
            self._replay,
            self._gaps,
            self._tail_gap,
        )
        self._verified = VerifiedAppends(log_, self._fold, self.transactions, self)
        self._late = LateTransactions(name, self.transactions, self, ask_ended)
        self._producer_times = ProducerTimes(self._fold, self._tail, self._begun_at)
        self._config_changes = self._skip_changes = 0
        self._opening = asyncio.create_task(self._open())

    # --- opening and ending

    async def _open(self) -> None:
        try:
            # Entries that wait in this process to be decoded count as progress, so they do not make the opening time
            # out.
            async with while_it_goes_on(
                OPEN_SECONDS, lambda: (self._fold.reached, self._tail.delays, self._log.patience.delays)
            ):
                asked_at = self._loop.time()
                changes = self._config_changes
                config = await self._log.config()
                if changes == self._config_changes:  # A newer config may have been set while this request was in flight
                    self._appender.config = config
                changes = self._skip_changes
                skipped = await self._log.skipped()
                if changes == self._skip_changes:
                    self._contents.skipped = skipped
                self.set_counting(counts_records=await self._log.counts_records())
                announce = self._unannounced.announce if self._failures.has_transactions(self.name) else None
                begun = await begin_fold(self._log, self._fold, self.transactions, self._to_end, self._folds, announce)
                self._log_start.note(await self._log.moved_start())
                await self._log_start.begin(begun.stats, begun.log_start, asked_at)
        except TimeoutError:
            self._end(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"did not open, and nothing came for {OPEN_SECONDS:.0f} s")
        except IndexAlarm as alarm:
            self.alarm(alarm)
        except PulsarError as error:
            self.end_for(error)
        except Exception:
            # Waiting requests must be answered, whatever failed: an answer of the admin API that nobody expected, say.
            log.exception("partition %s could not be opened", self.name)
            self._end(ErrorCode.UNKNOWN_SERVER_ERROR, "could not be opened")
        else:
            if self.ended is None:
                self._opened.set_result(None)
                self._release()
                self.changed()
                self._late.begin(self._loop.time())

    async def opened(self) -> ErrorCode:
        """Wait until the partition can answer; the error when it can't, or not within the time that a client waits.

        It is opened nevertheless: a log of transactions may be long, and a client that asks again finds it further on.
        """
        if self.ended is None and not self._opened.done():
            await asyncio.wait((self._opened,), timeout=OPEN_SECONDS)
            if not self._opened.done():
                return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return self.ended or ErrorCode.NONE

    def when_opened_or_ended(self, call: Callable[[], None]) -> None:
        self._opening.add_done_callback(lambda _: call())

    @property
    def is_open(self) -> bool:
        return self.ended is None and self._opened.done()

    def end_for(self, error: SidecarError) -> None:
        self._end(error_code(error), str(error))

    def _end(self, code: ErrorCode, why: str) -> None:
        """This object serves no more; waiting requests are answered, and the next request opens a new one."""
        if self.ended is not None:
            return
        self.ended = code
        is_pending = self._appender.pending > 0
        if self._opening is not asyncio.current_task():
            self._opening.cancel()
        if code is ErrorCode.KAFKA_STORAGE_ERROR or self._opened.done():
            log.info("partition %s: %s", self.name, why)
        else:  # Rate-limited, because clients retry without end
            limited.warning("partition %s: %s", self.name, why)
        if not self._opened.done():
            self._opened.set_result(None)
        waiting, self._waiting = self._waiting, []
        for append in waiting:
            append.refuse(code)
        self._verified.fail(code)
        self._validation.fail(code)
        self._late.stop()
        self._appender.fail(code)
        self._replay.stop()
        self._gaps.stop()
        self._tail_gap.stop()
        self._tail_watch.stop()
        self._log_start.stop()
        self._tail.stop()
        self._log_end.fail(Unavailable(why))
        self._catch_ups.close()
        self.times.stop()
        if code is ErrorCode.KAFKA_STORAGE_ERROR:
            self._folds.distrust()
            self._producer_snapshots.distrust()
        else:
            self._folds.close()
            if self._keeps_producers():
                self._producer_snapshots.close(is_pending=is_pending)
            elif not self._appender.has_appended:
                self._producer_snapshots.withdraw()
        self._to_end.fail(Unavailable(why))
        self._cache.clear()
        self.changed()

    def close(self) -> list[asyncio.Task[None]]:
        """What it does yet, for callers that have the time to wait for it."""
        self._end(ErrorCode.NOT_LEADER_OR_FOLLOWER, "closed")
        return [one for one in (self._folds.keeping, self._producer_snapshots.keeping) if one is not None]

    # --- appending

    def is_next(self, size: int, producer_id: int, epoch: int, first_sequence: int, now: float) -> bool:
        """Whether a batch is an ordinary one here (see `Appender.is_next`)."""
        if (
            self._waiting
            or self._validation.waiting
            or not (self._producer_snapshots.has_begun or producer_id == NO_PRODUCER_ID)
        ):
            return False
        return self._appender.is_next(size, producer_id, epoch, first_sequence, now)

    def append_next(self, append: Append, now: float) -> None:
        """Append a batch for which `is_next` is true."""
        self._appender.append_next(append, now)

    def append(self, append: Append) -> None:
        """Append one checked batch, or find out why it can't be."""
        if self.ended is not None:
            append.refuse(self.ended)
        elif self._opened.done() and not self._waiting and (self._takes_producers or not append.has_producer):
            self._to_appender(append)
        else:
            self._waiting.append(append)
            if self._opened.done():
                self._release()

    def _to_appender(self, append: Append) -> None:
        if not self._validation.holds(append):
            self._appender.append(append)

    def append_validated(self, append: Append) -> None:
        self._appender.append(append)

    @property
    def config(self) -> LogConfig:
        return self._appender.config

    def append_to_transaction(self, append: Append, verify: Verification) -> None:
        """Append a batch of a transaction, when its coordinator has said which one that is."""
        if self.ended is not None:
            append.refuse(self.ended)
        else:
            self._verified.append(append, verify)

    def _release(self) -> None:
        """What waited goes to the appender, up to the first that has to wait until producers are taken."""
        waiting = self._waiting
        ready = (
            len(waiting)
            if self._takes_producers
            else next((n for n, one in enumerate(waiting) if one.has_producer), len(waiting))
        )
        self._waiting = waiting[ready:]
        pass_on([(append, None) for append in waiting[:ready]], lambda append, _: self._to_appender(append))
        if not self._waiting:
            return
        if self._replay.done:
            self._producer_snapshots.begin(self._loop.time())
        else:
            self._replay.start()

    @property
    def _takes_producers(self) -> bool:
        """Whether it is known what they wrote before, and something is kept from which others go on."""
        return self._replay.done and self._producer_snapshots.has_begun

    @property
    def no_transactions_up_to(self) -> Position | None:
        return self._folds.none_up_to

    @property
    def knows_the_past(self) -> bool:
        return self._replay.done

    def on_replayed(self) -> None:
        self._release()

    def on_snapshot_stored(self) -> None:
        if self.is_open:
            self._release()

    def refuse_waiting(self, producer_id: int, error: ErrorCode) -> None:
        """One of its batches came before these, went on to the appender, and is refused for a moment."""
        self._validation.refuse_of(producer_id, error)
        self.refuse_not_here_yet(producer_id, error)

    def refuse_not_here_yet(self, producer_id: int, error: ErrorCode) -> None:
        """The same of what is not validated yet."""
        self._verified.refuse_of(producer_id, error)
        behind = [append for append in self._waiting if append.producer_id == producer_id]
        if behind:
            self._waiting = [append for append in self._waiting if append.producer_id != producer_id]
            for append in behind:
                append.refuse(error)

    async def read_back(self) -> None:
        """A batch can't be judged by what is known."""
        await self._replay.read_back()

    async def know(self, producer_ids: Iterable[int]) -> None:
        """Until all is known of these producers that can be. May raise SidecarError."""
        producers = self._fold.producers
        while not producers.knows_the_past or (
            not self._fold.has_all and any(one in producers.unsure for one in producer_ids)
        ):
            await self._replay.read_back()
            producers = self._fold.producers

    def learn_again(self) -> None:
        """Another sidecar has kept more than is known here."""
        self._fold.producers.knows_the_past = False
        self._replay.begin_again()
        self._replay.start()  # No producer snapshot is stored until this replay is done

    def _keeps_producers(self) -> bool:
        """A sidecar that appends keeps what it knows of producers; one that only reads does not."""
        return self._replay.done and self._appender.has_appended

    async def known_producers(self) -> ProducerStates:
        """The producers that the log knows, by id. May raise PulsarError."""
        await self._replay.over()
        return self._fold.producers.states

    def producer_tables(self) -> Iterator[ProducerTable]:
        """What this and its readers know of producers, to be counted."""
        yield self._fold.producers
        yield from self._replay.producer_tables()
        yield from self._catch_ups.producer_tables()

    @property
    def producer_count(self) -> int:
        """Those that were met so far."""
        return len(self._fold.producers.states)

    def set_config(self, config: LogConfig) -> None:
        """Of what is appended from now on."""
        self._config_changes += 1
        self._appender.config = config

    def set_counting(self, *, counts_records: bool) -> None:
        """The same; see `EntryLog.counts_records`."""
        self._appender.set_counting(counts_records=counts_records)

    def set_skipped(self, skipped: frozenset[Position]) -> None:
        """An operator has entries skipped. What was concluded of them is forgotten: the next request opens the
        partition again.
        """
        self._skip_changes += 1
        if self._fold.reached is None:
            self._contents.skipped = skipped
        elif skipped != self._contents.skipped:
            self._end(ErrorCode.NOT_LEADER_OR_FOLLOWER, "an operator has an entry skipped")

    def has_given_up(self, position: Position) -> bool:
        """Whether this sidecar failed at an entry twice, and takes it for one that can't be read."""
        return self._failures.is_given_up(self.name, position)

    def read_on_if_tailed(self) -> None:
        """What was appended may be news to consumers, and to nobody else."""
        if self._tail.running:
            self._tail.read_on()

    def read_on(self) -> None:
        """Somebody needs to know what others have written. What is not open yet is read to its end before it is."""
        if self.is_open:
            self._tail.want()
            self._tail.read_on()

    async def confirm_end(self) -> None:
        await self._log_end.confirmed()

    async def read_to_end(self) -> None:
        try:
            await self._to_end.run()
        except MustOpenAgain as reason:
            self.end_for(reason)
            raise

    def lacks(self, position: Position) -> None:
        self._tail_watch.note(position)

    # --- the tail

    def tail_from(self) -> Position | None:
        """The last entry is read once more: its index proves all counts before it that are known only from receipts."""
        return self._fold.reached or self._fold.replayed_from

    def others_write(self) -> bool:
        return self._tail_fold.others_write(self._loop.time())

    def seconds_since_receipt(self) -> float:
        return self._loop.time() - self._appender.heard_at

    def read_tail_again(self) -> None:
        if self._tail.running:
            self._tail.restart()

    def last_but_one(self) -> Position | None:
        last = self._fold.last_position
        return None if last is None or last.entry == 0 else Position(last.ledger, last.entry - 1)

    def on_tail_entry(self, entry: RawEntry) -> int:
        """Fold an entry that was read; returns the flow permits it cost."""
        try:
            self._tail_fold.take(entry, self._loop.time(), self._opened.done())
        except PartitionEnded:
            pass
        except IndexAlarm as alarm:
            self.alarm(alarm)
        except Exception:
            self.fail_at(entry.position)
        return permits_of(entry)

    def alarm(self, alarm: IndexAlarm) -> None:
        if self.ended is None:
            raise_alarm(self.name, self._log, alarm)
        self._end(ErrorCode.KAFKA_STORAGE_ERROR, str(alarm))

    def fail_at(self, position: Position) -> None:
        """The sidecar itself has failed at an entry: what is known of the partition may be half of it."""
        metrics.INTERNAL_ERRORS.labels("fold").inc()
        limited.exception(
            "partition %s: entry %s could not be folded, the partition is opened again", self.name, position
        )
        self._failures.note(self.name, position)
        self._folds.invalidate()
        self._producer_snapshots.invalidate()
        self._end(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"entry {position} could not be folded")

    def fold_again(self, why: str) -> None:
        self._end(ErrorCode.NOT_LEADER_OR_FOLLOWER, why)
        raise PartitionEnded(why)

    # --- reading

    @property
    def end_offset(self) -> int:
        return self._fold.next_offset

    def on_late_hidden(self) -> None:
        self._folds.note_hidden()
        self.serve_again()

    def serve_again(self) -> None:
        """Some batches that were served are hidden from now on: those of a transaction that ended unseen."""
        self._cache.clear()
        self._catch_ups.close()
        self.changed()

    def watch(self, watcher: Watcher) -> None:
        """Tell `watcher` once, when there is something new to read or the partition ended."""
        self._watchers[watcher] = None

    def unwatch(self, watcher: Watcher) -> None:
        self._watchers.pop(watcher, None)

    def changed(self) -> None:
        if self._watchers:
            watchers, self._watchers = self._watchers, {}
            for watcher in watchers:
                try:
                    watcher.on_partition_changed(self)
                except Exception:  # A failing consumer must not end the partition
                    metrics.INTERNAL_ERRORS.labels("watcher").inc()
                    limited.exception("partition %s: a waiting consumer could not be woken", self.name)

    def is_outside(self, offset: int) -> bool:
        """Whether `offset` lies before the start or behind the end that is known here."""
        return not self.log_start <= offset <= self._fold.next_offset

    def is_quiet(self, offset: int, log_start: int, now: float) -> bool:
        """Whether a consumer at `offset` that knows of `log_start` has nothing to learn, and is woken when it has (see
        `watch`).

        Not of a partition that has ended, or that nobody has read for some seconds: its tail reader does not run.
        """
        if offset != self._fold.next_offset or log_start != self._log_start.offset or not self._tail.running:
            return False
        self.used_at = self._tail.wanted_at = now
        return True

    def read(self, offset: int, max_bytes: int, at_least_one: bool, since: float) -> FetchedRun | None:
        """Batches from `offset` on; an empty run at the end; None when they are on their way (see `watch`).

        `since` is when the request came. An offset outside of the log that is known here is refused only when the
        end was confirmed after that: another sidecar may have written, and answered its client, since then, and the
        topic may have been deleted and made again, where the log that is known begins behind the new one.
        """
        if self.ended is not None:
            return FetchedRun([], 0, offset, self.ended)
        now = self._loop.time()
        self.used_at = now
        self._tail.want()
        if self.is_outside(offset):
            confirmed = self._log_end.is_confirmed_since(since)
            return FetchedRun([], 0, offset, ErrorCode.OFFSET_OUT_OF_RANGE) if confirmed else None
        if offset == self._fold.next_offset:
            return FetchedRun([], 0, offset, ErrorCode.NONE)
        # The catch-up readers come before the cache, because they must learn how far their consumers have read.
        held = self._catch_ups.run(offset, max_bytes, at_least_one, now)
        run = self._cache.run(offset, max_bytes, at_least_one) or held
        return run if run is not None else self._catch_ups.bring(offset, now)

    def read_committed(self, offset: int, max_bytes: int, at_least_one: bool, since: float) -> FetchedRun | None:
        """The same up to the last stable offset: what is behind that may still be aborted."""
        stable = self.last_stable_offset
        if stable <= offset < self._fold.next_offset and self.ended is None:
            self.used_at = self._loop.time()
            self._tail.want()
            return FetchedRun([], 0, offset, ErrorCode.NONE)
        run = self.read(offset, max_bytes, at_least_one, since)
        return run if run is None or run.next_offset <= stable else run.before(stable)

    @property
    def last_stable_offset(self) -> int:
        """The end as consumers of read_committed see it. What began before the log start holds it there (UnifiedLog
        does the same).
        """
        end = self._fold.next_offset
        return min(end, max(self.transactions.last_stable_offset(end), self.log_start))

    async def end_transaction(self, marker: bytes, number: int, deadline: float) -> ErrorCode:
        """Append the marker of a transaction. INVALID_TXN_STATE where that had ended before."""
        written = MarkerWritten()
        self.append(Append.of_marker(marker, number, deadline, written, 0))
        return await written.error

    def is_in_flight(self, producer_id: int) -> bool:
        """Whether a batch of this producer is on its way to the log."""
        before = (*self._waiting, *self._validation.waiting)
        return self._appender.is_in_flight(producer_id) or any(append.producer_id == producer_id for append in before)

    def begin_of_window(self, stats: LogStats, position: Position) -> Position:
        window = stats.before(position, self._limits.replay_entries, self._limits.replay_bytes)
        return min(window, stats.before(position, LEAST_REPLICATED_ENTRIES, 2**63))

    def has_reached_fold_end(self, position: Position) -> bool:
        return self._fold.last_position is not None and position >= self._fold.last_position

    # --- both ends

    async def confirmed_end(self) -> int:
        """The log end, not older than anything the broker has acknowledged to anyone before this call."""
        if self.ended is not None:
            raise Unavailable(f"{self.name} is closed")
        self.used_at = self._loop.time()
        await self._log_end.confirmed()
        return self._fold.next_offset

    @property
    def log_start(self) -> int:
        return self._log_start.offset

    async def confirmed_start(self) -> int:
        if self.ended is not None:
            raise Unavailable(f"{self.name} is closed")
        self.used_at = self._loop.time()
        if await self._log_start.confirmed() > 0:
            await self._check_topic()
        return self.log_start

    async def _check_topic(self) -> None:
        """The start moves back only where the topic was made again. The log's end shows that; where its storage is
        away, the topic's id.
        """
        try:
            await within(CHECK_SECONDS, self._log_end.confirmed())
        except (PulsarError, TimeoutError) as error:
            if self.ended is not None or await self._log.is_another():
                raise Unavailable(f"{self.name} was made again, or is closed") from error

    def on_start_moved(self, moved: MovedStart) -> None:
        """A client has deleted records."""
        self._log_start.move_to(moved)

    def note_stats(self, stats: LogStats) -> None:
        self._tail_watch.note(stats.last)

    async def ask_log_start(self) -> int:
        return await self._log_start.refresh()

    def ask_log_start_soon(self) -> None:
        self._log_start.refresh_soon()

    def refresh_log_start_if_stale(self, offset: int) -> None:
        """For a consumer that has come to `offset`."""
        self._log_start.refresh_if_stale(at_end=offset >= self._fold.next_offset)

    # --- searches

    @property
    def entry_log(self) -> EntryLog:
        return self._log

    @property
    def last_position(self) -> Position | None:
        return self._fold.last_position

    @property
    def max_ahead_ms(self) -> int:
        return self._appender.config.after_max_ms

    @property
    def moved_start(self) -> Position | None:
        """The entry at which the log starts, where a client has moved the start."""
        moved = self._log_start.moved
        return moved.position if moved is not None and moved.offset == self.log_start else None

    # --- housekeeping

    def is_due(self, now: float) -> bool:
        """Whether `tick` has something to do. Of many partitions most only wait to be closed one day."""
        waits = self._waiting or self._validation.waiting or self._verified.is_at_work
        return now >= self._next_tick_at or bool(waits) or self._appender.is_at_work

    @property
    def has_waiting(self) -> bool:
        """Whether producers wait until it is known what they wrote before, and something is kept of it."""
        return bool(self._waiting)

    def tick(self, now: float) -> None:
        """Once a second, if it is due: expire appends, close what nobody uses."""
        self._next_tick_at = now + QUIET_TICK_SECONDS
        self._waiting, _ = expire(self._waiting, now)
        self._verified.tick(now)
        self._validation.expire(now)
        self._tail_watch.note(self._appender.awaited)
        if self._appender.awaited is not None and self.is_open:
            # Retention may have removed the awaited entry unread. If it was the last entry, no later one reveals that.
            self._log_end.is_confirmed_since(now - AWAITED_SECONDS)
        self._tail_watch.tick(now)
        if not self._opened.done():
            self._tick_while_opening(now)
        if not self.is_open:
            return
        if self._waiting:
            # What blocked these appends may have ended, and a failed replay or snapshot store is retried.
            self._release()
        limits = self._limits
        self._appender.tick(now, limits.idle_seconds)
        self._catch_ups.tick(now, limits.catch_up_idle_seconds)
        self.times.tick(self.log_start)
        self.transactions.drop_before(self.log_start, self._log_start.gone_before)
        self._cache.set_fixed(self.transactions.size)
        self._late.tick(now)
        self._folds.tick(now)
        self._producer_snapshots.stay_ready(now)
        if self._keeps_producers():
            self._producer_snapshots.tick(now)
        self._producer_times.tick(now)
        if self._watchers:  # Waiting consumers fetch again soon, so the tail reader stays open for them
            self._tail.wanted_at = now
        quiet = now - max(self._tail.wanted_at, self._tail_fold.foreign_at) > TAIL_IDLE_SECONDS
        if quiet and not self._appender.pending:
            self._tail.stop_unless_held()

    def _tick_while_opening(self, now: float) -> None:
        self._folds.tick(now)
        if now - self._begun_at > OPEN_SECONDS:
            limited.info(
                "partition %s is being opened: its log is folded up to offset %d", self.name, self._fold.next_offset
            )

    def idle(self, now: float) -> bool:
        return self.unused_seconds(now) > self._limits.idle_seconds * 5

    def unused_seconds(self, now: float) -> float:
        is_read = self._replay.is_at_work or not self._opening.done()
        busy = (
            self._appender.pending
            or self._watchers
            or self._waiting
            or self._validation.waiting
            or is_read
            or len(self.searches)
        )
        return 0.0 if busy else now - max(self.used_at, self._appender.used_at)
