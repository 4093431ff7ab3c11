"""Transactions while sidecars are killed and stopped, topics are unloaded and the broker restarts: every record is
copied once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import KafkaException, Producer, TopicPartition

from integration.conftest import new_topic
from integration.exactly_once_copier import ExactlyOnceCopier
from integration.kafka_clients import QUIET, consumer, create, produce, read
from integration.launcher.pulsar import Standalone
from integration.launcher.sidecar import SidecarProcess
from integration.patience import LONG, wait_for
from integration.support import admin, unload
from integration.transaction_checker import COMMITTED, read_committed

COUNT = 1_200
NAMESPACE = "public/transactions"


class Setup:
    def __init__(self, standalone: Standalone, first: SidecarProcess, second: SidecarProcess) -> None:
        self.standalone = standalone
        self.first = first
        self.second = second

    def unload_internal(self) -> None:
        admin("PUT", f"{self.standalone.admin_url}/admin/v2/namespaces/{NAMESPACE}/unload")


@pytest.fixture
def setup(fleet_broker: Standalone, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Setup]:
    sidecars = [
        SidecarProcess(
            tmp_path_factory.mktemp("sidecar"), fleet_broker.url, fleet_broker.admin_url, groups__namespace=NAMESPACE
        )
        for _ in range(2)
    ]
    for sidecar in sidecars:
        sidecar.start()
    yield Setup(fleet_broker, *sidecars)
    for sidecar in sidecars:
        sidecar.kill()
        assert not sidecar.complaints()


def _coordinate(sidecar: SidecarProcess) -> None:
    """Make it the coordinator of groups and of transactions."""
    Producer({"bootstrap.servers": sidecar.address, "transactional.id": "first", **QUIET}).init_transactions(60)
    client = consumer(sidecar.address, **{"group.id": "first"})
    client.committed([TopicPartition(new_topic(), 0)], 60)
    client.close()


def _kill(sidecar: SidecarProcess) -> None:
    sidecar.kill()
    sidecar.start()


def _stand_still(setup: Setup, topic: str) -> None:
    """Until the other leads what it led, and it does not know."""
    led = setup.second.shards_led()
    with setup.second.standing_still():
        wait_for(lambda: setup.first.shards_led() >= led)


def test_a_zombie_at_another_sidecar_is_fenced(setup: Setup) -> None:
    topic = new_topic()
    create(setup.first.address, topic)

    def begun(sidecar: SidecarProcess) -> Producer:
        client = Producer({"bootstrap.servers": sidecar.address, "transactional.id": topic, "linger.ms": 0, **QUIET})
        client.init_transactions(60)
        client.begin_transaction()
        client.produce(topic, b"of the one at %d" % sidecar.port, partition=0)
        client.flush(LONG)
        return client

    zombie = begun(setup.first)
    successor = begun(setup.second)
    zombie.produce(topic, b"and again", partition=0)
    with pytest.raises(KafkaException, match="fenced"):
        zombie.commit_transaction(60)
    successor.commit_transaction(60)
    for sidecar in (setup.first, setup.second):
        found = read_committed(sidecar.address, topic)[0]
        assert [value for _, value in found] == [b"of the one at %d" % setup.second.port]


FAULTS: dict[str, Callable[[Setup, str], None]] = {
    "the client's sidecar is killed": lambda setup, topic: _kill(setup.first),
    "the other sidecar is killed": lambda setup, topic: _kill(setup.second),
    "the other sidecar stands still": _stand_still,
    "internal topics are unloaded": lambda setup, topic: setup.unload_internal(),
    "the topic is unloaded": lambda setup, topic: unload(setup.standalone.admin_url, topic),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_every_record_is_copied_once(setup: Setup, fault: str) -> None:
    source = new_topic()
    target = f"{source}-copy"
    create(setup.first.address, source)
    create(setup.first.address, target)
    produce(setup.first.address, source, [b"%d" % number for number in range(COUNT // 2)])
    _coordinate(setup.second)  # it comes first and has all shards; the client's sidecar asks it
    copier = ExactlyOnceCopier(setup.first.address, source, target)
    wait_for(lambda: copier.copied >= COUNT // 6)
    for _ in range(2):
        copied = copier.copied
        FAULTS[fault](setup, target)
        wait_for(lambda copied=copied: copier.copied >= min(copied + 1, COUNT // 2))  # type: ignore[misc]
    produce(setup.second.address, source, [b"%d" % number for number in range(COUNT // 2, COUNT)])
    read(setup.first.address, target, COUNT, seconds=180, **COMMITTED)
    copier.stop()
    found = [value for _, value in read_committed(setup.first.address, target)[0]]
    wrong = next((at for at, value in enumerate(found) if value != b"%d" % at), len(found))
    assert len(found) == wrong == COUNT, (
        f"{found[wrong : wrong + 3]} at {wrong} of {len(found)}; {copier.copied} copied, {copier.failures[-5:]}"
    )
