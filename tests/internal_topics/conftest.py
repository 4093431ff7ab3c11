from __future__ import annotations

import pytest

from kafka_sidecar.internal_topics import kept_shard


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is kept is looked up anew at every question."""
    monkeypatch.setattr(kept_shard, "LOOK_SECONDS", 0.0)
