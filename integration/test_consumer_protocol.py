"""The consumer group protocol (KIP-848): Java and librdkafka, regular expressions, static members, and the move from
classic and back.
"""

from __future__ import annotations

import re

from confluent_kafka import ConsumerGroupType
from confluent_kafka.admin import AdminClient

from integration.conftest import Cluster
from integration.kafka_clients import create, produce
from integration.launcher.kafka import java_tool
from integration.members import NEW_PROTOCOL, java_member, member, offsets, tool
from integration.patience import wait_for

CONSUMER = ("--group-protocol", "consumer")
EVERYBODY_SECONDS = 60


def fill(cluster: Cluster, topic: str, partitions: int, count: int = 50) -> None:
    create(cluster.kafka, topic, partitions)
    for partition in range(partitions):
        produce(cluster.kafka, topic, [b"x"] * count, partition=partition)


def described(cluster: Cluster, group: str) -> str:
    return tool(cluster, "--describe", "--group", group, "--state")


def test_librdkafka_members_come_and_go(cluster: Cluster, topic: str) -> None:
    fill(cluster, topic, 6)
    group = f"g-{topic}"
    with member(cluster.kafka, group, topic, NEW_PROTOCOL) as first:
        wait_for(lambda: len(first.assigned) == 6)
        with member(cluster.kafka, group, topic, NEW_PROTOCOL) as second:
            wait_for(lambda: len(first.assigned) == 3 and len(second.assigned) == 3)
            assert first.revocations == 3
            assert first.assigned.isdisjoint(second.assigned)
        wait_for(lambda: len(first.assigned) == 6)
        wait_for(lambda: len({*first.read, *second.read}) == 300)
    assert sum(offsets(tool(cluster, "--describe", "--group", group)).values()) == 300


def test_a_group_goes_on_where_it_was(cluster: Cluster, topic: str) -> None:
    fill(cluster, topic, 2, 100)
    group = f"g-{topic}"
    with member(cluster.kafka, group, topic, NEW_PROTOCOL) as first:
        wait_for(lambda: len(first.read) == 200)
    for partition in range(2):
        produce(cluster.kafka, topic, [b"y"] * 10, partition=partition)
    with member(cluster.kafka, group, topic, NEW_PROTOCOL) as second:
        wait_for(lambda: len(second.read) == 20)
    assert sorted(second.read) == [(partition, offset) for partition in range(2) for offset in range(100, 110)]


def test_java_members_share_and_their_group_is_described(cluster: Cluster, topic: str) -> None:
    fill(cluster, topic, 4)
    group = f"g-{topic}"
    with java_member(cluster.kafka, group, topic, *CONSUMER) as first:
        wait_for(lambda: first.consumed == 200, EVERYBODY_SECONDS)
        with java_member(cluster.kafka, group, topic, *CONSUMER, "--group-remote-assignor", "range") as second:
            wait_for(lambda: len(first.assigned) == len(second.assigned) == 2, EVERYBODY_SECONDS)
            assert first.assigned.isdisjoint(second.assigned)
            assert first.revocations == 2
            assert re.search(rf"{group}\s+.*range\s+Stable\s+2", described(cluster, group)), (
                "the only one that is asked for"
            )
            shown = tool(cluster, "--describe", "--group", group, "--members", "--verbose")
            assert len(re.findall(rf"^{group}\s", shown, re.MULTILINE)) == 2
            assert re.search(rf"{group}\s+Consumer", tool(cluster, "--list", "--type", "consumer"))
            assert group not in tool(cluster, "--list", "--type", "classic")
        wait_for(lambda: len(first.assigned) == 4, EVERYBODY_SECONDS)
        assert not first.failures
    assert sum(offsets(tool(cluster, "--describe", "--group", group)).values()) == 200
    assert "successful" in tool(cluster, "--delete", "--group", group)
    assert group not in tool(cluster, "--list")


def test_verifiable_producer_and_consumer(cluster: Cluster, topic: str) -> None:
    create(cluster.kafka, topic, 3)
    written = java_tool(
        "org.apache.kafka.tools.VerifiableProducer",
        "--bootstrap-server",
        cluster.kafka,
        "--topic",
        topic,
        "--max-messages",
        "500",
    )
    assert written.stdout.count("producer_send_success") == 500, written.stdout[-500:] + written.stderr[-500:]
    read = java_tool(
        "org.apache.kafka.tools.VerifiableConsumer",
        "--bootstrap-server",
        cluster.kafka,
        "--topic",
        topic,
        "--group-id",
        f"g-{topic}",
        "--max-messages",
        "500",
        *CONSUMER,
    )
    assert '"name":"offsets_committed"' in read.stdout, read.stdout[-500:] + read.stderr[-500:]
    assert sum(offsets(tool(cluster, "--describe", "--group", f"g-{topic}")).values()) == 500


