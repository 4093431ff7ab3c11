"""What clients of groups ask about offsets, one partition at a time."""

from __future__ import annotations

from typing import Final

from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from kafka_sidecar.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestTopic, OffsetFetchResponse
from tests.simulation.fleets.kafka_client import KafkaClient
from tests.simulation.fleets.network import Address

COMMIT_VERSION: Final = 8
FETCH_VERSION: Final = 7


async def commit(
    client: KafkaClient,
    at: Address,
    group: str,
    topic: str,
    partition: int,
    offset: int,
    member_id: str = "",
    generation: int = -1,
) -> ErrorCode:
    """Raises Lost."""
    partitions = [OffsetCommitRequestPartition(partition_index=partition, committed_offset=offset)]
    request = OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=generation,
        member_id=member_id,
        topics=[OffsetCommitRequestTopic(name=topic, partitions=partitions)],
    )
    answer = await client.ask(at, request, OffsetCommitResponse, COMMIT_VERSION)
    return ErrorCode(answer.topics[0].partitions[0].error_code)


async def committed(client: KafkaClient, at: Address, group: str, topic: str, partition: int) -> tuple[ErrorCode, int]:
    """Raises Lost."""
    request = OffsetFetchRequest(
        group_id=group, topics=[OffsetFetchRequestTopic(name=topic, partition_indexes=[partition])]
    )
    answer = await client.ask(at, request, OffsetFetchResponse, FETCH_VERSION)
    if answer.error_code is not ErrorCode.NONE or not answer.topics:
        return ErrorCode(answer.error_code), -1
    told = answer.topics[0].partitions[0]
    return ErrorCode(told.error_code), told.committed_offset
