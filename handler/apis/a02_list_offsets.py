"""ListOffsets (2), versions 1 to 11.

  −1 latest          confirmed against the broker's last entry, never older than what it acknowledged
  −2 earliest        the first entry Pulsar still has; an emptied log answers its end
  −3 max timestamp   (v7, KIP-734) the record with the greatest timestamp
  ≥ 0                the first record with that timestamp or a later one; none: −1/−1

Not implemented: −4, −5 and −6 (tiered storage), refused with UNSUPPORTED_VERSION.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from kio.schema.errors import ErrorCode

from handler.apis.api import Answer, Api, Call, Services
from handler.apis.late import LATE_TOPIC, in_time
from handler.apis.topics import resolve
from handler.errors import EntryUnreadable
from handler.partition.errors import error_code
from handler.partition.found import Found
from handler.partition.offsets import by_time, greatest_timestamp
from handler.partition.partition import Partition
from handler.pulsar.errors import PulsarError
from handler.topics.names import TopicName

LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3
MAX_TIMESTAMP_SINCE: Final = 7


async def _search(partition: Partition, version: int, timestamp: int) -> Found | ErrorCode:
    error = await partition.opened()
    if error is not ErrorCode.none:
        return error
    if timestamp == LATEST:
        return Found(await partition.confirmed_end(), -1)
    if timestamp == EARLIEST:
        return Found(await partition.confirmed_start(), -1)
    if timestamp == MAX_TIMESTAMP and version >= MAX_TIMESTAMP_SINCE:
        return await greatest_timestamp(partition)
    if timestamp >= 0:
        return await by_time(partition, timestamp)
    return ErrorCode.unsupported_version


async def _answer_one(services: Services, call: Call, name: TopicName | ErrorCode, requested: Any) -> dict[str, Any]:
    found: Found | ErrorCode
    if isinstance(name, ErrorCode):
        found = name
    elif getattr(requested, "current_leader_epoch", -1) > 0:
        found = ErrorCode.unknown_leader_epoch
    else:
        try:
            partition = services.partition(name, requested.partition_index)
            found = await in_time(call, _search(partition, call.version, requested.timestamp), LATE_TOPIC)
        except PulsarError as error_:
            found = error_code(error_)
        except EntryUnreadable:
            found = ErrorCode.corrupt_message
    if isinstance(found, ErrorCode):
        return {"partition_index": requested.partition_index, "error_code": found, "timestamp": -1, "offset": -1, "leader_epoch": -1}
    return {
        "partition_index": requested.partition_index,
        "error_code": ErrorCode.none,
        "timestamp": found.timestamp,
        "offset": found.offset,
        "leader_epoch": 0 if found.offset >= 0 else -1,
    }


async def _topic(services: Services, call: Call, topic: Any) -> dict[str, Any]:
    name = resolve(services, topic)
    partitions = await asyncio.gather(*(_answer_one(services, call, name, partition) for partition in topic.partitions))
    return {"name": topic.name, "partitions": partitions}


async def _handle(services: Services, call: Call) -> Answer:
    return {"throttle_time": 0, "topics": await asyncio.gather(*(_topic(services, call, topic) for topic in call.request.topics))}


API: Final = Api(2, "ListOffsets", 1, 11, _handle, ends_with_client=True)
