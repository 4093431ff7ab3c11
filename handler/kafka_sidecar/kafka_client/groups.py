"""What groups have committed, with the metadata of each offset, and which of them are at work."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from kafka_sidecar.kafka_client.client import GROUP, KafkaClient, Refused, check
from kafka_sidecar.kafka_client.topics import Partition
from kafka_sidecar.wire.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from kafka_sidecar.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from kafka_sidecar.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from kafka_sidecar.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse

WITHOUT_MEMBERS: Final = frozenset(("Empty", "Dead"))
_SHARE: Final = "share"  # KIP-932: a share group's offsets are not those of a consumer group


@dataclass(frozen=True, slots=True)
class GroupState:
    name: str
    state: str

    @property
    def has_members(self) -> bool:
        return self.state not in WITHOUT_MEMBERS


class Committed(NamedTuple):
    offset: int
    metadata: str


async def list_groups(kafka: KafkaClient) -> dict[str, GroupState]:
    found = {}
    for node in await kafka.nodes():
        answer = await kafka.ask(node, ListGroupsRequest(), ListGroupsResponse)
        check(answer.error_code, "the list of groups")
        for one in answer.groups:
            if one.group_type.lower() != _SHARE:
                state = one.group_state or await _described(kafka, node, one.group_id)
                found[one.group_id] = GroupState(one.group_id, state)
    return found


async def _described(kafka: KafkaClient, node: int, group: str) -> str:
    """Kafka before 2.6 and Kafka-on-Pulsar list groups without their states."""
    answer = await kafka.ask(node, DescribeGroupsRequest(groups=[group]), DescribeGroupsResponse)
    (one,) = answer.groups
    check(one.error_code, f"the state of group {group}")
    return one.group_state


async def committed(kafka: KafkaClient, group: str) -> dict[Partition, Committed]:
    """Those of open transactions are waited for by the caller: UNSTABLE_OFFSET_COMMIT can be asked again."""
    node = await kafka.coordinator(group, GROUP)
    answer = await kafka.ask(
        node, OffsetFetchRequest(group_id=group, topics=None, require_stable=True), OffsetFetchResponse
    )
    check(answer.error_code, f"the offsets of group {group}")
    found = {}
    for topic in answer.topics:
        for one in topic.partitions:
            check(
                one.error_code, f"the offset of group {group} in partition {one.partition_index} of topic {topic.name}"
            )
            if one.committed_offset >= 0:
                found[topic.name, one.partition_index] = Committed(one.committed_offset, one.metadata or "")
    return found


async def commit(kafka: KafkaClient, group: str, offsets: Mapping[Partition, Committed]) -> dict[Partition, str]:
    """As an admin client does it, for a group without members. What was refused, and why."""
    node = await kafka.coordinator(group, GROUP)
    topics: dict[str, list[OffsetCommitRequestPartition]] = {}
    for (topic, index), one in offsets.items():
        # The leader epoch is left out: it would be an epoch of the source cluster.
        wanted = OffsetCommitRequestPartition(
            partition_index=index, committed_offset=one.offset, committed_metadata=one.metadata
        )
        topics.setdefault(topic, []).append(wanted)
    request = OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=-1,
        member_id="",
        topics=[OffsetCommitRequestTopic(name=topic, partitions=wanted) for topic, wanted in topics.items()],
    )
    answer = await kafka.ask(node, request, OffsetCommitResponse)
    refused = {}
    for found in answer.topics:
        for result in found.partitions:
            try:
                check(result.error_code, "refused")
            except Refused as error:
                if error.is_retriable:
                    raise
                refused[found.name, result.partition_index] = error.code.name
    return refused
