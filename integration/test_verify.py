"""`kafka-sidecar verify` against a real Pulsar: what was written by all kinds of writers, through faults, is accounted
for.
"""

from __future__ import annotations

import json
import subprocess
import sys

import pulsar
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient

from integration.conftest import Cluster
from integration.kafka_clients import QUIET, create, produce
from integration.support import unload


def _verify(cluster: Cluster, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {
        "KAFKA_SIDECAR_PULSAR__URL": cluster.pulsar_url,
        "KAFKA_SIDECAR_PULSAR__ADMIN_URL": cluster.admin_url,
    }
    command = [sys.executable, "-m", "kafka_sidecar", "verify", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)


def test_a_topic_that_everybody_has_written_to_is_accounted_for(cluster: Cluster, topic: str) -> None:
    create(cluster.kafka, topic, 2)
    place = f"persistent://public/default/{topic}-partition-1"
    native = pulsar.Client(cluster.pulsar_url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
    for _ in range(3):
        produce(
            cluster.kafka,
            topic,
            [b"%d" % number for number in range(200)],
            partition=1,
            settings={"batch.num.messages": 7},
        )
        writer = native.create_producer(place, batching_enabled=False, chunking_enabled=True)
        writer.send(b"x" * 6_000_000)
        writer.close()
        batched = native.create_producer(place, batching_enabled=True, compression_type=pulsar.CompressionType.LZ4)
        for number in range(50):
            batched.send_async(b"%d" % number, None)
        batched.flush()
        batched.close()
        unload(cluster.admin_url, topic, 1)
    native.close()
    client = AdminClient({"bootstrap.servers": cluster.kafka, **QUIET})
    next(iter(client.delete_records([TopicPartition(topic, 1, 100)]).values())).result(20)

    done = _verify(cluster, topic)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{topic}-partition-1: offsets 0 to 755," in done.stdout
    assert "100 offsets that clients have deleted" in done.stdout
    assert "2 partitions," in done.stdout
    assert "every index is accounted for" in done.stdout

    told = json.loads(_verify(cluster, topic, "--partition", "1", "--json").stdout)
    (partition,) = told["partitions"]
    assert (told["faults"], partition["next_offset"], partition["counts"]) == (0, 756, {"moved_start": 100})

    for arguments, sentence in (
        (("no-such-topic",), "no-such-topic"),
        ((topic, "--partition", "2"), "there is no such partition"),
        ((), "name a topic"),
        (("--namespace", "public"), "write tenant/namespace"),
    ):
        refused = _verify(cluster, *arguments)
        assert (refused.returncode, refused.stdout) == (2, "")
        assert sentence in refused.stderr
        assert "Traceback" not in refused.stderr
