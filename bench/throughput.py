"""Throughput, with the perf tools that Kafka and Pulsar bring along."""

from __future__ import annotations

import os
import re
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.process import ProcessCost, run
from integration.kafka_clients import create
from integration.launcher.jars import Bundle, class_path
from integration.launcher.jvm import LONG_LIVED
from integration.launcher.kafka import measured_java_tool
from integration.launcher.pulsar import DEFAULT_VERSION, Standalone, java
from integration.support import admin

_TOOL_SECONDS: Final = 900
# Start, end, MB, MB/s, records, records/s, rebalance ms, fetch ms, fetch MB/s, fetch records/s.
PERFORMANCE_FIELDS: Final = 10
# Few versions of the perf tools are published, and not all that they ask for; they run on the broker's own libraries.
_PULSAR_TOOLS: Final = Bundle(
    name="pulsar-testclient", jars=("org.apache.pulsar:pulsar-testclient:4.0.8",), without=("*:*",)
)
_TOOL_LIBRARIES: Final = Bundle(
    name=f"pulsar-testclient-libraries-{DEFAULT_VERSION}",
    boms=(f"org.apache.pulsar:pulsar:{DEFAULT_VERSION}",),
    jars=(
        f"org.apache.pulsar:pulsar-cli-utils:{DEFAULT_VERSION}",
        "info.picocli:picocli",
        "org.hdrhistogram:HdrHistogram",
        "io.opentelemetry:opentelemetry-sdk",
        "io.opentelemetry:opentelemetry-sdk-extension-autoconfigure",
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What Kafka's ProducerPerformance writes, and ConsumerPerformance reads then."""

    name: str
    record_bytes: int
    partitions: int = 1
    settings: tuple[str, ...] = ()  # of the producer, beside its defaults
    share: float = 1.0  # of what the other cases write
    with_native: bool = False  # pulsar-perf has comparable defaults


_LARGER: Final = ("linger.ms=5", "batch.size=65536")
CASES: Final = (
    Case(name="1 KiB, 1 partition", record_bytes=1024, with_native=True),
    Case(name="1 KiB, 1 partition, 64 KiB batches", record_bytes=1024, settings=_LARGER),
    Case(name="100 B, 1 partition, 64 KiB batches", record_bytes=100, settings=_LARGER, share=0.5),
    Case(name="1 KiB, 16 partitions", record_bytes=1024, partitions=16, with_native=True),
    Case(name="1 KiB, 16 partitions, 64 KiB batches", record_bytes=1024, partitions=16, settings=_LARGER),
    Case(name="100 B, 16 partitions, 64 KiB batches", record_bytes=100, partitions=16, settings=_LARGER, share=0.5),
    Case(name="100 B, one record a request", record_bytes=100, settings=("batch.size=1",), share=0.03),
)
# What goes before, and is not counted.
WARM: Final = Case(name="warm", record_bytes=1024, partitions=4, share=0.7)


@dataclass(frozen=True, slots=True, kw_only=True)
class Throughput:
    system: str
    case: str
    produce_mib_s: float
    produce_p50_ms: float
    produce_p99_ms: float
    consume_mib_s: float
    produce_cpu_s_per_gib: float  # of the server: the sidecar itself, Kafka, or the broker for native clients
    consume_cpu_s_per_gib: float
    broker_cpu_s_per_gib: float | None  # of the broker behind the sidecar, while producing
    resident_mib: float


def numbers(pattern: str, text: str) -> list[float]:
    """What the last match of `pattern` caught."""
    found = re.findall(pattern, text)
    if not found:
        raise SystemExit(f"the output of a perf tool was not understood:\n{text[-1500:]}")
    last = found[-1]
    return [float(number) for number in (last if isinstance(last, tuple) else (last,))]


def produce(
    address: str, topic: str, size: int, mib: float, settings: tuple[str, ...] = ()
) -> tuple[float, float, float]:
    """MiB/s, p50 and p99 of Kafka's own producer with its defaults, but for `settings`."""
    count = int(mib * 2**20 / size)
    changed = ["--command-property", *settings] if settings else []
    done = measured_java_tool(
        "org.apache.kafka.tools.ProducerPerformance",
        "--topic",
        topic,
        "--num-records",
        str(count),
        "--record-size",
        str(size),
        "--throughput",
        "-1",
        "--bootstrap-server",
        address,
        *changed,
        seconds=_TOOL_SECONDS,
    )
    output = done.stdout + done.stderr
    rate = numbers(r"records/sec \(([\d.]+) MB/sec\)", output)[0]
    p50, p99 = numbers(r"([\d.]+) ms 50th, [\d.]+ ms 95th, ([\d.]+) ms 99th", output)
    return rate, p50, p99


def _consume(address: str, topic: str, size: int, mib: float) -> float:
    """MiB/s of Kafka's own consumer with its defaults, as a group; without the time that it takes to join."""
    done = measured_java_tool(
        "org.apache.kafka.tools.ConsumerPerformance",
        "--bootstrap-server",
        address,
        "--topic",
        topic,
        "--group",
        f"perf-{topic}",
        "--num-records",
        str(int(mib * 2**20 / size)),
        "--timeout",
        "60000",
        "--hide-header",
        seconds=_TOOL_SECONDS,
    )
    fields = done.stdout.strip().splitlines()[-1].split(",")
    if len(fields) != PERFORMANCE_FIELDS or int(fields[4]) < int(mib * 2**20 / size):
        raise SystemExit(f"ConsumerPerformance did not read all of {topic}:\n{done.stdout}{done.stderr[-1500:]}")
    return float(fields[8])


def kafka_protocol(system: str, address: str, pid: int, broker_pid: int | None, case: Case, mib: int) -> Throughput:
    """One case through whatever speaks Kafka at `address`."""
    topic = f"bench-{uuid.uuid4().hex[:8]}"
    create(address, topic, case.partitions)
    size, written = case.record_bytes, mib * case.share
    produce(address, topic, size, written / 16, case.settings)  # warm: JIT, connections, the partition's opening
    per_gib = 1024 / written
    server, broker = ProcessCost(pid), None if broker_pid is None else ProcessCost(broker_pid)
    rate, p50, p99 = produce(address, topic, size, written, case.settings)
    produce_cpu, broker_cpu = server.cpu_seconds() * per_gib, None if broker is None else broker.cpu_seconds() * per_gib
    server = ProcessCost(pid)
    consumed = _consume(address, topic, size, written)
    return Throughput(
        system=system,
        case=case.name,
        produce_mib_s=rate,
        produce_p50_ms=p50,
        produce_p99_ms=p99,
        consume_mib_s=consumed,
        produce_cpu_s_per_gib=produce_cpu,
        consume_cpu_s_per_gib=server.cpu_seconds() * per_gib,
        broker_cpu_s_per_gib=broker_cpu,
        resident_mib=server.resident_mib(),
    )


def native(pulsar: Standalone, directory: Path, case: Case, mib: int) -> Throughput:
    """The same with Pulsar's own PerformanceProducer and PerformanceConsumer."""
    topic = f"native-{CASES.index(case)}-{os.getpid()}"
    admin(
        "PUT",
        f"{pulsar.admin_url}/admin/v2/persistent/public/default/{topic}/partitions",
        str(case.partitions).encode(),
    )
    size = case.record_bytes
    count = int(mib * case.share * 2**20 / size)
    *start, libraries = java(DEFAULT_VERSION, directory, flags=LONG_LIVED)
    settings = directory / "client.conf"
    settings.write_text("")
    command = [
        *start,
        ":".join((libraries, class_path(_PULSAR_TOOLS), class_path(_TOOL_LIBRARIES))),
        "org.apache.pulsar.testclient.PulsarPerfTestTool",
        str(settings),
    ]
    full = f"persistent://public/default/{topic}"
    per_gib = 1024 / (mib * case.share)
    cost = ProcessCost(pulsar.pid)
    written = run(
        [*command, "produce", "-u", pulsar.url, "-m", str(count), "-s", str(size), "-r", "10000000", full],
        _TOOL_SECONDS,
    )
    produce_cpu = cost.cpu_seconds() * per_gib
    rate = (
        numbers(r"Aggregated throughput stats --- +\d+ records sent --- +[\d.]+ msg/s --- +([\d.]+) Mbit/s", written)[0]
        / 8
    )
    p50, p99 = numbers(
        r"Aggregated latency stats --- Latency: mean: +[\d.]+ ms - med: +([\d.]+) - 95pct: +[\d.]+ - 99pct: +([\d.]+)",
        written,
    )
    cost = ProcessCost(pulsar.pid)
    read = run(
        [*command, "consume", "-u", pulsar.url, "-m", str(count), "-sp", "Earliest", full],
        _TOOL_SECONDS,
    )
    consumed = (
        numbers(r"Aggregated throughput stats --- +\d+ records received --- +[\d.]+ msg/s --- +([\d.]+) Mbit/s", read)[
            0
        ]
        / 8
    )
    return Throughput(
        system="pulsar",
        case=case.name,
        produce_mib_s=rate,
        produce_p50_ms=p50,
        produce_p99_ms=p99,
        consume_mib_s=consumed,
        produce_cpu_s_per_gib=produce_cpu,
        consume_cpu_s_per_gib=cost.cpu_seconds() * per_gib,
        broker_cpu_s_per_gib=None,
        resident_mib=cost.resident_mib(),
    )
