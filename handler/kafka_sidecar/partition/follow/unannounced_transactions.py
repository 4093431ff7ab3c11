"""Transactions that nobody has announced: the first reader does it.

Those of others than this cluster's sidecars never are (KoP, replication). A sidecar announces its own before it writes
them. Its record may be missing nevertheless: another fleet has another `groups.namespace`, or the internal topics are
lost, or were restored from a copy.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from kafka_sidecar.partition.fold.fold import BEFORE_ALL, Fold
from kafka_sidecar.partition.fold.transactions import TransactionTable
from kafka_sidecar.partition.log.entries import Content
from kafka_sidecar.partition.log.port import EntryLog
from kafka_sidecar.pulsar.entry import Position
from kafka_sidecar.telemetry.limits import RateLimitedLog
from kafka_sidecar.wire.records import CONTROL, TRANSACTIONAL

log = RateLimitedLog(logging.getLogger(__name__))

# The attribute bits of transactional batches and of markers.
_OF_TRANSACTIONS: Final = TRANSACTIONAL | CONTROL
_BATCHES: Final = (TRANSACTIONAL,)
_ANY: Final = (TRANSACTIONAL, CONTROL, TRANSACTIONAL | CONTROL)
_announcing: set[asyncio.Task[None]] = set()


class UnannouncedTransactions:
    def __init__(self, log_: EntryLog, fold: Fold, transactions: TransactionTable) -> None:
        self._log = log_
        self._fold = fold
        self._transactions = transactions

    def begin_in(self, content: Content, position: Position, none_up_to: Position | None) -> bool:
        """Whether an entry has a part of a transaction that nobody has announced. `none_up_to`: the last entry when the
        fold began, if no transaction had been announced by then.
        """
        known_from = self._transactions.known_from
        if content.is_foreign:
            is_before_all_known = known_from is None or position <= known_from
        else:
            begin = none_up_to if known_from is None else known_from
            is_before_all_known = begin is not None and position <= begin
        # A sidecar does not announce a transaction that ends before it has written a batch to this partition: then the
        # marker stands alone.
        parts = _ANY if content.is_foreign else _BATCHES
        return is_before_all_known and any(
            [header.attributes & _OF_TRANSACTIONS in parts for header, _ in content.batches]
        )

    def announce(self) -> bool:
        """Store that the log has transactions. False where more of them may stand before what is folded: it has to be
        folded whole.

        What the fold has learnt of producers says nothing of transactions, nor does what was kept by who knew of later
        ones alone.
        """
        is_whole = (
            self._fold.replayed_from is None and not self._fold.has_learnt and self._transactions.known_from is None
        )
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
