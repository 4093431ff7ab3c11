"""What Spark's queries have read, as Kafka's tools and pulsar-admin see it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from confluent_kafka import Consumer, TopicPartition
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from integration.conftest import Cluster
from integration.kafka_clients import QUIET, create, produce
from integration.launcher.sidecar import SidecarProcess
from integration.members import offsets, tool
from integration.patience import wait_for
from kafka_sidecar.pipelines.progress import commit_progress

SECONDS = 120


@contextmanager
def committing(spark: SparkSession, address: str, **options: Any) -> Iterator[None]:
    listener = commit_progress(spark, address, **options)
    try:
        yield
    finally:
        spark.streams.removeListener(listener)


def source(spark: SparkSession, cluster: Cluster, topic: str, **options: str) -> DataFrame:
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", cluster.kafka)
    return reader.option("subscribe", topic).option("startingOffsets", "earliest").options(**options).load()


def start(
    frame: DataFrame, directory: Path, name: str, each: Callable[[DataFrame, int], None] | None = None, **trigger: Any
) -> Any:
    writer = frame.writeStream.queryName(name).option("checkpointLocation", str(directory / "checkpoint"))
    writer = writer.format("noop") if each is None else writer.foreachBatch(each)
    return writer.trigger(**(trigger or {"availableNow": True})).start()


def committed(cluster: Cluster, group: str, topic: str, partitions: int = 1) -> list[int]:
    client = Consumer({"bootstrap.servers": cluster.kafka, "group.id": group, **QUIET})
    found = client.committed([TopicPartition(topic, number) for number in range(partitions)], timeout=30)
    client.close()
    return [one.offset for one in found]


def test_a_query_commits_what_it_has_read_and_tools_show_its_lag(
    cluster: Cluster, spark: SparkSession, topic: str, tmp_path: Path
) -> None:
    create(cluster.kafka, topic, 2)
    for partition in range(2):
        produce(cluster.kafka, topic, [b"x"] * 100, partition=partition)
    with committing(spark, cluster.kafka):
        assert start(source(spark, cluster, topic), tmp_path, f"q-{topic}").awaitTermination(SECONDS)
        group = f"spark-q-{topic}"
        wait_for(lambda: committed(cluster, group, topic, 2) == [100, 100])
        produce(cluster.kafka, topic, [b"x"] * 30, partition=1)
        shown = tool(cluster, "--describe", "--group", group)
        assert offsets(shown) == {0: 100, 1: 100}
        assert any(line.split()[2:6] == ["1", "100", "130", "30"] for line in shown.splitlines()), shown
        assert start(source(spark, cluster, topic), tmp_path, f"q-{topic}").awaitTermination(SECONDS)
        wait_for(lambda: committed(cluster, group, topic, 2) == [100, 130])


def test_a_batch_that_fails_is_not_committed(cluster: Cluster, spark: SparkSession, topic: str, tmp_path: Path) -> None:
    create(cluster.kafka, topic)
    produce(cluster.kafka, topic, [b"x"] * 100)

    def fails_at_the_third(_: DataFrame, number: int) -> None:
        if number == 2:
            raise RuntimeError("the third batch")

    frame = source(spark, cluster, topic, maxOffsetsPerTrigger="30")
    with committing(spark, cluster.kafka, group="jobs of {query}"):
        query = start(frame, tmp_path, topic, fails_at_the_third)
        with pytest.raises(StreamingQueryException, match="the third batch"):
            query.awaitTermination(SECONDS)
        wait_for(lambda: committed(cluster, f"jobs of {topic}", topic) == [60])
        time.sleep(1)
        assert committed(cluster, f"jobs of {topic}", topic) == [60]
        assert start(frame, tmp_path, topic, lambda _frame, _number: None).awaitTermination(SECONDS)
        wait_for(lambda: committed(cluster, f"jobs of {topic}", topic) == [100])


def test_what_an_earlier_run_had_no_time_to_tell_is_made_good(
    cluster: Cluster, spark: SparkSession, topic: str, tmp_path: Path
) -> None:
    """Though nothing new comes."""
    create(cluster.kafka, topic)
    produce(cluster.kafka, topic, [b"x"] * 50)
    assert start(source(spark, cluster, topic), tmp_path, topic).awaitTermination(SECONDS)
    assert committed(cluster, f"spark-{topic}", topic) == [-1001]
    with committing(spark, cluster.kafka):
        query = start(source(spark, cluster, topic), tmp_path, topic, processingTime="200 milliseconds")
        try:
            wait_for(lambda: committed(cluster, f"spark-{topic}", topic) == [50])
        finally:
            query.stop()


def test_of_several_sources_those_of_the_named_topics_are_committed(
    cluster: Cluster, spark: SparkSession, topic: str, tmp_path: Path
) -> None:
    for name, count in ((f"{topic}-a", 10), (f"{topic}-b", 20), (f"{topic}-c", 30)):
        create(cluster.kafka, name)
        produce(cluster.kafka, name, [b"x"] * count)
    frames = [source(spark, cluster, f"{topic}-{name}").select("value") for name in "abc"]
    rate = spark.readStream.format("rate").load().selectExpr("cast(cast(value as string) as binary) as value")
    with committing(spark, cluster.kafka, topics=[f"{topic}-a", f"{topic}-c"]):
        query = start(
            frames[0].union(frames[1]).union(frames[2]).union(rate), tmp_path, topic, processingTime="200 milliseconds"
        )
        try:
            wait_for(
                lambda: (
                    [committed(cluster, f"spark-{topic}", f"{topic}-{name}")[0] for name in "abc"] == [10, -1001, 30]
                )
            )
        finally:
            query.stop()


def test_asynchronous_progress_tracking_is_refused(
    cluster: Cluster, spark: SparkSession, topic: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    create(cluster.kafka, topic)
    create(cluster.kafka, f"{topic}-copy")
    produce(cluster.kafka, topic, [b"x"] * 10)
    with committing(spark, cluster.kafka), caplog.at_level(logging.ERROR):
        writer = (
            source(spark, cluster, topic).select("value").writeStream.format("kafka").option("topic", f"{topic}-copy")
        )
        writer = (
            writer.option("kafka.bootstrap.servers", cluster.kafka)
            .option("asyncProgressTrackingEnabled", "true")
            .queryName(topic)
        )
        query = writer.option("checkpointLocation", str(tmp_path)).trigger(processingTime="200 milliseconds").start()
        try:
            wait_for(lambda: any(progress["numInputRows"] for progress in query.recentProgress))
            time.sleep(2)
        finally:
            query.stop()
    assert f"the progress of query {topic} is not committed" in caplog.text
    assert committed(cluster, f"spark-{topic}", topic) == [-1001]


def test_a_sidecar_that_is_away_is_told_later(
    cluster: Cluster, spark: SparkSession, topic: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """With mirroring Pulsar sees the job, and keeps what it has not read."""
    create(cluster.kafka, topic)
    produce(cluster.kafka, topic, [b"x"] * 40)
    other = SidecarProcess(
        tmp_path_factory.mktemp("mirrors-jobs"),
        cluster.pulsar_url,
        cluster.admin_url,
        groups__mirror="spark-*",
        groups__namespace="public/mirrors-jobs",
    )
    with committing(spark, other.address):
        query = start(source(spark, cluster, topic), tmp_path, topic, processingTime="200 milliseconds")
        try:
            wait_for(lambda: any(progress["numInputRows"] for progress in query.recentProgress))
            other.start()
            partition = f"{cluster.admin_url}/admin/v2/persistent/public/default/{topic}-partition-0"

            def backlog() -> int | None:
                stats = httpx.get(f"{partition}/stats?getPreciseBacklog=true").json()
                found = stats["subscriptions"].get(f"spark-{topic}")
                return None if found is None else int(found["msgBacklog"])

            wait_for(lambda: backlog() == 0)
        finally:
            query.stop()
            other.kill()
