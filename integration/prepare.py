"""Get and make all that tests would otherwise wait for: jars, compiled programs, archives of classes, images, the
compiled wheel.

It begins beside the unit tests: much of it waits for the network.
"""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from integration.docker.images import has_engine, make_pulsar, make_sidecar
from integration.kafka_clients import create, produce, read
from integration.launcher.compiled_wheel import compiled_site
from integration.launcher.jars import Bundle, class_path
from integration.launcher.jvm import archive_of, archiving, short_lived_server, short_lived_tool
from integration.launcher.kafka import OLDER_VERSIONS as OLDER_CLIENTS
from integration.launcher.kafka import STREAMS, VERSION, java, tools
from integration.launcher.process import Server
from integration.launcher.programs import TOOLS, available, command, java_program
from integration.launcher.pulsar import OFFLOADER, Standalone, bundle, version_from_environment
from integration.launcher.sidecar import SidecarProcess
from integration.launcher.spark import CONNECTOR, ICEBERG
from integration.versions import OLDER_VERSIONS


def get_jars() -> None:
    clients = (tools(), *(tools(version) for version in OLDER_CLIENTS))
    pulsars = [bundle(version) for version in (version_from_environment(), *OLDER_VERSIONS)]
    for wanted in (*pulsars, OFFLOADER, CONNECTOR, ICEBERG, STREAMS, *clients):
        class_path(wanted)


def make_archives() -> None:
    """Of the classes that a Pulsar and Kafka's tools load when they start and a few records pass."""
    version = version_from_environment()
    server, tool = bundle(version), tools(VERSION)
    archive_of(server).parent.mkdir(parents=True, exist_ok=True)
    with (archive_of(server).parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (archive_of(server).exists() and archive_of(tool).exists()):
            _make_archives(version, server, tool)


def _make_archives(version: str, server: Bundle, tool: Bundle) -> None:
    fresh = {one: archive_of(one).with_suffix(".new") for one in (server, tool)}
    for one in fresh:
        archive_of(one).unlink(missing_ok=True)
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        pulsar = Standalone(
            directory / "pulsar", version=version, jvm=archiving(short_lived_server(server), fresh[server])
        )
        sidecar = SidecarProcess(directory / "sidecar", pulsar.url, pulsar.admin_url)
        try:
            pulsar.start()
            sidecar.start()
            create(sidecar.address, "warm", 1)
            produce(sidecar.address, "warm", [b"x"])
            assert len(read(sidecar.address, "warm", 1)) == 1
            consumer = [
                *java(VERSION, archiving(short_lived_tool(tool), fresh[tool])),
                "org.apache.kafka.tools.VerifiableConsumer",
            ]
            asked = (
                "--bootstrap-server",
                sidecar.address,
                "--topic",
                "warm",
                "--group-id",
                "warm",
                "--max-messages",
                "1",
            )
            subprocess.run(
                [*consumer, *asked, "--reset-policy", "earliest"], check=True, capture_output=True, timeout=60
            )
        finally:
            sidecar.stop()
            pulsar.stop(90)
    for one, place in fresh.items():
        place.replace(archive_of(one))


def make_programs() -> None:
    for client in filter(available, TOOLS):
        command(client)
    for version in (VERSION, *OLDER_CLIENTS):
        java_program("ToolHost", tools(version), ())
    for version in (VERSION, OLDER_CLIENTS[-1]):
        java_program("TransactionalCopier", tools(version), ())
    java_program("StreamsCount", STREAMS, ())
    java_program("KafkaMatrix", tools(), ())
    java_program("NativeMatrix", bundle(version_from_environment()), ())


def make_sidecar_image() -> None:
    if has_engine():
        make_sidecar()


def make_pulsar_image() -> None:
    """Of the sidecar's base, and of the jars."""
    if has_engine():
        make_pulsar()


def _do(*steps: Callable[[], object]) -> None:
    for step in steps:
        begun = time.monotonic()
        step()
        print(f"prepared: {step.__name__} in {time.monotonic() - begun:.0f} s", file=sys.stderr, flush=True)


def _end(*_: object) -> None:
    """With its servers, which have sessions of their own."""
    for server in Server.started:
        if server.running:
            server.kill()
    os._exit(130)


def main() -> None:
    """With the argument `servers` only what nearly all tests need; without it also images and the wheel, for a file
    each.
    """
    signal.signal(signal.SIGTERM, _end)
    signal.signal(signal.SIGINT, _end)
    with ThreadPoolExecutor(2) as pool:
        parts = [pool.submit(_do, get_jars, make_archives, make_programs)]
        if sys.argv[1:] != ["servers"]:
            parts.append(pool.submit(_do, compiled_site, make_sidecar_image))
        for part in parts:
            part.result()
    if sys.argv[1:] != ["servers"]:
        _do(make_pulsar_image)


if __name__ == "__main__":
    main()
