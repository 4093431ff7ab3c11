"""Pulsar as internal topics and their coordinators use it. `PulsarClient` and `PulsarAdmin` are this; a simulation has
its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from kafka_sidecar.pulsar.client import Purpose
from kafka_sidecar.pulsar.entry import CompactionStats, LogStats, Position
from kafka_sidecar.pulsar.events import ConsumerEvents, ProducerEvents
from kafka_sidecar.pulsar.producer import SHARED


class BatchProducer(Protocol):
    @property
    def max_message_size(self) -> int: ...
    def send_batch(self, sequence: int, count: int, payload: bytes) -> None:
        """`payload` holds so many messages, each with a key (see `kafka_sidecar.pulsar.messages`)."""
        ...

    def close(self) -> None: ...


class EntryReader(Protocol):
    def grant(self, permits: int) -> None: ...
    def close(self) -> None: ...


class Candidate(Protocol):
    def close(self) -> None: ...


class Client(Protocol):
    """Every call may raise PulsarError."""

    async def producer(
        self,
        topic: str,
        name: str,
        events: ProducerEvents,
        *,
        access_mode: int = SHARED,
        wait_seconds: float | None = None,
        purpose: Purpose = "write",
    ) -> BatchProducer: ...
    async def reader(
        self,
        topic: str,
        start: Position | None,
        events: ConsumerEvents,
        *,
        compacted: bool = False,
        purpose: Purpose = "read",
    ) -> EntryReader: ...
    async def candidate(
        self,
        topic: str,
        subscription: str,
        name: str,
        priority: int,
        events: ConsumerEvents,
        metadata: dict[bytes, bytes],
    ) -> Candidate:
        """A Failover consumer; the one with the lowest priority number is the active one."""
        ...

    async def version_of_owner(self, topic: str) -> str | None:
        """What the broker that serves a topic says it is; None where it can't be asked itself."""
        ...


class Topics(Protocol):
    """A topic has partitions. Each is a topic of its own for Pulsar."""

    async def partitioned_topics(self, namespace: str) -> list[str]: ...
    async def is_partitioned(self, topic: str) -> bool: ...
    async def partitions(self, topic: str) -> int: ...
    async def create_topic(self, topic: str, partitions: int) -> None: ...
    async def create_missing_partitions(self, topic: str) -> None: ...
    async def partition_stats(self, topic: str) -> Mapping[int, Mapping[str, Any]]: ...
    async def created_at(self, partition: str) -> str: ...
    async def log_stats(self, partition: str) -> LogStats: ...
    async def index_of(self, partition: str, position: Position) -> int | None: ...
    async def index_property(self, partition: str) -> int | None: ...
    async def compact(self, partition: str) -> None: ...
    async def compacted_ledger(self, partition: str) -> int: ...
    async def compaction_stats(self, partition: str) -> CompactionStats: ...


class Subscriptions(Protocol):
    async def acknowledged(self, partition: str, name: str) -> Position | None: ...


class Policies(Protocol):
    """Of a topic that has partitions. NoTopicPolicies where brokers keep none."""

    async def retention(self, topic: str) -> tuple[int, int] | None:
        """Minutes and MiB; None where it is left to the namespace."""
        ...

    async def of_cursors(self, topic: str) -> Mapping[str, Any]: ...
    async def set_retention(self, topic: str, minutes: int, megabytes: int) -> None: ...


class Namespaces(Protocol):
    async def namespace_policies(self, namespace: str) -> Mapping[str, Any]: ...
    async def broker_settings(self) -> Mapping[str, str]: ...
    async def create_namespace(self, namespace: str) -> None: ...
    async def keep_for_ever(self, namespace: str) -> None: ...


class Admin(Protocol):
    """Every call may raise PulsarError."""

    @property
    def topics(self) -> Topics: ...
    @property
    def subscriptions(self) -> Subscriptions: ...
    @property
    def policies(self) -> Policies: ...
    @property
    def cluster(self) -> Namespaces: ...
