"""`make bench`: the sidecar, Apache Kafka and native Pulsar, in turn on one machine and one Pulsar.

Absolute figures belong to the machine; the ratios are what counts. BENCH_MIB sets how much each
case writes (default 128), BENCH_SIZES and BENCH_PARTITIONS choose the cases, BENCH_GROUPS says how many
consumer groups there are.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

from bench.groups import PROTOCOLS, groups
from bench.latency import end_to_end, single_records
from bench.process import ProcessCost
from bench.report import group_table, latency_table, ratio_table, ratios, throughput_table
from bench.throughput import Throughput, kafka_protocol, native
from integration.launcher.jars import CACHE
from integration.launcher.kafka import KafkaNode
from integration.launcher.pulsar import Standalone
from integration.launcher.sidecar import SidecarProcess


def _chosen(name: str, default: str) -> list[int]:
    return [int(part) for part in os.environ.get(name, default).split(",")]


def _measure(directory: Path, pulsar: Standalone, kafka: KafkaNode, sidecar: SidecarProcess) -> dict[str, object]:
    mib = int(os.environ.get("BENCH_MIB", "128"))
    time.sleep(5)
    idle = ProcessCost(sidecar.pid).resident_mib()
    print(f"idle sidecar: {idle:.0f} MiB resident\n", flush=True)
    addresses = {"sidecar": sidecar.address, "kafka": kafka.address}
    singles = single_records(pulsar, addresses)
    whole = {name: end_to_end(address) for name, address in addresses.items()}
    print(latency_table(singles, whole) + "\n", flush=True)
    crowds = [
        groups(name, addresses[name], pid, protocol, int(os.environ.get("BENCH_GROUPS", "1000")))
        for protocol in PROTOCOLS
        for name, pid in (("sidecar", sidecar.pid), ("kafka", kafka.pid))
    ]
    print(group_table(crowds) + "\n", flush=True)
    rows: list[Throughput] = []
    for size in _chosen("BENCH_SIZES", "100,1024,16384"):
        for partitions in _chosen("BENCH_PARTITIONS", "1,16"):
            rows.append(kafka_protocol("sidecar", sidecar.address, sidecar.pid, pulsar.pid, size, partitions, mib))
            rows.append(kafka_protocol("kafka", kafka.address, kafka.pid, None, size, partitions, mib))
            rows.append(native(pulsar, directory, size, partitions, mib))
            print(throughput_table(rows[-3:]) + "\n", flush=True)
    compared = ratios(rows)
    print(throughput_table(rows) + "\n\n" + ratio_table(compared))
    return {
        "mib": mib, "idle_mib": idle, "groups": [asdict(row) for row in crowds],
        "latency": [asdict(row) for row in singles], "end_to_end_ms": whole,
        "throughput": [asdict(row) for row in rows], "ratios": compared,
    }  # fmt: skip


def main() -> int:
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        pulsar, kafka = Standalone(directory / "pulsar"), KafkaNode(directory / "kafka")
        sidecar = SidecarProcess(directory / "sidecar", pulsar.url, pulsar.admin_url)
        try:
            pulsar.start()
            kafka.start()
            sidecar.start()
            result = _measure(directory, pulsar, kafka, sidecar)
        finally:
            sidecar.stop()
            kafka.stop()
            pulsar.stop()
    CACHE.mkdir(exist_ok=True)
    (CACHE / "bench.json").write_text(json.dumps(result, indent=1))
    print(f"\nas JSON: {CACHE / 'bench.json'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
