"""The sidecar as a process of its own, as it runs in production."""

from __future__ import annotations

import re
import socket
import sys
from pathlib import Path
from typing import ClassVar, Final

from integration.launcher.process import STARTS_WITHIN, Restartable, Server, free_port

SIDECAR_LOG: Final = "sidecar.log"


class SidecarProcess(Restartable):
    defaults: ClassVar[dict[str, str]] = {}  # settings of all sidecars that this process starts; the tests have some

    def __init__(
        self,
        directory: Path,
        pulsar_url: str,
        admin_url: str,
        *,
        port: int = 0,
        site: Path | None = None,
        workers: int = 1,
        **settings: str,
    ) -> None:
        """`site`: run what is installed there instead of this checkout."""
        self.port = port or free_port()
        self.site = site
        self._workers = workers
        self._directory = directory
        self._environment = {
            "KAFKA_SIDECAR_PULSAR__URL": pulsar_url,
            "KAFKA_SIDECAR_PULSAR__ADMIN_URL": admin_url,
            "KAFKA_SIDECAR_KAFKA__LISTEN": f"127.0.0.1:{self.port}",
            "KAFKA_SIDECAR_KAFKA__AUTO_CREATE_TOPICS": "true",
            **{f"KAFKA_SIDECAR_{name.upper()}": value for name, value in {**self.defaults, **settings}.items()},
        }

    @property
    def _package(self) -> str:
        """0.2 and older releases are imported as `handler`."""
        return "handler" if self.site is not None and (self.site / "handler").is_dir() else "kafka_sidecar"

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def control(self) -> str:
        """The address of its control port, where a setting names one."""
        return self._environment["KAFKA_SIDECAR_CONTROL__LISTEN"]

    @property
    def log(self) -> Path:
        return self._directory / SIDECAR_LOG

    def complaints(self) -> list[str]:
        """Lines that no log may have, whatever is done to a sidecar."""
        return [
            line for line in self.log.read_text(errors="replace").splitlines() if "ALARM" in line or "Traceback" in line
        ]

    def shards_led(self) -> set[str]:
        """The partitions of internal topics that it coordinates, as its log tells."""
        led: set[str] = set()
        for begun, ended in re.findall(r"coordinating (\S+?):|(\S+?): the term ends", self.said_since(self._begun_at)):
            led.discard(ended)
            led |= {begun} - {""}
        return led

    def said_so_far(self) -> int:
        """A place in its log, for `said_since`."""
        return self.log.stat().st_size if self.log.exists() else 0

    def said_since(self, place: int) -> str:
        return self.log.read_bytes()[place:].decode(errors="replace")

    def start(self, seconds: float = STARTS_WITHIN) -> None:
        self.begin()
        self.wait(seconds)

    def begin(self) -> None:
        """Start it, and do not wait until it serves."""
        self._begun_at = self.said_so_far()  # by its predecessors
        of_site = [] if self.site is None else ["-P"]
        environment = self._environment if self.site is None else {**self._environment, "PYTHONPATH": str(self.site)}
        serve = ["-m", self._package, "serve", "--workers", str(self._workers)]
        self._server = Server("the sidecar", [sys.executable, *of_site, *serve], self.log, env=environment)

    def wait(self, seconds: float = STARTS_WITHIN) -> None:
        assert self._server is not None
        self._server.wait_until(self.listens, seconds)

    def listens(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0
