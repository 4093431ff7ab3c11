"""Sidecars of two teams, each with its own `kafka.namespace`, share the namespace of groups: `orders` is another topic
for each.
"""

from __future__ import annotations

import asyncio
import json
import struct
import uuid
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import OFFSET_INVALID, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient

from integration.conftest import new_topic
from integration.kafka_clients import (
    QUIET,
    consumer,
    create,
    produce,
    read,
    transactional_producer,
    write_in_a_transaction,
)
from integration.launcher.pulsar import Standalone
from integration.launcher.sidecar import SidecarProcess
from integration.patience import wait_for
from integration.support import admin
from kafka_sidecar.coordination.candidate import NAMESPACE
from kafka_sidecar.groups.records import OffsetCommitKey, OffsetCommitValue, write_key, write_value
from kafka_sidecar.groups.service import SUBSCRIPTION
from kafka_sidecar.pulsar.client import PulsarClient
from kafka_sidecar.pulsar.entry import RawEntry
from kafka_sidecar.pulsar.errors import PulsarError
from kafka_sidecar.pulsar.events import ConsumerEvents
from kafka_sidecar.pulsar.messages import write_batch
from tests.contract.case import Scribe

GROUPS = "public/of-two-teams"
TEAM = "public/team"
FOREVER = json.dumps({"retentionTimeInMinutes": -1, "retentionSizeInMB": -1}).encode()
READ_COMMITTED: dict[str, Any] = {"isolation.level": "read_committed"}


@pytest.fixture(scope="module")
def teams(fleet_broker: Standalone, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[SidecarProcess]]:
    admin("PUT", f"{fleet_broker.admin_url}/admin/v2/namespaces/{TEAM}")
    admin("POST", f"{fleet_broker.admin_url}/admin/v2/namespaces/{TEAM}/retention", FOREVER)
    sidecars = [
        SidecarProcess(
            tmp_path_factory.mktemp("team"),
            fleet_broker.url,
            fleet_broker.admin_url,
            groups__namespace=GROUPS,
            kafka__namespace=namespace,
        )
        for namespace in ("public/default", TEAM)
    ]
    for sidecar in sidecars:
        sidecar.start()
        _stand_for_election(sidecar)  # the first one leads all, and says what short names mean
    yield sidecars
    for sidecar in sidecars:
        assert sidecar.stop() == 0
        assert not sidecar.complaints()


def _stand_for_election(sidecar: SidecarProcess) -> None:
    transactional_producer(sidecar.address, f"nothing {sidecar.port}")
    _committed(sidecar, "nothing")


def _have_a_transaction(sidecar: SidecarProcess, topic: str, value: bytes, *, commit: bool = True) -> None:
    client = transactional_producer(sidecar.address, f"{topic} {sidecar.port}")
    write_in_a_transaction(client, topic, value, commit=commit)


def _commit(sidecar: SidecarProcess, topic: str, offset: int) -> None:
    client = consumer(sidecar.address, **{"group.id": f"group of {topic}"})
    client.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
    client.close()


def _committed(sidecar: SidecarProcess, topic: str) -> int:
    return _offset(sidecar, f"group of {topic}", topic)


def _offset(sidecar: SidecarProcess, group: str, topic: str) -> int:
    client = consumer(sidecar.address, **{"group.id": group})
    (found,) = client.committed([TopicPartition(topic, 0)], 60)
    client.close()
    return int(found.offset)


def _consumed(sidecar: SidecarProcess, subscription: str, count: int, **settings: str) -> set[bytes]:
    client = consumer(sidecar.address, **{"group.id": new_topic(), "auto.offset.reset": "earliest", **settings})
    client.subscribe([subscription])
    found: set[bytes] = set()

    def has_all() -> bool:
        message = client.poll(0.5)
        if message is not None and message.error() is None:
            found.add(message.value())
        return len(found) >= count

    wait_for(has_all)
    client.close()
    return found


def _hand_over(sidecars: list[SidecarProcess], to: int) -> None:
    """Until that one coordinates all."""
    leaves = sidecars[1 - to]
    led = leaves.shards_led()
    assert leaves.stop() == 0
    wait_for(lambda: sidecars[to].shards_led() >= led)
    leaves.start()
    _stand_for_election(leaves)


