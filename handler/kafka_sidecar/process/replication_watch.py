"""Whether the entries of partitions in use have to say how many records they hold: a changed policy is taken up within
a minute.
"""

from __future__ import annotations

from typing import Final

from kafka_sidecar.loop.supervised import SupervisedTask, every
from kafka_sidecar.partition.log.topic_logs import TopicLogs
from kafka_sidecar.partition.table import PartitionTable
from kafka_sidecar.pulsar.errors import PulsarError
from kafka_sidecar.telemetry import metrics
from kafka_sidecar.topics.replication import Counting

LOOK_SECONDS: Final = 30.0


def replication_watch(partitions: PartitionTable, logs: TopicLogs) -> SupervisedTask:
    return every(LOOK_SECONDS, "replication", lambda: look(partitions, logs))


async def look(partitions: PartitionTable, logs: TopicLogs) -> None:
    left_out = 0
    for name in partitions.names():
        try:
            counting = await logs.counting_of(name)
        except PulsarError:  # the partition's setting stays as it was
            continue
        partition = partitions.existing(name)
        if partition is not None:
            partition.set_counting(counts_records=counting is Counting.WRITTEN)
            left_out += counting is Counting.LEFT_OUT
    metrics.REPLICATED_WITHOUT_COUNT.set(left_out)
