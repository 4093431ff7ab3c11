"""Short words for what the tests do with Kafka clients."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Final

from confluent_kafka import Consumer, IsolationLevel, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

QUIET: Final = {"log_level": 0}
QUEUED: Final = 50_000  # records in a producer: librdkafka refuses more than twice as many
IN_FLIGHT: Final = 5  # requests of an idempotent producer that are under way at once


@dataclass(frozen=True)
class Acked:
    partition: int
    offset: int
    value: bytes


@dataclass(frozen=True)
class Record:
    offset: int
    value: bytes | None
    key: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp: int


def producer(address: str, **settings: Any) -> Producer:
    return Producer({"bootstrap.servers": address, "enable.idempotence": True, **QUIET, **settings})


def transactional_producer(address: str, transactional_id: str) -> Producer:
    client = Producer({"bootstrap.servers": address, "transactional.id": transactional_id, **QUIET})
    client.init_transactions(60)
    return client


def write_in_a_transaction(client: Producer, topic: str, value: bytes, *, commit: bool) -> None:
    client.begin_transaction()
    client.produce(topic, value, partition=0)
    client.flush(60)
    if commit:
        client.commit_transaction(60)
    else:
        client.abort_transaction(60)


def wait_for_room(client: Producer, most: int) -> None:
    """Until fewer than `most` of its records wait for an answer.

    An idempotent producer that has as many requests under way as it may, and another one ready, spins: its thread takes
    a whole core until an answer comes (librdkafka 2.16, whatever server it is). A few such producers starve the server
    that they wait for. A test of many producers, or one that keeps a server away for long, sends no more than is under
    way.
    """
    while len(client) >= most:
        client.poll(0.1)


class Acks:
    """Collects delivery reports."""

    def __init__(self) -> None:
        self.acked: list[Acked] = []
        self.failed: list[str] = []

    def __call__(self, error: Any, message: Any) -> None:
        if error is not None:
            self.failed.append(str(error))
        else:
            self.acked.append(Acked(message.partition(), message.offset(), message.value()))


def produce(
    address: str,
    topic: str,
    values: list[bytes],
    partition: int = 0,
    seconds: float = 60,
    settings: dict[str, Any] | None = None,
    keys: list[bytes] | None = None,
) -> list[Acked]:
    acks = Acks()
    client = producer(address, **(settings or {}))
    for number, value in enumerate(values):
        wait_for_room(client, QUEUED)
        client.produce(topic, value, None if keys is None else keys[number], partition=partition, callback=acks)
        client.poll(0)
    assert client.flush(seconds) == 0
    assert not acks.failed
    return acks.acked


def consumer(address: str, **settings: Any) -> Consumer:
    return Consumer(
        {"bootstrap.servers": address, "group.id": "unused", "enable.auto.commit": False, **QUIET, **settings}
    )


def read(
    address: str, topic: str, count: int, partition: int = 0, offset: int = 0, seconds: float = 120, **settings: Any
) -> list[Record]:
    """`count` records from `offset` on, or as many as come in time."""
    client = consumer(address, **settings)
    client.assign([TopicPartition(topic, partition, offset)])
    found: list[Record] = []
    deadline = time.monotonic() + seconds
    while len(found) < count and time.monotonic() < deadline:
        # `consume` waits until it has as many as it was asked for, so it is asked only for those that are missing.
        for message in client.consume(min(500, count - len(found)), 0.5):
            assert message.error() is None, message.error()
            headers = tuple(message.headers() or ())
            found.append(Record(message.offset(), message.value(), message.key(), headers, message.timestamp()[1]))
    client.close()
    return found


def offset_at(
    admin: AdminClient, at: TopicPartition, which: OffsetSpec, isolation: IsolationLevel, seconds: float = 20
) -> int:
    """Raises KafkaException. (`get_watermark_offsets` passes over an error that comes together with an answer, and says
    0 and 0.)
    """
    (found,) = admin.list_offsets({at: which}, isolation_level=isolation, request_timeout=seconds).values()
    offset = int(found.result().offset)
    if offset < 0:  # where its leader can't be reached, it may have neither an offset nor an error
        raise KafkaException(
            KafkaError(KafkaError.LEADER_NOT_AVAILABLE, f"no offset came for {at.topic}-{at.partition}")
        )
    return offset


def bounds(
    address: str,
    topic: str,
    partition: int = 0,
    seconds: float = 180,
    isolation: IsolationLevel = IsolationLevel.READ_COMMITTED,
) -> tuple[int, int]:
    """Where a partition begins and ends; waits for its leader, as an application's client does."""
    admin = AdminClient({"bootstrap.servers": address, **QUIET})
    at, deadline = TopicPartition(topic, partition), time.monotonic() + seconds
    while True:
        try:
            start, end = (
                offset_at(admin, at, which, isolation) for which in (OffsetSpec.earliest(), OffsetSpec.latest())
            )
            return start, end
        except KafkaException as error:
            if error.args[0].code() != KafkaError.LEADER_NOT_AVAILABLE or time.monotonic() > deadline:
                raise
            time.sleep(0.2)


def create(address: str, topic: str, partitions: int = 1, configs: dict[str, str] | None = None) -> None:
    admin = AdminClient({"bootstrap.servers": address, **QUIET})
    admin.create_topics([NewTopic(topic, partitions, 1, config=configs or {})])[topic].result(30)
