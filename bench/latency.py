"""One record at a time: until it is acknowledged, and until a consumer that waits at the end has it.

Kafka and native clients run in one process and with the same clock. Both are C or C++ underneath,
and batching is off in both: what differs is what lies between. Two paces: `single` sends a record
now and then, the paths in turn; `steady` sends each record as soon as the last one arrived. A broker
that has just handed out an entry looks for the next one only after
managedLedgerNewEntriesCheckDelayInMillis, so the steady pace is where native consumers wait.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import pulsar as native_client
from confluent_kafka import TopicPartition

from bench.throughput import numbers
from integration.kafka_clients import consumer, create, producer
from integration.launcher.kafka import measured_java_tool
from integration.launcher.pulsar import Standalone
from integration.support import admin

RECORDS: Final = 400
_WARM: Final = 50
_PAYLOAD: Final = b"x" * 100
_WAIT_SECONDS: Final = 10.0
_BETWEEN_SECONDS: Final = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    path: str
    pace: str
    acked_p50_ms: float
    acked_p99_ms: float
    delivered_p50_ms: float
    delivered_p99_ms: float


def _percentile(values: list[float], part: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * part))] * 1000


class _Path:
    """A client pair on a topic of its own: `send` returns once acknowledged, `arrived` is set on delivery."""

    def __init__(
        self, name: str, send: Callable[[], None], receive: Callable[[float], bool], close: Callable[[], None]
    ) -> None:
        self.name = name
        self.acked: list[float] = []
        self.delivered: list[float] = []
        self._send = send
        self._receive = receive
        self._close = close
        self._arrived_at = 0.0
        self._arrived = threading.Event()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def _listen(self) -> None:
        while not self._stop.is_set():
            if self._receive(0.2):
                self._arrived_at = time.perf_counter()
                self._arrived.set()

    def once(self) -> None:
        self._arrived.clear()
        begun = time.perf_counter()
        self._send()
        self.acked.append(time.perf_counter() - begun)
        if not self._arrived.wait(_WAIT_SECONDS):
            raise SystemExit(f"{self.name}: a record was not delivered within {_WAIT_SECONDS:.0f} s")
        self.delivered.append(self._arrived_at - begun)

    def close(self) -> None:
        self._stop.set()
        self._thread.join()
        self._close()

    def result(self, pace: str) -> Latency:
        """What was measured since the last result."""
        acked, delivered = self.acked[_WARM:], self.delivered[_WARM:]
        self.acked, self.delivered = [], []
        return Latency(
            path=self.name,
            pace=pace,
            acked_p50_ms=_percentile(acked, 0.5),
            acked_p99_ms=_percentile(acked, 0.99),
            delivered_p50_ms=_percentile(delivered, 0.5),
            delivered_p99_ms=_percentile(delivered, 0.99),
        )


def _kafka_path(name: str, address: str) -> _Path:
    topic = f"latency-{os.getpid()}"
    create(address, topic, 1)
    writer = producer(address, **{"linger.ms": 0})
    reader = consumer(address)
    reader.assign([TopicPartition(topic, 0, 0)])
    done = threading.Event()

    def acked(error: Any, _message: Any) -> None:
        if error is not None:
            raise SystemExit(f"{name}: {error}")
        done.set()

    def send() -> None:
        done.clear()
        writer.produce(topic, _PAYLOAD, partition=0, callback=acked)
        while not done.is_set():
            writer.poll(_WAIT_SECONDS)

    def receive(seconds: float) -> bool:
        message = reader.poll(seconds)
        return message is not None and message.error() is None

    return _Path(name, send, receive, reader.close)


def _native_path(pulsar: Standalone) -> _Path:
    topic = f"persistent://public/default/native-latency-{os.getpid()}"
    admin("PUT", f"{pulsar.admin_url}/admin/v2/{topic.replace('://', '/')}/partitions", b"1")
    client = native_client.Client(pulsar.url, logger=native_client.ConsoleLogger(native_client.LoggerLevel.Error))
    writer = client.create_producer(topic, batching_enabled=False)
    reader = client.subscribe(topic, "bench", initial_position=native_client.InitialPosition.Earliest)

    def receive(seconds: float) -> bool:
        try:
            reader.acknowledge(reader.receive(int(seconds * 1000)))
        except native_client.Timeout:
            return False
        return True

    return _Path("pulsar", lambda: writer.send(_PAYLOAD) and None, receive, client.close)


def single_records(pulsar: Standalone, addresses: dict[str, str]) -> list[Latency]:
    """The Kafka protocol at each address, and native Pulsar, in turn."""
    paths = [*(_kafka_path(name, address) for name, address in addresses.items()), _native_path(pulsar)]
    try:
        for _ in range(RECORDS + _WARM):
            for path in paths:
                path.once()
                time.sleep(_BETWEEN_SECONDS)
        found = [path.result("single") for path in paths]
        for path in paths:
            for _ in range(RECORDS + _WARM):
                path.once()
            found.append(path.result("steady"))
        return found
    finally:
        for path in paths:
            path.close()


def end_to_end(address: str) -> tuple[float, float]:
    """Average and p99 of Kafka's own EndToEndLatency, in milliseconds."""
    topic = f"end-to-end-{os.getpid()}"
    create(address, topic, 1)
    done = measured_java_tool("org.apache.kafka.tools.EndToEndLatency", address, topic, "2000", "1", "100", seconds=300)
    output = done.stdout + done.stderr
    average = numbers(r"Avg latency: ([\d.]+) ms", output)[0]
    return average, numbers(r"99th = ([\d.]+)", output)[0]
