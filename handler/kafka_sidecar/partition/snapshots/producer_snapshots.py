"""What a partition knows of its producers, kept in Pulsar: a retry is recognised after a restart, whatever was written
since.

fold ── copy ──▶ encoded in a thread ──▶ value "producer-states:PARTITION" ──▶ the next sidecar that opens the partition

The sidecar that appends keeps it: before it begins to append, when a new ledger has begun or much was written, when a
minute has passed, and when it closes the partition. All partitions of a process share a rate of bytes for that. One
that only reads keeps nothing.

The sidecar sends no batch of an idempotent producer before a value is there. The sidecar that opens the partition next
reads on from that value. Without one it would read the window alone, and would not know what was written before the
window. If more was written behind the value than can be read soon, a mark tells whether it has to be read
(`appending_mark`).
"""

from __future__ import annotations

import asyncio
import logging
import math
from functools import partial
from typing import Final, Protocol

from kafka_sidecar.internal_topics.snapshot_places import WRITE_ANEW_MS
from kafka_sidecar.internal_topics.snapshot_topic import SnapshotTopic
from kafka_sidecar.loop.clock import Clock
from kafka_sidecar.loop.waiting import all_done, in_a_thread
from kafka_sidecar.partition.fold.extent import Extent
from kafka_sidecar.partition.fold.fold import Fold
from kafka_sidecar.partition.fold.known_producers import KnownProducers
from kafka_sidecar.partition.snapshots import packed
from kafka_sidecar.partition.snapshots.appending_mark import AppendingMark
from kafka_sidecar.partition.snapshots.snapshot_values import SnapshotValues
from kafka_sidecar.pulsar.entry import Position
from kafka_sidecar.pulsar.errors import NotPermitted, PulsarError, Refused, Unavailable
from kafka_sidecar.telemetry import metrics
from kafka_sidecar.telemetry.limits import RateLimitedLog

log = RateLimitedLog(logging.getLogger(__name__))

# A release that encodes producer states differently must use another key.
_KIND: Final = b"producer-states"
STORE_EVERY_SECONDS: Final = 60.0
# A new snapshot is stored after this many entries. The next sidecar folds as many again in 0.5 s.
ENTRIES_BEHIND: Final = 30_000
# The shortest interval between two snapshots of a partition, in seconds, however much is written.
LEAST_SECONDS: Final = 5.0
BYTES_OF_A_PRODUCER: Final = 100  # More than most producers take in a snapshot


class PartitionForSnapshots(Protocol):
    """The partition, as far as it matters to what is kept of it."""

    @property
    def knows_the_past(self) -> bool: ...
    def learn_again(self) -> None:
        """Another sidecar has kept more than is known here."""
        ...

    def on_snapshot_stored(self) -> None:
        """What keeps appends from being sent may be over."""
        ...


