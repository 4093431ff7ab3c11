"""`make demo`: a real Pulsar and the sidecar, until Ctrl-C.

KAFKA_PORT, PULSAR_PORT, PULSAR_WEB_PORT and PULSAR_VERSION change the defaults.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import sys
import time
from pathlib import Path
from types import FrameType
from typing import TextIO

from integration.launcher.jars import ROOT
from integration.launcher.jvm import LONG_LIVED
from integration.launcher.process import ServerFailed, port_is_taken
from integration.launcher.pulsar import Standalone, version_from_environment
from integration.launcher.sidecar import SidecarProcess


class _Stop(Exception):
    """SIGTERM or Ctrl-C."""


def _stop(number: int, frame: FrameType | None) -> None:
    raise _Stop


def _ports(defaults: dict[str, int]) -> list[int]:
    """The ports, by the variables that set them; what is wrong with any of them is told at once."""
    ports = []
    wrong = []
    for variable, default in defaults.items():
        text = os.environ.get(variable, str(default))
        if not text.isdigit() or not 0 < int(text) < 65536:
            wrong.append(f"{variable} is {text!r}: set it to a port number.")
        elif port_is_taken(int(text)):
            wrong.append(f"Port {text} is taken: stop what listens there, or set {variable} to another port.")
        else:
            ports.append(int(text))
    if wrong:
        raise SystemExit("\n".join(wrong))
    return ports


def _claim(data: Path) -> TextIO:
    """The data directory for this process alone, for as long as the file is open."""
    data.mkdir(parents=True, exist_ok=True)
    lock = (data / "demo.lock").open("w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise SystemExit(f"Another demo uses {_short(data)}: stop it first.") from None
    return lock


def main() -> int:
    signal.signal(signal.SIGTERM, _stop)
    signal.signal(signal.SIGINT, _stop)
    signal.signal(signal.SIGHUP, _stop)  # the terminal was closed
    kafka_port, pulsar_port, web_port = _ports({"KAFKA_PORT": 9092, "PULSAR_PORT": 6650, "PULSAR_WEB_PORT": 8080})
    version = version_from_environment()
    data = ROOT / "data" / f"pulsar-{version}"
    lock = _claim(data)
    pulsar = Standalone(data, version=version, port=pulsar_port, web_port=web_port, jvm=LONG_LIVED)
    sidecar = SidecarProcess(data, pulsar.url, pulsar.admin_url, port=kafka_port)
    try:
        print(f"Starting Pulsar {version} with {pulsar.journal} (log: {_short(pulsar.log)}) ...", flush=True)
        begun = time.monotonic()
        pulsar.start()
        print(
            f"Pulsar is up after {time.monotonic() - begun:.0f} s. Starting the sidecar (log: {_short(sidecar.log)}) "
            "...",
            flush=True,
        )
        sidecar.start()
        print(f"\nKafka clients:  127.0.0.1:{kafka_port}\nPulsar:         {pulsar.url}   admin {pulsar.admin_url}")
        print(
            f"Data:           {_short(data)}\nMissing topics are made on first use with 4 partitions. Ctrl-C ends it "
            "all.\n",
            flush=True,
        )
        while pulsar.running and sidecar.running:
            time.sleep(0.5)
        ended = sidecar if pulsar.running else pulsar
        print(
            f"{'The sidecar' if ended is sidecar else 'Pulsar'} ended by itself, see {_short(ended.log)}.",
            file=sys.stderr,
        )
        return 1
    except _Stop:
        return 0
    except ServerFailed as failure:
        print(failure, file=sys.stderr)
        return 1
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        with contextlib.suppress(OSError):  # there may be no terminal any more
            print("Stopping ...", flush=True)
        if sidecar.running:
            sidecar.stop(30 if pulsar.running else 3)  # without Pulsar nothing that is under way can end
        if pulsar.running:
            pulsar.stop()
        lock.close()


def _short(path: Path) -> str:
    return os.path.relpath(path)


if __name__ == "__main__":
    sys.exit(main())
