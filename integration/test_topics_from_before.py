"""Topics that were written before the interceptor was on, and groups that committed places for offsets: KoP before 2.8,
upgraded.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pulsar
import pytest
from confluent_kafka import Consumer, TopicPartition

from integration.kafka_clients import QUIET, bounds, produce, read
from integration.launcher.pulsar import DEFAULT_VERSION, INTERCEPTORS, Standalone
from integration.launcher.sidecar import SidecarProcess
from integration.support import admin, unload

NEW = 30
TOPICS = {"few": 5, "many": 300, "only-old": 20}


@pytest.fixture(scope="module", params=[DEFAULT_VERSION, "2.9.1"])
def upgraded(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Standalone, SidecarProcess]]:
    """Topics with old messages, and new ones of which every record has an index."""
    directory = tmp_path_factory.mktemp("upgraded")
    standalone = Standalone(directory / "pulsar", version=request.param, without=("brokerEntryMetadataInterceptors",))
    standalone.start()
    for topic, count in TOPICS.items():
        admin("PUT", f"{standalone.admin_url}/admin/v2/persistent/public/default/{topic}/partitions", b"1")
        _write_natively(standalone, topic, [b"old"] * count)
    standalone.stop()
    standalone.change({"brokerEntryMetadataInterceptors": INTERCEPTORS})
    standalone.start()
    for topic in TOPICS:
        if topic != "only-old":
            _write_natively(standalone, topic, [b"new %d" % number for number in range(NEW)])
    sidecar = SidecarProcess(directory / "sidecar", standalone.url, standalone.admin_url)
    sidecar.start()
    yield standalone, sidecar
    assert sidecar.stop() == 0
    standalone.stop()


def _write_natively(standalone: Standalone, topic: str, values: list[bytes]) -> None:
    client = pulsar.Client(standalone.url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
    writer = client.create_producer(f"persistent://public/default/{topic}-partition-0", batching_enabled=False)
    for value in values:
        writer.send_async(value, None)
    writer.flush()
    client.close()


def _command(standalone: Standalone, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "KAFKA_SIDECAR_PULSAR__URL": standalone.url,
        "KAFKA_SIDECAR_PULSAR__ADMIN_URL": standalone.admin_url,
    }
    command = [sys.executable, "-m", "kafka_sidecar", *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("topic", ["few", "many"])
def test_they_are_served_from_the_first_indexed_entry_on(
    upgraded: tuple[Standalone, SidecarProcess], topic: str
) -> None:
    standalone, sidecar = upgraded
    assert bounds(sidecar.address, topic) == (0, NEW)
    for _ in range(2):
        records = read(sidecar.address, topic, NEW)
        assert [(record.offset, record.value) for record in records] == [
            (number, b"new %d" % number) for number in range(NEW)
        ]
        assert read(sidecar.address, topic, NEW - 20, offset=20)[0].value == b"new 20"
        unload(standalone.admin_url, topic)
        assert sidecar.stop() == 0
        sidecar.start()
    done = _command(standalone, "verify", topic)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{TOPICS[topic]} entries from before the interceptor was on" in done.stdout
    assert [ack.offset for ack in produce(sidecar.address, topic, [b"kafka"] * 3)] == [NEW, NEW + 1, NEW + 2]
    assert len(read(sidecar.address, topic, NEW + 3)) == NEW + 3


def test_one_in_which_nothing_has_an_index_is_empty_until_it_is_written(
    upgraded: tuple[Standalone, SidecarProcess],
) -> None:
    _, sidecar = upgraded
    assert bounds(sidecar.address, "only-old") == (0, 0)
    assert [ack.offset for ack in produce(sidecar.address, "only-old", [b"first", b"second"])] == [0, 1]
    assert sidecar.stop() == 0
    sidecar.start()
    assert [record.value for record in read(sidecar.address, "only-old", 2)] == [b"first", b"second"]


def test_the_doctor_names_them(upgraded: tuple[Standalone, SidecarProcess]) -> None:
    standalone, _ = upgraded
    done = _command(standalone, "doctor", "--topics")
    assert done.returncode == 0, done.stdout + done.stderr
    for topic in TOPICS:
        assert (
            f"warning  topics: {topic} begins with entries from before AppendIndexMetadataInterceptor was on"
            in done.stdout
        )


def test_places_that_a_group_has_committed_are_translated(upgraded: tuple[Standalone, SidecarProcess]) -> None:
    standalone, sidecar = upgraded
    client = pulsar.Client(standalone.url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
    reader = client.create_reader("persistent://public/default/few-partition-0", pulsar.MessageId.earliest)
    ids = [reader.read_next(10_000).message_id() for _ in range(TOPICS["few"] + NEW)]
    client.close()
    group = "from-before"
    read_to = ids[TOPICS["few"] + 11]  # so many of the new ones were read
    place = (read_to.ledger_id() << 44) | (read_to.entry_id() << 12) | 1
    consumer = Consumer({"bootstrap.servers": sidecar.address, "group.id": group, "enable.auto.commit": False, **QUIET})
    consumer.commit(offsets=[TopicPartition("few", 0, place), TopicPartition("many", 0, 7)], asynchronous=False)
    of_group = ("groups", "translate", "--group", group, "--bootstrap-server", sidecar.address)
    shown = _command(standalone, *of_group, "--dry-run")
    assert "this was a dry run" in shown.stdout, shown.stderr
    wanted = [TopicPartition("few", 0), TopicPartition("many", 0)]
    assert [one.offset for one in consumer.committed(wanted, timeout=20)] == [place, 7]
    done = _command(standalone, *of_group)
    assert done.returncode == 0, done.stdout + done.stderr
    assert [one.offset for one in consumer.committed(wanted, timeout=20)] == [12, 7]
    consumer.close()
    assert "Nothing to translate" in _command(standalone, *of_group).stdout