@pytest.mark.parametrize("leader", [0, 1])
def test_each_has_its_own_topics_whoever_coordinates(teams: list[SidecarProcess], leader: int) -> None:
    topic = new_topic()
    for number, sidecar in enumerate(teams):
        create(sidecar.address, topic)
        produce(sidecar.address, topic, [b"first of %d" % number])
        _commit(sidecar, topic, 10 + number)
    _hand_over(teams, leader)
    for number, sidecar in enumerate(teams):
        _have_a_transaction(sidecar, topic, b"aborted of %d" % number, commit=False)
        _have_a_transaction(sidecar, topic, b"committed of %d" % number)
    _hand_over(teams, 1 - leader)
    for number, sidecar in enumerate(teams):
        mine = {b"first of %d" % number, b"committed of %d" % number}
        assert {record.value for record in read(sidecar.address, topic, 2, **READ_COMMITTED)} == mine
        assert _committed(sidecar, topic) == 10 + number
        for protocol in ("classic", "consumer"):
            assert _consumed(sidecar, topic, 2, **{"group.protocol": protocol}) == mine
            assert _consumed(sidecar, f"^{topic}$", 2, **{"group.protocol": protocol}) == mine


@pytest.mark.parametrize("of", [0, 1])
def test_members_of_both_protocols_share_the_topic_of_their_own_sidecar(teams: list[SidecarProcess], of: int) -> None:
    """A group goes over to the new protocol member by member. The first sidecar leads."""
    _hand_over(teams, 0)
    topic = new_topic()
    for sidecar in teams:
        create(sidecar.address, topic, 2)
    settings = {"group.id": f"both of {topic}", "auto.offset.reset": "earliest"}
    members = [
        consumer(teams[of].address, **settings, **{"group.protocol": protocol}) for protocol in ("classic", "consumer")
    ]
    found: list[bytes] = []

    def polled() -> list[list[int]]:
        """What each member owns now."""
        for member in members:
            message = member.poll(0.1)
            if message is not None and message.error() is None:
                found.append(message.value())
        return [[one.partition for one in member.assignment()] for member in members]

    members[0].subscribe([topic])
    wait_for(lambda: sorted(polled()[0]) == [0, 1])
    members[1].subscribe([topic])
    wait_for(lambda: sorted(polled()) == [[0], [1]])
    values = {b"%d of %d" % (number, partition) for partition in range(2) for number in range(20)}
    for partition in range(2):
        produce(
            teams[of].address,
            topic,
            sorted(value for value in values if value.endswith(b"%d" % partition)),
            partition=partition,
        )
    wait_for(lambda: bool(polled()) and len(found) >= len(values))
    for member in members:
        member.close()
    assert len(found) == len(values)
    assert set(found) == values


def test_a_sidecar_that_coordinates_nothing_is_known_to_all_of_the_other_team(
    fleet_broker: Standalone, teams: list[SidecarProcess], tmp_path: Path
) -> None:
    """The leader of a group is a client of that one, another member is a client of a third sidecar, which has not heard
    of the first.
    """
    topic, groups = new_topic(), "public/of-a-visitor"

    def sidecar(name: str, namespace: str, **settings: Any) -> SidecarProcess:
        return SidecarProcess(
            tmp_path / name,
            fleet_broker.url,
            fleet_broker.admin_url,
            groups__namespace=groups,
            kafka__namespace=namespace,
            **settings,
        )

    coordinator, third = sidecar("coordinator", TEAM), sidecar("third", TEAM)
    visitor = sidecar("visitor", "public/default", groups__coordinate="false")
    for started in (coordinator, visitor, third):
        started.start()
        _stand_for_election(started)
    create(coordinator.address, topic, 4)
    create(visitor.address, topic, 2)
    members = [consumer(one.address, **{"group.id": f"of {topic}"}) for one in (visitor, third)]

    def owned() -> list[list[int]]:
        for member in members:
            member.poll(0.1)
        return [sorted(one.partition for one in member.assignment()) for member in members]

    members[0].subscribe([topic])
    wait_for(lambda: owned()[0] == [0, 1])
    members[1].subscribe([topic])
    wait_for(lambda: owned() == [[0, 1], [0, 1, 2, 3]])
    for member in members:
        member.close()
    for started in (coordinator, third, visitor):
        assert started.stop() == 0
        assert not started.complaints()


