"""What a process costs, from /proc."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path


class ProcessCost:
    """CPU seconds since this object was made, and memory now."""

    def __init__(self, pid: int) -> None:
        self._stat = Path(f"/proc/{pid}/stat")
        self._statm = Path(f"/proc/{pid}/statm")
        self._before = self._total()

    def _total(self) -> float:
        times = self._stat.read_text().rpartition(")")[2].split()
        return (int(times[11]) + int(times[12])) / os.sysconf("SC_CLK_TCK")

    def cpu_seconds(self) -> float:
        return self._total() - self._before

    def resident_mib(self) -> float:
        return int(self._statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def run(command: list[str], seconds: float) -> str:
    """A command's whole output, whatever its exit code."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
    return done.stdout + done.stderr
