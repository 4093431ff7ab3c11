"""What is known of transactions, where a fold begins with an entry and offsets are missing before it: retention may
have taken markers that stood there, unread. A gap between two entries is asked about before anything behind it is
folded (`tail_gap`).

    gap ──▶ in doubt: nothing is kept ──▶ is what stood before it still there?
                                            │ yes: markers of Pulsar's own made the gap ──▶ go on
                                            ▼ no
                                          the partition ends, and is opened from what others have kept
"""

from __future__ import annotations

from typing import Protocol

from kafka_sidecar.errors import SidecarError
from kafka_sidecar.loop.supervised import SupervisedTask
from kafka_sidecar.partition.fold.fold import BEFORE_ALL
from kafka_sidecar.partition.fold.transactions import TransactionTable
from kafka_sidecar.partition.log.port import EntryLog
from kafka_sidecar.pulsar.entry import Position
from kafka_sidecar.pulsar.errors import Unavailable


class PartitionWithGaps(Protocol):
    def end_for(self, error: SidecarError) -> None:
        """It serves no more; the next request opens it again."""
        ...


class GapCheck:
    def __init__(self, name: str, log_: EntryLog, transactions: TransactionTable, partition: PartitionWithGaps) -> None:
        self._name = name
        self._log = log_
        self._transactions = transactions
        self._partition = partition
        self._before: Position | None = None  # The last entry before the first gap that is being checked
        self._gaps = 0  # The number of gaps found so far
        self._task = SupervisedTask("gap_check", name, self._ask, on_final=partition.end_for)

    @property
    def is_in_doubt(self) -> bool:
        return self._before is not None

    def begin(self, before: Position | None) -> None:
        """Offsets are missing behind an entry, or at the beginning of a log that had none."""
        self._gaps += 1
        if self._before is None:
            self._before = before or BEFORE_ALL
            self._task.start()

    def stop(self) -> None:
        self._task.stop()

    async def _ask(self) -> None:
        gaps = -1
        while gaps != self._gaps:  # A gap that was found during a check is not covered by its result
            gaps = self._gaps
            if await self._is_lost():
                self._partition.end_for(
                    Unavailable(f"{self._name} lost entries behind {self._before} before they were read")
                )
                return
        self._before = None

    async def _is_lost(self) -> bool:
        """Whether the log has transactions, and what is known of them may be old."""
        before = self._before
        assert before is not None
        first = (await self._log.stats()).first
        if first is not None and first <= before:
            return False
        return self._transactions.known_from is not None or await self._log.transactions_from() is not None
