"""A fleet of the last release becomes one of this release, node by node, while its clients are at work."""

from __future__ import annotations

import asyncio
import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import IsolationLevel, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec
from kio.schema.describe_producers.v0.request import TopicRequest
from kio.schema.types import TopicName
from kio.schema.write_txn_markers.v1.request import WritableTxnMarker, WritableTxnMarkerTopic
from kio.static.primitive import i16, i32

from integration.fleet import Load, gateways, pass_over, wait_until_all_lead
from integration.kafka_clients import (
    QUIET,
    consumer,
    create,
    offset_at,
    produce,
    transactional_producer,
    write_in_a_transaction,
)
from integration.launcher.jars import CACHE
from integration.launcher.pulsar import Standalone
from integration.launcher.sidecar import SidecarProcess
from integration.patience import LONG, wait_for
from integration.raw import RawConnection
from integration.support import admin

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


async def end_transaction(address: str, topic: str, *, commit: bool) -> None:
    """As `kafka-transactions abort` does it, which can't commit."""
    connection = await RawConnection.open(address)
    described = await connection.ask(61, 0, topics=(TopicRequest(name=TopicName(topic), partition_indexes=(i32(0),)),))
    producers = described.topics[0].partitions[0].active_producers
    (open_one,) = [one for one in producers if one.current_txn_start_offset >= 0]
    marker = WritableTxnMarker(
        producer_id=open_one.producer_id,
        producer_epoch=i16(open_one.producer_epoch),
        transaction_result=commit,
        coordinator_epoch=i32(0),
        topics=(WritableTxnMarkerTopic(name=TopicName(topic), partition_indexes=(i32(0),)),),
    )
    answer = await connection.ask(27, 1, markers=(marker,))
    assert answer.markers[0].topics[0].partitions[0].error_code == 0
    connection.close()


def have_a_transaction(sidecar: SidecarProcess, topic: str, value: bytes, *, commit: bool) -> None:
    client = transactional_producer(sidecar.address, f"{topic} of {sidecar.port}")
    write_in_a_transaction(client, topic, value, commit=commit)


def end_of(sidecar: SidecarProcess, topic: str, isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED) -> int:
    return offset_at(
        AdminClient({"bootstrap.servers": sidecar.address}), TopicPartition(topic, 0), OffsetSpec.latest(), isolation
    )


def values(sidecar: SidecarProcess, topic: str, isolation: IsolationLevel) -> list[bytes]:
    """All that consumers of this isolation level are given."""
    end = end_of(sidecar, topic, isolation)
    client = consumer(sidecar.address, **{"isolation.level": isolation.name.lower()})
    client.assign([TopicPartition(topic, 0, 0)])
    found: list[bytes] = []

    def is_at_the_end() -> bool:
        message = client.poll(0.5)
        if message is not None and message.error() is None:
            found.append(message.value())
        return end == 0 or client.position([TopicPartition(topic, 0)])[0].offset >= end

    wait_for(is_at_the_end)
    client.close()
    return found


def write_where_the_marker_goes_astray(team: SidecarProcess, others: SidecarProcess) -> str:
    """A transaction of a team that is coordinated by the others' sidecar. Which one coordinates an id is Pulsar's
    election.
    """
    for number in range(20):
        topic = f"orders{number}"
        for sidecar in (others, team):
            create(sidecar.address, topic, 1)
        have_a_transaction(team, topic, b"paid", commit=True)
        wait_for(lambda topic=topic: end_of(team, topic) == 2 or end_of(others, topic) == 1)  # type: ignore[misc]
        if end_of(others, topic):
            return topic
    raise AssertionError("all ids are coordinated by their own team's sidecar")


@pytest.mark.parametrize("commit", [True, False])
def test_a_log_opens_though_a_marker_of_it_went_to_another_teams_topic(
    broker: Standalone, last_release: Path, tmp_path: Path, commit: bool
) -> None:
    """Two teams share the groups. 0.2 took a short name for a topic of the coordinator's own namespace."""
    admin("PUT", f"{broker.admin_url}/admin/v2/namespaces/public/team")
    forever = json.dumps({"retentionTimeInMinutes": -1, "retentionSizeInMB": -1}).encode()
    admin("POST", f"{broker.admin_url}/admin/v2/namespaces/public/team/retention", forever)
    others, team = (
        SidecarProcess(
            tmp_path / name, broker.url, broker.admin_url, site=last_release, kafka__namespace=f"public/{name}"
        )
        for name in ("default", "team")
    )
    for sidecar in (others, team):
        sidecar.start()
        create(sidecar.address, "first", 1)
        have_a_transaction(sidecar, "first", b"first", commit=True)
    topic = write_where_the_marker_goes_astray(team, others)
    others.kill()
    have_a_transaction(team, topic, b"cancelled", commit=False)
    team.kill()  # it has kept nothing of its fold
    team.site = None
    team.start()
    try:
        produce(team.address, topic, [b"later"])
        assert values(team, topic, IsolationLevel.READ_UNCOMMITTED) == [b"paid", b"cancelled", b"later"]
        assert values(team, topic, IsolationLevel.READ_COMMITTED) == []
        asyncio.run(end_transaction(team.address, topic, commit=commit))
        assert values(team, topic, IsolationLevel.READ_COMMITTED) == [*[b"paid"] * commit, b"later"]
    finally:
        team.kill()


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
    (CACHE / "upgrade.txt").write_text(
        f"the slowest first append: {before:.2f} s before the upgrade, {after:.2f} s after it\n"
    )
    assert after <= before + 2
    assert not [line for sidecar in fleet for line in sidecar.complaints()]
