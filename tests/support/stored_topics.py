"""What a log asks about its topic, answered for a topic of which nothing is set."""

from __future__ import annotations

import uuid

from kafka_sidecar.internal_topics.moved_start import MovedStart
from kafka_sidecar.partition.log.log_config import AS_IT_COMES, LogConfig
from kafka_sidecar.partition.log.pulsar_log import StoredTopics
from kafka_sidecar.pulsar.entry import Position
from kafka_sidecar.pulsar.errors import TopicMissing


class PlainTopic(StoredTopics):
    def __init__(self) -> None:
        self.topic_id: uuid.UUID | None = uuid.UUID(int=1)

    async def log_of(self, partition: str) -> str:
        return partition

    def id_of(self, partition: str) -> uuid.UUID | None:
        return self.topic_id

    async def id_now(self, partition: str) -> uuid.UUID | None:
        if self.topic_id is None:
            raise TopicMissing(partition)
        return self.topic_id

    async def config_of(self, partition: str) -> LogConfig:
        return AS_IT_COMES

    async def counts_records(self, partition: str) -> bool:
        return False

    async def skipped(self, partition: str) -> frozenset[Position]:
        return frozenset()

    async def moved_start_of(self, partition: str) -> MovedStart | None:
        return None

    async def transactions_from(self, partition: str) -> Position | None:
        return None

    async def begin_transactions(self, partition: str, behind: Position) -> None: ...
