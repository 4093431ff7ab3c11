"""Batches that no consumer is given: every client steps over them, however many there are and wherever they stand."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka import TopicPartition as AioPartition
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from kafka import KafkaConsumer
from kafka import TopicPartition as PyPartition

from integration.conftest import Cluster
from integration.kafka_clients import consumer, create, produce
from integration.launcher.programs import ProgramMember, skip_without
from integration.members import java_member, offsets, tool
from integration.patience import LONG, wait_for
from kafka_sidecar.loop.ids import WRITER_PREFIX
from kafka_sidecar.partition.fold.fold import BEFORE_ALL
from kafka_sidecar.partition.log.basis import BASIS_PROPERTY, Basis
from kafka_sidecar.partition.log.formats import KAFKA
from kafka_sidecar.pulsar.client import PulsarClient
from tests.contract.case import Scribe
from tests.support.batches import batch

COPIES: Final = 50
LARGE: Final = 1_000
# One of them stands in a transaction that is aborted.
RECORDS: Final = 1 + 5 + 1 + LARGE + 5 + 1
ISOLATION: Final = pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])


async def _write_copies(cluster: Cluster, topic: str, values: Sequence[bytes], copies: int) -> None:
    """A batch, and as many copies of it, as they come about when retries go through sidecars that don't know of each
    other.

    Each is stored before the next is sent, so a consumer that waits at the end gets answers that hold nothing but
    copies.
    """
    client = PulsarClient(cluster.pulsar_url)
    receipts = Scribe()
    writer = await client.producer(
        f"persistent://public/default/{topic}-partition-0", f"{WRITER_PREFIX}{uuid.uuid4()}", receipts
    )
    data = batch(*values, producer_id=uuid.uuid4().int >> 66, epoch=0, sequence=0)
    for sequence in range(1 + copies):
        writer.send(sequence, len(values), KAFKA.fields, data, (BASIS_PROPERTY, Basis(BEFORE_ALL).encode()))
        await receipts.receipt(sequence)
    writer.close()
    await client.close()


def _fill(cluster: Cluster, topic: str) -> tuple[list[int], int]:
    """The offsets that have records, and which one of them is of an aborted transaction."""
    address = cluster.kafka
    create(address, topic)
    asyncio.run(_write_copies(cluster, topic, [b"first"], COPIES))
    found = [0]
    found += [ack.offset for ack in produce(address, topic, [b"between"] * 5)]
    writer = Producer({"bootstrap.servers": address, "transactional.id": topic, "linger.ms": 0})
    told: list[int] = []
    writer.init_transactions(60)
    writer.begin_transaction()
    writer.produce(topic, b"aborted", partition=0, on_delivery=lambda _, message: told.append(message.offset() or 0))
    writer.flush(LONG)
    begin = told[0] + 1
    asyncio.run(_write_copies(cluster, topic, [b"large"] * LARGE, 1))
    writer.abort_transaction(60)
    found += [told[0], *range(begin, begin + LARGE)]
    found += [ack.offset for ack in produce(address, topic, [b"behind"] * 5)]
    asyncio.run(_write_copies(cluster, topic, [b"last"], COPIES))
    found.append(found[-1] + 1)
    assert len(found) == RECORDS
    return found, told[0]


class Topic:
    def __init__(self, cluster: Cluster, name: str) -> None:
        self.cluster = cluster
        self.name = name
        self.offsets, self.aborted = _fill(cluster, name)

    @property
    def committed(self) -> list[int]:
        return [offset for offset in self.offsets if offset != self.aborted]

    def given(self, isolation: str) -> list[int]:
        """The offsets whose records a consumer gets."""
        return self.committed if isolation == "read_committed" else self.offsets

    def write_copies_at_the_end(self) -> int:
        """A record, and copies of it that its reader has to step over; the end then."""
        asyncio.run(_write_copies(self.cluster, self.name, [b"late"], COPIES))
        self.offsets.append(self.offsets[-1] + COPIES + 1)
        return self.offsets[-1] + COPIES + 1

    def append(self) -> int:
        """One more record, behind copies; the end then."""
        end = self.write_copies_at_the_end()
        (ack,) = produce(self.cluster.kafka, self.name, [b"end"])
        assert ack.offset == end
        self.offsets.append(ack.offset)
        return end + 1


@pytest.fixture
def filled(cluster: Cluster, topic: str) -> Topic:
    return Topic(cluster, topic)


@ISOLATION
def test_librdkafka_steps_over_them_and_asks_for_no_more_bytes_than_before(filled: Topic, isolation: str) -> None:
    lines: list[str] = []

    class Lines(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(record.getMessage())

    logger = logging.getLogger(f"librdkafka.{filled.name}")
    logger.propagate = False
    logger.setLevel(logging.DEBUG)
    logger.addHandler(Lines())
    settings: dict[str, Any] = {
        "isolation.level": isolation,
        "debug": "fetch",
        "log_level": 7,
        "enable.partition.eof": True,
    }
    reader = Consumer({"bootstrap.servers": filled.cluster.kafka, "group.id": filled.name, **settings}, logger=logger)
    reader.assign([TopicPartition(filled.name, 0, 0)])
    found: list[int] = []
    ends: list[int] = []

    def has_reached(end: int) -> bool:
        """Whether librdkafka has said that it has come to this end."""
        for message in reader.consume(2_000, 0.2):
            error = message.error()
            if error is None:
                found.append(message.offset() or 0)
            elif error.code() == KafkaError._PARTITION_EOF:
                ends.append(message.offset() or 0)
        return end in ends

    wait_for(lambda: has_reached(filled.offsets[-1] + COPIES + 1))
    end = filled.append()
    wait_for(lambda: has_reached(end))
    reader.close()
    assert found == filled.given(isolation)
    assert any("Fetch topic" in line for line in lines)
    assert not [line for line in lines if "ncreasing max fetch bytes" in line]


@ISOLATION
def test_javas_consumer_reads_and_commits_to_the_end(filled: Topic, isolation: str, tmp_path: Path) -> None:
    (settings := tmp_path / "consumer.properties").write_text(f"isolation.level={isolation}\n")
    expected = len(filled.offsets) + 2 - (isolation == "read_committed")
    group = f"g-{filled.name}"
    options = ("--reset-policy", "earliest", "--command-config", str(settings))
    with java_member(filled.cluster.kafka, group, filled.name, *options) as one:
        wait_for(lambda: one.consumed >= expected - 2)
        end = filled.append()
        wait_for(lambda: one.consumed >= expected)
    assert one.consumed == expected
    assert offsets(tool(filled.cluster, "--describe", "--group", group)) == {0: end}


@ISOLATION
async def test_aiokafka_comes_to_the_end(filled: Topic, isolation: str) -> None:
    reader = AIOKafkaConsumer(
        bootstrap_servers=filled.cluster.kafka, isolation_level=isolation, enable_auto_commit=False
    )
    await reader.start()
    place = AioPartition(filled.name, 0)
    reader.assign([place])
    await reader.seek_to_beginning()
    found: list[int] = []
    async with asyncio.timeout(60):
        while len(found) < len(filled.given(isolation)):
            found += [
                record.offset for records in (await reader.getmany(timeout_ms=1_000)).values() for record in records
            ]
        await asyncio.to_thread(filled.append)
        while len(found) < len(filled.given(isolation)):
            found += [
                record.offset for records in (await reader.getmany(timeout_ms=1_000)).values() for record in records
            ]
    await reader.stop()
    assert found == filled.given(isolation)


@ISOLATION
def test_kafka_python_comes_to_the_end(filled: Topic, isolation: str) -> None:
    reader = KafkaConsumer(bootstrap_servers=filled.cluster.kafka, enable_auto_commit=False, isolation_level=isolation)
    place = PyPartition(filled.name, 0)
    reader.assign([place])
    reader.seek(place, 0)
    found: list[int] = []

    def has_all() -> bool:
        found.extend(record.offset for records in reader.poll(500).values() for record in records)
        return len(found) >= len(filled.given(isolation))

    wait_for(has_all)
    filled.append()
    wait_for(has_all)
    reader.close()
    assert found == filled.given(isolation)


@ISOLATION
@pytest.mark.parametrize("client", ["kafkajs", "sarama", "franz"])
def test_clients_of_other_languages_come_to_the_end(filled: Topic, client: str, isolation: str) -> None:
    skip_without(client)
    one = ProgramMember(client, filled.cluster.kafka, f"g-{filled.name}", filled.name, isolation)
    try:
        wait_for(lambda: len(one.read) >= len(filled.given(isolation)))
        end = filled.append()
        wait_for(lambda: (0, end - 1) in one.read)
    finally:
        one.stop()
    assert sorted(one.read) == [(0, offset) for offset in filled.given(isolation)]
    assert not one.failures


@pytest.mark.parametrize("client", ["kafkajs", "sarama", "franz"])
def test_a_log_of_nothing_else_is_stepped_over(cluster: Cluster, topic: str, client: str) -> None:
    """What a retry doubled is left, and the record itself is deleted."""
    skip_without(client)
    create(cluster.kafka, topic)
    asyncio.run(_write_copies(cluster, topic, [b"deleted"], COPIES))
    admin = AdminClient({"bootstrap.servers": cluster.kafka})
    (deleted,) = admin.delete_records([TopicPartition(topic, 0, 1)]).values()
    assert deleted.result(30).low_watermark == 1
    one = ProgramMember(client, cluster.kafka, f"g-{topic}", topic)
    found: list[int] = []
    reader = consumer(cluster.kafka)
    reader.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    try:
        wait_for(lambda: one.assigned == {0})
        (ack,) = produce(cluster.kafka, topic, [b"end"])
        assert ack.offset == COPIES + 1
        wait_for(lambda: one.read == [(0, ack.offset)])
        while not found:
            message = reader.poll(1)
            if message is not None and message.error() is None:
                found.append(message.offset() or 0)
    finally:
        one.stop()
        reader.close()
    assert found == [ack.offset]
    assert not one.failures


def test_kafkajs_moves_on_where_an_answer_holds_nothing_else(filled: Topic) -> None:
    skip_without("kafkajs")
    one = ProgramMember("kafkajs", filled.cluster.kafka, f"g-{filled.name}", filled.name)
    try:
        wait_for(lambda: len(one.read) >= len(filled.committed))
        end = filled.write_copies_at_the_end()
        wait_for(lambda: one.positions.get(0) == end)
    finally:
        one.stop()
    assert not one.failures
