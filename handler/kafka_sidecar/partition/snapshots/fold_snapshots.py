"""What a partition's fold knows, stored in Pulsar where there are transactions: the next sidecar that opens it goes on
from there.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final, NamedTuple

from kafka_sidecar.internal_topics.snapshot_places import WRITE_ANEW_MS
from kafka_sidecar.internal_topics.snapshot_topic import SnapshotTopic
from kafka_sidecar.loop.clock import Clock
from kafka_sidecar.loop.waiting import in_a_thread
from kafka_sidecar.partition.fold.extent import Extent
from kafka_sidecar.partition.fold.fold import BEFORE_ALL, Fold
from kafka_sidecar.partition.fold.snapshot import DecodedSnapshot, Snapshot, decode, restore, snapshot_of
from kafka_sidecar.partition.fold.transactions import TransactionTable
from kafka_sidecar.partition.log.port import EntryLog
from kafka_sidecar.partition.snapshots import packed
from kafka_sidecar.partition.snapshots.gap_check import GapCheck
from kafka_sidecar.partition.snapshots.snapshot_values import SnapshotValues
from kafka_sidecar.pulsar.entry import Position
from kafka_sidecar.pulsar.errors import NotPermitted, PulsarError, Refused, Unavailable
from kafka_sidecar.telemetry.limits import RateLimitedLog

log = RateLimitedLog(logging.getLogger(__name__))

# After this many new offsets the fold is stored again. The next sidecar folds about as many again, in a fraction of a
# second.
STORED_AGAIN_AFTER: Final = 10_000
# Every sidecar that has the partition open stores snapshots of its fold, so each does at most once in 60 s.
STORE_EVERY_SECONDS: Final = 60.0
_KIND: Final = b"fold"
# A fold that knows all announced transactions is stored with this position in place of its begin. The exact begin does
# not matter: no transaction stands before the announced position.
ANNOUNCED: Final = Position(0, 0)


class _Known(NamedTuple):
    """What is about to be kept, as it was known at one moment."""

    snapshot: Snapshot
    hidden: int  # How often batches had been hidden when this snapshot was taken
    taken_over: frozenset[bytes]  # Keys of other sidecars' snapshots whose knowledge is included


class FoldSnapshots:
    def __init__(
        self,
        name: str,
        fold: Fold,
        transactions: TransactionTable,
        states: SnapshotTopic | None,
        gaps: GapCheck,
        clock: Clock,
        on_hidden: Callable[[], None],
    ) -> None:
        self._name = name
        self._fold = fold
        self._transactions = transactions
        self._values = None if states is None else SnapshotValues(_KIND, name, states)
        self._found: bytes | None = None  # The key of the snapshot that was found last
        self._gaps = gaps
        self._clock = clock
        # Up to this position nobody had announced transactions when the fold began.
        self.none_up_to: Position | None = None
        self._stored_to = 0
        self._stored_in: int | None = None  # The ledger in which the last stored snapshot ends
        self._restored: Position | None = None  # The position up to which the restored snapshot goes
        self._is_whole = True
        self._on_hidden = on_hidden
        self._hidden_noted = 0  # How often batches were hidden that the log alone does not hide
        self._hidden_stored = 0  # How many of these hidings the stored snapshot includes
        # Keys of other sidecars' snapshots that tell more than the log, and that this fold has taken over.
        self._taken_over: set[bytes] = set()
        self._last_try_at = -STORE_EVERY_SECONDS
        self._stored_since = -math.inf  # When the current snapshot was stored, in this process's time
        self._times_remade = 0  # `times_remade` of the topic when the snapshot was stored
        self._keeping: asyncio.Task[None] | None = None

    async def restore(
        self, log_: EntryLog, transactions_behind: Position, may_have_lost: Callable[[], Awaitable[bool]]
    ) -> bool:
        """Give the fold what was kept of it. False where nothing was, it is of another log, or others' transactions may
        stand before it.

        The sidecar that kept it knows of all that sidecars have announced, for it looked at what was announced when it
        began. Transactions of others are found later, and are announced as BEFORE_ALL.

        Where retention has taken what it tells of, nothing may be concluded while it can't be read. Else it saves time
        alone.
        """
        useless: list[DecodedSnapshot] = []
        times_remade = (
            0 if self._values is None else self._values.times_remade
        )  # This is read before the lookup, because the topic may be created again during it
        try:
            while (found := await self._find(from_the_start=transactions_behind == BEFORE_ALL)) is not None:
                stored, since = found
                # The stats are read after the lookup, because the ledger of the snapshot may have begun a moment ago.
                stats = await log_.stats()
                if stats.may_hold(stored.position) and _knows_all(stored, transactions_behind):
                    self._go_on_from(stored, since, times_remade)
                    # Sidecars before 0.3 stored the position where they began to write transactions themselves, even if
                    # others had announced an earlier one.
                    self._transactions.known_from = min(
                        self._transactions.known_from or transactions_behind, transactions_behind
                    )
                    break
                useless.append(stored)
                self._replace_found()
        except Unavailable:
            if await may_have_lost():
                raise
        await self._recall(log_, useless)
        await self._recall_stored_by_others(log_, may_have_lost)
        return self._restored is not None

    async def recall_ended(self, log_: EntryLog) -> None:
        """Of a log that holds nothing, which transactions have ended. May raise PulsarError."""
        useless: list[DecodedSnapshot] = []
        while (found := await self._find(from_the_start=False)) is not None:
            useless.append(found[0])
            self._replace_found()
        await self._recall(log_, useless)

    async def _recall(self, log_: EntryLog, useless: Sequence[DecodedSnapshot]) -> None:
        """Who knows less than has to be known may yet have seen what retention has taken."""
        if useless:
            stats = await log_.stats()
            for one in useless:
                if stats.first is None or one.position < stats.first:
                    self._transactions.recall_ended(one.transactions.ended)
                # A snapshot at a position that is not in this log belongs to another log.
                elif stats.may_hold(one.position):
                    self._transactions.recall_at(one.fold.next_offset, one.transactions)

    def _go_on_from(self, stored: DecodedSnapshot, since: float, times_remade: int) -> None:
        restore(stored, self._fold, self._transactions)
        self._restored = stored.position
        self._stored_to, self._stored_in = self._fold.next_offset, stored.position.ledger
        self._stored_since, self._times_remade = since, times_remade

    def _must_be_stored_again(self) -> bool:
        """Whether something was hidden since it was kept, its topic was made again, or it is so old that others may
        delete it.
        """
        if self._has_hidden:
            return True
        if self._stored_in is None or self._values is None:
            return False
        is_gone = self._times_remade != self._values.times_remade
        return is_gone or asyncio.get_running_loop().time() - self._stored_since >= WRITE_ANEW_MS / 1000

    @property
    def _has_hidden(self) -> bool:
        """Whether it has hidden something since it was kept."""
        return self._hidden_stored < self._hidden_noted

    async def _stored_by_others(
        self, values: SnapshotValues
    ) -> tuple[list[tuple[bytes, DecodedSnapshot]], PulsarError | None]:
        """What others have kept that tells more than the log, and is not known here; and why something of it could not
        be read now.
        """
        told, failure = [], None
        for key in values.of_others_that_tell_more():
            if key in self._taken_over:
                continue
            try:
                found = await self._read(values, key)
            except PulsarError as error:
                failure = error
                continue
            if found is None:  # The snapshot was deleted or can't be decoded, so it tells nothing
                self._taken_over.add(key)
            else:
                told.append((key, found[1]))
        if failure is not None:
            log.warning("partition %s: what another sidecar has hidden can't be read now: %s", self._name, failure)
        return told, failure

    async def _recall_stored_by_others(self, log_: EntryLog, may_have_lost: Callable[[], Awaitable[bool]]) -> None:
        """What can't be read is left for later. It matters where retention has taken what it tells of."""
        if self._values is None:
            return
        if self._restored is not None and self._found is not None:
            self._taken_over.add(self._found)
        told, failure = await self._stored_by_others(self._values)
        for key, one in told:
            if self._restored is None or one.fold.next_offset > self._fold.next_offset:
                await self._recall(log_, [one])
            elif self._transactions.hide_what_is_hidden(one.transactions, self._fold.next_offset):
                self.note_hidden()
            self._taken_over.add(key)
        if failure is not None and await may_have_lost():
            raise Unavailable(f"what another sidecar has hidden can't be read: {failure}") from failure

    async def _take_over(self, values: SnapshotValues) -> None:
        """Hide what other sidecars have hidden, as far as this one has come."""
        told, _ = await self._stored_by_others(values)
        for key, one in told:
            if one.fold.next_offset <= self._fold.next_offset:
                if self._transactions.hide_what_is_hidden(one.transactions, self._fold.next_offset):
                    self._on_hidden()
                self._taken_over.add(key)

    def _replace_found(self) -> None:
        """Delete what was found when another is stored, and let it keep nobody from storing one."""
        if self._values is not None and self._found is not None:
            self._values.pass_over(self._found, is_gone=True)

    def begins_without_transactions(self, up_to: Position) -> None:
        """Nobody has announced one that stands there or before: those that come are all that there are."""
        self.none_up_to = up_to

    async def _find(self, *, from_the_start: bool) -> tuple[DecodedSnapshot, float] | None:
        """The value that ends last, and since when it is there. `from_the_start`: of those that began there, if there
        are any.

        Raises Unavailable where nobody knows.
        """
        if self._values is None:
            return None
        try:
            return await self._read_best(self._values, from_the_start=from_the_start)
        except (NotPermitted, Refused) as error:
            log.warning(
                "partition %s: the snapshot of its transactions can't be read, the log is read: %s", self._name, error
            )
            # Snapshots that can't be read may tell of entries that retention has removed, so this fold must not store
            # one over them.
            self.invalidate()
            return None
        except PulsarError as error:
            raise Unavailable(f"the snapshot of its transactions can't be read: {error}") from error

    async def _read_best(self, values: SnapshotValues, *, from_the_start: bool) -> tuple[DecodedSnapshot, float] | None:
        """Of what this release has kept, and 0.2: a fleet may have both, or have gone back to that for a while."""
        found = None
        while found is None and (best := await _best(values, from_the_start=from_the_start)) is not None:
            found = await self._read(values, best[0])
            if found is None:
                values.pass_over(best[0], is_gone=False)
        of_0_2 = None if values.is_passed_over(values.key_of_0_2) else await self._read(values, values.key_of_0_2)
        if of_0_2 is not None and (found is None or found[1].position < of_0_2[1].position):
            found = of_0_2
        if found is None:
            return None
        self._found, stored, since = found
        return stored, since

    async def _read(self, values: SnapshotValues, key: bytes) -> tuple[bytes, DecodedSnapshot, float] | None:
        found = await values.value(key)
        if found is not None:
            try:
                stored = await in_a_thread(partial(_decoded, found.value))
            except ValueError as error:
                log.warning("partition %s: the snapshot of its fold makes no sense: %s", self._name, error)
            else:
                return key, stored, asyncio.get_running_loop().time() - found.age(self._clock.wall())
        return None

    def distrust(self) -> None:
        """What was kept does not agree with the log."""
        if self._restored is not None and self._values is not None and self._found is not None:
            log.warning(
                "partition %s: the snapshot of its fold does not agree with the log, and is thrown away", self._name
            )
            if self._keeping is not None:
                self._keeping.cancel()  # A store in flight could land after the deletion
            keys = [*self._values.pass_over_own(), self._found]
            self._values.pass_over(self._found, is_gone=False)
            self._keeping = asyncio.create_task(self._throw_away(self._values, keys))

    async def _throw_away(self, values: SnapshotValues, keys: list[bytes]) -> None:
        try:
            await values.delete(keys)
        except PulsarError as error:
            log.warning("partition %s: the snapshot of its fold can't be thrown away now: %s", self._name, error)

    def note_hidden(self) -> None:
        """Batches are hidden from now on by what a coordinator has said. The log does not tell it."""
        self._hidden_noted += 1

    def invalidate(self) -> None:
        """The fold failed in the middle of an entry: what it knows is not to be kept."""
        self._is_whole = False

    def tick(self, now: float) -> None:
        """Once in some seconds. In each ledger something is kept: retention takes it with the last entry that is known
        there.
        """
        if self._transactions.to_recall:
            self._transactions.recall_up_to(self._fold.next_offset)
        last, new = self._fold.last_position, self._fold.next_offset - self._stored_to
        is_due = (
            new >= STORED_AGAIN_AFTER
            or (new > 0 and last is not None and last.ledger != self._stored_in)
            or self._must_be_stored_again()
        )
        if is_due and now - self._last_try_at >= STORE_EVERY_SECONDS:
            self._last_try_at = now
            self._keep()

    def close(self) -> None:
        """The partition has ended, maybe before it was open: it took too long, and goes on from here then."""
        if self._fold.next_offset > self._stored_to or self._must_be_stored_again():
            self._keep(is_last=True)

    @property
    def is_for_clients(self) -> bool:
        """Whether this process serves clients. Tools that look at a log keep nothing, and announce nothing."""
        return self._values is not None

    @property
    def keeping(self) -> asyncio.Task[None] | None:
        """What is on its way to Pulsar, if anything is."""
        return self._keeping

    def _keep(self, *, is_last: bool = False) -> None:
        fold, transactions = self._fold, self._transactions
        transactions.recall_up_to(fold.next_offset)
        if transactions.known_from is None and (transactions.open or transactions.ended):
            transactions.known_from = self.none_up_to  # Others have begun these transactions, behind that position
        is_certain = self._is_whole and not self._gaps.is_in_doubt and not transactions.to_recall
        if self._values is None or not is_certain or fold.last_position is None or transactions.known_from is None:
            return
        if is_last or self._keeping is None or self._keeping.done():
            known = _Known(snapshot_of(fold, transactions), self._hidden_noted, frozenset(self._taken_over))
            self._keeping = asyncio.create_task(self._store(self._values, known, self._keeping))

    async def _store(self, values: SnapshotValues, known: _Known, before: asyncio.Task[None] | None) -> None:
        """Unless another sidecar has kept what it knew further on: this one has read less, and may close later."""
        snapshot = known.snapshot
        if before is not None:
            await asyncio.wait({before})  # Otherwise the earlier store could land after this one
            if snapshot.fold.next_offset <= self._stored_to and not self._must_be_stored_again():
                return
        try:
            is_from_the_start = _is_from_the_start(snapshot.transactions)
            extent = Extent(None if is_from_the_start else ANNOUNCED, snapshot.position)
            times_remade = values.times_remade
            if replaces := self._must_be_stored_again():
                self._replace_found()
            best = await values.ends_last(from_the_start=is_from_the_start)
            is_best = best is None or not best[1].covers(extent) or (replaces and best[1].last == extent.last)
            # A sidecar that has folded further may not know the hidden batches, so its snapshot does not replace this
            # one.
            if is_best or self._has_hidden:
                data = await in_a_thread(lambda: packed.pack(snapshot.encode()))
                await values.store(extent, data, tells_more=bool(snapshot.transactions.undone))
                self._stored_since = asyncio.get_running_loop().time()
                self._hidden_stored = max(self._hidden_stored, known.hidden)
            self._stored_to, self._stored_in, self._times_remade = (
                snapshot.fold.next_offset,
                snapshot.position.ledger,
                times_remade,
            )
            await self._delete_covered(values, known.taken_over)
        except PulsarError as error:
            log.warning("partition %s: the snapshot of its transactions is not stored now: %s", self._name, error)

    async def _delete_covered(self, values: SnapshotValues, taken_over: frozenset[bytes]) -> None:
        """Where others' values tell more than the log, only those that this sidecar has stored too: they are
        `taken_over`.
        """
        await self._take_over(values)
        others = values.of_others_that_tell_more()
        await values.delete_covered(spared=[key for key in others if key not in taken_over])
        self._taken_over.intersection_update(others)


async def _best(values: SnapshotValues, *, from_the_start: bool) -> tuple[bytes, Extent] | None:
    return (await values.ends_last(from_the_start=True) if from_the_start else None) or await values.ends_last()


def _knows_all(stored: DecodedSnapshot, transactions_behind: Position) -> bool:
    known_from = stored.transactions.known_from
    return known_from is not None and (transactions_behind != BEFORE_ALL or _is_from_the_start(stored.transactions))


def _is_from_the_start(transactions: TransactionTable) -> bool:
    """Also where they were announced when the log was empty."""
    return transactions.known_from is not None and transactions.known_from.ledger < 0


def _decoded(value: bytes) -> DecodedSnapshot:
    return decode(packed.unpack(value))
