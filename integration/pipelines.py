"""What tests of the pipelines have in common: the command, topics with records of every kind, and what is in them."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import time
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, Final
from unittest import mock

from confluent_kafka import TopicPartition
from pyspark.sql import SparkSession

from integration.kafka_clients import Acks, Record, bounds, consumer, producer
from integration.patience import LONG
from kafka_sidecar.pipelines.command import main
from kafka_sidecar.pipelines.session import settings_of

COMMAND: Final = (sys.executable, "-m", "kafka_sidecar", "pipeline")
COMMITTED: Final[dict[str, Any]] = {"isolation.level": "read_committed"}
SCALE: Final = int(os.environ.get("PIPELINE_SCALE", "1"))  # of the larger run, see the Makefile
FILL_TRANSACTIONS: Final = 10
FILL_RECORDS: Final = 20  # of each transaction


def pipeline(name: str, *options: str, status: int = 0, seconds: float = 400) -> str:
    """Run to its end; what it has said."""
    done = subprocess.run([*COMMAND, name, *options], capture_output=True, text=True, timeout=seconds, check=False)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr


def pipeline_here(spark: SparkSession, name: str, *options: str, status: int = 0) -> str:
    """The same in this process and its Spark: most of a process of its own would be Spark that starts and ends."""

    def session(_name: str, _master: str, conf: tuple[str, ...] = (), **_options: Any) -> SparkSession:
        one = spark.newSession()
        one.stop = lambda: None
        for key, value in settings_of(conf).items():
            if key.startswith("spark.sql."):  # the others are of its JVM
                one.conf.set(key, value)
        return one

    said = io.StringIO()
    handler = signal.getsignal(signal.SIGTERM)
    try:
        with (
            mock.patch("kafka_sidecar.pipelines.session.spark_session", session),
            mock.patch("sys.argv", ["kafka-sidecar", name, *options]),
            redirect_stdout(said),
            redirect_stderr(said),
        ):
            ended = main()
    finally:
        signal.signal(signal.SIGTERM, handler)
    assert ended == status, said.getvalue()
    return said.getvalue()


class Driver:
    """A pipeline in a process of its own."""

    def __init__(self, directory: Path, *arguments: str) -> None:
        self.log = directory / "driver.log"
        self._command = [*COMMAND, *arguments]
        self.start()

    def start(self) -> None:
        with self.log.open("ab") as output:
            self._process: subprocess.Popen[Any] = subprocess.Popen(self._command, stdout=output, stderr=output)

    def kill(self) -> None:
        """The driver alone: its JVM and its tasks on the workers go on until they notice."""
        self._process.kill()
        self._process.wait()

    def wait(self, seconds: float) -> int:
        return self._process.wait(seconds)

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None


def contents(address: str, topic: str, partition: int = 0, with_offsets: bool = False, first: int = 0) -> list[Record]:
    """All committed records from offset `first` on; without their offsets, unless they are asked for."""
    end = bounds(address, topic, partition)[1]
    client = consumer(address, **COMMITTED, **{"enable.partition.eof": True})
    client.assign([TopicPartition(topic, partition, first)])
    found: list[Record] = []
    deadline = time.monotonic() + LONG
    while time.monotonic() < deadline:
        for message in client.consume(500, 1):
            if message.error() is not None:  # the end
                assert message.offset() <= end
                client.close()
                return found
            headers = tuple(message.headers() or ())
            offset = message.offset() if with_offsets else -1
            found.append(Record(offset, message.value(), message.key(), headers, message.timestamp()[1]))
    raise AssertionError(f"{topic}-{partition} has no end at {address}")


def fill(address: str, topic: str, count: int) -> None:
    """Records of every kind: codecs, no keys, no values, headers, times of before, transactions that end either way."""
    count *= SCALE
    now = round(time.time() * 1_000)
    for number, codec in enumerate(("none", "gzip", "snappy", "lz4", "zstd")):
        acks = Acks()
        client = producer(address, **{"compression.type": codec, "linger.ms": 20 * number})
        for index in range(count):
            client.produce(
                topic,
                None if index % 17 == 0 else b"%d-%d-" % (number, index) + b"v" * (index % 300),
                None if index % 5 == 0 else b"k%d" % index,
                partition=index % 2,
                timestamp=now - 1_000 * index,
                headers=[("h", b"%d" % index), ("n", None)] if index % 3 == 0 else [],
                callback=acks,
            )
            client.poll(0)
        assert client.flush(LONG) == 0
        assert not acks.failed
    transactional = producer(address, **{"transactional.id": f"fill-{topic}"})
    transactional.init_transactions(30)
    for number in range(FILL_TRANSACTIONS):
        transactional.begin_transaction()
        for index in range(FILL_RECORDS):
            transactional.produce(topic, b"txn-%d-%d" % (number, index), partition=index % 2)
        transactional.flush(LONG)
        if number % 2:
            transactional.abort_transaction(30)
        else:
            transactional.commit_transaction(30)
