from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from kafka_sidecar.telemetry import logs


@pytest.fixture(autouse=True)
def own_logs(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A command sets up what its process logs."""
    monkeypatch.setattr(logs, "start", lambda *_: None)
    aiokafka = logging.getLogger("aiokafka")
    level = aiokafka.level
    yield
    aiokafka.setLevel(level)
