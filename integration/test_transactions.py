"""Transactions with real clients: what is copied is copied once, whoever is aborted, killed or fenced on the way."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from integration.conftest import Cluster
from integration.kafka_clients import QUIET, bounds, create, produce, read
from integration.launcher.jars import class_path
from integration.launcher.kafka import OLDER_VERSIONS, VERSION, java_tool, tools

JAVA: Final = Path(__file__).parent / "programs" / "java"
COMMITTED: Final = "read_committed"
UNCOMMITTED: Final = "read_uncommitted"


def producer(cluster: Cluster, transactional_id: str, **settings: object) -> Producer:
    client = Producer({"bootstrap.servers": cluster.kafka, "transactional.id": transactional_id, "linger.ms": 0, **QUIET, **settings})
    client.init_transactions(60)
    return client


def values(cluster: Cluster, topic: str, count: int, isolation: str, partition: int = 0) -> list[bytes | None]:
    settings: dict[str, Any] = {"isolation.level": isolation}
    return [record.value for record in read(cluster.kafka, topic, count, partition, seconds=20, **settings)]


def consumer(cluster: Cluster, topic: str, isolation: str) -> Consumer:
    settings = {"bootstrap.servers": cluster.kafka, "group.id": "unused", "enable.auto.commit": False, "isolation.level": isolation}
    client = Consumer({**settings, **QUIET})
    client.assign([TopicPartition(topic, 0, 0)])
    return client


def test_what_is_aborted_is_seen_by_nobody_who_asks_for_what_is_committed(cluster: Cluster, topic: str) -> None:
    create(cluster.kafka, topic)
    client = producer(cluster, topic)
    for number in range(6):
        client.begin_transaction()
        client.produce(topic, b"%d" % number, partition=0)
        client.flush(30)  # else librdkafka throws away what it has not sent yet
        if number % 2:
            client.commit_transaction(60)
        else:
            client.abort_transaction(60)
    assert values(cluster, topic, 3, COMMITTED) == [b"1", b"3", b"5"]
    assert values(cluster, topic, 6, UNCOMMITTED) == [b"%d" % number for number in range(6)]


def test_an_open_transaction_holds_back_what_is_behind_it(cluster: Cluster, topic: str) -> None:
    create(cluster.kafka, topic)
    client = producer(cluster, topic)
    client.begin_transaction()
    client.produce(topic, b"open", partition=0)
    client.flush(30)
    produce(cluster.kafka, topic, [b"plain"])
    at = TopicPartition(topic, 0)
    everything, committed = consumer(cluster, topic, UNCOMMITTED), consumer(cluster, topic, COMMITTED)
    assert everything.get_watermark_offsets(at, timeout=30) == (0, 2)
    assert [message.value() for message in everything.consume(2, 20)] == [b"open", b"plain"]
    assert committed.get_watermark_offsets(at, timeout=30) == (0, 0)
    assert committed.poll(2) is None
    client.commit_transaction(60)
    assert [message.value() for message in committed.consume(2, 20)] == [b"open", b"plain"]
    for one in (everything, committed):
        one.close()


def test_a_zombie_is_fenced(cluster: Cluster, topic: str) -> None:
    create(cluster.kafka, topic)
    zombie = producer(cluster, topic)
    zombie.begin_transaction()
    zombie.produce(topic, b"of the zombie", partition=0)
    zombie.flush(30)
    successor = producer(cluster, topic)
    successor.begin_transaction()
    successor.produce(topic, b"of its successor", partition=0)
    successor.commit_transaction(60)
    zombie.produce(topic, b"and again", partition=0)
    with pytest.raises(KafkaException, match="fenced"):
        zombie.commit_transaction(60)
    assert values(cluster, topic, 1, COMMITTED) == [b"of its successor"]


def copier(cluster: Cluster, source: str, target: str, version: str, name: str, silence: int = 8) -> subprocess.Popen[str]:
    command = [
        "java", "-Xmx256m", "-cp", class_path(tools(version)), str(JAVA / "TransactionalCopier.java"), cluster.kafka, source, target, name,
        str(silence),
    ]  # fmt: skip
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize("version", [*OLDER_VERSIONS[1:], VERSION])
def test_java_copies_once_though_it_is_killed(cluster: Cluster, topic: str, version: str) -> None:
    """Clients of 3.x have transactions of version 1, those of 4.x of version 2 (KIP-890)."""
    source, target, count = topic, f"{topic}-copy", 600
    create(cluster.kafka, source, 2)
    create(cluster.kafka, target, 2)
    for partition in range(2):
        produce(cluster.kafka, source, [b"%d" % number for number in range(count)], partition)
    first = copier(cluster, source, target, version, target)
    assert first.stdout is not None
    for line in first.stdout:
        if line.startswith("copied") and int(line.split()[1]) > count // 2:
            break
    first.kill()
    second = copier(cluster, source, target, version, target)
    out, err = second.communicate(timeout=150)
    assert out.splitlines()[-1:] == ["done"], err[-2_000:]
    for partition in range(2):
        assert values(cluster, target, count, COMMITTED, partition) == [b"%d" % number for number in range(count)]
        _, end = bounds(cluster.kafka, target, partition)
        assert end > count + 10, "there are markers, and what was aborted"


def test_tools_list_describe_and_abort(cluster: Cluster, topic: str) -> None:
    create(cluster.kafka, topic)
    client = producer(cluster, topic)
    client.begin_transaction()
    client.produce(topic, b"hangs", partition=0)
    client.flush(30)

    def tool(*arguments: str) -> str:
        server = ("--bootstrap-server", cluster.kafka)
        done = java_tool("org.apache.kafka.tools.TransactionsCommand", *server, *arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    assert any(topic in line and "Ongoing" in line for line in tool("list").splitlines())
    described = tool("describe", "--transactional-id", topic)
    assert "Ongoing" in described
    assert f"{topic}-0" in described
    producers = tool("describe-producers", "--topic", topic, "--partition", "0").splitlines()
    assert producers[1].split()[-1] == "0", "where its transaction begins"
    tool("abort", "--topic", topic, "--partition", "0", "--start-offset", "0")
    produce(cluster.kafka, topic, [b"after"])
    assert values(cluster, topic, 1, COMMITTED) == [b"after"]


def test_one_that_its_producer_forgets_is_aborted_in_time(cluster: Cluster, topic: str) -> None:
    create(cluster.kafka, topic)
    client = producer(cluster, topic, **{"transaction.timeout.ms": 2_000})
    client.begin_transaction()
    client.produce(topic, b"forgotten", partition=0)
    client.flush(30)
    produce(cluster.kafka, topic, [b"after"])
    begun = time.monotonic()
    assert values(cluster, topic, 1, COMMITTED) == [b"after"]
    assert time.monotonic() - begun < 20
