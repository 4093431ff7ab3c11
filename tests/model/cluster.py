"""Pulsar as internal topics and their coordinators use it (`kafka_sidecar.pulsar.ports`), for one sidecar."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from kafka_sidecar.pulsar import ports
from kafka_sidecar.pulsar.admin import COMPACTION, AlreadyExists, NoTopicPolicies
from kafka_sidecar.pulsar.client import Purpose
from kafka_sidecar.pulsar.entry import CompactionStats, LogStats, Position
from kafka_sidecar.pulsar.errors import TopicMissing, Unavailable
from kafka_sidecar.pulsar.events import ConsumerEvents, ProducerEvents
from kafka_sidecar.pulsar.producer import SHARED, WAIT_FOR_EXCLUSIVE
from tests.model.conduct import Caller
from tests.model.connections import Reader
from tests.model.internal_log import BatchWriter, Candidate, InternalLog


class Moods(Protocol):
    """How the admin API answers."""

    def takes_for_missing(self, topic: str) -> bool:
        """A broker that has just started may not know a topic that is there."""
        ...

    def leaves_out(self, partition: int) -> bool:
        """Of the stats of all partitions: a broker did not answer
        (PersistentTopicsBase.internalGetPartitionedStats).
        """
        ...

    def compaction_delay(self) -> float: ...


class Obliging(Moods):
    """An admin API that knows all."""

    def takes_for_missing(self, topic: str) -> bool:
        return False

    def leaves_out(self, partition: int) -> bool:
        return False

    def compaction_delay(self) -> float:
        return 0.1


class Cluster:
    def __init__(self, new_log: Callable[[str, int], InternalLog], moods: Moods) -> None:
        """`new_log`: of a topic's partition."""
        self.moods = moods
        self._new_log = new_log
        self.version = "4.2.4"
        self.settings: dict[str, str] = {}
        self.policies_of_cursors: dict[str, Any] = {}  # of each topic itself
        self.keeps_topic_policies = True
        self.topics: dict[str, list[InternalLog]] = {}
        self.properties: dict[str, dict[str, str]] = {}  # of topics
        self._deleted: dict[str, list[InternalLog]] = {}  # their logs are those of the topic that is made anew

    def create(self, topic: str, partitions: int) -> None:
        if topic in self.topics:
            raise AlreadyExists(topic)
        logs = self._deleted.pop(topic, [])
        self.topics[topic] = [
            *logs[:partitions],
            *(self._new_log(topic, number) for number in range(len(logs), partitions)),
        ]
        for log in self.topics[topic]:
            log.made_at_ms = log.conduct.now_ms()

    def delete(self, topic: str) -> None:
        if topic not in self.topics:
            raise TopicMissing(topic)
        self._deleted[topic] = self.topics.pop(topic)
        for log in self._deleted[topic]:
            log.make_anew()

    def log(self, partition: str) -> InternalLog:
        topic, _, number = partition.rpartition("-partition-")
        if topic not in self.topics:
            raise TopicMissing(partition)
        return self.topics[topic][int(number)]

    @property
    def logs(self) -> list[InternalLog]:
        return [log for logs in self.topics.values() for log in logs]


class ClusterClient(ports.Client):
    """Its client: one process's."""

    def __init__(self, cluster: Cluster, name: str, caller: Caller) -> None:
        self._cluster = cluster
        self._name = name
        self._caller = caller

    async def producer(
        self,
        topic: str,
        name: str,
        events: ProducerEvents,
        *,
        access_mode: int = SHARED,
        wait_seconds: float | None = None,
        purpose: Purpose = "write",
    ) -> BatchWriter:
        await self._caller.ask()
        log = self._cluster.log(topic)
        way = self._caller.way(log.opens("writer", self._name))
        if access_mode == WAIT_FOR_EXCLUSIVE:
            return await log.exclusive_as(name, events, way, wait_seconds)
        if name in log.known_writers:
            raise Unavailable("a producer of this name is connected")
        return BatchWriter(log, name, events, way)

    async def reader(
        self,
        topic: str,
        start: Position | None,
        events: ConsumerEvents,
        *,
        compacted: bool = False,
        purpose: Purpose = "read",
    ) -> Reader:
        await self._caller.ask()
        log = self._cluster.log(topic)
        return (log.compacted_reader_as if compacted else log.reader_as)(self._name, start, events, self._caller)

    async def candidate(
        self,
        topic: str,
        subscription: str,
        name: str,
        priority: int,
        events: ConsumerEvents,
        metadata: dict[bytes, bytes],
    ) -> Candidate:
        await self._caller.ask()
        log = self._cluster.log(topic)
        return log.candidate_as(
            subscription, name, priority, events, metadata, self._caller.way(log.opens("candidate", self._name))
        )

    async def version_of_owner(self, topic: str) -> str | None:
        await self._caller.ask()
        return f"Pulsar Server{self._cluster.version}"


