"""Topics that are not as others: Kafka's internal one, and one that Pulsar has lost a part of."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
import uuid
from pathlib import Path

import pulsar
import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewPartitions

from integration.conftest import Cluster, new_topic
from integration.kafka_clients import QUIET, consumer, create, produce, producer, read
from integration.launcher.sidecar import SidecarProcess
from integration.patience import LONG, wait_for
from integration.support import admin
from kafka_sidecar.groups.records import OffsetCommitKey, OffsetCommitValue, read_record
from kafka_sidecar.pulsar.admin import PulsarAdmin
from kafka_sidecar.pulsar.errors import Refused
from kafka_sidecar.topics.catalog import Catalog
from kafka_sidecar.topics.names import TopicName, TopicNames

OFFSETS = "__consumer_offsets"


def test_the_offsets_of_groups_are_read_as_an_internal_topic_and_nothing_else(cluster: Cluster, topic: str) -> None:
    create(cluster.kafka, topic)
    produce(cluster.kafka, topic, [b"x"] * 3)
    group = f"seen-{topic}"
    client = Consumer({"bootstrap.servers": cluster.kafka, "group.id": group, "enable.auto.commit": False, **QUIET})
    for offset in (1, 3):
        client.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
    client.close()
    kafka = AdminClient({"bootstrap.servers": cluster.kafka, **QUIET})
    partitions = kafka.list_topics(timeout=20).topics[OFFSETS].partitions
    reader = consumer(cluster.kafka)
    reader.assign([TopicPartition(OFFSETS, index, 0) for index in partitions])
    committed: list[int] = []
    deadline = time.monotonic() + LONG
    while committed != [1, 3] and time.monotonic() < deadline:
        message = reader.poll(1)
        if message is None or message.error() is not None or message.key() is None:
            continue
        record = read_record(message.key(), message.value())
        if record is not None and isinstance(record.key, OffsetCommitKey) and record.key.group == group:
            assert isinstance(record.value, OffsetCommitValue)
            committed.append(record.value.offset)
    reader.close()
    assert committed == [1, 3]
    refused: list[str] = []
    writer = producer(cluster.kafka)
    writer.produce(
        OFFSETS, b"x", partition=0, on_delivery=lambda error, _: refused.append(error.name() if error else "")
    )
    writer.flush(LONG)
    assert refused == ["TOPIC_EXCEPTION"]
    changes = (kafka.create_partitions([NewPartitions(OFFSETS, len(partitions) + 1)]), kafka.delete_topics([OFFSETS]))
    for change in changes:
        with contextlib.suppress(KafkaException):
            change[OFFSETS].result(20)
            raise AssertionError("it was changed")
    assert set(kafka.list_topics(timeout=20).topics[OFFSETS].partitions) == set(partitions)


def test_a_topic_that_has_lost_a_partition_is_named_and_does_not_hold_up_others(cluster: Cluster) -> None:
    half, whole = new_topic(), new_topic()
    create(cluster.kafka, half, 2)
    create(cluster.kafka, whole, 1)
    place = f"{cluster.admin_url}/admin/v2/persistent/public/default"
    admin("DELETE", f"{place}/{half}-partition-0?force=true")
    kafka = AdminClient({"bootstrap.servers": cluster.kafka, **QUIET})

    def is_named() -> bool:
        """What the sidecar knows of a topic is fresh for some seconds; then a client that wants it makes the sidecar
        look.
        """
        assert whole in kafka.list_topics(timeout=20).topics
        kafka.list_topics(half, timeout=20)
        return f"topic persistent://public/default/{half} can't be described" in cluster.sidecar.log.read_text()

    wait_for(is_named)
    assert [ack.offset for ack in produce(cluster.kafka, whole, [b"x"])] == [0]
    kafka.delete_topics([half], operation_timeout=60)[half].result(60)
    assert half not in kafka.list_topics(timeout=20).topics


def test_a_topic_without_partitions_and_topics_of_other_namespaces_are_topics(cluster: Cluster, tmp_path: Path) -> None:
    """One made by a native application, used by Kafka clients for all that they do with topics."""
    namespace = f"public/other-{uuid.uuid4().hex[:8]}"
    admin("PUT", f"{cluster.admin_url}/admin/v2/namespaces/{namespace}")
    admin("PUT", f"{cluster.admin_url}/admin/v2/persistent/{namespace}/plain")
    admin("PUT", f"{cluster.admin_url}/admin/v2/persistent/{namespace}/parts/partitions", b"2")
    plain, parts = f"persistent://{namespace}/plain", f"persistent://{namespace}/parts"
    sidecar = SidecarProcess(
        tmp_path,
        cluster.pulsar_url,
        cluster.admin_url,
        kafka__listed_namespaces=namespace,
        groups__mirror="*",
        groups__namespace=f"public/groups-{uuid.uuid4().hex[:8]}",
    )
    sidecar.start()
    kafka = AdminClient({"bootstrap.servers": sidecar.address, **QUIET})

    def partitions_of(name: str) -> int:
        topic = kafka.list_topics(timeout=20).topics.get(name)
        return 0 if topic is None else len(topic.partitions)

    wait_for(lambda: (partitions_of(plain), partitions_of(parts)) == (1, 2))
    assert plain not in AdminClient({"bootstrap.servers": cluster.kafka, **QUIET}).list_topics(timeout=20).topics

    native = pulsar.Client(cluster.pulsar_url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
    writer = native.create_producer(plain)
    writer.send(b"native")
    short = f"{namespace}/plain"  # another form of the same name
    assert [ack.offset for ack in produce(sidecar.address, short, [b"a", b"b"])] == [1, 2]
    writer.send(b"native again")
    native.close()
    for name in (plain, short):
        assert [record.value for record in read(sidecar.address, name, 4)] == [b"native", b"a", b"b", b"native again"]

    group = f"mirrored-{new_topic()}"
    client = Consumer({"bootstrap.servers": sidecar.address, "group.id": group, "enable.auto.commit": False, **QUIET})
    client.commit(offsets=[TopicPartition(short, 0, 3)], asynchronous=False)
    assert client.committed([TopicPartition(plain, 0)], timeout=20)[0].offset == 3, "a topic has one committed offset"
    client.close()
    stats = f"{cluster.admin_url}/admin/v2/persistent/{namespace}/plain/stats?getPreciseBacklog=true"
    wait_for(lambda: json.loads(admin("GET", stats))["subscriptions"].get(group, {}).get("msgBacklog") == 1)

    with pytest.raises(KafkaException, match="without partitions"):
        kafka.create_partitions([NewPartitions(plain, 2)])[plain].result(20)
    resource = ConfigResource(ConfigResource.Type.TOPIC, plain)
    resource.add_incremental_config(ConfigEntry("entry.format", "pulsar", incremental_operation=AlterConfigOpType.SET))
    next(iter(kafka.incremental_alter_configs([resource]).values())).result(20)
    assert (
        next(iter(kafka.describe_configs([ConfigResource(ConfigResource.Type.TOPIC, plain)]).values()))
        .result(20)["entry.format"]
        .value
        == "pulsar"
    )
    kafka.delete_topics([plain, parts])[plain].result(20)
    wait_for(
        lambda: plain not in AdminClient({"bootstrap.servers": sidecar.address, **QUIET}).list_topics(timeout=20).topics
    )
    assert sidecar.stop() == 0


def test_a_consumer_of_a_topic_that_is_made_again_goes_on_with_the_new_one(cluster: Cluster, tmp_path: Path) -> None:
    """librdkafka, which commits once more what it had read of the old one: nobody is silent, and nothing of the new one
    is missed.
    """
    topic = new_topic()
    sidecar = SidecarProcess(tmp_path, cluster.pulsar_url, cluster.admin_url)
    sidecar.start()
    client = Consumer(
        {
            "bootstrap.servers": sidecar.address,
            "group.id": f"again-{topic}",
            "auto.offset.reset": "earliest",
            "topic.metadata.refresh.interval.ms": 1_000,
            "auto.commit.interval.ms": 500,
            **QUIET,
        }
    )
    client.subscribe([topic])
    kafka = AdminClient({"bootstrap.servers": cluster.kafka, **QUIET})
    for turn in range(3):
        count = 50 - 20 * turn  # fewer each time: what was read of the old one lies beyond its end
        create(cluster.kafka, topic)
        produce(cluster.kafka, topic, [b"%d of turn %d" % (number, turn) for number in range(count)])
        found: set[bytes] = set()
        until = time.monotonic() + LONG
        while len(found) < count and time.monotonic() < until:
            message = client.poll(0.5)
            if message is not None and message.error() is None and message.value().endswith(b"turn %d" % turn):
                found.add(message.value())
        assert len(found) == count, f"turn {turn}"
        kafka.delete_topics([topic])[topic].result(20)
    client.close()
    assert sidecar.stop() == 0


def test_a_new_topic_that_somebody_writes_is_not_deleted(cluster: Cluster, topic: str) -> None:
    """It is asked for when its configs can't be stored. Pulsar deletes one partition after another, up to the one that
    is in use.
    """
    create(cluster.kafka, topic, 3)
    client = pulsar.Client(cluster.pulsar_url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
    writer = client.create_producer(f"persistent://public/default/{topic}-partition-1")
    writer.send(b"kept")

    async def unmake() -> None:
        pulsar_admin = PulsarAdmin(cluster.admin_url)
        topics = Catalog(pulsar_admin, TopicNames("public/default", "public/__kafka"), time.monotonic)
        try:
            await topics.unmake(TopicName("public", "default", topic))
        finally:
            await pulsar_admin.close()

    with pytest.raises(Refused):
        asyncio.run(unmake())
    produce(cluster.kafka, topic, [b"x"] * 3)
    assert read(cluster.kafka, topic, 1, partition=1)[0].value == b"kept"
    writer.close()
    client.close()
