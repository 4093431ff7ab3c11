"""Groups that Pulsar can see: an application moves between a Kafka and a Pulsar client, and goes on where it was."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import httpx
import pulsar
import pytest
from confluent_kafka import OFFSET_INVALID, Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from integration.conftest import Cluster
from integration.kafka_clients import QUIET, create, produce, read
from integration.launcher.sidecar import SidecarProcess
from integration.members import member
from integration.patience import LONG, wait_for


@pytest.fixture(scope="module")
def mirroring(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SidecarProcess]:
    sidecar = SidecarProcess(
        tmp_path_factory.mktemp("mirroring"),
        cluster.pulsar_url,
        cluster.admin_url,
        groups__mirror="seen-*",
        groups__namespace="public/mirrored",  # groups of its own: the other sidecar mirrors none
    )
    sidecar.start()
    yield sidecar
    assert sidecar.stop() == 0
    assert not sidecar.complaints()


def _subscriptions(cluster: Cluster, topic: str, partition: int = 0) -> dict[str, int]:
    """Subscription → backlog, as pulsar-admin shows it."""
    path = f"/admin/v2/persistent/public/default/{quote(topic)}-partition-{partition}/stats?getPreciseBacklog=true"
    stats = httpx.get(cluster.admin_url + path).json()
    return {
        name: one["msgBacklog"] for name, one in stats["subscriptions"].items() if not name.startswith("kafka-sidecar")
    }


def _commit(sidecar: SidecarProcess, group: str, topic: str, offset: int) -> None:
    client = Consumer({"bootstrap.servers": sidecar.address, "group.id": group, "enable.auto.commit": False, **QUIET})
    client.assign([TopicPartition(topic, 0)])
    deadline = time.monotonic() + LONG
    while True:
        try:
            client.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
            break
        except KafkaException as error:
            if error.args[0].code() != KafkaError.COORDINATOR_LOAD_IN_PROGRESS or time.monotonic() > deadline:
                raise
    client.close()


def test_commits_move_a_subscription_forth_and_back(cluster: Cluster, mirroring: SidecarProcess, topic: str) -> None:
    create(cluster.kafka, topic, 1)
    for _ in range(10):
        produce(cluster.kafka, topic, [b"x"])  # entries of their own
    group = f"seen-{topic}"
    for offset, backlog in ((4, 6), (10, 0), (2, 8)):
        _commit(mirroring, group, topic, offset)
        wait_for(lambda backlog=backlog: _subscriptions(cluster, topic).get(group) == backlog)  # type: ignore[misc]
    _commit(mirroring, f"unseen-{topic}", topic, 4)
    assert set(_subscriptions(cluster, topic)) == {group}


def test_only_entries_that_are_consumed_whole_are_acknowledged(
    cluster: Cluster, mirroring: SidecarProcess, topic: str
) -> None:
    create(cluster.kafka, topic, 1)
    produce(cluster.kafka, topic, [b"x"] * 10, settings={"linger.ms": 200})  # one entry
    produce(cluster.kafka, topic, [b"y"])
    group = f"seen-{topic}"
    for offset, backlog in ((5, 2), (10, 1), (11, 0)):
        _commit(mirroring, group, topic, offset)
        wait_for(lambda backlog=backlog: _subscriptions(cluster, topic).get(group) == backlog)  # type: ignore[misc]


def test_a_deleted_group_leaves_no_subscription_behind(cluster: Cluster, mirroring: SidecarProcess, topic: str) -> None:
    create(cluster.kafka, topic, 1)
    produce(cluster.kafka, topic, [b"x"])
    group = f"seen-{topic}"
    _commit(mirroring, group, topic, 1)
    wait_for(lambda: group in _subscriptions(cluster, topic))
    admin = AdminClient({"bootstrap.servers": mirroring.address})
    admin.delete_consumer_groups([group])[group].result(20)
    wait_for(lambda: group not in _subscriptions(cluster, topic))


def test_a_pulsar_application_goes_on_as_a_kafka_group_and_back(
    cluster: Cluster, mirroring: SidecarProcess, topic: str
) -> None:
    create(cluster.kafka, topic, 1)
    client = pulsar.Client(cluster.pulsar_url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
    name = f"seen-{topic}"
    try:
        native = client.subscribe(
            f"persistent://public/default/{topic}", name, initial_position=pulsar.InitialPosition.Earliest
        )
        writer = client.create_producer(f"persistent://public/default/{topic}-partition-0", batching_enabled=False)
        for number in range(20):
            writer.send(b"%d" % number)
        for _ in range(8):
            native.acknowledge(native.receive(10_000))
        wait_for(lambda: _subscriptions(cluster, topic).get(name) == 12)
        native.close()

        with member(mirroring.address, name, topic) as kafka:
            wait_for(lambda: len(kafka.read) == 12)
        assert kafka.read[0] == (0, 8), "it begins where the Pulsar application was"
        wait_for(lambda: _subscriptions(cluster, topic).get(name) == 0)
        for number in range(3):
            writer.send(b"later %d" % number)

        again = client.subscribe(f"persistent://public/default/{topic}", name)
        assert [again.receive(10_000).data() for _ in range(3)] == [b"later 0", b"later 1", b"later 2"]
    finally:
        client.close()


def test_a_group_without_a_subscription_begins_as_kafka_says(
    cluster: Cluster, mirroring: SidecarProcess, topic: str
) -> None:
    create(cluster.kafka, topic, 1)
    client = Consumer({"bootstrap.servers": mirroring.address, "group.id": f"seen-{topic}", **QUIET})
    (found,) = client.committed([TopicPartition(topic, 0)], timeout=20)
    client.close()
    assert found.offset == OFFSET_INVALID


def test_groups_whose_names_mean_something_else_to_pulsar_are_not_mirrored(
    cluster: Cluster, tmp_path: Path, topic: str
) -> None:
    groups = (".", "..", "%2e%2e", "__compaction", "pulsar.dedup")
    create(cluster.kafka, topic, 1)
    produce(cluster.kafka, topic, [b"x"] * 3)
    sidecar = SidecarProcess(
        tmp_path, cluster.pulsar_url, cluster.admin_url, groups__mirror="*", groups__namespace="public/all-mirrored"
    )
    sidecar.start()
    try:
        admin = AdminClient({"bootstrap.servers": sidecar.address})
        for group in groups:
            _commit(sidecar, group, topic, 2)
            admin.delete_consumer_groups([group])[group].result(20)
        assert sidecar.stop() == 0
    finally:
        sidecar.kill()
    assert "is not mirrored" in sidecar.log.read_text()
    assert [record.value for record in read(cluster.kafka, topic, 3)] == [b"x"] * 3, "the topic is as it was"
    assert _subscriptions(cluster, topic) == {}


def _command(cluster: Cluster, sidecar: SidecarProcess, *arguments: str) -> str:
    environment = {
        "KAFKA_SIDECAR_PULSAR__URL": cluster.pulsar_url,
        "KAFKA_SIDECAR_PULSAR__ADMIN_URL": cluster.admin_url,
    }
    command = [sys.executable, "-m", "kafka_sidecar", "groups", *arguments, "--bootstrap-server", sidecar.address]
    done = subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True, timeout=60, check=False
    )
    return f"{done.returncode}\n{done.stdout}{done.stderr}"


def test_groups_are_imported_and_exported_by_command(cluster: Cluster, mirroring: SidecarProcess, topic: str) -> None:
    create(cluster.kafka, topic, 2)
    for _ in range(10):
        produce(cluster.kafka, topic, [b"x"])
    group = f"moved-{topic}"  # one that is not mirrored
    _commit(mirroring, group, topic, 7)
    export = ("export", "--group", group)
    assert re.search(rf"{topic} +0 +7 +- +7\nNothing was changed", _command(cluster, mirroring, *export, "--dry-run"))
    assert _subscriptions(cluster, topic) == {}
    assert _command(cluster, mirroring, *export).endswith("1 partitions set\n")
    assert _subscriptions(cluster, topic) == {group: 3}

    admin = AdminClient({"bootstrap.servers": mirroring.address})
    admin.delete_consumer_groups([group])[group].result(20)
    imported = ("import", "--group", group, "--topic", topic)
    assert re.search(rf"{topic} +0 +- +7 +7\n", _command(cluster, mirroring, *imported, "--dry-run"))
    client = Consumer({"bootstrap.servers": mirroring.address, "group.id": group, **QUIET})
    assert client.committed([TopicPartition(topic, 0)], timeout=20)[0].offset == OFFSET_INVALID
    assert _command(cluster, mirroring, *imported).startswith("0\n")
    assert client.committed([TopicPartition(topic, 0)], timeout=20)[0].offset == 7
    client.close()
    assert "as it is" in _command(cluster, mirroring, *imported)


def test_commands_about_groups_say_in_a_sentence_what_is_wrong(
    cluster: Cluster, mirroring: SidecarProcess, topic: str
) -> None:
    assert "there is no topic nowhere" in _command(cluster, mirroring, "import", "--group", "g", "--topic", "nowhere")
    assert "Nothing to export" in _command(cluster, mirroring, "export", "--group", f"unknown-{topic}")
    create(cluster.kafka, topic, 1)
    produce(cluster.kafka, topic, [b"x"])
    client = pulsar.Client(cluster.pulsar_url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
    client.subscribe(
        f"persistent://public/default/{topic}", f"busy-{topic}", initial_position=pulsar.InitialPosition.Earliest
    )
    client.close()
    with member(mirroring.address, f"busy-{topic}", topic) as one:
        wait_for(lambda: len(one.read) == 1)
        assert "has members: stop them first" in _command(
            cluster, mirroring, "import", "--group", f"busy-{topic}", "--topic", topic
        )
    gone = SidecarProcess(mirroring.log.parent / "gone", cluster.pulsar_url, cluster.admin_url)
    assert f"the sidecar at {gone.address} can't be asked" in _command(cluster, gone, "export", "--group", "g")


def test_the_doctor_names_mirrored_groups_that_read_transactions_natively(
    cluster: Cluster, mirroring: SidecarProcess, topic: str
) -> None:
    """They are given what is aborted too."""
    create(cluster.kafka, topic, 1)
    create(cluster.kafka, f"{topic}-plain", 1)
    client = Producer({"bootstrap.servers": mirroring.address, "transactional.id": topic, **QUIET})
    client.init_transactions(60)
    client.begin_transaction()
    client.produce(topic, b"x", partition=0)
    client.commit_transaction(60)
    name = f"seen-{topic}"
    native = pulsar.Client(cluster.pulsar_url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
    try:
        for read_topic, subscription in ((topic, name), (topic, f"unseen-{topic}"), (f"{topic}-plain", name)):
            native.subscribe(f"persistent://public/default/{read_topic}", subscription)
        settings = {
            "KAFKA_SIDECAR_PULSAR__URL": cluster.pulsar_url,
            "KAFKA_SIDECAR_PULSAR__ADMIN_URL": cluster.admin_url,
            "KAFKA_SIDECAR_GROUPS__MIRROR": "seen-*",
            "KAFKA_SIDECAR_GROUPS__NAMESPACE": "public/mirrored",
        }
        command = [sys.executable, "-m", "kafka_sidecar", "doctor", "--topics"]
        done = subprocess.run(command, env=settings, capture_output=True, text=True, timeout=120, check=False)
    finally:
        native.close()
    assert done.returncode == 0, done.stdout + done.stderr
    told = [line for line in done.stdout.splitlines() if line.startswith("warning  transactions:")]
    assert len(told) == 1, done.stdout
    assert f"{topic} has transactions, and subscription {name} has native consumers there" in told[0]
