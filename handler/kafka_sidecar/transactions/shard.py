"""A shard: the transactional ids of one partition of `__transaction_state`, while this process leads it (see
`coordination.term`).

An id changes when its record is stored. Until then it is `changing`, and the machine lets nothing else happen to it.
That its transaction is complete is the exception: it counts when the markers are written, and the record of what
follows is never stored without that of it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from dataclasses import dataclass

from kafka_sidecar.coordination.term import Term, TermState
from kafka_sidecar.coordination.term_log import TermLog
from kafka_sidecar.loop.backoff import Backoff
from kafka_sidecar.loop.supervised import SupervisedTask
from kafka_sidecar.loop.waiting import within
from kafka_sidecar.telemetry import metrics
from kafka_sidecar.transactions import machine
from kafka_sidecar.transactions.markers import Markers
from kafka_sidecar.transactions.metadata import AT_REST, COMPLETED, PREPARED, TransactionMetadata
from kafka_sidecar.transactions.records import TransactionRecord

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ShardContext:
    """The things that all shards of a coordinator share."""

    markers: Markers
    wall_clock: Callable[[], int]  # returns milliseconds since the Unix epoch


class Shard(TermState[TransactionRecord]):
    def __init__(self, name: str, open_log: Callable[[], TermLog[TransactionRecord]], context: ShardContext) -> None:
        self.name = name
        self.term = Term(name, open_log, self)
        self.transactions: dict[str, TransactionMetadata] = {}
        self.unfinished: set[str] = set()  # transactional ids with a transaction that is not complete
        self._by_producer: dict[int, str] = {}  # current or previous producer id → transactional id
        self.changing: set[str] = set()
        self._context = context
        self._completing: dict[str, SupervisedTask] = {}
        self._waiting: dict[str, asyncio.Event] = {}  # transactional id → event that its transaction is complete

    # --- from the term

    def replay(self, record: TransactionRecord, legacy: bool) -> None:
        self._apply(record)

    async def on_loaded(self) -> None: ...

    async def on_leading(self, seconds: float) -> None:
        """The leader completes what was prepared: its producer knows, or may ask again."""
        log.info("coordinating %s: %d transactional ids, read in %.1f s", self.name, len(self.transactions), seconds)
        for metadata in list(self.transactions.values()):
            if metadata.state in PREPARED:
                self._complete(metadata)

    def on_stored(self, record: TransactionRecord) -> None:
        self._apply(record)
        metadata = record.metadata
        if metadata is not None and metadata.state in PREPARED:
            self._complete(metadata)
        elif metadata is not None and metadata.state in COMPLETED:
            metrics.TRANSACTIONS.labels("committed" if metadata.is_committed else "aborted").inc()

    @property
    def live_record_count(self) -> int:
        return len(self.transactions)

    def on_unloaded(self) -> None:
        completing, self._completing = self._completing, {}
        for task in completing.values():
            task.stop()
        for transactional_id in list(self._waiting):
            self._tell(transactional_id)
        self.transactions, self.unfinished, self.changing, self._by_producer = {}, set(), set(), {}

    def _apply(self, record: TransactionRecord) -> None:
        transactional_id, metadata = record
        before = self.transactions.get(transactional_id)
        if before is None or metadata is None or before.producer_ids != metadata.producer_ids:
            for producer_id in () if before is None else before.producer_ids:
                self._by_producer.pop(producer_id, None)
            self._by_producer.update(dict.fromkeys(() if metadata is None else metadata.producer_ids, transactional_id))
        if metadata is None:
            self.transactions.pop(transactional_id, None)
        else:
            self.transactions[transactional_id] = metadata
        if metadata is None or metadata.state in AT_REST:
            self.unfinished.discard(transactional_id)
        else:
            self.unfinished.add(transactional_id)

    def of_producer(self, producer_id: int) -> TransactionMetadata | None:
        return self.transactions.get(self._by_producer.get(producer_id, ""))

    # --- changes

    async def change(self, transactional_id: str, metadata: TransactionMetadata | None) -> None:
        """Store what an id becomes; None deletes it. CoordinatorError if the term ends before, or has not begun."""
        self.term.check_leading()
        before = self.transactions.get(transactional_id)
        assert before is None or metadata is None or before.state in machine.FROM[metadata.state], (
            f"{before.state} to {metadata.state}"
        )
        changing = self.changing
        changing.add(transactional_id)
        # The id is `changing` until its write has an outcome, even if the caller gives up waiting.
        try:
            self.term.store(
                [TransactionRecord(transactional_id, metadata)], lambda _: changing.discard(transactional_id)
            )
        except BaseException:
            changing.discard(transactional_id)
            raise
        await self.term.all_stored()

    def _complete(self, metadata: TransactionMetadata) -> None:
        """Write the markers, then say so in the log. It is tried until that is done, or the term is over."""
        transactional_id = metadata.transactional_id
        if transactional_id not in self._completing:
            task = SupervisedTask(
                "completion",
                f"transaction {transactional_id}",
                lambda: self._markers_then_complete(metadata),
                backoff=Backoff(),
            )
            self._completing[transactional_id] = task
            task.start()

    async def _markers_then_complete(self, metadata: TransactionMetadata) -> None:
        await self._context.markers.write(metadata)
        transactional_id = metadata.transactional_id
        if self.transactions.get(transactional_id) is metadata:
            record = TransactionRecord(transactional_id, machine.complete(metadata, self._context.wall_clock()))
            self.term.store([record])
            # The completion counts at once, since no later record of the id is stored without this one. If this one is
            # not stored, the next term writes the markers again.
            if self.transactions.get(transactional_id) is metadata:  # else this write has ended the term
                self._apply(record)
        self._completing.pop(transactional_id, None)
        self._tell(transactional_id)

    def is_completing(self, transactional_id: str) -> bool:
        return transactional_id in self._completing

    async def completed(self, transactional_id: str, seconds: float) -> None:
        """Wait a while for a transaction that is being completed, so that its producer need not ask again."""
        if transactional_id not in self._completing:
            return
        done = self._waiting.setdefault(transactional_id, asyncio.Event())
        with contextlib.suppress(TimeoutError):
            await within(seconds, done.wait())

    def _tell(self, transactional_id: str) -> None:
        done = self._waiting.pop(transactional_id, None)
        if done is not None:
            done.set()
