"""The driver of an audit: reads, measures, compares, and writes what it has found."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kafka_sidecar.errors import CommandFailed
from kafka_sidecar.kafka_client.client import TRANSIENT, Refused
from kafka_sidecar.kafka_client.cluster import Cluster
from kafka_sidecar.kafka_client.topics import Partition
from kafka_sidecar.pipelines.archive.files import ArchiveFiles
from kafka_sidecar.pipelines.archive.write import Source, look, read_topics
from kafka_sidecar.pipelines.audit import measure
from kafka_sidecar.pipelines.audit.causes import Cause, cause_of, log_rows, read_causes
from kafka_sidecar.pipelines.audit.copies import bound_rows, copied_by, not_compared, run_rows
from kafka_sidecar.pipelines.audit.report import bars, page, result_rows
from kafka_sidecar.pipelines.copying.names import MirrorName
from kafka_sidecar.pipelines.copying.offset_runs import Translation

# Limit for the rows of a table in the report; the Parquet files have all rows.
MOST_LISTED: Final = 200
_PARTITIONS: Final = (
    "topic",
    "partition",
    "first",
    "last",
    "records",
    "gaps",
    "missing",
    "repeats",
    "earlier_than_before",
    "bytes",
    "largest",
    "without_key",
    "earliest",
    "latest",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordSource:
    """Where records are: topics of a cluster, or an archive."""

    cluster: Cluster | None = None
    path: str = ""
    table: str = ""
    prefix: str = ""  # prefix that topic names have in this source
    mirror: MirrorName | None = None  # the mirror or replay that copied the records to this source

    def __str__(self) -> str:
        place = self.path or self.table if self.cluster is None else self.cluster.bootstrap
        names = f", in topics with {self.prefix} before their names" if self.prefix else ""
        return (
            place + names + (f", as far as {self.mirror.kind} {self.mirror.name} had copied it" if self.mirror else "")
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditOptions:
    source: RecordSource
    topics: tuple[str, ...]
    out: str
    against: RecordSource | None = None
    verify_file: str = ""


def looked_at(cluster: Cluster, topics: tuple[str, ...]) -> Source:
    try:
        return asyncio.run(look(cluster, topics))
    except (Refused, *TRANSIENT) as error:
        raise CommandFailed(f"{cluster.bootstrap} can't be asked: {str(error) or type(error).__name__}") from error


@dataclass(slots=True)
class Audit:
    spark: SparkSession
    options: AuditOptions
    say: Callable[[str], None]
    facts: list[str] = field(default_factory=list)  # the report's statements on which records were read and compared
    findings: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # the report's remarks that are no fault
    records: int = 0
    different: int | None = None

    def run(self) -> None:
        verified = self._verified()
        causes = read_causes(verified) if verified else {}
        # The record of copied offsets is read before the records: so every record that it names is read on both sides.
        copied = self._copied(self.options.against)
        rows = self._rows(self.options.source, self.options.topics).persist()
        records = measure.measured(rows).persist()
        tables: dict[str, list[list[object]]] = {}
        found = self._keep("partitions", measure.partitions(records))
        self.records = sum(row["records"] for row in found)
        self.say(f"{self.records} records of {len(found)} partitions were read")
        when = datetime.now(UTC).isoformat(sep=" ", timespec="seconds").removesuffix("+00:00")
        self.facts.append(
            f"{self.records:,} records of {len(found)} partitions were read from {self.options.source} by {when} UTC"
        )
        tables["Partitions"] = result_rows(found, _PARTITIONS)
        gaps = self._keep("gaps", measure.gaps(records), MOST_LISTED)
        tables["Offsets without a record"] = [["topic", "partition", "from", "to", "cause"], *_explained(gaps, causes)]
        if verified:
            tables["The logs, as verify has read them"] = log_rows(verified)
        plots = self._plots(found, self._keep("hours", measure.hours(records)))
        tables["Most frequent keys"] = result_rows(
            self._keep("keys", measure.keys(records)), ("topic", "key", "records", "bytes")
        )
        columns = ("topic", "partition", "offset", "timestamp", "bytes")
        tables["Largest records"] = result_rows(self._keep("largest", measure.largest(records)), columns)
        self._judge(found)
        if copied:
            behind, uncopied = not_compared(copied, {(row["topic"], row["partition"]): row["last"] for row in found})
            self.findings += uncopied
            self.notes += behind
        if self.options.against is not None:
            tables["Differences"] = self._compare(rows, self.options.against, copied)
        title = f"Audit of {', '.join(sorted({row['topic'] for row in found}))}"
        (Path(self.options.out) / "report.html").write_text(
            page(title, self.facts, self.findings, self.notes, tables, plots)
        )

    def _judge(self, partitions: list[Any]) -> None:
        for row in partitions:
            name = f"{row['topic']}-{row['partition']}"
            if row["repeats"]:
                self.findings.append(f"{name}: {row['repeats']} offsets are there more than once")
            if row["earlier_than_before"]:
                self.notes.append(
                    f"{name}: {row['earlier_than_before']} records have an earlier time than one before them"
                )
            if row["missing"]:
                self.notes.append(
                    f"{name}: {row['missing']} offsets in {row['gaps']} gaps have no record: markers of transactions, "
                    "aborted records, what compaction has removed; what else it may be verify --json tells"
                )

    def _plots(self, partitions: list[Any], hours: list[Any]) -> dict[str, str]:
        plots = {}
        for topic in sorted({row["topic"] for row in partitions}):
            of_topic = [
                (f"partition {row['partition']}", float(row["bytes"])) for row in partitions if row["topic"] == topic
            ]
            over_time = [(str(row["hour"]), float(row["records"])) for row in hours if row["topic"] == topic]
            plots[topic] = bars("records in each hour", over_time) + bars("bytes of each partition", of_topic)
        return plots

    def _compare(
        self, rows: DataFrame, against: RecordSource, copied: dict[Partition, Translation]
    ) -> list[list[object]]:
        topics = tuple(row["topic"] for row in rows.select("topic").distinct().collect())
        other = self._rows(against, tuple(against.prefix + topic for topic in topics))
        other = other.withColumn("topic", F.expr(f"substring(topic, {len(against.prefix) + 1})"))
        if against.cluster is None:  # an archive has the offsets of its topic, so records are compared by offset
            here, there = measure.by_offset(rows), measure.by_offset(other)
        elif against.mirror is None:  # a copy has other offsets but the same order
            here, there = measure.in_order(rows), measure.in_order(other)
        else:
            source = self.options.source.cluster
            firsts = {} if source is None else looked_at(source, self.options.topics).firsts
            runs = self.spark.createDataFrame(list(run_rows(copied)), measure.RUNS)
            bounds = F.broadcast(self.spark.createDataFrame(list(bound_rows(copied, firsts)), measure.BOUNDS))
            here = measure.by_runs(measure.within(rows, bounds, F.lit(0), F.col("source_end")), runs)
            there = measure.by_offset(measure.within(other, bounds, F.col("target_begin"), F.col("target_end")))
        differences = measure.differences(measure.fingerprints(here), measure.fingerprints(there)).persist()
        self.different = differences.count()
        self.say(
            f"{self.different} records differ" if self.different else "both have the same records in the same order"
        )
        self.facts.append(f"Each was compared with its copy in {against}: {self.different:,} differ")
        if self.different:
            self.findings.append(f"{self.different} records are on one side alone, or are others")
        found = self._keep("differences", differences, MOST_LISTED)
        return result_rows(found, ("topic", "partition", "number", "offset", "other_offset"))

    def _copied(self, against: RecordSource | None) -> dict[Partition, Translation]:
        if against is None or against.cluster is None or against.mirror is None:
            return {}
        mirror = against.mirror
        try:
            found = asyncio.run(copied_by(against.cluster, mirror))
        except (Refused, *TRANSIENT) as error:
            raise CommandFailed(
                f"the record of {mirror.kind} {mirror.name} can't be read: {str(error) or type(error).__name__}"
            ) from error
        if not found:
            raise CommandFailed(f"{mirror.kind} {mirror.name} has copied nothing to {against.cluster.bootstrap}")
        return found

    def _keep(self, name: str, frame: DataFrame, most: int | None = None) -> list[Any]:
        """All of it as Parquet; the first of it here."""
        frame.write.mode("overwrite").parquet(f"{self.options.out}/{name}")
        kept = self.spark.read.parquet(f"{self.options.out}/{name}")
        order = [
            column for column in ("topic", "partition", "from", "number", "hour", "rank") if column in kept.columns
        ]
        kept = kept.orderBy(*order)
        return list((kept if most is None else kept.limit(most)).collect())

    def _rows(self, place: RecordSource, topics: tuple[str, ...]) -> DataFrame:
        if place.cluster is not None:
            source = looked_at(place.cluster, topics)
            ranges = {at: (source.firsts[at], end) for at, end in source.ends.items() if end > source.firsts[at]}
            if not ranges:
                raise CommandFailed("these topics have no records")
            return read_topics(self.spark, place.cluster, ranges)
        if place.table:
            frame = self.spark.table(place.table)
        else:
            ArchiveFiles(self.spark, place.path).readable()
            frame = self.spark.read.parquet(place.path)
        return frame.where(F.col("topic").isin(*topics)) if topics else frame

    def _verified(self) -> str:
        """What verify --json has printed; empty where nobody gave it."""
        if not self.options.verify_file:
            return ""
        try:
            text = Path(self.options.verify_file).read_text()
            read_causes(text)
        except (OSError, ValueError) as error:
            raise CommandFailed(f"--verify {self.options.verify_file} can't be read: {error}") from error
        return text


def _explained(gaps: list[Any], causes: Mapping[Partition, list[Cause]]) -> list[list[object]]:
    found = []
    for row in gaps:
        cause = cause_of(row["from"], row["to"], causes.get((row["topic"], row["partition"]), ()))
        found.append([*row, cause or None])
    return found


def result_of(audit: Audit, seconds: float) -> dict[str, Any]:
    """For programs."""
    return {
        "pipeline": "audit",
        "seconds": round(seconds, 3),
        "records": audit.records,
        "findings": audit.findings,
        "notes": audit.notes,
        "different": audit.different,
    }
