"""Metadata, and what creates, grows and deletes topics: internal ones, and those that can't be described."""

from __future__ import annotations

import asyncio
import gc
import logging
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import pytest

from handler.apis import a20_delete_topics
from handler.coordination.directory import Leader
from handler.fleet.peers import PeerUnavailable
from handler.pulsar.errors import Unavailable
from handler.topics.catalog import FRESH_SECONDS
from handler.topics.listing import LISTED_SECONDS
from handler.wire.error_code import ErrorCode
from handler.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from handler.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from handler.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from handler.wire.messages.find_coordinator import FindCoordinatorRequest
from handler.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse, MetadataResponseTopic
from handler.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
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
    assert [(topic.name, topic.is_internal, len(topic.partitions)) for topic in listed] == [(OFFSETS, True, 8), ("t", False, 1)]
    (alone,) = await described(with_offsets, OFFSETS)
    alone.topic_id = listed[0].topic_id
    assert alone == listed[0]


async def test_a_topic_of_that_name_in_another_namespace_is_another(with_offsets: Sidecar) -> None:
    with_offsets.admin.make(f"persistent://public/default/{OFFSETS}", 3)
    assert [topic.name for topic in await described(with_offsets)] == [OFFSETS, f"persistent://public/default/{OFFSETS}"]


async def test_it_is_not_made_for_who_asks_for_it() -> None:
    from handler.config import KafkaConfig

    sidecar = Sidecar(KafkaConfig(auto_create_topics=True))
    await sidecar.lead()
    assert errors(await described(sidecar, OFFSETS, "t")) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NONE]
    await sidecar.close()


async def test_it_can_not_be_written_grown_deleted_or_made(with_offsets: Sidecar) -> None:
    refused = ErrorCode.INVALID_TOPIC_EXCEPTION
    produced = TopicProduceData(name=OFFSETS, partition_data=[PartitionProduceData(records=batch(b"x"))])
    answer = await with_offsets.ask(ProduceRequest(acks=-1, timeout_ms=1_000, topic_data=[produced]), 9)
    assert errors(answer.responses[0].partition_responses) == [refused]
    answer = await with_offsets.ask(CreatePartitionsRequest(topics=[CreatePartitionsTopic(name=OFFSETS, count=9, assignments=None)]), 3)
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


class TellingPeers:
    """Other sidecars that hear of deletions: two of them don't answer."""

    def __init__(self) -> None:
        self.told: list[tuple[str, Mapping[str, uuid.UUID | None]]] = []

    async def topics_deleted(self, address: str, name: str, topics: Mapping[str, uuid.UUID | None]) -> None:
        if name == "gone":
            raise PeerUnavailable("the sidecar at gone:1 did not answer: UNAVAILABLE")
        if name == "silent":
            await asyncio.sleep(60)
        self.told.append((address, topics))


async def test_every_sidecar_that_is_listed_hears_of_a_deletion_before_the_client_does(
    sidecar: Sidecar, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def listed() -> list[Leader]:
        return [Leader(name, 0, "", f"{name}:1" if name != "unreachable" else "") for name in ("a", "gone", "silent", "unreachable", "b")]

    peers = TellingPeers()
    monkeypatch.setattr(a20_delete_topics, "TELL_SECONDS", 0.05)
    monkeypatch.setattr(sidecar.services.groups.leaders, "known_others", listed)
    sidecar.services = replace(sidecar.services, peers=cast(Any, peers))
    sidecar.admin.make("t")
    (described_,) = await described(sidecar, "t")
    answer = await sidecar.ask(DeleteTopicsRequest(topics=[DeleteTopicState(name="t")]), 6)
    assert errors(answer.responses) == [ErrorCode.NONE]
    assert peers.told == [(address, {NAMESPACE + "t": described_.topic_id}) for address in ("a:1", "b:1")]
    (line,) = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert line.startswith("2 of 4 sidecars may not know yet of deleted topics (t): gone:1: the sidecar at gone:1 did not answer")
    assert line.endswith("; silent:1: no answer in time")


async def test_a_few_sidecars_that_do_not_answer_keep_nobody_else_from_hearing_of_a_deletion(
    sidecar: Sidecar, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def listed() -> list[Leader]:
        return [Leader("silent" if number in (5, 105) else "a", number, "", f"a:{number}") for number in range(250)]

    peers = TellingPeers()
    monkeypatch.setattr(a20_delete_topics, "TELL_SECONDS", 0.2)
    monkeypatch.setattr(a20_delete_topics, "MOST_TELL_SECONDS", 0.4)
    monkeypatch.setattr(sidecar.services.groups.leaders, "known_others", listed)
    sidecar.services = replace(sidecar.services, peers=cast(Any, peers))
    sidecar.admin.make("t")
    await sidecar.ask(DeleteTopicsRequest(topics=[DeleteTopicState(name="t")]), 6)
    assert len(peers.told) == 248
    assert "2 of 250 sidecars" in caplog.text


async def test_many_sidecars_that_do_not_answer_hold_a_deletion_for_a_while_and_fill_no_log(
    sidecar: Sidecar, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def listed() -> list[Leader]:
        return [Leader("silent", number, "", f"silent:{number}") for number in range(450)]

    monkeypatch.setattr(a20_delete_topics, "TELL_SECONDS", 0.2)
    monkeypatch.setattr(a20_delete_topics, "MOST_TELL_SECONDS", 0.3)
    monkeypatch.setattr(sidecar.services.groups.leaders, "known_others", listed)
    sidecar.services = replace(sidecar.services, peers=cast(Any, TellingPeers()))
    topics = [f"t{number}" for number in range(100)]
    for topic in topics:
        sidecar.admin.make(topic)
    answer = await sidecar.ask(DeleteTopicsRequest(topics=[DeleteTopicState(name=topic) for topic in topics]), 6)
    assert set(errors(answer.responses)) == {ErrorCode.NONE}
    (line,) = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert "450 of 450 sidecars" in line
    assert "t9, 90 more" in line
    assert len(line) < 1_000


async def test_a_topic_that_can_not_be_described_is_named_in_the_log(sidecar: Sidecar, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    sidecar.admin.make("half")
    sidecar.admin.make("whole")
    sidecar.admin.lost_partition.add(NAMESPACE + "half")
    assert errors(await described(sidecar, "half", "whole")) == [ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.NONE]
    assert f"topic {NAMESPACE}half can't be described, its partition 0 does not answer" in caplog.text
    assert [(topic.name, topic.error_code) for topic in await described(sidecar)] == [
        ("half", ErrorCode.LEADER_NOT_AVAILABLE), ("whole", ErrorCode.NONE),
    ]  # fmt: skip


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
        assert len((await sidecar.ask(FindCoordinatorRequest(key_type=0, coordinator_keys=keys), 4)).coordinators) == len(keys)

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
    assert [len(topic.partitions) for topic in await described(sidecar, "unused")] == [3], "who names it is told what it is now"
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
