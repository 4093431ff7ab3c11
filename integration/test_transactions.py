"""Transactions with real clients: what is copied is copied once, whoever is aborted, killed or fenced on the way."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from typing import Any, Final

import pulsar
import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from integration.conftest import Cluster
from integration.kafka_clients import QUIET, bounds, create, produce, read
from integration.launcher.jvm import short_lived_tool
from integration.launcher.kafka import OLDER_VERSIONS, VERSION, java, java_tool, tools
from integration.launcher.programs import command as program
from integration.launcher.programs import java_program, skip_without
from integration.launcher.sidecar import SidecarProcess
from integration.patience import LONG
from kafka_sidecar.wire.control_records import EndTransactionMarker, write_marker
from tests.support.batches import batch

KAFKAS_OWN: Final = "TransactionalMessageCopier"  # of its system tests
COMMITTED: Final = "read_committed"
# After so long without a record a copier has copied all.
SILENCE_SECONDS: Final = "8"
UNCOMMITTED: Final = "read_uncommitted"


def producer(cluster: Cluster, transactional_id: str, **settings: object) -> Producer:
    client = Producer(
        {"bootstrap.servers": cluster.kafka, "transactional.id": transactional_id, "linger.ms": 0, **QUIET, **settings}
    )
    client.init_transactions(60)
    return client


def values(cluster: Cluster, topic: str, count: int, isolation: str, partition: int = 0) -> list[bytes | None]:
    settings: dict[str, Any] = {"isolation.level": isolation}
    return [record.value for record in read(cluster.kafka, topic, count, partition, seconds=20, **settings)]


def consumer(cluster: Cluster, topic: str, isolation: str) -> Consumer:
    settings = {
        "bootstrap.servers": cluster.kafka,
        "group.id": "unused",
        "enable.auto.commit": False,
        "isolation.level": isolation,
    }
    client = Consumer({**settings, **QUIET})
    client.assign([TopicPartition(topic, 0, 0)])
    return client


def test_what_is_aborted_is_seen_by_nobody_who_asks_for_what_is_committed(cluster: Cluster, topic: str) -> None:
    create(cluster.kafka, topic)
    client = producer(cluster, topic)
    for number in range(6):
        client.begin_transaction()
        client.produce(topic, b"%d" % number, partition=0)
        client.flush(LONG)  # else librdkafka throws away what it has not sent yet
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
    client.flush(LONG)
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
    zombie.flush(LONG)
    successor = producer(cluster, topic)
    successor.begin_transaction()
    successor.produce(topic, b"of its successor", partition=0)
    successor.commit_transaction(60)
    zombie.produce(topic, b"and again", partition=0)
    with pytest.raises(KafkaException, match="fenced"):
        zombie.commit_transaction(60)
    assert values(cluster, topic, 1, COMMITTED) == [b"of its successor"]


def copier(address: str, client: str, source: str, target: str) -> subprocess.Popen[str]:
    """A program that copies in transactions, a part of which it aborts, until nothing is left."""
    settings = [address, source, target, target, SILENCE_SECONDS]
    if client == KAFKAS_OWN:
        command = [
            *java(VERSION),
            "org.apache.kafka.tools.TransactionalMessageCopier",
            "--broker-list",
            address,
            "--input-topic",
            source,
            "--input-partition",
            "0",
            "--output-topic",
            target,
            "--consumer-group",
            f"copies-{target}",
            "--transactional-id",
            target,
            "--transaction-size",
            "40",
            "--transaction-timeout",
            "15000",
            "--group-mode",
            "--use-group-metadata",
            "--enable-random-aborts",
        ]
    elif client.startswith("java-"):
        version, _, protocol = client.removeprefix("java-").partition("-")
        bundle = tools(version)
        command = [
            *java_program("TransactionalCopier", bundle, short_lived_tool(bundle)),
            *settings,
            *([protocol] if protocol else []),
        ]
    else:
        skip_without(client)
        command = [*program(client), *settings]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def copied(line: str) -> int:
    """How many records it has copied, as it says."""
    found = re.search(r'^copied (\d+)|"totalProcessed":(\d+)', line)
    return int(found[1] or found[2]) if found else 0


# Clients of 3.x have transactions of version 1, those of 4.x of version 2 (KIP-890). The last of Java's is a member by
# KIP-848.
COPIERS = (
    f"java-{OLDER_VERSIONS[-1]}",
    f"java-{VERSION}",
    f"java-{VERSION}-consumer",
    KAFKAS_OWN,
    "copy-franz",
    "copy-sarama",
)


@pytest.fixture(scope="module")
def impatient(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SidecarProcess]:
    """A killed member of the consumer protocol keeps its partitions until its session ends (45 s by default)."""
    sidecar = SidecarProcess(
        tmp_path_factory.mktemp("impatient"),
        cluster.pulsar_url,
        cluster.admin_url,
        groups__namespace="public/impatient",
        groups__consumer_session_timeout_ms="6000",
    )
    sidecar.start()
    yield sidecar
    assert sidecar.stop() == 0
    assert not sidecar.complaints()


@pytest.mark.parametrize("client", COPIERS)
def test_clients_copy_once_though_they_are_killed(
    cluster: Cluster, impatient: SidecarProcess, topic: str, client: str
) -> None:
    source, target, count = topic, f"{topic}-copy", 600
    create(cluster.kafka, source, 2)
    create(cluster.kafka, target, 2)
    for partition in range(2):
        produce(cluster.kafka, source, [b"%d" % number for number in range(count)], partition)
    address = impatient.address if client.endswith("-consumer") else cluster.kafka
    first = copier(address, client, source, target)
    assert first.stdout is not None
    assert any(copied(line) > count // 2 for line in first.stdout)
    first.kill()
    second = copier(address, client, source, target)
    out, err = second.communicate(timeout=150)
    assert second.returncode == 0, out[-2_000:] + err[-2_000:]
    for partition in range(2):
        assert values(cluster, target, count, COMMITTED, partition) == [b"%d" % number for number in range(count)]
        _, end = bounds(cluster.kafka, target, partition)
        assert end > count + 10, "there are markers, and what was aborted"


def transactions_tool(cluster: Cluster, *arguments: str) -> str:
    done = java_tool("org.apache.kafka.tools.TransactionsCommand", "--bootstrap-server", cluster.kafka, *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_tools_list_describe_and_abort(cluster: Cluster, topic: str) -> None:
    create(cluster.kafka, topic)
    client = producer(cluster, topic)
    client.begin_transaction()
    client.produce(topic, b"hangs", partition=0)
    client.flush(LONG)
    assert any(topic in line and "Ongoing" in line for line in transactions_tool(cluster, "list").splitlines())
    described = transactions_tool(cluster, "describe", "--transactional-id", topic)
    assert "Ongoing" in described
    assert f"{topic}-0" in described
    producers = transactions_tool(cluster, "describe-producers", "--topic", topic, "--partition", "0").splitlines()
    assert producers[1].split()[-1] == "0", "where its transaction begins"
    transactions_tool(cluster, "abort", "--topic", topic, "--partition", "0", "--start-offset", "0")
    produce(cluster.kafka, topic, [b"after"])
    assert values(cluster, topic, 1, COMMITTED) == [b"after"]


def test_one_that_no_coordinator_knows_is_found_and_aborted(cluster: Cluster, topic: str) -> None:
    """As Kafka-on-Pulsar may have left it: nobody will ever end it."""
    create(cluster.kafka, topic)
    client = producer(cluster, topic)
    client.begin_transaction()
    client.produce(topic, b"committed", partition=0)
    client.commit_transaction(60)
    native = pulsar.Client(cluster.pulsar_url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
    writer = native.create_producer(f"persistent://public/default/{topic}-partition-0", batching_enabled=False)
    writer.send(
        batch(b"hangs", producer_id=4_711, epoch=0, sequence=0, transactional=True),
        properties={"entry.format": "kafka"},
    )
    native.close()
    client.begin_transaction()
    client.produce(topic, b"known", partition=0)
    client.flush(LONG)
    found = transactions_tool(
        cluster, "find-hanging", "--topic", topic, "--partition", "0", "--max-transaction-timeout", "0"
    ).splitlines()
    assert [line.split()[:3] for line in found[1:]] == [[topic, "0", "4711"]], "and not the one that is known"
    start = found[1].split()[5]
    transactions_tool(cluster, "abort", "--topic", topic, "--partition", "0", "--start-offset", start)
    client.commit_transaction(60)
    assert values(cluster, topic, 2, COMMITTED) == [b"committed", b"known"]


def test_what_others_wrote_in_transactions_is_found_in_old_data(cluster: Cluster, topic: str) -> None:
    """Kafka-on-Pulsar, or replication from another cluster: nobody has announced it, and it stands far before the
    end.
    """
    create(cluster.kafka, topic)
    native = pulsar.Client(cluster.pulsar_url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
    writer = native.create_producer(f"persistent://public/default/{topic}-partition-0", batching_enabled=False)
    for committed, value in ((False, b"gone"), (True, b"kept")):
        for data in (
            batch(value, producer_id=4_712, epoch=0, sequence=int(committed), transactional=True),
            write_marker(4_712, 0, EndTransactionMarker(committed, 0), 1_000),
        ):
            writer.send(data, properties={"entry.format": "kafka"})
    for _ in range(100):
        writer.send(b"plain")
    native.close()
    assert values(cluster, topic, 101, COMMITTED) == [b"kept"] + [b"plain"] * 100
    assert values(cluster, topic, 102, UNCOMMITTED)[:2] == [b"gone", b"kept"]


def test_one_that_its_producer_forgets_is_aborted_in_time(cluster: Cluster, topic: str) -> None:
    create(cluster.kafka, topic)
    client = producer(cluster, topic, **{"transaction.timeout.ms": 2_000})
    client.begin_transaction()
    client.produce(topic, b"forgotten", partition=0)
    client.flush(LONG)
    produce(cluster.kafka, topic, [b"after"])
    assert values(cluster, topic, 1, COMMITTED) == [b"after"]
