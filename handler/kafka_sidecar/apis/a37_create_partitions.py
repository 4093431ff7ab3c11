"""CreatePartitions (37), versions 0 to 3.

v2  flexible (KIP-482)
v3  quotas (KIP-599), none here

Partitions are only ever added, and to internal topics none. A manual assignment may name any live node.
"""

from __future__ import annotations

import asyncio
from typing import Final

from kafka_sidecar.apis.a19_create_topics import MAX_PARTITIONS
from kafka_sidecar.apis.api import Api, Call, Services
from kafka_sidecar.apis.common.nodes import NotAssignable, check_assignments
from kafka_sidecar.apis.needs import AclOperation, on_topic
from kafka_sidecar.partition.log.errors import error_code
from kafka_sidecar.pulsar.errors import PulsarError
from kafka_sidecar.topics.catalog import NotPartitioned
from kafka_sidecar.topics.names import InvalidTopicName
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)


async def _grow(services: Services, topic: CreatePartitionsTopic, validate_only: bool) -> tuple[ErrorCode, str | None]:
    try:
        name = services.catalog.names.parse(topic.name)
        if name.internal:  # its count says which partition a group belongs to
            return ErrorCode.INVALID_TOPIC_EXCEPTION, f"{topic.name} is internal: it keeps its partitions"
        found = await services.catalog.find(name, fresh=True)
        there = found.partitions
        if topic.count <= there:
            return ErrorCode.INVALID_PARTITIONS, f"the topic has {there} partitions already, asked for {topic.count}"
        if topic.count > MAX_PARTITIONS:
            return ErrorCode.INVALID_PARTITIONS, f"a topic has at most {MAX_PARTITIONS} partitions"
        services.catalog.check_partitioned(found)
        if topic.assignments:
            if len(topic.assignments) != topic.count - there:
                wanted = (
                    f"attempted to add {topic.count - there} partitions, but {len(topic.assignments)} assignments "
                    "were specified"
                )
                return ErrorCode.INVALID_REPLICA_ASSIGNMENT, wanted
            check_assignments(services, [one.broker_ids for one in topic.assignments])
        if not validate_only:
            await services.catalog.grow(name, topic.count)
    except NotPartitioned as error:
        return ErrorCode.INVALID_PARTITIONS, str(error)
    except NotAssignable as error:
        return ErrorCode.INVALID_REPLICA_ASSIGNMENT, str(error)
    except InvalidTopicName as error:
        return ErrorCode.INVALID_TOPIC_EXCEPTION, str(error)
    except PulsarError as error:
        return error_code(error), str(error)
    return ErrorCode.NONE, None


async def _handle(services: Services, call: Call, request: CreatePartitionsRequest) -> CreatePartitionsResponse:
    results = await asyncio.gather(*(_grow(services, topic, request.validate_only) for topic in request.topics))
    return CreatePartitionsResponse(
        results=[
            CreatePartitionsTopicResult(name=topic.name, error_code=error, error_message=message)
            for topic, (error, message) in zip(request.topics, results, strict=True)
        ]
    )


API: Final = Api(CreatePartitionsRequest, CreatePartitionsResponse, 0, 3, _handle, needs=on_topic(AclOperation.ALTER))
