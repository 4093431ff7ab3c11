"""The catalogue: what is answered while topics come and go."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from kafka_sidecar.groups.consumer.members import RequiredTopics
from kafka_sidecar.pulsar.admin import DescribedTopic
from kafka_sidecar.pulsar.errors import Refused, TopicMissing, Unavailable
from kafka_sidecar.topics.catalog import AGAIN_SECONDS, GONE_SECONDS, Catalog, NotPartitioned
from kafka_sidecar.topics.description import FRESH_SECONDS
from kafka_sidecar.topics.id_search import MOVE_SECONDS
from kafka_sidecar.topics.names import TopicName, TopicNames
from tests.support.memory_topics import image_of
from tests.support.services import MemoryAdmin
from tests.support.virtual_time import in_virtual_time

TOPIC = TopicName("public", "default", "t")


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass
class ScriptedAdmin:
    """Topics by name; `slow` says which of the two questions is answered last."""

    there: dict[str, tuple[int, str]] = field(default_factory=dict)
    properties: dict[str, dict[str, str]] = field(default_factory=dict)
    slow: str = ""
    asked: int = 0
    broken_logs: int = 0
    keeps_no_properties: bool = False

    @property
    def topics(self) -> ScriptedAdmin:
        return self

    async def describe(self, topic: str) -> DescribedTopic:
        self.asked += 1
        if self.slow == "partitions":
            await asyncio.sleep(0.01)
        if topic not in self.there:
            raise TopicMissing(topic)
        return DescribedTopic(self.there[topic][0], dict(self.properties.get(topic, {})))

    async def created_at(self, partition: str) -> str:
        if self.slow == "created_at":
            await asyncio.sleep(0.01)
        topic = partition.rsplit("-partition-", 1)[0]
        if topic not in self.there or self.broken_logs:
            self.broken_logs = max(0, self.broken_logs - 1)
            raise Unavailable("500")  # what a broker says of a log that isn't there
        return self.there[topic][1]

    async def create_topic(self, topic: str, partitions: int, properties: Mapping[str, str]) -> None:
        if properties and self.keeps_no_properties:
            raise Refused("this Pulsar keeps no properties of topics: it must be 2.10 or later")
        self.properties[topic] = dict(properties)
        self.there[topic] = (partitions, "today")


def catalog(admin: ScriptedAdmin, clock: Clock | None = None) -> Catalog:
    return Catalog(admin, TopicNames("public/default", "public/__kafka"), clock or Clock())  # type: ignore[arg-type]


async def test_a_topic_is_asked_for_once_in_a_while() -> None:
    admin, clock = ScriptedAdmin({TOPIC.pulsar: (3, "monday")}), Clock()
    topics = catalog(admin, clock)
    first = await topics.find(TOPIC)
    assert await topics.find(TOPIC) is first
    assert admin.asked == 1
    clock.now = FRESH_SECONDS + 1
    assert (await topics.find(TOPIC)).topic_id == first.topic_id
    assert admin.asked == 2


async def test_a_topic_made_again_has_another_id() -> None:
    admin, clock = ScriptedAdmin({TOPIC.pulsar: (3, "monday")}), Clock()
    topics = catalog(admin, clock)
    first = await topics.find(TOPIC)
    admin.there[TOPIC.pulsar] = (3, "tuesday")
    second = await topics.find(TOPIC, fresh=True)
    assert second.topic_id != first.topic_id
    assert topics.name_of(first.topic_id) is None
    assert topics.name_of(second.topic_id) == TOPIC


async def test_ids_are_the_same_in_every_sidecar() -> None:
    admin = ScriptedAdmin({TOPIC.pulsar: (3, "monday")})
    assert (await catalog(admin).find(TOPIC)).topic_id == (await catalog(admin).find(TOPIC)).topic_id


async def test_a_new_topic_is_described_once_its_logs_are_there() -> None:
    admin = ScriptedAdmin(broken_logs=2)
    topic = await catalog(admin).create(TOPIC, 2)
    assert (topic.partitions, admin.broken_logs) == (2, 0)


class Replicated:
    """Its policies name another cluster."""

    async def is_namespace_replicated(self, namespace: str) -> bool:
        return namespace == "public/default"


@pytest.mark.parametrize(
    ("asked", "is_old", "expected"),
    [
        ({}, False, {"entry.format": "pulsar"}),
        ({"entry.format": "kafka"}, False, {"entry.format": "kafka"}),
        ({}, True, {}),
    ],
)
async def test_a_topic_of_a_replicated_namespace_is_made_in_the_format_that_every_cluster_reads(
    asked: dict[str, str], is_old: bool, expected: dict[str, str]
) -> None:
    admin = ScriptedAdmin(keeps_no_properties=is_old)
    names = TopicNames("public/default", "public/__kafka")
    await Catalog(cast(Any, admin), names, Clock(), cast(Any, Replicated())).create(TOPIC, 2, asked)
    assert admin.properties[TOPIC.pulsar] == expected


async def test_many_who_ask_for_a_missing_topic_share_one_creation() -> None:
    admin = ScriptedAdmin()
    topics = catalog(admin)
    found = await asyncio.gather(*(topics.create_if_missing(TOPIC, 4) for _ in range(20)))
    assert {topic.partitions for topic in found} == {4}
    assert admin.asked == 1


async def test_a_topic_that_was_deleted_is_known_to_be_gone_until_it_is_found_again() -> None:
    clock, admin = Clock(), ScriptedAdmin({TOPIC.pulsar: (2, "today")})
    known = catalog(admin, clock)
    await known.find(TOPIC)
    assert known.may_have(TOPIC, 1)
    known.gone(TOPIC)
    assert not known.may_have(TOPIC, 1)
    clock.now += GONE_SECONDS
    assert known.may_have(TOPIC, 1), "somebody else may have made it"
    known.gone(TOPIC)
    await known.find(TOPIC)
    assert known.may_have(TOPIC, 1)


async def test_a_deleted_topic_that_somebody_asks_for_is_looked_for_again_soon() -> None:
    """Another sidecar may have made it anew, and tells nobody."""
    clock, admin = Clock(), ScriptedAdmin({TOPIC.pulsar: (2, "today")})
    known = catalog(admin, clock)
    del admin.there[TOPIC.pulsar]
    known.gone(TOPIC)
    for _ in range(2):
        known.look_again_soon(TOPIC)
        assert not known._looking, "not before a while is over"
        clock.now += AGAIN_SECONDS
        known.look_again_soon(TOPIC)
        with pytest.raises(TopicMissing):
            await known._looking[TOPIC]
        assert not known.may_have(TOPIC, 1)
    admin.there[TOPIC.pulsar] = (2, "just now")
    clock.now += AGAIN_SECONDS
    known.look_again_soon(TOPIC)
    await known._looking[TOPIC]
    assert known.may_have(TOPIC, 1)


@pytest.mark.parametrize("partitions", [0, 2])
async def test_a_partition_is_there_if_pulsar_has_its_log(partitions: int) -> None:
    admin = MemoryAdmin()
    admin.make("t", partitions)
    topics = catalog(cast(Any, admin))
    assert await topics.has_partition(TOPIC, 0)
    assert await topics.has_partition(TOPIC, 1) is (partitions == 2)
    assert not await topics.has_partition(TOPIC, 2)
    assert not await topics.has_partition(TopicName("public", "default", "missing"), 0)
    if partitions:
        admin.lost_partition.add(TOPIC.pulsar)
        assert [await topics.has_partition(TOPIC, index) for index in (0, 1)] == [False, True], (
            "though the topic counts two"
        )


async def test_topics_that_are_being_made_are_made_when_the_process_ends() -> None:
    admin = ScriptedAdmin(slow="partitions")
    topics = catalog(admin)
    making = asyncio.create_task(topics.create_if_missing(TOPIC, 3))
    await asyncio.sleep(0)
    making.cancel()  # its client has gone
    await topics.close()
    assert admin.there[TOPIC.pulsar][0] == 3
    assert topics.remembered(TOPIC) is not None


async def test_a_topic_without_partitions_is_partition_0_and_a_log_itself() -> None:
    admin = MemoryAdmin()
    admin.make("plain", 0)
    admin.make("other", 2)
    admin.make("a-partition-map", 0)
    topics = Catalog(admin, TopicNames("public/default", "public/__kafka"), Clock())  # type: ignore[arg-type]
    plain, other = (TopicName("public", "default", name) for name in ("plain", "other"))
    assert await topics.log_of(plain.partition(0)) == plain.pulsar, "also before anybody has looked at it"
    found = await topics.find(plain)
    assert (found.partitions, found.partitioned) == (1, False)
    assert [name.local for name in await topics.list_names()] == ["a-partition-map", "other", "plain"]
    calls = admin.calls
    assert [await topics.log_of(plain.partition(index)) for index in (0, 1)] == [plain.pulsar, plain.partition(1)]
    assert admin.calls == calls
    assert await topics.log_of(other.partition(0)) == other.partition(0)
    with pytest.raises(NotPartitioned, match="without partitions"):
        topics.check_partitioned(found)
    await topics.delete(found.name, partitioned=found.partitioned)
    assert plain.pulsar not in admin.there


async def test_topics_of_further_namespaces_are_listed_if_they_are_named() -> None:
    admin = MemoryAdmin()
    for topic in ("persistent://public/default/a", "persistent://team/sales/b", "persistent://team/secret/c"):
        admin.make(topic, 1)
    names = TopicNames("public/default", "public/__kafka", ["team/sales", "team/gone"])
    topics = Catalog(admin, names, Clock())  # type: ignore[arg-type]
    assert list(await topics.listed("public/default")) == ["a", "persistent://team/sales/b"]
    admin.make("persistent://public/__kafka/__consumer_offsets", 8)
    internal_too = ["__consumer_offsets", "a", "persistent://team/sales/b"]
    assert list(await topics.listed("public/default")) == internal_too
    assert await topics.describe("team/secret/c") is not None, "and all others are found by their names"


async def test_an_id_is_nobody_s_where_its_topic_or_namespace_is_gone() -> None:
    admin = MemoryAdmin()
    admin.make("t", 1)
    topics = catalog(cast(Any, admin))
    found = await topics.find(TOPIC)
    del admin.there[TOPIC.pulsar]
    assert await topics.describe_id(found.topic_id) is None or topics.known(TOPIC, 1.0) is not None
    admin.missing_namespaces = {"public/default"}
    assert await topics.describe_id(uuid.UUID(int=4)) is None


def test_an_id_is_unknown_only_when_no_topic_that_may_have_it_is_away() -> None:
    """A partition that moves is back within seconds. One that is lost is not waited for."""

    async def play() -> None:
        admin = MemoryAdmin(lost_partition={TOPIC.pulsar})
        admin.make(TOPIC.pulsar, 1)
        clock = asyncio.get_running_loop().time
        topics = Catalog(admin, TopicNames("public/default", "public/__kafka"), clock)  # type: ignore[arg-type]
        with pytest.raises(Unavailable):
            await topics.find_by_id(uuid.UUID(int=4))
        await asyncio.sleep(MOVE_SECONDS)
        assert await topics.find_by_id(uuid.UUID(int=4)) is None
        await topics.close()

    in_virtual_time(play())


async def test_a_regular_expression_of_another_namespace_matches_the_short_names_there() -> None:
    admin = MemoryAdmin()
    for topic in (
        "persistent://public/default/orders",
        "persistent://team/sales/orders",
        "persistent://team/sales/returns",
    ):
        admin.make(topic, 1)
    source = Catalog(admin, TopicNames("public/default", "public/__kafka"), Clock())  # type: ignore[arg-type]
    image = image_of(source)
    scoped = "persistent://team/sales/:^o.*"
    await image.learn(RequiredTopics(frozenset(), frozenset({scoped, "o.*"})))
    assert image.matching(scoped) == {"persistent://team/sales/orders"}
    assert image.matching("o.*") == {"orders"}


async def test_an_id_is_looked_for_in_the_namespaces_of_neighbours_too() -> None:
    admin = MemoryAdmin()
    admin.make("persistent://team/sales/orders", 1)
    neighbour = Catalog(admin, TopicNames("team/sales", "public/__kafka"), Clock())  # type: ignore[arg-type]
    orders = await neighbour.find(TopicName("team", "sales", "orders"))
    topics = Catalog(admin, TopicNames("public/default", "public/__kafka"), Clock())  # type: ignore[arg-type]
    assert await topics.find_by_id(orders.topic_id) is None
    for namespace in ("public/default", "team/sales"):
        topics.has_neighbour(namespace)
    assert await topics.find_by_id(orders.topic_id) == orders.name
