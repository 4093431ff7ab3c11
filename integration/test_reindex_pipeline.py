"""`pipeline reindex`: topics that were written before the interceptor was on, and groups of Kafka-on-Pulsar before
2.8.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pulsar
import pytest
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.memory_records import MemoryRecords
from confluent_kafka import IsolationLevel, KafkaException, TopicPartition
from pyspark.sql import SparkSession

from integration.kafka_clients import bounds, consumer, produce
from integration.launcher.process import free_port
from integration.launcher.pulsar import INTERCEPTORS, Standalone
from integration.launcher.sidecar import SidecarProcess
from integration.launcher.spark import SparkCluster
from integration.patience import LONG
from integration.pipelines import SCALE, Driver, contents, pipeline, pipeline_here
from integration.support import admin

KINDS, LARGE, ONLY_OLD = "of-all-kinds", "large", "only-old"
PARTITIONS = 2
NEW = 40
CHUNKED = b"c" * 12_000_000  # it is smaller in a Kafka batch, compressed
LARGE_RECORDS, LARGE_BYTES = 40_000 * SCALE, 1_000


class Old(NamedTuple):
    """A record as a native reader finds it."""

    value: bytes
    key: bytes | None
    headers: tuple[tuple[str, bytes], ...]
    timestamp: int
    place: tuple[int, int, int]

    @property
    def packed(self) -> int:
        """As Kafka-on-Pulsar before 2.8 had it for an offset."""
        ledger, entry, in_entry = self.place
        return ledger << 44 | entry << 12 | in_entry


@pytest.fixture(scope="module")
def upgraded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Standalone, SidecarProcess]]:
    directory = tmp_path_factory.mktemp("upgraded")
    standalone = Standalone(directory / "pulsar", without=("brokerEntryMetadataInterceptors",))
    standalone.start()
    for topic in (KINDS, LARGE, ONLY_OLD):
        admin(
            "PUT", f"{standalone.admin_url}/admin/v2/persistent/public/default/{topic}/partitions", b"%d" % PARTITIONS
        )
    for partition in range(PARTITIONS):
        _write_all_kinds(standalone, f"{KINDS}-partition-{partition}")
        _write(
            standalone,
            f"{LARGE}-partition-{partition}",
            (_large(number) for number in range(LARGE_RECORDS)),
            batching_max_messages=50,
        )
    _write(standalone, f"{ONLY_OLD}-partition-0", (b"old-%d" % number for number in range(10)))
    standalone.stop()
    standalone.change({"brokerEntryMetadataInterceptors": INTERCEPTORS})
    standalone.start()
    sidecar = SidecarProcess(directory / "sidecar", standalone.url, standalone.admin_url, port=free_port())
    sidecar.start()
    yield standalone, sidecar
    assert sidecar.stop() == 0
    standalone.stop()


def _large(number: int) -> bytes:
    return b"%d-" % number + b"v" * (LARGE_BYTES - 10)


def _client(standalone: Standalone) -> pulsar.Client:
    return pulsar.Client(standalone.url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))


def _write(standalone: Standalone, topic: str, values: Iterator[bytes], **settings: Any) -> None:
    client = _client(standalone)
    settings = {
        "batching_enabled": bool(settings),
        "block_if_queue_full": True,
        "batching_max_publish_delay_ms": 100,
        **settings,
    }
    writer = client.create_producer(f"persistent://public/default/{topic}", **settings)
    for value in values:
        writer.send_async(value, None)
    writer.flush()
    client.close()


def _write_all_kinds(standalone: Standalone, topic: str) -> None:
    """Single messages, batches, one in chunks, and entries of Kafka-on-Pulsar's format."""
    _write(standalone, topic, (b"single-%d" % number for number in range(30)))
    _write(standalone, topic, (b"batched-%d" % number for number in range(100)), batching_max_messages=7)
    client = _client(standalone)
    full_name = f"persistent://public/default/{topic}"
    writer = client.create_producer(full_name, batching_enabled=False, chunking_enabled=True, max_pending_messages=10)
    writer.send(b"with key", partition_key="k1", properties={"h": "1", "i": "2"})
    writer.send(CHUNKED)
    for base in range(0, 50, 10):
        builder = DefaultRecordBatchBuilder(2, 3, 0, -1, -1, -1, 100_000)
        for number in range(10):
            builder.append(
                number, 1_600_000_000_000 + base + number, b"kk", b"kafka-%d" % (base + number), [("x", b"y")]
            )
        writer.send(bytes(builder.build()), properties={"entry.format": "kafka"})
    client.close()
    _write(standalone, topic, (b"last-%d" % number for number in range(5)))