def test_what_one_deletes_is_forgotten_of_its_own_topic_alone(teams: list[SidecarProcess]) -> None:
    topic = new_topic()
    for number, sidecar in enumerate(teams):
        create(sidecar.address, topic)
        _commit(sidecar, topic, 20 + number)
    client = AdminClient({"bootstrap.servers": teams[1].address, **QUIET})
    (deleted,) = client.delete_topics([topic]).values()
    deleted.result(60)
    create(teams[1].address, topic)
    assert [_committed(sidecar, topic) for sidecar in teams] == [20, -1001]


class Candidate(ConsumerEvents):
    """One that is never elected."""

    def on_entry(self, entry: RawEntry) -> None:
        raise AssertionError

    def on_end(self, reason: PulsarError) -> None:
        """It has closed, or its broker has."""


def _topic_id(sidecar: SidecarProcess, topic: str) -> uuid.UUID:
    client = AdminClient({"bootstrap.servers": sidecar.address, **QUIET})
    described = client.describe_topics(TopicCollection([topic]))[topic].result(60).topic_id
    return uuid.UUID(
        bytes=struct.pack(">qq", described.get_most_significant_bits(), described.get_least_significant_bits())
    )


async def _store_as_before(
    client: PulsarClient, partition: str, topic: str, offsets: Mapping[str, OffsetCommitValue]
) -> None:
    """As a sidecar of 0.2 has stored them for groups of its own topic, under a short name."""
    events = Scribe()
    producer = await client.producer(partition, "of a sidecar before", events)
    messages = [(write_key(OffsetCommitKey(group, topic, 0)), write_value(value)) for group, value in offsets.items()]
    producer.send_batch(0, len(messages), write_batch(messages, 1))
    await events.receipt(0)
    producer.close()


async def test_who_leads_the_log_of_others_first_does_not_take_their_topics_for_its_own(
    teams: list[SidecarProcess], fleet_broker: Standalone, tmp_path: Path
) -> None:
    """A team adds its first sidecar while the other team's, of 0.2, are still there."""
    namespace, topic = f"public/newcomer-{new_topic()}", new_topic()
    for sidecar in teams:
        create(sidecar.address, topic)
    path = f"{fleet_broker.admin_url}/admin/v2"
    admin("PUT", f"{path}/namespaces/{namespace}")
    admin("POST", f"{path}/namespaces/{namespace}/retention", FOREVER)
    admin("PUT", f"{path}/persistent/{namespace}/__consumer_offsets/partitions", b"1")
    partition = f"persistent://{namespace}/__consumer_offsets-partition-0"
    known, unknown = (
        OffsetCommitValue(42, -1, "", 1, -1, _topic_id(teams[1], topic)),
        OffsetCommitValue(43, -1, "", 1, -1),
    )
    newcomer, team = (
        SidecarProcess(
            tmp_path / where.replace("/", "-"),
            fleet_broker.url,
            fleet_broker.admin_url,
            groups__namespace=namespace,
            kafka__namespace=where,
        )
        for where in ("public/default", TEAM)
    )
    client = PulsarClient(fleet_broker.url)
    await _store_as_before(client, partition, topic, {"known": known, "unknown": unknown})
    before = await client.candidate(
        partition, SUBSCRIPTION, "before", 2**31 - 1, Candidate(), {NAMESPACE.encode(): TEAM.encode()}
    )

    def lead_in_turn() -> None:
        newcomer.start()
        with suppress(KafkaException):  # while it stands for election, the candidate before leads
            _committed(newcomer, "nothing")
        wait_for(lambda: bool(newcomer.shards_led()))
        assert [_offset(newcomer, group, topic) for group in ("known", "unknown")] == [OFFSET_INVALID] * 2
        mine = consumer(newcomer.address, **{"group.id": "unknown"})
        mine.commit(offsets=[TopicPartition(topic, 0, 7)], asynchronous=False)
        mine.close()
        team.start()
        for leader in (0, 1, 0):
            assert [_offset(team, group, topic) for group in ("known", "unknown")] == [42, 43], leader
            assert [_offset(newcomer, group, topic) for group in ("known", "unknown")] == [OFFSET_INVALID, 7], leader
            _hand_over([newcomer, team], 1 - leader)

    await asyncio.to_thread(lead_in_turn)
    before.close()
    await client.close()
    for sidecar in (newcomer, team):
        assert sidecar.stop() == 0
        assert not sidecar.complaints()
