"""ListOffsets (2), versions 1 to 11.

v1   one offset a partition, with its timestamp
v2   isolation level (KIP-98)
v4   leader epochs (KIP-320)
v6   flexible (KIP-482)
v7   max timestamp (KIP-734)
v8   earliest local offset (KIP-405)
v9   latest tiered offset (KIP-1005)
v10  a time-out (KIP-1075), of no account: see `late`
v11  earliest pending upload offset (KIP-1023)

  −1 latest          confirmed against the broker's last entry, never older than what it acknowledged. For
                     read_committed it is the last stable offset, and what is behind that is not found by time
  −2 earliest        the first entry Pulsar still has; an emptied log answers its end
  −3 max timestamp   the record with the greatest timestamp
  −4 earliest local  the first entry that Pulsar has not offloaded
  −5 latest tiered   the last that it has; none: −1
  −6 pending upload  as −4; none is offloaded: −1
  ≥ 0                the first record with that timestamp or a later one; none: −1/−1
"""

from __future__ import annotations

import asyncio
from typing import Final

from kafka_sidecar.apis.api import Api, Call, Services
from kafka_sidecar.apis.common.late import LATE_TOPIC, in_time
from kafka_sidecar.apis.common.topics import resolve
from kafka_sidecar.apis.needs import AclOperation, on_topic
from kafka_sidecar.errors import EntryUnreadable
from kafka_sidecar.partition.log.errors import error_code
from kafka_sidecar.partition.partition import Partition
from kafka_sidecar.partition.search.tiered import earliest_local, earliest_pending_upload, latest_tiered
from kafka_sidecar.partition.search.timestamp_search import NOT_FOUND, TimestampAndOffset, by_time, greatest_timestamp
from kafka_sidecar.pulsar.errors import PulsarError
from kafka_sidecar.topics.names import TopicName
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
    ListOffsetsTopicResponse,
)

READ_COMMITTED: Final = 1
LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3
MAX_TIMESTAMP_SINCE: Final = 7
# Since which version each is asked for, and what finds it.
_TIERED: Final = {-4: (8, earliest_local), -5: (9, latest_tiered), -6: (11, earliest_pending_upload)}


async def _search(
    partition: Partition, version: int, timestamp: int, isolation_level: int
) -> TimestampAndOffset | ErrorCode:
    error = await partition.opened()
    if error is not ErrorCode.NONE:
        return error
    if timestamp == LATEST:
        end = await partition.confirmed_end()
        return TimestampAndOffset(partition.last_stable_offset if isolation_level == READ_COMMITTED else end, -1)
    if timestamp == EARLIEST:
        return TimestampAndOffset(await partition.confirmed_start(), -1)
    if timestamp == MAX_TIMESTAMP and version >= MAX_TIMESTAMP_SINCE:
        return _stable(await greatest_timestamp(partition), partition, isolation_level)
    if timestamp >= 0:
        return _stable(await by_time(partition, timestamp), partition, isolation_level)
    if timestamp in _TIERED:
        since, search = _TIERED[timestamp]
        if version >= since:
            return await search(partition)
    return ErrorCode.UNSUPPORTED_VERSION


def _stable(found: TimestampAndOffset, partition: Partition, isolation_level: int) -> TimestampAndOffset:
    """A read_committed consumer hears of no record that it would not get yet."""
    return found if isolation_level != READ_COMMITTED or found.offset < partition.last_stable_offset else NOT_FOUND


async def _partition(
    services: Services, call: Call, name: TopicName | ErrorCode, requested: ListOffsetsPartition, isolation_level: int
) -> ListOffsetsPartitionResponse:
    found: TimestampAndOffset | ErrorCode
    if isinstance(name, ErrorCode):
        found = name
    elif requested.current_leader_epoch > 0:
        found = ErrorCode.UNKNOWN_LEADER_EPOCH
    else:
        try:
            partition = services.partition(name, requested.partition_index)
            found = await in_time(
                call, _search(partition, call.version, requested.timestamp, isolation_level), LATE_TOPIC
            )
        except PulsarError as failure:
            found = error_code(failure)
        except EntryUnreadable:
            found = ErrorCode.CORRUPT_MESSAGE
    if found is ErrorCode.NOT_LEADER_OR_FOLLOWER:
        found = LATE_TOPIC  # librdkafka takes the other for final here, and Java asks again after both (see `late`)
    if isinstance(found, ErrorCode):
        return ListOffsetsPartitionResponse(partition_index=requested.partition_index, error_code=found)
    return ListOffsetsPartitionResponse(
        partition_index=requested.partition_index,
        timestamp=found.timestamp,
        offset=found.offset,
        leader_epoch=0 if found.offset >= 0 else -1,
    )


async def _topic(
    services: Services, call: Call, topic: ListOffsetsTopic, isolation_level: int
) -> ListOffsetsTopicResponse:
    name = resolve(services, topic.name, None)
    partitions = await asyncio.gather(
        *(_partition(services, call, name, partition, isolation_level) for partition in topic.partitions)
    )
    return ListOffsetsTopicResponse(name=topic.name, partitions=partitions)


async def _handle(services: Services, call: Call, request: ListOffsetsRequest) -> ListOffsetsResponse:
    topics = [_topic(services, call, topic, request.isolation_level) for topic in request.topics]
    return ListOffsetsResponse(topics=await asyncio.gather(*topics))


API: Final = Api(
    ListOffsetsRequest,
    ListOffsetsResponse,
    1,
    11,
    _handle,
    needs=on_topic(AclOperation.DESCRIBE),
    ends_with_client=True,
)
