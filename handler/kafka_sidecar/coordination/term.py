"""One shard of an internal topic, for as long as this process leads it.

    waiting ──▶ loading
    loading ──▶ waiting, leading
    leading ──▶ waiting

It loads when it is elected, and leads when it has read its own marker. It waits again when it has lost the election or
its producer. A write is acknowledged when its receipt comes, in order. Any failure of a write ends the term: waiting
requests get NOT_COORDINATOR, the state is forgotten, and the next term reads the log. So a write whose fate is unknown
needs no case of its own.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from enum import Enum, auto
from functools import partial
from typing import Final, Generic, Protocol, TypeVar

from kafka_sidecar.coordination.errors import CoordinatorError
from kafka_sidecar.coordination.term_log import TermLog
from kafka_sidecar.loop.backoff import Backoff
from kafka_sidecar.loop.gate import Gate
from kafka_sidecar.loop.states import Transitions, next_state
from kafka_sidecar.loop.supervised import SupervisedTask
from kafka_sidecar.loop.waiting import Pending
from kafka_sidecar.pulsar.errors import PulsarError, Unavailable
from kafka_sidecar.telemetry import metrics
from kafka_sidecar.wire.error_code import ErrorCode

log = logging.getLogger(__name__)

# Back-off before a shard is loaded again, in seconds. It starts short, since the usual cause is an unload of the topic.
# Its limit is 5 s, so that a broker that is down gets few requests.
FIRST_DELAY: Final = 0.1
MAX_DELAY: Final = 5.0
# A write without a receipt for 25 s ends the term, since some brokers do not notify a fenced producer. A broker under
# load took 18 s for a write that it stored.
RECEIPT_SECONDS: Final = 25.0
# Legacy records are written again in batches of this size while a shard loads. Heartbeats to other shards are answered
# between two batches.
RECORDS_AT_ONCE: Final = 10_000

R = TypeVar("R")
RecordOf = TypeVar("RecordOf", contravariant=True)


class Phase(Enum):
    WAITING = auto()
    LOADING = auto()
    LEADING = auto()


TRANSITIONS: Final[Transitions[Phase]] = {
    Phase.WAITING: {Phase.LOADING},
    Phase.LOADING: {Phase.WAITING, Phase.LEADING},
    Phase.LEADING: {Phase.WAITING},
}


class TermState(Protocol[RecordOf]):
    """The state of a shard: made of the log's records, forgotten with the term."""

    def replay(self, record: RecordOf, legacy: bool) -> None:
        """A record of the log, in its order; `legacy` if it is in a form that compaction would lose."""
        ...

    async def on_loaded(self) -> None:
        """All is replayed. Records that must come before all others are written here. May raise PulsarError."""
        ...

    async def on_leading(self, seconds: float) -> None:
        """Requests are served from now on; loading took so long."""
        ...

    def on_stored(self, record: RecordOf) -> None:
        """A record of this term is in the log."""
        ...

    @property
    def live_record_count(self) -> int:
        """About so many records of the log count."""
        ...

    def on_unloaded(self) -> None:
        """Forget everything. Waiting clients ask again, where the next leader is."""
        ...


