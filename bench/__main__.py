"""`make bench`: Kafka's own perf tools through the sidecar and against Apache Kafka, Pulsar's own on the same Pulsar.

The systems take turns within each case, on the same machine and the same Pulsar, and the ratios are
what counts. BENCH_MIB sets how much each case writes (default 128).
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.process import ProcessCost
from integration.kafka_clients import create
from integration.launcher.jars import CACHE, Bundle, class_path
from integration.launcher.kafka import KafkaNode, java_tool
from integration.launcher.pulsar import DEFAULT_VERSION, Standalone, java
from integration.launcher.sidecar import SidecarProcess

SIZES = (100, 1024, 16384)
PARTITIONS = (1, 16)


@dataclass(frozen=True, slots=True)
class Measured:
    system: str
    record_bytes: int
    partitions: int
    produce_mib_s: float
    produce_p50_ms: float
    produce_p99_ms: float
    consume_mib_s: float
    cpu_s_per_gib: float  # of the server process (or sidecar) while producing
    resident_mib: float


def _numbers(pattern: str, text: str) -> list[float]:
    found = re.findall(pattern, text)
    if not found:
        raise SystemExit(f"the output of a perf tool was not understood:\n{text[-1500:]}")
    last = found[-1]
    return [float(number) for number in (last if isinstance(last, tuple) else (last,))]


def _produce(address: str, topic: str, size: int, mib: int) -> tuple[float, float, float]:
    count = mib * 2**20 // size
    done = java_tool(
        "org.apache.kafka.tools.ProducerPerformance", "--topic", topic, "--num-records", str(count), "--record-size", str(size),
        "--throughput", "-1", "--producer-props", f"bootstrap.servers={address}", seconds=600,
    )  # fmt: skip
    rate = _numbers(r"records/sec \(([\d.]+) MB/sec\)", done.stdout + done.stderr)[0]
    p50, p99 = _numbers(r"([\d.]+) ms 50th, [\d.]+ ms 95th, ([\d.]+) ms 99th", done.stdout + done.stderr)
    return rate, p50, p99


def _consume(address: str, topic: str, partitions: int, size: int, mib: int) -> float:
    """By assignment, through librdkafka: ConsumerPerformance subscribes, and groups are not served yet."""
    import time

    from confluent_kafka import TopicPartition

    from integration.kafka_clients import consumer

    expected = mib * 2**20 // size
    client = consumer(address)
    client.assign([TopicPartition(topic, index, 0) for index in range(partitions)])
    begun = time.monotonic()
    found = 0
    while found < expected and time.monotonic() - begun < 300:
        found += sum(1 for message in client.consume(5000, 1.0) if message.error() is None)
    spent = time.monotonic() - begun
    client.close()
    return found * size / 2**20 / spent


def _kafka_case(system: str, address: str, pid: int, size: int, partitions: int, mib: int) -> Measured:
    topic = f"bench-{size}-{partitions}-{os.getpid()}"
    create(address, topic, partitions)
    cost = ProcessCost(pid)
    rate, p50, p99 = _produce(address, topic, size, mib)
    cpu, resident = cost.cpu_seconds(), cost.resident_mib()
    return Measured(system, size, partitions, rate, p50, p99, _consume(address, topic, partitions, size, mib), cpu * 1024 / mib, resident)


def _table(rows: list[Measured]) -> str:
    lines = [
        f"{'system':8} {'bytes':>6} {'parts':>5} {'MiB/s':>8} {'p50 ms':>8} {'p99 ms':>8} {'read MiB/s':>10} {'cpu s/GiB':>9} {'MiB':>6}"
    ]
    for row in rows:
        lines.append(
            f"{row.system:8} {row.record_bytes:6} {row.partitions:5} {row.produce_mib_s:8.1f} {row.produce_p50_ms:8.1f} "
            f"{row.produce_p99_ms:8.1f} {row.consume_mib_s:10.1f} {row.cpu_s_per_gib:9.1f} {row.resident_mib:6.0f}"
        )
    return "\n".join(lines)


def _native(pulsar: Standalone, directory: Path, size: int, partitions: int, mib: int) -> Measured:
    """Pulsar's own PerformanceProducer and PerformanceConsumer."""
    from integration.support import admin

    topic = f"native-{size}-{partitions}-{os.getpid()}"
    admin("PUT", f"{pulsar.admin_url}/admin/v2/persistent/public/default/{topic}/partitions", str(partitions).encode())
    count = mib * 2**20 // size
    client = Bundle(
        name=f"pulsar-testclient-{DEFAULT_VERSION}",
        boms=(f"org.apache.pulsar:pulsar:{DEFAULT_VERSION}",),
        jars=(
            f"org.apache.pulsar:pulsar-testclient:{DEFAULT_VERSION}",
            "org.apache.logging.log4j:log4j-core",
            "org.apache.logging.log4j:log4j-slf4j2-impl",
        ),
    )
    command = [*java(DEFAULT_VERSION, directory)[:-1], class_path(client)]
    cost = ProcessCost(pulsar.pid)
    from bench.process import run

    written = run(
        [*command, "org.apache.pulsar.testclient.PerformanceProducer", "-u", pulsar.url, "-m", str(count), "-s", str(size),
         "-r", "10000000", f"persistent://public/default/{topic}"], 600,
    )  # fmt: skip
    cpu, resident = cost.cpu_seconds(), cost.resident_mib()
    rate = _numbers(r"Aggregated throughput stats --- \d+ records sent --- [\d.]+ msg/s --- ([\d.]+) Mbit/s", written)[0] / 8
    p50, p99 = _numbers(
        r"Aggregated latency stats --- Latency: mean: +[\d.]+ ms - med: +([\d.]+) - 95pct: +[\d.]+ - 99pct: +([\d.]+)", written
    )
    read = run(
        [*command, "org.apache.pulsar.testclient.PerformanceConsumer", "-u", pulsar.url, "-m", str(count), "-sp", "Earliest",
         f"persistent://public/default/{topic}"], 600,
    )  # fmt: skip
    consumed = _numbers(r"Aggregated throughput stats --- \d+ records received --- [\d.]+ msg/s --- ([\d.]+) Mbit/s", read)[0] / 8
    return Measured("pulsar", size, partitions, rate, p50, p99, consumed, cpu * 1024 / mib, resident)


