"""What topic configs ask of records, on a real cluster: times, keys and compression, by Kafka's clients."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any, get_type_hints

import pytest
from confluent_kafka import TIMESTAMP_CREATE_TIME, TIMESTAMP_LOG_APPEND_TIME, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource
from kio.index import load_request_schema

from integration.conftest import Cluster
from integration.kafka_clients import QUIET, consumer, create, producer, read
from integration.launcher.sidecar import SidecarProcess
from integration.patience import LONG
from integration.raw import RawConnection, milliseconds
from integration.support import admin
from kafka_sidecar.wire.records import CODEC_MASK, split_batches

FORMATS = pytest.mark.parametrize("entry_format", ["kafka", "pulsar"])


def write(
    address: str, topic: str, records: list[tuple[bytes | None, bytes, int]], **settings: Any
) -> list[tuple[int, int, str | None]]:
    """Keys, values and times; what the producer is told of each: offset, time, error."""
    told: list[tuple[int, int, str | None]] = []
    client = producer(address, **{"linger.ms": 50, **settings})
    for key, value, at in records:
        client.produce(
            topic,
            value,
            key,
            0,
            timestamp=at,
            on_delivery=lambda error, message: told.append(
                (message.offset(), message.timestamp()[1], error and error.name())
            ),
        )
    assert client.flush(LONG) == 0
    return told


def read_times(address: str, topic: str, count: int) -> list[tuple[int, int]]:
    client = consumer(address)
    client.assign([TopicPartition(topic, 0, 0)])
    found: list[tuple[int, int]] = []
    until = time.monotonic() + LONG
    while len(found) < count and time.monotonic() < until:
        message = client.poll(1)
        if message is not None and message.error() is None:
            found.append(message.timestamp())
    client.close()
    return found


def alter(address: str, topic: str, name: str, value: str) -> None:
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
    resource.add_incremental_config(ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET))
    client = AdminClient({"bootstrap.servers": address, **QUIET})  # must live as long as its futures
    next(iter(client.incremental_alter_configs([resource]).values())).result(20)


async def fetched(address: str, topic: str) -> bytes:
    """The batches of a topic as they come from the sidecar."""
    connection = await RawConnection.open(address)
    schema = load_request_schema(1, 4)
    wanted = get_type_hints(schema)["topics"].__args__[0]
    partition = get_type_hints(wanted)["partitions"].__args__[0](
        partition=0, fetch_offset=0, partition_max_bytes=1_000_000
    )
    answer = await connection.ask(
        1,
        4,
        replica_id=-1,
        max_wait=milliseconds(1_000),
        min_bytes=1,
        max_bytes=1_000_000,
        isolation_level=0,
        topics=(wanted(topic=topic, partitions=(partition,)),),
    )
    connection.close()
    (of_topic,) = answer.responses
    return bytes(of_topic.partitions[0].records)


@FORMATS
def test_log_append_time_is_that_of_pulsars_broker(
    cluster: Cluster, other: SidecarProcess, topic: str, entry_format: str
) -> None:
    create(cluster.kafka, topic, configs={"entry.format": entry_format, "message.timestamp.type": "LogAppendTime"})
    begun = int(time.time() * 1000)
    told = write(cluster.kafka, topic, [(b"k", b"%d" % number, 5) for number in range(10)])
    ended = int(time.time() * 1000)
    assert [(offset, error) for offset, _, error in told] == [(number, None) for number in range(10)]
    assert all(begun <= at <= ended for _, at, _ in told)
    for address in (cluster.kafka, other.address):
        assert read_times(address, topic, 10) == [(TIMESTAMP_LOG_APPEND_TIME, at) for _, at, _ in told]
    alter(cluster.kafka, topic, "message.timestamp.type", "CreateTime")
    assert [error for _, _, error in write(cluster.kafka, topic, [(b"k", b"later", 5)])] == [None]
    for address in (cluster.kafka, other.address):
        assert read_times(address, topic, 11)[10] == (TIMESTAMP_CREATE_TIME, 5)


@FORMATS
def test_a_compacted_topic_needs_keys_and_pulsar_keeps_all_of_it(
    cluster: Cluster, topic: str, entry_format: str
) -> None:
    create(cluster.kafka, topic, configs={"entry.format": entry_format, "cleanup.policy": "compact"})
    assert [error for _, _, error in write(cluster.kafka, topic, [(b"k", b"v", 5), (b"k", b"", 6)])] == [None, None]
    assert {error for _, _, error in write(cluster.kafka, topic, [(b"k", b"v", 5), (None, b"v", 5)])} == {
        "INVALID_RECORD"
    }
    assert [record.value for record in read(cluster.kafka, topic, 2)] == [b"v", b""]
    place = f"{cluster.admin_url}/admin/v2/persistent/public/default/{topic}"
    assert json.loads(admin("GET", f"{place}/retention")) == {"retentionTimeInMinutes": -1, "retentionSizeInMB": -1}
    threshold = admin("GET", f"{place}/compactionThreshold")
    assert (json.loads(threshold) if threshold else None) == (104_857_600 if entry_format == "pulsar" else None)


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd", "uncompressed"])
def test_a_topic_has_batches_of_one_compression(
    cluster: Cluster, other: SidecarProcess, topic: str, codec: str
) -> None:
    create(cluster.kafka, topic, configs={"compression.type": codec})
    values = [b"%d" % number * 100 for number in range(20)]
    for used in ("none", "zstd", "snappy"):
        write(cluster.kafka, topic, [(None, value, 5) for value in values], **{"compression.type": used})
    for address in (cluster.kafka, other.address):
        assert [record.value for record in read(address, topic, 60)] == values * 3
    stored = asyncio.run(fetched(other.address, topic))
    codecs = {header.attributes & CODEC_MASK for header, _ in split_batches(stored)}
    assert codecs == {["uncompressed", "gzip", "snappy", "lz4", "zstd"].index(codec)}


def test_times_that_are_out_of_bounds_are_refused(cluster: Cluster, topic: str) -> None:
    create(
        cluster.kafka,
        topic,
        configs={"message.timestamp.before.max.ms": "60000", "message.timestamp.after.max.ms": "86400000"},
    )
    now = int(time.time() * 1000)
    assert [error for _, _, error in write(cluster.kafka, topic, [(None, b"tomorrow", now + 80_000_000)])] == [None]
    assert [error for _, _, error in write(cluster.kafka, topic, [(None, b"yesterday", now - 80_000_000)])] == [
        "INVALID_TIMESTAMP"
    ]