def _old_records(standalone: Standalone, topic: str, partition: int) -> list[Old]:
    """All that Pulsar's own reader finds."""
    client = _client(standalone)
    reader = client.create_reader(
        f"persistent://public/default/{topic}-partition-{partition}", pulsar.MessageId.earliest
    )
    found: list[Old] = []
    while reader.has_message_available():
        message = reader.read_next(20_000)
        at = message.message_id()
        ledger, entry, in_batch = at.ledger_id(), at.entry_id(), max(0, at.batch_index())
        if message.properties().get("entry.format") == "kafka":
            opened = MemoryRecords(message.data()).next_batch()
            assert opened is not None
            for number, one in enumerate(opened):
                found.append(Old(one.value, one.key, tuple(one.headers), one.timestamp, (ledger, entry, number)))
        else:
            key = message.partition_key().encode() or None
            headers = tuple((name, value.encode()) for name, value in sorted(message.properties().items()))
            found.append(Old(message.data(), key, headers, message.publish_timestamp(), (ledger, entry, in_batch)))
    client.close()
    return found


def _arguments(upgraded: tuple[Standalone, SidecarProcess], name: str, topic: str) -> tuple[str, ...]:
    standalone, sidecar = upgraded
    return (
        "--source",
        sidecar.address,
        "--name",
        name,
        "--topic",
        topic,
        "--prefix",
        f"{name}.",
        "--pulsar-url",
        standalone.url,
        "--pulsar-admin-url",
        standalone.admin_url,
    )


def _publish_rate(standalone: Standalone, bytes_in_a_second: int) -> None:
    """Of each topic; -1: as fast as it can."""
    rate = {"publishThrottlingRateInMsg": -1, "publishThrottlingRateInByte": bytes_in_a_second}
    admin("POST", f"{standalone.admin_url}/admin/v2/namespaces/public/default/publishRate", json.dumps(rate).encode())


def _compare(sidecar: SidecarProcess, old: list[Old], source: str, target: str, partition: int) -> list[int]:
    """Offsets of what was old, in its order; behind it is what Kafka clients could read."""
    found = contents(sidecar.address, target, partition, with_offsets=True)
    assert [(one.value, one.key, tuple(sorted(one.headers)), one.timestamp) for one in found[: len(old)]] == [
        one[:4] for one in old
    ]
    assert [replace(one, offset=-1) for one in found[len(old) :]] == contents(sidecar.address, source, partition)
    return [one.offset for one in found]


def test_what_had_no_offset_has_one(
    upgraded: tuple[Standalone, SidecarProcess], spark: SparkSession, tmp_path: Path
) -> None:
    standalone, sidecar = upgraded
    old = [_old_records(standalone, KINDS, partition) for partition in range(PARTITIONS)]
    assert len(old[0]) == 30 + 100 + 2 + 50 + 5
    produce(sidecar.address, KINDS, [b"new-%d" % number for number in range(NEW)])
    assert bounds(sidecar.address, KINDS) == (0, NEW)
    arguments = (*_arguments(upgraded, "kinds", KINDS), "--master", "local[2]")
    said = pipeline_here(spark, "reindex", *arguments, "--dry-run")
    assert f"{KINDS}-0: " in said
    assert "entries without an index" in said
    assert "this was a dry run" in said
    result_file = tmp_path / "result.json"
    pipeline("reindex", *arguments, "--result", str(result_file))
    result = json.loads(result_file.read_text())
    assert result["complete"]
    assert result["records"] == sum(map(len, old)) + NEW
    offsets = [_compare(sidecar, old[partition], KINDS, f"kinds.{KINDS}", partition) for partition in range(PARTITIONS)]

    # Nothing is copied twice, and what comes is.
    assert "0 records copied" in pipeline_here(spark, "reindex", *arguments)
    produce(sidecar.address, KINDS, [b"later"], 1)
    assert "1 records copied" in pipeline_here(spark, "reindex", *arguments)
    assert contents(sidecar.address, f"kinds.{KINDS}", 1)[-1].value == b"later"

    # Groups go on with the same record, wherever they were.
    wanted = {}
    for partition in range(PARTITIONS):
        for number in range(0, len(old[partition]), 9):
            group = f"kop-{partition}-{number}"
            _commit(sidecar.address, group, KINDS, partition, old[partition][number].packed)
            wanted[group] = (partition, offsets[partition][number])
        last = old[partition][-1].packed
        _commit(sidecar.address, f"kop-{partition}-end", KINDS, partition, last + 1)
    wanted["kop-0-end"] = (0, offsets[0][len(old[0])])
    _commit(sidecar.address, "kop-new", KINDS, 0, 7)
    wanted["kop-new"] = (0, offsets[0][len(old[0]) + 7])
    of_groups = ("--source", sidecar.address, "--target", sidecar.address, "--name", "kinds", "--group", "kop-.*")
    said = pipeline_here(spark, "migrate-groups", *of_groups)
    ledger, entry, in_entry = old[0][9].place
    assert f"it was {ledger}:{entry}:{in_entry} in the log" in said
    for group, (partition, offset) in wanted.items():
        assert _committed(sidecar.address, group, f"kinds.{KINDS}", partition) == offset, group


