"""Transactions that others than this cluster's sidecars wrote (KoP, replication) were announced by nobody: who reads them first does it."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from handler.partition.fold.fold import BEFORE_ALL, Fold
from handler.partition.fold.transactions import TransactionTable
from handler.partition.log.entries import Content
from handler.partition.log.port import EntryLog
from handler.pulsar.entry import Position
from handler.telemetry.limits import RateLimitedLog
from handler.wire.records import CONTROL, TRANSACTIONAL

log = RateLimitedLog(logging.getLogger(__name__))

# Of batches in transactions, and of markers.
_OF_TRANSACTIONS: Final = TRANSACTIONAL | CONTROL
_announcing: set[asyncio.Task[None]] = set()


class ForeignTransactions:
    def __init__(self, log_: EntryLog, fold: Fold, transactions: TransactionTable) -> None:
        self._log = log_
        self._fold = fold
        self._transactions = transactions

    def begin_in(self, content: Content, position: Position) -> bool:
        """Whether an entry has a part of a transaction that nobody has announced."""
        if not content.is_foreign or not any([header.attributes & _OF_TRANSACTIONS for header, _ in content.batches]):
            return False
        known_from = self._transactions.known_from
        return known_from is None or known_from >= position

    def announce(self) -> bool:
        """Store that the log has transactions. False where more of them may stand before what is folded: it has to be folded whole.

        What the fold has learnt of producers says nothing of transactions, nor does what was kept by who knew of later ones alone.
        """
        is_whole = self._fold.replayed_from is None and not self._fold.has_learnt and self._transactions.known_from is None
        if is_whole:
            self._transactions.known_from = BEFORE_ALL
        task = asyncio.get_running_loop().create_task(self._log.begin_transactions(BEFORE_ALL))
        _announcing.add(task)
        task.add_done_callback(_on_announced)
        return is_whole


def _on_announced(task: asyncio.Task[None]) -> None:
    """Where it has failed, who opens the partition next finds the same, and tries again."""
    _announcing.discard(task)
    if not task.cancelled() and (failure := task.exception()) is not None:
        log.warning("that a partition has transactions can't be stored: %s", failure)
