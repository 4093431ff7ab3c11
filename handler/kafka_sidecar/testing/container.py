"""Pulsar and the sidecar, each in a container, on a network of their own."""

from __future__ import annotations

import os
import socket
import time
from types import TracebackType
from typing import Any, Final

from docker.errors import APIError
from testcontainers.core.container import DockerContainer
from testcontainers.core.docker_client import DockerClient
from testcontainers.core.network import Network

from kafka_sidecar import __version__
from kafka_sidecar.errors import SidecarError

PULSAR_IMAGE: Final = "apachepulsar/pulsar:4.2.4"
# Network aliases of the two containers.
PULSAR: Final = "pulsar"
KAFKA: Final = "kafka"
KAFKA_PORT: Final = 9092
CONTROL_PORT: Final = 9095
# Container ports for clients on the host. Metadata advertises the host ports to which they are published.
HOST_KAFKA_PORT: Final = 9094
HOST_PULSAR_PORT: Final = 6651
LOG_LINES: Final = 40
# Another process may take a port between the moment it was found free and the start of the container.
PORT_TRIES: Final = 3

# Broker settings that the sidecar needs, and that keep the broker from deleting topics or data during a test.
BROKER_SETTINGS: Final = {
    "brokerEntryMetadataInterceptors": "org.apache.pulsar.common.intercept.AppendIndexMetadataInterceptor,"
    "org.apache.pulsar.common.intercept.AppendBrokerTimestampMetadataInterceptor",
    "exposingBrokerEntryMetadataToClientEnabled": "true",
    "systemTopicEnabled": "true",
    "topicLevelPoliciesEnabled": "true",
    "brokerDeleteInactiveTopicsEnabled": "false",
    "allowAutoTopicCreation": "false",
    "defaultRetentionTimeInMinutes": "-1",
    "defaultRetentionSizeInMB": "-1",
    "managedLedgerDefaultEnsembleSize": "1",
    "managedLedgerDefaultWriteQuorum": "1",
    "managedLedgerDefaultAckQuorum": "1",
}


class NotStarted(SidecarError):
    """With the ends of both logs."""


