"""Events of a producer and of a consumer, which the connection reports."""

from __future__ import annotations

from typing import Protocol

from kafka_sidecar.pulsar.entry import RawEntry
from kafka_sidecar.pulsar.errors import PulsarError


class ProducerEvents(Protocol):
    def on_receipt(self, sequence: int, ledger: int, entry: int) -> None: ...
    def on_send_error(self, sequence: int, code: int, message: str) -> None: ...
    def on_end(self, reason: PulsarError) -> None: ...


class ConsumerEvents(Protocol):
    def on_entry(self, entry: RawEntry) -> None: ...
    def on_end(self, reason: PulsarError) -> None: ...

    def on_active(self, active: bool) -> None:
        """Of a Failover subscription: the election has changed. Nobody else hears it."""
        return
