"""What admin tools ask of a cluster whose replicas are Pulsar's: elections, reassignments, directories, manual
assignments.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from kafka_sidecar.apis.a35_describe_log_dirs import LOG_DIR
from kafka_sidecar.fleet.fleet import View
from kafka_sidecar.fleet.leadership import Leadership
from kafka_sidecar.fleet.member import Member
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kafka_sidecar.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from kafka_sidecar.wire.messages.api_versions import ApiVersionsRequest
from kafka_sidecar.wire.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from kafka_sidecar.wire.messages.create_topics import CreatableReplicaAssignment, CreatableTopic, CreateTopicsRequest
from kafka_sidecar.wire.messages.describe_cluster import DescribeClusterRequest
from kafka_sidecar.wire.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest
from kafka_sidecar.wire.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from kafka_sidecar.wire.messages.list_config_resources import ListConfigResourcesRequest
from kafka_sidecar.wire.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from kafka_sidecar.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.support.services import NAMESPACE, Sidecar

NONE, MISSING, REFUSED = ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_REPLICA_ASSIGNMENT


@pytest_asyncio.fixture
async def sidecar() -> AsyncIterator[Sidecar]:
    one = Sidecar()
    one.admin.make("t", 2)
    one.admin.stored[NAMESPACE + "t"] = {0: 100, 1: 20}
    yield one
    await one.close()


async def test_every_partition_has_its_leader(sidecar: Sidecar) -> None:
    wanted = [TopicPartitions(topic="t", partitions=[0, 1, 2]), TopicPartitions(topic="missing", partitions=[0])]
    answer = await sidecar.ask(ElectLeadersRequest(election_type=0, topic_partitions=wanted, timeout_ms=1000), 2)
    told = {
        (one.topic, part.partition_id): part.error_code
        for one in answer.replica_election_results
        for part in one.partition_result
    }
    needless = ErrorCode.ELECTION_NOT_NEEDED
    assert told == {("t", 0): needless, ("t", 1): needless, ("t", 2): MISSING, ("missing", 0): MISSING}
    assert not (
        await sidecar.ask(ElectLeadersRequest(topic_partitions=None, timeout_ms=1000), 2)
    ).replica_election_results


@pytest.mark.parametrize(
    ("replicas", "code"),
    [
        ([0], NONE),
        (None, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS),
        ([], REFUSED),
        ([0, 0], REFUSED),
        ([7], REFUSED),
        ([0, 7], REFUSED),
    ],
)
async def test_a_reassignment_may_name_live_nodes(
    sidecar: Sidecar, replicas: list[int] | None, code: ErrorCode
) -> None:
    wanted = [ReassignableTopic(name="t", partitions=[ReassignablePartition(partition_index=1, replicas=replicas)])]
    answer = await sidecar.ask(AlterPartitionReassignmentsRequest(topics=wanted, timeout_ms=1000), 1)
    assert answer.responses[0].partitions[0].error_code is code
    assert not (await sidecar.ask(ListPartitionReassignmentsRequest(topics=None, timeout_ms=1000), 0)).topics


async def test_sizes_are_those_that_pulsar_has(sidecar: Sidecar) -> None:
    async def sizes(topics: list[DescribableLogDirTopic] | None) -> dict[tuple[str, int], int]:
        (result,) = (await sidecar.ask(DescribeLogDirsRequest(topics=topics), 4)).results
        assert (result.error_code, result.log_dir) == (NONE, LOG_DIR)
        return {
            (topic.name, part.partition_index): part.partition_size
            for topic in result.topics
            for part in topic.partitions
        }

    assert await sizes(None) == {("t", 0): 100, ("t", 1): 20}
    assert await sizes([DescribableLogDirTopic(topic="t", partitions=[1, 5])]) == {("t", 1): 20}
    assert await sizes([DescribableLogDirTopic(topic=name, partitions=[0]) for name in ("missing", "a b")]) == {}
    sidecar.admin.away = True
    (result,) = (await sidecar.ask(DescribeLogDirsRequest(topics=None), 4)).results
    assert result.error_code is not NONE


async def test_each_partition_is_in_the_directory_of_one_node() -> None:
    """Tools ask all nodes, and add up."""
    here = Sidecar(others=[Member(2, "other", 9093)])
    here.admin.make("t", 8)
    here.admin.stored[NAMESPACE + "t"] = dict.fromkeys(range(8), 100)
    metadata = await here.ask(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 12)
    led_here = {one.partition_index for one in metadata.topics[0].partitions if one.leader_id == 0}
    (result,) = (await here.ask(DescribeLogDirsRequest(topics=None), 4)).results
    assert {part.partition_index for part in result.topics[0].partitions} == led_here
    await here.close()


@pytest.mark.parametrize(("path", "code"), [(LOG_DIR, NONE), ("/elsewhere", ErrorCode.LOG_DIR_NOT_FOUND)])
async def test_there_is_one_directory(sidecar: Sidecar, path: str, code: ErrorCode) -> None:
    topics = [
        AlterReplicaLogDirTopic(name="t", partitions=[0, 9]),
        AlterReplicaLogDirTopic(name="missing", partitions=[0]),
    ]
    answer = await sidecar.ask(AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=path, topics=topics)]), 2)
    told = [part.error_code for topic in answer.results for part in topic.partitions]
    assert told == ([NONE, MISSING, MISSING] if code is NONE else [code] * 3)


async def test_what_has_configs_is_listed_by_type(sidecar: Sidecar) -> None:
    sidecar.fleet.change(Member(2, "other", 9093))

    async def listed(types: list[int], version: int = 1) -> Any:
        answer = await sidecar.ask(ListConfigResourcesRequest(resource_types=types), version)
        return answer.error_code, [(one.resource_type, one.resource_name) for one in answer.config_resources]

    assert await listed([]) == (NONE, [(4, "0"), (4, "2"), (2, "t")])
    assert await listed([2]) == (NONE, [(2, "t")])
    assert await listed([16]) == await listed([], 0) == (NONE, [])
    assert await listed([3]) == (ErrorCode.UNSUPPORTED_VERSION, [])


@pytest.mark.parametrize(
    ("assignments", "counts", "code"),
    [
        ([(0, [0]), (1, [0])], (-1, -1), NONE),
        ([(0, [0]), (2, [0])], (-1, -1), REFUSED),
        ([(0, [7])], (-1, -1), REFUSED),
        ([(0, [0])], (1, -1), ErrorCode.INVALID_REQUEST),
    ],
)
async def test_a_topic_is_made_by_a_manual_assignment(
    sidecar: Sidecar, assignments: list[tuple[int, list[int]]], counts: tuple[int, int], code: ErrorCode
) -> None:
    wanted = CreatableTopic(
        name="new",
        num_partitions=counts[0],
        replication_factor=counts[1],
        assignments=[
            CreatableReplicaAssignment(partition_index=index, broker_ids=brokers) for index, brokers in assignments
        ],
    )
    (told,) = (await sidecar.ask(CreateTopicsRequest(topics=[wanted], timeout_ms=1_000), 7)).topics
    assert told.error_code is code
    assert (NAMESPACE + "new" in sidecar.admin.there) == (code is NONE)
    if code is NONE:
        assert told.num_partitions == len(assignments)


@pytest.mark.parametrize(("brokers", "code"), [([[0], [0]], NONE), ([[0]], REFUSED), ([[0], [7]], REFUSED)])
async def test_partitions_are_added_by_a_manual_assignment(
    sidecar: Sidecar, brokers: list[list[int]], code: ErrorCode
) -> None:
    assignments = [CreatePartitionsAssignment(broker_ids=one) for one in brokers]
    wanted = CreatePartitionsTopic(name="t", count=4, assignments=assignments)
    (told,) = (await sidecar.ask(CreatePartitionsRequest(topics=[wanted], timeout_ms=1_000), 3)).results
    assert told.error_code is code
    assert sidecar.admin.there[NAMESPACE + "t"][0] == (4 if code is NONE else 2)


@pytest.mark.parametrize(
    ("software", "told"),
    [
        ("librdkafka", [0, 2]),
        ("confluent-kafka-python", [0, 2]),
        ("node-rdkafka", [0, 2]),
        ("apache-kafka-java", [0]),
        ("", [0]),
    ],
)
async def test_who_drops_nodes_that_are_not_named_is_told_of_those_of_a_moment_ago(
    sidecar: Sidecar, software: str, told: list[int]
) -> None:
    """Java's admin client asks every node, and fails if one does not answer."""
    sidecar.fleet.was_there(Member(2, "other", 9093), 1.0)
    await sidecar.ask(ApiVersionsRequest(client_software_name=software or "other", client_software_version="1"), 3)
    metadata = await sidecar.ask(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 12)
    assert [broker.node_id for broker in metadata.brokers] == told
    assert {one.leader_id for one in metadata.topics[0].partitions} == {0}
    assert (sidecar.client.last_metadata is sidecar.fleet.view) == (2 in told)
    cluster = await sidecar.ask(DescribeClusterRequest(), 1)
    assert [broker.broker_id for broker in cluster.brokers] == [0], "who asks for the cluster is told who is there"


async def test_a_leader_that_leaves_while_pulsar_is_asked_is_among_the_nodes(
    sidecar: Sidecar, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that is told of a leader, and of no such node, takes the partition for one without a leader."""
    await sidecar.ask(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 12)  # which looks the topic up
    other = Member(2, "other", 9093)
    monkeypatch.setattr(sidecar.fleet, "view", View((sidecar.fleet.own, other), (), Leadership([other])))
    asked, answer = asyncio.Event(), asyncio.Event()

    async def cluster_id() -> str:
        asked.set()
        await answer.wait()
        return "a-cluster"

    monkeypatch.setattr(sidecar.services.catalog, "cluster_id", cluster_id)
    asking = sidecar.begin(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 12)
    await asked.wait()
    for _ in range(20):  # turns, in which the leaders are looked at
        await asyncio.sleep(0)
    sidecar.fleet.view = View((sidecar.fleet.own,), (), Leadership([sidecar.fleet.own]))
    answer.set()
    metadata = await asking
    leaders = {one.leader_id for one in metadata.topics[0].partitions}
    assert leaders <= {broker.node_id for broker in metadata.brokers}, (leaders, metadata.brokers)
