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
    """Case by case, in turn; CPU seconds are those of all workers. A broker that has just started takes more for the
    same.
    """
    sidecars = {
        workers: SidecarProcess(
            directory / f"{workers}-workers",
            pulsar.url,
            pulsar.admin_url,
            port=free_ports(workers).start,
            workers=workers,
        )
        for workers in WORKERS
    }
    rows: list[Throughput] = []
    try:
        for sidecar in sidecars.values():
            sidecar.start()
        for case in (WARM, WARM, WARM, *_CASES):
            for workers, sidecar in sidecars.items():
                row = kafka_protocol(f"{workers} workers", sidecar.address, sidecar.pid, pulsar.pid, case, mib)
                rows += [] if case is WARM else [row]
    finally:
        for sidecar in sidecars.values():
            sidecar.stop()
    return rows
