"""Two sidecars on one cluster: they share the groups, and nothing is lost when one of them goes."""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest
from confluent_kafka import OFFSET_INVALID, Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from integration.kafka_clients import QUIET, create, produce
from integration.launcher.process import free_port
from integration.launcher.pulsar import Standalone
from integration.launcher.sidecar import SidecarProcess
from integration.members import NEW_PROTOCOL, Member
from integration.patience import wait_for
from kafka_sidecar.config import GroupsConfig
from kafka_sidecar.coordination import balance
from kafka_sidecar.coordination.term import Phase
from kafka_sidecar.groups.service import GroupRuntime, group_runtime
from kafka_sidecar.groups.vocabulary import Now
from kafka_sidecar.loop.clock import SYSTEM_CLOCK
from kafka_sidecar.loop.ids import new_id
from kafka_sidecar.model.sidecar import SidecarInfo
from kafka_sidecar.pulsar.admin import PulsarAdmin
from kafka_sidecar.pulsar.client import PulsarClient
from kafka_sidecar.telemetry import metrics
from kafka_sidecar.topics.catalog import Catalog
from kafka_sidecar.topics.names import TopicNames

CONSUMER_OFFSETS, SHARDS = "__consumer_offsets", 8
GROUPS = [f"group-{number}" for number in range(10)]


@dataclass
class Pair:
    standalone: Standalone
    first: SidecarProcess
    second: SidecarProcess


@pytest.fixture
def pair(fleet_broker: Standalone, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    sidecars = [
        SidecarProcess(tmp_path_factory.mktemp("sidecar"), fleet_broker.url, fleet_broker.admin_url) for _ in range(2)
    ]
    for sidecar in sidecars:
        sidecar.start()
    yield Pair(fleet_broker, *sidecars)
    for sidecar in sidecars:
        sidecar.kill()
        assert not sidecar.complaints()


@dataclass
class Committer:
    """Commits 1, 2, 3, … of a group, through one sidecar and then the other, and remembers what was acknowledged."""

    group: str
    topic: str
    addresses: list[str]
    attempted: int = 0
    acknowledged: int = 0
    stop: bool = False
    thread: threading.Thread = field(init=False)

    def __post_init__(self) -> None:
        self._clients = [
            Consumer(
                {
                    "bootstrap.servers": one,
                    "group.id": self.group,
                    "enable.auto.commit": False,
                    "socket.timeout.ms": 10_000,
                    **QUIET,
                }
            )
            for one in self.addresses
        ]
        for client in self._clients:
            client.assign([TopicPartition(self.topic, 0)])
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self) -> None:
        while not self.stop:
            self.attempted += 1
            client = self._clients[self.attempted % len(self._clients)]
            try:
                client.commit(offsets=[TopicPartition(self.topic, 0, self.attempted)], asynchronous=False)
            except KafkaException:
                time.sleep(0.1)
                continue
            self.acknowledged = self.attempted
        for client in self._clients:
            client.close()


def committed(address: str, group: str, topic: str) -> int:
    client = Consumer({"bootstrap.servers": address, "group.id": group, **QUIET})
    (found,) = client.committed([TopicPartition(topic, 0)], timeout=30)
    client.close()
    return int(found.offset)


def _is_coordinated(address: str, group: str, topic: str) -> bool:
    try:
        committed(address, group, topic)
    except KafkaException:
        return False
    return True


def test_two_sidecars_share_the_groups_and_serve_each_other_s_clients(pair: Pair, topic: str) -> None:
    create(pair.first.address, topic, 2)
    for partition in range(2):
        produce(pair.first.address, topic, [b"x"] * 20, partition=partition)
    groups = [f"{topic}-{name}" for name in GROUPS]
    members = [
        (Member(pair.first.address, group, topic), Member(pair.second.address, group, topic)) for group in groups
    ]
    try:
        wait_for(lambda: all(len(one.assigned) == len(other.assigned) == 1 for one, other in members))
        assert all(one.assigned.isdisjoint(other.assigned) for one, other in members)
        logs = pair.first.log.read_text() + pair.second.log.read_text()
        assert len(set(re.findall(r"coordinating (__consumer_offsets-\d)", logs))) == 8
        for sidecar in (pair.first, pair.second):
            admin = AdminClient({"bootstrap.servers": sidecar.address})
            assert set(groups) <= {one.group_id for one in admin.list_consumer_groups().result(20).valid}
            for described in admin.describe_consumer_groups(groups).values():
                assert len(described.result(20).members) == 2
    finally:
        for one, other in members:
            one.stop()
            other.stop()


def _kill(pair: Pair) -> None:
    pair.first.kill()


def _drain(pair: Pair) -> None:
    pair.first.stop()


def _pause(pair: Pair) -> None:
    with pair.first.standing_still():
        _wait_until_the_other_leads_all(pair)


