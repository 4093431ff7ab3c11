"""What a partition's fold knows, kept in Pulsar where there are transactions: who opens the partition next goes on from there."""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from typing import Final

from handler.coordination.kept_states import KeptStates
from handler.partition.fold import kept
from handler.partition.fold.fold import Fold
from handler.partition.fold.transactions import TransactionTable
from handler.pulsar.entry import LogStats
from handler.telemetry.limits import RateLimitedLog

log = RateLimitedLog(logging.getLogger(__name__))

# So many offsets may have to be folded again: a fraction of a second.
KEPT_ANEW_AFTER: Final = 10_000
_KEY: Final = b"fold:"


class KeptFold:
    def __init__(self, name: str, fold: Fold, transactions: TransactionTable, states: KeptStates | None) -> None:
        self._name = name
        self._fold = fold
        self._transactions = transactions
        self._states = states
        self._kept_to = 0
        self._is_restored = False
        self._keeping: asyncio.Task[None] | None = None

    async def restore(self, stats: LogStats) -> bool:
        """Give the fold what was kept of it. False where nothing was, or it is of another log."""
        found = None if self._states is None else await self._states.find(self._key)
        if found is None:
            return False
        try:
            position = kept.position_of(found.value)
            # A ledger's number is never used again: one that is not there is of a topic that was deleted, or all of it has gone.
            # The last one may have grown since it was looked at.
            known = {info.ledger: info.entries for info in stats.ledgers[:-1]}
            known.update({info.ledger: sys.maxsize for info in stats.ledgers[-1:]})
            if position.entry >= known.get(position.ledger, 0):
                return False
            kept.restore(found.value, self._fold, self._transactions)
        except ValueError as error:
            log.warning("partition %s: what was kept of its fold makes no sense, the log is read: %s", self._name, error)
            return False
        self._is_restored = True
        self._kept_to = -KEPT_ANEW_AFTER if found.is_old(time.time_ns() // 1_000_000) else self._fold.next_offset
        return True

    def distrust(self) -> None:
        """What was kept does not agree with the log."""
        if self._is_restored and self._states is not None:
            log.warning("partition %s: what was kept of its fold does not agree with the log, and is thrown away", self._name)
            self._keeping = asyncio.create_task(self._states.keep(self._key, b""))

    def tick(self) -> None:
        """Once in some seconds."""
        if self._fold.next_offset - self._kept_to >= KEPT_ANEW_AFTER:
            self._keep()

    def close(self) -> None:
        """The partition has ended, maybe before it was open: it took too long, and goes on from here then."""
        if self._fold.next_offset > self._kept_to:
            self._keep()

    def _keep(self) -> None:
        fold = self._fold
        if self._states is None or fold.last_position is None or not self._transactions.had_any:
            return
        if self._keeping is None or self._keeping.done():
            self._kept_to = fold.next_offset
            self._keeping = asyncio.create_task(self._states.keep(self._key, kept.encode(fold, self._transactions)))

    @property
    def _key(self) -> bytes:
        return _KEY + self._name.encode()