def main() -> int:
    mib = int(os.environ.get("BENCH_MIB", "128"))
    rows: list[Measured] = []
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        pulsar, kafka = Standalone(directory / "pulsar"), KafkaNode(directory / "kafka")
        sidecar = SidecarProcess(directory / "sidecar", pulsar.url, pulsar.admin_url)
        try:
            pulsar.start()
            kafka.start()
            sidecar.start()
            idle = ProcessCost(sidecar.pid).resident_mib()
            print(f"idle sidecar: {idle:.0f} MiB resident", flush=True)
            for size in SIZES:
                for partitions in PARTITIONS:
                    rows.append(_kafka_case("sidecar", sidecar.address, sidecar.pid, size, partitions, mib))
                    rows.append(_kafka_case("kafka", f"127.0.0.1:{kafka.port}", kafka.pid, size, partitions, mib))
                    rows.append(_native(pulsar, directory, size, partitions, mib))
                    print(_table(rows[-3:]), flush=True)
        finally:
            sidecar.stop()
            kafka.stop()
            pulsar.stop()
    print("\n" + _table(rows))
    result = {"mib": mib, "idle_mib": idle, "rows": [asdict(row) for row in rows]}
    CACHE.mkdir(exist_ok=True)
    (CACHE / "bench.json").write_text(json.dumps(result, indent=1))
    print(f"as JSON: {CACHE / 'bench.json'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
