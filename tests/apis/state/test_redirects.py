"""Partitions that another member of the fleet leads: clients are sent there once, and served if they come back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from kafka_sidecar.apis.state import redirects, refused_batches
from kafka_sidecar.apis.state.redirects import ON_ITS_WAY_SECONDS, REPLICA_SECONDS, FetchRedirects, ProduceRedirects
from kafka_sidecar.config import KafkaConfig
from kafka_sidecar.fleet.fleet import SETTLED_SECONDS
from kafka_sidecar.fleet.member import Member
from kafka_sidecar.model.sidecar import Endpoint
from kafka_sidecar.topics.catalog import GROWN_SECONDS
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from kafka_sidecar.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kafka_sidecar.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from kafka_sidecar.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.support.batches import batch
from tests.support.services import NAMESPACE, Client, Sidecar

NONE, ELSEWHERE = ErrorCode.NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER
OTHER = Member(2, "other", 9093)
PARTITIONS = 8


@pytest_asyncio.fixture
async def sidecar() -> AsyncIterator[Sidecar]:
    one = Sidecar(others=[OTHER])
    one.admin.make("t", PARTITIONS)
    await one.ask(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 12)
    yield one
    await one.close()


async def leaders(sidecar: Sidecar) -> list[int]:
    answer = await sidecar.ask(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 12)
    return [one.leader_id for one in answer.topics[0].partitions]


async def led_by(sidecar: Sidecar, node: int) -> int:
    return (await leaders(sidecar)).index(node)


async def produce(sidecar: Sidecar, index: int, acks: int = -1, sequence: int | None = None) -> Any:
    records = batch(b"a") if sequence is None else batch(b"a", producer_id=7, epoch=0, sequence=sequence)
    data = [TopicProduceData(name="t", partition_data=[PartitionProduceData(index=index, records=records)])]
    return await sidecar.ask(ProduceRequest(acks=acks, timeout_ms=5_000, topic_data=data), 12)


def error(answer: Any) -> ErrorCode:
    code: ErrorCode = answer.responses[0].partition_responses[0].error_code
    return code


async def fetch(sidecar: Sidecar, index: int, rack: str = "") -> Any:
    wanted = [
        FetchTopic(topic="t", partitions=[FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=2**20)])
    ]
    request = FetchRequest(max_wait_ms=0, min_bytes=1, max_bytes=2**20, session_epoch=-1, topics=wanted, rack_id=rack)
    return await sidecar.ask(request, 12)


async def test_the_leaders_that_are_told_are_those_of_all_members(sidecar: Sidecar) -> None:
    found = await leaders(sidecar)
    assert found.count(2) == PARTITIONS // 2
    other = Sidecar(others=[sidecar.fleet.own._replace(host="here")])
    other.fleet.own = OTHER
    other.fleet.change(sidecar.fleet.own)
    other.admin.make("t", PARTITIONS)
    assert await leaders(other) == found
    answer = await sidecar.ask(DescribeTopicPartitionsRequest(response_partition_limit=100), 0)
    assert [one.leader_id for one in answer.topics[0].partitions] == found
    await other.close()


async def test_a_producer_is_sent_to_the_leader_before_anything_is_appended(sidecar: Sidecar) -> None:
    index = await led_by(sidecar, 2)
    answer = await produce(sidecar, index)
    told = answer.responses[0].partition_responses[0]
    assert (told.error_code, told.base_offset, told.current_leader.leader_id) == (ELSEWHERE, -1, 2)
    assert [(one.node_id, one.host, one.port) for one in answer.node_endpoints] == [(0, "127.0.0.1", 9092), OTHER[:3]]
    assert not sidecar.logs, "not even a partition was opened"
    assert error(await produce(sidecar, await led_by(sidecar, 0))) is NONE


async def test_what_was_sent_behind_a_refused_batch_is_refused_and_who_comes_back_is_served(sidecar: Sidecar) -> None:
    index = await led_by(sidecar, 2)
    assert [error(await produce(sidecar, index)) for _ in range(3)] == [ELSEWHERE] * 3
    await asyncio.sleep(ON_ITS_WAY_SECONDS)
    assert error(await produce(sidecar, index)) is NONE
    sidecar.client = Client()
    assert error(await produce(sidecar, index)) is ELSEWHERE, "another client was not told"


async def test_until_all_have_seen_a_change_everybody_serves(sidecar: Sidecar) -> None:
    index = await led_by(sidecar, 2)
    sidecar.fleet.now -= SETTLED_SECONDS
    assert error(await produce(sidecar, index)) is NONE
    assert (await fetch(sidecar, index)).responses[0].partitions[0].error_code is NONE
    sidecar.fleet.now += SETTLED_SECONDS
    assert error(await produce(sidecar, index)) is ELSEWHERE


async def test_a_topic_that_grows_may_have_other_leaders_and_is_served_everywhere_until_all_know(
    sidecar: Sidecar,
) -> None:
    generation = sidecar.services.generation
    sidecar.admin.there[NAMESPACE + "t"] = (PARTITIONS * 2, sidecar.admin.there[NAMESPACE + "t"][1])
    sidecar.skew += 3600
    assert len(await leaders(sidecar)) == PARTITIONS * 2
    assert sidecar.services.generation > generation
    index = await led_by(sidecar, 2)
    assert error(await produce(sidecar, index)) is NONE
    sidecar.skew += GROWN_SECONDS
    assert error(await produce(sidecar, index)) is ELSEWHERE


async def test_who_comes_back_without_the_refused_batch_waits_until_that_is_given_up(
    sidecar: Sidecar, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The new leader dies when it has written it. The log has it now, but might have had it before: its client may send
    it again.
    """
    leader = Sidecar(
        others=[sidecar.fleet.own._replace(host="here")], logs=sidecar.logs, writer_name="kafka-sidecar-other"
    )
    leader.fleet.own = OTHER
    leader.admin.make("t", PARTITIONS)
    index = await led_by(sidecar, 2)
    assert error(await produce(sidecar, index, sequence=0)) is ELSEWHERE
    assert error(await produce(leader, index, sequence=0)) is NONE
    sidecar.fleet.change()
    assert [error(await produce(sidecar, index, sequence=1)) for _ in range(2)] == [ELSEWHERE] * 2
    sidecar.client.refused.answered(None, 0.0)
    monkeypatch.setattr(refused_batches, "FORGET_SECONDS", 0.0)
    assert error(await produce(sidecar, index, sequence=1)) is NONE
    await leader.close()


