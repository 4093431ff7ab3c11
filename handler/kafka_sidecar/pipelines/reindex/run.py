"""The driver of a reindex: rounds of what has no index, and of a mirror for the partitions in which that is copied."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from kafka_sidecar.errors import CommandFailed
from kafka_sidecar.kafka_client.client import TRANSIENT, Refused, asked
from kafka_sidecar.kafka_client.topics import Partition, max_message_bytes
from kafka_sidecar.pipelines.copying.delivery import Progress
from kafka_sidecar.pipelines.copying.outcome import Outcome
from kafka_sidecar.pipelines.copying.places import number_of
from kafka_sidecar.pipelines.copying.writing import Goal, WritingTask
from kafka_sidecar.pipelines.mirror.copying import CLIENT_ID
from kafka_sidecar.pipelines.mirror.run import Mirror, PartitionState
from kafka_sidecar.pipelines.reindex.batches import EntryBatches
from kafka_sidecar.pipelines.reindex.heads import PIECE_BYTES, Head, Piece, head_of, rest_of, round_of
from kafka_sidecar.pipelines.reindex.source import OpenedSource, PulsarSource, opened
from kafka_sidecar.pulsar.errors import PulsarError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# A round reads 4 GiB, and up to one piece more: the executors sort it on their disks.
ROUND_BYTES: Final = 4 * 1_024 * 1_024 * 1_024
LOOKS_AT_A_TIME: Final = 8
# Interval at which a log without any index is checked for its first entry with an index.
LOOK_AGAIN_SECONDS: Final = 10.0


@dataclass(slots=True)
class Reindex:
    mirror: Mirror
    pulsar: PulsarSource
    say: Callable[[str], None]
    # Entries without an index that are not all copied yet, by partition.
    heads: dict[Partition, Head] = field(default_factory=dict)
    has_none_left: set[Partition] = field(default_factory=set)
    _limits: dict[str, int] = field(default_factory=dict)
    _stands_since: dict[tuple[Partition, str], float] = field(default_factory=dict)
    _look_again_at: float = 0.0
    _said: dict[Partition, str] = field(default_factory=dict)

    def run(self, spark: SparkSession) -> None:
        """Until all that was there at the beginning is copied, or can't be; without an end where it is continuous."""
        self.mirror.spark = spark
        while True:
            self.look()
            if self.mirror.is_over:
                return
            work = [at for at in self.heads if not self._state(at).fault and not self._state(at).is_drained]
            if work:
                began = self.mirror.clock()
                self.copy(spark, work)
                # The other partitions were not copied meanwhile, so their patience must not run out.
                for state in self.mirror.partitions.values():
                    state.moved_at += self.mirror.clock() - began
            self.mirror.copy()

    def _state(self, at: Partition) -> PartitionState:
        return self.mirror.partitions[at]

    # --- what there is

    def reach(self) -> None:
        """CommandFailed where Pulsar is not where it should be."""
        asyncio.run(self._reach())

    async def _reach(self) -> None:
        try:
            async with opened(self.pulsar) as source:
                await source.reach()
        except PulsarError as error:
            raise CommandFailed(
                f"Pulsar can't be asked: {error}. Check --pulsar-url, --pulsar-admin-url and --namespace"
            ) from error

    def look(self) -> None:
        """Topics that the target lacks are made; a partition is the mirror's when nothing without an index is left of
        it.
        """
        asyncio.run(self.mirror.look())
        asyncio.run(self._look())
        self.mirror.held = self.mirror.partitions.keys() - self.has_none_left

    async def _look(self) -> None:
        now = self.mirror.clock()
        is_time = now >= self._look_again_at
        if is_time:
            self._look_again_at = now + LOOK_AGAIN_SECONDS
        wanted = [
            at
            for at, state in self.mirror.partitions.items()
            if at not in self.has_none_left and not state.fault and (is_time or not state.is_drained)
        ]
        gate = asyncio.Semaphore(LOOKS_AT_A_TIME)
        async with opened(self.pulsar) as source:
            await asyncio.gather(*(self.look_at(source, at, gate) for at in wanted))

    async def look_at(self, source: OpenedSource, at: Partition, gate: asyncio.Semaphore) -> None:
        state = self._state(at)
        try:
            async with gate:
                state.refusal = await source.not_the_same(at[0], state.route.source_id)
                head = None if state.refusal else await head_of(source.log(*at))
        except PulsarError as error:
            state.trouble = f"entries without an index can't be looked for: {error}"
            self._lose_patience(at, state, "look")
            return
        self._stands_since.pop((at, "look"), None)
        if not state.refusal:
            self.take_up(at, state, head)
        if state.refusal and not self.mirror.options.dry_run:  # a dry run reports it in its result
            self.say(f"{at[0]}-{at[1]}: {state.refusal}")

    def take_up(self, at: Partition, state: PartitionState, head: Head | None) -> None:
        """Go on where it was, if what is left follows what was copied."""
        self.heads.pop(at, None)
        progress, place = state.progress, state.place
        if progress is not None and place is None:
            assert self.mirror.recorded is not None
            if head is not None and at not in self.mirror.recorded.with_places:
                state.refusal = (
                    "a mirror of this name has copied it without what has no index: begin with another --name"
                )
            else:
                self.has_none_left.add(at)
        elif progress is not None and place is not None and (head is None or place.position.ledger < head.first.ledger):
            self._go_on_without(at, state, progress, head)
        elif head is None:
            self.has_none_left.add(at)
        if head is not None and at not in self.has_none_left and not state.refusal:
            self.heads[at] = head
            state.is_drained = (
                head.first_offset is None and state.place is not None and state.place.position > head.last
            )

    def _go_on_without(self, at: Partition, state: PartitionState, progress: Progress, head: Head | None) -> None:
        behind = state.first if head is None else number_of(head.first)
        if not self.mirror.options.accept_loss:
            state.refusal = (
                f"entries from {state.place} on may have been removed before they were copied: the log begins behind "
                "them. Go on with --accept-loss"
            )
            return
        state.lost = (*state.lost, (progress.next_source, behind))
        state.progress = Progress(behind, progress.target_end)
        if head is None:
            self.has_none_left.add(at)

    def _lose_patience(self, at: Partition, state: PartitionState, doing: str) -> None:
        now = self.mirror.clock()
        since = self._stands_since.setdefault((at, doing), now)
        if self.mirror.options.dry_run:
            state.problem = state.trouble
        elif now - since > self.mirror.options.patience_seconds and not state.fault:
            state.problem = f"nothing was copied for {round(now - since)} s: {state.trouble}"
        text = state.fault or f"trying again: {state.trouble}"
        if self._said.get(at) != text:
            self._said[at] = text
            self.say(f"{at[0]}-{at[1]}: {text}")

    # --- copying

    def copy(self, spark: SparkSession, work: list[Partition]) -> None:
        pieces: list[Piece] = []
        goals: dict[Partition, Goal] = {}
        size = 0
        for at in work:
            if size >= ROUND_BYTES:
                break
            state, head = self._state(at), self.heads[at]
            found = round_of(*at, head, state.place, max(PIECE_BYTES, ROUND_BYTES // len(work)))
            if not found.pieces:  # all entries without an index are copied, and an entry with an index now follows them
                assert state.progress is not None
                state.progress = Progress(found.end, state.progress.target_end)
                continue
            pieces += found.pieces
            size += found.size
            goals[at] = Goal(state.route, state.progress, number_of(head.first), found.end)
        if not goals:
            return
        assert self.mirror.recorded is not None
        self.mirror.recorded.with_places.update(goals)
        asyncio.run(self._see_limits(goals))
        for outcome in self._written(spark, pieces, goals):
            at = (outcome.topic, outcome.partition)
            state = self._state(at)
            before = state.progress
            state.take(outcome, self.mirror.clock())
            if state.progress != before:
                self._stands_since.pop((at, "copy"), None)
            if state.trouble or state.problem:
                self._lose_patience(at, state, "copy")
        self._tell()

    async def _see_limits(self, goals: dict[Partition, Goal]) -> None:
        names = {topic: goal.route.target_topic for (topic, _), goal in goals.items() if topic not in self._limits}
        if not names:
            return
        try:
            found = await asked(
                self.mirror.options.target, CLIENT_ID, lambda kafka: max_message_bytes(kafka, sorted(names.values()))
            )
        except (Refused, *TRANSIENT) as error:
            raise CommandFailed(
                f"the target does not say how large a record may be: {str(error) or type(error).__name__}"
            ) from error
        for topic, name in names.items():
            if name not in found:
                raise CommandFailed(
                    f"the target does not say how large a record of topic {name} may be (max.message.bytes)"
                )
            self._limits[topic] = found[name]

    def _written(self, spark: SparkSession, pieces: list[Piece], goals: dict[Partition, Goal]) -> list[Outcome]:
        from kafka_sidecar.pipelines.reindex.entries import FORMAT, LogEntries, options_of

        options = self.mirror.options
        write = WritingTask(
            target=options.target,
            client_id=CLIENT_ID,
            into_existing=options.into_existing,
            goals=goals,
            batches_of=EntryBatches(options.accept_loss, self._limits),
        )
        spark.dataSource.register(LogEntries)
        rows = spark.read.format(FORMAT).options(**options_of(self.pulsar, pieces)).load()
        parts = min(len(goals), max(1, spark.sparkContext.defaultParallelism))
        ordered = rows.repartition(parts, "topic", "partition").sortWithinPartitions(
            "topic", "partition", "ledger", "entry"
        )
        return list(ordered.rdd.mapPartitions(write).collect())

    def _tell(self) -> None:
        states = {at: self._state(at) for at in self.heads}
        open_ = {at: one for at, one in states.items() if one.progress is None or one.place is not None}
        left = sum(size for at, one in open_.items() for *_, size in rest_of(self.heads[at], one.place))
        records, troubles = (
            sum(one.records for one in states.values()),
            {one.trouble for one in states.values() if one.trouble},
        )
        text = (
            f"{len(open_)} partitions have entries without an index to copy, about {left / 1e6:.0f} MB; {records} "
            "records copied"
        )
        self.say(text + (f"; trying again: {sorted(troubles)[0]}" if troubles else ""))
