"""A shard: the groups of one partition of `__consumer_offsets`, while this process coordinates them.

    waiting ──elected──▶ loading ──marker read──▶ leading ──election or producer lost──▶ waiting

Offsets are applied when their receipt comes, in order; groups change at once, and their answers wait
for it. Whatever goes wrong with a write ends the term: all that wait are told NOT_COORDINATOR,
everything is forgotten, and the next term reads the log.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from functools import partial
from typing import Final

from kio.schema.errors import ErrorCode

from handler.config import GroupsConfig
from handler.coordination.errors import NotLeading
from handler.coordination.term_log import TermLog
from handler.groups.classic.machine import ClassicGroup
from handler.groups.consumer.machine import ConsumerGroup, Times
from handler.groups.consumer.members import Topics
from handler.groups.effects import Effects, Group
from handler.groups.machine import Now
from handler.groups.records import Key, OffsetKey, OffsetValue, Record, Value
from handler.groups.restored import restored
from handler.pulsar.errors import PulsarError, Unavailable
from handler.tasks import Backoff, KeptAlive, Pace
from handler.telemetry import metrics

log = logging.getLogger(__name__)

FIRST_DELAY: Final = 0.1
MAX_DELAY: Final = 5.0
# Some brokers say nothing to a producer they have fenced. A broker under load took 18 s for a write that was stored.
RECEIPT_SECONDS: Final = 25.0
RECORDS_AT_ONCE: Final = 10_000

TopicPartition = tuple[str, int]
Offsets = dict[TopicPartition, OffsetValue]


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What the shards of one coordinator have in common."""

    config: GroupsConfig
    now: Callable[[], Now]
    topic_name: Callable[[str], str]  # the one name of a topic, under which its offsets are kept
    topics: Topics
    may_act: Callable[[], bool]  # asked before time is taken for passed
    on_committed: Callable[[OffsetKey, OffsetValue], None]


class Phase(Enum):
    WAITING = auto()
    LOADING = auto()
    LEADING = auto()


def _tell(written: asyncio.Future[ErrorCode], error: ErrorCode) -> None:
    if not written.done():
        written.set_result(error)