class PulsarKafkaContainer:
    """A Pulsar that Kafka clients use: `start` and `stop`, or `with`.

    `settings` are the sidecar's, as in `kafka__entry_format="pulsar"`; `broker_settings` are Pulsar's. Topics are made
    when they are named, as by the Kafka that tests are used to, unless the settings say otherwise.
    """

    def __init__(
        self,
        image: str = "",
        pulsar_image: str = "",
        *,
        broker_settings: dict[str, str] | None = None,
        seconds: float = 180,
        **settings: Any,
    ) -> None:
        self.image = image or os.environ.get("PULSAR_KAFKA_IMAGE") or f"kafka-sidecar:{__version__}"
        self.pulsar_image = pulsar_image or os.environ.get("PULSAR_IMAGE") or PULSAR_IMAGE
        self._broker_settings = {**BROKER_SETTINGS, **(broker_settings or {})}
        self._settings = settings
        self._seconds = seconds
        self._network: Network | None = None
        self._pulsar: DockerContainer | None = None
        self._sidecar: DockerContainer | None = None
        self._host = ""
        self._ports = (0, 0, 0)

    def start(self) -> PulsarKafkaContainer:
        self._host = DockerClient().host()
        self._network = Network().create()
        try:
            for left in reversed(range(PORT_TRIES)):
                self._ports = _free_ports(3)
                try:
                    self._start_both(self._network)
                    break
                except Exception as error:
                    self._remove_containers()
                    if not left or not any(
                        taken in str(error) for taken in ("port is already allocated", "address already in use")
                    ):
                        raise
            self._wait()
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        self._remove_containers()
        if self._network is not None:
            self._network.remove()
            self._network = None

    def __enter__(self) -> PulsarKafkaContainer:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    # --- where it is

    def get_bootstrap_server(self) -> str:
        """For Kafka clients on the host."""
        return f"{self._host}:{self._ports[0]}"

    def get_internal_bootstrap_server(self) -> str:
        """For Kafka clients in containers of `network`."""
        return f"{KAFKA}:{KAFKA_PORT}"

    def get_pulsar_url(self) -> str:
        """For Pulsar clients on the host."""
        return f"pulsar://{self._host}:{self._ports[1]}"

    def get_admin_url(self) -> str:
        """Pulsar's admin API, from the host."""
        return f"http://{self._host}:{self._ports[2]}"

    @property
    def network(self) -> Network:
        """For containers of the test itself: `with_network(kafka.network)`."""
        assert self._network is not None, "start it first"
        return self._network

    # --- what tests do to it

    def run(self, *arguments: str) -> str:
        """A command of the sidecar in its container, as in `run("verify", "orders")`; what it prints."""
        assert self._sidecar is not None, "start it first"
        code, output = self._sidecar.exec(["kafka-sidecar", *arguments])
        text: str = output.decode()
        if code:
            raise SidecarError(f"kafka-sidecar {' '.join(arguments)} ended with {code}: {text}")
        return text

    def kill_pulsar(self) -> None:
        """As a machine that fails."""
        assert self._pulsar is not None, "start it first"
        self._pulsar.get_wrapped_container().kill()

    def restart_pulsar(self) -> None:
        """On the data it had."""
        assert self._pulsar is not None, "start it first"
        self._pulsar.get_wrapped_container().start()

    def logs(self) -> str:
        """The ends of both logs."""
        return "\n".join(
            _log_of(name, container) for name, container in (("Pulsar", self._pulsar), ("sidecar", self._sidecar))
        )

    # --- how it starts

    def _start_both(self, network: Network) -> None:
        kafka_port, pulsar_port, admin_port = self._ports
        # A Pulsar client gets the advertised addresses of the listener that it connects to. The broker's own clients
        # use the internal listener.
        listeners = {
            "advertisedListeners": f"network:pulsar://{PULSAR}:6650,host:pulsar://{self._host}:{pulsar_port}",
            "bindAddresses": f"host:pulsar://0.0.0.0:{HOST_PULSAR_PORT}",
            "internalListenerName": "network",
        }
        pulsar = DockerContainer(self.pulsar_image).with_network(network).with_network_aliases(PULSAR)
        pulsar = pulsar.with_bind_ports(HOST_PULSAR_PORT, pulsar_port).with_bind_ports(8080, admin_port)
        for name, value in {**listeners, **self._broker_settings}.items():
            pulsar = pulsar.with_env(f"PULSAR_PREFIX_{name}", value)
        apply = "bin/apply-config-from-env.py conf/standalone.conf && exec bin/pulsar standalone -nfw -nss"
        self._pulsar = pulsar.with_command(["bash", "-c", apply])
        self._pulsar.start()
        given = {
            "pulsar__url": f"pulsar://{PULSAR}:6650",
            "pulsar__admin_url": f"http://{PULSAR}:8080",
            "kafka__advertised": f"{KAFKA}:{KAFKA_PORT}",
            "kafka__external_listen": f"0.0.0.0:{HOST_KAFKA_PORT}",
            "kafka__external_advertised": self.get_bootstrap_server(),
            "groups__initial_rebalance_delay_ms": 0,
            "kafka__auto_create_topics": True,
            **self._settings,
        }
        sidecar = DockerContainer(self.image).with_network(network).with_network_aliases(KAFKA)
        sidecar = sidecar.with_bind_ports(HOST_KAFKA_PORT, kafka_port).with_kwargs(read_only=True)
        for name, value in given.items():
            sidecar = sidecar.with_env(
                f"KAFKA_SIDECAR_{name.upper()}", str(value).lower() if isinstance(value, bool) else str(value)
            )
        self._sidecar = sidecar
        self._sidecar.start()

    def _wait(self) -> None:
        """Until Kafka clients are served: the sidecar waits for Pulsar itself."""
        until = time.monotonic() + self._seconds
        while not self._is_ready():
            if time.monotonic() > until:
                raise self._not_started(f"not ready after {self._seconds:.0f} s")
            time.sleep(0.5)

    def _is_ready(self) -> bool:
        assert self._pulsar is not None
        assert self._sidecar is not None
        if any(_state(one) != "running" for one in (self._pulsar, self._sidecar)):
            raise self._not_started("a container has ended")
        try:
            code, _ = self._sidecar.exec(
                ["kafka-sidecar", "ctl", "health", "ready", "--address", f"127.0.0.1:{CONTROL_PORT}"]
            )
        except APIError:  # the container is just stopping
            return False
        return bool(code == 0)

    def _not_started(self, why: str) -> NotStarted:
        return NotStarted(f"{self.image} in front of {self.pulsar_image}: {why}\n{self.logs()}")

    def _remove_containers(self) -> None:
        for container in (self._sidecar, self._pulsar):
            if container is not None:
                container.stop()
        self._sidecar = self._pulsar = None


def _free_ports(count: int) -> Any:
    held = [socket.socket() for _ in range(count)]
    try:
        for one in held:
            one.bind(("127.0.0.1", 0))
        return tuple(one.getsockname()[1] for one in held)
    finally:
        for one in held:
            one.close()


def _state(container: DockerContainer) -> str:
    wrapped = container.get_wrapped_container()
    wrapped.reload()
    return str(wrapped.status)


def _log_of(name: str, container: DockerContainer | None) -> str:
    if container is None or container.get_wrapped_container() is None:
        return f"--- {name}: not started"
    lines = b"".join(container.get_logs()).decode(errors="replace").splitlines()[-LOG_LINES:]
    return "\n".join([f"--- {name}, the last {len(lines)} lines", *lines])
