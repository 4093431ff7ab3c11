"""What a partition's fold knows, kept in Pulsar where there are transactions: who opens the partition next goes on from there."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from handler.clock import Clock
from handler.coordination.kept_states import KeptStates
from handler.partition import packed
from handler.partition.fold import kept
from handler.partition.fold.fold import Fold
from handler.partition.fold.transactions import TransactionTable
from handler.pulsar.entry import LogStats, Position
from handler.tasks import in_a_thread
from handler.telemetry.limits import RateLimitedLog

log = RateLimitedLog(logging.getLogger(__name__))

# So many offsets may have to be folded again: a fraction of a second.
KEPT_ANEW_AFTER: Final = 10_000
# Every sidecar that has the partition open keeps its fold.
KEPT_SECONDS: Final = 60.0
_KEY: Final = b"fold:"


class KeptFold:
    def __init__(self, name: str, fold: Fold, transactions: TransactionTable, states: KeptStates | None, clock: Clock) -> None:
        self._name = name
        self._fold = fold
        self._transactions = transactions
        self._states = states
        self._clock = clock
        self._kept_to = 0
        self._is_restored = False
        self._is_whole = True
        self._kept_at = -KEPT_SECONDS
        self._keeping: asyncio.Task[None] | None = None

    async def restore(self, stats: LogStats, transactions_behind: Position) -> bool:
        """Give the fold what was kept of it. False where nothing was, it is of another log, or knows of later transactions alone."""
        found = None if self._states is None else await self._states.find(self._key)
        if found is None:
            return False
        try:
            stored = await in_a_thread(lambda: kept.decode(packed.unpack(found.value)))
        except ValueError as error:
            log.warning("partition %s: what was kept of its fold makes no sense, the log is read: %s", self._name, error)
            return False
        known_from = stored.transactions.known_from
        if not stats.may_hold(stored.position) or known_from is None or known_from > transactions_behind:
            return False
        kept.restore(stored, self._fold, self._transactions)
        self._is_restored = True
        self._kept_to = -KEPT_ANEW_AFTER if found.is_old(self._clock.wall()) else self._fold.next_offset
        return True

    def distrust(self) -> None:
        """What was kept does not agree with the log."""
        if self._is_restored and self._states is not None:
            log.warning("partition %s: what was kept of its fold does not agree with the log, and is thrown away", self._name)
            if self._keeping is not None:
                self._keeping.cancel()  # it would be kept behind this
            self._keeping = asyncio.create_task(self._throw_away(self._states))

    async def _throw_away(self, states: KeptStates) -> None:
        await states.keep(self._key, b"")

    def mar(self) -> None:
        """The fold failed in the middle of an entry: what it knows is not to be kept."""
        self._is_whole = False

    def tick(self, now: float) -> None:
        """Once in some seconds."""
        if self._fold.next_offset - self._kept_to >= KEPT_ANEW_AFTER and now - self._kept_at >= KEPT_SECONDS:
            self._kept_at = now
            self._keep()

    def close(self) -> None:
        """The partition has ended, maybe before it was open: it took too long, and goes on from here then."""
        if self._fold.next_offset > self._kept_to:
            self._keep()

    @property
    def is_for_clients(self) -> bool:
        """Whether this process serves clients. Tools that look at a log keep nothing, and announce nothing."""
        return self._states is not None

    @property
    def keeping(self) -> asyncio.Task[None] | None:
        """What is on its way to Pulsar, if anything is."""
        return self._keeping

    def _keep(self) -> None:
        fold = self._fold
        if self._states is None or not self._is_whole or fold.last_position is None or self._transactions.known_from is None:
            return
        if self._keeping is None or self._keeping.done():
            self._kept_to = fold.next_offset
            self._keeping = asyncio.create_task(self._store(self._states, kept.snapshot(fold, self._transactions)))

    async def _store(self, states: KeptStates, snapshot: kept.Snapshot) -> None:
        await states.keep(self._key, await in_a_thread(lambda: packed.pack(snapshot.encode())))

    @property
    def _key(self) -> bytes:
        return _KEY + self._name.encode()
