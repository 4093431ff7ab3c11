"""What the driver asks of topics, and makes."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kafka_sidecar.errors import ConfigError
from kafka_sidecar.kafka_client.client import KafkaClient, Refused, check
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
)
from kafka_sidecar.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kafka_sidecar.wire.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from kafka_sidecar.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from kafka_sidecar.wire.messages.metadata import MetadataResponse, MetadataResponseTopic

Partition = tuple[str, int]

LATEST: Final = -1
EARLIEST: Final = -2
READ_UNCOMMITTED: Final = 0
READ_COMMITTED: Final = 1
_TOPIC: Final = 2  # ConfigResource.Type
_SET_ON_THE_TOPIC: Final = 1  # DescribeConfigsResponse.ConfigSource.TOPIC_CONFIG
CREATE_SECONDS: Final = 60.0
# Errors of a topic that Metadata lists, but that was deleted meanwhile or that the principal may not describe.
_GONE: Final = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
# Topics that a pattern never selects: internal topics of clusters that do not flag them as internal, and topics in
# which mirrors store their offsets.
_OURS: Final = re.compile(r"__.*|(mirror|replay)-[A-Za-z0-9_.]+-offsets")


@dataclass(frozen=True, slots=True)
class TopicState:
    name: str
    partitions: int
    topic_id: str  # empty from a broker before Kafka 2.8, which has no topic ids
    is_internal: bool


class Topics(Mapping[str, TopicState]):
    """Of a topic that the cluster can't describe at the moment it is not said that it is not there: to ask for it is
    Refused.
    """

    def __init__(self, described: Mapping[str, TopicState], away: Mapping[str, ErrorCode] | None = None) -> None:
        self._described = described
        self.away = away or {}

    def __getitem__(self, name: str) -> TopicState:
        if name in self.away:
            raise Refused(self.away[name], f"topic {name}")
        return self._described[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._described)

    def __len__(self) -> int:
        return len(self._described)


@dataclass(frozen=True, slots=True)
class ClusterState:
    cluster_id: str
    topics: Topics


def _state(topic: MetadataResponseTopic) -> TopicState:
    return TopicState(
        topic.name or "", len(topic.partitions), topic.topic_id.hex if topic.topic_id else "", topic.is_internal
    )


def matching_topics(patterns: Iterable[str], exclude: Iterable[str], state: ClusterState) -> list[str]:
    """By name, or else regular expression for whole names. ConfigError for one that no topic has; internal ones are
    never meant.
    """
    found: set[str] = set()
    for pattern in patterns:
        of_pattern = _matching(pattern, state.topics)
        if not of_pattern:
            raise ConfigError(
                f"--topic {pattern}: no topic of the source has this name, or matches it as a regular expression"
            )
        found |= of_pattern
    for pattern in exclude:
        found -= _matching(pattern, state.topics)
    if not found:
        raise ConfigError("--exclude leaves no topic")
    return sorted(name for name in found if name in state.topics)


def described_topics(patterns: Iterable[str], exclude: Iterable[str], state: ClusterState) -> list[str]:
    """Those of them that are there and can be described now."""
    found = {name for pattern in patterns for name in _matching(pattern, state.topics)}
    left_out = {name for pattern in exclude for name in _matching(pattern, state.topics)}
    return sorted(found - left_out - state.topics.away.keys())


def _matching(pattern: str, topics: Topics) -> set[str]:
    """Also of those that can't be described now."""
    if pattern in topics.away or pattern in topics:
        if _is_hidden(pattern, topics):
            raise ConfigError(
                f"--topic {pattern}: an internal topic, or the record of a mirror or a replay, is not for this"
            )
        return {pattern}
    try:
        wanted = re.compile(pattern)
    except re.error as error:
        raise ConfigError(f"{pattern} is neither a topic's name nor a regular expression: {error}") from error
    return {name for name in (*topics, *topics.away) if not _is_hidden(name, topics) and wanted.fullmatch(name)}


def _is_hidden(name: str, topics: Topics) -> bool:
    return _OURS.fullmatch(name) is not None or (name not in topics.away and topics[name].is_internal)


async def cluster_state(kafka: KafkaClient) -> ClusterState:
    answer = await kafka.metadata(None)
    check(answer.error_code, "the cluster's metadata")
    described = {one.name or "": _state(one) for one in answer.topics if not one.error_code}
    away = {
        one.name or "": ErrorCode(one.error_code)
        for one in answer.topics
        if one.error_code and one.error_code not in _GONE
    }
    return ClusterState(answer.cluster_id or "", Topics(described, away))


async def dynamic_configs(kafka: KafkaClient, topics: Sequence[str]) -> dict[str, dict[str, str]]:
    """What was set on the topics themselves."""
    found = await _configs(kafka, topics)
    return {
        result.resource_name: {
            one.name: one.value
            for one in result.configs
            if one.config_source == _SET_ON_THE_TOPIC and one.value is not None
        }
        for result in found
    }


