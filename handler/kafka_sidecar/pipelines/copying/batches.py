"""Batches on their way into the target, in transactions that end in time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import accumulate
from typing import Final

from kafka_sidecar.pipelines.copying.copied_batches import CopiedBatch
from kafka_sidecar.pipelines.copying.delivery import Progress
from kafka_sidecar.pipelines.copying.offset_runs import Run, joined
from kafka_sidecar.pipelines.copying.outcome import Outcome
from kafka_sidecar.pipelines.copying.target import Target

# A transaction is committed at 16 MiB or after 2 s: read_committed consumers wait for its end.
TRANSACTION_BYTES: Final = 16 * 1_024 * 1_024
TRANSACTION_SECONDS: Final = 2.0
# 2,000 runs keep the record of a transaction's runs well below max.message.bytes (by default 1 MiB).
TRANSACTION_RUNS: Final = 2_000


class Batches:
    """Batches on their way, in transactions that begin with the first record and end in time."""

    def __init__(self, target: Target, outcome: Outcome, on_stored: Callable[[Progress, int, int], None]) -> None:
        assert outcome.progress is not None
        self._target = target
        self._progress = outcome.progress
        # Called after each commit, with the progress and the records and bytes of this commit.
        self._on_stored = on_stored
        self.has_stored = False
        self._repeats = outcome.repeats
        self._is_open = False
        self._ends_at = 0.0
        self._bytes = self._records = self._runs = 0

    async def add(self, batch: CopiedBatch) -> None:
        if not self._is_open:  # begun as late as possible: an open transaction holds back read_committed consumers
            await self._target.begin()
            self._is_open = True
            self._ends_at = asyncio.get_running_loop().time() + TRANSACTION_SECONDS
        await self._target.produce(batch)
        self._bytes += len(batch.data)
        self._records += batch.record_count
        self._runs += _runs_of(batch)
        is_late = asyncio.get_running_loop().time() >= self._ends_at
        if is_late or self._bytes >= TRANSACTION_BYTES or self._runs >= TRANSACTION_RUNS:
            last = batch.spans[-1]
            await self._commit(last.source + last.length)

    async def passed(self, offset: int, ends_now: bool) -> None:
        """All before this source offset is on its way, or needs no copy. It is stored at the latest when there is
        nothing to wait for.
        """
        if ends_now and (self._is_open or offset > self._progress.next_source):
            if not self._is_open:
                await self._target.begin(with_copies=False)
            await self._commit(offset)

    async def _commit(self, next_source: int) -> None:
        self._progress = await self._target.commit(next_source, self._progress.target_end, self._repeats)
        self._on_stored(self._progress, self._records, self._bytes)
        self.has_stored = True
        self._repeats = None
        self._is_open = False
        self._bytes = self._records = self._runs = 0


def _runs_of(batch: CopiedBatch) -> int:
    """How many runs its spans become."""
    if len(batch.spans) == 1:
        return 1
    ends = accumulate(span.length for span in batch.spans)
    return len(
        joined(Run(span.source, end - span.length, span.length) for span, end in zip(batch.spans, ends, strict=True))
    )