def _wait_until_the_other_leads_all(pair: Pair) -> None:
    wait_for(lambda: len([name for name in pair.second.shards_led() if name.startswith(CONSUMER_OFFSETS)]) == SHARDS)


@pytest.mark.parametrize("fault", [_kill, _drain, _pause], ids=["killed", "drained", "paused"])
def test_no_commit_is_lost_or_overtaken_when_a_coordinator_goes(
    pair: Pair, topic: str, fault: Callable[[Pair], None]
) -> None:
    create(pair.first.address, topic, 1)
    addresses = [pair.first.address, pair.second.address]
    if fault is not _pause:  # whoever commits through the one that dies can't go on
        addresses = [pair.second.address]
    committers = [Committer(f"{topic}-{name}", topic, addresses) for name in GROUPS]
    try:
        wait_for(lambda: all(one.acknowledged > 20 for one in committers))
        fault(pair)
        _wait_until_the_other_leads_all(pair)
        before = {one.group: one.acknowledged for one in committers}
        wait_for(lambda: all(one.acknowledged > before[one.group] + 20 for one in committers))
    finally:
        for one in committers:
            one.stop = True
        for one in committers:
            one.thread.join(60)
    for one in committers:
        kept = committed(pair.second.address, one.group, topic)
        assert one.acknowledged <= kept <= one.attempted, one.group


@pytest.mark.parametrize("fault", [_kill, _drain, _pause], ids=["killed", "drained", "paused"])
def test_groups_of_both_protocols_go_on_consuming_when_a_coordinator_goes(
    pair: Pair, topic: str, fault: Callable[[Pair], None]
) -> None:
    """Their members are clients of the sidecar that stays; about half of their coordinators go."""
    create(pair.first.address, topic, 2)
    address = pair.second.address
    wait_for(lambda: all(_is_coordinated(address, f"{topic}-{name}", topic) for name in GROUPS))
    protocols = [NEW_PROTOCOL if number % 2 else {} for number in range(len(GROUPS))]
    members = [
        [Member(address, f"{topic}-{name}", topic, protocol) for _ in range(2)]
        for name, protocol in zip(GROUPS, protocols, strict=True)
    ]
    produced: set[tuple[int, int]] = set()

    def write(count: int) -> None:
        for partition in range(2):
            produced.update(
                (partition, one.offset) for one in produce(address, topic, [b"x"] * count, partition=partition)
            )

    def all_read() -> bool:
        return all(produced <= {*one.read, *other.read} for one, other in members)

    try:
        wait_for(lambda: all(len(one.assigned) == len(other.assigned) == 1 for one, other in members))
        write(100)
        wait_for(all_read)
        fault(pair)
        write(100)
        _wait_until_the_other_leads_all(pair)
        write(100)
        wait_for(all_read)
        wait_for(lambda: all(len(one.assigned) == len(other.assigned) == 1 for one, other in members))
        assert all(one.assigned.isdisjoint(other.assigned) for one, other in members)
    finally:
        for group in members:
            for one in group:
                one.stop()
    # What they committed when they left, also of a group whose coordinator went under it.
    # A client that loses its place or is refused while it leaves says so. That is rare.
    said: list[str] = []
    for name, group in zip(GROUPS, members, strict=True):
        client = Consumer({"bootstrap.servers": address, "group.id": f"{topic}-{name}", **QUIET})
        kept = client.committed([TopicPartition(topic, partition) for partition in range(2)], timeout=30)
        client.close()
        for one in kept:
            if one.offset != 300:
                excuses = [
                    f"{member.lost} lost, refused: {member.refused_commits}"
                    for member in group
                    if member.says_it_did_not_commit
                ]
                assert excuses, f"{name}: {one.offset} of partition {one.partition} is committed"
                said += excuses
    assert len(said) <= 1, said


