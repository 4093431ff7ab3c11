"""DescribeTopicPartitions (75), version 0 (KIP-966).

Topics in the order of their names, a page at a time; one ends before a topic that is described late.
Not implemented: eligible leader replicas (none).
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from kio.schema.errors import ErrorCode

from handler.apis.a03_metadata import OPERATIONS_NOT_GIVEN, describe_partitions
from handler.apis.api import Answer, Api, Call, Services
from handler.apis.topics import find, listed
from handler.partition.errors import error_code
from handler.pulsar.errors import PulsarError
from handler.topics.catalog import Topic
from handler.topics.names import InvalidTopicName

# max.request.partition.size.limit.
MAX_PAGE: Final = 2_000
# Of a topic that Pulsar does not describe in time: the page ends before it, and the client asks for the next (see `late`).
LATE: Final = ErrorCode.request_timed_out


async def _described(services: Services, call: Call, name: str) -> Topic | ErrorCode:
    try:
        return await find(services, call, services.catalog.names.parse(name), late=LATE)
    except InvalidTopicName:
        return ErrorCode.invalid_topic_exception


async def _wanted(services: Services, call: Call) -> list[tuple[str, Topic | ErrorCode]]:
    names = services.catalog.names
    if call.request.topics:
        asked = sorted({topic.name for topic in call.request.topics})
        found = await asyncio.gather(*(_described(services, call, name) for name in asked))
        return list(zip(asked, found, strict=True))
    try:
        everything = [(names.kafka(name), topic) for name, topic in await listed(services, call, LATE)]
    except PulsarError as error:
        return [("", error_code(error))]
    return sorted(everything, key=lambda item: item[0])


async def _handle(services: Services, call: Call) -> Answer:
    request = call.request
    left = min(max(request.response_partition_limit, 1), MAX_PAGE)
    after = (request.cursor.topic_name, request.cursor.partition_index) if request.cursor is not None else ("", 0)
    topics: list[dict[str, Any]] = []
    cursor = None
    for name, topic in await _wanted(services, call):
        if name < after[0]:
            continue
        begin = after[1] if name == after[0] else 0
        if left == 0 or topic is LATE:
            cursor = {"topic_name": name, "partition_index": begin}
            break
        partitions = [] if isinstance(topic, ErrorCode) else describe_partitions(services, topic)[begin : begin + left]
        left -= len(partitions)
        topics.append(_topic(name, topic, partitions))
        if isinstance(topic, Topic) and begin + len(partitions) < topic.partitions:
            cursor = {"topic_name": name, "partition_index": begin + len(partitions)}
            break
    return {"throttle_time": 0, "topics": topics, "next_cursor": cursor}


def _topic(name: str, topic: Topic | ErrorCode, partitions: list[dict[str, Any]]) -> dict[str, Any]:
    known = isinstance(topic, Topic)
    return {
        "error_code": ErrorCode.none if known else topic,
        "name": name,
        "topic_id": topic.topic_id if isinstance(topic, Topic) else None,
        "is_internal": isinstance(topic, Topic) and topic.name.internal,
        "partitions": [partition | {"eligible_leader_replicas": (), "last_known_elr": ()} for partition in partitions],
        "topic_authorized_operations": OPERATIONS_NOT_GIVEN,
    }


API: Final = Api(75, "DescribeTopicPartitions", 0, 0, _handle, ends_with_client=True)
