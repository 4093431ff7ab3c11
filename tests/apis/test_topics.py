"""Metadata, and what creates, grows and deletes topics: internal ones, and those that can't be described."""

from __future__ import annotations

import gc
import logging
from collections.abc import Awaitable, Callable, Sequence

import pytest

from kafka_sidecar.pulsar.errors import Unavailable
from kafka_sidecar.topics.description import FRESH_SECONDS
from kafka_sidecar.topics.listing import LISTED_SECONDS
from kafka_sidecar.wire.error_code import ErrorCode
from kafka_sidecar.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from kafka_sidecar.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kafka_sidecar.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kafka_sidecar.wire.messages.find_coordinator import FindCoordinatorRequest
from kafka_sidecar.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from kafka_sidecar.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.support.batches import batch
from tests.support.services import NAMESPACE, Sidecar, errors
from tests.support.turns import longest_turn

OFFSETS = "__consumer_offsets"


@pytest.fixture
def with_offsets(sidecar: Sidecar) -> Sidecar:
    sidecar.admin.make(f"persistent://public/__kafka/{OFFSETS}", 8)
    return sidecar


async def described(sidecar: Sidecar, *names: str) -> Sequence[MetadataResponseTopic]:
    topics = [MetadataRequestTopic(name=name) for name in names] if names else None
    answer = await sidecar.ask(MetadataRequest(topics=topics), 12)
    out = bytearray()
    answer.write(12, out)
    return MetadataResponse.read(12, memoryview(out)).topics


async def test_the_offsets_of_groups_are_an_internal_topic(with_offsets: Sidecar) -> None:
    with_offsets.admin.make("t")
    listed = await described(with_offsets)
    assert [(topic.name, topic.is_internal, len(topic.partitions)) for topic in listed] == [
        (OFFSETS, True, 8),
        ("t", False, 1),
    ]
    (alone,) = await described(with_offsets, OFFSETS)
    alone.topic_id = listed[0].topic_id
    assert alone == listed[0]


async def test_a_topic_of_that_name_in_another_namespace_is_another(with_offsets: Sidecar) -> None:
    with_offsets.admin.make(f"persistent://public/default/{OFFSETS}", 3)
    assert [topic.name for topic in await described(with_offsets)] == [
        OFFSETS,
        f"persistent://public/default/{OFFSETS}",
    ]


async def test_it_is_not_made_for_who_asks_for_it() -> None:
    from kafka_sidecar.config import KafkaConfig

    sidecar = Sidecar(KafkaConfig(auto_create_topics=True))
    await sidecar.lead()
    assert errors(await described(sidecar, OFFSETS, "t")) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NONE]
    await sidecar.close()


async def test_it_can_not_be_written_grown_deleted_or_made(with_offsets: Sidecar) -> None:
    refused = ErrorCode.INVALID_TOPIC_EXCEPTION
    produced = TopicProduceData(name=OFFSETS, partition_data=[PartitionProduceData(records=batch(b"x"))])
    answer = await with_offsets.ask(ProduceRequest(acks=-1, timeout_ms=1_000, topic_data=[produced]), 9)
    assert errors(answer.responses[0].partition_responses) == [refused]
    answer = await with_offsets.ask(
        CreatePartitionsRequest(topics=[CreatePartitionsTopic(name=OFFSETS, count=9, assignments=None)]), 3
    )
    assert errors(answer.results) == [refused]
    answer = await with_offsets.ask(DeleteTopicsRequest(topics=[DeleteTopicState(name=OFFSETS)]), 6)
    assert errors(answer.responses) == [refused]
    new = CreateTopicsRequest(topics=[CreatableTopic(name=OFFSETS, num_partitions=1, replication_factor=1)])
    answer = await with_offsets.ask(new, 7)
    assert errors(answer.topics) == [ErrorCode.TOPIC_ALREADY_EXISTS]
    with_offsets.admin.there.clear()
    with_offsets.skew += FRESH_SECONDS
    answer = await with_offsets.ask(new, 7)
    assert errors(answer.topics) == [refused]
    assert not with_offsets.admin.there
    assert not with_offsets.logs