async def test_who_wants_no_answer_is_served(sidecar: Sidecar) -> None:
    index = await led_by(sidecar, 2)
    assert await produce(sidecar, index, acks=0) is None
    assert (sidecar.client.aborted, len(sidecar.logs)) == (0, 1)


async def test_one_that_leaves_names_the_others_and_sends_its_clients_there(sidecar: Sidecar) -> None:
    index = await led_by(sidecar, 0)
    assert error(await produce(sidecar, index)) is NONE
    sidecar.fleet.depart()
    answer = await sidecar.ask(MetadataRequest(topics=[]), 12)
    assert ([one.node_id for one in answer.brokers], answer.controller_id) == ([0, 2], 2)
    assert set(await leaders(sidecar)) == {2}
    assert error(await produce(sidecar, index)) is ELSEWHERE


async def test_a_consumer_is_sent_to_the_leader_once(sidecar: Sidecar) -> None:
    index = await led_by(sidecar, 2)
    answer = await fetch(sidecar, index)
    told = answer.responses[0].partitions[0]
    assert (told.error_code, told.current_leader.leader_id, told.high_watermark) == (ELSEWHERE, 2, -1)
    assert (await fetch(sidecar, index)).responses[0].partitions[0].error_code is NONE


async def test_a_consumer_in_a_rack_reads_from_the_replica_there() -> None:
    here = Sidecar(others=[OTHER._replace(rack="y")])
    here.fleet.own = here.fleet.own._replace(rack="x")
    here.fleet.change(OTHER._replace(rack="y"))
    here.admin.make("t", PARTITIONS)
    led_here, led_there = await led_by(here, 0), await led_by(here, 2)
    answer = await here.ask(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 12)
    assert [(one.node_id, one.rack) for one in answer.brokers] == [(0, "x"), (2, "y")]
    assert answer.topics[0].partitions[led_here].replica_nodes == (0, 2)
    sent = (await fetch(here, led_here, "y")).responses[0].partitions[0]
    assert (sent.error_code, sent.preferred_read_replica) == (NONE, 2)
    again = (await fetch(here, led_here, "y")).responses[0].partitions[0]
    assert (again.error_code, again.preferred_read_replica) == (NONE, -1), "it could not read there"
    for index in (led_here, led_there):
        for _ in range(3):
            served = (await fetch(here, index, "x")).responses[0].partitions[0]
            assert (served.error_code, served.preferred_read_replica) == (NONE, -1)
    strange = (await fetch(here, led_here, "z")).responses[0].partitions[0]
    assert (strange.error_code, strange.preferred_read_replica) == (NONE, -1)
    await here.close()


