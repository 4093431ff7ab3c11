"""`pipeline archive` and `pipeline replay`: each offset once, in files and in Iceberg, and back into topics as it
was.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from pyspark.sql import SparkSession

from integration.conftest import Cluster, new_topic
from integration.kafka_clients import QUIET, Record, bounds, create, produce
from integration.launcher.jars import class_path
from integration.launcher.process import free_port
from integration.launcher.pulsar import Standalone
from integration.launcher.sidecar import SidecarProcess
from integration.launcher.spark import CONNECTOR, ICEBERG, SparkCluster
from integration.patience import LONG
from integration.pipelines import SCALE, Driver, contents, fill, pipeline, pipeline_here
from kafka_sidecar.errors import CommandFailed
from kafka_sidecar.kafka_client.cluster import Cluster as KafkaCluster
from kafka_sidecar.pipelines.archive.replay import Replay, ReplayOptions
from kafka_sidecar.pipelines.archive.write import Archive, ArchiveOptions, look
from kafka_sidecar.pipelines.audit.audit import Audit, AuditOptions, RecordSource
from kafka_sidecar.pipelines.copying.names import MirrorName
from kafka_sidecar.pipelines.mirror.plan import MirrorOptions
from kafka_sidecar.pipelines.mirror.run import Mirror

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


def archive_here(spark: SparkSession, address: str, topic: str, path: Path, **settings: Any) -> Archive:
    options = ArchiveOptions(source=KafkaCluster(bootstrap=address), topics=(topic,), path=str(path), **settings)
    archive = Archive(spark, options, print)
    archive.run()
    return archive


def replay_here(spark: SparkSession, address: str, path: Path, name: str) -> Replay:
    options = ReplayOptions(
        name=MirrorName.of(name, "replay"), target=KafkaCluster(bootstrap=address), path=str(path), prefix="again-"
    )
    replay = Replay(spark, options, print)
    replay.run()
    return replay


def test_files_have_each_offset_once_and_go_back_into_a_topic(
    cluster: Cluster, topic: str, spark: SparkSession, tmp_path: Path
) -> None:
    path = tmp_path / "archive"
    archive = (
        "--source",
        cluster.kafka,
        "--topic",
        topic,
        "--path",
        str(path),
        "--batch-records",
        str(300 * SCALE),
        *LOCAL,
        *jars(class_path(CONNECTOR)),
    )
    pipeline("archive", *archive)
    for partition in range(2):
        assert archived(spark, path, topic, partition) == contents(cluster.kafka, topic, partition, with_offsets=True)
    assert len(list(path.glob("batch=*"))) > 4

    produce(cluster.kafka, topic, [b"later"], 1)
    result = tmp_path / "result.json"
    pipeline_here(spark, "archive", *archive, "--compact-mib", "64", "--result", str(result))
    assert json.loads(result.read_text())["offsets"] == 1
    assert len(list(path.glob("batch=*"))) == 1
    for partition in range(2):
        assert archived(spark, path, topic, partition) == contents(cluster.kafka, topic, partition, with_offsets=True)
    assert archive_here(spark, cluster.kafka, topic, path).records == 0

    name = f"back_{time.time_ns()}"
    replay = ("--name", name, "--target", cluster.kafka, "--path", str(path), "--prefix", "again-", *LOCAL)
    pipeline("replay", *replay)
    for partition in range(2):
        assert contents(cluster.kafka, f"again-{topic}", partition) == contents(cluster.kafka, topic, partition)
    again = replay_here(spark, cluster.kafka, path, name)
    assert (again.records, again.problems) == (0, {})
    assert (
        "say --into-existing to add to it"
        in replay_here(spark, cluster.kafka, path, f"other_{name}").problems[topic, 0]
    )


def test_a_table_of_iceberg_has_what_the_topic_has(
    cluster: Cluster, topic: str, spark: SparkSession, tmp_path: Path
) -> None:
    catalog = (
        "--conf",
        "spark.sql.catalog.local=org.apache.iceberg.spark.SparkCatalog",
        "--conf",
        "spark.sql.catalog.local.type=hadoop",
        "--conf",
        f"spark.sql.catalog.local.warehouse={tmp_path}",
    )
    table = ("--table", "local.kafka.archive", *LOCAL, *catalog, *jars(class_path(CONNECTOR), class_path(ICEBERG)))
    archive = ("--source", cluster.kafka, "--topic", topic, "--batch-records", str(600 * SCALE), *table)
    assert "offsets archived in" in pipeline_here(spark, "archive", *archive, "--compact-mib", "64")
    assert "0 offsets archived" in pipeline_here(spark, "archive", *archive)
    pipeline_here(
        spark, "replay", "--name", f"ice_{time.time_ns()}", "--target", cluster.kafka, "--prefix", "ice-", *table
    )
    for partition in range(2):
        assert contents(cluster.kafka, f"ice-{topic}", partition) == contents(cluster.kafka, topic, partition)


def audit_here(spark: SparkSession, address: str, topic: str, out: Path, against: RecordSource) -> Audit:
    source = RecordSource(cluster=KafkaCluster(bootstrap=address))
    out.mkdir(exist_ok=True)
    audit = Audit(spark, AuditOptions(source=source, topics=(topic,), out=str(out), against=against), print)
    audit.run()
    return audit


def test_an_audit_accounts_for_offsets_and_compares_copies(
    cluster: Cluster, spark: SparkSession, topic: str, tmp_path: Path
) -> None:
    """The archive of the topic is the same; without one batch it is not."""
    place, out, result = tmp_path / "archive", tmp_path / "audit", tmp_path / "result.json"
    there = ("--source", cluster.kafka, "--topic", topic, *LOCAL, *jars(class_path(CONNECTOR)))
    archive_here(spark, cluster.kafka, topic, place, batch_records=700 * SCALE)
    said = pipeline("audit", *there, "--out", str(out), "--against-path", str(place), "--result", str(result))
    assert "both have the same records in the same order" in said
    rows = {row.partition: row for row in spark.read.parquet(str(out / "partitions")).collect()}
    for partition in range(2):
        expected = contents(cluster.kafka, topic, partition, with_offsets=True)
        found = rows[partition]
        assert (found.records, found.first, found.last) == (len(expected), expected[0].offset, expected[-1].offset)
        assert found.missing == expected[-1].offset + 1 - expected[0].offset - len(
            expected
        )  # markers, and aborted records
        assert found.repeats == 0
        assert found.without_key == sum(record.key is None for record in expected)
    assert json.loads(result.read_text())["different"] == 0
    page = (out / "report.html").read_text()
    assert "Offsets without a record" in page
    assert page.count("<svg") == 2
    last = sorted(place.glob("batch=*"))[-1]
    shutil.rmtree(last)
    audit = audit_here(spark, cluster.kafka, topic, out, RecordSource(path=str(place)))
    assert audit.findings == [f"{audit.different} records are on one side alone, or are others"]


def test_an_audit_compares_each_record_with_the_copy_that_a_mirror_has_made(
    cluster: Cluster, spark: SparkSession, tmp_path: Path
) -> None:
    source, prefix, name = new_topic(), "mirrored-", MirrorName.of(f"audited_{time.time_ns()}")
    create(cluster.kafka, source, 2)
    fill(cluster.kafka, source, 100)
    here = KafkaCluster(bootstrap=cluster.kafka)
    mirror = Mirror(spark, MirrorOptions(name=name, source=here, target=here, topics=(source,), prefix=prefix), print)
    mirror.run()
    assert all(one.is_done for one in mirror.partitions.values())
    produce(cluster.kafka, source, [b"not copied yet"])
    against = RecordSource(cluster=here, prefix=prefix, mirror=name)
    assert audit_here(spark, cluster.kafka, source, tmp_path, against).different == 0
    # What one side lacks makes no other record differ.
    removed = [
        record for record in contents(cluster.kafka, prefix + source, 0, with_offsets=True) if record.offset < 30
    ]
    admin = AdminClient({"bootstrap.servers": cluster.kafka, **QUIET})
    for future in admin.delete_records([TopicPartition(prefix + source, 0, 30)]).values():
        future.result(20)
    assert audit_here(spark, cluster.kafka, source, tmp_path, against).different == len(removed) > 0


def test_a_topic_that_was_made_anew_is_not_added_to_an_archive(
    cluster: Cluster, spark: SparkSession, tmp_path: Path
) -> None:
    topic = new_topic()
    create(cluster.kafka, topic)
    produce(cluster.kafka, topic, [b"before"])
    assert archive_here(spark, cluster.kafka, topic, tmp_path / "archive").records == 1
    admin = AdminClient({"bootstrap.servers": cluster.kafka, **QUIET})
    admin.delete_topics([topic])[topic].result(20)
    create(cluster.kafka, topic)
    produce(cluster.kafka, topic, [b"other"] * 5)  # it has outgrown what was archived
    with pytest.raises(CommandFailed, match=f"topic {topic} was made again since it was archived"):
        archive_here(spark, cluster.kafka, topic, tmp_path / "archive")


def test_a_cluster_that_is_away_is_waited_for(cluster: Cluster, topic: str, tmp_path: Path) -> None:
    sidecar = SidecarProcess(tmp_path / "sidecar", cluster.pulsar_url, cluster.admin_url, port=free_port())
    with ThreadPoolExecutor(1) as pool:
        found = pool.submit(lambda: asyncio.run(look(KafkaCluster(bootstrap=sidecar.address), (topic,))))
        time.sleep(1)
        assert not found.done()
        sidecar.start()
        try:
            assert found.result(60).ends.keys() == {(topic, 0), (topic, 1)}
        finally:
            sidecar.stop()


OwnServers = tuple[Standalone, SidecarProcess, SparkCluster]


@pytest.fixture
def own_servers(tmp_path: Path) -> Iterator[OwnServers]:
    """A test may kill these. They end with it, also when one of them did not start."""
    broker = Standalone(tmp_path / "pulsar")
    with ExitStack() as ends:
        ends.callback(broker.stop)
        broker.start()
        sidecar = SidecarProcess(tmp_path / "sidecar", broker.url, broker.admin_url, port=free_port())
        ends.callback(sidecar.kill)
        sidecar.start()
        workers = SparkCluster(tmp_path / "spark")
        ends.callback(workers.stop)
        yield broker, sidecar, workers


@pytest.mark.soak
def test_on_a_cluster_each_offset_is_there_once_though_everything_is_killed(
    spark: SparkSession, tmp_path: Path, own_servers: OwnServers
) -> None:
    broker, sidecar, workers = own_servers
    topic, path, count = new_topic(), tmp_path / "archive", 20_000 * SCALE
    create(sidecar.address, topic, 2)
    for partition in range(2):
        produce(sidecar.address, topic, [b"%d-" % number + b"v" * 500 for number in range(count)], partition=partition)
    there = ("--source", sidecar.address, "--topic", topic)
    sizes = ("--conf", "spark.executor.memory=512m", "--conf", "spark.sql.shuffle.partitions=4")
    on_cluster = ("--master", workers.url, *sizes, *jars(class_path(CONNECTOR)))

    def restart(what: Any) -> None:
        what.kill()
        what.start()

    def run_while(
        name: str, *arguments: str, progress: Callable[[], float], faults: Sequence[Callable[[Driver], None]]
    ) -> int:
        """Each fault meets with work, as far as there is any."""
        driver = Driver(tmp_path, name, *arguments, *on_cluster)
        met = 0
        try:
            for fault in faults:
                before, deadline = progress(), time.monotonic() + LONG
                while progress() == before and driver.is_running:
                    assert time.monotonic() < deadline, driver.log.read_text()[-3_000:]
                    time.sleep(0.1)
                met += driver.is_running
                fault(driver)
            assert driver.wait(400 * SCALE) == 0, driver.log.read_text()[-3_000:]
        finally:
            if driver.is_running:
                driver.kill()
        return met

    def replayed() -> int:
        try:
            return bounds(sidecar.address, f"again-{topic}")[1]
        except KafkaException:
            return 0

    faults = (
        restart,
        lambda _: restart(sidecar),
        lambda _: workers.kill_worker(0),
        lambda _: restart(broker),
    )
    archive = (*there, "--path", str(path), "--batch-records", str(4_000 * SCALE))
    assert run_while("archive", *archive, progress=lambda: len(list(path.glob("batch=*"))), faults=faults) > 2
    for partition in range(2):
        found = [record.value for record in archived(spark, path, topic, partition)]
        assert found == [b"%d-" % number + b"v" * 500 for number in range(count)]
    audit = (
        *there,
        "--out",
        str(tmp_path / "audit"),
        "--against-path",
        str(path),
        "--result",
        str(tmp_path / "result.json"),
    )
    run_while(
        "audit", *audit, progress=lambda: len(list((tmp_path / "audit").glob("*"))), faults=[lambda _: restart(sidecar)]
    )
    assert json.loads((tmp_path / "result.json").read_text())["different"] == 0
    replay = ("--name", "back", "--target", sidecar.address, "--path", str(path), "--prefix", "again-")
    run_while(
        "replay", *replay, progress=replayed, faults=[lambda _: restart(sidecar), restart, lambda _: restart(broker)]
    )
    for partition in range(2):
        assert contents(sidecar.address, f"again-{topic}", partition) == contents(sidecar.address, topic, partition)
