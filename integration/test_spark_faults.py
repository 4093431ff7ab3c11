"""A Spark stream while its driver, its sidecars and the broker are killed: what it has written is the log, each record
once.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from pyspark.sql import SparkSession

from integration.conftest import new_topic
from integration.kafka_clients import Acks, create, producer
from integration.launcher.process import free_port
from integration.launcher.pulsar import Standalone
from integration.launcher.sidecar import SidecarProcess
from integration.patience import LONG, wait_for

PARTITIONS: Final = 2
# A driver's start and its first batch took 80 s where both cores were busy with other servers.
BATCHES_SECONDS: Final = 240


class Writer:
    """Writes numbers at a steady pace, whatever happens."""

    def __init__(self, addresses: str, topic: str) -> None:
        self.acks = Acks()
        self._client = producer(addresses, **{"message.timeout.ms": 300_000})
        self._topic = topic
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        number = 0
        while not self._stop.is_set():
            self._client.produce(self._topic, b"%d" % number, partition=number % PARTITIONS, callback=self.acks)
            self._client.poll(0.01)
            number += 1

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()
        assert self._client.flush(LONG) == 0
        assert not self.acks.failed, self.acks.failed[:3]


class Job:
    def __init__(self, addresses: str, topic: str, directory: Path) -> None:
        self.directory = directory
        self._command = [sys.executable, "-m", "integration.programs.spark_stream", addresses, topic, str(directory)]
        self._log = (directory / "job.log").open("ab")
        self.start()

    def start(self) -> None:
        self._process = subprocess.Popen(self._command, stdout=self._log, stderr=self._log)

    def kill(self) -> None:
        """The driver with its JVM."""
        subprocess.run(["pkill", "-KILL", "-P", str(self._process.pid)], check=False)
        self._process.kill()
        self._process.wait()

    def batches(self) -> int:
        place = self.directory / "checkpoint" / "commits"
        return max((int(one.name) for one in place.glob("[0-9]*")), default=-1) + 1

    def wait_for_batches(self, count: int) -> None:
        wanted = self.batches() + count

        def is_there() -> bool:
            assert self._process.poll() is None, (self.directory / "job.log").read_text(errors="replace")[-3_000:]
            return self.batches() >= wanted

        wait_for(is_there, BATCHES_SECONDS)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    server = Standalone(tmp_path_factory.mktemp("pulsar"))
    server.start()
    yield server
    server.stop()


def test_a_stream_has_each_record_once_though_everything_is_killed(
    broker: Standalone, spark: SparkSession, tmp_path: Path
) -> None:
    ports = [free_port(), free_port()]
    sidecars = [
        SidecarProcess(
            tmp_path / f"sidecar-{number}",
            broker.url,
            broker.admin_url,
            port=port,
            kafka__advertised=f"127.0.0.1:{port}",
            kafka__node_id=str(number),
        )
        for number, port in enumerate(ports)
    ]
    for sidecar in sidecars:
        sidecar.start()
    addresses, topic = ",".join(sidecar.address for sidecar in sidecars), new_topic()
    create(addresses, topic, PARTITIONS)
    writer = Writer(addresses, topic)
    (tmp_path / "job").mkdir()
    job = Job(addresses, topic, tmp_path / "job")
    try:
        job.wait_for_batches(5)
        job.kill()
        job.start()
        job.wait_for_batches(5)
        for sidecar in sidecars:
            sidecar.kill()
            job.wait_for_batches(3)  # through the other
            sidecar.start()
        broker.kill()
        broker.start()
        job.wait_for_batches(5)
        writer.stop()
        expected = sorted((ack.partition, ack.offset, ack.value.decode()) for ack in writer.acks.acked)

        def found() -> list[tuple[int, int, str]]:
            files = spark.read.parquet(str(tmp_path / "job" / "out"))
            return sorted((row.partition, row.offset, row.value) for row in files.collect())

        deadline = time.monotonic() + BATCHES_SECONDS
        while len(found()) < len(expected) and time.monotonic() < deadline:
            time.sleep(1)
        assert found() == expected
    finally:
        writer._stop.set()
        job.kill()
        for sidecar in sidecars:
            sidecar.kill()
    for sidecar in sidecars:
        assert not sidecar.complaints()