class Term(Generic[R]):
    def __init__(self, name: str, open_log: Callable[[], TermLog[R]], state: TermState[R]) -> None:
        self.name = name
        self.phase = Phase.WAITING
        self._not_loading = Gate()
        self.record_count = 0  # records in the log that this term has read or written
        self._open_log = open_log
        self._state = state
        self._loop = asyncio.get_running_loop()
        self._term_log: TermLog[R] | None = None
        self._elected = False
        self._task = SupervisedTask("term", name, self._lead, backoff=Backoff(FIRST_DELAY, MAX_DELAY))
        self._writes: dict[int, tuple[Sequence[R], Callable[[ErrorCode], None]]] = {}
        self._write_number = 0
        self.number = 0  # incremented when a term ends, so that it identifies one term

    # --- from the election

    def elect(self) -> None:
        """The election has made this process the leader."""
        self._elected = True
        if self.phase is Phase.WAITING:
            self._task.start()

    def depose(self, reason: str) -> None:
        self._elected = False
        self._task.stop()
        if self.phase is not Phase.WAITING:
            log.info("%s: the term ends: %s", self.name, reason)
        self._end()

    def restart(self, reason: str) -> None:
        """End the term and begin another, if the election still stands then."""
        elected = self._elected
        self.depose(reason)
        if elected:
            self.elect()

    # --- its life

    async def _lead(self) -> None:
        if not self._elected:
            return
        try:
            await self._begin()
        except Exception:  # the supervised task logs the error and retries
            self._end()
            raise

    async def _begin(self) -> None:
        # The previous attempt ended in CancelledError, which `_lead` does not catch.
        if self.phase is not Phase.WAITING:
            self._end()
        self._become(Phase.LOADING)
        self._not_loading.close()
        begun = self._loop.time()
        self._term_log = term_log = self._open_log()
        await term_log.become_only_writer(partial(self._on_log_lost, term_log))
        await term_log.read(self._replay)
        await self._state.on_loaded()
        if self._term_log is not term_log:
            return  # a write in `on_loaded` has ended this term, and the next one has begun
        if term_log.lost_reason is not None:
            raise term_log.lost_reason
        self._become(Phase.LEADING)
        self._not_loading.open()
        await self._state.on_leading(self._loop.time() - begun)

    def _replay(self, record: R, legacy: bool) -> None:
        self.record_count += 1
        self._state.replay(record, legacy)

    def _on_log_lost(self, lost_log: TermLog[R], reason: PulsarError) -> None:
        """The producer is gone: another has taken the log, or the broker is away. Writes under way may have landed."""
        if self._term_log is not lost_log:
            return
        if self.phase is not Phase.LEADING:
            self._fail_writes()  # `_begin` raises `lost_reason`, and the supervised task retries
            return
        log.info("%s: the term ends: %s", self.name, reason)
        metrics.TERMS_LOST.inc()
        self._end()
        # Deferred to the next turn of the event loop: the connection that has lost the producer may also be about to
        # report that the election is lost.
        self._loop.call_soon(self._lead_again)

    def _lead_again(self) -> None:
        if self._elected:
            self._task.stop()  # the task of the lost term may still run `on_leading`
            # Or the task has ended, and another term has begun in this turn of the event loop.
            if self.phase is not Phase.WAITING:
                self._end()
            self.elect()

    def _become(self, phase: Phase) -> None:
        self.phase = next_state(TRANSITIONS, self.phase, phase)

    def _end(self) -> None:
        if self.phase is not Phase.WAITING:
            self._become(Phase.WAITING)
        self._not_loading.open()
        self.number += 1
        if self._term_log is not None:
            self._term_log.close()
            self._term_log = None
        self.record_count = 0
        self._fail_writes()
        self._state.on_unloaded()

    def _fail_writes(self) -> None:
        writes, self._writes = self._writes, {}
        for _, done in writes.values():
            done(ErrorCode.NOT_COORDINATOR)

    def give_up_on_silence(self, now: float) -> None:
        """A write that has had no receipt for so long will not get one."""
        since = self._term_log.oldest_write() if self._term_log is not None else None
        if self._term_log is not None and since is not None and now - since > RECEIPT_SECONDS:
            self._term_log.fail(Unavailable(f"a write had no receipt for {RECEIPT_SECONDS:.0f} s"))

    # --- for who serves requests

    async def loaded(self, until: float | None) -> None:
        """Wait while the log is read, at most until then by the loop's clock; without a pause if it is not being
        read.
        """
        await self._not_loading.passed(until)

    def check_leading(self) -> None:
        if self.phase is Phase.LOADING:
            raise CoordinatorError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        if self.phase is Phase.WAITING:
            raise CoordinatorError(ErrorCode.NOT_COORDINATOR)

    @property
    def live_record_count(self) -> int:
        return self._state.live_record_count

    @property
    def under_way(self) -> Iterator[R]:
        """The records that are written and not stored yet."""
        for records, _ in self._writes.values():
            yield from records

    def fits(self, record: R) -> bool:
        """Whether one Pulsar entry can hold the record. Once the term is over this is True: `store` then refuses the
        write.
        """
        return self._term_log is None or self._term_log.fits(record)

    def store(self, records: Sequence[R], done: Callable[[ErrorCode], None] = lambda _: None) -> None:
        """Write records, apply them when they are stored, then tell; or tell that the term is over."""
        term_log = self._term_log
        if term_log is None:  # the term ended before its caller wrote the records
            done(ErrorCode.NOT_COORDINATOR)
            return
        number = self._write_number
        self._write_number += 1
        self._writes[number] = records, done
        try:
            term_log.append(records, partial(self._stored, number))
        except PulsarError as error:
            self._fail_log(term_log, error)
        except BaseException:
            self._writes.pop(number, None)
            raise

    def _fail_log(self, term_log: TermLog[R], error: PulsarError) -> None:
        term_log.fail(error)
        self._on_log_lost(term_log, error)

    def _stored(self, number: int) -> None:
        written = self._writes.pop(number, None)
        if written is None:
            return
        records, done = written
        self.record_count += len(records)
        try:
            for record in records:
                self._state.on_stored(record)
        except Exception:
            metrics.INTERNAL_ERRORS.labels("term").inc()
            log.exception(
                "%s: a record is stored, and could not be applied: the term ends, and the next one reads it", self.name
            )
            done(ErrorCode.NOT_COORDINATOR)
            if self._term_log is not None:
                self._fail_log(self._term_log, Unavailable("what is stored could not be applied"))
            return
        done(ErrorCode.NONE)

    async def all_stored(self) -> None:
        """Wait until all that is under way is stored. CoordinatorError if the term ends before."""
        await self.store_and_wait(())

    async def prove(self) -> None:
        """Wait until Pulsar has taken a write: nobody else leads then, and what is known here is all. CoordinatorError
        if not.
        """
        term_log = self._term_log
        if term_log is not None:
            try:
                term_log.append_marker()
            except PulsarError as error:
                self._fail_log(term_log, error)
        await self.all_stored()

    async def store_and_wait(self, records: Sequence[R]) -> None:
        """Write records, and wait until they and all before them are stored. CoordinatorError if the term ends
        before.
        """
        number = self.number
        stored = Pending[ErrorCode]()
        self.store(records, stored.complete)
        error = await stored
        if error is not ErrorCode.NONE:
            raise CoordinatorError(error)
        if number != self.number:  # the records are stored, but the state they belong to is gone
            raise CoordinatorError(ErrorCode.NOT_COORDINATOR)

    async def write_legacy_again(self, records: Sequence[R]) -> None:
        """While loading: write again what another program has left, in the form that compaction keeps, then delete
        that.
        """
        for begin in range(0, len(records), RECORDS_AT_ONCE):
            try:
                await self.store_and_wait(records[begin : begin + RECORDS_AT_ONCE])
            except CoordinatorError as error:
                raise Unavailable("the producer was lost") from error
        if self._term_log is not None:
            self._term_log.delete_legacy()
