"""What Kafka-on-Pulsar stored in `__consumer_offsets`: 50 partitions, record batches under one key per group."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import httpx
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from confluent_kafka import OFFSET_INVALID, Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

from integration.conftest import Cluster
from integration.kafka_clients import QUIET, create
from integration.launcher.sidecar import SidecarProcess
from integration.patience import LONG
from kafka_sidecar.coordination.shards import shard_of
from kafka_sidecar.groups.records import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
    Record,
    write_key,
    write_value,
)
from kafka_sidecar.pulsar.client import PulsarClient
from kafka_sidecar.pulsar.messages import write_batch

PARTITIONS = 50
# Two of these have a negative hash, for which Kafka itself would take another partition.
GROUPS = ["orders", "my-group", "polygenelubricants"]


def _batch(record: Record) -> bytes:
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=0,
        is_transactional=0,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        batch_size=10**6,
    )
    assert record.value is not None
    builder.append(0, 1_000, write_key(record.key), write_value(record.value), [])
    return bytes(builder.build())


def _dummy_key(group: str) -> bytes:
    return write_key(OffsetCommitKey(group, "", -1))


class _Receipts:
    """Sees the third receipt."""

    def __init__(self) -> None:
        self.all = asyncio.Event()

    def on_receipt(self, sequence: int, ledger: int, entry: int) -> None:
        if sequence == 2:
            self.all.set()

    def on_send_error(self, sequence: int, code: int, message: str) -> None:
        raise AssertionError(message)

    def on_end(self, reason: Exception) -> None: ...


async def _write_as_kop(url: str, namespace: str, topic: str) -> None:
    """Two commits of each group, of which compaction would keep the second alone, and the group's own record."""
    client = PulsarClient(url)
    stored_name = f"persistent://public/default/{topic}"
    for group in GROUPS:
        partition = f"persistent://{namespace}/__consumer_offsets-partition-{shard_of(group, PARTITIONS)}"
        receipts = _Receipts()
        producer = await client.producer(partition, f"kop-{group}", receipts)
        now = int(time.time() * 1000)
        # The first version of offsets, with an end of its own that is long past; then one without.
        first = Record(OffsetCommitKey(group, stored_name, 0), OffsetCommitValue(11, -1, "a", now, 1_000))
        second = Record(OffsetCommitKey(group, stored_name, 1), OffsetCommitValue(22, -1, "b", now, -1))
        itself = Record(GroupMetadataKey(group), GroupMetadataValue("consumer", 3, None, None, now, ()))
        keys = (_dummy_key(group), _dummy_key(group), write_key(itself.key))
        for sequence, (key, record) in enumerate(zip(keys, (first, second, itself), strict=True)):
            producer.send_batch(sequence, 1, write_batch([(key, _batch(record))], now))
        await receipts.all.wait()
    await client.close()


def _compact(admin_url: str, topic: str) -> None:
    path = f"{admin_url}/admin/v2/persistent/{topic}/compaction"
    httpx.put(path).raise_for_status()
    until = time.monotonic() + LONG
    while httpx.get(path).json()["status"] == "RUNNING":
        assert time.monotonic() < until
        time.sleep(0.2)
    assert httpx.get(path).json()["status"] == "SUCCESS"


def _committed(address: str, group: str, topic: str) -> list[int]:
    client = Consumer({"bootstrap.servers": address, "group.id": group, **QUIET})
    found = client.committed([TopicPartition(topic, 0), TopicPartition(topic, 1)], timeout=30)
    client.close()
    return [one.offset for one in found]


def test_groups_of_kafka_on_pulsar_go_on_where_they_were(cluster: Cluster, topic: str, tmp_path: Path) -> None:
    create(cluster.kafka, topic, 2)
    namespace = f"public/kop-{topic}"
    httpx.put(f"{cluster.admin_url}/admin/v2/namespaces/{namespace}").raise_for_status()
    offsets_topic = f"{cluster.admin_url}/admin/v2/persistent/{namespace}/__consumer_offsets"
    httpx.put(
        f"{offsets_topic}/partitions", content=str(PARTITIONS), headers={"content-type": "application/json"}
    ).raise_for_status()
    asyncio.run(_write_as_kop(cluster.pulsar_url, namespace, topic))

    def sidecar(name: str) -> SidecarProcess:
        return SidecarProcess(tmp_path / name, cluster.pulsar_url, cluster.admin_url, groups__namespace=namespace)

    first = sidecar("first")
    first.start()
    for group in GROUPS:
        assert _committed(first.address, group, topic) == [11, 22]
    admin = AdminClient({"bootstrap.servers": first.address})
    assert set(GROUPS) <= {one.group_id for one in admin.list_consumer_groups().result(30).valid}
    admin.delete_consumer_groups(["orders"])["orders"].result(30)
    assert first.stop() == 0
    for group in GROUPS:
        _compact(cluster.admin_url, f"{namespace}/__consumer_offsets-partition-{shard_of(group, PARTITIONS)}")
    second = sidecar("second")
    second.start()
    for group in GROUPS[1:]:
        assert _committed(second.address, group, topic) == [11, 22]
    assert _committed(second.address, "orders", topic) == [OFFSET_INVALID] * 2, "a deleted group has come back"
    assert second.stop() == 0
    assert "written again" not in second.log.read_text(), "once is enough"
