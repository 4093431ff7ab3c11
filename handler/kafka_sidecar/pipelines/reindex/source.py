"""The Pulsar cluster that entries without an index are read from: neither Kafka's protocol nor an offset leads to
them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from kafka_sidecar.config import Config, KafkaConfig, PulsarConfig
from kafka_sidecar.errors import ConfigError
from kafka_sidecar.partition.log import topic_logs
from kafka_sidecar.partition.log.port import EntryLog
from kafka_sidecar.partition.log.topic_logs import TopicLogs
from kafka_sidecar.pulsar.errors import TopicMissing
from kafka_sidecar.topics.names import InvalidTopicName, TopicName

NAME: Final = "reindex"


@dataclass(frozen=True, slots=True, kw_only=True)
class PulsarSource:
    """As in the config of the sidecar that serves these topics."""

    url: str
    admin_url: str
    listener_name: str = ""
    namespace: str = "public/default"


class OpenedSource:
    def __init__(self, logs: TopicLogs) -> None:
        self._logs = logs

    async def reach(self) -> None:
        """May raise PulsarError."""
        await self._logs.client.protocol_version()
        await self._logs.catalog.list_names()

    def log(self, topic: str, partition: int) -> EntryLog:
        return self._logs.log(self._name(topic).partition(partition), NAME)

    async def not_the_same(self, topic: str, topic_id: str) -> str:
        """Why this is not the topic that the Kafka source has under this name and id. May raise PulsarError."""
        try:
            found = (await self._logs.catalog.find(self._name(topic))).topic_id.hex
        except TopicMissing:
            found = "none"
        if found == topic_id:
            return ""
        return (
            f"topic {topic} of the source is not the one that Pulsar has: --source must be a sidecar of this cluster, "
            "and --pulsar-url, --pulsar-admin-url and --namespace as in its config"
        )

    def _name(self, topic: str) -> TopicName:
        try:
            return self._logs.catalog.names.parse(topic)
        except InvalidTopicName as error:
            raise ConfigError(str(error)) from error


@asynccontextmanager
async def opened(source: PulsarSource) -> AsyncIterator[OpenedSource]:
    pulsar = PulsarConfig(url=source.url, admin_url=source.admin_url, listener_name=source.listener_name)
    async with topic_logs.opened(Config(pulsar=pulsar, kafka=KafkaConfig(namespace=source.namespace))) as logs:
        yield OpenedSource(logs)
