"""`kafka-sidecar inspect` against a real Pulsar."""

from __future__ import annotations

import subprocess
import sys

from confluent_kafka import Consumer, Producer, TopicPartition

from integration.conftest import Cluster
from integration.kafka_clients import create
from integration.patience import LONG


def _inspect(cluster: Cluster, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {
        "KAFKA_SIDECAR_PULSAR__URL": cluster.pulsar_url,
        "KAFKA_SIDECAR_PULSAR__ADMIN_URL": cluster.admin_url,
    }
    command = [sys.executable, "-m", "kafka_sidecar", "inspect", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)


def test_what_was_written_and_committed_is_shown_as_it_is_stored(cluster: Cluster, topic: str) -> None:
    create(cluster.kafka, topic, 2)
    producer = Producer({"bootstrap.servers": cluster.kafka, "enable.idempotence": True})
    for number in range(5):
        producer.produce(topic, f"value {number}", partition=1)
    assert producer.flush(LONG) == 0
    group = f"inspected-{topic}"
    consumer = Consumer({"bootstrap.servers": cluster.kafka, "group.id": group})
    consumer.commit(offsets=[TopicPartition(topic, 1, 3)], asynchronous=False)
    consumer.close()

    entry = _inspect(cluster, "entry", topic, "--partition", "1", "--offset", "0")
    assert entry.returncode == 0, entry.stderr
    assert "written by        a sidecar" in entry.stdout
    assert "producer id" in entry.stdout
    partition = _inspect(cluster, "partition", topic, "--partition", "1")
    assert "folded            offsets 0 to 4" in partition.stdout, partition.stderr
    assert "producers         1" in partition.stdout
    records = _inspect(cluster, "group", group)
    assert f"topic='{topic}', partition=1" in records.stdout, records.stderr
    assert "offset=3" in records.stdout

    for arguments, sentence in (
        (("partition", "no-such-topic"), "no-such-topic"),
        (("partition", topic, "--partition", "2"), "there is no partition 2"),
        (("entry", topic, "--position", "x"), "write LEDGER:ENTRY"),
    ):
        refused = _inspect(cluster, *arguments)
        assert (refused.returncode, refused.stdout) == (2, "")
        assert sentence in refused.stderr
        assert "Traceback" not in refused.stderr
