"""`pipeline archive` and `pipeline replay`: each offset once, in files and in Iceberg, and back into topics as it was."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from pathlib import Path
from typing import Final

import pytest
from pyspark.sql import SparkSession

from integration.conftest import Cluster, new_topic
from integration.kafka_clients import Record, create, produce
from integration.launcher.jars import class_path
from integration.launcher.spark import CONNECTOR, ICEBERG
from integration.pipelines import COMMAND, contents, fill, pipeline

LOCAL: Final = ("--master", "local[2]")


def jars(*bundles: str) -> tuple[str, ...]:
    return "--conf", "spark.jars=" + ",".join(bundles).replace(":", ",")


@pytest.fixture(scope="module")
def topic(cluster: Cluster) -> str:
    name = new_topic()
    create(cluster.kafka, name, 2)
    fill(cluster.kafka, name, 300)
    return name


def archived(spark: SparkSession, path: Path, topic: str, partition: int) -> list[Record]:
    """As anybody reads it, in the order of offsets."""
    rows = spark.read.parquet(str(path)).where(f"topic = '{topic}' AND partition = {partition}").orderBy("offset")
    found = []
    for row in rows.selectExpr("offset", "value", "key", "headers", "unix_millis(timestamp) AS millis").collect():
        headers = tuple((one.key, None if one.value is None else bytes(one.value)) for one in row.headers or ())
        value, key = (None if one is None else bytes(one) for one in (row.value, row.key))
        found.append(Record(row.offset, value, key, headers, row.millis))
    return found


def test_files_have_each_offset_once_though_the_driver_is_killed(cluster: Cluster, topic: str, spark: SparkSession, tmp_path: Path) -> None:
    path = tmp_path / "archive"
    archive = (
        "--source", cluster.kafka, "--topic", topic, "--path", str(path), "--batch-records", "250", *LOCAL, *jars(class_path(CONNECTOR)),
    )  # fmt: skip
    for _ in range(2):
        before = len(list(path.glob("batch=*")))
        with (tmp_path / "log").open("ab") as log:
            driver = subprocess.Popen([*COMMAND, "archive", *archive], stdout=log, stderr=log)
        deadline = time.monotonic() + 240
        while len(list(path.glob("batch=*"))) < before + 2:
            assert driver.poll() is None, (tmp_path / "log").read_text()[-2_000:]
            assert time.monotonic() < deadline
            time.sleep(0.05)
        driver.kill()
        driver.wait()
    pipeline("archive", *archive)
    for partition in range(2):
        assert archived(spark, path, topic, partition) == contents(cluster.kafka, topic, partition, with_offsets=True)
    assert len(list(path.glob("batch=*"))) > 4

    produce(cluster.kafka, topic, [b"later"], 1)
    result = tmp_path / "result.json"
    pipeline("archive", *archive, "--compact-mib", "64", "--result", str(result))
    assert json.loads(result.read_text())["offsets"] == 1
    assert len(list(path.glob("batch=*"))) == 1
    for partition in range(2):
        assert archived(spark, path, topic, partition) == contents(cluster.kafka, topic, partition, with_offsets=True)
    assert "0 offsets archived" in pipeline("archive", *archive)

    name = f"back_{time.time_ns()}"
    replay = ("--name", name, "--target", cluster.kafka, "--path", str(path), "--prefix", "again-", *LOCAL)
    pipeline("replay", *replay)
    for partition in range(2):
        assert contents(cluster.kafka, f"again-{topic}", partition) == contents(cluster.kafka, topic, partition)
    assert "0 records written" in pipeline("replay", *replay)
    said = pipeline("replay", "--name", "other", *replay[2:], status=1)
    assert "say --into-existing to add to it" in said


def test_a_table_of_iceberg_has_what_the_topic_has(cluster: Cluster, topic: str, tmp_path: Path) -> None:
    catalog = (
        "--conf", "spark.sql.catalog.local=org.apache.iceberg.spark.SparkCatalog", "--conf", "spark.sql.catalog.local.type=hadoop",
        "--conf", f"spark.sql.catalog.local.warehouse={tmp_path}",
    )  # fmt: skip
    table = ("--table", "local.kafka.archive", *LOCAL, *catalog, *jars(class_path(CONNECTOR), class_path(ICEBERG)))
    archive = ("--source", cluster.kafka, "--topic", topic, "--batch-records", "600", *table)
    assert "offsets archived in" in pipeline("archive", *archive, "--compact-mib", "64")
    assert "0 offsets archived" in pipeline("archive", *archive)
    pipeline("replay", "--name", f"ice_{time.time_ns()}", "--target", cluster.kafka, "--prefix", "ice-", *table)
    for partition in range(2):
        assert contents(cluster.kafka, f"ice-{topic}", partition) == contents(cluster.kafka, topic, partition)


def test_an_audit_accounts_for_offsets_and_compares_copies(cluster: Cluster, spark: SparkSession, topic: str, tmp_path: Path) -> None:
    """The archive of the topic is the same; without one batch it is not."""
    place, out, result = tmp_path / "archive", tmp_path / "audit", tmp_path / "result.json"
    there = ("--source", cluster.kafka, "--topic", topic, *LOCAL, *jars(class_path(CONNECTOR)))
    pipeline("archive", *there, "--path", str(place), "--batch-records", "700")
    said = pipeline("audit", *there, "--out", str(out), "--against-path", str(place), "--result", str(result))
    assert "both have the same records in the same order" in said
    rows = {row.partition: row for row in spark.read.parquet(str(out / "partitions")).collect()}
    for partition in range(2):
        expected = contents(cluster.kafka, topic, partition, with_offsets=True)
        found = rows[partition]
        assert (found.records, found.first, found.last) == (len(expected), expected[0].offset, expected[-1].offset)
        assert found.missing == expected[-1].offset + 1 - expected[0].offset - len(expected)  # markers, and aborted records
        assert found.repeats == 0
        assert found.without_key == sum(record.key is None for record in expected)
    assert json.loads(result.read_text())["different"] == 0
    page = (out / "report.html").read_text()
    assert "Offsets without a record" in page
    assert page.count("<svg") == 2
    last = sorted(place.glob("batch=*"))[-1]
    shutil.rmtree(last)
    said = pipeline("audit", *there, "--out", str(out), "--against-path", str(place), status=1)
    assert "records are on one side alone, or are others" in said
