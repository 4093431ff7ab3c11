"""A shard: the transactional ids of one partition of `__transaction_state`, while this process leads it (see `coordination.term`).

An id changes when its record is stored. Until then it is `changing`, and the machine lets nothing else happen to it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from dataclasses import dataclass

from handler.coordination.errors import CoordinatorError
from handler.coordination.term import Term, TermState
from handler.coordination.term_log import TermLog
from handler.tasks import Backoff, KeptAlive, within
from handler.transactions import machine
from handler.transactions.markers import Markers
from handler.transactions.metadata import PREPARED, TransactionMetadata
from handler.transactions.records import TransactionRecord

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ShardContext:
    """The things that all shards of a coordinator share."""

    markers: Markers
    wall_clock: Callable[[], int]  # milliseconds


class Shard(TermState[TransactionRecord]):
    def __init__(self, name: str, open_log: Callable[[], TermLog[TransactionRecord]], context: ShardContext) -> None:
        self.name = name
        self.term = Term(name, open_log, self)
        self.transactions: dict[str, TransactionMetadata] = {}
        self.changing: set[str] = set()
        self._context = context
        self._completing: dict[str, KeptAlive] = {}
        self._waiting: dict[str, asyncio.Event] = {}  # for a completion

    # --- from the term

    def replay(self, record: TransactionRecord, legacy: bool) -> None:
        self._apply(record)

    async def on_loaded(self) -> None: ...

    async def on_leading(self, seconds: float) -> None:
        """What was prepared is completed by whoever leads: its producer was told, or may ask again."""
        log.info("coordinating %s: %d transactional ids, read in %.1f s", self.name, len(self.transactions), seconds)
        for metadata in list(self.transactions.values()):
            if metadata.state in PREPARED:
                self._complete(metadata)

    def on_stored(self, record: TransactionRecord) -> None:
        self._apply(record)
        if record.metadata is not None and record.metadata.state in PREPARED:
            self._complete(record.metadata)

    @property
    def live_record_count(self) -> int:
        return len(self.transactions)

    def on_unloaded(self) -> None:
        completing, self._completing = self._completing, {}
        for task in completing.values():
            task.stop()
        for transactional_id in list(self._waiting):
            self._tell(transactional_id)
        self.transactions, self.changing = {}, set()

    def _apply(self, record: TransactionRecord) -> None:
        if record.metadata is None:
            self.transactions.pop(record.transactional_id, None)
        else:
            self.transactions[record.transactional_id] = record.metadata

    # --- changes

    async def change(self, transactional_id: str, metadata: TransactionMetadata | None) -> None:
        """Store what an id becomes; None deletes it. CoordinatorError if the term ends before."""
        self.changing.add(transactional_id)
        changing = self.changing
        try:
            await self.term.store_and_wait([TransactionRecord(transactional_id, metadata)])
        finally:
            changing.discard(transactional_id)

    def _complete(self, metadata: TransactionMetadata) -> None:
        """Write the markers, then say so in the log. It is tried until that is done, or the term is over."""
        transactional_id = metadata.transactional_id
        if transactional_id not in self._completing:
            task = KeptAlive(
                "completion", f"transaction {transactional_id}", lambda: self._markers_then_complete(metadata), backoff=Backoff()
            )
            self._completing[transactional_id] = task
            task.start()

    async def _markers_then_complete(self, metadata: TransactionMetadata) -> None:
        completing = self._completing
        await self._context.markers.write(metadata)
        try:
            await self.change(metadata.transactional_id, machine.complete(metadata, self._context.wall_clock()))
        except CoordinatorError:
            return  # the term is over: the next one does it again
        if completing is self._completing:
            completing.pop(metadata.transactional_id, None)
        self._tell(metadata.transactional_id)

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
