"""Format pulsar on a real cluster: Kafka's writers, native and Kafka's readers, both ways on one topic."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pulsar
import pytest

from integration.conftest import Cluster
from integration.exactly_once import assert_once_and_in_order, write_while
from integration.kafka_clients import Record, create, producer, read
from integration.launcher.sidecar import SidecarProcess
from integration.patience import LONG
from integration.support import unload

PULSAR = {"entry.format": "pulsar"}
BASE = 1_700_000_000_000
# Key, value, headers: what Pulsar has no place for is among them.
WRITTEN: list[tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]]]] = [
    (b"key", b"value", [("h", b"text")]),
    (None, b"no key", []),
    (b"", b"", []),
    (b"\xff\x00\xfe", b"\x00binary\xff", [("binary", b"\xff\xfe"), ("null", None)]),
    (b"tombstone", None, [("twice", b"1"), ("twice", b"2"), ("z", b"3"), ("a", b"4")]),
    ("schlüssel".encode(), b"x" * 3_000, [("", b""), ("kafka.headers", b"mine")]),
]


@pytest.fixture(scope="module")
def native(cluster: Cluster) -> Iterator[pulsar.Client]:
    client = pulsar.Client(cluster.pulsar_url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
    yield client
    client.close()


def _partition(topic: str) -> str:
    return f"persistent://public/default/{topic}-partition-0"


def _write(address: str, topic: str, **settings: Any) -> list[tuple[int, int | None]]:
    client = producer(address, **{"linger.ms": 20, **settings})
    told: list[tuple[int, int | None]] = []

    def report(error: Any, message: Any) -> None:
        told.append((message.offset(), error and error.code()))

    for number, (key, value, headers) in enumerate(WRITTEN):
        client.produce(topic, value, key, 0, timestamp=BASE + number, headers=headers, on_delivery=report)
    assert client.flush(LONG) == 0
    return told


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_records_come_back_as_they_were_and_natives_see_them_as_messages(
    cluster: Cluster, other: SidecarProcess, native: pulsar.Client, topic: str, codec: str
) -> None:
    create(cluster.kafka, topic, configs=PULSAR)
    assert _write(cluster.kafka, topic, **{"compression.type": codec}) == [
        (number, None) for number in range(len(WRITTEN))
    ]
    expected = [
        Record(number, value, key, tuple(headers), BASE + number)
        for number, (key, value, headers) in enumerate(WRITTEN)
    ]
    for address in (cluster.kafka, other.address):
        assert read(address, topic, len(WRITTEN)) == expected
    reader = native.create_reader(_partition(topic), pulsar.MessageId.earliest)
    messages = [reader.read_next(10_000) for _ in WRITTEN]
    reader.close()
    assert [message.data() for message in messages] == [value or b"" for _, value, _ in WRITTEN]
    assert [message.event_timestamp() for message in messages] == [BASE + number for number in range(len(WRITTEN))]
    assert messages[0].partition_key() == "key"
    assert messages[0].properties() == {"h": "text"}
    assert messages[5].partition_key() == "schlüssel"
    assert messages[4].properties()["twice"] == "2"


def test_native_writers_and_kafka_writers_share_a_topic_in_format_pulsar(
    cluster: Cluster, other: SidecarProcess, native: pulsar.Client, topic: str
) -> None:
    create(cluster.kafka, topic, configs=PULSAR)
    writer = native.create_producer(_partition(topic), batching_enabled=True, batching_max_messages=3)
    for _ in range(5):
        _write(cluster.kafka, topic)
        for number in range(7):
            writer.send_async(b"native %d" % number, None)
        writer.flush()
    writer.close()
    once = [value for _, value, _ in WRITTEN] + [b"native %d" % number for number in range(7)]
    for address in (cluster.kafka, other.address):
        records = read(address, topic, 5 * len(once))
        assert [record.offset for record in records] == list(range(5 * len(once)))
        assert [record.value for record in records] == 5 * once


def test_nothing_is_lost_or_doubled_in_format_pulsar_when_the_topic_is_unloaded(
    cluster: Cluster, other: SidecarProcess, topic: str
) -> None:
    create(cluster.kafka, topic, configs=PULSAR)

    def unloads(until_more: Callable[[], None]) -> None:
        for _ in range(3):
            unload(cluster.admin_url, topic)
            until_more()

    acks = write_while(cluster.kafka, topic, unloads)
    assert_once_and_in_order(cluster.kafka, topic, acks)
    assert_once_and_in_order(other.address, topic, acks)


def test_a_sidecar_may_have_format_pulsar_for_all_topics(
    cluster: Cluster, native: pulsar.Client, topic: str, tmp_path: Path
) -> None:
    sidecar = SidecarProcess(tmp_path, cluster.pulsar_url, cluster.admin_url, kafka__entry_format="pulsar")
    sidecar.start()
    create(sidecar.address, topic)
    _write(sidecar.address, topic)
    reader = native.create_reader(_partition(topic), pulsar.MessageId.earliest)
    assert reader.read_next(10_000).data() == b"value"
    reader.close()
    assert sidecar.stop() == 0
