"""OffsetForLeaderEpoch (23), versions 2 to 4.

The log is one leadership, epoch 0, and is never truncated: its end is the end of epoch 0. An epoch
from the future is unknown (KIP-320).
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from kio.schema.errors import ErrorCode

from handler.apis.api import Answer, Api, Call, Services
from handler.apis.late import LATE_TOPIC, in_time
from handler.apis.topics import resolve
from handler.partition.errors import error_code
from handler.partition.partition import Partition
from handler.pulsar.errors import PulsarError
from handler.topics.names import TopicName

EPOCH: Final = 0


async def _end(partition: Partition) -> int | ErrorCode:
    error = await partition.opened()
    return await partition.confirmed_end() if error is ErrorCode.none else error


async def _one(services: Services, call: Call, name: TopicName | ErrorCode, asked: Any) -> dict[str, Any]:
    answer: dict[str, Any] = {"partition": asked.partition, "leader_epoch": -1, "end_offset": -1}
    if isinstance(name, ErrorCode):
        return answer | {"error_code": name}
    if asked.current_leader_epoch > EPOCH:
        return answer | {"error_code": ErrorCode.unknown_leader_epoch}
    try:
        partition = services.partition(name, asked.partition)
        end = await in_time(call, _end(partition), LATE_TOPIC)
    except PulsarError as failure:
        return answer | {"error_code": error_code(failure)}
    if isinstance(end, ErrorCode):
        return answer | {"error_code": end}
    if asked.leader_epoch != EPOCH:
        return answer | {"error_code": ErrorCode.none}
    return answer | {"error_code": ErrorCode.none, "leader_epoch": EPOCH, "end_offset": end}


async def _topic(services: Services, call: Call, topic: Any) -> dict[str, Any]:
    name = resolve(services, topic)
    partitions = await asyncio.gather(*(_one(services, call, name, asked) for asked in topic.partitions))
    return {"topic": topic.topic, "partitions": partitions}


async def _handle(services: Services, call: Call) -> Answer:
    return {"throttle_time": 0, "topics": await asyncio.gather(*(_topic(services, call, topic) for topic in call.request.topics))}


API: Final = Api(23, "OffsetForLeaderEpoch", 2, 4, _handle, ends_with_client=True)
