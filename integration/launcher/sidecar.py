"""The sidecar as a process of its own, as it runs in production."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

from integration.launcher.process import Restartable, Server, free_port


class SidecarProcess(Restartable):
    def __init__(self, directory: Path, pulsar_url: str, admin_url: str, *, port: int = 0, **settings: str) -> None:
        self.port = port or free_port()
        self._directory = directory
        self._environment = {
            "KAFKA_SIDECAR_PULSAR__URL": pulsar_url,
            "KAFKA_SIDECAR_PULSAR__ADMIN_URL": admin_url,
            "KAFKA_SIDECAR_KAFKA__LISTEN": f"127.0.0.1:{self.port}",
            "KAFKA_SIDECAR_KAFKA__AUTO_CREATE_TOPICS": "true",
            **{f"KAFKA_SIDECAR_{name.upper()}": value for name, value in settings.items()},
        }

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def log(self) -> Path:
        return self._directory / "sidecar.log"

    def start(self, seconds: float = 30) -> None:
        command = [sys.executable, "-m", "handler", "serve"]
        self._server = Server("the sidecar", command, self.log, env=self._environment)
        self._server.wait_until(self._listens, seconds)

    def _listens(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0
