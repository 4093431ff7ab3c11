"""`pipeline mirror` and `pipeline migrate-groups` between a real Apache Kafka and the sidecar, both ways, while
everything is killed.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewPartitions, ResourceType
from pyspark.sql import SparkSession

from integration.conftest import Cluster, new_topic
from integration.kafka_clients import QUIET, bounds, consumer, create, produce, producer, read
from integration.launcher.kafka import KafkaNode
from integration.launcher.process import free_port
from integration.launcher.pulsar import Standalone
from integration.launcher.sidecar import SidecarProcess
from integration.launcher.spark import SparkCluster
from integration.patience import LONG, wait_for
from integration.pipelines import COMMITTED, SCALE, Driver, contents, fill, pipeline, pipeline_here
from kafka_sidecar.errors import CommandFailed
from kafka_sidecar.kafka_client.cluster import Cluster as KafkaCluster
from kafka_sidecar.pipelines.archive.write import Archive, ArchiveOptions
from kafka_sidecar.pipelines.copying.names import MirrorName
from kafka_sidecar.pipelines.mirror.plan import MirrorOptions
from kafka_sidecar.pipelines.mirror.run import Mirror


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaNode]:
    node = KafkaNode(tmp_path_factory.mktemp("kafka"))
    node.start()
    yield node
    node.stop()


def between(kafka: KafkaNode, cluster: Cluster) -> tuple[str, ...]:
    return "--source", kafka.address, "--target", cluster.kafka


def mirror(source: str, target: str, name: str, topics: list[str]) -> tuple[str, ...]:
    """The command."""
    wanted = [one for topic in topics for one in ("--topic", topic)]
    return "mirror", "--source", source, "--target", target, "--name", name, *wanted, "--master", "local[2]"


def commit(address: str, group: str, topic: str, offsets: dict[int, int]) -> None:
    client = consumer(address, **{"group.id": group})
    client.commit(
        offsets=[TopicPartition(topic, index, offset, "about it") for index, offset in offsets.items()],
        asynchronous=False,
    )
    client.close()


def committed(address: str, group: str, topic: str, partitions: int = 2) -> list[int]:
    client = consumer(address, **{"group.id": group})
    found = client.committed([TopicPartition(topic, index) for index in range(partitions)], timeout=20)
    client.close()
    return [one.offset for one in found]


def configs(address: str, topic: str) -> dict[str, str]:
    admin = AdminClient({"bootstrap.servers": address, **QUIET})
    resource = ConfigResource(ResourceType.TOPIC, topic)
    return {name: entry.value for name, entry in admin.describe_configs([resource])[resource].result(20).items()}


def test_topics_and_groups_move_from_kafka(
    kafka: KafkaNode, cluster: Cluster, spark: SparkSession, tmp_path: Path
) -> None:
    topic, other, name = new_topic(), new_topic(), f"move_{time.time_ns()}"
    create(kafka.address, topic, 2, {"retention.ms": "86400000", "max.message.bytes": "2000000"})
    create(kafka.address, other, 1)
    fill(kafka.address, topic, 400)
    topics = [topic, f"{other[:-1]}."]

    command = mirror(kafka.address, cluster.kafka, name, topics)
    said = pipeline_here(spark, *command, "--dry-run")
    assert f"topic {topic} would be made with 2 partitions" in said
    assert "Nothing was changed" in said
    result_file = tmp_path / "result.json"
    pipeline(*command, "--result", str(result_file))
    result = json.loads(result_file.read_text())
    assert result["complete"]
    assert result["records"] == 5 * 400 * SCALE + 5 * 20
    for partition in range(2):
        assert contents(cluster.kafka, topic, partition) == contents(kafka.address, topic, partition)
    assert configs(cluster.kafka, topic)["retention.ms"] == "86400000"
    assert configs(cluster.kafka, topic)["max.message.bytes"] == "2000000"

    # Again: nothing is copied twice. And on: what has come since.
    assert "0 records copied" in pipeline_here(spark, *command)
    produce(kafka.address, topic, [b"later-%d" % index for index in range(50)], 1)
    admin = AdminClient({"bootstrap.servers": kafka.address, **QUIET})
    admin.create_partitions([NewPartitions(other, 2)])[other].result(20)
    produce(kafka.address, other, [b"new partition"], 1)
    assert "51 records copied" in pipeline_here(spark, *command)
    assert contents(cluster.kafka, topic, 1) == contents(kafka.address, topic, 1)
    assert [record.value for record in contents(cluster.kafka, other, 1)] == [b"new partition"]

    ends = [bounds(kafka.address, topic, index)[1] for index in range(2)]
    commit(kafka.address, f"{name}-half", topic, {0: 417, 1: ends[1] - 30})
    commit(kafka.address, f"{name}-all", topic, {index: ends[index] for index in range(2)})
    groups = ("migrate-groups", *between(kafka, cluster), "--name", name, "--group")
    said = pipeline_here(spark, *groups, f"{name}-.*", "--dry-run")
    assert said.count("the same as in the source") == 2
    assert said.count("at the end of what was copied") == 2
    assert committed(cluster.kafka, f"{name}-half", topic) == [-1001, -1001]
    pipeline(*groups, f"{name}-.*")
    places = committed(cluster.kafka, f"{name}-half", topic)
    source_first = read(kafka.address, topic, 1, 0, 417, **COMMITTED)[0]
    target_first = read(cluster.kafka, topic, 1, 0, places[0], **COMMITTED)[0]
    assert (source_first.value, source_first.timestamp) == (target_first.value, target_first.timestamp)
    assert target_first.offset == places[0]
    assert len(contents(cluster.kafka, topic, 1, first=places[1])) == 30
    assert not contents(cluster.kafka, topic, 0, first=committed(cluster.kafka, f"{name}-all", topic)[0])

    commit(kafka.address, f"{name}-half", topic, {0: 500})
    said = pipeline_here(spark, *groups, f"{name}-half", status=1)
    assert "say --overwrite to replace it" in said
    pipeline_here(spark, *groups, f"{name}-half", "--overwrite")
    assert committed(cluster.kafka, f"{name}-half", topic)[0] > places[0]


def test_what_would_go_wrong_is_refused(kafka: KafkaNode, cluster: Cluster, spark: SparkSession) -> None:
    topic, name = new_topic(), f"refuse_{time.time_ns()}"
    create(kafka.address, topic, 2)
    produce(kafka.address, topic, [b"1"])
    create(cluster.kafka, topic, 3)
    for refused, of, to in (
        ("3 partitions in the target and 2 in the source", topic, cluster.kafka),
        ("no topic of the source has this name", "absent", cluster.kafka),
        ("are the same cluster", topic, kafka.address),
    ):
        assert refused in pipeline_here(spark, *mirror(kafka.address, to, name, [of]), status=2)
    groups = ("--name", "absent", "--group", ".*")
    assert "mirror absent has not run" in pipeline_here(
        spark, "migrate-groups", *between(kafka, cluster), *groups, status=2
    )
    other = new_topic()
    create(kafka.address, other, 1)
    create(cluster.kafka, other, 1)
    produce(kafka.address, other, [b"1"])
    produce(cluster.kafka, other, [b"foreign"])
    command = mirror(kafka.address, cluster.kafka, name, [other])
    assert "say --into-existing" in pipeline_here(spark, *command, status=1)
    assert [record.value for record in contents(cluster.kafka, other)] == [b"foreign"]
    pipeline_here(spark, *command, "--into-existing")
    assert [record.value for record in contents(cluster.kafka, other)] == [b"foreign", b"1"]
    admin = AdminClient({"bootstrap.servers": kafka.address, **QUIET})
    admin.delete_topics([other])[other].result(20)
    wait_for(lambda: other not in admin.list_topics(timeout=10).topics)
    create(kafka.address, other, 1)
    produce(kafka.address, other, [b"a", b"b", b"c"])
    assert "was made again in the source" in pipeline_here(spark, *command, status=1)


def test_back_to_kafka_exactly_and_at_least_once(kafka: KafkaNode, cluster: Cluster, spark: SparkSession) -> None:
    topic, name = new_topic(), f"back_{time.time_ns()}"
    create(cluster.kafka, topic, 2)
    fill(cluster.kafka, topic, 100)
    for delivery in ("exactly-once", "at-least-once"):
        there = mirror(cluster.kafka, kafka.address, f"{name}_{delivery[:2]}", [topic])
        command = (*there, "--prefix", f"{delivery}-", "--delivery", delivery)
        pipeline_here(spark, *command)
        for partition in range(2):
            assert contents(kafka.address, f"{delivery}-{topic}", partition) == contents(
                cluster.kafka, topic, partition
            )
        if delivery == "at-least-once":
            assert "0 records copied" in pipeline_here(spark, *command)


def test_a_cluster_with_tls_and_passwords_is_read(
    kafka: KafkaNode, cluster: Cluster, spark: SparkSession, tmp_path: Path
) -> None:
    topic, name = new_topic(), f"secured_{time.time_ns()}"
    create(kafka.address, topic, 2)
    fill(kafka.address, topic, 50)
    password = tmp_path / "password"
    password.write_text(kafka.PASSWORD + "\n")
    source = {
        "bootstrap": kafka.secured_address,
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": kafka.MECHANISM,
        "username": kafka.USER,
        "password_file": str(password),
        "ca_file": str(kafka.ca_file),
    }
    lines = [f'name = "{name}"', f'topic = ["{topic}"]', 'master = "local[2]"', "[source]"]
    lines += [f'{key} = "{value}"' for key, value in source.items()]
    config = tmp_path / "move.toml"
    config.write_text("\n".join([*lines, "[target]", f'bootstrap = "{cluster.kafka}"']))
    pipeline_here(spark, "mirror", "--config", str(config))
    archive = Archive(
        spark, ArchiveOptions(source=KafkaCluster(**source), topics=(topic,), path=str(tmp_path / "archive")), print
    )
    archive.run()
    whole = [contents(kafka.address, topic, partition) for partition in range(2)]
    assert [contents(cluster.kafka, topic, partition) for partition in range(2)] == whole
    assert spark.read.parquet(archive.options.path).count() == sum(map(len, whole))
    password.write_text("another")
    with pytest.raises(CommandFailed, match="the mirror can't begin"):
        asyncio.run(
            Mirror(
                None,
                MirrorOptions(
                    name=MirrorName.of(name),
                    source=KafkaCluster(**source),
                    target=KafkaCluster(bootstrap=cluster.kafka),
                    topics=(topic,),
                ),
                print,
            ).look()
        )


class Writer:
    """Writes numbers at a steady pace."""

    def __init__(self, address: str, topic: str, partitions: int) -> None:
        self._stop = threading.Event()
        self._client = producer(address, **{"linger.ms": 5})
        self._topic, self._partitions = topic, partitions
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        number = 0
        while not self._stop.is_set():
            for _ in range(10):
                self._client.produce(
                    self._topic, b"%d" % number + b"x" * (number % 900), partition=number % self._partitions
                )
                number += 1
            self._client.poll(0.02)

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()
        assert self._client.flush(LONG) == 0


def test_each_record_is_there_once_though_everything_is_killed(
    kafka: KafkaNode, spark: SparkSession, tmp_path: Path
) -> None:
    broker = Standalone(tmp_path / "pulsar")
    broker.start()
    sidecar = SidecarProcess(tmp_path / "sidecar", broker.url, broker.admin_url, port=free_port())
    sidecar.start()
    workers = SparkCluster(tmp_path / "spark")
    topic, name = new_topic(), f"kill_{time.time_ns()}"
    create(kafka.address, topic, 2)
    writer = Writer(kafka.address, topic, 2)
    arguments = (
        "--source",
        kafka.address,
        "--target",
        sidecar.address,
        "--name",
        name,
        "--topic",
        topic,
        "--continuous",
        "--round-seconds",
        "3",
        "--master",
        workers.url,
        "--conf",
        "spark.executor.memory=512m",
    )
    driver = Driver(tmp_path, "mirror", *arguments)

    def copied() -> int:
        return bounds(sidecar.address, topic, 0)[1] + bounds(sidecar.address, topic, 1)[1]

    def wait_for_more(seconds: float = 240) -> None:
        deadline, before = time.monotonic() + seconds, copied()
        while copied() < before + 500:
            assert driver.is_running, driver.log.read_text()[-3_000:]
            assert time.monotonic() < deadline, driver.log.read_text()[-3_000:]
            time.sleep(0.2)

    try:
        deadline = time.monotonic() + LONG
        while True:
            try:
                wait_for_more()
                break
            except Exception:  # the topic is not there yet
                assert time.monotonic() < deadline, driver.log.read_text()[-3_000:]
                time.sleep(0.5)
        driver.kill()
        driver.start()
        wait_for_more()
        workers.kill_worker(0)
        wait_for_more()
        sidecar.kill()
        sidecar.start()
        wait_for_more()
        broker.kill()
        broker.start()
        wait_for_more()
        kafka.kill()
        kafka.start()
        wait_for_more()
        writer.stop()
        driver.kill()
        pipeline_here(spark, *mirror(kafka.address, sidecar.address, name, [topic]))
        for partition in range(2):
            assert contents(sidecar.address, topic, partition) == contents(kafka.address, topic, partition)
        # And the record of offsets is true, all of it.
        ends = {index: bounds(kafka.address, topic, index)[1] for index in range(2)}
        for step in range(0, 100, 7):
            group = f"{name}-{step}"
            commit(kafka.address, group, topic, {index: end * step // 100 for index, end in ends.items()})
        to = ("--source", kafka.address, "--target", sidecar.address)
        said = pipeline_here(spark, "migrate-groups", *to, "--name", name, "--group", f"{name}-.*")
        assert said.count("the same as in the source") == 2 * len(range(0, 100, 7))
    finally:
        writer._stop.set()
        if driver.is_running:
            driver.kill()
        workers.stop()
        sidecar.kill()
        broker.stop()
    assert not sidecar.complaints()
