"""Several sidecars that share the partitions: one leader for each, handed over without a word to applications."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pulsar
import pytest
from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from integration.conftest import new_topic
from integration.fleet import Load, UnsequencedLoad, gateways, told, wait_until_agreed, wait_until_all_lead
from integration.kafka_clients import QUIET, consumer, create, produce
from integration.launcher.process import free_port, free_ports
from integration.launcher.pulsar import Standalone
from integration.launcher.sidecar import SidecarProcess
from integration.patience import wait_for
from kafka_sidecar import STORED_FORMAT, __version__
from kafka_sidecar.cli import main
from kafka_sidecar.control.client import ControlClient

PARTITIONS = 8


@pytest.fixture
def fleet(fleet_broker: Standalone, tmp_path: Path) -> Iterator[list[SidecarProcess]]:
    sidecars = gateways(fleet_broker, tmp_path, range(3))
    for sidecar in sidecars:
        sidecar.start()
    yield sidecars
    for sidecar in sidecars:
        sidecar.kill()
        assert not sidecar.complaints()


def test_all_name_the_same_leaders_and_a_killed_one_is_replaced_and_comes_back(
    fleet: list[SidecarProcess], topic: str
) -> None:
    create(fleet[0].address, topic, PARTITIONS)
    before = wait_until_all_lead(fleet, topic)
    with ControlClient(fleet[0].control) as operator:
        assert {member.node_id: (member.release, member.stored_format) for member in operator.fleet()} == {
            number: (__version__, STORED_FORMAT) for number in range(3)
        }
    assert {before.count(node) for node in range(3)} <= {2, 3}
    fleet[2].kill()
    after = wait_until_all_lead(fleet[:2], topic)
    assert sum(old != new for old, new in zip(before, after, strict=True)) <= before.count(2) + 1, "little else moves"
    assert told(fleet[0].address, topic)[0] >= {0, 1}
    fleet[2].start()
    assert wait_until_all_lead(fleet, topic) == before, "it leads what it led"


def test_leaders_are_found_again_while_a_member_stands_still_or_dies(fleet: list[SidecarProcess], topic: str) -> None:
    """Whoever stands still comes back with requests in its sockets that its clients have given up."""
    create(fleet[0].address, topic, PARTITIONS)
    wait_until_all_lead(fleet, topic)
    load = Load(
        [sidecar.address for sidecar in fleet],
        topic,
        PARTITIONS,
        {"request.timeout.ms": 4_000, "socket.timeout.ms": 5_000},
    )
    try:
        load.wait_for_more()
        with fleet[1].standing_still():
            wait_until_all_lead([fleet[0], fleet[2]], topic)
            load.wait_for_more()  # behind what is in its sockets: that was given up
        wait_until_all_lead(fleet, topic)
        load.wait_for_more()
        fleet[0].kill()
        wait_until_all_lead(fleet[1:], topic)
        fleet[0].start()
        wait_until_all_lead(fleet, topic)
        load.wait_for_more()
    finally:
        load.stop()
    assert not load.failed
    load.check()


def test_a_consumer_reads_from_the_sidecar_in_its_rack(fleet_broker: Standalone, tmp_path: Path, topic: str) -> None:
    sidecars = [
        one for number, rack in enumerate("ab") for one in gateways(fleet_broker, tmp_path, [number], kafka__rack=rack)
    ]
    for sidecar in sidecars:
        sidecar.start()
    create(sidecars[0].address, topic, PARTITIONS)
    assert set(wait_until_all_lead(sidecars, topic)) == {0, 1}
    sources: dict[int, int] = {}

    def on_statistics(text: str) -> None:
        partitions = json.loads(text)["topics"].get(topic, {"partitions": {}})["partitions"]
        sources.update({int(index): told["broker"] for index, told in partitions.items() if int(index) >= 0})

    reader = consumer(
        sidecars[0].address, **{"client.rack": "b", "statistics.interval.ms": 200, "stats_cb": on_statistics}
    )
    reader.assign([TopicPartition(topic, index, 0) for index in range(PARTITIONS)])

    def write_and_read_from(node: int) -> None:
        acked = [one for index in range(PARTITIONS) for one in produce(sidecars[0].address, topic, [b"x"] * 50, index)]
        found: list[tuple[int | None, int | None]] = []

        def is_read() -> bool:
            found.extend((one.partition(), one.offset()) for one in reader.consume(500, 0.5) if one.error() is None)
            return len(found) >= len(acked) and set(sources.values()) == {node}

        wait_for(is_read)
        assert sorted(found) == sorted((one.partition, one.offset) for one in acked)

    for _ in range(2):
        write_and_read_from(1)
    sidecars[1].kill()
    wait_until_all_lead(sidecars[:1], topic)
    write_and_read_from(0)
    reader.close()
    sidecars[0].kill()
    assert not sidecars[0].complaints() + sidecars[1].complaints()


def test_workers_are_a_fleet_on_one_host(fleet_broker: Standalone, tmp_path: Path, topic: str) -> None:
    port = free_ports(2).start
    host = SidecarProcess(tmp_path, fleet_broker.url, fleet_broker.admin_url, port=port, workers=2, kafka__node_id="7")
    host.start()
    second = f"127.0.0.1:{port + 1}"
    create(host.address, topic, PARTITIONS)
    assert wait_until_agreed([host.address, second], topic, 2).count(14) == PARTITIONS // 2
    load = Load([host.address], topic, PARTITIONS)
    try:
        load.wait_for_more()
        worker = re.search(r"kafka_sidecar.process.workers: worker 1 is process (\d+)", host.log.read_text())
        assert worker is not None
        os.kill(int(worker[1]), signal.SIGKILL)
        wait_for(lambda: host.log.read_text().count("worker 1 is process") == 2)
        assert set(wait_until_agreed([host.address, second], topic, 2)) == {14, 15}
        load.wait_for_more()
    finally:
        load.stop()
    assert not load.failed
    load.check()
    assert host.stop() == 0
    assert host.log.read_text().count("stopping: no new connections") == 2
    assert not host.complaints()


def test_clients_from_outside_are_told_of_addresses_that_they_reach(
    fleet_broker: Standalone, tmp_path: Path, topic: str
) -> None:
    """With Kafka's own rule of listeners: who came to the external one gets the external addresses of all, coordinators
    among them.
    """
    outside = [free_port() for _ in range(2)]
    addresses = ",".join(f"localhost:{port}" for port in outside)
    sidecars = [
        sidecar
        for number, port in enumerate(outside)
        for sidecar in gateways(
            fleet_broker,
            tmp_path,
            [number],
            kafka__external_listen=f"127.0.0.1:{port}",
            kafka__external_advertised=addresses,
        )
    ]
    for sidecar in sidecars:
        sidecar.start()
    create(sidecars[0].address, topic, PARTITIONS)
    wait_until_agreed([f"localhost:{outside[1]}", *(sidecar.address for sidecar in sidecars)], topic, 2)
    for address, ports in ((addresses, outside), (sidecars[0].address, [sidecar.port for sidecar in sidecars])):
        brokers = AdminClient({"bootstrap.servers": address, **QUIET}).list_topics(topic, timeout=10).brokers
        assert [brokers[node].port for node in range(2)] == ports
    load = Load([addresses], topic, PARTITIONS)
    load.wait_for_more()
    load.stop()
    assert not load.failed
    load.check()
    for sidecar in sidecars:
        assert sidecar.stop() == 0


def test_an_operator_asks_and_drains_a_sidecar_and_a_native_reader_begins_at_a_kafka_offset(
    fleet_broker: Standalone, tmp_path: Path, topic: str, capsys: pytest.CaptureFixture[str]
) -> None:
    control = f"127.0.0.1:{free_port()}"
    sidecar = SidecarProcess(tmp_path, fleet_broker.url, fleet_broker.admin_url, control__listen=control)
    sidecar.start()

    def ctl(*arguments: str) -> Any:
        assert main(["ctl", *arguments, "--address", control, "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    create(sidecar.address, topic, 2, {"entry.format": "pulsar"})
    produce(sidecar.address, topic, [b"%d" % number for number in range(10)], partition=1, settings={"linger.ms": 100})
    (found,) = ctl("message-id", topic, "1", "7")
    client = pulsar.Client(fleet_broker.url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
    place = pulsar.MessageId(found["partition"], found["ledger"], found["entry"], found["batch_index"])
    reader = client.create_reader(
        f"persistent://public/default/{topic}-partition-1", place, start_message_id_inclusive=True
    )
    message = reader.read_next(10_000)
    assert message.data() == b"7"
    client.close()
    native = (
        f"{message.message_id().ledger_id()}:{message.message_id().entry_id()}:{message.message_id().batch_index()}"
    )
    assert ctl("offset", topic, "1", native) == [{"offset": 7}]
    (partition,) = ctl("partitions", topic)
    assert (partition["partition"], partition["state"], partition["end_offset"]) == (1, "open", 10)
    assert [(member["is_self"], member["release"]) for member in ctl("fleet")] == [(True, __version__)]
    tried = [sys.executable, "-m", "kafka_sidecar", "try", "--bootstrap-server", sidecar.address]
    assert "read back after" in subprocess.run(tried, capture_output=True, text=True, timeout=60, check=True).stdout
    assert ctl("drain") == [{"drain": "begun"}]
    wait_for(lambda: not sidecar.running)
    assert sidecar.stop() == 0


def test_a_rolling_restart_is_not_seen_by_applications(fleet: list[SidecarProcess], topic: str) -> None:
    unsequenced = new_topic()
    for name in (topic, unsequenced):
        create(fleet[0].address, name, PARTITIONS)
    wait_until_all_lead(fleet, topic)
    addresses = [sidecar.address for sidecar in fleet]
    load = Load(addresses, topic, PARTITIONS, {"request.timeout.ms": 30_000, "socket.timeout.ms": 31_000})
    # What no sequence keeps in order: only what is refused and served at the right moment.
    plain = UnsequencedLoad(addresses, unsequenced, PARTITIONS)
    try:
        load.wait_for_more()
        for sidecar in fleet:
            assert sidecar.stop() == 0
            sidecar.start()
            wait_until_all_lead(fleet, topic)
            load.wait_for_more()
    finally:
        load.stop()
        plain.stop()
    assert not load.failed
    load.check()
    plain.check()
    assert not load.timed_out, (
        "each request that a leaving sidecar did not serve was answered by it, and went to the next leader"
    )


def test_librdkafka_finds_all_members_of_a_fleet_that_was_killed(fleet: list[SidecarProcess], topic: str) -> None:
    """The first one that is back tells of the others, though it is alone for a while. A librdkafka that was told of
    that one alone would say for five minutes of partitions which the others lead that there are none.
    """
    create(fleet[0].address, topic, PARTITIONS)
    wait_until_all_lead(fleet, topic)
    reader = consumer(",".join(sidecar.address for sidecar in fleet))

    def finds_all() -> bool:
        with suppress(KafkaException):
            for index in range(PARTITIONS):
                reader.get_watermark_offsets(TopicPartition(topic, index), timeout=3, cached=False)
            return True
        return False

    def has_answered() -> bool:
        with suppress(KafkaException):
            return bool(reader.list_topics(topic, timeout=3).brokers)
        return False

    wait_for(finds_all)
    for sidecar in fleet:
        sidecar.kill()
    fleet[0].start()
    wait_for(has_answered)
    assert told(fleet[0].address, topic)[0] >= {0, 1, 2}
    for sidecar in fleet[1:]:
        sidecar.begin()
    for sidecar in fleet[1:]:
        sidecar.wait()
    wait_for(finds_all, 60)
    reader.close()