def _commit(address: str, group: str, topic: str, partition: int, offset: int) -> None:
    client = consumer(address, **{"group.id": group})
    client.commit(offsets=[TopicPartition(topic, partition, offset)], asynchronous=False)
    client.close()


def _committed(address: str, group: str, topic: str, partition: int) -> int:
    client = consumer(address, **{"group.id": group})
    (found,) = client.committed([TopicPartition(topic, partition)], timeout=20)
    client.close()
    return int(found.offset)


def test_a_topic_without_any_index_is_copied_and_goes_on_when_it_is_written(
    upgraded: tuple[Standalone, SidecarProcess], spark: SparkSession
) -> None:
    standalone, sidecar = upgraded
    old = _old_records(standalone, ONLY_OLD, 0)
    arguments = (*_arguments(upgraded, "only", ONLY_OLD), "--master", "local[2]")
    assert "10 records copied" in pipeline_here(spark, "reindex", *arguments)
    _compare(sidecar, old, ONLY_OLD, f"only.{ONLY_OLD}", 0)
    produce(sidecar.address, ONLY_OLD, [b"first"])
    mirror = (
        "--source",
        sidecar.address,
        "--target",
        sidecar.address,
        "--name",
        "only",
        "--topic",
        ONLY_OLD,
        "--prefix",
        "only.",
    )
    said = pipeline_here(
        spark, "mirror", *mirror, "--master", "local[2]", "--accept-loss", status=1
    )  # more without an index might have come
    assert "run `pipeline reindex` of this name to their end" in said
    assert "1 records copied" in pipeline_here(spark, "reindex", *arguments)
    produce(sidecar.address, ONLY_OLD, [b"second"])
    assert "1 records copied" in pipeline_here(
        spark, "mirror", *mirror, "--master", "local[2]"
    )  # the rest is a mirror's
    _compare(sidecar, old, ONLY_OLD, f"only.{ONLY_OLD}", 0)


@pytest.mark.soak  # as a mirror, whose test under these faults is an ordinary one, it copies in transactions
def test_each_record_is_there_once_though_everything_is_killed(
    upgraded: tuple[Standalone, SidecarProcess], tmp_path: Path
) -> None:
    standalone, sidecar = upgraded
    target = f"killed.{LARGE}"
    # So it takes its time, however fast the machine is: no fault comes too late.
    _publish_rate(standalone, 1_500_000)
    workers = SparkCluster(tmp_path / "spark")
    arguments = (
        *_arguments(upgraded, "killed", LARGE),
        "--master",
        workers.url,
        "--conf",
        "spark.executor.memory=512m",
    )
    driver = Driver(tmp_path, "reindex", *arguments)

    def written() -> int:
        """Committed or not: a transaction may have a whole partition."""
        isolation = IsolationLevel.READ_UNCOMMITTED
        try:
            return sum(
                bounds(sidecar.address, target, partition, isolation=isolation)[1] for partition in range(PARTITIONS)
            )
        except KafkaException:  # it is not there yet
            return 0

    def wait_for_more() -> None:
        deadline, before = time.monotonic() + LONG, written()
        while written() < before + 3_000:
            assert time.monotonic() < deadline, driver.log.read_text()[-3_000:]
            if not driver.is_running:
                assert driver.wait(0) != 0, "it was faster than the faults"
                driver.start()  # what its patience was too short for
            time.sleep(0.1)

    def restart(what: Any) -> None:
        what.kill()
        what.start()

    faults: list[Callable[[], None]] = [
        lambda: restart(driver),
        lambda: restart(sidecar),
        lambda: workers.kill_worker(0),
        lambda: restart(standalone),
    ]
    try:
        for fault in faults:
            wait_for_more()
            fault()
        _publish_rate(standalone, -1)
        if driver.wait(400 * SCALE):  # what its patience was too short for
            pipeline("reindex", *_arguments(upgraded, "killed", LARGE), "--master", "local[2]")
    finally:
        if driver.is_running:
            driver.kill()
        workers.stop()
    found = [contents(sidecar.address, target, partition, with_offsets=True) for partition in range(PARTITIONS)]
    assert all([one.value for one in of_one] == [_large(number) for number in range(LARGE_RECORDS)] for of_one in found)
    # And the record of offsets is true, in all of its transactions.
    old = _old_records(standalone, LARGE, 0)
    wanted = {f"large-{number}": found[0][number].offset for number in range(0, LARGE_RECORDS, LARGE_RECORDS // 15)}
    for group in wanted:
        _commit(sidecar.address, group, LARGE, 0, old[int(group.removeprefix("large-"))].packed)
    of_groups = ("--source", sidecar.address, "--target", sidecar.address, "--name", "killed", "--group", "large-.*")
    pipeline("migrate-groups", *of_groups)
    assert {group: _committed(sidecar.address, group, target, 0) for group in wanted} == wanted
