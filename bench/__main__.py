"""`make bench`: the sidecar, Apache Kafka and native Pulsar, in turn on one machine and one Pulsar. About ten minutes.

Absolute figures belong to the machine; the ratios are what counts. It writes `.cache/bench.json` and, with
plots, `.cache/bench.html`.

    BENCH_PARTS          the parts to run: throughput crowds transactions latency groups sizes spark pipelines workers
    BENCH_MIB            how much a case of throughput writes (96)
    BENCH_CASES          a part of the names of the cases of throughput to run
    BENCH_GROUPS         how many consumer groups there are (1000)
    BENCH_PIPELINE_RECORDS  how many records of 1 KiB mirror and archive copy (500000)
    BENCH_SPARK_RECORDS  how many records of 1 KiB Spark reads (1000000)
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from bench.crowd import crowd_costs
from bench.groups import PROTOCOLS, groups
from bench.latency import end_to_end, single_records
from bench.page import page
from bench.pipelines import pipeline_costs
from bench.process import ProcessCost
from bench.quick import commit, history
from bench.report import (
    crowd_table,
    group_table,
    latency_table,
    pipeline_table,
    ratio_table,
    ratios,
    size_table,
    spark_table,
    throughput_table,
    transaction_table,
)
from bench.sizes import size_costs
from bench.spark import spark_costs
from bench.throughput import CASES, WARM, Throughput, kafka_protocol, native
from bench.transactions import FLUSHING, native_acknowledgement_ms, transaction_costs
from bench.workers import worker_costs
from integration.launcher.jars import CACHE
from integration.launcher.jvm import LONG_LIVED
from integration.launcher.kafka import KafkaNode
from integration.launcher.pulsar import Standalone
from integration.launcher.sidecar import SidecarProcess


@dataclass(frozen=True, slots=True, kw_only=True)
class _Servers:
    directory: Path
    pulsar: Standalone
    kafka: KafkaNode
    sidecar: SidecarProcess

    @property
    def addresses(self) -> dict[str, str]:
        return {"sidecar": self.sidecar.address, "kafka": self.kafka.address}


def _throughput(servers: _Servers) -> dict[str, object]:
    pulsar, kafka, sidecar = servers.pulsar, servers.kafka, servers.sidecar
    mib = int(os.environ.get("BENCH_MIB", "96"))
    chosen = os.environ.get("BENCH_CASES", "")
    rows: list[Throughput] = []
    for _ in range(2):  # a JVM that has just been started takes three times the CPU for the same, whoever is first
        kafka_protocol("sidecar", sidecar.address, sidecar.pid, pulsar.pid, WARM, mib)
        kafka_protocol("kafka", kafka.address, kafka.pid, None, WARM, mib)
    for case in [case for case in CASES if chosen in case.name]:
        rows.append(kafka_protocol("sidecar", sidecar.address, sidecar.pid, pulsar.pid, case, mib))
        rows.append(kafka_protocol("kafka", kafka.address, kafka.pid, None, case, mib))
        if case.with_native:
            rows.append(native(pulsar, servers.directory, case, mib))
    compared = ratios(rows)
    print(throughput_table(rows) + "\n\n" + ratio_table(compared) + "\n", flush=True)
    return {"mib": mib, "throughput": [asdict(row) for row in rows], "ratios": compared}


def _crowds(servers: _Servers) -> dict[str, object]:
    sidecar, kafka = servers.sidecar, servers.kafka
    rows = [
        *crowd_costs("sidecar", sidecar.address, sidecar.pid, servers.pulsar.pid),
        *crowd_costs("kafka", kafka.address, kafka.pid, None),
    ]
    print(crowd_table(rows) + "\n", flush=True)
    return {"crowds": [asdict(row) for row in rows]}


def _transactions(servers: _Servers) -> dict[str, object]:
    """Each step of a transaction waits for an acknowledgement, so this is also measured where bookies write what they
    have at once.
    """
    directory = servers.directory / "flushing"
    pulsar = Standalone(directory / "pulsar", settings={"journalFlushWhenQueueEmpty": "true"}, jvm=LONG_LIVED)
    sidecar = SidecarProcess(directory / "sidecar", pulsar.url, pulsar.admin_url)
    try:
        pulsar.start()
        sidecar.start()
        rows = transaction_costs({**servers.addresses, FLUSHING: sidecar.address})
        acknowledged = {
            "sidecar": native_acknowledgement_ms(servers.pulsar),
            FLUSHING: native_acknowledgement_ms(pulsar),
        }
    finally:
        sidecar.stop()
        pulsar.stop()
    print(transaction_table(rows, acknowledged) + "\n", flush=True)
    return {"transactions": [asdict(row) for row in rows], "native_acknowledgement_ms": acknowledged}


def _latency(servers: _Servers) -> dict[str, object]:
    rows = single_records(servers.pulsar, servers.addresses)
    whole = {name: end_to_end(address) for name, address in servers.addresses.items()}
    print(latency_table(rows, whole) + "\n", flush=True)
    return {"latency": [asdict(row) for row in rows], "end_to_end_ms": whole}


def _groups(servers: _Servers) -> dict[str, object]:
    rows = [
        groups(name, servers.addresses[name], pid, protocol, int(os.environ.get("BENCH_GROUPS", "1000")))
        for protocol in PROTOCOLS
        for name, pid in (("sidecar", servers.sidecar.pid), ("kafka", servers.kafka.pid))
    ]
    print(group_table(rows) + "\n", flush=True)
    return {"groups": [asdict(row) for row in rows]}


def _sizes(servers: _Servers) -> dict[str, object]:
    rows = size_costs(servers.pulsar, servers.directory)
    print(size_table(rows) + "\n", flush=True)
    return {"sizes": [asdict(row) for row in rows]}


def _spark(servers: _Servers) -> dict[str, object]:
    rows = spark_costs(
        servers.addresses, {"sidecar": servers.sidecar.pid, "kafka": servers.kafka.pid}, servers.directory
    )
    print(spark_table(rows) + "\n", flush=True)
    return {"spark": [asdict(row) for row in rows]}


def _pipelines(servers: _Servers) -> dict[str, object]:
    rows = pipeline_costs(servers.addresses["kafka"], servers.addresses["sidecar"], servers.directory)
    print(pipeline_table(rows) + "\n", flush=True)
    return {"pipelines": [asdict(row) for row in rows]}


def _workers(servers: _Servers) -> dict[str, object]:
    rows = worker_costs(servers.pulsar, servers.directory, int(os.environ.get("BENCH_MIB", "96")))
    print(throughput_table(rows) + "\n", flush=True)
    return {"workers": [asdict(row) for row in rows]}


PARTS: Final[dict[str, Callable[[_Servers], dict[str, object]]]] = {
    "throughput": _throughput,
    "crowds": _crowds,
    "transactions": _transactions,
    "latency": _latency,
    "groups": _groups,
    "sizes": _sizes,
    "spark": _spark,
    "pipelines": _pipelines,
    "workers": _workers,
}


def _measure(servers: _Servers) -> dict[str, object]:
    time.sleep(5)
    journal = servers.pulsar.journal
    idle = ProcessCost(servers.sidecar.pid).resident_mib()
    print(f"Pulsar with {journal}, for the sidecar and for native clients")
    print(f"idle sidecar: {idle:.0f} MiB resident\n", flush=True)
    measured: dict[str, object] = {
        "at": int(time.time()),
        "commit": commit(),
        "machine": f"{os.cpu_count()} cores, Pulsar with {journal}",
        "idle_mib": idle,
    }
    chosen = os.environ.get("BENCH_PARTS", "").split() or list(PARTS)
    for part in chosen:
        measured |= PARTS[part](servers)
    return measured


def main() -> int:
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        pulsar, kafka = Standalone(directory / "pulsar", jvm=LONG_LIVED), KafkaNode(directory / "kafka", jvm=LONG_LIVED)
        sidecar = SidecarProcess(directory / "sidecar", pulsar.url, pulsar.admin_url)
        try:
            pulsar.start()
            kafka.start()
            sidecar.start()
            measured = _measure(_Servers(directory=directory, pulsar=pulsar, kafka=kafka, sidecar=sidecar))
        finally:
            sidecar.stop()
            kafka.stop()
            pulsar.stop()
    CACHE.mkdir(exist_ok=True)
    (CACHE / "bench.json").write_text(json.dumps(measured, indent=1))
    (CACHE / "bench.html").write_text(page(measured, history()))
    print(f"{CACHE / 'bench.json'}, and with plots {CACHE / 'bench.html'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
