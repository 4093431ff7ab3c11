"""The logs of Pulsar's topics: where the entries of a partition are, and in which format they are to be written."""

from __future__ import annotations

from dataclasses import dataclass

from handler.partition.log.formats import FORMATS, KAFKA, EntryFormat
from handler.partition.log.pulsar_log import PulsarLog
from handler.pulsar.admin import PulsarAdmin
from handler.pulsar.client import PulsarClient
from handler.topics.catalog import Catalog, Topic


@dataclass(frozen=True, slots=True)
class TopicLogs:
    client: PulsarClient
    admin: PulsarAdmin
    catalog: Catalog
    default_format: str

    def log(self, partition: str, writer_name: str) -> PulsarLog:
        return PulsarLog(self.client, self.admin, partition, writer_name, self)

    async def log_of(self, partition: str) -> str:
        """Pulsar's topic that holds the entries of a partition."""
        return await self.catalog.log_of(partition)

    async def entry_format(self, partition: str) -> EntryFormat:
        """The format in which the entries of a partition are to be written now."""
        name = self.catalog.names.from_pulsar(partition.rpartition("-partition-")[0])
        if name is None:  # of what Kafka clients have no name for nothing is appended
            return KAFKA
        return FORMATS[await self.catalog.entry_format(name) or self.default_format]

    def format_of(self, topic: Topic) -> EntryFormat:
        """The same of a topic as it was looked at."""
        return FORMATS[topic.entry_format or self.default_format]
