"""Records of an archive written into topics: in their order, with their times and headers, each once.

A task has partitions of the archive one after another, sorted by offset, and writes them as a mirror writes what it has
fetched: in transactions named by the partition, with the progress and the record of offsets in each.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from kafka_sidecar.errors import CommandFailed
from kafka_sidecar.kafka_client.client import TRANSIENT, KafkaClient, Refused, asked
from kafka_sidecar.kafka_client.cluster import Cluster
from kafka_sidecar.kafka_client.topics import ClusterState, Partition, cluster_state, create_partitions, create_topic
from kafka_sidecar.pipelines.archive.files import ArchiveFiles
from kafka_sidecar.pipelines.copying.copied_batches import CopiedBatch, built
from kafka_sidecar.pipelines.copying.delivery import Progress, Route, not_the_same
from kafka_sidecar.pipelines.copying.names import MirrorName
from kafka_sidecar.pipelines.copying.offset_runs import Copied
from kafka_sidecar.pipelines.copying.reading import SourceRecord
from kafka_sidecar.pipelines.copying.record import latest
from kafka_sidecar.pipelines.copying.writing import Goal, LeaveOut, WritingTask
from kafka_sidecar.pipelines.mirror.plan import RUNS_CONFIGS
from kafka_sidecar.wire.records import LZ4

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

CLIENT_ID: Final = "kafka-sidecar-replay"
# Large enough to compress well, and below the max.message.bytes of practically every topic (by default 1 MiB).
BATCH_BYTES: Final = 262_144
RECORD_BYTES: Final = 64  # upper bound for the size of a record beside its key, value and headers
# Replayed records have old timestamps: a retention would delete them as soon as they are written.
NEW_TOPIC: Final = {"retention.ms": "-1", "retention.bytes": "-1", "cleanup.policy": "delete"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayOptions:
    name: MirrorName
    target: Cluster
    path: str = ""
    table: str = ""
    topics: tuple[str, ...] = ()
    prefix: str = ""
    into_existing: bool = False
    dry_run: bool = False
    rounds: int = 10


def batches(rows: Iterable[Row], begin: int, _: LeaveOut) -> Iterator[CopiedBatch]:
    """Record batches of these rows from offset `begin` on, in their order. CommandFailed where that is not one."""
    pending: list[SourceRecord] = []
    size = 0
    next_offset = -1
    for row in rows:
        if row.offset < next_offset:
            raise CommandFailed(
                f"the archive has offset {row.offset} of partition {row.partition} of topic {row.topic} twice"
            )
        next_offset = row.offset + 1
        if row.offset < begin:
            continue
        headers = tuple((one.key, _bytes(one.value)) for one in row.headers or ())
        pending.append(SourceRecord(row.offset, row.millis, _bytes(row.key), _bytes(row.value), headers))
        size += (
            len(row.key or b"")
            + len(row.value or b"")
            + RECORD_BYTES
            + sum(len(key) + len(value or b"") for key, value in headers)
        )
        if size >= BATCH_BYTES:
            yield from built(pending, LZ4, BATCH_BYTES)
            pending, size = [], 0
    yield from built(pending, LZ4, BATCH_BYTES)


def _bytes(value: bytearray | None) -> bytes | None:
    return None if value is None else bytes(value)


@dataclass(slots=True)
class Replay:
    spark: SparkSession
    options: ReplayOptions
    say: Callable[[str], None]
    # By partition: the offset behind the last record in the archive.
    wanted: dict[Partition, int] = field(default_factory=dict)
    progress: dict[Partition, Progress] = field(default_factory=dict)
    records: int = 0
    problems: dict[Partition, str] = field(default_factory=dict)
    _routes: dict[Partition, Route] = field(default_factory=dict)

    def run(self) -> None:
        """Until all of the archive is in the target, or what is left can't be written."""
        frame = self._frame()
        ends = frame.groupBy("topic", "partition").agg({"offset": "max"}).collect()
        self.wanted = {(row[0], row[1]): row[2] + 1 for row in ends}
        missing = set(self.options.topics) - {topic for topic, _ in self.wanted}
        if missing or not self.wanted:
            raise CommandFailed(f"the archive has no records of {', '.join(sorted(missing)) or 'any topic'}")
        asyncio.run(self._prepare())
        if self.options.dry_run:
            return
        for _ in range(self.options.rounds):
            if not self._left():
                return
            self._round(frame)
            self.say(
                f"{len(self.wanted) - len(self._left())} of {len(self.wanted)} partitions are written; {self.records} "
                "records"
            )
        for at in self._left():
            self.problems.setdefault(at, "was not written in all rounds")

    def _left(self) -> list[Partition]:
        return [at for at, end in self.wanted.items() if at not in self.problems and not self._is_done(at, end)]

    def _is_done(self, at: Partition, end: int) -> bool:
        return at in self.progress and self.progress[at].next_source >= end

    def _round(self, frame: DataFrame) -> None:
        options = self.options
        goals = {at: Goal(self._routes[at], self.progress.get(at)) for at in self._left()}
        task = WritingTask(
            target=options.target,
            client_id=CLIENT_ID,
            into_existing=options.into_existing,
            goals=goals,
            batches_of=batches,
        )
        rows = frame.selectExpr(
            "topic", "partition", "offset", "unix_millis(timestamp) AS millis", "key", "value", "headers"
        )
        parts = min(len(self.wanted), max(1, self.spark.sparkContext.defaultParallelism))
        ordered = rows.repartition(parts, "topic", "partition").sortWithinPartitions("topic", "partition", "offset")
        for outcome in ordered.rdd.mapPartitions(task).collect():
            at = (outcome.topic, outcome.partition)
            self.records += outcome.records
            if outcome.progress is not None:
                self.progress[at] = outcome.progress
            if outcome.problem:
                self.problems[at] = outcome.problem
            if outcome.trouble:
                self.say(f"{at[0]}-{at[1]}: trying again: {outcome.trouble}")

    def _frame(self) -> DataFrame:
        if self.options.table:
            frame = self.spark.table(self.options.table)
        else:
            ArchiveFiles(self.spark, self.options.path).readable()
            frame = self.spark.read.parquet(self.options.path)
        return frame.where(frame.topic.isin(*self.options.topics)) if self.options.topics else frame

    async def _prepare(self) -> None:
        try:
            await asked(self.options.target, CLIENT_ID, self._make)
        except (Refused, *TRANSIENT) as error:
            raise CommandFailed(f"the target can't be asked: {str(error) or type(error).__name__}") from error

    async def _make(self, kafka: KafkaClient) -> None:
        counts: dict[str, int] = {}
        for topic, index in self.wanted:
            counts[topic] = max(index + 1, counts.get(topic, 0))
        state = await cluster_state(kafka)
        runs_topic = self.options.name.runs_topic
        for topic, count in sorted(counts.items()):
            name = self.options.prefix + topic
            there = state.topics.get(name)
            if there is not None and there.partitions >= count:
                continue
            if self.options.dry_run:
                self.say(f"topic {name} would have {count} partitions")
            elif there is None:
                await create_topic(kafka, name, count, NEW_TOPIC)
            else:
                await create_partitions(kafka, name, count)
        recorded = (await latest(kafka, runs_topic)).latest if runs_topic in state.topics else {}
        if self.options.dry_run:
            return
        if runs_topic not in state.topics:
            await create_topic(kafka, runs_topic, 1, RUNS_CONFIGS)
        self._take_up(recorded, await cluster_state(kafka))

    def _take_up(self, recorded: Mapping[Partition, Copied], state: ClusterState) -> None:
        """Go on where this replay was, if it is the same archive and the same topics."""
        options = self.options
        for topic, index in self.wanted:
            name = options.prefix + topic
            there = state.topics.get(name)
            route = Route(
                mirror=options.name,
                topic=topic,
                target_topic=name,
                partition=index,
                source_cluster=options.table or options.path,
                target_id=there.topic_id if there is not None else "",
            )
            self._routes[topic, index] = route
            one = recorded.get((topic, index))
            if one is None:
                continue
            fault = not_the_same(route.as_recorded(one), route)
            if fault:
                self.problems[topic, index] = fault
            self.progress[topic, index] = Progress(one.next_source, one.target_end)


def result_of(replay: Replay, seconds: float) -> dict[str, Any]:
    """For programs."""
    return {
        "pipeline": "replay",
        "name": replay.options.name.name,
        "complete": not replay.problems and not replay._left(),
        "seconds": round(seconds, 3),
        "records": replay.records,
        "partitions": [
            {
                "topic": topic,
                "partition": index,
                "end": end,
                "problem": replay.problems.get((topic, index), ""),
                "next": replay.progress[topic, index].next_source if (topic, index) in replay.progress else 0,
            }
            for (topic, index), end in sorted(replay.wanted.items())
        ],
    }
