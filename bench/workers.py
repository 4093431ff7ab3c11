"""One sidecar with one worker and with two: what the second core is good for, until the broker is the limit."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from bench.throughput import CASES, WARM, Throughput, kafka_protocol
from integration.launcher.process import free_ports
from integration.launcher.pulsar import Standalone
from integration.launcher.sidecar import SidecarProcess

WORKERS: Final = (1, 2)
_CASES: Final = tuple(case for case in CASES if case.partitions > 1)


def worker_costs(pulsar: Standalone, directory: Path, mib: int) -> list[Throughput]:
    """By case, first with one worker; CPU seconds are those of all workers."""
    rows: list[Throughput] = []
    for workers in WORKERS:
        sidecar = SidecarProcess(
            directory / f"{workers}-workers", pulsar.url, pulsar.admin_url, port=free_ports(workers).start, workers=workers,
        )  # fmt: skip
        sidecar.start()
        try:
            for case in (WARM, WARM, *_CASES):
                row = kafka_protocol(f"{workers} workers", sidecar.address, sidecar.pid, pulsar.pid, case, mib)
                rows += [] if case is WARM else [row]
        finally:
            sidecar.stop()
    return sorted(rows, key=lambda row: row.case)
