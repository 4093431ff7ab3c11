"""Spark's Kafka source and sink, batch and streaming, with failOnDataLoss as it is by default."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any, Final

import pulsar
import pytest
from confluent_kafka import Producer
from confluent_kafka import TopicPartition as Partition
from confluent_kafka.admin import AdminClient, NewPartitions
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from integration.conftest import Cluster
from integration.kafka_clients import QUIET, bounds, create, produce
from integration.patience import LONG
from integration.support import admin, unload

SECONDS: Final = 120
WHERE_AND_WHAT: Final = ("partition", "offset", "cast(value as string) as value")


def _batch(spark: SparkSession, cluster: Cluster, topic: str, **options: str) -> DataFrame:
    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", cluster.kafka).options(**options)
    return (
        reader.load()
        if "assign" in options or "subscribePattern" in options
        else reader.option("subscribe", topic).load()
    )


def _places(frame: DataFrame) -> list[tuple[int, int]]:
    return sorted((row.partition, row.offset) for row in frame.select("partition", "offset").collect())


def _stream(spark: SparkSession, cluster: Cluster, topic: str, **options: str) -> DataFrame:
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", cluster.kafka).options(**options)
    frame = reader.load() if "subscribePattern" in options else reader.option("subscribe", topic).load()
    return frame.selectExpr("topic", *WHERE_AND_WHAT)


def _to_files(frame: DataFrame, directory: Path, **trigger: Any) -> Any:
    """A running query whose files can be read back once each, with `_files`."""
    writer = frame.writeStream.format("parquet").option("path", str(directory / "out"))
    return writer.option("checkpointLocation", str(directory / "checkpoint")).trigger(**trigger).start()


def _files(spark: SparkSession, directory: Path) -> list[tuple[str, int, int, str]]:
    if not (directory / "out" / "_spark_metadata" / "0").exists():
        return []
    return sorted(tuple(row) for row in spark.read.parquet(str(directory / "out")).collect())


def _drained(frame: DataFrame, directory: Path) -> int:
    """Run to the end of what there is; how many batches that took."""
    query = _to_files(frame, directory, availableNow=True)
    assert query.awaitTermination(SECONDS)
    assert query.exception() is None
    return sum(progress["numInputRows"] > 0 for progress in query.recentProgress)


def _filled(cluster: Cluster, topic: str) -> None:
    create(cluster.kafka, topic, 2)
    for partition in range(2):
        produce(cluster.kafka, topic, [b"%d-%d" % (partition, number) for number in range(200)], partition=partition)


def test_a_batch_is_read_between_offsets(cluster: Cluster, spark: SparkSession, topic: str) -> None:
    _filled(cluster, topic)
    everything = [(partition, offset) for partition in range(2) for offset in range(200)]
    assert _places(_batch(spark, cluster, topic)) == everything
    assert _places(_batch(spark, cluster, topic, startingOffsets="earliest", endingOffsets="latest")) == everything
    begin, end = json.dumps({topic: {"0": 150, "1": -2}}), json.dumps({topic: {"0": -1, "1": 20}})
    frame = _batch(spark, cluster, topic, startingOffsets=begin, endingOffsets=end)
    found = sorted(tuple(row) for row in frame.selectExpr(*WHERE_AND_WHAT).collect())
    expected = [(0, number, f"0-{number}") for number in range(150, 200)] + [
        (1, number, f"1-{number}") for number in range(20)
    ]
    assert found == expected
    assert _places(_batch(spark, cluster, topic, assign=json.dumps({topic: [1]}))) == everything[200:]
    assert _places(_batch(spark, cluster, topic, subscribePattern=f"{topic[:-1]}[{topic[-1]}]")) == everything


def test_a_batch_is_read_between_times(cluster: Cluster, spark: SparkSession, topic: str) -> None:
    now = int(time.time() * 1000) - 100_000
    create(cluster.kafka, topic, 2)
    client = Producer({"bootstrap.servers": cluster.kafka, **QUIET})
    for number in range(200):
        client.produce(topic, b"x", partition=number % 2, timestamp=now + number)
    client.flush(LONG)
    from_both = [(partition, offset) for partition in range(2) for offset in range(50, 100)]
    assert _places(_batch(spark, cluster, topic, startingTimestamp=str(now + 100))) == from_both
    begin = json.dumps({topic: {"0": now + 160, "1": now + 180}})
    end = json.dumps({topic: {"0": now + 180, "1": now + 190}})
    frame = _batch(spark, cluster, topic, startingOffsetsByTimestamp=begin, endingOffsetsByTimestamp=end)
    assert _places(frame) == [(0, offset) for offset in range(80, 90)] + [(1, offset) for offset in range(90, 95)]
    later = {"startingTimestamp": str(now + 500)}
    with pytest.raises(Exception, match="No offset matched"):
        _batch(spark, cluster, topic, **later).collect()
    assert _places(_batch(spark, cluster, topic, **later, startingOffsetsByTimestampStrategy="latest")) == []


def test_partitions_are_split_among_tasks(cluster: Cluster, spark: SparkSession, topic: str) -> None:
    """Several consumers look for their places in one partition at the same time."""
    _filled(cluster, topic)
    everything = [(partition, offset) for partition in range(2) for offset in range(200)]
    # Spark 4.0 counts records by the offsets that it was given.
    begin, end = (json.dumps({topic: {"0": offset, "1": offset}}) for offset in (0, 200))
    at_most = {"maxRecordsPerPartition": "30", "startingOffsets": begin, "endingOffsets": end}
    for options, tasks in (({"minPartitions": "8"}, 8), (at_most, 14)):
        frame = _batch(spark, cluster, topic, **options)
        assert frame.rdd.getNumPartitions() == tasks
        assert _places(frame) == everything


def test_every_field_of_a_record_goes_there_and_back(cluster: Cluster, spark: SparkSession, topic: str) -> None:
    create(cluster.kafka, topic, 3)
    rows = [
        (
            b"k%d" % number if number % 3 else None,
            b"v%d" % number,
            number % 3,
            [("h", b"%d" % number), ("h", None)] if number % 2 else None,
        )
        for number in range(60)
    ]
    schema = "key binary, value binary, partition int, headers array<struct<key: string, value: binary>>"
    writer = spark.createDataFrame(rows, schema).write.format("kafka").option("kafka.bootstrap.servers", cluster.kafka)
    writer.option("topic", topic).option("includeHeaders", "true").save()
    back = _batch(spark, cluster, topic, includeHeaders="true").select("key", "value", "partition", "headers").collect()

    def plain(row: Any) -> tuple[Any, ...]:
        headers = (
            None if row[3] is None else [(name, None if value is None else bytes(value)) for name, value in row[3]]
        )
        return (row[0] and bytes(row[0]), bytes(row[1]), row[2], headers)

    assert sorted(map(plain, back), key=lambda row: row[1]) == sorted(map(plain, rows), key=lambda row: row[1])


@pytest.mark.parametrize("entry_format", ["kafka", "pulsar"])
def test_what_native_producers_wrote_is_read_with_the_rest(
    cluster: Cluster, spark: SparkSession, topic: str, entry_format: str
) -> None:
    create(cluster.kafka, topic, configs={"entry.format": entry_format})
    client = pulsar.Client(cluster.pulsar_url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
    native = client.create_producer(
        f"persistent://public/default/{topic}-partition-0", batching_enabled=True, batching_max_messages=7
    )
    values = []
    for turn in range(4):
        values += [b"kafka %d %d" % (turn, number) for number in range(25)]
        produce(cluster.kafka, topic, values[-25:])
        for number in range(20):
            values.append(b"native %d %d" % (turn, number))
            native.send_async(values[-1], None)
        native.flush()
    client.close()
    frame = _batch(spark, cluster, topic, minPartitions="4").orderBy("offset")
    assert [(row.offset, bytes(row.value)) for row in frame.collect()] == list(enumerate(values))


def test_a_stream_goes_on_from_its_checkpoint(
    cluster: Cluster, spark: SparkSession, topic: str, tmp_path: Path
) -> None:
    _filled(cluster, topic)
    frame = _stream(
        spark, cluster, topic, startingOffsets=json.dumps({topic: {"0": 100, "1": 100}}), maxOffsetsPerTrigger="60"
    )
    assert _drained(frame, tmp_path) == 4, "200 records, at most 60 each time"
    produce(cluster.kafka, topic, [b"later"] * 10, partition=1)
    assert _drained(frame, tmp_path) == 1
    expected = [(topic, 0, offset, f"0-{offset}") for offset in range(100, 200)]
    expected += [(topic, 1, offset, f"1-{offset}") for offset in range(100, 200)]
    expected += [(topic, 1, offset, "later") for offset in range(200, 210)]
    assert _files(spark, tmp_path) == expected


def test_a_stream_waits_for_as_much_as_it_was_told(
    cluster: Cluster, spark: SparkSession, topic: str, tmp_path: Path
) -> None:
    create(cluster.kafka, topic, 1)
    produce(cluster.kafka, topic, [b"x"] * 10)
    frame = _stream(spark, cluster, topic, startingOffsets="earliest", minOffsetsPerTrigger="50", maxTriggerDelay="10m")
    query = _to_files(frame, tmp_path, processingTime="200 milliseconds")
    try:
        _until(lambda: len(_files(spark, tmp_path)) == 10)  # the first batch does not wait
        produce(cluster.kafka, topic, [b"x"] * 40)
        time.sleep(2)
        assert len(_files(spark, tmp_path)) == 10
        produce(cluster.kafka, topic, [b"x"] * 10)
        _until(lambda: len(_files(spark, tmp_path)) == 60)
    finally:
        query.stop()


def _until(true: Any, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.2)


def test_a_stream_finds_topics_and_partitions_that_are_added(
    cluster: Cluster, spark: SparkSession, topic: str, tmp_path: Path
) -> None:
    create(cluster.kafka, f"{topic}-a", 1)
    produce(cluster.kafka, f"{topic}-a", [b"first"])
    options = {"subscribePattern": f"{topic}-.*", "startingOffsets": "earliest", "kafka.metadata.max.age.ms": "1000"}
    query = _to_files(_stream(spark, cluster, topic, **options), tmp_path, processingTime="200 milliseconds")
    try:
        _until(lambda: len(_files(spark, tmp_path)) == 1)
        create(cluster.kafka, f"{topic}-b", 1)
        produce(cluster.kafka, f"{topic}-b", [b"of a new topic"])
        kafka_admin = AdminClient({"bootstrap.servers": cluster.kafka})
        kafka_admin.create_partitions([NewPartitions(f"{topic}-a", 2)])[f"{topic}-a"].result(30)
        produce(cluster.kafka, f"{topic}-a", [b"of a new partition"], partition=1)
        _until(lambda: len(_files(spark, tmp_path)) == 3)
    finally:
        query.stop()
    assert _files(spark, tmp_path) == [
        (f"{topic}-a", 0, 0, "first"),
        (f"{topic}-a", 1, 0, "of a new partition"),
        (f"{topic}-b", 0, 0, "of a new topic"),
    ]


def test_data_that_is_lost_is_reported_and_nothing_else_is(
    cluster: Cluster, spark: SparkSession, topic: str, tmp_path: Path
) -> None:
    _filled(cluster, topic)
    frame = _stream(spark, cluster, topic, startingOffsets="earliest")
    _drained(frame, tmp_path)
    produce(cluster.kafka, topic, [b"later"] * 20)
    kafka_admin = AdminClient({"bootstrap.servers": cluster.kafka})

    def delete_before(offset: int) -> None:
        for done in kafka_admin.delete_records([Partition(topic, 0, offset)]).values():
            done.result(30)

    delete_before(200)  # all that it has read, and no more
    _drained(frame, tmp_path)
    assert [row[2] for row in _files(spark, tmp_path) if row[1] == 0] == list(range(220))
    assert _places(_batch(spark, cluster, topic)) == [(0, offset) for offset in range(200, 220)] + [
        (1, offset) for offset in range(200)
    ]
    produce(cluster.kafka, topic, [b"lost"] * 10 + [b"kept"] * 10)
    delete_before(230)
    query = _to_files(frame, tmp_path, availableNow=True)
    with pytest.raises(StreamingQueryException, match=r"(?i)lost|missed|data loss|out of range"):
        query.awaitTermination(SECONDS)


def test_what_pulsar_removes_behind_a_stream_is_no_loss_and_before_it_is_one(
    cluster: Cluster, spark: SparkSession, topic: str, tmp_path: Path
) -> None:
    _filled(cluster, topic)
    frame = _stream(spark, cluster, topic, startingOffsets="earliest")
    _drained(frame, tmp_path)
    _removed_by_retention(cluster, topic, 200)
    produce(cluster.kafka, topic, [b"later"] * 20)
    _drained(frame, tmp_path)
    assert [row[2] for row in _files(spark, tmp_path) if row[1] == 0] == list(range(220))
    produce(cluster.kafka, topic, [b"lost"] * 10)
    _removed_by_retention(cluster, topic, 230)
    produce(cluster.kafka, topic, [b"kept"] * 10)
    query = _to_files(frame, tmp_path, availableNow=True)
    with pytest.raises(StreamingQueryException, match=r"(?i)lost|missed|data loss|out of range"):
        query.awaitTermination(SECONDS)


def _removed_by_retention(cluster: Cluster, topic: str, end: int) -> None:
    """All that there is of partition 0, by Pulsar itself."""
    place = f"{cluster.admin_url}/admin/v2/persistent/public/default/{topic}"
    admin("POST", f"{place}/retention", json.dumps({"retentionTimeInMinutes": 0, "retentionSizeInMB": 0}).encode())
    deadline = time.monotonic() + LONG
    while bounds(cluster.kafka, topic) != (end, end):
        assert time.monotonic() < deadline, bounds(cluster.kafka, topic)
        unload(cluster.admin_url, topic)  # closes the open ledger, which would always stay
        admin("POST", f"{place}-partition-0/trim")
        time.sleep(1)


def test_a_stream_writes_every_row(cluster: Cluster, spark: SparkSession, topic: str, tmp_path: Path) -> None:
    _filled(cluster, topic)
    create(cluster.kafka, f"{topic}-copy", 2)
    frame = _stream(spark, cluster, topic, startingOffsets="earliest", maxOffsetsPerTrigger="90").select(
        "partition", "value"
    )
    writer = (
        frame.writeStream.format("kafka")
        .option("kafka.bootstrap.servers", cluster.kafka)
        .option("topic", f"{topic}-copy")
    )
    query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
    assert query.awaitTermination(SECONDS)
    copied = _batch(spark, cluster, f"{topic}-copy").orderBy("partition", "offset").collect()
    assert [(row.partition, bytes(row.value)) for row in copied] == [
        (part, b"%d-%d" % (part, n)) for part in range(2) for n in range(200)
    ]


def _transacted(cluster: Cluster, topic: str, first: int) -> list[int]:
    """Transactions of ten records, each third aborted; the numbers that are committed."""
    client = Producer({"bootstrap.servers": cluster.kafka, "transactional.id": topic, "linger.ms": 0, **QUIET})
    client.init_transactions(60)
    committed: list[int] = []
    for begin in range(first, first + 120, 10):
        client.begin_transaction()
        for number in range(begin, begin + 10):
            client.produce(topic, b"%d" % number, partition=number % 2)
        client.flush(LONG)
        if begin // 10 % 3 == 0:
            client.abort_transaction(60)
        else:
            client.commit_transaction(60)
            committed += range(begin, begin + 10)
    return committed


def test_what_is_committed_is_all_that_read_committed_is_given(
    cluster: Cluster, spark: SparkSession, topic: str, tmp_path: Path
) -> None:
    """Offsets of markers and of what was aborted are gaps, which is no loss of data, in a batch as in a stream."""
    create(cluster.kafka, topic, 2)
    options = {
        "kafka.bootstrap.servers": cluster.kafka,
        "kafka.isolation.level": "read_committed",
        "subscribe": topic,
        "failOnDataLoss": "true",
        "startingOffsets": "earliest",
    }
    target, checkpoint = str(tmp_path / "out"), str(tmp_path / "checkpoint")

    def stream_once() -> None:
        frame = spark.readStream.format("kafka").options(**options, maxOffsetsPerTrigger="37").load()
        writing = frame.selectExpr("cast(cast(value as string) as int) as number").writeStream.format("parquet")
        query = (
            writing.option("path", target).option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
        )
        assert query.awaitTermination(180)
        assert query.exception() is None

    def numbers(frame: DataFrame) -> list[int]:
        return sorted(row.number for row in frame.collect())

    committed = _transacted(cluster, topic, 0)
    stream_once()
    assert numbers(spark.read.parquet(target)) == committed
    committed += _transacted(cluster, topic, 1_000)
    stream_once()
    assert numbers(spark.read.parquet(target)) == committed
    batch = (
        spark.read.format("kafka").options(**options).load().selectExpr("cast(cast(value as string) as int) as number")
    )
    assert numbers(batch) == committed
