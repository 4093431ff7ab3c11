"""The driver of a reindex: rounds until what has no index is copied, then a mirror of what has one."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from handler.errors import SidecarError
from handler.pipelines.kafka.client import TRANSIENT, Refused, connected, until_it_succeeds
from handler.pipelines.kafka.topics import Partition, max_message_bytes
from handler.pipelines.mirror.copying import CLIENT_ID
from handler.pipelines.mirror.delivery import Progress
from handler.pipelines.mirror.outcome import Outcome
from handler.pipelines.mirror.places import number_of
from handler.pipelines.mirror.run import LOOK_SECONDS, REST_SECONDS, Mirror, PartitionState
from handler.pipelines.mirror.writing import Goal, WritingTask
from handler.pipelines.reindex.batches import EntryBatches
from handler.pipelines.reindex.heads import Head, Piece, head_of, rest_of, round_of
from handler.pipelines.reindex.source import OpenedSource, PulsarSource, opened
from handler.pulsar.errors import PulsarError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# All partitions together read so much in a round: it is sorted on the disks of the executors.
ROUND_BYTES: Final = 4 * 1_024 * 1_024 * 1_024
LOOKS_AT_A_TIME: Final = 8


class ReindexFailed(SidecarError):
    """One sentence for whoever runs the reindex."""


@dataclass(slots=True)
class Reindex:
    mirror: Mirror
    pulsar: PulsarSource
    say: Callable[[str], None]
    heads: dict[Partition, Head] = field(default_factory=dict)  # what is not copied wholly
    _limits: dict[str, int] = field(default_factory=dict)

    def look(self) -> None:
        """What there is, and what has no index; topics that the target lacks are made."""
        asyncio.run(self.mirror.look())
        asyncio.run(self._see_heads(self.mirror.partitions))

    def run(self, spark: SparkSession) -> None:
        if self.heads:
            asyncio.run(self._see_limits())
        while self.heads:
            self._round(spark)
            asyncio.run(self._see_heads(self.heads))
        self.mirror.spark = spark
        self.mirror.run()

    async def _see_limits(self) -> None:
        options = self.mirror.options
        names = {topic: self.mirror.partitions[topic, index].route.target_topic for topic, index in self.heads}
        try:
            async with connected(options.target, CLIENT_ID) as kafka:
                found = await until_it_succeeds(lambda: max_message_bytes(kafka, sorted(names.values())), LOOK_SECONDS)
        except (Refused, *TRANSIENT) as error:
            raise ReindexFailed(f"the target does not say how large a record may be: {error}") from error
        self._limits = {topic: found[name] for topic, name in names.items()}

    async def _see_heads(self, wanted: Iterable[Partition]) -> None:
        gate = asyncio.Semaphore(LOOKS_AT_A_TIME)
        try:
            async with opened(self.pulsar) as source:
                await asyncio.gather(*(self._see_head(source, at, gate) for at in list(wanted)))
        except PulsarError as error:
            if self.heads:
                self.say(f"the source can't be looked at: {error}")  # tasks say how long that lasts
                return
            raise ReindexFailed(f"entries without an index can't be looked for: {error}") from error

    async def _see_head(self, source: OpenedSource, at: Partition, gate: asyncio.Semaphore) -> None:
        state = self.mirror.partitions[at]
        head = None
        if not state.fault and (state.progress is None or state.place is not None):
            async with gate:
                head = await head_of(source.log(*at))
            self._take_up(state, head)
        if head is None or state.fault:
            self.heads.pop(at, None)
        else:
            self.heads[at] = head

    def _take_up(self, state: PartitionState, head: Head | None) -> None:
        """Whether what is left follows what was copied."""
        progress, place = state.progress, state.place
        if progress is None or place is None:
            return
        if head is not None and place.position.ledger >= head.first.ledger:
            return
        behind = state.first if head is None else number_of(head.first)
        if not self.mirror.options.accept_loss:
            state.refusal = f"entries from {place} on were removed before they could be copied: go on without them with --accept-loss"
            return
        state.lost = (*state.lost, (progress.next_source, behind))
        state.progress = Progress(behind, progress.target_end)

    def _round(self, spark: SparkSession) -> None:
        mirror = self.mirror
        options = mirror.options
        pieces: list[Piece] = []
        goals: dict[Partition, Goal] = {}
        for at, head in self.heads.items():
            state = mirror.partitions[at]
            found = round_of(*at, head, state.place, ROUND_BYTES // len(self.heads))
            pieces += found.pieces
            goals[at] = Goal(state.route, state.progress, number_of(head.first), found.end)
        write = WritingTask(
            target=options.target, client_id=CLIENT_ID, into_existing=options.into_existing, goals=goals,
            batches_of=EntryBatches(options.accept_loss, self._limits),
        )  # fmt: skip
        for outcome in self._written(spark, pieces, write):
            mirror.partitions[outcome.topic, outcome.partition].take(outcome, mirror.clock())
        mirror.judge()
        self._tell([mirror.partitions[at] for at in goals])

    def _tell(self, states: list[PartitionState]) -> None:
        done = sum(one.progress is not None and one.place is None for one in states)
        left = sum(size for at, head in self.heads.items() for *_, size in rest_of(head, self.mirror.partitions[at].place))
        records, troubles = sum(one.records for one in states), {one.trouble for one in states if one.trouble}
        text = f"{done} of {len(states)} partitions have all entries without an index copied"
        text += f"; {records} records, about {left / 1e6:.0f} MB left"
        self.say(text + (f"; trying again: {sorted(troubles)[0]}" if troubles else ""))
        if all(one.trouble for one in states):
            time.sleep(REST_SECONDS)

    def _written(self, spark: SparkSession, pieces: list[Piece], write: WritingTask) -> list[Outcome]:
        from handler.pipelines.reindex.entries import FORMAT, LogEntries, options_of

        spark.dataSource.register(LogEntries)
        rows = spark.read.format(FORMAT).options(**options_of(self.pulsar, pieces)).load()
        parts = min(len(write.goals), max(1, spark.sparkContext.defaultParallelism))
        ordered = rows.repartition(parts, "topic", "partition").sortWithinPartitions("topic", "partition", "ledger", "entry")
        return list(ordered.rdd.mapPartitions(write).collect())
