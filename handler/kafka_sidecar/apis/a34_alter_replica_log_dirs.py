"""AlterReplicaLogDirs (34), versions 1 to 2. There is one place for everything, Pulsar: what is moved there is there
already.

v1  the same as v0
v2  flexible (KIP-482)
"""

from __future__ import annotations

from typing import Final

from kafka_sidecar.apis.a35_describe_log_dirs import LOG_DIR
from kafka_sidecar.apis.api import Api, Call, Services
from kafka_sidecar.apis.common.topics import existing
from kafka_sidecar.apis.needs import AclOperation, on_cluster
from kafka_sidecar.topics.catalog import Topic
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)


def _outcome(path: str, found: Topic | ErrorCode, index: int) -> ErrorCode:
    if path != LOG_DIR:
        return ErrorCode.LOG_DIR_NOT_FOUND
    if isinstance(found, ErrorCode):
        return found
    return ErrorCode.NONE if 0 <= index < found.partitions else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def _handle(services: Services, call: Call, request: AlterReplicaLogDirsRequest) -> AlterReplicaLogDirsResponse:
    results = []
    for directory in request.dirs:
        for topic in directory.topics:
            found = await existing(services, call, topic.name)
            partitions = [
                AlterReplicaLogDirPartitionResult(
                    partition_index=index, error_code=_outcome(directory.path, found, index)
                )
                for index in topic.partitions
            ]
            results.append(AlterReplicaLogDirTopicResult(topic_name=topic.name, partitions=partitions))
    return AlterReplicaLogDirsResponse(results=results)


API: Final = Api(
    AlterReplicaLogDirsRequest, AlterReplicaLogDirsResponse, 1, 2, _handle, needs=on_cluster(AclOperation.ALTER)
)
