"""DescribeProducers (61), version 0 (KIP-664): the idempotent producers of a partition, as its log tells them."""

from __future__ import annotations

import asyncio
from typing import Final

from kafka_sidecar.apis.api import Api, Call, Services
from kafka_sidecar.apis.common.late import LATE_TOPIC, in_time
from kafka_sidecar.apis.common.topics import existing
from kafka_sidecar.apis.needs import AclOperation, on_topic
from kafka_sidecar.loop.pace import Pace
from kafka_sidecar.partition.log.errors import error_code
from kafka_sidecar.partition.partition import Partition
from kafka_sidecar.pulsar.errors import PulsarError
from kafka_sidecar.topics.catalog import Topic
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicRequest,
    TopicResponse,
)

NO_COORDINATOR: Final = -1


async def _active(partition: Partition) -> list[ProducerState] | ErrorCode:
    error = await partition.opened()
    if error is not ErrorCode.NONE:
        return error
    await partition.confirmed_end()
    found = []
    pace = Pace()
    for producer_id, state in (await partition.known_producers()).items():
        await pace.maybe_yield()  # there may be hundreds of thousands
        opened = partition.transactions.first_undecided(producer_id)
        found.append(
            ProducerState(
                producer_id=producer_id,
                producer_epoch=state.epoch,
                last_sequence=state.last,
                last_timestamp=state.max_timestamp,
                coordinator_epoch=NO_COORDINATOR,
                current_txn_start_offset=-1 if opened is None else opened.first_offset,
            )
        )
    return found


async def _partition(services: Services, call: Call, topic: Topic | ErrorCode, index: int) -> PartitionResponse:
    found: list[ProducerState] | ErrorCode
    if isinstance(topic, ErrorCode):
        found = topic
    else:
        try:
            found = await in_time(call, _active(services.partition(topic.name, index)), LATE_TOPIC)
        except PulsarError as error:
            found = error_code(error)
    if found is LATE_TOPIC:
        found = ErrorCode.NOT_LEADER_OR_FOLLOWER  # after which Java asks again (DescribeProducersHandler)
    if isinstance(found, ErrorCode):
        return PartitionResponse(partition_index=index, error_code=found)
    return PartitionResponse(partition_index=index, active_producers=found)


async def _topic(services: Services, call: Call, topic: TopicRequest) -> TopicResponse:
    found = await existing(services, call, topic.name)
    partitions = await asyncio.gather(*(_partition(services, call, found, index) for index in topic.partition_indexes))
    return TopicResponse(name=topic.name, partitions=partitions)


async def _handle(services: Services, call: Call, request: DescribeProducersRequest) -> DescribeProducersResponse:
    return DescribeProducersResponse(
        topics=await asyncio.gather(*(_topic(services, call, topic) for topic in request.topics))
    )


API: Final = Api(
    DescribeProducersRequest,
    DescribeProducersResponse,
    0,
    0,
    _handle,
    needs=on_topic(AclOperation.READ),
    ends_with_client=True,
)
