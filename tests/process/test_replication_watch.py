"""A policy that was changed is taken up by the partitions in use."""

from __future__ import annotations

from typing import Any, cast

from kafka_sidecar.partition.partition import Partition
from kafka_sidecar.process.replication_watch import look
from kafka_sidecar.pulsar.errors import Unavailable
from kafka_sidecar.telemetry import metrics
from kafka_sidecar.topics.replication import Counting
from tests.support.batches import batch
from tests.support.memory_log import MemoryLog
from tests.support.partitions import append, open_partition


class InUse:
    def __init__(self, partition: Partition) -> None:
        self._partition = partition

    def names(self) -> list[str]:
        return ["a-partition-0", "gone-partition-0"]

    def existing(self, name: str) -> Partition | None:
        return self._partition if name.startswith("a") else None


class Logs:
    def __init__(self) -> None:
        self.answer: Counting | None = Counting.NOT_NEEDED

    async def counting_of(self, name: str) -> Counting:
        if self.answer is None:
            raise Unavailable("the admin API is away")
        return self.answer


async def test_entries_say_how_many_records_they_hold_from_then_on() -> None:
    log, logs = MemoryLog(), Logs()
    partition = open_partition(log)
    counted = []
    for answer in (Counting.NOT_NEEDED, Counting.WRITTEN, None, Counting.LEFT_OUT):
        logs.answer = answer
        await look(cast(Any, InUse(partition)), cast(Any, logs))
        await append(partition, batch(b"a", b"b"))
        counted.append(log.entries[-1].message_metadata.HasField("num_messages_in_batch"))
    partition.close()
    assert counted == [False, True, True, False], "where it can't be told it stays as it was"
    assert metrics.REPLICATED_WITHOUT_COUNT._value.get() == 1