class Shard:
    def __init__(self, name: str, open_log: Callable[[], TermLog[Record]], around: Surroundings) -> None:
        self.name = name
        self.phase = Phase.WAITING
        self.groups: dict[str, Group] = {}
        self.offsets: dict[str, Offsets] = {}
        self.effects = Effects(self)
        self.oversized: set[str] = set()  # consumer groups that could not be stored as they would have been
        self.records = 0  # in the log, as far as this term has read and written it
        self._open_log = open_log
        self._around = around
        self.now = around.now
        self._loop = asyncio.get_running_loop()
        self._log: TermLog[Record] | None = None
        self._elected = False
        self._term = KeptAlive("term", name, self._lead, backoff=Backoff(FIRST_DELAY, MAX_DELAY))
        # By group: when it wants to be woken, and the timer. uvloop's handle of a time that is past has no `when`.
        self._alarms: dict[str, tuple[float, asyncio.Handle]] = {}
        self._writes: dict[int, Callable[[ErrorCode], None]] = {}
        self.under_way: Counter[Key] = Counter()  # keys of records that are written and not stored yet
        self._write_number = 0
        self._loaded: dict[str, dict[Key, Value]] = {}  # by group, in the order of the log
        self._adopted: dict[Key, Value] = {}

    # --- the term

    def elect(self) -> None:
        """The election has made this process the coordinator."""
        self._elected = True
        if self.phase is Phase.WAITING:
            self._term.start()

    def depose(self, reason: str) -> None:
        self._elected = False
        self._term.stop()
        if self.phase is not Phase.WAITING:
            log.info("%s: the term ends: %s", self.name, reason)
        self._end()

    async def _lead(self) -> None:
        if not self._elected:
            return
        try:
            await self._begin()
        except Exception:  # the task says what, and begins again
            self._end()
            raise

    async def _begin(self) -> None:
        self.phase = Phase.LOADING
        begun = self._loop.time()
        self._log = taken = self._open_log()
        await taken.take(partial(self._lost, taken))
        await taken.read(self._load)
        leftovers = await self._take_over()
        await self._write_again(taken)
        if leftovers:
            self.store(leftovers, lambda _: None)
        for group in list(self.groups.values()):
            self.run(group)
        if taken.lost is not None:
            raise taken.lost
        self.phase = Phase.LEADING
        await self._tell_committed()
        count = sum(map(len, self.offsets.values()))
        log.info("coordinating %s: %d groups, %d offsets, read in %.1f s", self.name, len(self.groups), count, self._loop.time() - begun)

    async def _tell_committed(self) -> None:
        """Of what was committed in terms before: they may not have come to telling it."""
        pace = Pace()
        for group_id in list(self.offsets):
            await pace.rest()  # and not between a group's own: what it commits meanwhile is told after
            for (topic, partition), value in self.offsets.get(group_id, {}).items():
                self._around.on_committed(OffsetKey(group_id, topic, partition), value)

    def _load(self, record: Record, adopted: bool) -> None:
        key, value = record
        self.records += 1
        if adopted and isinstance(key, OffsetKey):
            key = key._replace(topic=self._around.topic_name(key.topic))
            if isinstance(value, OffsetValue):
                value = value._replace(expires_at=-1)  # three days after its commit, which few took for a promise
        self._adopted.pop(key, None)
        if adopted and value is not None:
            self._adopted[key] = value
        if isinstance(key, OffsetKey):
            self._apply_offset(key, value)
            return
        stored = self._loaded.setdefault(key.group, {})
        stored.pop(key, None)  # what is written again counts from there
        if value is not None:
            stored[key] = value

    async def _take_over(self) -> list[Record]:
        """Make groups of what was read. Records that belong to none are returned, to be deleted."""
        now = self.now()
        pace = Pace()
        loaded, self._loaded = self._loaded, {}
        leftovers: list[Record] = []
        for group_id, stored in loaded.items():
            await pace.rest()
            try:
                group, unused = restored(group_id, stored, self.new_group, self.new_consumer_group, now)
            except Exception:
                log.exception("%s: group %s can't be made of what is stored of it", self.name, group_id)
                continue
            leftovers += unused
            if group is not None:
                self.groups[group_id] = group
        for group_id in self.offsets:
            if group_id not in self.groups:
                self.groups[group_id] = self.new_group(group_id)
        return leftovers

    async def _write_again(self, taken: TermLog[Record]) -> None:
        """Before anything else is written: what Kafka-on-Pulsar left, in the form that compaction keeps."""
        adopted, self._adopted = self._adopted, {}
        records = []
        for record in (Record(key, value) for key, value in adopted.items()):
            if taken.fits(record):
                records.append(record)
            else:
                log.error("%s: what Kafka-on-Pulsar stored of group %s is too large for an entry and is lost", self.name, record.key.group)
        if adopted:
            log.info("%s: %d records of Kafka-on-Pulsar are written again", self.name, len(records))
        for begin in range(0, len(records), RECORDS_AT_ONCE):
            written: asyncio.Future[ErrorCode] = self._loop.create_future()
            self.store(records[begin : begin + RECORDS_AT_ONCE], partial(_tell, written))
            if await written is not ErrorCode.none:
                raise Unavailable("the producer was lost")
        taken.forget_adopted()

    def _lost(self, lost: TermLog[Record], reason: PulsarError) -> None:
        """The producer is gone: another has taken the log, or the broker is away. What was under way may have landed."""
        if self._log is not lost:
            return
        if self.phase is not Phase.LEADING:
            self._fail_writes()  # whoever loads looks whether the log is lost, and tries again
            return
        log.info("%s: the term ends: %s", self.name, reason)
        metrics.TERMS_LOST.inc()
        self._end()
        # A moment later: the connection that has lost the producer may be about to say that the election is lost too.
        self._loop.call_soon(self._lead_again)

    def _lead_again(self) -> None:
        if self._elected:
            self.elect()

    def restart(self, reason: str) -> None:
        """End the term and begin another, if the election still stands then."""
        elected = self._elected
        self.depose(reason)
        if elected:
            self.elect()

    def _end(self) -> None:
        """Forget everything. Whoever waits asks again, where the next coordinator is."""
        self.phase = Phase.WAITING
        if self._log is not None:
            self._log.close()
            self._log = None
        for _, timer in self._alarms.values():
            timer.cancel()
        self._alarms.clear()
        groups, self.groups = self.groups, {}
        self.offsets, self._loaded, self._adopted = {}, {}, {}
        self.records = 0
        self._fail_writes()
        self.under_way.clear()
        for group in groups.values():
            group.die(ErrorCode.not_coordinator)
            if isinstance(group, ClassicGroup):
                self.effects.tell(group)

    def _fail_writes(self) -> None:
        writes, self._writes = self._writes, {}
        for done in writes.values():
            done(ErrorCode.not_coordinator)

    def give_up_on_silence(self, now: float) -> None:
        """A write that has had no receipt for so long will not get one."""
        since = self._log.oldest_write() if self._log is not None else None
        if self._log is not None and since is not None and now - since > RECEIPT_SECONDS:
            self._log.fail(Unavailable(f"a write had no receipt for {RECEIPT_SECONDS:.0f} s"))

    # --- writing

    def fits(self, record: Record) -> bool:
        """Whether a record can be written at all; of a term that is over nothing is."""
        return self._log is None or self._log.fits(record)

    def store(self, records: Sequence[Record], done: Callable[[ErrorCode], None]) -> None:
        """Write records, apply them when they are stored, then tell; or tell that the term is over."""
        if self._log is None:  # the term has ended while its caller was at work
            done(ErrorCode.not_coordinator)
            return
        number = self._write_number
        self._write_number += 1
        self._writes[number] = done
        self.under_way.update(record.key for record in records)
        taken = self._log
        try:
            taken.append(records, partial(self._stored, number, records))
        except PulsarError as error:
            taken.fail(error)
            self._lost(taken, error)
        except BaseException:
            self._writes.pop(number, None)
            self._landed(records)
            raise

    def _stored(self, number: int, records: Sequence[Record]) -> None:
        done = self._writes.pop(number, None)
        if done is None:
            return
        self.records += len(records)
        self._landed(records)
        for key, value in records:
            if isinstance(key, OffsetKey):
                self._apply_offset(key, value)
                if isinstance(value, OffsetValue):
                    metrics.COMMITS.inc()
                    self._around.on_committed(key, value)
                if value is not None and key.group not in self.groups:
                    self.groups[key.group] = self.new_group(key.group)
        done(ErrorCode.none)

    def _landed(self, records: Sequence[Record]) -> None:
        """These are no longer under way."""
        for record in records:
            self.under_way[record.key] -= 1
            if self.under_way[record.key] <= 0:
                del self.under_way[record.key]

    def after_writes(self, done: Callable[[ErrorCode], None]) -> None:
        """Call `done` when all that is under way is stored; now, if nothing is."""
        self.store([], done)

    def _apply_offset(self, key: OffsetKey, value: Value | None) -> None:
        place = (key.topic, key.partition)
        if isinstance(value, OffsetValue):
            self.offsets.setdefault(key.group, {})[place] = value
        elif key.group in self.offsets:
            self.offsets[key.group].pop(place, None)
            if not self.offsets[key.group]:
                del self.offsets[key.group]

    # --- groups

    def check_leading(self) -> None:
        if self.phase is Phase.LOADING:
            raise NotLeading(ErrorCode.coordinator_load_in_progress)
        if self.phase is Phase.WAITING:
            raise NotLeading(ErrorCode.not_coordinator)

    def group(self, group_id: str) -> Group | None:
        self.check_leading()
        return self.groups.get(group_id)

    def remove(self, group: Group) -> None:
        """The group is deleted. Nobody is in it."""
        group.die(ErrorCode.unknown_member_id)
        del self.groups[group.group_id]

    def replace(self, group: Group, records: Sequence[Record]) -> None:
        """Another group of this id takes the place of the one there is, if any; these records say so."""
        self.groups[group.group_id] = group
        if records:
            self.store(records, lambda _: None)
            self.check_leading()  # the write may have ended the term

    def new_group(self, group_id: str) -> ClassicGroup:
        config = self._around.config
        return ClassicGroup(group_id, self.now(), initial_delay=config.initial_rebalance_delay_ms / 1000, max_size=config.max_size)

    def new_consumer_group(self, group_id: str) -> ConsumerGroup:
        config = self._around.config
        times = Times(config.consumer_session_timeout_ms, config.consumer_heartbeat_interval_ms)
        return ConsumerGroup(group_id, self._around.topics, times=times, max_size=config.max_size)

    def handle(self, group: Group, event: Callable[[], object]) -> None:
        """Let something happen to a group, and carry out what it decides."""
        try:
            event()
            self.run(group)
        except Exception:
            # What the group is in memory may not be what it is in the log: it is read again.
            self.restart(f"group {group.group_id} failed")
            raise

    def run(self, group: Group) -> None:
        """Carry out what a group has decided."""
        self.effects.carry_out(group)
        if self.groups.get(group.group_id) is group:
            if group.unused:
                self._forget_unused(group)
            self._wake(group)

    def _forget_unused(self, group: Group) -> None:
        """Nothing of it is stored. Offsets alone are those of a group without members."""
        if group.group_id not in self.offsets:
            del self.groups[group.group_id]
        elif not isinstance(group, ClassicGroup):
            self.groups[group.group_id] = self.new_group(group.group_id)

    def allows(self, direction: str) -> bool:
        return self._around.config.migration in ("bidirectional", direction)

    def _wake(self, group: Group) -> None:
        """See to it that the group is woken when it wants to be, or a little before."""
        at = group.wake_at
        if at is None:
            return
        alarm = self._alarms.get(group.group_id)
        if alarm is not None:
            due, timer = alarm
            if due <= at:
                return
            timer.cancel()
        self._alarms[group.group_id] = at, self._loop.call_at(at, self._tick, group.group_id)

    def _tick(self, group_id: str) -> None:
        self._alarms.pop(group_id, None)
        group = self.groups.get(group_id)
        if group is not None and self._around.may_act():
            try:
                self.handle(group, lambda: self._say(group, group.tick(self.now())))
            except Exception:
                log.exception("group %s failed at what was due", group_id)

    def _say(self, group: Group, reasons: list[str]) -> None:
        for reason in reasons:
            log.info("group %s: %s", group.group_id, reason)
