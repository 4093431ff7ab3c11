"""DeleteRecords on a real cluster: every sidecar obeys, and after a restart."""

from __future__ import annotations

import json
from pathlib import Path

from confluent_kafka import KafkaError, TopicPartition
from confluent_kafka.admin import AdminClient

from integration.conftest import Cluster, new_topic
from integration.kafka_clients import QUIET, bounds, consumer, create, produce, read
from integration.launcher.kafka import java_tool
from integration.launcher.sidecar import SidecarProcess
from integration.patience import wait_for
from integration.support import unload


def delete_before(address: str, topic: str, offset: int) -> int:
    client = AdminClient({"bootstrap.servers": address, **QUIET})
    return int(next(iter(client.delete_records([TopicPartition(topic, 0, offset)]).values())).result(20).low_watermark)


def test_deleted_records_are_gone_for_everybody_and_for_good(
    cluster: Cluster, other: SidecarProcess, topic: str
) -> None:
    create(cluster.kafka, topic)
    values = [b"%d" % number for number in range(100)]
    produce(cluster.kafka, topic, values, settings={"batch.num.messages": 7, "linger.ms": 20})
    for address in (cluster.kafka, other.address):
        assert bounds(address, topic) == (0, 100)
    for through, seen_by, offset in ((cluster.kafka, other.address, 40), (other.address, cluster.kafka, 75)):
        assert delete_before(through, topic, offset) == offset
        assert bounds(through, topic)[0] == offset
        wait_for(lambda seen_by=seen_by, offset=offset: bounds(seen_by, topic)[0] == offset)  # type: ignore[misc]
        assert [record.value for record in read(seen_by, topic, 100 - offset, offset=offset)] == values[offset:]
    late = consumer(other.address, **{"auto.offset.reset": "error"})
    late.assign([TopicPartition(topic, 0, 30)])
    message = late.poll(20)
    assert message is not None
    assert message.error() is not None
    assert message.error().code() == KafkaError._AUTO_OFFSET_RESET
    late.close()
    assert delete_before(cluster.kafka, topic, 10) == 75, "it never moves back"
    unload(cluster.admin_url, topic)
    other.stop()
    other.start()
    assert bounds(other.address, topic) == (75, 100)
    assert delete_before(other.address, topic, -1) == 100
    assert bounds(other.address, topic) == (100, 100)
    assert [ack.offset for ack in produce(other.address, topic, [b"next"])] == [100]
    assert [record.value for record in read(other.address, topic, 1, offset=100)] == [b"next"]


def test_a_topic_of_the_same_name_begins_at_its_beginning(cluster: Cluster, other: SidecarProcess) -> None:
    topic = new_topic()
    # Pulsar lists a sidecar that stands for coordinator, and every sidecar that is listed hears of deletions before the
    # client does.
    consumer(other.address, **{"group.id": topic}).committed([TopicPartition(topic, 0)], 60)
    for turn in range(2):
        create(cluster.kafka, topic)
        produce(cluster.kafka, topic, [b"%d" % turn] * 10)
        assert [record.value for record in read(other.address, topic, 10)] == [b"%d" % turn] * 10
        assert delete_before(cluster.kafka, topic, 5) == 5
        client = AdminClient({"bootstrap.servers": cluster.kafka, **QUIET})
        client.delete_topics([topic])[topic].result(20)


def test_the_delete_records_tool_of_apache_kafka_4(cluster: Cluster, topic: str, tmp_path: Path) -> None:
    create(cluster.kafka, topic, 2)
    produce(cluster.kafka, topic, [b"x"] * 10)
    wanted = tmp_path / "offsets.json"
    wanted.write_text(json.dumps({"version": 1, "partitions": [{"topic": topic, "partition": 0, "offset": 4}]}))
    done = java_tool(
        "org.apache.kafka.tools.DeleteRecordsCommand",
        "--bootstrap-server",
        cluster.kafka,
        "--offset-json-file",
        str(wanted),
    )
    assert f"partition: {topic}-0\tlow_watermark: 4" in done.stdout, done.stdout + done.stderr
    assert bounds(cluster.kafka, topic) == (4, 10)
