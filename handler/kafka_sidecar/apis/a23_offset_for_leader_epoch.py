"""OffsetForLeaderEpoch (23), versions 2 to 4.

v2  the client's leader epoch (KIP-320)
v3  replica ids, of no account
v4  flexible (KIP-482)

The log is one leadership, epoch 0, and is never truncated: its end is the end of epoch 0. An epoch
from the future is unknown (KIP-320).
"""

from __future__ import annotations

import asyncio
from typing import Final

from kafka_sidecar.apis.api import Api, Call, Services
from kafka_sidecar.apis.common.late import LATE_TOPIC, in_time
from kafka_sidecar.apis.common.topics import resolve
from kafka_sidecar.apis.needs import AclOperation, on_cluster, on_topic
from kafka_sidecar.partition.log.errors import error_code
from kafka_sidecar.partition.partition import Partition
from kafka_sidecar.pulsar.errors import PulsarError
from kafka_sidecar.topics.names import TopicName
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
    OffsetForLeaderTopicResult,
)

EPOCH: Final = 0


async def _end(partition: Partition) -> int | ErrorCode:
    error = await partition.opened()
    return await partition.confirmed_end() if error is ErrorCode.NONE else error


async def _partition(
    services: Services, call: Call, name: TopicName | ErrorCode, requested: OffsetForLeaderPartition
) -> EpochEndOffset:
    if isinstance(name, ErrorCode):
        return EpochEndOffset(partition=requested.partition, error_code=name)
    if requested.current_leader_epoch > EPOCH:
        return EpochEndOffset(partition=requested.partition, error_code=ErrorCode.UNKNOWN_LEADER_EPOCH)
    try:
        partition = services.partition(name, requested.partition)
        end = await in_time(call, _end(partition), LATE_TOPIC)
    except PulsarError as failure:
        end = error_code(failure)
    if isinstance(end, ErrorCode):
        return EpochEndOffset(partition=requested.partition, error_code=end)
    if requested.leader_epoch != EPOCH:
        return EpochEndOffset(partition=requested.partition)
    return EpochEndOffset(partition=requested.partition, leader_epoch=EPOCH, end_offset=end)


async def _topic(services: Services, call: Call, topic: OffsetForLeaderTopic) -> OffsetForLeaderTopicResult:
    name = resolve(services, topic.topic, None)
    partitions = await asyncio.gather(*(_partition(services, call, name, partition) for partition in topic.partitions))
    return OffsetForLeaderTopicResult(topic=topic.topic, partitions=partitions)


async def _handle(services: Services, call: Call, request: OffsetForLeaderEpochRequest) -> OffsetForLeaderEpochResponse:
    return OffsetForLeaderEpochResponse(
        topics=await asyncio.gather(*(_topic(services, call, topic) for topic in request.topics))
    )


API: Final = Api(
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    2,
    4,
    _handle,
    needs=on_topic(AclOperation.DESCRIBE) + on_cluster(AclOperation.CLUSTER_ACTION),
    ends_with_client=True,
)
