"""Apache Kafka's own jars: its console tools, and a KRaft node for comparison."""

from __future__ import annotations

import subprocess
import uuid
from pathlib import Path
from typing import Final

from integration.launcher.jars import Bundle, class_path
from integration.launcher.process import Restartable, Server, free_port

VERSION: Final = "4.2.0"
# The first 3.x whose producer is idempotent by default without KAFKA-13598, and the last one.
OLDER_VERSIONS: Final = ("3.2.3", "3.9.1")


def tools(version: str = VERSION) -> Bundle:
    return Bundle(
        name=f"kafka-{version}",
        jars=(
            f"org.apache.kafka:kafka_2.13:{version}",
            f"org.apache.kafka:kafka-tools:{version}",
            "org.slf4j:slf4j-nop:1.7.36",
        ),
    )


STREAMS: Final = Bundle(name=f"kafka-streams-{VERSION}", jars=(f"org.apache.kafka:kafka-streams:{VERSION}", "org.slf4j:slf4j-nop:1.7.36"))


def java_tool(
    name: str, *arguments: str, stdin: str | None = None, seconds: float = 60, version: str = VERSION
) -> subprocess.CompletedProcess[str]:
    """Run one of Kafka's command line classes to its end."""
    command = ["java", "-Xmx256m", "-cp", class_path(tools(version)), name, *arguments]
    return subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=seconds, check=False)


class KafkaNode(Restartable):
    """One KRaft node, broker and controller in one, on free ports."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.port = free_port()
        self._controller_port = free_port()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        config = self.directory / "server.properties"
        config.write_text(
            f"""process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{self._controller_port}
listeners=PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{self._controller_port}
advertised.listeners=PLAINTEXT://127.0.0.1:{self.port}
controller.listener.names=CONTROLLER
log.dirs={self.directory / "log"}
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
"""
        )
        if not (self.directory / "log").exists():
            cluster = uuid.uuid4().hex[:22]
            done = java_tool("kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(config))
            if done.returncode:
                raise SystemExit(f"Kafka's storage could not be formatted:\n{done.stdout}{done.stderr}")
        command = ["java", "-Xmx768m", "-cp", class_path(tools()), "kafka.Kafka", str(config)]
        self._server = Server("Kafka", command, self.directory / "kafka.log")
        self._server.wait_until(self._ready, 60)

    def _ready(self) -> bool:
        import socket

        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0
