"""Unmodified Kafka clients with their default settings, by explicit assignment."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka import TopicPartition as AioPartition
from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic
from kafka import KafkaConsumer, KafkaProducer
from kafka import TopicPartition as PyPartition

from integration.conftest import Cluster
from integration.kafka_clients import Acks, bounds, consumer, produce, producer, read
from integration.launcher.kafka import java_tool
from integration.patience import LONG
from integration.support import admin


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_librdkafka_reads_what_it_wrote_in_every_codec(cluster: Cluster, topic: str, codec: str) -> None:
    values = [b"value %d " % number * 20 for number in range(500)]
    acked = produce(cluster.kafka, topic, values, settings={"compression.type": codec})
    assert [ack.offset for ack in acked] == list(range(500))
    assert [(record.offset, record.value) for record in read(cluster.kafka, topic, 500)] == list(enumerate(values))


def test_keys_headers_timestamps_and_tombstones_come_back_as_they_were(cluster: Cluster, topic: str) -> None:
    client = producer(cluster.kafka)
    headers = [("a", b"\xff\x00"), ("a", b"twice"), ("none", None)]
    client.produce(topic, None, key=b"tombstone", partition=0, headers=headers, timestamp=1_700_000_000_123)
    client.produce(topic, b"", key=None, partition=0, timestamp=1_700_000_000_124)
    assert client.flush(LONG) == 0
    first, second = read(cluster.kafka, topic, 2)
    assert (first.key, first.value, first.timestamp) == (b"tombstone", None, 1_700_000_000_123)
    assert first.headers == tuple(headers)
    assert (second.key, second.value, second.timestamp) == (None, b"", 1_700_000_000_124)


def test_librdkafka_gets_every_kind_of_offset(cluster: Cluster, topic: str) -> None:
    before = int(time.time() * 1000)
    produce(cluster.kafka, topic, [b"x"] * 10)
    client = consumer(cluster.kafka)
    assert client.get_watermark_offsets(TopicPartition(topic, 0), timeout=20) == (0, 10)
    assert client.offsets_for_times([TopicPartition(topic, 0, before)], timeout=20)[0].offset == 0
    assert client.offsets_for_times([TopicPartition(topic, 0, before + 600_000)], timeout=20)[0].offset == -1
    client.close()


def test_a_seek_beyond_the_end_is_out_of_range(cluster: Cluster, topic: str) -> None:
    produce(cluster.kafka, topic, [b"x"] * 3)
    client = consumer(cluster.kafka, **{"auto.offset.reset": "error"})
    client.assign([TopicPartition(topic, 0, 1000)])
    message = client.poll(10)
    assert message is not None
    assert message.error() is not None
    client.close()


def test_acks_0_and_1_and_all_are_written(cluster: Cluster, topic: str) -> None:
    for acks in ("0", "1", "all"):
        produce(cluster.kafka, topic, [acks.encode()] * 3, settings={"acks": acks, "enable.idempotence": False})
    assert [record.value for record in read(cluster.kafka, topic, 9)] == [b"0"] * 3 + [b"1"] * 3 + [b"all"] * 3


def test_a_record_over_the_limit_is_refused_and_the_connection_lives_on(cluster: Cluster, topic: str) -> None:
    client = producer(cluster.kafka, **{"message.max.bytes": 20_000_000})
    acks = Acks()
    client.produce(topic, b"x" * 6_000_000, partition=0, callback=acks)
    client.flush(LONG)
    assert acks.failed == ['KafkaError{code=MSG_SIZE_TOO_LARGE,val=10,str="Broker: Message size too large"}']
    acks = Acks()
    client.produce(topic, b"x" * 2_000_000, partition=0, callback=acks)
    client.flush(LONG)
    assert [ack.offset for ack in acks.acked] == [0]
    assert len(read(cluster.kafka, topic, 1)[0].value or b"") == 2_000_000


def test_admin_creates_grows_lists_and_deletes_topics(cluster: Cluster, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.kafka})
    admin.create_topics([NewTopic(topic, 2, 1)], validate_only=True)[topic].result(20)
    assert topic not in admin.list_topics(timeout=20).topics
    admin.create_topics([NewTopic(topic, 2, 1)])[topic].result(20)
    assert len(admin.list_topics(timeout=20).topics[topic].partitions) == 2
    with pytest.raises(KafkaException, match="TOPIC_ALREADY_EXISTS"):
        admin.create_topics([NewTopic(topic, 2, 1)])[topic].result(20)
    with pytest.raises(KafkaException, match="retention"):
        admin.create_topics([NewTopic(topic + "c", 1, 1, config={"retention.ms": "-2"})])[topic + "c"].result(20)
    with pytest.raises(KafkaException, match="TOPIC_EXCEPTION"):
        admin.create_topics([NewTopic("no/tenant", 1, 1)])["no/tenant"].result(20)
    admin.create_partitions([NewPartitions(topic, 5)])[topic].result(20)
    assert len(admin.list_topics(timeout=20).topics[topic].partitions) == 5
    produce(cluster.kafka, topic, [b"x"] * 7, partition=4)
    admin.delete_topics([topic])[topic].result(20)
    assert topic not in admin.list_topics(timeout=20).topics
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(20)
    assert bounds(cluster.kafka, topic) == (0, 0)
    assert [ack.offset for ack in produce(cluster.kafka, topic, [b"again"])] == [0]


def test_a_topic_has_one_log_under_all_its_names(cluster: Cluster, topic: str) -> None:
    produce(cluster.kafka, topic, [b"short"])
    produce(cluster.kafka, f"public/default/{topic}", [b"long"])
    produce(cluster.kafka, f"persistent://public/default/{topic}", [b"full"])
    assert [record.value for record in read(cluster.kafka, topic, 3)] == [b"short", b"long", b"full"]


async def test_aiokafka_reads_what_it_wrote(cluster: Cluster, topic: str) -> None:
    writer = AIOKafkaProducer(bootstrap_servers=cluster.kafka, enable_idempotence=True)
    await writer.start()
    sent = [await writer.send(topic, b"%d" % number, partition=number % 2) for number in range(200)]
    metadata = await asyncio.gather(*sent)
    await writer.stop()
    assert [item.offset for item in metadata if item.partition == 1] == list(range(100))
    reader = AIOKafkaConsumer(bootstrap_servers=cluster.kafka, enable_auto_commit=False)
    await reader.start()
    places = [AioPartition(topic, 0), AioPartition(topic, 1)]
    reader.assign(places)
    await reader.seek_to_beginning()
    assert await reader.end_offsets(places) == {places[0]: 100, places[1]: 100}
    values: list[int] = []
    while len(values) < 200:
        got = await reader.getmany(timeout_ms=10_000)
        assert got
        values += [int(record.value) for records in got.values() for record in records]
    await reader.stop()
    assert sorted(values) == list(range(200))


def test_kafka_python_reads_what_it_wrote(cluster: Cluster, topic: str) -> None:
    writer = KafkaProducer(bootstrap_servers=cluster.kafka)
    offsets = [writer.send(topic, b"%d" % number, partition=0).get(20).offset for number in range(20)]
    writer.close()
    assert offsets == list(range(20))
    reader = KafkaConsumer(bootstrap_servers=cluster.kafka, enable_auto_commit=False)
    place = PyPartition(topic, 0)
    reader.assign([place])
    reader.seek(place, 5)
    values: list[bytes] = []
    deadline = time.monotonic() + LONG
    while len(values) < 15 and time.monotonic() < deadline:
        values += [record.value for records in reader.poll(1000).values() for record in records]
    reader.close()
    assert values == [b"%d" % number for number in range(5, 20)]


def test_the_console_tools_of_apache_kafka_4(cluster: Cluster, topic: str) -> None:
    server = ("--bootstrap-server", cluster.kafka)
    made = java_tool("org.apache.kafka.tools.TopicCommand", *server, "--create", "--topic", topic, "--partitions", "2")
    assert f"Created topic {topic}" in made.stdout, made.stdout + made.stderr
    listed = java_tool("org.apache.kafka.tools.TopicCommand", *server, "--list")
    assert topic in listed.stdout.split()
    begun = int(time.time() * 1000)
    lines = "".join(f"line {number}\n" for number in range(50))
    written = java_tool("org.apache.kafka.tools.ConsoleProducer", *server, "--topic", topic, stdin=lines)
    assert written.returncode == 0, written.stderr
    assert "ERROR" not in written.stdout + written.stderr
    ends = sum(bounds(cluster.kafka, topic, partition)[1] for partition in range(2))
    assert ends == 50
    read_back = []
    for partition in range(2):
        count = bounds(cluster.kafka, topic, partition)[1]
        if count:
            done = java_tool(
                "org.apache.kafka.tools.consumer.ConsoleConsumer",
                *server,
                "--topic",
                topic,
                "--partition",
                str(partition),
                "--offset",
                "0",
                "--max-messages",
                str(count),
                "--timeout-ms",
                "20000",
            )
            read_back += done.stdout.split("\n")[:count]
    assert sorted(read_back) == sorted(lines.split("\n")[:-1])
    for time_asked, expected in (("-1", 50), ("-2", 0), (str(begun), 0)):
        done = java_tool("org.apache.kafka.tools.GetOffsetShell", *server, "--topic", topic, "--time", time_asked)
        assert done.returncode == 0, done.stderr
        offsets = [int(line.rsplit(":", 1)[1] or 0) for line in done.stdout.split()]
        assert sum(offsets) == expected, (time_asked, done.stdout)
    for named, told in (("earliest-local", [0, 0]), ("latest-tiered", []), ("earliest-pending-upload", [])):
        done = java_tool("org.apache.kafka.tools.GetOffsetShell", *server, "--topic", topic, "--time", named)
        assert done.returncode == 0, done.stderr
        assert [int(line.rsplit(":", 1)[1]) for line in done.stdout.split() if line[-1] != ":"] == told, (
            named,
            done.stdout,
        )
    greatest = java_tool("org.apache.kafka.tools.GetOffsetShell", *server, "--topic", topic, "--time", "-3")
    assert greatest.returncode == 0, greatest.stderr
    assert greatest.stdout.strip(), greatest.stderr


def test_the_config_tool_of_apache_kafka_4(cluster: Cluster, topic: str) -> None:
    """What it sets is Pulsar's own policy, what can't be kept is refused with the reason, and the rest is told as it
    is.
    """
    server = ("--bootstrap-server", cluster.kafka)
    of_topic = (*server, "--entity-type", "topics", "--entity-name", topic)
    tool = "kafka.admin.ConfigCommand"
    made = java_tool(
        "org.apache.kafka.tools.TopicCommand",
        *server,
        "--create",
        "--topic",
        topic,
        "--partitions",
        "2",
        "--config",
        "retention.ms=7200000",
    )
    assert f"Created topic {topic}" in made.stdout, made.stdout + made.stderr
    done = java_tool(tool, *of_topic, "--alter", "--add-config", "entry.format=pulsar,max.message.bytes=100000")
    assert "Completed updating config" in done.stdout, done.stdout + done.stderr
    policy = f"{cluster.admin_url}/admin/v2/persistent/public/default/{topic}"
    assert json.loads(admin("GET", f"{policy}/properties")) == {
        "entry.format": "pulsar",
        "kafka.retention": "retention.ms 120 -1",
    }
    wanted = {"retentionTimeInMinutes": 120, "retentionSizeInMB": -1}
    assert _eventually(lambda: json.loads(admin("GET", f"{policy}/retention") or b"null"), wanted) == wanted
    assert _eventually(lambda: json.loads(admin("GET", f"{policy}/maxMessageSize") or b"null"), 100_000) == 100_000
    told = java_tool(tool, *of_topic, "--describe", "--all").stdout
    for one in ("retention.ms=7200000", "entry.format=pulsar", "max.message.bytes=100000", "cleanup.policy=delete"):
        assert f" {one} " in told, told
    done = java_tool(tool, *of_topic, "--alter", "--add-config", "retention.ms=86430000")
    assert "Completed updating config" in done.stdout, done.stdout + done.stderr
    wanted = {"retentionTimeInMinutes": 1441, "retentionSizeInMB": -1}
    assert _eventually(lambda: json.loads(admin("GET", f"{policy}/retention") or b"null"), wanted) == wanted
    assert " retention.ms=86430000 " in java_tool(tool, *of_topic, "--describe", "--all").stdout
    done = java_tool(tool, *of_topic, "--alter", "--delete-config", "retention.ms,max.message.bytes,entry.format")
    assert "Completed updating config" in done.stdout, done.stdout + done.stderr
    assert json.loads(admin("GET", f"{policy}/properties")) == {}
    assert _eventually(lambda: admin("GET", f"{policy}/retention"), b"") == b""
    node = java_tool(tool, *server, "--entity-type", "brokers", "--entity-name", "0", "--describe", "--all")
    assert "num.partitions" in node.stdout, node.stdout + node.stderr


def _eventually(ask: Callable[[], Any], wanted: Any) -> Any:
    """Brokers learn of policies by a topic of their own, a moment later."""
    deadline = time.monotonic() + LONG
    while (found := ask()) != wanted and time.monotonic() < deadline:
        time.sleep(0.1)
    return found


def test_the_cluster_tools_of_apache_kafka_4(cluster: Cluster, topic: str, tmp_path: Path) -> None:
    """What is asked of a cluster whose only replicas are sidecars: sizes, elections, reassignments, manual
    assignments.
    """
    server = ("--bootstrap-server", cluster.kafka)
    made = java_tool(
        "org.apache.kafka.tools.TopicCommand", *server, "--create", "--topic", topic, "--replica-assignment", "0,0"
    )
    assert f"Created topic {topic}" in made.stdout, made.stdout + made.stderr
    produce(cluster.kafka, topic, [b"x" * 1000] * 50, partition=1)
    sizes = java_tool("org.apache.kafka.tools.LogDirsCommand", *server, "--describe", "--topic-list", topic)
    (told,) = [json.loads(line) for line in sizes.stdout.splitlines() if line.startswith("{")]
    (directory,) = told["brokers"][0]["logDirs"]
    assert directory["error"] is None
    by_partition = {one["partition"]: one["size"] for one in directory["partitions"]}
    assert by_partition[f"{topic}-1"] > 50_000
    elected = java_tool(
        "org.apache.kafka.tools.LeaderElectionCommand",
        *server,
        "--election-type",
        "preferred",
        "--topic",
        topic,
        "--partition",
        "1",
    )
    assert "Valid replica already elected" in elected.stdout, elected.stdout + elected.stderr
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"version": 1, "partitions": [{"topic": topic, "partition": 0, "replicas": [0]}]}))
    tool = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
    done = java_tool(tool, *server, "--reassignment-json-file", str(plan), "--execute")
    assert "Successfully started" in done.stdout, done.stdout + done.stderr
    verified = java_tool(tool, *server, "--reassignment-json-file", str(plan), "--verify", "--preserve-throttles")
    assert f"Reassignment of partition {topic}-0 is completed" in verified.stdout, verified.stdout + verified.stderr
