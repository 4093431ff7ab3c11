"""CreateTopics (19), versions 2 to 7.

A topic is a partitioned Pulsar topic. Replication is Pulsar's own: any factor from 1 on, or −1, is
accepted and 1 is answered. v4 default partitions with −1 · v5 configs in the answer · v7 topic ids
Not implemented: topic configs and manual assignments, refused with INVALID_CONFIG and
INVALID_REPLICA_ASSIGNMENT rather than ignored.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any, Final

from kio.schema.errors import ErrorCode

from handler.apis.api import Answer, Api, Call, Services
from handler.partition.errors import error_code
from handler.pulsar.admin import AlreadyExists
from handler.pulsar.errors import PulsarError, TopicMissing
from handler.topics.names import InvalidTopicName, TopicName

DEFAULT: Final = -1
MAX_PARTITIONS: Final = 10_000


class _Refused(Exception):
    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code


def _checked(services: Services, topic: Any) -> tuple[TopicName, int]:
    """Name and partition count as asked for, or why not."""
    try:
        name = services.catalog.names.parse(topic.name)
    except InvalidTopicName as error:
        raise _Refused(ErrorCode.invalid_topic_exception, str(error)) from error
    if name.hidden:
        raise _Refused(ErrorCode.invalid_topic_exception, f"{topic.name} is a system topic of Pulsar")
    if topic.assignments:
        raise _Refused(ErrorCode.invalid_replica_assignment, "replicas can't be assigned: Pulsar places them")
    if topic.configs:
        named = ", ".join(sorted(config.name for config in topic.configs))
        raise _Refused(ErrorCode.invalid_config, f"topic configs are not supported yet: {named}")
    if topic.replication_factor == 0 or topic.replication_factor < DEFAULT:
        raise _Refused(ErrorCode.invalid_replication_factor, "the replication factor must be 1 or more, or -1")
    count = services.config.default_partitions if topic.num_partitions == DEFAULT else topic.num_partitions
    if not 0 < count <= MAX_PARTITIONS:
        raise _Refused(ErrorCode.invalid_partitions, f"the number of partitions must be 1 to {MAX_PARTITIONS}, or -1")
    return name, count


async def _exists(services: Services, name: TopicName) -> bool:
    try:
        await services.catalog.find(name, fresh=True)
    except TopicMissing:
        return False
    return True


async def _create(services: Services, call: Call, topic: Any, twice: bool) -> dict[str, Any]:
    try:
        if twice:
            raise _Refused(ErrorCode.invalid_request, "the request names this topic twice")
        name, count = _checked(services, topic)
        if call.request.validate_only or name.internal:
            if await _exists(services, name):
                raise _Refused(ErrorCode.topic_already_exists, f"topic {topic.name} exists")
            if name.internal:
                raise _Refused(ErrorCode.invalid_topic_exception, f"{topic.name} is made by the sidecar when groups are used")
            topic_id = None
        else:
            topic_id = (await services.catalog.create(name, count)).topic_id
            services.partitions.forget_topic(name.pulsar)  # of one that had this name before
    except _Refused as refused:
        return _answer(topic.name, refused.code, str(refused))
    except AlreadyExists:
        return _answer(topic.name, ErrorCode.topic_already_exists, f"topic {topic.name} exists")
    except PulsarError as error:
        return _answer(topic.name, error_code(error), str(error))
    return _answer(topic.name, ErrorCode.none, None) | {
        "topic_id": topic_id, "num_partitions": count, "replication_factor": 1, "configs": (),
    }  # fmt: skip


def _answer(name: str, code: ErrorCode, message: str | None) -> dict[str, Any]:
    return {
        "name": name, "topic_id": None, "error_code": code, "error_message": message, "topic_config_error_code": 0,
        "num_partitions": -1, "replication_factor": -1, "configs": (),
    }  # fmt: skip


async def _handle(services: Services, call: Call) -> Answer:
    named = Counter(topic.name for topic in call.request.topics)
    results = await asyncio.gather(*(_create(services, call, topic, named[topic.name] > 1) for topic in call.request.topics))
    return {"throttle_time": 0, "topics": results}


API: Final = Api(19, "CreateTopics", 2, 7, _handle)
