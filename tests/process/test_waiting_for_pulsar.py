"""A sidecar starts when Pulsar is there and set as it must be."""

from __future__ import annotations

import asyncio
import logging
from typing import Any, cast

import pytest

from kafka_sidecar.config import Config
from kafka_sidecar.doctor import cluster as doctor
from kafka_sidecar.doctor.cluster import Finding, Severity
from kafka_sidecar.errors import ConfigError
from kafka_sidecar.process.waiting_for_pulsar import LOOK_SECONDS, SAY_SECONDS, wait_for_pulsar
from tests.support.virtual_time import in_virtual_time

AWAY = Finding(Severity.FAULT, "pulsar", "no broker answers", transient=True)
WRONG = Finding(Severity.FAULT, "index", "set the interceptor")
DOUBTFUL = Finding(Severity.WARNING, "policies", "topic policies are off")


def waited(monkeypatch: pytest.MonkeyPatch, *findings: list[Finding], once: bool = False) -> float:
    """The seconds that it took. Each look finds the next."""
    looks = list(findings)
    seconds = 0.0

    async def examine(*_: object) -> list[Finding]:
        return looks.pop(0) if len(looks) > 1 else looks[0]

    async def play() -> None:
        nonlocal seconds
        loop = asyncio.get_running_loop()
        begun = loop.time()
        await wait_for_pulsar(cast(Any, None), cast(Any, None), Config(), once)
        seconds = loop.time() - begun

    monkeypatch.setattr(doctor, "examine", examine)
    in_virtual_time(play())
    return seconds


def test_a_cluster_that_is_not_there_yet_is_waited_for(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    looks = int(1.5 * SAY_SECONDS / LOOK_SECONDS)
    with caplog.at_level(logging.WARNING):
        assert waited(monkeypatch, *[[AWAY]] * looks, [DOUBTFUL]) == looks * LOOK_SECONDS
    assert [record.getMessage() for record in caplog.records] == [
        "waiting for Pulsar:\n  no broker answers",
        "waiting for Pulsar:\n  no broker answers",
        "topic policies are off",
    ]


def test_with_once_it_has_to_be_there(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="no broker answers"):
        waited(monkeypatch, [AWAY], once=True)


def test_a_wrong_setting_ends_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="set the interceptor"):
        waited(monkeypatch, [WRONG])
