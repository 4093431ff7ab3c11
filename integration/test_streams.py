"""Kafka Streams with exactly_once_v2: every count is written once, though an instance joins and another is killed."""

from __future__ import annotations

import re
import subprocess
import time
from pathlib import Path
from typing import Any, Final

from integration.conftest import Cluster
from integration.kafka_clients import create, produce, read
from integration.launcher.jvm import short_lived_tool
from integration.launcher.kafka import STREAMS
from integration.launcher.programs import java_program
from integration.patience import LONG, wait_for

KEYS: Final = 10
EACH: Final = 150  # records of a key


def instance(cluster: Cluster, source: str, target: str, directory: Path, seconds: int) -> subprocess.Popen[str]:
    program = java_program("StreamsCount", STREAMS, short_lived_tool(STREAMS))
    command = [*program, cluster.kafka, source, target, f"app-{target}", str(directory)]
    log = (directory.parent / f"{directory.name}.log").open("w")
    return subprocess.Popen([*command, str(seconds)], stdout=log, stderr=subprocess.STDOUT, text=True)


def counts(cluster: Cluster, target: str, seconds: float) -> dict[bytes | None, list[int]]:
    """What was committed of each key, in order."""
    settings: dict[str, Any] = {"isolation.level": "read_committed"}
    by_key: dict[bytes | None, list[int]] = {}
    for partition in range(2):
        for record in read(cluster.kafka, target, KEYS * EACH, partition, seconds=seconds, **settings):
            by_key.setdefault(record.key, []).append(int(record.value or b""))
    return by_key


def test_every_count_is_written_once(cluster: Cluster, topic: str, tmp_path: Path) -> None:
    source, target = topic, f"{topic}-counts"
    create(cluster.kafka, source, 2)
    create(cluster.kafka, target, 2)

    def write(count: int) -> None:
        for partition in range(2):
            keys = [b"k%d-%d" % (partition, number % (KEYS // 2)) for number in range(count * KEYS // 2)]
            produce(cluster.kafka, source, [b"v"] * len(keys), partition, keys=keys)

    write(EACH // 3)
    first = instance(cluster, source, target, tmp_path / "first", 300)
    deadline = time.monotonic() + LONG
    while not counts(cluster, target, 1) and time.monotonic() < deadline:
        assert first.poll() is None, (tmp_path / "first.log").read_text()[-2_000:]
    second = instance(cluster, source, target, tmp_path / "second", 300)
    write(EACH // 3)
    # It joins, and restores what the first has counted.
    wait_for(
        lambda: re.findall(r"^state (\w+)", (tmp_path / "second.log").read_text(), re.MULTILINE)[-1:] == ["RUNNING"]
    )
    first.kill()
    write(EACH // 3)
    deadline = time.monotonic() + LONG
    found = counts(cluster, target, 2)
    while sum(map(len, found.values())) < KEYS * EACH and time.monotonic() < deadline:
        found = counts(cluster, target, 2)
    second.kill()
    assert {key: numbers == list(range(1, EACH + 1)) for key, numbers in found.items()} == {
        b"k%d-%d" % (partition, number): True for partition in range(2) for number in range(KEYS // 2)
    }, (tmp_path / "second.log").read_text()[-2_000:]
