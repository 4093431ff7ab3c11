"""Spark's Kafka source, batch and streaming, with its default settings."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from integration.conftest import Cluster
from integration.kafka_clients import create, produce
from integration.launcher.jars import class_path
from integration.launcher.spark import CONNECTOR


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    jars = class_path(CONNECTOR).split(":")
    session = (
        SparkSession.builder.master("local[1]")
        .config("spark.jars", ",".join(jars))
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


def _filled(cluster: Cluster, topic: str) -> None:
    create(cluster.kafka, topic, 2)
    for partition in range(2):
        produce(cluster.kafka, topic, [b"%d-%d" % (partition, number) for number in range(200)], partition=partition)


def test_a_batch_read_from_offsets_as_json(cluster: Cluster, spark: SparkSession, topic: str) -> None:
    _filled(cluster, topic)
    frame = (
        spark.read.format("kafka")
        .option("kafka.bootstrap.servers", cluster.kafka)
        .option("subscribe", topic)
        .option("startingOffsets", json.dumps({topic: {"0": 150, "1": -2}}))
        .option("endingOffsets", json.dumps({topic: {"0": -1, "1": 20}}))
        .option("minPartitions", "4")
        .load()
    )
    found = sorted((row.partition, row.offset, bytes(row.value)) for row in frame.select("partition", "offset", "value").collect())
    expected = [(0, number, b"0-%d" % number) for number in range(150, 200)] + [(1, number, b"1-%d" % number) for number in range(20)]
    assert found == expected


def test_a_stream_goes_on_from_its_checkpoint(cluster: Cluster, spark: SparkSession, topic: str, tmp_path: Path) -> None:
    _filled(cluster, topic)
    target, checkpoint = str(tmp_path / "out"), str(tmp_path / "checkpoint")

    def run_once() -> None:
        stream = (
            spark.readStream.format("kafka")
            .option("kafka.bootstrap.servers", cluster.kafka)
            .option("subscribe", topic)
            .option("startingOffsets", json.dumps({topic: {"0": 100, "1": 100}}))
            .load()
            .select("partition", "offset", "value")
        )
        query = (
            stream.writeStream.format("parquet")
            .option("path", target)
            .option("checkpointLocation", checkpoint)
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(120)
        assert query.exception() is None

    run_once()
    produce(cluster.kafka, topic, [b"later"] * 10, partition=1)
    run_once()
    rows = sorted((row.partition, row.offset) for row in spark.read.parquet(target).collect())
    assert rows == [(0, offset) for offset in range(100, 200)] + [(1, offset) for offset in range(100, 210)]


def test_a_batch_written_by_spark_is_there(cluster: Cluster, spark: SparkSession, topic: str) -> None:
    create(cluster.kafka, topic, 1)
    frame = spark.range(500).selectExpr("cast(id as string) as value")
    frame.write.format("kafka").option("kafka.bootstrap.servers", cluster.kafka).option("topic", topic).save()
    back = spark.read.format("kafka").option("kafka.bootstrap.servers", cluster.kafka).option("subscribe", topic).load()
    assert sorted(int(row.value) for row in back.select("value").collect()) == list(range(500))
