"""`make bench`: the sidecar, Apache Kafka and native Pulsar, in turn on one machine and one Pulsar. About ten minutes.

Absolute figures belong to the machine; the ratios are what counts. BENCH_MIB sets how much a
case writes (default 96), BENCH_CASES chooses cases by a part of their names, BENCH_GROUPS says how many
consumer groups there are. It writes `.cache/bench.json` and a page with plots, `.cache/bench.html`.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

from bench.crowd import crowd_costs
from bench.groups import PROTOCOLS, groups
from bench.latency import end_to_end, single_records
from bench.page import page
from bench.process import ProcessCost
from bench.quick import commit, history
from bench.report import crowd_table, group_table, latency_table, ratio_table, ratios, size_table, throughput_table
from bench.sizes import size_costs
from bench.throughput import CASES, WARM, Throughput, kafka_protocol, native
from integration.launcher.jars import CACHE
from integration.launcher.kafka import KafkaNode
from integration.launcher.pulsar import Standalone
from integration.launcher.sidecar import SidecarProcess


def _measure(directory: Path, pulsar: Standalone, kafka: KafkaNode, sidecar: SidecarProcess) -> dict[str, object]:
    mib = int(os.environ.get("BENCH_MIB", "96"))
    chosen = os.environ.get("BENCH_CASES", "")
    time.sleep(5)
    idle = ProcessCost(sidecar.pid).resident_mib()
    print(f"Pulsar with {pulsar.journal}, for the sidecar and for native clients")
    print(f"idle sidecar: {idle:.0f} MiB resident\n", flush=True)
    addresses = {"sidecar": sidecar.address, "kafka": kafka.address}
    rows: list[Throughput] = []
    for _ in range(2):  # a JVM that has just been started takes three times the CPU for the same, whoever is first
        kafka_protocol("sidecar", sidecar.address, sidecar.pid, pulsar.pid, WARM, mib)
        kafka_protocol("kafka", kafka.address, kafka.pid, None, WARM, mib)
    for case in [case for case in CASES if chosen in case.name]:
        rows.append(kafka_protocol("sidecar", sidecar.address, sidecar.pid, pulsar.pid, case, mib))
        rows.append(kafka_protocol("kafka", kafka.address, kafka.pid, None, case, mib))
        if case.with_native:
            rows.append(native(pulsar, directory, case, mib))
    compared = ratios(rows)
    print(throughput_table(rows) + "\n\n" + ratio_table(compared) + "\n", flush=True)
    crowds = [
        *crowd_costs("sidecar", sidecar.address, sidecar.pid, pulsar.pid),
        *crowd_costs("kafka", kafka.address, kafka.pid, None),
    ]  # fmt: skip
    print(crowd_table(crowds) + "\n", flush=True)
    singles = single_records(pulsar, addresses)
    whole = {name: end_to_end(address) for name, address in addresses.items()}
    print(latency_table(singles, whole) + "\n", flush=True)
    members = [
        groups(name, addresses[name], pid, protocol, int(os.environ.get("BENCH_GROUPS", "1000")))
        for protocol in PROTOCOLS
        for name, pid in (("sidecar", sidecar.pid), ("kafka", kafka.pid))
    ]
    print(group_table(members) + "\n", flush=True)
    sizes = size_costs(pulsar, directory)
    print(size_table(sizes) + "\n", flush=True)
    return {
        "at": int(time.time()), "commit": commit(), "machine": f"{os.cpu_count()} cores, Pulsar with {pulsar.journal}", "mib": mib,
        "idle_mib": idle, "sizes": [asdict(row) for row in sizes],
        "throughput": [asdict(row) for row in rows], "ratios": compared, "crowds": [asdict(row) for row in crowds],
        "latency": [asdict(row) for row in singles], "end_to_end_ms": whole, "groups": [asdict(row) for row in members],
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
            measured = _measure(directory, pulsar, kafka, sidecar)
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
