"""`make bench-quick`: what the sidecar itself costs, in two minutes, against the last run that was kept.

Every run is a line of JSON in `.cache/bench-history.jsonl`. It fails where something costs a fifth more than in the
last one; runs on a busy machine differ by as much, so look twice.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from bench.batches import CASES, batch_costs
from bench.formats import format_costs
from bench.opening import opening_costs
from bench.process import ProcessCost
from bench.reading import reading_costs, write_for_reading
from bench.report import batch_table, format_table, opening_table, reading_table, waiting_table
from bench.waiting import waiting_costs
from integration.launcher.jars import CACHE, ROOT
from integration.launcher.jvm import LONG_LIVED
from integration.launcher.pulsar import Standalone
from integration.launcher.sidecar import SidecarProcess

HISTORY: Final = CACHE / "bench-history.jsonl"
WORSE: Final = 1.2
MIB_READ: Final = 128
SLICES: Final = 5


def measure(pulsar: Standalone, directory: Path) -> dict[str, float]:
    """What is measured, by name; less is better."""
    kept: dict[str, float] = {}
    sidecar = SidecarProcess(directory / "sidecar", pulsar.url, pulsar.admin_url)
    sidecar.start()
    try:
        time.sleep(3)
        kept["idle MiB"] = ProcessCost(sidecar.pid).resident_mib()
        print(f"idle sidecar: {kept['idle MiB']:.0f} MiB resident\n", flush=True)
        batches = batch_costs(sidecar.address, sidecar.pid, CASES, SLICES)
        print(batch_table(batches) + "\n", flush=True)
        opening = opening_costs(sidecar.address, sidecar.pid)
        print(opening_table(opening) + "\n", flush=True)
        waiting = waiting_costs(sidecar.address, sidecar.pid)
        print(waiting_table(waiting) + "\n", flush=True)
        formats = list(format_costs())
        print(format_table(formats) + "\n", flush=True)
        topic_id, end = write_for_reading(sidecar.address, MIB_READ)
    finally:
        sidecar.stop()
    reader = SidecarProcess(
        directory / "reader", pulsar.url, pulsar.admin_url, limits__cache_bytes=str(2 * MIB_READ * 2**20)
    )
    reader.start()
    try:
        reading = reading_costs(reader.address, reader.pid, topic_id, end)
        print(reading_table(reading) + "\n", flush=True)
    finally:
        reader.stop()
    kept |= {f"{cost.case}, µs a batch": cost.quartile_us for cost in batches}
    kept |= {f"{cost.what}, CPU ms each": cost.cpu_ms for cost in opening}
    kept |= {f"to format pulsar, {cost.what}, µs a record": cost.encode_us for cost in formats}
    kept |= {f"from format pulsar, {cost.what}, µs a record": cost.decode_us for cost in formats}
    kept |= {f"waiting {cost.how}, µs a partition": cost.us_a_partition for cost in waiting}
    kept |= {f"reading, {cost.state}, CPU s/GiB": cost.cpu_s_per_gib for cost in reading}
    return kept


def history() -> list[dict[str, Any]]:
    """The runs that were kept, the oldest first."""
    return [json.loads(line) for line in HISTORY.read_text().splitlines()] if HISTORY.exists() else []


def commit() -> str:
    done = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.stdout.strip()


def main() -> int:
    with tempfile.TemporaryDirectory() as name:
        pulsar = Standalone(Path(name) / "pulsar", jvm=LONG_LIVED)
        pulsar.start()
        try:
            costs = measure(pulsar, Path(name))
        finally:
            pulsar.stop()
    kept = history()
    last = kept[-1]["costs"] if kept else {}
    worse = {what: (last[what], cost) for what, cost in costs.items() if what in last and cost > last[what] * WORSE}
    for what, (before, now) in worse.items():
        print(f"{what}: {now:.2f}, it was {before:.2f}")
    if not worse:
        CACHE.mkdir(exist_ok=True)
        with HISTORY.open("a") as file:
            file.write(json.dumps({"at": int(time.time()), "commit": commit(), "costs": costs}) + "\n")
        print(f"kept as the last line of {HISTORY}")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
