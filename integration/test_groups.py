"""Consumer groups: ordinary consumer applications, with the clients' default settings, and Kafka's own tools."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer
from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from kafka import KafkaConsumer

from integration.conftest import Cluster
from integration.kafka_clients import create, produce
from integration.launcher.kafka import OLDER_VERSIONS, VERSION, java_tool
from integration.launcher.programs import ProgramMember, skip_without
from integration.members import member, offsets, tool
from integration.patience import wait_for

RECORDS = 200


def test_partitions_go_to_members_as_they_come_and_go(cluster: Cluster, topic: str) -> None:
    create(cluster.kafka, topic, 6)
    for partition in range(6):
        produce(cluster.kafka, topic, [b"x"] * 50, partition=partition)
    group = f"g-{topic}"
    with member(cluster.kafka, group, topic) as first:
        wait_for(lambda: len(first.assigned) == 6)
        with member(cluster.kafka, group, topic) as second:
            wait_for(lambda: len(first.assigned) == 3 and len(second.assigned) == 3)
            assert first.assigned | second.assigned == set(range(6))
        wait_for(lambda: len(first.assigned) == 6)
        wait_for(lambda: len({*first.read, *second.read}) == 300)


def test_a_group_goes_on_where_it_was(cluster: Cluster, topic: str) -> None:
    create(cluster.kafka, topic, 2)
    for partition in range(2):
        produce(cluster.kafka, topic, [b"x"] * 100, partition=partition)
    group = f"g-{topic}"
    with member(cluster.kafka, group, topic) as first:
        wait_for(lambda: len(first.read) == 200)
    for partition in range(2):
        produce(cluster.kafka, topic, [b"y"] * 10, partition=partition)
    with member(cluster.kafka, group, topic) as second:
        wait_for(lambda: len(second.read) == 20)
    assert sorted(second.read) == [(partition, offset) for partition in range(2) for offset in range(100, 110)]


def test_a_cooperative_rebalance_takes_only_what_moves(cluster: Cluster, topic: str) -> None:
    create(cluster.kafka, topic, 4)
    settings: dict[str, object] = {"partition.assignment.strategy": "cooperative-sticky"}
    with member(cluster.kafka, f"g-{topic}", topic, settings) as first:
        wait_for(lambda: len(first.assigned) == 4)
        with member(cluster.kafka, f"g-{topic}", topic, settings) as second:
            wait_for(lambda: len(first.assigned) == 2 and len(second.assigned) == 2)
            assert first.revocations == 2
            assert first.assigned.isdisjoint(second.assigned)


def test_a_static_member_comes_back_to_its_partitions_without_a_rebalance(cluster: Cluster, topic: str) -> None:
    create(cluster.kafka, topic, 4)
    settings: dict[str, object] = {"session.timeout.ms": 30_000}
    with member(cluster.kafka, f"g-{topic}", topic, settings | {"group.instance.id": "a"}) as first:
        with member(cluster.kafka, f"g-{topic}", topic, settings | {"group.instance.id": "b"}) as second:
            wait_for(lambda: len(first.assigned) == 2 and len(second.assigned) == 2)
            had, revoked = set(second.assigned), first.revocations
        with member(cluster.kafka, f"g-{topic}", topic, settings | {"group.instance.id": "b"}) as again:
            wait_for(lambda: again.assigned == had)
        assert first.revocations == revoked


def test_who_commits_without_being_a_member_is_kept_apart(cluster: Cluster, topic: str) -> None:
    create(cluster.kafka, topic, 1)
    alone = Consumer({"bootstrap.servers": cluster.kafka, "group.id": f"alone-{topic}", "enable.auto.commit": False})
    alone.assign([TopicPartition(topic, 0)])
    alone.commit(offsets=[TopicPartition(topic, 0, 17, metadata="what I did")], asynchronous=False)
    (kept,) = alone.committed([TopicPartition(topic, 0)], timeout=20)
    assert (kept.offset, kept.metadata) == (17, "what I did")
    with pytest.raises(KafkaException) as refused:
        alone.commit(offsets=[TopicPartition(topic, 0, 18, metadata="x" * 5_000)], asynchronous=False)
    assert refused.value.args[0].name() == "OFFSET_METADATA_TOO_LARGE"
    alone.close()
    group = f"g-{topic}"
    with member(cluster.kafka, group, topic) as first:
        wait_for(lambda: len(first.assigned) == 1)
        stranger = Consumer({"bootstrap.servers": cluster.kafka, "group.id": group, "enable.auto.commit": False})
        stranger.assign([TopicPartition(topic, 0)])
        with pytest.raises(KafkaException) as refused:
            stranger.commit(offsets=[TopicPartition(topic, 0, 5)], asynchronous=False)
        assert refused.value.args[0].name() == "UNKNOWN_MEMBER_ID"
        stranger.close()


async def test_aiokafka_and_kafka_python_and_librdkafka_share_a_group(cluster: Cluster, topic: str) -> None:
    create(cluster.kafka, topic, 6)
    group = f"g-{topic}"
    first = AIOKafkaConsumer(topic, bootstrap_servers=cluster.kafka, group_id=group, auto_offset_reset="earliest")
    await first.start()
    third = KafkaConsumer(topic, bootstrap_servers=cluster.kafka, group_id=group, auto_offset_reset="earliest")
    polling = True

    def poll() -> None:
        while polling:
            third.poll(timeout_ms=100)
        third.close()

    running = asyncio.get_running_loop().run_in_executor(None, poll)
    with member(cluster.kafka, group, topic, {"partition.assignment.strategy": "range,roundrobin"}) as second:
        for _ in range(600):
            given = [
                {tp.partition for tp in first.assignment()},
                set(second.assigned),
                {tp.partition for tp in third.assignment() or ()},
            ]
            if all(len(one) == 2 for one in given) and set.union(*given) == set(range(6)):
                break
            await asyncio.sleep(0.05)
        else:
            pytest.fail(f"the partitions did not fan_out: {given}")
        polling = False
        await running
        await first.stop()


def test_spark_s_and_everybody_s_offsets_are_listed_and_deleted(cluster: Cluster, topic: str) -> None:
    create(cluster.kafka, topic, 1)
    produce(cluster.kafka, topic, [b"x"] * 10)
    group = f"g-{topic}"
    with member(cluster.kafka, group, topic) as one:
        wait_for(lambda: len(one.read) == 10)
        admin = AdminClient({"bootstrap.servers": cluster.kafka})
        described = admin.describe_consumer_groups([group])[group].result(20)
        assert described.state.name == "STABLE"
        assert len(described.members) == 1
        with pytest.raises(KafkaException) as refused:
            admin.delete_consumer_groups([group])[group].result(20)
        assert refused.value.args[0].name() == "NON_EMPTY_GROUP"
    listed = {one.group_id for one in admin.list_consumer_groups().result().valid}
    assert group in listed
    admin.delete_consumer_groups([group])[group].result(20)
    assert group not in {one.group_id for one in admin.list_consumer_groups().result().valid}


def test_kafka_consumer_groups_does_all_it_can(cluster: Cluster, topic: str, tmp_path: Path) -> None:
    create(cluster.kafka, topic, 2)
    for partition in range(2):
        produce(cluster.kafka, topic, [b"x"] * 100, partition=partition)
    group = f"g-{topic}"
    with member(cluster.kafka, group, topic) as one:
        wait_for(lambda: len(one.read) == 200)
        assert group in tool(cluster, "--list")
        assert re.search(rf"{group}\s+Stable", tool(cluster, "--list", "--state", "stable"))
        assert re.search(
            rf"{group}\s+\S+\s+\S+\s+rdkafka\s+2", tool(cluster, "--describe", "--group", group, "--members")
        )
        assert re.search(rf"{group}\s+.*Stable\s+1", tool(cluster, "--describe", "--group", group, "--state"))
        assert "is not empty" in tool(cluster, "--delete", "--group", group) or "NonEmpty" in tool(
            cluster, "--delete", "--group", group
        )
    assert offsets(tool(cluster, "--describe", "--group", group)) == {0: 100, 1: 100}
    reset = ("--group", group, "--reset-offsets", "--execute")
    for how, expected in (
        (("--to-earliest", "--topic", topic), {0: 0, 1: 0}),
        (("--to-offset", "40", "--topic", f"{topic}:0"), {0: 40, 1: 0}),
        (("--shift-by", "5", "--all-topics"), {0: 45, 1: 5}),
        (("--to-latest", "--topic", topic), {0: 100, 1: 100}),
        (("--to-datetime", "2020-01-01T00:00:00.000", "--topic", topic), {0: 0, 1: 0}),
        (("--by-duration", "PT0S", "--topic", topic), {0: 100, 1: 100}),
        (("--to-current", "--topic", topic), {0: 100, 1: 100}),
    ):
        tool(cluster, *reset, *how)
        assert offsets(tool(cluster, "--describe", "--group", group)) == expected, how
    plan = tmp_path / "plan.csv"
    plan.write_text(f'"{topic}",0,7\n"{topic}",1,8\n')
    tool(cluster, *reset, "--from-file", str(plan))
    assert offsets(tool(cluster, "--describe", "--group", group)) == {0: 7, 1: 8}
    assert "Successful" in tool(cluster, "--delete-offsets", "--group", group, "--topic", f"{topic}:1")
    assert offsets(tool(cluster, "--describe", "--group", group)) == {0: 7}
    assert "successful" in tool(cluster, "--delete", "--group", group)
    assert group not in tool(cluster, "--list")


@pytest.mark.parametrize("version", [*OLDER_VERSIONS, VERSION])
def test_java_consumers_of_every_age_read_and_commit_as_a_group(cluster: Cluster, topic: str, version: str) -> None:
    create(cluster.kafka, topic, 3)
    for partition in range(3):
        produce(cluster.kafka, topic, [b"x"] * 100, partition=partition)
    read = java_tool(
        "org.apache.kafka.tools.VerifiableConsumer",
        "--bootstrap-server",
        cluster.kafka,
        "--topic",
        topic,
        "--group-id",
        f"g-{topic}",
        "--max-messages",
        "300",
        "--reset-policy",
        "earliest",
        version=version,
    )
    events = [json.loads(line) for line in read.stdout.splitlines() if line.startswith("{")]
    consumed = sum(event["count"] for event in events if event["name"] == "records_consumed")
    committed = [event for event in events if event["name"] == "offsets_committed"]
    assert consumed == 300, read.stdout[-800:] + read.stderr[-800:]
    assert committed
    assert all(event["success"] for event in committed)
    assert sum(offsets(tool(cluster, "--describe", "--group", f"g-{topic}")).values()) == 300


@pytest.mark.parametrize("client", ["kafkajs", "sarama", "franz"])
def test_clients_of_other_languages_share_and_resume(cluster: Cluster, topic: str, client: str) -> None:
    skip_without(client)
    create(cluster.kafka, topic, 4)
    for partition in range(4):
        produce(cluster.kafka, topic, [b"x"] * 50, partition=partition)
    group = f"g-{topic}"
    first = ProgramMember(client, cluster.kafka, group, topic)
    try:
        wait_for(lambda: len(first.assigned) == 4 and len(first.read) >= 200)
        second = ProgramMember(client, cluster.kafka, group, topic)
        try:
            wait_for(lambda: len(first.assigned) == len(second.assigned) == 2)
            assert first.assigned.isdisjoint(second.assigned)
        finally:
            second.stop()
        wait_for(lambda: len(first.assigned) == 4)
    finally:
        first.stop()
    for partition in range(4):
        produce(cluster.kafka, topic, [b"y"] * 5, partition=partition)
    third = ProgramMember(client, cluster.kafka, group, topic)
    try:
        wait_for(lambda: len(third.read) >= 20)
    finally:
        third.stop()
    assert sorted(third.read) == [(partition, offset) for partition in range(4) for offset in range(50, 55)]
    assert not [*first.failures, *third.failures]
