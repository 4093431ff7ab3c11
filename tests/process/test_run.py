"""One sidecar as a process: how it ends."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import socket
from typing import Any

import pytest

from kafka_sidecar.config import Config, TelemetryConfig
from kafka_sidecar.errors import ConfigError
from kafka_sidecar.process import run as process
from kafka_sidecar.process.run import REPEATED_SECONDS, run
from tests.support.fake_broker import until


class Sidecar:
    """It starts and drains at once, unless it is told otherwise."""

    starts = drains = True

    def __init__(self, _: Config) -> None:
        self.stop_asked = asyncio.Event()
        self.port = 0
        self.happened: list[str] = []
        made.append(self)

    async def start(self, *, once: bool) -> None:
        if not self.starts:
            await asyncio.Event().wait()
        self.port = 9092
        self.happened.append("started")

    async def drain(self) -> bool:
        self.happened.append("drains")
        if not self.drains:
            await asyncio.Event().wait()
        return True

    async def close(self) -> None:
        self.happened.append("closed")


made: list[Sidecar] = []


@pytest.fixture(autouse=True)
def sidecar(monkeypatch: pytest.MonkeyPatch) -> type[Sidecar]:
    made.clear()
    monkeypatch.setattr(process, "Sidecar", Sidecar)
    monkeypatch.setattr(process, "_serve_metrics", lambda _: None)
    for collects in ("collect", "freeze", "set_threshold"):
        monkeypatch.setattr(gc, collects, lambda *_: None)
    return Sidecar


async def test_a_signal_drains_it() -> None:
    running = asyncio.create_task(run(Config()))
    await until(lambda: bool(made) and "started" in made[0].happened)
    os.kill(os.getpid(), signal.SIGTERM)
    assert await running == 0
    assert made[0].happened == ["started", "drains", "closed"]


async def test_a_second_signal_does_not_wait_for_the_drain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Sidecar, "drains", False)
    monkeypatch.setattr(process, "REPEATED_SECONDS", REPEATED_SECONDS / 100)
    running = asyncio.create_task(run(Config()))
    await until(lambda: bool(made) and "started" in made[0].happened)
    os.kill(os.getpid(), signal.SIGTERM)
    await until(lambda: "drains" in made[0].happened)
    await asyncio.sleep(REPEATED_SECONDS / 50)
    os.kill(os.getpid(), signal.SIGTERM)
    assert await running == 1
    assert made[0].happened[-1] == "closed"


async def test_a_signal_ends_it_before_pulsar_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Sidecar, "starts", False)
    running = asyncio.create_task(run(Config()))
    await until(lambda: bool(made))
    made[0].stop_asked.set()
    assert await running == 0
    assert made[0].happened == ["closed"]


def test_a_metrics_port_that_is_taken_is_said_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: Any = taken.getsockname()[1]
        config = Config(telemetry=TelemetryConfig(metrics_listen=f"127.0.0.1:{port}"))
        with pytest.raises(ConfigError, match=r"set telemetry\.metrics_listen to a free address"):
            process._serve_metrics(config)
