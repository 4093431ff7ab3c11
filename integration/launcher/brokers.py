"""Two brokers over one ZooKeeper and one bookie, to move topics between them and to lose one.

The storage runs in a JVM of its own and is never broken: what is tested is who serves a topic.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import httpx

from integration.launcher.process import STARTS_WITHIN, Restartable, Server, free_port
from integration.launcher.pulsar import (
    DEFAULT_VERSION,
    LAPTOP_SETTINGS,
    SIDECAR_SETTINGS,
    answers,
    java,
    write_settings,
)
from integration.support import admin

_HEAP: Final = "-Xmx512m"
_MOVE_SECONDS: Final = 30.0


class Broker(Restartable):
    """One of the brokers. `kill` and `start` bring it back under its own address."""

    def __init__(self, directory: Path, name: str, settings: dict[str, str], listeners: Sequence[str]) -> None:
        """Clients that ask for one of `listeners` are sent to its port, where the test puts what it likes."""
        self.port = free_port()
        self.listener_ports = {listener: free_port() for listener in listeners}
        self.web_port = free_port()
        self._directory = directory
        self._name = name
        self._settings = settings

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def web_address(self) -> str:
        return f"127.0.0.1:{self.web_port}"

    def start(self) -> None:
        config = self._directory / f"{self._name}.conf"
        settings = {**self._settings, "brokerServicePort": str(self.port), "webServicePort": str(self.web_port)}
        if self.listener_ports:
            del settings["advertisedAddress"]  # Pulsar takes either
            ports = {"internal": self.port, **self.listener_ports}
            settings["advertisedListeners"] = ",".join(
                f"{name}:pulsar://127.0.0.1:{port}" for name, port in ports.items()
            )
            settings["internalListenerName"] = "internal"
        write_settings(config, settings)
        command = [
            *java(DEFAULT_VERSION, self._directory, _HEAP),
            "org.apache.pulsar.PulsarBrokerStarter",
            "--broker-conf",
            str(config),
        ]
        self._server = Server(self._name, command, self._directory / f"{self._name}.log")

    def wait(self) -> None:
        assert self._server is not None
        self._server.wait_until(lambda: answers(f"http://{self.web_address}/admin/v2/brokers/health"))


class TwoBrokers:
    def __init__(self, directory: Path, listeners: Sequence[str] = (), **more: str) -> None:
        self._directory = directory
        self._zookeeper = f"127.0.0.1:{free_port()}"
        self._storage: Server | None = None
        settings = {
            **LAPTOP_SETTINGS,
            **SIDECAR_SETTINGS,
            "clusterName": "two",
            "metadataStoreUrl": f"zk:{self._zookeeper}",
            "configurationMetadataStoreUrl": f"zk:{self._zookeeper}",
            "metadataStoreSessionTimeoutMillis": "6000",
            "loadBalancerEnabled": "true",
            "loadBalancerSheddingEnabled": "false",
            "loadBalancerAutoBundleSplitEnabled": "false",
            **more,
        }
        self.brokers = (
            Broker(directory, "broker-1", settings, listeners),
            Broker(directory, "broker-2", settings, listeners),
        )

    @property
    def url(self) -> str:
        return "pulsar://" + ",".join(broker.address for broker in self.brokers)

    @property
    def admin_url(self) -> str:
        return ",".join(f"http://{broker.web_address}" for broker in self.brokers)

    def start(self) -> None:
        self._directory.mkdir(parents=True, exist_ok=True)
        self._start_storage()
        self._set_up_metadata()
        for broker in self.brokers:
            broker.start()
        for broker in self.brokers:
            broker.wait()

    def _start_storage(self) -> None:
        bookie_port = str(free_port())
        config = self._directory / "storage.conf"
        settings = {
            **LAPTOP_SETTINGS,
            "zookeeperServers": self._zookeeper,
            "configurationStoreServers": self._zookeeper,
        }
        settings |= {
            "bookiePort": bookie_port,
            "httpServerPort": str(free_port()),
            "prometheusStatsHttpPort": str(free_port()),
        }
        write_settings(config, settings)
        command = [
            *java(DEFAULT_VERSION, self._directory, _HEAP),
            "org.apache.pulsar.PulsarStandaloneStarter",
            "--config",
            str(config),
            "-nfw",
            "-nss",
            "--no-broker",
            "-a",
            "127.0.0.1",
            "--zookeeper-port",
            self._zookeeper.rpartition(":")[2],
            "--zookeeper-dir",
            str(self._directory / "zookeeper"),
            "--bookkeeper-port",
            bookie_port,
            "--bookkeeper-dir",
            str(self._directory / "bookkeeper"),
        ]
        log = self._directory / "storage.log"
        self._storage = Server("ZooKeeper and the bookie", command, log, env={"PULSAR_STANDALONE_USE_ZOOKEEPER": "1"})
        self._storage.wait_until(lambda: "Local BK[0] started" in log.read_text())

    def _set_up_metadata(self) -> None:
        first = self.brokers[0]
        command = [
            *java(DEFAULT_VERSION, self._directory, "-Xmx256m"),
            "org.apache.pulsar.PulsarClusterMetadataSetup",
            "-c",
            "two",
            "-md",
            f"zk:{self._zookeeper}",
            "-cms",
            f"zk:{self._zookeeper}",
            "-uw",
            f"http://{first.web_address}",
            "-ub",
            f"pulsar://{first.address}",
        ]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=STARTS_WITHIN, check=False, env={**os.environ}
        )
        if done.returncode:
            raise SystemExit(
                f"the metadata of two brokers could not be set up:\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
            )

    # --- who serves what

    def admin(self, method: str, path: str, body: object = None) -> bytes:
        """Ask whichever broker is there."""
        failure: httpx.TransportError | None = None
        for broker in self.brokers:
            try:
                return admin(
                    method, f"http://{broker.web_address}/{path}", None if body is None else json.dumps(body).encode()
                )
            except httpx.TransportError as error:
                failure = error
        assert failure is not None
        raise failure

    def owner(self, topic: str) -> Broker:
        """The broker that serves partition 0 of `topic`."""
        found = json.loads(self.admin("GET", f"lookup/v2/topic/persistent/public/default/{topic}-partition-0"))
        return next(broker for broker in self.brokers if found["brokerUrl"].endswith(f":{broker.port}"))

    def move(self, topic: str) -> None:
        """Unload the bundle of `topic` towards the other broker."""
        before = self.owner(topic)
        other = next(broker for broker in self.brokers if broker is not before)
        bundle = self.admin("GET", f"lookup/v2/topic/persistent/public/default/{topic}-partition-0/bundle").decode()
        deadline = time.monotonic() + _MOVE_SECONDS
        while self.owner(topic) is before:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{topic} did not move to {other.address}")
            self.admin(
                "PUT", f"admin/v2/namespaces/public/default/{bundle}/unload?destinationBroker={other.web_address}"
            )
            time.sleep(0.2)

    def stop(self) -> None:
        for broker in self.brokers:
            broker.stop()
        if self._storage is not None:
            self._storage.stop()
