"""AlterReplicaLogDirs (34), versions 1 to 2. There is one place for everything, Pulsar: what is moved there is there already.

v1  the same as v0
v2  flexible (KIP-482)
"""

from __future__ import annotations

from typing import Final

from handler.apis.a35_describe_log_dirs import LOG_DIR
from handler.apis.api import Api, Call, Services
from handler.wire.error_code import ErrorCode
from handler.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)


async def _handle(services: Services, call: Call, request: AlterReplicaLogDirsRequest) -> AlterReplicaLogDirsResponse:
    results = []
    for directory in request.dirs:
        code = ErrorCode.NONE if directory.path == LOG_DIR else ErrorCode.LOG_DIR_NOT_FOUND
        for topic in directory.topics:
            partitions = [AlterReplicaLogDirPartitionResult(partition_index=index, error_code=code) for index in topic.partitions]
            results.append(AlterReplicaLogDirTopicResult(topic_name=topic.name, partitions=partitions))
    return AlterReplicaLogDirsResponse(results=results)


API: Final = Api("AlterReplicaLogDirs", AlterReplicaLogDirsRequest, AlterReplicaLogDirsResponse, 1, 2, _handle)
