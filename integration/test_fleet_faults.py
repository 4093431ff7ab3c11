"""A fleet of up to five on two brokers, while it is scaled and its sidecars, their network and the brokers fail:
nothing is lost, nothing comes twice or out of order, and the group reads all of it.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from integration.fleet import Load, told, wait_until_all_lead
from integration.kafka_clients import create
from integration.launcher.brokers import TwoBrokers
from integration.launcher.process import free_port
from integration.launcher.sidecar import SidecarProcess
from integration.patience import wait_for
from integration.support import FaultProxy

NODES = [f"node{number}" for number in range(5)]
PARTITIONS = 10
REST_SECONDS = 0.1  # between records of the load: it shares two cores with the servers that start again
ENOUGH = 15  # records of each partition, to see that all go on
STALL_SECONDS = 4  # shorter than the time-outs of clients: they wait for their answers
ROUNDS = int(os.environ.get("FLEET_FAULT_ROUNDS", "1"))  # of all faults
# What a client of sidecars that fail needs, beside its defaults: it gives up requests to one that stands still.
PATIENT = {"request.timeout.ms": 5_000, "socket.timeout.ms": 6_000}


class Network:
    """The ways to one side of a sidecar."""

    def __init__(self, *proxies: FaultProxy) -> None:
        self._proxies = proxies

    def cut(self) -> None:
        for proxy in self._proxies:
            proxy.cut()

    @contextmanager
    def stalled(self) -> Iterator[None]:
        for proxy in self._proxies:
            proxy.stall()
        yield
        for proxy in self._proxies:
            proxy.resume()

    def close(self) -> None:
        for proxy in self._proxies:
            proxy.close()


class Node:
    """A sidecar that clients and the others reach through proxies alone, and that reaches Pulsar through others."""

    def __init__(self, brokers: TwoBrokers, directory: Path, number: int) -> None:
        self.number = number
        listener = NODES[number]
        kafka, control, told = free_port(), free_port(), free_port()
        ways = [(broker, broker.listener_ports[listener], free_port()) for broker in brokers.brokers]
        self.sidecar = SidecarProcess(
            directory / f"sidecar-{number}",
            "pulsar://" + ",".join(f"127.0.0.1:{port}" for _, port, _ in ways),
            ",".join(f"http://127.0.0.1:{port}" for _, _, port in ways),
            pulsar__listener_name=listener,
            kafka__node_id=str(number),
            kafka__advertised=f"127.0.0.1:{kafka}",
            control__listen=f"127.0.0.1:{control}",
            control__advertised=f"127.0.0.1:{told}",
        )
        self.address = f"127.0.0.1:{kafka}"
        self.clients = Network(FaultProxy(self.sidecar.port, kafka), FaultProxy(control, told))
        self.pulsar = Network(
            *(FaultProxy(broker.port, port) for broker, port, _ in ways),
            *(FaultProxy(broker.web_port, port) for broker, _, port in ways),
        )

    def stall(self) -> None:
        with self.clients.stalled():
            time.sleep(STALL_SECONDS)

    def kill(self) -> None:
        self.sidecar.kill()
        self.sidecar.start()

    def restart(self) -> None:
        assert self.sidecar.stop() == 0
        self.sidecar.start()

    def end(self) -> None:
        self.sidecar.kill()
        self.clients.close()
        self.pulsar.close()


@pytest.mark.parametrize("seed", [int(os.environ.get("FLEET_FAULT_SEED", "14"))])
def test_nothing_is_lost_while_a_fleet_is_scaled_and_everything_fails(tmp_path: Path, topic: str, seed: int) -> None:
    chance = random.Random(seed)
    brokers = TwoBrokers(tmp_path / "pulsar", NODES, keepAliveIntervalSeconds="3")
    brokers.start()
    nodes = [Node(brokers, tmp_path, number) for number in range(len(NODES))]
    running = nodes[:3]
    for node in running:
        node.sidecar.start()
    create(running[0].address, topic, PARTITIONS)
    wait_until_all_lead([node.sidecar for node in running], topic)
    load = Load([node.address for node in nodes], topic, PARTITIONS, PATIENT, REST_SECONDS)

    def one() -> Node:
        return chance.choice(running)

    def broker_is_killed() -> None:
        broker = chance.choice(brokers.brokers)
        broker.kill()
        load.wait_for_more(ENOUGH)  # through the other, which takes over
        broker.start()
        broker.wait()

    def stands_still() -> None:
        """Until others lead what it led, and it does not know."""
        stopped, other = chance.sample(running, 2)
        with stopped.sidecar.standing_still():
            wait_for(lambda: stopped.number not in told(other.sidecar.address, topic)[1])
            load.wait_for_more(ENOUGH)

    def pulsar_is_lost() -> None:
        """By one that clients and the others still reach."""
        lost, other = chance.sample(running, 2)
        before = lost.sidecar.said_so_far()
        with lost.pulsar.stalled():
            wait_for(lambda: lost.number not in told(other.sidecar.address, topic)[1])
            # Its log says it: what a client asks it for needs Pulsar.
            wait_for(lambda: "Pulsar lists this sidecar no more: others lead" in lost.sidecar.said_since(before))

    def grow() -> None:
        for node in nodes[len(running) :]:
            node.sidecar.start()
            running.append(node)

    def shrink() -> None:
        for _ in range(2):
            assert running.pop(-1).sidecar.stop() == 0

    faults: list[Callable[[], None]] = [
        lambda: one().kill(),
        lambda: one().restart(),
        stands_still,
        lambda: one().clients.cut(),
        lambda: one().stall(),
        lambda: one().pulsar.cut(),
        pulsar_is_lost,
        broker_is_killed,
    ]
    try:
        load.wait_for_more(ENOUGH)
        for _ in range(ROUNDS):
            chance.shuffle(faults)
            for number, fault in enumerate(faults):
                if number == 2:
                    grow()
                if number == 4:
                    shrink()
                fault()
                load.wait_for_more(ENOUGH)
        wait_until_all_lead([node.sidecar for node in running], topic)
        load.wait_for_more(ENOUGH)
    finally:
        load.stop()
        for node in nodes:
            node.end()
        brokers.stop()
    # A client says so when it reaches nobody for a moment, which is what was done to it.
    assert [
        failure for failure in load.failed if "ALL_BROKERS_DOWN" not in failure and "brokers are down" not in failure
    ] == []
    load.check()
    assert all(load.acknowledged[partition] for partition in range(PARTITIONS))
    assert not [line for node in nodes for line in node.sidecar.complaints()]
