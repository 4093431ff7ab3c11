"""A member of the fleet, as Kafka's clients know it."""

from __future__ import annotations

from typing import NamedTuple

from kafka_sidecar.model.sidecar import Endpoint


class Member(NamedTuple):
    node_id: int
    host: str
    port: int
    rack: str | None = None
    external: Endpoint | None = None  # advertised address for clients of the external listener
