"""Native Pulsar clients and Kafka clients on one topic at the same time."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pulsar
import pytest

from integration.conftest import Cluster
from integration.kafka_clients import Acked, Record, create, produce, read
from integration.launcher.sidecar import SidecarProcess


@pytest.fixture
def native(cluster: Cluster) -> Iterator[pulsar.Client]:
    client = pulsar.Client(cluster.pulsar_url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
    yield client
    client.close()


def _partition(topic: str, index: int = 0) -> str:
    return f"persistent://public/default/{topic}-partition-{index}"


@pytest.mark.parametrize("compression", [pulsar.CompressionType.NONE, pulsar.CompressionType.ZSTD])
def test_a_chunked_message_is_a_record_at_its_last_chunk(
    cluster: Cluster, native: pulsar.Client, topic: str, tmp_path: Path, compression: pulsar.CompressionType
) -> None:
    create(cluster.kafka, topic)
    produce(cluster.kafka, topic, [b"before"])
    writer = native.create_producer(
        _partition(topic), batching_enabled=False, chunking_enabled=True, compression_type=compression
    )
    large = os.urandom(11_000_000)
    writer.send(large, partition_key="key", properties={"p": "text"}, event_timestamp=1_700_000_000_000)
    writer.close()
    (after,) = produce(cluster.kafka, topic, [b"after"])
    assert after.offset == 4
    other = SidecarProcess(tmp_path, cluster.pulsar_url, cluster.admin_url)
    other.start()
    for address in (cluster.kafka, other.address):
        records = read(address, topic, 3)
        assert [record.offset for record in records] == [0, 3, 4]
        assert records[1] == Record(3, large, b"key", (("p", b"text"),), 1_700_000_000_000)
        alone = read(address, topic, 2, offset=2)[0]
        assert alone == records[1]
    assert other.stop() == 0


def test_an_encrypted_message_is_opaque_and_a_schema_is_named(
    cluster: Cluster, native: pulsar.Client, topic: str, tmp_path: Path
) -> None:
    public, private = tmp_path / "public.pem", tmp_path / "private.pem"
    subprocess.run(["openssl", "genrsa", "-out", private, "2048"], check=True, capture_output=True)
    subprocess.run(["openssl", "rsa", "-in", private, "-pubout", "-out", public], check=True, capture_output=True)
    create(cluster.kafka, topic)
    keys = pulsar.CryptoKeyReader(str(public), str(private))
    writer = native.create_producer(
        _partition(topic), batching_enabled=True, encryption_key="my-key", crypto_key_reader=keys
    )
    for number in range(3):
        writer.send_async(b"secret %d" % number, None)
    writer.flush()
    writer.close()
    (record,) = read(cluster.kafka, topic, 1)
    assert record.offset == 2
    headers = dict(record.headers)
    assert headers["pulsar.encryption.keys"] == b"my-key"
    assert b"secret" not in (record.value or b"")
    typed = native.create_producer(_partition(topic), schema=pulsar.schema.StringSchema())
    typed.send("of a schema")
    typed.close()
    (record,) = read(cluster.kafka, topic, 1, offset=3)
    assert record.value == b"of a schema"
    assert [name for name, _ in record.headers] == ["pulsar.schema.version"]


@pytest.mark.parametrize("batched", [False, True])
@pytest.mark.parametrize(
    "compression",
    [
        pulsar.CompressionType.NONE,
        pulsar.CompressionType.LZ4,
        pulsar.CompressionType.ZLib,
        pulsar.CompressionType.ZSTD,
        pulsar.CompressionType.SNAPPY,
    ],
)
def test_native_messages_are_records(
    cluster: Cluster, native: pulsar.Client, topic: str, compression: pulsar.CompressionType, batched: bool
) -> None:
    create(cluster.kafka, topic)
    writer = native.create_producer(
        _partition(topic), compression_type=compression, batching_enabled=batched, batching_max_publish_delay_ms=50
    )
    for number in range(20):
        writer.send_async(
            b"native %d" % number,
            None,
            partition_key=f"k{number}",
            properties={"p": str(number)},
            event_timestamp=1_700_000_000_000 + number,
        )
    writer.flush()
    writer.close()
    records = read(cluster.kafka, topic, 20)
    assert [record.offset for record in records] == list(range(20))
    assert [record.value for record in records] == [b"native %d" % number for number in range(20)]
    assert [record.key for record in records] == [b"k%d" % number for number in range(20)]
    assert [record.headers for record in records] == [(("p", b"%d" % number),) for number in range(20)]
    assert [record.timestamp for record in records] == [1_700_000_000_000 + number for number in range(20)]


def test_a_native_reader_sees_one_message_per_kafka_batch(cluster: Cluster, native: pulsar.Client, topic: str) -> None:
    produce(cluster.kafka, topic, [b"from kafka"] * 10)
    reader = native.create_reader(_partition(topic), pulsar.MessageId.earliest)
    message = reader.read_next(10_000)
    assert message.properties()["entry.format"] == "kafka"
    assert message.data().count(b"from kafka") >= 1
    reader.close()


def test_offsets_stay_continuous_with_native_and_kafka_writers_at_once(
    cluster: Cluster, native: pulsar.Client, topic: str
) -> None:
    create(cluster.kafka, topic)
    acked: list[list[Acked]] = []

    def write_kafka(name: int) -> None:
        acked.append(
            produce(
                cluster.kafka,
                topic,
                [b"kafka %d %d" % (name, number) for number in range(1000)],
                settings={"linger.ms": name},
            )
        )

    def write_native() -> None:
        writer = native.create_producer(_partition(topic), batching_enabled=True, batching_max_messages=7)
        for number in range(1000):
            writer.send_async(b"native %d" % number, None)
        writer.flush()
        writer.close()

    threads = [threading.Thread(target=write_kafka, args=(name,)) for name in (0, 3)] + [
        threading.Thread(target=write_native)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(90)
    records = read(cluster.kafka, topic, 3000)
    assert [record.offset for record in records] == list(range(3000))
    by_offset = {record.offset: record.value for record in records}
    told = [ack for acks in acked for ack in acks]
    assert len(told) == 2000
    assert all(by_offset[ack.offset] == ack.value for ack in told)
    natives = [record.value for record in records if (record.value or b"").startswith(b"native")]
    assert natives == [b"native %d" % number for number in range(1000)]