def test_a_client_is_sent_away_once_while_the_fleet_is_the_same() -> None:
    told, client = ProduceRedirects(), Client()
    assert [told.refuses(client, "p", version, 1.0) for version in (1, 1, 2)] == [True, False, True]


def test_a_client_that_is_far_away_is_given_the_time_that_its_answer_takes() -> None:
    told, client = ProduceRedirects(), Client()
    client.round_trip = 0.3
    assert told.refuses(client, "p", 1, 1.0)
    assert told.is_behind(client, "p", 1.3 + ON_ITS_WAY_SECONDS - 0.01)
    assert not told.is_behind(client, "p", 1.3 + ON_ITS_WAY_SECONDS + 0.01)


def test_without_sequences_what_came_before_the_answer_had_left_is_refused() -> None:
    told, client = ProduceRedirects(), Client()
    assert not told.is_behind(client, "p", 1.0)
    assert told.refuses(client, "p", 1, 1.0)
    client.waiting_since = 1.0
    assert told.is_behind(client, "p", 9.0), "the answer stands behind another"
    client.waiting_since = 8.0
    assert not told.is_behind(client, "p", 9.0)


def test_a_client_of_very_many_partitions_is_served_without_a_word_about_the_rest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(redirects, "MOST_PARTITIONS", 2)
    produce, fetch, client = ProduceRedirects(), FetchRedirects(), Client()
    assert [produce.refuses(client, index, 1, 0.0) for index in range(3)] == [True, True, False]
    assert [fetch.refuses(client, index, 1) for index in range(3)] == [True, True, False]
    assert [fetch.refuses(client, 0, version) for version in (1, 2, 2)] == [False, True, False]
    assert [fetch.names_replica(client, 0, at) for at in (0.0, 1.0, REPLICA_SECONDS + 1)] == [True, False, True]
    assert [fetch.names_replica(client, index, 0.0) for index in (1, 2)] == [True, False]


async def test_clients_of_the_external_listener_are_told_of_other_addresses() -> None:
    sidecar = Sidecar(
        config=KafkaConfig(external_listen=":9094", external_advertised="one.example:9094"),
        others=[OTHER._replace(external=Endpoint("two.example", 19094))],
    )
    sidecar.admin.make("t", PARTITIONS)
    sidecar.client.is_external = True
    answer = await sidecar.ask(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 12)
    assert [(one.node_id, one.host, one.port) for one in answer.brokers] == [
        (0, "one.example", 9094),
        (2, "two.example", 19094),
    ]
    assert {one.leader_id for one in answer.topics[0].partitions} == {0, 2}
    refused = await produce(sidecar, await led_by(sidecar, 2))
    assert [(one.node_id, one.host, one.port) for one in refused.node_endpoints] == [
        (0, "one.example", 9094),
        (2, "two.example", 19094),
    ]
    await sidecar.close()


async def test_a_leader_without_an_external_address_is_not_told_there(sidecar: Sidecar) -> None:
    index = await led_by(sidecar, 2)
    sidecar.client.is_external = True
    answer = await sidecar.ask(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 12)
    assert [one.node_id for one in answer.brokers] == [0]
    hidden = answer.topics[0].partitions[index]
    assert (hidden.error_code, hidden.leader_id) == (ErrorCode.LISTENER_NOT_FOUND, -1)
    described = await sidecar.ask(DescribeTopicPartitionsRequest(response_partition_limit=100), 0)
    assert described.topics[0].partitions[index].error_code is ErrorCode.LISTENER_NOT_FOUND
    assert error(await produce(sidecar, index)) is NONE, "it is not sent where it can't go"
    assert (await fetch(sidecar, index)).responses[0].partitions[0].error_code is NONE
