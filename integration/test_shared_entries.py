"""Many producers of small batches on one partition: their batches share entries, and each keeps its offset."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import pulsar

from integration.conftest import Cluster
from integration.kafka_clients import IN_FLIGHT, Acked, Acks, create, producer, read, wait_for_room
from integration.patience import LONG
from integration.support import admin
from kafka_sidecar.wire.records import split_batches

PRODUCERS = 40
RECORDS = 50


def write_crowd(address: str, topic: str) -> list[Acked]:
    """What each of many idempotent producers was told of its records, each record a batch of its own."""

    def write(name: int) -> list[Acked]:
        acks = Acks()
        client = producer(address, **{"linger.ms": 0, "batch.num.messages": 1})
        for number in range(RECORDS):
            wait_for_room(client, IN_FLIGHT)
            client.produce(topic, b"%d:%d" % (name, number), partition=0, callback=acks)
        assert client.flush(LONG) == 0
        assert not acks.failed
        return acks.acked

    with ThreadPoolExecutor(PRODUCERS) as pool:
        return [ack for acked in pool.map(write, range(PRODUCERS)) for ack in acked]


def check_crowd(address: str, topic: str, acked: list[Acked]) -> None:
    total = PRODUCERS * RECORDS
    records = read(address, topic, total)
    assert [record.offset for record in records] == list(range(total))
    by_offset = {record.offset: record.value for record in records}
    assert len(acked) == total
    assert all(by_offset[ack.offset] == ack.value for ack in acked)
    for name in range(PRODUCERS):
        mine = [record.value for record in records if (record.value or b"").startswith(b"%d:" % name)]
        assert mine == [b"%d:%d" % (name, number) for number in range(RECORDS)], "each producer's order"
    for offset in (1, total // 2, total - 2):
        assert [record.value for record in read(address, topic, 2, offset=offset)[:2]] == [
            by_offset[offset],
            by_offset[offset + 1],
        ]


def _batches_of_entries(cluster: Cluster, topic: str) -> list[int]:
    """As a native reader sees them: a message for each entry."""
    stats = json.loads(
        admin("GET", f"{cluster.admin_url}/admin/v2/persistent/public/default/{topic}-partition-0/internalStats")
    )
    client = pulsar.Client(cluster.pulsar_url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
    reader = client.create_reader(f"persistent://public/default/{topic}-partition-0", pulsar.MessageId.earliest)
    counts = [len(list(split_batches(reader.read_next(10_000).data()))) for _ in range(stats["currentLedgerEntries"])]
    client.close()
    return counts


def test_a_crowd_shares_entries_and_every_batch_keeps_its_offset(cluster: Cluster, topic: str) -> None:
    create(cluster.kafka, topic)
    acked = write_crowd(cluster.kafka, topic)
    check_crowd(cluster.kafka, topic, acked)
    counts = _batches_of_entries(cluster, topic)
    assert max(counts) > 1
    assert sum(counts) == len(acked)


def test_a_topic_that_takes_only_small_messages_gets_them_one_by_one(cluster: Cluster, topic: str) -> None:
    create(cluster.kafka, topic)
    admin("POST", f"{cluster.admin_url}/admin/v2/persistent/public/default/{topic}/maxMessageSize", b"300")
    check_crowd(cluster.kafka, topic, write_crowd(cluster.kafka, topic))
    assert set(_batches_of_entries(cluster, topic)) <= {1, 2}
    assert "takes no entry of this size" in cluster.sidecar.log.read_text()
