"""Offsets on every Pulsar version: writing, reading back cold, ends, searches, retries after restarts, trimming."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pulsar
import pytest
from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, OffsetSpec

from integration.conftest import new_topic
from integration.kafka_clients import bounds, consumer, create, produce, producer, read
from integration.launcher.pulsar import DEFAULT_VERSION, Standalone, version_tuple
from integration.launcher.sidecar import SidecarProcess
from integration.markers import write_marker
from integration.patience import LONG, wait_for
from integration.support import admin, unload
from integration.versions import EACH_OLDER
from kafka_sidecar.pulsar.client import PulsarClient

SMALL_LEDGERS = {
    "managedLedgerMaxEntriesPerLedger": "20",
    "managedLedgerMinLedgerRolloverTimeMinutes": "0",
    "retentionCheckIntervalInSeconds": "1",
}


@dataclass
class Versioned:
    standalone: Standalone
    sidecar: SidecarProcess

    def restart_sidecar(self) -> None:
        assert self.sidecar.stop() == 0
        self.sidecar.start()


@pytest.fixture(scope="module", params=[DEFAULT_VERSION, *EACH_OLDER])
def versioned(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Versioned]:
    directory = tmp_path_factory.mktemp("versioned")
    standalone = Standalone(directory / "pulsar", version=request.param, settings=SMALL_LEDGERS)
    standalone.start()
    # A short replay: what is older must be found by searching for it.
    sidecar = SidecarProcess(directory / "sidecar", standalone.url, standalone.admin_url, limits__replay_entries="5")
    sidecar.start()
    yield Versioned(standalone, sidecar)
    sidecar.stop()
    standalone.stop()
    assert not sidecar.complaints()


def _fill(versioned: Versioned, topic: str, batches: int = 100, per_batch: int = 3) -> list[bytes]:
    values = [b"%d" % number for number in range(batches * per_batch)]
    settings = {"batch.num.messages": per_batch, "linger.ms": 5}
    assert [ack.offset for ack in produce(versioned.sidecar.address, topic, values, settings=settings)] == list(
        range(len(values))
    )
    return values


def test_every_offset_is_found_again_after_a_restart(versioned: Versioned) -> None:
    topic = new_topic()
    values = _fill(versioned, topic)
    versioned.restart_sidecar()
    for offset in (0, 1, 2, 59, 60, 61, 150, 297, 299):
        records = read(versioned.sidecar.address, topic, min(3, len(values) - offset), offset=offset)
        assert [(record.offset, record.value) for record in records[:3]] == [
            (offset + number, value) for number, value in enumerate(values[offset : offset + 3])
        ]
    assert [record.value for record in read(versioned.sidecar.address, topic, len(values))] == values
    assert bounds(versioned.sidecar.address, topic) == (0, len(values))


def test_offsets_go_on_across_unloads_and_restarts(versioned: Versioned) -> None:
    topic = new_topic()
    for turn in range(4):
        acked = produce(
            versioned.sidecar.address, topic, [b"%d" % number for number in range(turn * 10, turn * 10 + 10)]
        )
        assert [ack.offset for ack in acked] == list(range(turn * 10, turn * 10 + 10))
        if turn % 2:
            versioned.restart_sidecar()
        else:
            unload(versioned.standalone.admin_url, topic)
    assert [record.value for record in read(versioned.sidecar.address, topic, 40)] == [
        b"%d" % number for number in range(40)
    ]


def test_times_lead_to_offsets(versioned: Versioned) -> None:
    topic = new_topic()
    produce(versioned.sidecar.address, topic, [b"early"] * 5)
    time.sleep(0.05)
    between = int(time.time() * 1000)
    time.sleep(0.05)
    produce(versioned.sidecar.address, topic, [b"late"] * 5)
    reader = consumer(versioned.sidecar.address)
    found = [
        reader.offsets_for_times([TopicPartition(topic, 0, at)], timeout=30)[0].offset
        for at in (1, between, between + 3_600_000)
    ]
    reader.close()
    assert found == [0, 5, -1]
    client = AdminClient({"bootstrap.servers": versioned.sidecar.address})  # must live as long as its futures
    greatest = client.list_offsets({TopicPartition(topic, 0): OffsetSpec.max_timestamp()})
    assert next(iter(greatest.values())).result(30).offset >= 5


def _offsets_for_times(sidecar: SidecarProcess, topic: str, times: list[int]) -> dict[int, int]:
    said = sidecar.said_so_far()
    reader = consumer(sidecar.address)
    found = {at: reader.offsets_for_times([TopicPartition(topic, 0, at)], timeout=60)[0].offset for at in times}
    reader.close()
    if "until that is done such records are not found" not in sidecar.said_since(said):
        return found
    # A busy machine reads the index for longer than a search waits for it.
    wait_for(lambda: "were read for their timestamps" in sidecar.said_since(said))
    return _offsets_for_times(sidecar, topic, times)


def test_times_lead_to_offsets_where_clocks_are_ahead(versioned: Versioned) -> None:
    """Each 500th of 2,300 producers is most of an hour ahead. More was written since than a search looks through
    without an index.
    """
    topic = new_topic()
    create(versioned.sidecar.address, topic)
    now = int(time.time() * 1000)
    ahead = {number: now + 3_000_000 - number for number in range(7, 2_300, 500)}
    client = producer(versioned.sidecar.address, **{"batch.num.messages": 1})
    for number in range(2_300):
        client.produce(topic, b"v", partition=0, timestamp=ahead.get(number, now - 3_600_000 - number))
        client.poll(0)
    assert client.flush(LONG) == 0
    for turn in range(2):
        if turn:
            versioned.restart_sidecar()
        wanted = {now - 5_000_000: 0, now: 7, ahead[7]: 7, ahead[7] + 1: -1, now + 2_999_000 - 5: 7}
        found = _offsets_for_times(versioned.sidecar, topic, list(wanted))
        assert found == wanted
        admin = AdminClient({"bootstrap.servers": versioned.sidecar.address})  # must live as long as its futures
        greatest = next(
            iter(admin.list_offsets({TopicPartition(topic, 0): OffsetSpec.max_timestamp()}).values())
        ).result(30)
        assert (greatest.offset, greatest.timestamp) == (7, ahead[7])


async def _mark(url: str, topic: str) -> None:
    client = PulsarClient(url)
    await write_marker(client, f"persistent://public/default/{topic}-partition-0")
    await client.close()


def test_a_marker_at_the_end_keeps_nobody_waiting(versioned: Versioned) -> None:
    topic = new_topic()
    create(versioned.sidecar.address, topic)
    produce(versioned.sidecar.address, topic, [b"0", b"1", b"2"])
    nothing_else = new_topic()
    create(versioned.sidecar.address, nothing_else)
    for _ in range(3):
        asyncio.run(_mark(versioned.standalone.url, topic))
        asyncio.run(_mark(versioned.standalone.url, nothing_else))
    versioned.restart_sidecar()
    low, high = bounds(versioned.sidecar.address, topic)
    assert (low, high >= 3) == (0, True)
    (ack,) = produce(versioned.sidecar.address, topic, [b"3"])
    assert ack.offset >= high
    assert [record.value for record in read(versioned.sidecar.address, topic, 4)] == [b"0", b"1", b"2", b"3"]
    low, high = bounds(versioned.sidecar.address, nothing_else)
    assert low == high
    (ack,) = produce(versioned.sidecar.address, nothing_else, [b"first"])
    assert ack.offset >= high
    assert [(record.offset, record.value) for record in read(versioned.sidecar.address, nothing_else, 1)] == [
        (ack.offset, b"first")
    ]


def test_the_start_moves_when_retention_removes_ledgers(versioned: Versioned) -> None:
    topic = new_topic()
    create(versioned.sidecar.address, topic)
    values = _fill(versioned, topic)
    place = f"{versioned.standalone.admin_url}/admin/v2/persistent/public/default/{topic}"
    body = json.dumps({"retentionTimeInMinutes": 0, "retentionSizeInMB": 0}).encode()
    admin("POST", f"{place}/retention", body)
    deadline = time.monotonic() + LONG
    low = 0
    while low == 0 and time.monotonic() < deadline:
        time.sleep(0.2)
        unload(versioned.standalone.admin_url, topic)
        low, high = bounds(versioned.sidecar.address, topic)
        assert high == len(values)
    assert low > 0
    later = read(versioned.sidecar.address, topic, len(values) - low, offset=low)
    assert [record.offset for record in later] == list(range(low, len(values)))
    client = consumer(versioned.sidecar.address, **{"auto.offset.reset": "error"})
    client.assign([TopicPartition(topic, 0, 0)])
    message = client.poll(20)
    assert message is not None
    assert message.error() is not None
    client.close()
    versioned.restart_sidecar()
    assert bounds(versioned.sidecar.address, topic)[1] == len(values)
    more = produce(versioned.sidecar.address, topic, [b"more"])
    assert more[0].offset == len(values)


def test_a_topic_emptied_by_retention_answers_its_end_for_both(versioned: Versioned) -> None:
    topic = new_topic()
    create(versioned.sidecar.address, topic)
    values = _fill(versioned, topic, batches=30)
    body = json.dumps({"retentionTimeInMinutes": 0, "retentionSizeInMB": 0}).encode()
    admin("POST", f"{versioned.standalone.admin_url}/admin/v2/persistent/public/default/{topic}/retention", body)
    deadline = time.monotonic() + LONG
    found = bounds(versioned.sidecar.address, topic)
    while found[0] < len(values) and time.monotonic() < deadline:
        unload(versioned.standalone.admin_url, topic)  # closes the open ledger, which would always stay
        time.sleep(0.2)
        found = bounds(versioned.sidecar.address, topic)
    assert found == (len(values), len(values))
    versioned.restart_sidecar()
    assert bounds(versioned.sidecar.address, topic) == (len(values), len(values))
    assert [ack.offset for ack in produce(versioned.sidecar.address, topic, [b"after"])] == [len(values)]
    assert [record.value for record in read(versioned.sidecar.address, topic, 1, offset=len(values))] == [b"after"]


def test_clients_go_on_where_retention_has_left_nothing_but_markers(versioned: Versioned) -> None:
    """Before what is written next there is not one record, and its ledger is empty."""
    topic = new_topic()
    create(versioned.sidecar.address, topic)
    end = len(_fill(versioned, topic, batches=10))
    place = f"{versioned.standalone.admin_url}/admin/v2/persistent/public/default/{topic}"
    admin("POST", f"{place}/retention", json.dumps({"retentionTimeInMinutes": 0, "retentionSizeInMB": 0}).encode())

    def is_emptied() -> bool:
        asyncio.run(_mark(versioned.standalone.url, topic))
        unload(versioned.standalone.admin_url, topic)
        return bounds(versioned.sidecar.address, topic)[0] >= end

    wait_for(is_emptied)
    admin("POST", f"{place}/retention", json.dumps({"retentionTimeInMinutes": -1, "retentionSizeInMB": -1}).encode())
    asyncio.run(_mark(versioned.standalone.url, topic))
    unload(versioned.standalone.admin_url, topic)
    versioned.restart_sidecar()
    values = [
        bytes([number]) * 950_000 for number in range(6)
    ]  # more than a reader looks at before what it is to serve
    client = producer(versioned.sidecar.address, **{"enable.idempotence": True, "batch.num.messages": 1})
    offsets: list[int] = []
    for value in values:
        client.produce(
            topic, value, partition=0, on_delivery=lambda error, ack: offsets.append(-1 if error else ack.offset())
        )
    assert client.flush(LONG) == 0
    assert (min(offsets) >= end, offsets) == (True, sorted(set(offsets)))
    versioned.restart_sidecar()
    assert [record.value for record in read(versioned.sidecar.address, topic, 1, offset=offsets[-1])] == values[-1:]
    assert [record.value for record in read(versioned.sidecar.address, topic, len(values), offset=offsets[0])] == values


def test_native_messages_of_all_kinds_in_a_topic_without_partitions(versioned: Versioned) -> None:
    topic = new_topic()
    admin("PUT", f"{versioned.standalone.admin_url}/admin/v2/persistent/public/default/{topic}")
    large = os.urandom(6_000_000)
    native = pulsar.Client(versioned.standalone.url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
    for settings, values in (
        ({"batching_enabled": True, "compression_type": pulsar.CompressionType.LZ4}, [b"0", b"1", b"2"]),
        ({"batching_enabled": False, "chunking_enabled": True}, [large]),
    ):
        writer = native.create_producer(topic, **settings)
        for value in values:
            writer.send_async(value, None, partition_key="key", event_timestamp=5)
        writer.flush()
        writer.close()
    native.close()
    (ack,) = produce(versioned.sidecar.address, topic, [b"kafka"])
    assert ack.offset == 5
    for _ in range(2):
        records = read(versioned.sidecar.address, topic, 5)
        assert [(record.offset, record.value) for record in records] == [
            (0, b"0"),
            (1, b"1"),
            (2, b"2"),
            (4, large),
            (5, b"kafka"),
        ]
        assert {(record.key, record.timestamp) for record in records[:4]} == {(b"key", 5)}
        versioned.restart_sidecar()
    client = AdminClient({"bootstrap.servers": versioned.sidecar.address})
    assert len(client.list_topics(timeout=20).topics[topic].partitions) == 1
    client.delete_topics([topic])[topic].result(20)
    assert topic not in AdminClient({"bootstrap.servers": versioned.sidecar.address}).list_topics(timeout=20).topics


def test_format_pulsar_and_configs_of_records(versioned: Versioned, tmp_path: Path) -> None:
    """Kafka records are messages to native clients on every version; what a topic asks for itself needs its
    properties.
    """
    in_format = SidecarProcess(
        tmp_path, versioned.standalone.url, versioned.standalone.admin_url, kafka__entry_format="pulsar"
    )
    in_format.start()
    topic = new_topic()
    create(in_format.address, topic)
    values = [b"%d" % number for number in range(30)]
    for codec in ("none", "zstd"):
        produce(in_format.address, topic, values, settings={"compression.type": codec, "linger.ms": 20})
    for address in (in_format.address, versioned.sidecar.address):
        assert [(record.offset, record.value) for record in read(address, topic, 60)] == list(enumerate(values * 2))
    native = pulsar.Client(versioned.standalone.url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
    reader = native.create_reader(f"persistent://public/default/{topic}-partition-0", pulsar.MessageId.earliest)
    assert [reader.read_next(10_000).data() for _ in range(60)] == values * 2
    native.close()
    assert in_format.stop() == 0

    timed = new_topic()
    client = AdminClient({"bootstrap.servers": versioned.sidecar.address})
    wanted = NewTopic(timed, 1, config={"message.timestamp.type": "LogAppendTime", "compression.type": "zstd"})
    made = client.create_topics([wanted])[timed]
    if version_tuple(versioned.standalone.version) < (2, 10):
        with pytest.raises(KafkaException, match=r"it must be 2\.10 or later"):
            made.result(20)
        return
    made.result(20)
    begun = int(time.time() * 1000)
    produce(versioned.sidecar.address, timed, values)
    for _ in range(2):
        records = read(versioned.sidecar.address, timed, 30)
        assert [record.value for record in records] == values
        assert all(begun - 1_000 <= record.timestamp <= begun + 60_000 for record in records)
        versioned.restart_sidecar()
    resource = ConfigResource(ConfigResource.Type.TOPIC, timed)
    resource.add_incremental_config(ConfigEntry("retention.ms", "7200000", incremental_operation=AlterConfigOpType.SET))
    resource.add_incremental_config(
        ConfigEntry("cleanup.policy", "compact,delete", incremental_operation=AlterConfigOpType.SET)
    )
    client = AdminClient({"bootstrap.servers": versioned.sidecar.address})
    altered = next(iter(client.incremental_alter_configs([resource]).values()))
    if version_tuple(versioned.standalone.version) < (3, 0):
        with pytest.raises(KafkaException, match=r"it must be 3\.0 or later"):
            altered.result(20)
    else:
        altered.result(20)
