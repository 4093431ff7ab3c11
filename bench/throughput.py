"""Throughput, with the perf tools that Kafka and Pulsar bring along."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.process import ProcessCost, run
from integration.kafka_clients import create
from integration.launcher.jars import Bundle, class_path
from integration.launcher.kafka import java_tool
from integration.launcher.pulsar import DEFAULT_VERSION, Standalone, java
from integration.support import admin

_TOOL_SECONDS: Final = 900
# Start, end, MB, MB/s, records, records/s, rebalance ms, fetch ms, fetch MB/s, fetch records/s.
PERFORMANCE_FIELDS: Final = 10
# Few versions of the perf tools are published, and not all that they ask for; they run on the broker's own libraries.
_PULSAR_TOOLS: Final = Bundle(name="pulsar-testclient", jars=("org.apache.pulsar:pulsar-testclient:4.0.8",), without=("*:*",))
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
class Throughput:
    system: str
    record_bytes: int
    partitions: int
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


def produce(address: str, topic: str, size: int, mib: int) -> tuple[float, float, float]:
    """MiB/s, p50 and p99 of Kafka's own producer with its defaults."""
    count = mib * 2**20 // size
    done = java_tool(
        "org.apache.kafka.tools.ProducerPerformance", "--topic", topic, "--num-records", str(count), "--record-size", str(size),
        "--throughput", "-1", "--bootstrap-server", address, seconds=_TOOL_SECONDS,
    )  # fmt: skip
    output = done.stdout + done.stderr
    rate = numbers(r"records/sec \(([\d.]+) MB/sec\)", output)[0]
    p50, p99 = numbers(r"([\d.]+) ms 50th, [\d.]+ ms 95th, ([\d.]+) ms 99th", output)
    return rate, p50, p99


def _consume(address: str, topic: str, size: int, mib: int) -> float:
    """MiB/s of Kafka's own consumer with its defaults, as a group; without the time that it takes to join."""
    done = java_tool(
        "org.apache.kafka.tools.ConsumerPerformance", "--bootstrap-server", address, "--topic", topic, "--group", f"perf-{topic}",
        "--num-records", str(mib * 2**20 // size), "--timeout", "60000", "--hide-header", seconds=_TOOL_SECONDS,
    )  # fmt: skip
    fields = done.stdout.strip().splitlines()[-1].split(",")
    if len(fields) != PERFORMANCE_FIELDS or int(fields[4]) < mib * 2**20 // size:
        raise SystemExit(f"ConsumerPerformance did not read all of {topic}:\n{done.stdout}{done.stderr[-1500:]}")
    return float(fields[8])


def kafka_protocol(system: str, address: str, pid: int, broker_pid: int | None, size: int, partitions: int, mib: int) -> Throughput:
    """One case through whatever speaks Kafka at `address`."""
    topic = f"bench-{size}-{partitions}-{os.getpid()}"
    create(address, topic, partitions)
    produce(address, topic, size, max(1, mib // 16))  # warm: JIT, connections, the partition's opening
    per_gib = 1024 / mib
    server, broker = ProcessCost(pid), None if broker_pid is None else ProcessCost(broker_pid)
    rate, p50, p99 = produce(address, topic, size, mib)
    produce_cpu, broker_cpu = server.cpu_seconds() * per_gib, None if broker is None else broker.cpu_seconds() * per_gib
    server = ProcessCost(pid)
    consumed = _consume(address, topic, size, mib)
    return Throughput(
        system=system, record_bytes=size, partitions=partitions, produce_mib_s=rate, produce_p50_ms=p50, produce_p99_ms=p99,
        consume_mib_s=consumed, produce_cpu_s_per_gib=produce_cpu, consume_cpu_s_per_gib=server.cpu_seconds() * per_gib,
        broker_cpu_s_per_gib=broker_cpu, resident_mib=server.resident_mib(),
    )  # fmt: skip


def native(pulsar: Standalone, directory: Path, size: int, partitions: int, mib: int) -> Throughput:
    """The same with Pulsar's own PerformanceProducer and PerformanceConsumer."""
    topic = f"native-{size}-{partitions}-{os.getpid()}"
    admin("PUT", f"{pulsar.admin_url}/admin/v2/persistent/public/default/{topic}/partitions", str(partitions).encode())
    count = mib * 2**20 // size
    *start, libraries = java(DEFAULT_VERSION, directory)
    settings = directory / "client.conf"
    settings.write_text("")
    command = [
        *start, ":".join((libraries, class_path(_PULSAR_TOOLS), class_path(_TOOL_LIBRARIES))),
        "org.apache.pulsar.testclient.PulsarPerfTestTool", str(settings),
    ]  # fmt: skip
    full = f"persistent://public/default/{topic}"
    per_gib = 1024 / mib
    cost = ProcessCost(pulsar.pid)
    written = run(
        [*command, "produce", "-u", pulsar.url, "-m", str(count), "-s", str(size),
         "-r", "10000000", full], _TOOL_SECONDS,
    )  # fmt: skip
    produce_cpu = cost.cpu_seconds() * per_gib
    rate = numbers(r"Aggregated throughput stats --- +\d+ records sent --- +[\d.]+ msg/s --- +([\d.]+) Mbit/s", written)[0] / 8
    p50, p99 = numbers(
        r"Aggregated latency stats --- Latency: mean: +[\d.]+ ms - med: +([\d.]+) - 95pct: +[\d.]+ - 99pct: +([\d.]+)", written
    )
    cost = ProcessCost(pulsar.pid)
    read = run(
        [*command, "consume", "-u", pulsar.url, "-m", str(count), "-sp", "Earliest", full],
        _TOOL_SECONDS,
    )
    consumed = numbers(r"Aggregated throughput stats --- +\d+ records received --- +[\d.]+ msg/s --- +([\d.]+) Mbit/s", read)[0] / 8
    return Throughput(
        system="pulsar", record_bytes=size, partitions=partitions, produce_mib_s=rate, produce_p50_ms=p50, produce_p99_ms=p99,
        consume_mib_s=consumed, produce_cpu_s_per_gib=produce_cpu, consume_cpu_s_per_gib=cost.cpu_seconds() * per_gib,
        broker_cpu_s_per_gib=None, resident_mib=cost.resident_mib(),
    )  # fmt: skip
