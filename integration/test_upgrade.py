"""A fleet of the last release becomes one of this release, node by node, while its clients are at work."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from integration.fleet import Load, gateways, pass_over, wait_until_all_lead
from integration.kafka_clients import QUIET, create
from integration.launcher.jars import CACHE
from integration.launcher.pulsar import Standalone
from integration.launcher.sidecar import SidecarProcess
from integration.patience import LONG

pytestmark = pytest.mark.soak

RELEASE = "76285a4"  # 0.2.0
PARTITIONS = 200
BATCHES_BEFORE = 5_000  # of each: a million entries
# As in the test of a rolling restart. One partition is written once a second.
SETTINGS = {"request.timeout.ms": 10_000, "socket.timeout.ms": 11_000}
REST_SECONDS = 0.2


@pytest.fixture(scope="module")
def last_release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    site = tmp_path_factory.mktemp("release")
    archive = subprocess.run(["git", "archive", RELEASE, "handler"], check=True, capture_output=True).stdout
    subprocess.run(["tar", "-x", "-C", str(site)], input=archive, check=True)
    return site


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Standalone]:
    server = Standalone(tmp_path / "pulsar")
    server.start()
    yield server
    server.stop()


def write_before(addresses: list[str], topic: str) -> None:
    """With sequences, in batches of one record."""
    producer = Producer(
        {
            "bootstrap.servers": ",".join(addresses),
            **QUIET,
            "enable.idempotence": True,
            "batch.num.messages": 1,
            "message.timeout.ms": 1_800_000,
        }
    )
    failed: list[str] = []
    for _ in range(BATCHES_BEFORE):
        for partition in range(PARTITIONS):
            while True:
                try:
                    told = lambda error, _: failed.append(str(error)) if error is not None else None  # noqa: E731
                    producer.produce(topic, b"", partition=partition, on_delivery=told)
                    break
                except BufferError:
                    producer.poll(0.1)
        producer.poll(0)
    assert producer.flush(1_800) == 0
    assert failed == []


def slowest_first_append(fleet: list[SidecarProcess], topic: str) -> float:
    """In seconds, over all partitions, when all sidecars were killed and started again."""
    for sidecar in fleet:
        sidecar.kill()
        sidecar.start()
    wait_until_all_lead(fleet, topic)
    producer = Producer({"bootstrap.servers": fleet[0].address, **QUIET, "enable.idempotence": True})
    producer.list_topics(topic, timeout=LONG)
    slowest = 0.0
    for partition in range(PARTITIONS):
        began = time.monotonic()
        producer.produce(topic, b"", partition=partition)
        assert producer.flush(LONG) == 0
        slowest = max(slowest, time.monotonic() - began)
    return slowest


@pytest.fixture
def fleet(broker: Standalone, last_release: Path, tmp_path: Path) -> Iterator[list[SidecarProcess]]:
    """Of the last release."""
    sidecars = gateways(broker, tmp_path, range(3), site=last_release)
    for sidecar in sidecars:
        sidecar.start()
    yield sidecars
    for sidecar in sidecars:
        sidecar.kill()


def test_applications_do_not_see_an_upgrade(fleet: list[SidecarProcess], topic: str) -> None:
    addresses = [sidecar.address for sidecar in fleet]
    create(addresses[0], topic, PARTITIONS)
    wait_until_all_lead(fleet, topic)
    write_before(addresses, topic)
    before = slowest_first_append(fleet, topic)
    pass_over(addresses[0], topic, PARTITIONS, BATCHES_BEFORE + 1)  # else it would read for longer than all else takes
    load = Load(addresses, topic, PARTITIONS, SETTINGS, REST_SECONDS)
    try:
        load.wait_for_more()
        for sidecar in fleet:
            assert sidecar.stop() == 0
            sidecar.site = None  # what is here
            sidecar.start()
            wait_until_all_lead(fleet, topic)
            load.wait_for_more()
        fleet[0].kill()
        fleet[0].start()
        load.wait_for_more()
    finally:
        load.stop()
    assert not load.failed
    load.check()
    after = slowest_first_append(fleet, topic)
    (CACHE / "upgrade.txt").write_text(f"the slowest first append: {before:.2f} s before the upgrade, {after:.2f} s after it\n")
    assert after <= before + 2
    assert not [line for sidecar in fleet for line in sidecar.complaints()]
