"""Exactly once on two brokers: whatever breaks, consumers are given whole transactions that were committed, each once,
and nothing else.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from integration.conftest import new_topic
from integration.kafka_clients import bounds, create, produce
from integration.launcher.brokers import TwoBrokers
from integration.launcher.process import free_port
from integration.launcher.pulsar import Standalone
from integration.launcher.sidecar import SidecarProcess
from integration.patience import wait_for
from integration.support import unload
from integration.transaction_checker import TransactionChecker, read_committed
from integration.versions import EACH_OLDER

NAMESPACE: Final = "public/default"  # so that brokers can be told to move internal topics as well
STAGES: Final = 3
TURNS: Final = 8
RECORDS: Final = 200 * TURNS


@dataclass
class Setup:
    brokers: TwoBrokers
    sidecars: list[SidecarProcess]

    def kill_a_sidecar(self, number: int) -> None:
        self.sidecars[number].kill()
        self.sidecars[number].start()

    def stop_a_sidecar_for_a_while(self, number: int) -> None:
        """Its terms end, and it does not know."""
        stopped, other = self.sidecars[number], self.sidecars[1 - number]
        led = stopped.shards_led()
        with stopped.standing_still():
            wait_for(lambda: other.shards_led() >= led)

    def kill_the_broker_of(self, topic: str) -> None:
        broker = self.brokers.owner(topic)
        broker.kill()
        broker.start()
        broker.wait()


@pytest.fixture(scope="module")
def setup(two_brokers: TwoBrokers, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Setup]:
    sidecars = [
        SidecarProcess(
            tmp_path_factory.mktemp("sidecar"), two_brokers.url, two_brokers.admin_url, groups__namespace=NAMESPACE
        )
        for _ in range(2)
    ]
    try:
        for sidecar in sidecars:
            sidecar.start()
        yield Setup(two_brokers, sidecars)
        for sidecar in sidecars:
            assert sidecar.stop() == 0
            assert not sidecar.complaints()
    finally:
        for sidecar in sidecars:
            sidecar.kill()


FAULTS: Final[list[Callable[[Setup, str], None]]] = [
    lambda setup, topic: setup.brokers.move(topic),
    lambda setup, topic: setup.kill_a_sidecar(0),
    lambda setup, topic: setup.stop_a_sidecar_for_a_while(1),
    lambda setup, topic: setup.kill_the_broker_of(topic),
    lambda setup, topic: setup.kill_a_sidecar(1),
    lambda setup, topic: setup.brokers.move(topic),
]


def test_transactions_are_whole_and_nothing_else_is_seen(setup: Setup) -> None:
    topic = new_topic()
    create(setup.sidecars[0].address, topic, 3)
    checker = TransactionChecker([sidecar.address for sidecar in setup.sidecars], topic)
    checker.wait_for_commits(50)
    for fault in FAULTS:
        fault(setup, topic)
        checker.wait_for_commits(30)
    checker.judge()


@pytest.mark.parametrize("version", EACH_OLDER)
def test_the_same_on_older_pulsars_through_sidecars_that_advertise_themselves(version: str, tmp_path: Path) -> None:
    """Clients ask the coordinator itself, and are sent to the other when it dies."""
    standalone = Standalone(tmp_path / "pulsar", version=version)
    ports = [free_port(), free_port()]
    sidecars = [
        SidecarProcess(
            tmp_path / f"sidecar-{number}",
            standalone.url,
            standalone.admin_url,
            port=port,
            kafka__advertised=f"127.0.0.1:{port}",
            kafka__node_id=str(number),
        )
        for number, port in enumerate(ports)
    ]
    topic = new_topic()
    try:
        standalone.start()
        for sidecar in sidecars:
            sidecar.start()
        create(sidecars[0].address, topic, 3)
        checker = TransactionChecker([sidecar.address for sidecar in sidecars], topic)
        checker.wait_for_commits(50)
        unload(standalone.admin_url, topic)
        checker.wait_for_commits(30)
        for sidecar in sidecars:
            sidecar.kill()
            checker.wait_for_commits(20)  # through the other
            sidecar.start()
        checker.wait_for_commits(30)
        checker.judge()
        for sidecar in sidecars:
            assert not sidecar.complaints()
    finally:
        for sidecar in sidecars:
            sidecar.kill()
        standalone.stop()


class Stage:
    """A process that copies from one topic to the next, and is started again when it has been killed."""

    def __init__(self, address: str, source: str, target: str) -> None:
        self._command = [sys.executable, "-m", "integration.exactly_once_copier", address, source, target]
        self.start()

    def start(self) -> None:
        self._process = subprocess.Popen(self._command)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def end(self) -> None:
        self._process.terminate()
        self._process.wait()


def test_a_chain_of_copies_has_each_record_once_and_in_order_though_everything_is_killed(setup: Setup) -> None:
    topics = [f"{new_topic()}-{number}" for number in range(STAGES + 1)]
    for topic in topics:
        create(setup.sidecars[0].address, topic)
    values = [b"%d" % number for number in range(RECORDS)]
    addresses = [setup.sidecars[number % 2].address for number in range(STAGES)]
    stages = [Stage(*place) for place in zip(addresses, topics, topics[1:], strict=False)]
    try:
        for turn in range(TURNS):
            part = RECORDS // TURNS
            _, before = bounds(setup.sidecars[0].address, topics[-1])
            produce(setup.sidecars[turn % 2].address, topics[0], values[turn * part : (turn + 1) * part])
            wait_for(lambda before=before: bounds(setup.sidecars[0].address, topics[-1])[1] > before)  # type: ignore[misc]
            stage = stages[turn % STAGES]
            stage.kill()  # in the middle of a part
            stage.start()
            if turn % 3 == 1:
                setup.kill_a_sidecar(turn // 3 % 2)
            elif turn == TURNS - 2:
                setup.kill_the_broker_of(topics[2])
        wait_for(lambda: len(read_committed(setup.sidecars[1].address, topics[-1])[0]) >= RECORDS)
    finally:
        for stage in stages:
            stage.end()
    assert [value for _, value in read_committed(setup.sidecars[1].address, topics[-1])[0]] == values