def test_sidecars_that_advertise_an_address_send_clients_to_the_coordinator(
    fleet_broker: Standalone, topic: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    ports = [free_port(), free_port()]
    sidecars = [
        SidecarProcess(
            tmp_path_factory.mktemp("gateway"),
            fleet_broker.url,
            fleet_broker.admin_url,
            port=port,
            kafka__advertised=f"127.0.0.1:{port}",
            kafka__node_id=str(number),
            groups__namespace="public/gateways",
        )
        for number, port in enumerate(ports)
    ]
    for sidecar in sidecars:
        sidecar.start()
    first, second = sidecars
    create(first.address, topic, 2)
    groups = [f"{topic}-{name}" for name in GROUPS]
    members = [(Member(first.address, group, topic), Member(second.address, group, topic)) for group in groups]
    try:
        wait_for(lambda: all(len(one.assigned) == len(other.assigned) == 1 for one, other in members))
        first.kill()
        wait_for(lambda: "coordinating __consumer_offsets" in second.log.read_text())
        wait_for(lambda: all(_is_coordinated(second.address, group, topic) for group in groups))
    finally:
        for one, other in members:
            one.stop()
            other.stop()
        for sidecar in sidecars:
            sidecar.kill()
    assert not first.complaints() + second.complaints()


def test_a_sidecar_that_does_not_coordinate_waits_for_one_that_does(
    fleet_broker: Standalone, topic: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    port = free_port()
    beside, gateway = (
        SidecarProcess(
            tmp_path_factory.mktemp("sidecar"),
            fleet_broker.url,
            fleet_broker.admin_url,
            groups__namespace="public/declined",
            **settings,
        )
        for settings in ({"groups__coordinate": "false"}, {"port": port, "kafka__advertised": f"127.0.0.1:{port}"})
    )
    beside.start()
    create(beside.address, topic, 1)
    produce(beside.address, topic, [b"x"] * 20)
    reader = Member(beside.address, topic, topic)
    try:
        wait_for(lambda: "nobody coordinates __consumer_offsets" in beside.log.read_text())
        assert not reader.assigned
        gateway.start()
        wait_for(lambda: len(reader.read) == 20)
        writer = Producer({"bootstrap.servers": beside.address, "transactional.id": topic, **QUIET})
        writer.init_transactions(30)
        writer.begin_transaction()
        writer.produce(topic, b"y")
        writer.commit_transaction(30)
        wait_for(lambda: len(reader.read) == 21)
    finally:
        reader.stop()
        for one in (beside, gateway):
            one.kill()
    for coordinated in ("__consumer_offsets", "__transaction_state"):
        assert f"coordinating {coordinated}" in gateway.log.read_text()
        assert f"coordinating {coordinated}" not in beside.log.read_text()
    assert not beside.complaints() + gateway.complaints()


def test_what_was_committed_of_a_deleted_topic_goes_with_it(pair: Pair, topic: str) -> None:
    create(pair.first.address, topic, 1)
    groups = [f"{topic}-{name}" for name in GROUPS]
    wait_for(lambda: all(_is_coordinated(pair.second.address, group, topic) for group in groups))
    for group in groups:
        client = Consumer(
            {"bootstrap.servers": pair.second.address, "group.id": group, "enable.auto.commit": False, **QUIET}
        )
        client.assign([TopicPartition(topic, 0)])
        client.commit(offsets=[TopicPartition(topic, 0, 5)], asynchronous=False)
        client.close()
    admin = AdminClient({"bootstrap.servers": pair.first.address})
    admin.delete_topics([topic])[topic].result(30)
    create(pair.first.address, topic, 1)
    wait_for(lambda: all(committed(pair.second.address, group, topic) == OFFSET_INVALID for group in groups))


async def test_sidecars_come_to_lead_about_as_many_shards_and_move_no_more_than_that(
    fleet_broker: Standalone, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(balance, "STABLE_SECONDS", 3.0)
    monkeypatch.setattr(balance, "CLAIM_SECONDS", 1.0)
    client, admin = PulsarClient(fleet_broker.url), PulsarAdmin(fleet_broker.admin_url)
    config = GroupsConfig(namespace="public/balanced")
    names = TopicNames("public/default", config.namespace)
    catalog = Catalog(admin, names, asyncio.get_running_loop().time)

    def now() -> Now:
        return Now(asyncio.get_running_loop().time(), time.time_ns() // 1_000_000)

    def sidecar(node: int) -> GroupRuntime:
        own = SidecarInfo(f"kafka-sidecar-{node}", node, f"127.0.0.1:{node}")
        return group_runtime(
            client, admin, config, catalog, lambda key, value: None, now, own, names, SYSTEM_CLOCK, new_id
        )

    def leads(runtime: GroupRuntime) -> int:
        return sum(shard.term.phase is Phase.LEADING for shard in runtime.coordinator.shards)

    async def until(shares: list[int]) -> None:
        async with asyncio.timeout(60):
            while [leads(runtime) for runtime in runtimes] != shares:  # noqa: ASYNC110 - it is told to nobody
                await asyncio.sleep(0.1)

    runtimes = [sidecar(1)]
    await runtimes[0].candidate()
    await until([8])
    runtimes.append(sidecar(2))
    await runtimes[1].candidate()
    terms_lost = metrics.TERMS_LOST._value.get()
    for _ in range(20):
        await asyncio.sleep(0.1)
        assert [leads(runtime) for runtime in runtimes] == [8, 0], "a newcomer takes nothing over"
    await until([4, 4])
    assert metrics.TERMS_LOST._value.get() == terms_lost
    await runtimes.pop(0).close()
    await until([8])
    await runtimes[0].close()
    await client.close()
    await admin.close()