def test_a_static_member_comes_back_to_its_partitions(cluster: Cluster, topic: str) -> None:
    create(cluster.kafka, topic, 4)
    group = f"g-{topic}"
    with member(cluster.kafka, group, topic, NEW_PROTOCOL | {"group.instance.id": "a"}) as first:
        with member(cluster.kafka, group, topic, NEW_PROTOCOL | {"group.instance.id": "b"}) as second:
            wait_for(lambda: len(first.assigned) == 2 and len(second.assigned) == 2)
            had, revoked = set(second.assigned), first.revocations
        with member(cluster.kafka, group, topic, NEW_PROTOCOL | {"group.instance.id": "b"}) as again:
            wait_for(lambda: again.assigned == had)
        assert first.revocations == revoked


def test_a_regular_expression_finds_topics_that_come_later(cluster: Cluster, topic: str) -> None:
    fill(cluster, f"{topic}-one", 2)
    group = f"g-{topic}"
    with member(cluster.kafka, group, f"^{topic}-.*", NEW_PROTOCOL) as one:
        wait_for(lambda: len(one.read) == 100)
        fill(cluster, f"{topic}-two", 1)
        wait_for(lambda: len(one.read) == 150, EVERYBODY_SECONDS)


def test_partitions_that_are_added_are_assigned(cluster: Cluster, topic: str) -> None:
    from confluent_kafka.admin import NewPartitions

    fill(cluster, topic, 1)
    admin = AdminClient({"bootstrap.servers": cluster.kafka})
    with member(cluster.kafka, f"g-{topic}", topic, NEW_PROTOCOL) as one:
        wait_for(lambda: len(one.read) == 50)
        admin.create_partitions([NewPartitions(topic, 3)])[topic].result(20)
        wait_for(lambda: one.assigned == {0, 1, 2}, EVERYBODY_SECONDS)


def kind(cluster: Cluster, group: str) -> ConsumerGroupType | None:
    admin = AdminClient({"bootstrap.servers": cluster.kafka})
    listed = admin.list_consumer_groups().result().valid
    return next((one.type for one in listed if one.group_id == group), None)


def test_a_group_moves_to_the_new_protocol_and_back_member_by_member(cluster: Cluster, topic: str) -> None:
    """As an operator rolls an application: one process at a time, and back again."""
    fill(cluster, topic, 4)
    group = f"g-{topic}"
    with member(cluster.kafka, group, topic, {"partition.assignment.strategy": "cooperative-sticky"}) as old:
        wait_for(lambda: len(old.read) == 200)
        assert kind(cluster, group) is ConsumerGroupType.CLASSIC
        with member(cluster.kafka, group, topic, NEW_PROTOCOL) as new:
            wait_for(lambda: len(old.assigned) == 2 and len(new.assigned) == 2, EVERYBODY_SECONDS)
            assert kind(cluster, group) is ConsumerGroupType.CONSUMER
            assert old.assigned.isdisjoint(new.assigned)
            for partition in range(4):
                produce(cluster.kafka, topic, [b"y"] * 10, partition=partition)
            wait_for(lambda: len({*old.read, *new.read}) == 240)
        wait_for(lambda: len(old.assigned) == 4, EVERYBODY_SECONDS)
        assert kind(cluster, group) is ConsumerGroupType.CLASSIC
        for partition in range(4):
            produce(cluster.kafka, topic, [b"z"] * 10, partition=partition)
        wait_for(lambda: len({*old.read, *new.read}) == 280)
        assert old.lost == 0, "it was asked to join again each time, and has committed before"
        assert len([*old.read, *new.read]) == 280, "nothing was read twice"
    assert offsets(tool(cluster, "--describe", "--group", group)) == dict.fromkeys(range(4), 70)


def test_java_moves_to_the_new_protocol_and_back(cluster: Cluster, topic: str) -> None:
    fill(cluster, topic, 4)
    group = f"g-{topic}"
    with java_member(cluster.kafka, group, topic) as old:
        wait_for(lambda: old.consumed == 200, EVERYBODY_SECONDS)
        with java_member(cluster.kafka, group, topic, *CONSUMER) as new:
            wait_for(lambda: len(old.assigned) == len(new.assigned) == 2, EVERYBODY_SECONDS)
            assert kind(cluster, group) is ConsumerGroupType.CONSUMER
            assert old.assigned.isdisjoint(new.assigned)
        wait_for(lambda: len(old.assigned) == 4, EVERYBODY_SECONDS)
        assert kind(cluster, group) is ConsumerGroupType.CLASSIC
        assert not old.failures
