"""DescribeLogDirs (35), versions 1 to 4: one directory, and in it the sizes that Pulsar has for the topics.

v1  the same as v0
v2  flexible (KIP-482)
v3  an error of the whole request (KIP-784)
v4  sizes of the volume (KIP-827), which are not known
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final

from kafka_sidecar.apis.api import Api, Call, Services
from kafka_sidecar.apis.needs import AclOperation, on_cluster
from kafka_sidecar.partition.log.errors import error_code
from kafka_sidecar.pulsar.errors import PulsarError, TopicMissing
from kafka_sidecar.topics.names import InvalidTopicName, TopicName
from kafka_sidecar.wire.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)

LOG_DIR: Final = "/pulsar"
UNKNOWN_VOLUME_BYTES: Final = -1
# A quarter of the admin client's connections: partitions that are opened do not wait behind a tool.
AT_ONCE: Final = 4


async def _wanted(services: Services, request: DescribeLogDirsRequest) -> list[tuple[str, TopicName, set[int] | None]]:
    """The topics asked for, each in the client's word; with all their partitions, or with some."""
    names = services.catalog.names
    if request.topics is None:
        return [(names.kafka(name), name, None) for name in await services.catalog.list_names()]
    wanted: dict[str, set[int]] = {}
    for topic in request.topics:
        wanted.setdefault(topic.topic, set()).update(topic.partitions)
    found: list[tuple[str, TopicName, set[int] | None]] = []
    for told, partitions in wanted.items():
        with contextlib.suppress(InvalidTopicName):  # what is not there is in no directory, as with Kafka
            found.append((told, names.parse(told), partitions))
    return found


async def _sizes(
    services: Services, told: str, name: TopicName, wanted: set[int] | None
) -> DescribeLogDirsTopic | None:
    try:
        topic = await services.catalog.find(name)
        sizes = await services.catalog.sizes(name)
    except TopicMissing:
        return None
    # Tools ask all nodes, and add up what they say.
    own, replicas = services.fleet.own.node_id, services.fleet.view.leadership.replicas(name.pulsar, topic.partitions)
    partitions = [
        DescribeLogDirsPartition(partition_index=index, partition_size=size)
        for index, size in sorted(sizes.items())
        if (wanted is None or index in wanted) and (index >= len(replicas) or own in replicas[index])
    ]
    return DescribeLogDirsTopic(name=told, partitions=partitions) if partitions else None


async def _handle(services: Services, call: Call, request: DescribeLogDirsRequest) -> DescribeLogDirsResponse:
    result = DescribeLogDirsResult(log_dir=LOG_DIR, total_bytes=UNKNOWN_VOLUME_BYTES, usable_bytes=UNKNOWN_VOLUME_BYTES)
    topics: list[DescribeLogDirsTopic | None] = []
    try:
        wanted = await _wanted(services, request)
        for begin in range(0, len(wanted), AT_ONCE):
            topics += await asyncio.gather(*(_sizes(services, *one) for one in wanted[begin : begin + AT_ONCE]))
    except PulsarError as error:
        result.error_code = error_code(error)
    else:
        result.topics = [topic for topic in topics if topic is not None]
    return DescribeLogDirsResponse(results=[result])


API: Final = Api(
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    1,
    4,
    _handle,
    needs=on_cluster(AclOperation.DESCRIBE),
    ends_with_client=True,
)
