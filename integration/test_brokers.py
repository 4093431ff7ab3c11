"""Two brokers: topics move between them, one of them dies, and nothing is lost, doubled or told wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from integration.conftest import new_topic
from integration.exactly_once import assert_once_and_in_order, write_while
from integration.kafka_clients import create, produce, read
from integration.launcher.brokers import TwoBrokers
from integration.launcher.sidecar import SidecarProcess


@dataclass
class Pair:
    brokers: TwoBrokers
    sidecar: SidecarProcess


@pytest.fixture(scope="module")
def pair(two_brokers: TwoBrokers, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    sidecar = SidecarProcess(tmp_path_factory.mktemp("sidecar"), two_brokers.url, two_brokers.admin_url)
    sidecar.start()
    yield Pair(two_brokers, sidecar)
    assert sidecar.stop() == 0
    assert not sidecar.complaints()


def test_a_lookup_is_redirected_to_the_broker_that_serves_the_topic(pair: Pair, tmp_path: Path) -> None:
    topic = new_topic()
    create(pair.sidecar.address, topic, 1)
    owner = pair.brokers.owner(topic)
    other = next(broker for broker in pair.brokers.brokers if broker is not owner)
    asks_the_other = SidecarProcess(tmp_path, f"pulsar://{other.address}", f"http://{other.web_address}")
    asks_the_other.start()
    assert [ack.offset for ack in produce(asks_the_other.address, topic, [b"a", b"b"])] == [0, 1]
    assert [record.value for record in read(asks_the_other.address, topic, 2)] == [b"a", b"b"]
    assert asks_the_other.stop() == 0


def test_the_topic_moves_back_and_forth(pair: Pair) -> None:
    topic = new_topic()
    create(pair.sidecar.address, topic, 1)
    owners = []

    def fault(until_more: Callable[[], None]) -> None:
        for _ in range(3):
            pair.brokers.move(topic)
            owners.append(pair.brokers.owner(topic))
            until_more()

    acks = write_while(pair.sidecar.address, topic, fault)
    assert len(owners) == 3
    assert owners[0] is not owners[1]
    assert_once_and_in_order(pair.sidecar.address, topic, acks)


def test_the_broker_of_the_topic_dies(pair: Pair) -> None:
    topic = new_topic()
    create(pair.sidecar.address, topic, 1)
    dead = pair.brokers.owner(topic)
    acks = write_while(pair.sidecar.address, topic, lambda _: dead.kill())
    assert_once_and_in_order(pair.sidecar.address, topic, acks)
    assert pair.brokers.owner(topic) is not dead
    dead.start()
    dead.wait()