async def test_a_topic_that_can_not_be_described_is_named_in_the_log(
    sidecar: Sidecar, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    sidecar.admin.make("half")
    sidecar.admin.make("whole")
    sidecar.admin.lost_partition.add(NAMESPACE + "half")
    assert errors(await described(sidecar, "half", "whole")) == [ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.NONE]
    assert f"topic {NAMESPACE}half can't be described, its partition 0 does not answer" in caplog.text
    assert [(topic.name, topic.error_code) for topic in await described(sidecar)] == [
        ("half", ErrorCode.LEADER_NOT_AVAILABLE),
        ("whole", ErrorCode.NONE),
    ]


async def test_what_is_known_of_a_topic_is_told_while_pulsar_is_away(sidecar: Sidecar) -> None:
    """A client that is told an error forgets the topic's partitions."""
    sidecar.admin.make("t", 3)
    await described(sidecar, "t")
    sidecar.skew += FRESH_SECONDS
    sidecar.admin.away = True
    (found,) = await described(sidecar, "t")
    assert (found.error_code, len(found.partitions)) == (ErrorCode.NONE, 3)


@pytest.mark.parametrize("names", [True, False], ids=["by name", "all"])
async def test_many_topics_do_not_hold_the_loop(sidecar: Sidecar, names: bool) -> None:
    for number in range(3_000):
        sidecar.admin.make(f"t{number}", 4)
    topics = [MetadataRequestTopic(name=f"t{number}") for number in range(3_000)] if names else None

    async def ask() -> None:
        assert len((await sidecar.ask(MetadataRequest(topics=topics), 12)).topics) == 3_000

    for _ in range(2):  # looked up, and remembered
        await does_not_hold_the_loop(ask)


async def does_not_hold_the_loop(ask: Callable[[], Awaitable[None]]) -> None:
    longest, whole = await longest_turn(ask())
    assert longest < whole / 10, "of processor time: a busy machine slows the part and the whole alike"
    gc.unfreeze()


async def test_many_groups_that_are_looked_for_do_not_hold_the_loop(sidecar: Sidecar) -> None:
    keys = [f"group-{number}" for number in range(20_000)]

    async def ask() -> None:
        assert len(
            (await sidecar.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=keys), 4)).coordinators
        ) == len(keys)

    await does_not_hold_the_loop(ask)


async def test_a_listing_asks_only_for_the_names_and_for_topics_that_are_in_use(sidecar: Sidecar) -> None:
    for name in ("used", "unused"):
        sidecar.admin.make(name)
    await described(sidecar)
    topic = TopicProduceData(name="used", partition_data=[PartitionProduceData(index=0, records=batch(b"x"))])
    await sidecar.ask(ProduceRequest(acks=-1, timeout_ms=5_000, topic_data=[topic]), 12)
    sidecar.skew = FRESH_SECONDS + 1
    for name in ("used", "unused"):  # somebody else lets them grow
        sidecar.admin.there[f"{NAMESPACE}{name}"] = (3, sidecar.admin.there[f"{NAMESPACE}{name}"][1])
    sizes = {topic.name: len(topic.partitions) for topic in await described(sidecar)}
    assert sizes == {"unused": 1, "used": 3}, "the picture of what nobody uses is looked at later"
    assert [len(topic.partitions) for topic in await described(sidecar, "unused")] == [3], (
        "who names it is told what it is now"
    )
    sidecar.skew += LISTED_SECONDS + 1
    sidecar.admin.there[f"{NAMESPACE}unused"] = (4, sidecar.admin.there[f"{NAMESPACE}unused"][1])
    assert {len(topic.partitions) for topic in await described(sidecar)} == {3, 4}, "an old picture is none"


async def test_a_listing_shows_at_once_what_was_grown_here(sidecar: Sidecar) -> None:
    sidecar.admin.make("t")
    await described(sidecar)
    grown = CreatePartitionsTopic(name="t", count=5)
    await sidecar.ask(CreatePartitionsRequest(topics=[grown], timeout_ms=5_000), 3)
    assert [len(topic.partitions) for topic in await described(sidecar)] == [5]


async def test_topics_are_told_while_pulsar_does_not_say_what_the_cluster_is_called(sidecar: Sidecar) -> None:
    async def fails() -> list[str]:
        raise Unavailable("500 Internal Server Error")

    sidecar.admin.make("t", 2)
    sidecar.admin.clusters = fails  # type: ignore[method-assign]
    answer = await sidecar.ask(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 12)
    assert answer.cluster_id is None
    assert [(topic.error_code, len(topic.partitions)) for topic in answer.topics] == [(ErrorCode.NONE, 2)]
