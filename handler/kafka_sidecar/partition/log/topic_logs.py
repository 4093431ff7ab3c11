"""The logs of Pulsar's topics: where the entries of a partition are, and what their configs ask of new ones."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from kafka_sidecar.config import Config
from kafka_sidecar.internal_topics.log_starts import LogStarts
from kafka_sidecar.internal_topics.moved_start import MovedStart
from kafka_sidecar.internal_topics.transactional_partitions import TransactionalPartitions
from kafka_sidecar.partition.log.formats import FORMATS, KAFKA
from kafka_sidecar.partition.log.log_config import AS_IT_COMES, LogConfig
from kafka_sidecar.partition.log.pulsar_log import PulsarLog
from kafka_sidecar.pulsar.admin import PulsarAdmin
from kafka_sidecar.pulsar.client import PulsarClient
from kafka_sidecar.pulsar.entry import Position
from kafka_sidecar.topics.catalog import Catalog, Topic
from kafka_sidecar.topics.names import TopicNames
from kafka_sidecar.topics.record_configs import RecordConfigs
from kafka_sidecar.topics.replication import Counting, Replication

# compression.type → Kafka's codec id. `producer` is missing here, since it keeps the producer's codec.
_CODECS: Final = {"uncompressed": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}


@dataclass(frozen=True, slots=True)
class TopicLogs:
    client: PulsarClient
    admin: PulsarAdmin
    catalog: Catalog
    default_format: str
    replication: Replication
    starts: LogStarts | None = None  # None for commands that inspect the stored log and serve no clients
    # None for commands that inspect the stored log and serve no clients.
    transactional: TransactionalPartitions | None = None

    def log(self, partition: str, writer_name: str) -> PulsarLog:
        return PulsarLog(self.client, self.admin, partition, writer_name, self)

    async def log_of(self, partition: str) -> str:
        """Pulsar's topic that holds the entries of a partition."""
        return await self.catalog.log_of(partition)

    def id_of(self, partition: str) -> uuid.UUID | None:
        """Of the partition's topic as it was looked at last."""
        found = self.catalog.names.of_partition(partition)
        topic = None if found is None else self.catalog.remembered(found[0])
        return None if topic is None else topic.topic_id

    async def id_now(self, partition: str) -> uuid.UUID | None:
        found = self.catalog.names.of_partition(partition)
        return None if found is None else (await self.catalog.look_at(found[0])).topic_id

    async def moved_start_of(self, partition: str) -> MovedStart | None:
        """Where a client has moved the start of a partition to, through whichever sidecar: its start does not go
        back.
        """
        return None if self.starts is None else await self.starts.of_now(partition)

    async def transactions_from(self, partition: str) -> Position | None:
        """The entry behind which a partition may have transactions."""
        return None if self.transactional is None else await self.transactional.of_now(partition)

    async def begin_transactions(self, partition: str, behind: Position) -> None:
        assert self.transactional is not None, "nothing is appended here"
        await self.transactional.put(partition, behind)

    async def config_of(self, partition: str) -> LogConfig:
        """What is asked now of records that are appended to a partition."""
        found = self.catalog.names.of_partition(partition)
        if found is None:  # Nothing is appended to a topic that has no Kafka name
            return AS_IT_COMES
        return self._config(await self.catalog.record_configs(found[0]))

    async def counts_records(self, partition: str) -> bool:
        return await self.counting_of(partition) is Counting.WRITTEN

    async def skipped(self, partition: str) -> frozenset[Position]:
        found = self.catalog.names.of_partition(partition)
        return frozenset() if found is None else await self.catalog.skipped(*found)

    async def counting_of(self, partition: str) -> Counting:
        """Whether what is appended to a partition says how many records it has. Entries of format pulsar always do."""
        found = self.catalog.names.of_partition(partition)
        if found is None or found[0].internal or (await self.config_of(partition)).entry_format is not KAFKA:
            return Counting.NOT_NEEDED
        return await self.replication.counting_of(found[0].pulsar, await self.log_of(partition))

    def config_of_topic(self, topic: Topic) -> LogConfig:
        """The same of a topic as it was looked at."""
        return self._config(topic.record_configs)

    def _config(self, configs: RecordConfigs) -> LogConfig:
        config = LogConfig(
            FORMATS[configs.entry_format or self.default_format],
            _CODECS.get(configs.compression_type),
            configs.log_append_time,
            configs.compacted,
            configs.before_max_ms,
            configs.after_max_ms,
        )
        return AS_IT_COMES if config == AS_IT_COMES else config


@asynccontextmanager
async def opened(config: Config) -> AsyncIterator[TopicLogs]:
    """For a command that looks at a cluster and ends."""
    client = PulsarClient(config.pulsar.url, config.pulsar.listener_name or None)
    admin = PulsarAdmin(config.pulsar.admin_url)
    names = TopicNames(config.kafka.namespace, config.groups.namespace, config.kafka.further_namespaces)
    try:
        clock = asyncio.get_running_loop().time
        replication = Replication(admin, clock, always_counts=config.kafka.replicated_count)
        yield TopicLogs(
            client, admin, Catalog(admin, names, clock, replication), config.kafka.entry_format, replication
        )
    finally:
        await client.close()
        await admin.close()
