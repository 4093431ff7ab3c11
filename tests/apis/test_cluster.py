"""What clients ask before anything else: versions, nodes, coordinators, producer ids, epochs."""

from __future__ import annotations

import asyncio

import pytest

from kafka_sidecar.apis import APIS
from kafka_sidecar.fleet.member import Member
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.messages.api_versions import ApiVersionsRequest
from kafka_sidecar.wire.messages.describe_cluster import DescribeClusterRequest
from kafka_sidecar.wire.messages.find_coordinator import FindCoordinatorRequest
from kafka_sidecar.wire.messages.init_producer_id import InitProducerIdRequest
from kafka_sidecar.wire.messages.metadata import MetadataRequest
from kafka_sidecar.wire.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tests.support.batches import batch
from tests.support.memory_log import MemoryLog
from tests.support.services import Sidecar

NONE = ErrorCode.NONE


async def test_every_api_that_is_served_is_told_with_its_versions(sidecar: Sidecar) -> None:
    answer = await sidecar.ask(ApiVersionsRequest(client_software_name="kcat", client_software_version="1.7.0"), 4)
    versions = {one.api_key: (one.min_version, one.max_version) for one in answer.api_keys}
    assert answer.error_code is NONE
    assert versions.keys() == {api.key for api in APIS}
    assert versions[0] == (0, 13), "KAFKA-18659"
    assert versions[1] == (4, 18)


@pytest.mark.parametrize(
    ("name", "version", "error"), [("-x", "1", ErrorCode.INVALID_REQUEST), ("x", "", ErrorCode.INVALID_REQUEST)]
)
async def test_a_client_that_names_itself_badly_is_refused(
    sidecar: Sidecar, name: str, version: str, error: ErrorCode
) -> None:
    request = ApiVersionsRequest(client_software_name=name, client_software_version=version)
    assert (await sidecar.ask(request, 3)).error_code is error
    assert (await sidecar.ask(request, 2)).error_code is NONE, "before version 3 there is no name"


async def test_the_cluster_has_this_node_and_the_others_of_its_fleet(sidecar: Sidecar) -> None:
    sidecar.fleet.change(Member(2, "other", 9093))
    nodes = [(sidecar.config.node_id, "127.0.0.1", 9092), (2, "other", 9093)]
    cluster = await sidecar.ask(DescribeClusterRequest(), 2)
    assert (cluster.error_code, cluster.cluster_id, cluster.controller_id) == (
        NONE,
        "standalone",
        sidecar.config.node_id,
    )
    assert [(one.broker_id, one.host, one.port) for one in cluster.brokers] == nodes
    metadata = await sidecar.ask(MetadataRequest(topics=[]), 12)
    assert [(one.node_id, one.host, one.port) for one in metadata.brokers] == nodes


async def test_controllers_are_not_to_be_asked_for_here_and_a_broker_that_is_away_is_said(sidecar: Sidecar) -> None:
    assert (
        await sidecar.ask(DescribeClusterRequest(endpoint_type=2), 1)
    ).error_code is ErrorCode.MISMATCHED_ENDPOINT_TYPE
    sidecar.admin.away = True
    away = await sidecar.ask(DescribeClusterRequest(), 1)
    assert away.error_code is not NONE
    assert away.error_message


async def test_coordinators_of_groups_and_transactions_are_found(sidecar: Sidecar) -> None:
    found = await sidecar.ask(FindCoordinatorRequest(coordinator_keys=["g", "h"]), 4)
    assert [(one.key, one.error_code, one.host, one.port) for one in found.coordinators] == [
        ("g", NONE, "127.0.0.1", 9092),
        ("h", NONE, "127.0.0.1", 9092),
    ]
    one = await sidecar.ask(FindCoordinatorRequest(key="g"), 3)
    assert (one.error_code, one.host) == (NONE, "127.0.0.1")
    assert (await sidecar.ask(FindCoordinatorRequest(key="t", key_type=1), 3)).error_code is NONE
    for key, kind, error in (
        ("", 1, ErrorCode.INVALID_REQUEST),
        ("s", 2, ErrorCode.INVALID_REQUEST),
        ("", 0, ErrorCode.INVALID_GROUP_ID),
    ):
        refused = await sidecar.ask(FindCoordinatorRequest(key=key, key_type=kind), 3)
        assert (refused.error_code, refused.node_id, refused.port) == (error, -1, -1)


async def test_while_no_sidecar_leads_a_group_it_has_no_coordinator(sidecar: Sidecar) -> None:
    sidecar.shard.term.depose("the election chose another")
    assert (await sidecar.ask(FindCoordinatorRequest(key="g"), 3)).error_code is ErrorCode.NOT_COORDINATOR


async def test_each_producer_gets_an_id_of_its_own(sidecar: Sidecar) -> None:
    given = [await sidecar.ask(InitProducerIdRequest(transaction_timeout_ms=1), 4) for _ in range(20)]
    assert len({one.producer_id for one in given}) == 20
    assert all((one.error_code, one.producer_epoch) == (NONE, 0) and one.producer_id >= 0 for one in given)


async def test_the_log_is_one_leadership_that_ends_at_its_end(sidecar: Sidecar) -> None:
    sidecar.admin.make("t")
    log = sidecar.logs["persistent://public/default/t-partition-0"] = MemoryLog()
    log.write(batch(b"a", b"b"))

    async def end(epoch: int, current: int = 0, partition: int = 0) -> tuple[ErrorCode, int, int]:
        wanted = OffsetForLeaderPartition(partition=partition, current_leader_epoch=current, leader_epoch=epoch)
        topic = OffsetForLeaderTopic(topic="t", partitions=[wanted])
        async with asyncio.timeout(5):
            (answer,) = (await sidecar.ask(OffsetForLeaderEpochRequest(topics=[topic]), 4)).topics[0].partitions
        return answer.error_code, answer.leader_epoch, answer.end_offset

    await sidecar.ask(MetadataRequest(topics=None), 12)
    assert await end(0) == (NONE, 0, 2)
    assert await end(1) == (NONE, -1, -1)
    assert await end(0, current=1) == (ErrorCode.UNKNOWN_LEADER_EPOCH, -1, -1)
    assert await end(0, partition=1) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1, -1)
