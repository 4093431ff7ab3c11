"""What a process costs, from /proc."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path


class ProcessCost:
    """CPU seconds since this object was made, and memory now, of a process and those that it has started."""

    def __init__(self, pid: int) -> None:
        self._pids = [pid, *_started_by(pid)]
        self._before = self._total()

    def _total(self) -> float:
        times = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split() for pid in self._pids]
        return sum(int(one[11]) + int(one[12]) for one in times) / os.sysconf("SC_CLK_TCK")

    def cpu_seconds(self) -> float:
        return self._total() - self._before

    def resident_mib(self) -> float:
        pages = sum(int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in self._pids)
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def _started_by(pid: int) -> list[int]:
    children = [
        int(one) for task in Path(f"/proc/{pid}/task").iterdir() for one in (task / "children").read_text().split()
    ]
    return [*children, *(further for child in children for further in _started_by(child))]


def run(command: list[str], seconds: float) -> str:
    """A command's whole output, whatever its exit code."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
    return done.stdout + done.stderr