async def max_message_bytes(kafka: KafkaClient, topics: Sequence[str]) -> dict[str, int]:
    """How large a batch they take."""
    name = "max.message.bytes"
    found = await _configs(kafka, topics, [name])
    return {result.resource_name: int(one.value or 0) for result in found for one in result.configs if one.name == name}


async def _configs(
    kafka: KafkaClient, topics: Sequence[str], names: list[str] | None = None
) -> Sequence[DescribeConfigsResult]:
    resources = [
        DescribeConfigsResource(resource_type=_TOPIC, resource_name=topic, configuration_keys=names) for topic in topics
    ]
    answer = await kafka.ask_any(DescribeConfigsRequest(resources=resources), DescribeConfigsResponse)
    for result in answer.results:
        check(result.error_code, f"the configs of topic {result.resource_name}", result.error_message)
    return answer.results


async def create_topic(kafka: KafkaClient, topic: str, partitions: int, configs: Mapping[str, str]) -> None:
    """Until all its partitions have leaders. One that is there already is taken as it is."""
    wanted = CreatableTopic(
        name=topic,
        num_partitions=partitions,
        replication_factor=-1,
        configs=[CreatableTopicConfig(name=name, value=value) for name, value in configs.items()],
    )
    answer = await kafka.ask_controller(CreateTopicsRequest(topics=[wanted]), CreateTopicsResponse)
    (result,) = answer.topics
    if result.error_code is not ErrorCode.TOPIC_ALREADY_EXISTS:
        hint = f"topic {topic} can't be made in the target (--skip-config KEY leaves a config out)"
        check(result.error_code, hint, result.error_message)
    await _led(kafka, topic, partitions)


async def create_partitions(kafka: KafkaClient, topic: str, count: int) -> None:
    request = CreatePartitionsRequest(
        topics=[CreatePartitionsTopic(name=topic, count=count, assignments=None)], timeout_ms=30_000
    )
    answer = await kafka.ask_controller(request, CreatePartitionsResponse)
    (result,) = answer.results
    check(result.error_code, f"partitions of topic {topic} can't be added in the target", result.error_message)
    await _led(kafka, topic, count)


async def _led(kafka: KafkaClient, topic: str, partitions: int) -> None:
    async with asyncio.timeout(CREATE_SECONDS):
        while True:
            (found,) = (await kafka.metadata([topic])).topics
            if sum(one.leader_id >= 0 for one in found.partitions) >= partitions:
                return
            await asyncio.sleep(0.1)


async def offsets(
    kafka: KafkaClient, partitions: Iterable[Partition], timestamp: int, isolation_level: int = READ_UNCOMMITTED
) -> dict[Partition, int]:
    """Each partition's offset: its first, its end, or that of a time. Refused where one has none."""
    found, failures = await offsets_and_failures(kafka, partitions, timestamp, isolation_level)
    for failure in failures.values():
        raise failure
    return found


async def offsets_and_failures(
    kafka: KafkaClient, partitions: Iterable[Partition], timestamp: int, isolation_level: int = READ_UNCOMMITTED
) -> tuple[dict[Partition, int], dict[Partition, Refused]]:
    """The same, of those that can tell; and why the others can't."""
    wanted = set(partitions)
    found: dict[Partition, int] = {}
    if not wanted:
        return found, {}
    metadata = await kafka.metadata(sorted({topic for topic, _ in wanted}))
    by_leader, failures = _by_leader(metadata, wanted)
    for leader, led in by_leader.items():
        await kafka.know(leader)
        topics = [
            ListOffsetsTopic(
                name=topic,
                partitions=[ListOffsetsPartition(partition_index=one, timestamp=timestamp) for one in indexes],
            )
            for topic, indexes in led.items()
        ]
        request = ListOffsetsRequest(replica_id=-1, isolation_level=isolation_level, topics=topics)
        for topic in (await kafka.ask(leader, request, ListOffsetsResponse)).topics:
            for one in topic.partitions:
                at = (topic.name, one.partition_index)
                if one.error_code is ErrorCode.NONE:
                    found[at] = one.offset
                else:
                    failures[at] = Refused(one.error_code, f"offsets of partition {at[1]} of topic {at[0]}")
    return found, failures


def _by_leader(
    metadata: MetadataResponse, wanted: set[Partition]
) -> tuple[dict[int, dict[str, list[int]]], dict[Partition, Refused]]:
    found: dict[int, dict[str, list[int]]] = {}
    failures = {
        at: Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"partition {at[1]} of topic {at[0]}") for at in wanted
    }
    for topic in metadata.topics:
        for one in topic.partitions:
            at = (topic.name or "", one.partition_index)
            if at in wanted and one.leader_id < 0:
                failures[at] = Refused(ErrorCode.LEADER_NOT_AVAILABLE, f"partition {at[1]} of topic {at[0]}")
            elif at in wanted:
                found.setdefault(one.leader_id, {}).setdefault(at[0], []).append(at[1])
                del failures[at]
    return found, failures
