"""DeleteRecords (21), versions 0 to 2: the log start of a partition moves forward, for all clients of all sidecars.

v1  the same as v0
v2  flexible (KIP-482)

What lies before it stays in Pulsar until its retention takes it. A topic that is only compacted is POLICY_VIOLATION, as
with Kafka.
"""

from __future__ import annotations

import asyncio
from typing import Final, Protocol

from kafka_sidecar.apis.api import Api, Call, Services
from kafka_sidecar.apis.common.topics import existing
from kafka_sidecar.apis.needs import AclOperation, on_topic
from kafka_sidecar.internal_topics.moved_start import MovedStart
from kafka_sidecar.partition.log.errors import error_code
from kafka_sidecar.partition.partition import Partition
from kafka_sidecar.pulsar.errors import PulsarError, Unavailable
from kafka_sidecar.topics.record_configs import is_compacted_only
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
    DeleteRecordsTopicResult,
)

TO_THE_END: Final = -1  # DeleteRecordsRequest.HIGH_WATERMARK


class LogStarts(Protocol):
    async def put(self, key: str, value: MovedStart, /) -> None:
        """Where a partition starts, for all sidecars."""
        ...


async def delete_before(log_starts: LogStarts, partition: Partition, before: int) -> int | ErrorCode:
    """The log start after deleting what is before an offset (Partition.deleteRecordsOnLeader). May raise
    PulsarError.
    """
    error = await partition.opened()
    if error is not ErrorCode.NONE:
        return error
    start = await partition.confirmed_start()
    end = await partition.confirmed_end()
    last = partition.last_position  # that of this end: others may write from now on
    wanted = end if before == TO_THE_END else before
    if not 0 <= wanted <= end:
        return ErrorCode.OFFSET_OUT_OF_RANGE
    if wanted <= start:
        return start
    position = await partition.entry_log.find_index(wanted) if wanted < end else None
    if position is None:
        if wanted < end or last is None:
            raise Unavailable(f"no entry holds offset {wanted}")  # the broker's search may be a little behind
        position = last.after()
    await log_starts.put(partition.name, MovedStart(position, wanted))
    return max(wanted, await partition.confirmed_start())


async def _partition(
    services: Services, call: Call, name: str, requested: DeleteRecordsPartition, timeout_ms: int
) -> DeleteRecordsPartitionResult:
    result = DeleteRecordsPartitionResult(partition_index=requested.partition_index, low_watermark=-1)
    topic = await existing(services, call, name)
    if isinstance(topic, ErrorCode):
        result.error_code = topic
    elif topic.name.internal:
        result.error_code = ErrorCode.INVALID_TOPIC_EXCEPTION
    elif is_compacted_only(topic.properties):
        result.error_code = ErrorCode.POLICY_VIOLATION
    else:
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                partition = services.partition(topic.name, requested.partition_index)
                found = await delete_before(services.log_starts, partition, requested.offset)
        except TimeoutError:
            found = ErrorCode.REQUEST_TIMED_OUT
        except PulsarError as error:
            found = error_code(error)
        if isinstance(found, ErrorCode):
            result.error_code = found
        else:
            result.low_watermark = found
    return result


async def _topic(
    services: Services, call: Call, topic: DeleteRecordsTopic, timeout_ms: int
) -> DeleteRecordsTopicResult:
    results = await asyncio.gather(
        *(_partition(services, call, topic.name, one, timeout_ms) for one in topic.partitions)
    )
    return DeleteRecordsTopicResult(name=topic.name, partitions=results)


async def _handle(services: Services, call: Call, request: DeleteRecordsRequest) -> DeleteRecordsResponse:
    topics = await asyncio.gather(*(_topic(services, call, topic, request.timeout_ms) for topic in request.topics))
    return DeleteRecordsResponse(topics=topics)


API: Final = Api(DeleteRecordsRequest, DeleteRecordsResponse, 0, 2, _handle, needs=on_topic(AclOperation.DELETE))