class ClusterAdmin(ports.Admin, ports.Topics, ports.Subscriptions, ports.Policies, ports.Namespaces):
    """Its admin API. What a topic's owner is asked for may be late, but is never old."""

    def __init__(self, cluster: Cluster, caller: Caller) -> None:
        self._cluster = cluster
        self._caller = caller
        self._told_of: set[str] = set()

    @property
    def topics(self) -> ClusterAdmin:
        return self

    @property
    def subscriptions(self) -> ClusterAdmin:
        return self

    @property
    def policies(self) -> ClusterAdmin:
        return self

    @property
    def cluster(self) -> ClusterAdmin:
        return self

    async def namespace_policies(self, namespace: str) -> dict[str, Any]:
        await self._caller.ask()
        return {"retention_policies": {"retentionTimeInMinutes": -1, "retentionSizeInMB": -1}}

    async def broker_settings(self) -> dict[str, str]:
        await self._caller.ask()
        return self._cluster.settings

    async def create_namespace(self, namespace: str) -> None: ...
    async def keep_for_ever(self, namespace: str) -> None: ...

    async def partitioned_topics(self, namespace: str) -> list[str]:
        await self._caller.ask()
        found = [topic for topic in self._cluster.topics if topic.startswith(f"persistent://{namespace}/")]
        await self._caller.hear()
        return found

    async def is_partitioned(self, topic: str) -> bool:
        await self._caller.ask()
        found = topic in self._cluster.topics
        if found and topic in self._told_of and self._cluster.moods.takes_for_missing(topic):
            found = False  # who has never heard of it can't tell that from one that nobody has made
        if found:
            self._told_of.add(topic)
        await self._caller.hear()
        return found

    async def partitions(self, topic: str) -> int:
        if not await self.is_partitioned(topic):
            raise TopicMissing(topic)
        return len(self._cluster.topics[topic])

    async def create_topic(self, topic: str, partitions: int) -> None:
        await self._caller.ask()
        self._cluster.create(topic, partitions)
        await self._caller.hear()

    async def create_missing_partitions(self, topic: str) -> None:
        await self.partitions(topic)

    async def partition_stats(self, topic: str) -> Mapping[int, Mapping[str, Any]]:
        await self._caller.ask()
        if topic not in self._cluster.topics:
            raise TopicMissing(topic)
        found = {
            number: {"subscriptions": log.subscription_stats()}
            for number, log in enumerate(self._cluster.topics[topic])
            if not self._cluster.moods.leaves_out(number)
        }
        await self._caller.hear()
        return found

    async def created_at(self, partition: str) -> str:
        await self._caller.ask()
        return f"generation {self._cluster.log(partition).generation}"

    async def log_stats(self, partition: str) -> LogStats:
        await self._caller.ask()
        found = self._cluster.log(partition).stats_now()
        await self._caller.hear()
        return found

    async def compact(self, partition: str) -> None:
        await self._caller.ask()
        log = self._cluster.log(partition)
        if log.is_compacting:
            raise AlreadyExists("a compaction is under way")
        log.compact(self._cluster.moods.compaction_delay)

    async def compacted_ledger(self, partition: str) -> int:
        await self._caller.ask()
        found = self._cluster.log(partition).compacted_ledger
        await self._caller.hear()
        return found

    async def compaction_stats(self, partition: str) -> CompactionStats:
        await self._caller.ask()
        log = self._cluster.log(partition)
        size = sum(len(entry.payload) for entry in log.compacted)
        found = CompactionStats(
            log.stats_now(), log.compaction_cursor, log.compacted_ledger, log.cursors_ledger, len(log.compacted), size
        )
        await self._caller.hear()
        return found

    async def of_cursors(self, topic: str) -> dict[str, Any]:
        await self._caller.ask()
        return self._cluster.policies_of_cursors

    async def index_of(self, partition: str, position: Position) -> int | None:
        await self._caller.ask()
        found = (entry.last_index for entry in self._cluster.log(partition).present if entry.position == position)
        return next(found, None)

    async def index_property(self, partition: str) -> int | None:
        await self._caller.ask()
        log = self._cluster.log(partition)
        return log.index if log.trimmed else None

    async def retention(self, topic: str) -> tuple[int, int] | None:
        await self._caller.ask()
        found = self._logs_of(topic)[0].retention
        await self._caller.hear()
        return found

    async def set_retention(self, topic: str, minutes: int, megabytes: int) -> None:
        await self._caller.ask()
        for log in self._logs_of(topic):
            log.retention = minutes, megabytes
            log.take_what_is_old()
        await self._caller.hear()

    def _logs_of(self, topic: str) -> list[InternalLog]:
        if not self._cluster.keeps_topic_policies:
            raise NoTopicPolicies("these brokers keep none")
        if topic not in self._cluster.topics:
            raise TopicMissing(topic)
        return self._cluster.topics[topic]

    async def acknowledged(self, partition: str, name: str) -> Position | None:
        assert name == COMPACTION
        await self._caller.ask()
        return self._cluster.log(partition).horizon
