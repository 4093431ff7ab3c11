"""Mirror and archive beside a plain copy by Spark without our guarantees: the same topic, the same Spark, in turn."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.spark import CORES, PARTITIONS, VALUE, filled
from integration.kafka_clients import create
from integration.launcher.spark import spark_session
from kafka_sidecar.kafka_client.cluster import Cluster
from kafka_sidecar.pipelines.archive.write import Archive, ArchiveOptions
from kafka_sidecar.pipelines.copying.names import MirrorName
from kafka_sidecar.pipelines.mirror.plan import MirrorOptions
from kafka_sidecar.pipelines.mirror.run import Mirror

RECORDS: Final = int(os.environ.get("BENCH_PIPELINE_RECORDS", "500000"))


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineCost:
    what: str
    seconds: float
    records_per_s: float
    mb_s: float


def pipeline_costs(kafka: str, sidecar: str, directory: Path) -> list[PipelineCost]:
    """Each twice, in turn; the second counts: Spark has compiled its plans."""
    source = filled(kafka, RECORDS)
    spark = spark_session(directory / "warehouse", CORES)
    frame = spark.read.format("kafka").option("kafka.bootstrap.servers", kafka).option("subscribe", source)
    found: dict[str, PipelineCost] = {}

    def plain_copy() -> None:
        target = f"plain-{uuid.uuid4().hex[:6]}"
        create(sidecar, target, PARTITIONS)
        columns = frame.option("includeHeaders", "true").load().selectExpr("partition", "key", "value", "headers")
        columns.write.format("kafka").option("kafka.bootstrap.servers", sidecar).option("topic", target).save()

    def mirror() -> None:
        options = MirrorOptions(
            name=MirrorName.of(f"bench_{uuid.uuid4().hex[:6]}"),
            source=Cluster(bootstrap=kafka),
            target=Cluster(bootstrap=sidecar),
            topics=(source,),
            prefix=f"copy-{uuid.uuid4().hex[:6]}-",
        )
        one = Mirror(spark, options, lambda _: None)
        one.run()
        _check("mirror", sum(state.records for state in one.partitions.values()))

    def plain_files() -> None:
        columns = (
            frame.option("includeHeaders", "true")
            .load()
            .selectExpr("topic", "partition", "offset", "timestamp", "key", "value", "headers")
        )
        columns.write.parquet(str(directory / f"plain-{uuid.uuid4().hex[:6]}"))

    def archive() -> None:
        place = str(directory / f"archive-{uuid.uuid4().hex[:6]}")
        one = Archive(
            spark, ArchiveOptions(source=Cluster(bootstrap=kafka), topics=(source,), path=place), lambda _: None
        )
        one.run()
        _check("archive", one.records)

    cases: dict[str, Callable[[], None]] = {
        "plain copy by Spark": plain_copy,
        "mirror": mirror,
        "plain Parquet by Spark": plain_files,
        "archive": archive,
    }
    for _ in range(2):
        for what, work in cases.items():
            begun = time.perf_counter()
            work()
            took = time.perf_counter() - begun
            found[what] = PipelineCost(
                what=what, seconds=took, records_per_s=RECORDS / took, mb_s=RECORDS * len(VALUE) / took / 1e6
            )
    spark.stop()
    return list(found.values())


def _check(what: str, records: int) -> None:
    if records != RECORDS:
        raise SystemExit(f"{what} has copied {records} records, and not {RECORDS}")