class ProducerSnapshots:
    def __init__(
        self, name: str, fold: Fold, states: SnapshotTopic | None, partition: PartitionForSnapshots, clock: Clock
    ) -> None:
        self._name = name
        self._fold = fold
        self._partition = partition
        self._clock = clock
        self._stored_to: Position | None = None
        self._last_try_at = -math.inf
        self._is_whole = True
        self._values = None if states is None else SnapshotValues(_KIND, name, states)
        self._found: bytes | None = None  # The key of the snapshot from which the replay resumes
        self._is_waiting = False
        # Whether other sidecars' snapshots were looked up since this sidecar stored its first one.
        self._has_looked_again = False
        self._beginning: asyncio.Task[None] | None = None
        self._may_keep = True  # False once Pulsar has refused to store a snapshot of this partition
        # When the snapshot from which other sidecars can resume was stored, and the same of the snapshot that was
        # found, both in this process's time.
        self._of_use_since = self._found_since = -math.inf
        self._times_remade = 0  # `times_remade` of the topic when the snapshot was stored or found
        self._mark = None if states is None else AppendingMark(name, states, clock, fold.memory.expiry_ms)
        # Batches of producers may be sent, since the next sidecar will find the mark and a snapshot to resume from.
        self.has_begun = states is None
        self.keeping: asyncio.Task[None] | None = None  # The latest store, which may still be in flight

    async def look_up(self) -> KnownProducers | None:
        """What is surest of all that anybody has stored. After a PulsarError nothing may be concluded."""
        if self._values is None:
            return None
        # This is read before the lookup, because the topic may be created again during it.
        times_remade = self._values.times_remade
        try:
            found = await self._surest(self._values)
        except (NotPermitted, Refused) as error:
            log.warning(
                "partition %s: the snapshot of its producers can't be read, the log is read: %s", self._name, error
            )
            return None
        except PulsarError as error:
            raise Unavailable(f"the snapshot of its producers can't be read: {error}") from error
        self._found = None if found is None else found[0]
        if found is None:
            return None
        _, known, age = found
        self._found_since, self._times_remade = asyncio.get_running_loop().time() - age, times_remade
        self._stored_to = known.last
        return known

    async def _surest(self, values: SnapshotValues) -> tuple[bytes, KnownProducers, float] | None:
        """With its age in seconds."""
        while (surest := await values.surest()) is not None:
            key, _ = surest
            value = await values.value(key)
            if value is not None:
                try:
                    return key, await in_a_thread(partial(_decoded, value.value)), value.age(self._clock.wall())
                except ValueError as error:
                    metrics.PRODUCERS_NOT_RESTORED.inc()
                    log.warning("partition %s: the snapshot of its producers makes no sense: %s", self._name, error)
            values.pass_over(key, is_gone=False)
        return None

    def pass_over(self, *, is_gone: bool) -> None:
        """Look for another value than the one found. `is_gone`: no sidecar can use that one, so it is deleted once
        another is stored.
        """
        if self._values is not None and self._found is not None:
            self._values.pass_over(self._found, is_gone=is_gone)
            self._stored_to = self._found = None

    def leave(self) -> None:
        """The one found tells nothing that is not known."""
        self._stored_to = self._found = None

    def throw_away(self, why: str) -> None:
        """What was kept does not agree with the log."""
        if self._values is None:
            return
        keys = self._values.pass_over_own()
        if self._found is not None:
            keys.append(self._found)
            self.pass_over(is_gone=False)
        if not keys:
            return
        self._of_use_since, self.has_begun = -math.inf, False
        self._stored_to = None
        metrics.PRODUCERS_NOT_RESTORED.inc()
        log.warning(
            "partition %s: the snapshot of its producers does not agree with the log, and is thrown away: %s",
            self._name,
            why,
        )
        if self.keeping is not None:
            self.keeping.cancel()  # A store in flight could land after the deletion
        self.keeping = asyncio.create_task(self._throw_away(self._values, keys))

    def distrust(self) -> None:
        """The log contradicts itself, or what was kept of it."""
        self.invalidate()
        self.throw_away("the log contradicts itself")

    def invalidate(self) -> None:
        """The fold failed in the middle of an entry: what it knows is not to be kept."""
        self._is_whole = False

    def tick(self, now: float) -> None:
        """Once in some seconds, while this sidecar appends."""
        last, kept = self._fold.last_position, self._stored_to
        if last is None or last == kept or not self._fold.producers.states or now - self._last_try_at < LEAST_SECONDS:
            return
        is_far = kept is None or kept.ledger != last.ledger or last.entry - kept.entry >= ENTRIES_BEHIND
        if is_far or now - self._last_try_at >= STORE_EVERY_SECONDS:
            self._keep(now)

    def stay_ready(self, now: float) -> None:
        """Once in some seconds. A batch of a new producer may be sent at any time: then the mark has to count, and what
        is kept must not have been deleted for its age.
        """
        mark = self._mark
        if mark is None or not self.has_begun or not self._may_keep:
            return
        if not self._is_of_use(now):
            self.has_begun = False
            # The snapshot is stored again before the next batch, or when the partition is closed.
            self._stored_to = None
            if self._is_gone:
                self.begin(now)
        elif mark.is_overdue(now):
            self.has_begun = False
        elif mark.is_due(now) and (self.keeping is None or self.keeping.done()):
            self.keeping = asyncio.create_task(self._put_again(mark))

    async def _put_again(self, mark: AppendingMark) -> None:
        try:
            await mark.put(asyncio.get_running_loop().time())
        except PulsarError as error:
            self._note_failure(error)

    def has_learnt(self) -> None:
        """The fold goes on from what was kept, and so does who opens the partition next."""
        self._of_use_since = self._found_since

    def _is_of_use(self, now: float) -> bool:
        """Whether something is kept that others can go on from, and that nobody has deleted with its topic, or will
        soon for its age.
        """
        return not self._is_gone and now - self._of_use_since < WRITE_ANEW_MS / 1000

    @property
    def _is_gone(self) -> bool:
        """Whether the topic was made again since something was kept."""
        return self._values is not None and self._times_remade != self._values.times_remade

    async def tells_all(self) -> bool:
        """Whether what was kept has all that sidecars have written. May raise PulsarError."""
        if self._mark is None or self._values is None:
            return True
        try:
            return not await self._mark.is_any_put() and await self._values.surest_ends_last()
        except (NotPermitted, Refused) as error:
            log.warning(
                "partition %s: nobody knows whether a sidecar was killed, so all is read: %s", self._name, error
            )
            return False

    def begin(self, now: float) -> None:
        """Store the mark, and a value if none is of use: this sidecar knows the past, and is about to append. It may be
        tried again.
        """
        if self._values is not None and not self.has_begun and (self._beginning is None or self._beginning.done()):
            self._last_try_at = now
            self._stop_waiting()
            self._beginning = self.keeping = asyncio.create_task(self._begin(self._values, self.keeping))

    def close(self, *, is_pending: bool) -> None:
        """The partition has ended, and this sidecar has appended to it. `is_pending`: something may still land, and the
        mark stays.
        """
        if self._values is not None:
            self._stop_waiting()
            mark = None if is_pending else self._mark
            self.keeping = asyncio.create_task(self._store_last(self._values, self.keeping, mark))

    def withdraw(self) -> None:
        """The partition has ended, and this sidecar has sent nothing, so its mark would mislead others."""
        if self._mark is not None and self._beginning is not None:
            self.keeping = asyncio.create_task(self._take_back(self._mark, self.keeping))

    async def _take_back(self, mark: AppendingMark, before: asyncio.Task[None] | None) -> None:
        if before is not None:
            await asyncio.wait({before})  # The store of the mark may still be in flight
        try:
            await self._end_mark(mark)
        except PulsarError as error:
            log.info("partition %s: the mark of a sidecar that has sent nothing stays: %s", self._name, error)

    async def _end_mark(self, mark: AppendingMark) -> None:
        if mark.may_be_put:
            await mark.take_back()
            try:
                await mark.delete_expired()
            except PulsarError as error:
                log.info("partition %s: marks that count no more are not deleted now: %s", self._name, error)

    def _stop_waiting(self) -> None:
        """Cancel a store that waits for the rate: the caller stores a newer value at once."""
        if self._is_waiting and self.keeping is not None:
            self.keeping.cancel()

    def _keep(self, now: float) -> None:
        if self._values is not None and (self.keeping is None or self.keeping.done()):
            self._last_try_at = now
            self.keeping = asyncio.create_task(self._store_in_turn(self._values))

    async def _begin(self, values: SnapshotValues, before: asyncio.Task[None] | None) -> None:
        if before is not None:
            await asyncio.wait({before})
        try:
            if self._is_of_use(asyncio.get_running_loop().time()):
                await self._put_mark()
            else:
                await all_done(self._put_mark(), self._store(values))
                values.rate.spend(self._bytes)
            self.has_begun = self._is_of_use(asyncio.get_running_loop().time())
        except (NotPermitted, Refused) as error:
            log.warning(
                "partition %s: retries are recognised as long as their producers are in its window: %s",
                self._name,
                error,
            )
            self.has_begun, self._may_keep = True, False
        except PulsarError as error:
            log.warning("partition %s: producers wait, for their snapshot can't be stored now: %s", self._name, error)
            return
        self._partition.on_snapshot_stored()
        await self._delete_covered(values)

    async def _store_in_turn(self, values: SnapshotValues) -> None:
        self._is_waiting = True
        try:
            await values.rate.take(self._bytes)
        finally:
            self._is_waiting = False
        try:
            await self._put_mark()
            await self._store(values)
            if not self._has_looked_again:
                await self._learn_of_another_beginning(values)
        except PulsarError as error:
            self._note_failure(error)
        await self._delete_covered(values)

    async def _learn_of_another_beginning(self, values: SnapshotValues) -> None:
        """Two sidecars may begin where nothing was stored, and the earlier value may be stored later. It would count
        for one that opens the partition, however far this sidecar goes on. Its own is stored by then: it may be closed
        before it has learnt.
        """
        is_better = self._knows_enough() and await self._is_known_better(values)
        self._has_looked_again = True
        if is_better:
            self._partition.learn_again()

    async def _store_last(
        self, values: SnapshotValues, before: asyncio.Task[None] | None, mark: AppendingMark | None
    ) -> None:
        if before is not None:
            await asyncio.wait({before})  # Otherwise the earlier store could land after this one
        try:
            if (self._fold.last_position != self._stored_to or self._is_gone) and self._fold.producers.states:
                await self._store(values)
            await self._delete_covered(values)
            is_of_use = self._is_of_use(asyncio.get_running_loop().time())
            if mark is not None and is_of_use and self._fold.last_position == self._stored_to:
                await self._end_mark(mark)
        except PulsarError as error:
            self._note_failure(error)

    async def _delete_covered(self, values: SnapshotValues) -> None:
        try:
            await values.delete_covered()
        except PulsarError as error:  # A snapshot that is left over costs the next sidecar only a moment
            log.info("partition %s: an earlier snapshot of its producers is not deleted now: %s", self._name, error)

    async def _put_mark(self) -> None:
        if self._mark is not None:
            await self._mark.put(asyncio.get_running_loop().time())

    def _note_failure(self, error: PulsarError) -> None:
        log.warning("partition %s: the snapshot of its producers is not stored now: %s", self._name, error)

    @property
    def _bytes(self) -> int:
        return BYTES_OF_A_PRODUCER * (1 + len(self._fold.producers))

    async def _store(self, values: SnapshotValues) -> None:
        """Store what the fold knows, unless it has to learn more first. Raises PulsarError."""
        if self._knows_enough() and self._stored_to is None and await self._is_known_better(values):
            self._partition.learn_again()
            return
        if not self._knows_enough():  # The fold may have begun again during the lookup
            return
        known, now, times_remade = KnownProducers.of(self._fold), asyncio.get_running_loop().time(), values.times_remade
        await values.store(known.extent, await in_a_thread(lambda: packed.pack(known.encode())))
        self._stored_to = known.last
        self._of_use_since, self._times_remade = now, times_remade

    def _knows_enough(self) -> bool:
        return self._is_whole and self._partition.knows_the_past

    async def _is_known_better(self, values: SnapshotValues) -> bool:
        """Another sidecar may have kept what it knows since this one has looked: of an earlier part, and this fold has
        come as far.
        """
        if self._fold.has_all:
            return False
        surest, began, last = await values.surest(), self._fold.replayed_from, self._fold.last_position
        if surest is None or began is None or last is None or not self._knows_enough():
            return False
        return surest[1].last <= last and surest[1].began_earlier(Extent(began, last))

    async def _throw_away(self, values: SnapshotValues, keys: list[bytes]) -> None:
        try:
            await values.delete(keys)
        except PulsarError as error:
            self._note_failure(error)


def _decoded(value: bytes) -> KnownProducers:
    return KnownProducers.decode(packed.unpack(value))
