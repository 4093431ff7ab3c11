"""Apache Kafka's own jars: its console tools, and a KRaft node for comparison."""

from __future__ import annotations

import functools
import subprocess
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from integration.launcher.jars import Bundle, class_path
from integration.launcher.jvm import short_lived_server, short_lived_tool
from integration.launcher.process import Restartable, Server, free_port
from integration.launcher.programs import java_program
from integration.launcher.tool_host import ToolHost

VERSION: Final = "4.2.0"
# The first 3.x whose producer is idempotent by default without KAFKA-13598, and the last one.
OLDER_VERSIONS: Final = ("3.2.3", "3.9.1")


_STORE_PASSWORD: Final = "changeit"  # noqa: S105
_LOGIN_MODULE: Final = "org.apache.kafka.common.security.scram.ScramLoginModule"


def tools(version: str = VERSION) -> Bundle:
    return Bundle(
        name=f"kafka-{version}",
        jars=(
            f"org.apache.kafka:kafka_2.13:{version}",
            f"org.apache.kafka:kafka-tools:{version}",
            "org.slf4j:slf4j-nop:1.7.36",
        ),
    )


STREAMS: Final = Bundle(
    name=f"kafka-streams-{VERSION}", jars=(f"org.apache.kafka:kafka-streams:{VERSION}", "org.slf4j:slf4j-nop:1.7.36")
)


def java(version: str = VERSION, flags: Sequence[str] | None = None) -> list[str]:
    """The start of a command line that runs one of Kafka's command line classes; without `flags`, in a JVM that lives
    for seconds.
    """
    if flags is None:
        flags = short_lived_tool(tools(version))
    return ["java", "-Xmx256m", *flags, "-cp", class_path(tools(version))]


@functools.cache
def _host(version: str) -> ToolHost:
    flags = (*short_lived_tool(tools(version)), "--add-opens=java.base/java.lang=ALL-UNNAMED")
    return ToolHost(java_program("ToolHost", tools(version), flags))


def java_tool(
    name: str, *arguments: str, stdin: str = "", seconds: float = 60, version: str = VERSION
) -> subprocess.CompletedProcess[str]:
    """Run one of Kafka's command line classes to its end, in a JVM that is there already."""
    return _host(version).run((name, *arguments), stdin, seconds)


def fresh_java_tool(name: str, *arguments: str, version: str) -> subprocess.CompletedProcess[str]:
    """The same in a JVM that has run nothing yet: some classes keep what they have counted."""
    _host(version).close()
    return java_tool(name, *arguments, version=version)


def measured_java_tool(name: str, *arguments: str, seconds: float) -> subprocess.CompletedProcess[str]:
    """The same in a JVM of its own that is as fast as it gets."""
    command = ["java", "-Xmx256m", "-cp", class_path(tools()), name, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)


class KafkaNode(Restartable):
    """One KRaft node, broker and controller in one, on free ports: for anybody, and with TLS for who has the
    password.
    """

    USER = "mover"
    PASSWORD = "of the mover"  # noqa: S105
    MECHANISM = "SCRAM-SHA-512"

    def __init__(self, directory: Path, *, jvm: Sequence[str] | None = None) -> None:
        """`jvm`: flags of one that is measured (`LONG_LIVED`)."""
        self.directory = directory
        self._jvm = jvm
        self.port = free_port()
        self._secured_port = free_port()
        self._controller_port = free_port()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def secured_address(self) -> str:
        return f"127.0.0.1:{self._secured_port}"

    @property
    def ca_file(self) -> Path:
        return self.directory / "ca.pem"

    def start(self) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        config = self.directory / "server.properties"
        config.write_text(
            f"""process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{self._controller_port}
listeners=PLAINTEXT://127.0.0.1:{self.port},SECURED://{self.secured_address},CONTROLLER://127.0.0.1:{self._controller_port}
advertised.listeners=PLAINTEXT://127.0.0.1:{self.port},SECURED://{self.secured_address}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,SECURED:SASL_SSL,CONTROLLER:PLAINTEXT
sasl.enabled.mechanisms={self.MECHANISM}
listener.name.secured.{self.MECHANISM.lower()}.sasl.jaas.config={_LOGIN_MODULE} required;
listener.name.secured.ssl.keystore.location={self._key_store}
listener.name.secured.ssl.keystore.password={_STORE_PASSWORD}
controller.listener.names=CONTROLLER
log.dirs={self.directory / "log"}
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
"""
        )
        if not (self.directory / "log").exists():
            self._make_key()
            cluster, user = uuid.uuid4().hex[:22], f'{self.MECHANISM}=[name={self.USER},password="{self.PASSWORD}"]'
            done = java_tool("kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(config), "--add-scram", user)
            if done.returncode:
                raise SystemExit(f"Kafka's storage could not be formatted:\n{done.stdout}{done.stderr}")
        flags = short_lived_server(tools()) if self._jvm is None else self._jvm
        command = ["java", "-Xmx768m", *flags, "-cp", class_path(tools()), "kafka.Kafka", str(config)]
        self._server = Server("Kafka", command, self.directory / "kafka.log")
        self._server.wait_until(self._ready)

    @property
    def _key_store(self) -> Path:
        return self.directory / "keys.p12"

    def _make_key(self) -> None:
        store = ("-keystore", str(self._key_store), "-storepass", _STORE_PASSWORD, "-alias", "kafka")
        name = ("-dname", "CN=127.0.0.1", "-ext", "SAN=ip:127.0.0.1")
        make = ("-genkeypair", "-keyalg", "RSA", "-validity", "3650", *name)
        for command in ((*make, *store), ("-exportcert", "-rfc", "-file", str(self.ca_file), *store)):
            subprocess.run(("keytool", *command), check=True, capture_output=True)

    def _ready(self) -> bool:
        import socket

        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0
