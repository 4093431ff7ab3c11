"""Alerts hear of a Pulsar that does not answer."""

from __future__ import annotations

from typing import Any, cast

import pytest

from kafka_sidecar.process.pulsar_watch import look
from kafka_sidecar.pulsar.errors import Unavailable
from kafka_sidecar.telemetry import metrics


class Cluster:
    """A client and an admin API."""

    def __init__(self) -> None:
        self.binary: Exception | None = None
        self.admin: Exception | None = None

    @property
    def cluster(self) -> Cluster:
        return self

    async def protocol_version(self) -> tuple[int, str]:
        if self.binary is not None:
            raise self.binary
        return 19, "Pulsar"

    async def clusters(self) -> list[str]:
        if self.admin is not None:
            raise self.admin
        return ["one"]

    async def reached(self) -> float:
        await look(cast(Any, self), cast(Any, self))
        return cast(float, metrics.PULSAR_REACHED._value.get())


async def test_both_ways_to_pulsar_are_tried() -> None:
    cluster = Cluster()
    assert await cluster.reached() == 1
    cluster.binary = Unavailable("no broker")
    assert await cluster.reached() == 0
    cluster.binary, cluster.admin = None, Unavailable("no admin")
    assert await cluster.reached() == 0
    cluster.admin = RuntimeError("nobody thought of this")
    with pytest.raises(RuntimeError):
        await cluster.reached()
    assert metrics.PULSAR_REACHED._value.get() == 0
    cluster.admin = None
    assert await cluster.reached() == 1
