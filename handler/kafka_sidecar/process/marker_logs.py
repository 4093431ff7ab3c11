"""The logs of partitions, as the transaction coordinator writes its markers to them.

Those of `__consumer_offsets` are written by who leads them, which knows what is pending there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from kafka_sidecar.control.v1.control_pb2 import EndOffsetsRequest
from kafka_sidecar.coordination.errors import CoordinatorError
from kafka_sidecar.fleet.peers import Peers
from kafka_sidecar.groups.service import OFFSETS_TOPIC, GroupRuntime
from kafka_sidecar.loop.waiting import within
from kafka_sidecar.partition.table import PartitionTable
from kafka_sidecar.pulsar.errors import Unavailable
from kafka_sidecar.topics.names import TopicName, TopicNames
from kafka_sidecar.transactions.markers import Logs
from kafka_sidecar.transactions.metadata import TopicPartition
from kafka_sidecar.wire.control_records import read_marker
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.records import read_header


@dataclass(frozen=True, slots=True)
class MarkerLogs(Logs):
    names: TopicNames
    partitions: PartitionTable
    groups: GroupRuntime
    peers: Peers
    # Asks the admin API whether the partition exists, instead of a cache.
    has_partition: Callable[[TopicName, int], Awaitable[bool]]

    async def append_marker(
        self, partition: TopicPartition, marker: bytes, transaction: int, seconds: float
    ) -> ErrorCode:
        topic, index = partition
        if topic == OFFSETS_TOPIC:
            return await within(seconds, self._end_offsets(index, marker, transaction))
        deadline = asyncio.get_running_loop().time() + seconds
        name = self.names.parse(topic)
        log = self.partitions.get(name.partition(index))
        opened = await within(seconds, log.opened())
        if opened is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and await within(seconds, self.has_partition(name, index)):
            opened = ErrorCode.NOT_LEADER_OR_FOLLOWER  # the broker that denied the topic does not know it yet
        if opened not in (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
            raise Unavailable(
                f"{topic}-{index} can't be opened now: {opened.name}"
            )  # the error does not show whether the partition exists
        return opened or await log.end_transaction(marker, transaction, deadline)

    async def _end_offsets(self, index: int, marker: bytes, transaction: int) -> ErrorCode:
        committed = read_marker(marker)
        assert committed is not None
        producer_id = read_header(marker).producer_id
        try:
            leader = await self.groups.leaders.leader_of_shard(index)
            if leader is None:
                await self.groups.coordinator.end_transaction(index, producer_id, transaction, committed.committed)
                return ErrorCode.NONE
        except CoordinatorError as refused:
            return refused.error
        request = EndOffsetsRequest(
            to=leader.name, partition=index, producer_id=producer_id, number=transaction, committed=committed.committed
        )
        return ErrorCode((await self.peers.end_offsets(leader.control, request)).error_code)
