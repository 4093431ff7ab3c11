"""The logs of partitions, as the transaction coordinator writes its markers to them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from handler.partition.table import PartitionTable
from handler.partition.write.append import Append, AppendRequest
from handler.partition.write.log_validator import BatchRefused
from handler.topics.names import TopicNames
from handler.transactions.markers import Logs
from handler.transactions.metadata import TopicPartition
from handler.wire.error_code import ErrorCode


@dataclass(frozen=True, slots=True)
class MarkerLogs(Logs):
    names: TopicNames
    partitions: PartitionTable

    async def append_marker(self, partition: TopicPartition, marker: bytes, transaction: int, seconds: float) -> ErrorCode:
        topic, index = partition
        written = _Written()
        deadline = asyncio.get_running_loop().time() + seconds
        log = self.partitions.get(self.names.parse(topic).partition(index))
        log.append(Append.of_marker(marker, transaction, deadline, written, 0))
        return await written.error


class _Written(AppendRequest):
    def __init__(self) -> None:
        self.error: asyncio.Future[ErrorCode] = asyncio.get_running_loop().create_future()

    def on_appended(self, batch_index: int, error: ErrorCode, base_offset: int) -> None:
        if not self.error.done():
            self.error.set_result(error)

    def on_refused(self, batch_index: int, refused: BatchRefused) -> None: ...

    def on_log_append_time(self, batch_index: int, timestamp: int) -> None: ...
