"""DescribeTopicPartitions (75), version 0 (KIP-966).

Topics in the order of their names, a page at a time; one ends before a topic that is described late.
Not implemented: eligible leader replicas (none).
"""

from __future__ import annotations

import asyncio
from typing import Final

from kafka_sidecar.apis.api import Api, Call, Client, Services
from kafka_sidecar.apis.common.nodes import replicas
from kafka_sidecar.apis.common.topics import find, listed
from kafka_sidecar.apis.needs import AclOperation, on_topic
from kafka_sidecar.partition.log.errors import error_code
from kafka_sidecar.pulsar.errors import PulsarError
from kafka_sidecar.topics.catalog import Topic
from kafka_sidecar.topics.names import InvalidTopicName
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)

# max.request.partition.size.limit.
MAX_PAGE: Final = 2_000
# Of a topic that Pulsar does not describe in time: the page ends before it, and the client asks for the next (see
# `late`).
LATE: Final = ErrorCode.REQUEST_TIMED_OUT


async def _described(services: Services, call: Call, name: str) -> Topic | ErrorCode:
    try:
        return await find(services, call, services.catalog.names.parse(name), late=LATE)
    except InvalidTopicName:
        return ErrorCode.INVALID_TOPIC_EXCEPTION


async def _wanted(
    services: Services, call: Call, request: DescribeTopicPartitionsRequest
) -> list[tuple[str, Topic | ErrorCode]]:
    names = services.catalog.names
    if request.topics:
        wanted = sorted({topic.name for topic in request.topics})
        found = await asyncio.gather(*(_described(services, call, name) for name in wanted))
        return list(zip(wanted, found, strict=True))
    try:
        everything = [(names.kafka(name), topic) for name, topic in await listed(services, call, LATE)]
    except PulsarError as error:
        return [("", error_code(error))]
    return sorted(everything, key=lambda item: item[0])


async def _handle(
    services: Services, call: Call, request: DescribeTopicPartitionsRequest
) -> DescribeTopicPartitionsResponse:
    left = min(max(request.response_partition_limit, 1), MAX_PAGE)
    after = request.cursor or Cursor()
    topics: list[DescribeTopicPartitionsResponseTopic] = []
    next_cursor = None
    for name, topic in await _wanted(services, call, request):
        if name < after.topic_name:
            continue
        begin = max(after.partition_index, 0) if name == after.topic_name else 0
        if left == 0 or topic is LATE:
            next_cursor = Cursor(topic_name=name, partition_index=begin)
            break
        end = begin if isinstance(topic, ErrorCode) else min(begin + left, topic.partitions)
        left -= max(end - begin, 0)
        topics.append(_topic(services, call.client, name, topic, range(begin, end)))
        if isinstance(topic, Topic) and end < topic.partitions:
            next_cursor = Cursor(topic_name=name, partition_index=end)
            break
    return DescribeTopicPartitionsResponse(topics=topics, next_cursor=next_cursor)


def _topic(
    services: Services, client: Client, name: str, topic: Topic | ErrorCode, indexes: range
) -> DescribeTopicPartitionsResponseTopic:
    if isinstance(topic, ErrorCode):
        return DescribeTopicPartitionsResponseTopic(error_code=topic, name=name)
    partitions = [
        DescribeTopicPartitionsResponsePartition(
            partition_index=index,
            error_code=error,
            leader_id=leader,
            leader_epoch=0,
            replica_nodes=ids,
            isr_nodes=ids,
            eligible_leader_replicas=(),
            last_known_elr=(),
        )
        for index, (error, leader, ids) in zip(
            indexes, replicas(services, client, services.fleet.view, topic)[indexes.start : indexes.stop], strict=True
        )
    ]
    return DescribeTopicPartitionsResponseTopic(
        name=name, topic_id=topic.topic_id, is_internal=topic.name.internal, partitions=partitions
    )


API: Final = Api(
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    0,
    0,
    _handle,
    needs=on_topic(AclOperation.DESCRIBE),
    ends_with_client=True,
)
