"""CreatePartitions (37), versions 0 to 3.

Partitions are only ever added, and to internal topics none. Not implemented: manual assignments (INVALID_REPLICA_ASSIGNMENT).
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from kio.schema.errors import ErrorCode

from handler.apis.a19_create_topics import MAX_PARTITIONS
from handler.apis.api import Answer, Api, Call, Services
from handler.partition.errors import error_code
from handler.pulsar.errors import PulsarError
from handler.topics.names import InvalidTopicName


async def _grow(services: Services, asked: Any, validate_only: bool) -> tuple[ErrorCode, str | None]:
    try:
        name = services.catalog.names.parse(asked.name)
        if name.internal:  # its count says which partition a group belongs to
            return ErrorCode.invalid_topic_exception, f"{asked.name} is internal: it keeps its partitions"
        topic = await services.catalog.find(name, fresh=True)
        if asked.assignments:
            return ErrorCode.invalid_replica_assignment, "replicas can't be assigned: Pulsar places them"
        if asked.count <= topic.partitions:
            return ErrorCode.invalid_partitions, f"the topic has {topic.partitions} partitions already, asked for {asked.count}"
        if asked.count > MAX_PARTITIONS:
            return ErrorCode.invalid_partitions, f"a topic has at most {MAX_PARTITIONS} partitions"
        if not validate_only:
            await services.catalog.grow(name, asked.count)
    except InvalidTopicName as error:
        return ErrorCode.invalid_topic_exception, str(error)
    except PulsarError as error:
        return error_code(error), str(error)
    return ErrorCode.none, None


async def _handle(services: Services, call: Call) -> Answer:
    asked = call.request.topics
    results = await asyncio.gather(*(_grow(services, topic, call.request.validate_only) for topic in asked))
    return {
        "throttle_time": 0,
        "results": [
            {"name": topic.name, "error_code": code, "error_message": message}
            for topic, (code, message) in zip(asked, results, strict=True)
        ],
    }


API: Final = Api(37, "CreatePartitions", 0, 3, _handle)
