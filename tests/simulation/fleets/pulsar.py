"""Pulsar as a whole sidecar uses it: topics of users beside internal ones, and what the doctor asks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import Context
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, Final

from kafka_sidecar.doctor.cluster import INDEX, TIMESTAMP
from kafka_sidecar.pulsar.admin import DescribedTopic
from kafka_sidecar.pulsar.entry import Position
from kafka_sidecar.pulsar.errors import Refused, TopicMissing, Unavailable
from tests.model.cluster import ClusterAdmin, ClusterClient
from tests.model.topic import is_marker
from tests.simulation.conduct import DrawnCaller, DrawnConduct

PROTOCOL: Final = 21
SETTINGS: Final = {
    "brokerEntryMetadataInterceptors": f"{INDEX},{TIMESTAMP}",
    "exposingBrokerEntryMetadataToClientEnabled": "true",
    "brokerDeleteInactiveTopicsEnabled": "false",
    "topicLevelPoliciesEnabled": "true",
    "systemTopicEnabled": "true",
    "managedLedgerNewEntriesCheckDelayInMillis": "0",
}


class AdminCaller(DrawnCaller):
    """Who asks the admin API, which may be away for a while."""

    def __init__(self, conduct: DrawnConduct, name: str, context: Context, is_away: Callable[[], bool]) -> None:
        super().__init__(conduct, name, context)
        self._is_away = is_away

    async def ask(self) -> None:
        await super().ask()
        if self._is_away():
            raise Unavailable("the admin API is away")


class SidecarsClient(ClusterClient):
    def start(self) -> None: ...
    async def close(self) -> None: ...

    async def protocol_version(self) -> tuple[int, str]:
        await self._caller.ask()
        return PROTOCOL, f"Pulsar Server{self._cluster.version}"

    async def reach(self, topic: str) -> None:
        await self._caller.ask()


class SidecarsAdmin(ClusterAdmin):
    async def close(self) -> None: ...

    async def clusters(self) -> list[str]:
        await self._caller.ask()
        return ["standalone"]

    async def tenants(self) -> list[str]:
        await self._caller.ask()
        return ["public"]

    async def logs(self, namespace: str) -> list[str]:
        await self._caller.ask()
        topics = [topic for topic in self._cluster.topics if topic.startswith(f"persistent://{namespace}/")]
        found = [
            f"{topic}-partition-{number}" for topic in topics for number in range(len(self._cluster.topics[topic]))
        ]
        await self._caller.hear()
        return found

    async def describe(self, topic: str) -> DescribedTopic:
        await self._caller.ask()
        if topic not in self._cluster.topics:
            raise TopicMissing(topic)
        found = DescribedTopic(len(self._cluster.topics[topic]), dict(self._cluster.properties.get(topic, {})))
        await self._caller.hear()
        return found

    async def create_topic(
        self, topic: str, partitions: int, properties: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        await super().create_topic(topic, partitions)
        self._cluster.properties[topic] = dict(properties)

    async def delete_topic(self, topic: str, *, partitioned: bool) -> None:
        await self._caller.ask()
        self._cluster.delete(topic)
        await self._caller.hear()

    async def created_at(self, partition: str) -> str:
        await self._caller.ask()
        try:
            log = self._cluster.log(partition)
        except TopicMissing as error:
            raise Unavailable(f"500 of {partition}") from error
        return datetime.fromtimestamp(log.made_at_ms / 1_000, UTC).isoformat(timespec="milliseconds")

    async def find_index(self, partition: str, index: int) -> Position | None:
        await self._caller.ask()
        raise Refused("this broker is too old for that")

    async def find_time(self, partition: str, timestamp: int) -> Position | None:
        await self._caller.ask()
        log = self._cluster.log(partition)
        found = (one.position for one in log.present if (one.broker_timestamp or 0) >= timestamp)
        return next(found, log.next_position)

    async def is_marker(self, partition: str, position: Position) -> bool:
        await self._caller.ask()
        found = [one for one in self._cluster.log(partition).present if one.position == position]
        if not found:
            raise Unavailable(f"entry {position} of {partition} was removed meanwhile")
        return is_marker(found[0])

    async def replication_clusters(self, topic: str) -> list[str] | None:
        await self._caller.ask()
        return None

    async def namespace_policies(self, namespace: str) -> dict[str, Any]:
        await self._caller.ask()
        return {
            "retention_policies": {"retentionTimeInMinutes": -1, "retentionSizeInMB": -1},
            "replication_clusters": ["standalone"],
        }
