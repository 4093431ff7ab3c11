"""Topics into an archive, batch by batch: the driver says which offsets, Spark's executors read and write them."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kafka_sidecar.errors import CommandFailed
from kafka_sidecar.kafka_client.client import TRANSIENT, KafkaClient, Refused, asked
from kafka_sidecar.kafka_client.cluster import Cluster
from kafka_sidecar.kafka_client.topics import (
    EARLIEST,
    LATEST,
    READ_COMMITTED,
    Partition,
    cluster_state,
    matching_topics,
    offsets,
)
from kafka_sidecar.pipelines.archive.files import ArchiveFiles
from kafka_sidecar.pipelines.archive.iceberg import IcebergTable
from kafka_sidecar.pipelines.archive.layout import Contents, Ranges, next_ranges, remade, to_compact, united

CLIENT_ID: Final = "kafka-sidecar-archive"
REST_SECONDS: Final = 2.0
# A continuous archive compacts when it has 50 new batches or more and there is nothing to archive.
COMPACT_EACH: Final = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveOptions:
    source: Cluster
    topics: tuple[str, ...]
    exclude: tuple[str, ...] = ()
    path: str = ""  # directory of an archive in Parquet files
    table: str = ""  # name of an archive's Iceberg table
    batch_records: int = 5_000_000
    compact_bytes: int = 0
    continuous: bool = False
    accept_loss: bool = False
    dry_run: bool = False


@dataclass(slots=True)
class Archive:
    spark: SparkSession
    options: ArchiveOptions
    say: Callable[[str], None]
    records: int = 0
    batches: int = 0
    lost: Ranges | None = None

    def run(self) -> None:
        """Until everything that there was is archived; without an end where it is continuous."""
        place = self._place()
        if not self.options.dry_run:
            place.recover()
        archived, number = place.archived(), place.next_number
        not_compacted = number
        while True:
            batch = self._next(archived)
            if batch is None and self.options.continuous and not self.options.dry_run:
                if not_compacted >= COMPACT_EACH:
                    self._compact(place)
                    not_compacted = 0
                time.sleep(REST_SECONDS)
                continue
            if batch is None:
                break
            count = sum(end - begin for begin, end in batch.ranges.values())
            if self.options.dry_run:
                self.say(f"the next batch would have up to {count} records of {len(batch.ranges)} partitions")
                return
            began = time.monotonic()
            archived = united((archived, batch))
            place.add(number, read_topics(self.spark, self.options.source, batch.ranges), batch, archived)
            self.records, self.batches = self.records + count, self.batches + 1
            seconds = time.monotonic() - began
            self.say(
                f"batch {number}: {count} offsets of {len(batch.ranges)} partitions in {seconds:.1f} s,"
                f" {count / max(seconds, 0.001):.0f} a second"
            )
            number, not_compacted = number + 1, not_compacted + 1
        if not self.options.dry_run:
            self._compact(place)

    def _place(self) -> ArchiveFiles | IcebergTable:
        if self.options.table:
            return IcebergTable(self.spark, self.options.table)
        return ArchiveFiles(self.spark, self.options.path)

    def _compact(self, place: ArchiveFiles | IcebergTable) -> None:
        if not self.options.compact_bytes:
            return
        if isinstance(place, IcebergTable):
            place.compact(self.options.compact_bytes)
            return
        for group in to_compact(place.sizes(), self.options.compact_bytes):
            whole = place.replace(group)
            if whole is None:
                continue
            self.say(f"{len(group)} batches are {whole.directory} now")

    def _next(self, archived: Contents) -> Contents | None:
        """What the next batch takes."""
        try:
            source = asyncio.run(look(self.options.source, self.options.topics, self.options.exclude))
        except (Refused, *TRANSIENT) as error:
            raise CommandFailed(f"the source can't be asked: {str(error) or type(error).__name__}") from error
        for topic in remade(archived.ids, source.ids):
            raise CommandFailed(f"topic {topic} was made again since it was archived: begin another archive")
        ends = {at: end for at, (_, end) in archived.ranges.items()}
        taken, lost = next_ranges(ends, source.firsts, source.ends, self.options.batch_records)
        if lost and not self.options.accept_loss:
            (topic, index), (begin, end) = next(iter(sorted(lost.items())))
            raise CommandFailed(
                f"the source has removed offsets {begin} to {end - 1} of partition {index} of topic {topic} before "
                "they were archived: go on without them with --accept-loss"
            )
        self.lost = {**(self.lost or {}), **lost} or None
        behind = {at: end for at, end in ends.items() if at in source.ends and source.ends[at] < end}
        for (topic, index), end in behind.items():
            raise CommandFailed(
                f"partition {index} of topic {topic} ends at {source.ends[topic, index]} and was archived up to {end}: "
                "it has lost records, or the topic was made again. Begin another archive"
            )
        return Contents(taken, {topic: source.ids[topic] for topic, _ in taken if source.ids[topic]}) if taken else None


class Source(NamedTuple):
    """As committed readers see it."""

    firsts: dict[Partition, int]
    ends: dict[Partition, int]
    ids: dict[str, str]  # topic ids by topic; empty where the cluster has none (before Kafka 2.8)


async def look(source: Cluster, topics: Iterable[str], exclude: Iterable[str] = ()) -> Source:
    """Raises Refused and what TRANSIENT has."""

    async def ask(kafka: KafkaClient) -> Source:
        state = await cluster_state(kafka)
        names = matching_topics(topics, exclude, state)
        wanted = [(topic, index) for topic in names for index in range(state.topics[topic].partitions)]
        firsts, ends = await offsets(kafka, wanted, EARLIEST), await offsets(kafka, wanted, LATEST, READ_COMMITTED)
        return Source(firsts, ends, {topic: state.topics[topic].topic_id for topic in names})

    return await asked(source, CLIENT_ID, ask)


def read_topics(spark: SparkSession, source: Cluster, ranges: Ranges) -> DataFrame:
    """These offsets, read by Spark's executors; in the schema of an archive. Never less than what was asked for in
    silence.
    """
    begins, ends = (_as_json({at: one[side] for at, one in ranges.items()}) for side in (0, 1))
    wanted: dict[str, list[int]] = {}
    for topic, index in sorted(ranges):
        wanted.setdefault(topic, []).append(index)
    reader = spark.read.format("kafka").option("assign", json.dumps(wanted)).option("includeHeaders", "true")
    for name, value in source.spark_options().items():
        reader = reader.option(name, value)
    reader = reader.option("failOnDataLoss", "true").option("kafka.isolation.level", "read_committed")
    return rows_of(reader.option("startingOffsets", begins).option("endingOffsets", ends).load())


def rows_of(frame: DataFrame) -> DataFrame:
    """The schema of an archive."""
    kind = F.when(F.col("timestampType") == 0, "CreateTime").when(F.col("timestampType") == 1, "LogAppendTime")
    return frame.select(
        "topic",
        "partition",
        "offset",
        "timestamp",
        kind.alias("timestamp_type"),
        "key",
        "value",
        "headers",
        F.to_date("timestamp").alias("date"),
        F.hour("timestamp").alias("hour"),
    )


def _as_json(offsets: dict[Partition, int]) -> str:
    topics: dict[str, dict[str, int]] = {}
    for (topic, index), offset in offsets.items():
        topics.setdefault(topic, {})[str(index)] = offset
    return json.dumps(topics)


def result_of(archive: Archive, seconds: float) -> dict[str, Any]:
    """For programs."""
    lost = [[topic, index, begin, end] for (topic, index), (begin, end) in sorted((archive.lost or {}).items())]
    return {
        "pipeline": "archive",
        "place": archive.options.table or archive.options.path,
        "seconds": round(seconds, 3),
        "offsets": archive.records,
        "batches": archive.batches,
        "lost": lost,
    }
