"""Lookup, connections and what is opened on a topic, against a broker that follows a script."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from handler.pulsar import client as client_module
from handler.pulsar import connection as connection_module
from handler.pulsar.client import PulsarClient
from handler.pulsar.entry import Position, RawEntry
from handler.pulsar.errors import Fenced, NotPermitted, PulsarError, Refused, TopicMissing, Unavailable
from handler.pulsar.producer import EXCLUSIVE_WITH_FENCING, WAIT_FOR_EXCLUSIVE
from handler.pulsar.pulsar_api_pb2 import BaseCommand, BrokerEntryMetadata, MessageMetadata
from tests.support.fake_broker import (
    FakeBroker,
    Link,
    error,
    fake_broker,
    looked_up,
    lookup_failed,
    producer_ready,
    receipt,
    success,
)

Type = BaseCommand.Type
TOPIC = "persistent://public/default/t-partition-0"


@dataclass
class Events:
    """What a producer or reader was told."""

    receipts: list[tuple[int, int, int]] = field(default_factory=list)
    errors: list[tuple[int, int]] = field(default_factory=list)
    entries: list[RawEntry] = field(default_factory=list)
    actives: list[bool] = field(default_factory=list)
    ended: list[PulsarError] = field(default_factory=list)
    told: asyncio.Event = field(default_factory=asyncio.Event)

    def on_receipt(self, sequence: int, ledger: int, entry: int) -> None:
        self.receipts.append((sequence, ledger, entry))
        self.told.set()

    def on_send_error(self, sequence: int, code: int, message: str) -> None:
        self.errors.append((sequence, code))
        self.told.set()

    def on_entry(self, entry: RawEntry) -> None:
        self.entries.append(entry)
        self.told.set()

    def on_active(self, active: bool) -> None:
        self.actives.append(active)
        self.told.set()

    def on_end(self, reason: PulsarError) -> None:
        self.ended.append(reason)
        self.told.set()

    async def wait(self) -> None:
        async with asyncio.timeout(5):
            await self.told.wait()
        self.told.clear()


def serves(command: BaseCommand, link: Link, broker: FakeBroker) -> bool:
    """The ordinary answers of the broker that owns every topic; False for what a test answers itself."""
    match command.type:
        case Type.LOOKUP:
            link.send(looked_up(command, broker.url))
        case Type.PRODUCER:
            link.send(producer_ready(command))
        case Type.SUBSCRIBE:
            link.send(success(command.subscribe.request_id))
        case _:
            return False
    return True


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(5):
        while not condition():  # noqa: ASYNC110 - what is waited for happens in the broker's code
            await asyncio.sleep(0.01)


class Fixture:
    """A client and the broker that serves everything, with a hook for the commands a test cares about."""

    def __init__(self) -> None:
        self.broker: Any = None

    def script(self, command: BaseCommand, link: Link) -> None:
        serves(command, link, self.broker)


async def test_a_lookup_follows_redirects_with_the_authority_it_was_told() -> None:
    authority: list[bool] = []

    def asks_elsewhere(command: BaseCommand, link: Link) -> None:
        link.send(looked_up(command, owner.url, redirect=True, authoritative=True))

    def owns(command: BaseCommand, link: Link) -> None:
        if command.type == Type.LOOKUP:
            authority.append(command.lookup_topic.authoritative)
        serves(command, link, owner)

    async with fake_broker(owns) as owner, fake_broker(asks_elsewhere) as first:
        client = PulsarClient(first.url)
        producer = await client.producer(TOPIC, "w", Events())
        assert producer.name == "w"
        assert authority == [True]
        await client.close()


async def test_a_topic_behind_a_proxy_is_reached_through_the_service_url() -> None:
    def proxies(command: BaseCommand, link: Link) -> None:
        if command.type == Type.LOOKUP:
            link.send(looked_up(command, "pulsar://broker-7:6650", through_service=True))
        else:
            serves(command, link, proxy)

    async with fake_broker(proxies) as proxy:
        client = PulsarClient(proxy.url)
        await client.producer(TOPIC, "w", Events())
        targets = [link.connect.connect.proxy_to_broker_url for link in proxy.links]
        assert targets == ["", "broker-7:6650"]
        await client.close()


async def test_the_handshake_promises_what_the_client_can_do() -> None:
    fixture = Fixture()
    async with fake_broker(fixture.script) as broker:
        fixture.broker = broker
        client = PulsarClient(broker.url)
        assert await client.protocol_version() == (21, "fake")
        connect = broker.links[0].connect.connect
        assert connect.protocol_version >= 18
        assert connect.feature_flags.supports_broker_entry_metadata
        await client.close()


async def test_a_lookup_that_fails_for_now_is_asked_again() -> None:
    refusals = [lookup_failed] * 2

    def not_ready_yet(command: BaseCommand, link: Link) -> None:
        if command.type == Type.LOOKUP and refusals:
            link.send(refusals.pop()(command, 6, "ServiceNotReady"))
        else:
            serves(command, link, broker)

    async with fake_broker(not_ready_yet) as broker:
        client = PulsarClient(broker.url)
        await client.producer(TOPIC, "w", Events())
        assert not refusals
        await client.close()


@pytest.mark.parametrize(
    ("code", "message", "kind"), [(11, "", TopicMissing), (4, "no", NotPermitted), (0, "Topic not found: t", TopicMissing)]
)
async def test_a_lookup_that_fails_for_good_is_not(code: int, message: str, kind: type[PulsarError]) -> None:
    def refuses(command: BaseCommand, link: Link) -> None:
        link.send(lookup_failed(command, code, message))

    async with fake_broker(refuses) as broker:
        client = PulsarClient(broker.url)
        with pytest.raises(kind):
            await client.producer(TOPIC, "w", Events())
        assert len(broker.links[0].of_type(Type.LOOKUP)) == 1
        await client.close()


async def test_redirects_in_a_circle_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "LOOKUP_ATTEMPTS", 1)

    def circles(command: BaseCommand, link: Link) -> None:
        link.send(looked_up(command, broker.url, redirect=True))

    async with fake_broker(circles) as broker:
        client = PulsarClient(broker.url)
        with pytest.raises(Unavailable, match="redirected"):
            await client.producer(TOPIC, "w", Events())
        await client.close()


async def test_another_broker_of_the_service_url_is_asked_when_one_is_down() -> None:
    fixture = Fixture()
    async with fake_broker(fixture.script) as broker:
        fixture.broker = broker
        client = PulsarClient("pulsar://127.0.0.1:1," + broker.url.removeprefix("pulsar://"))
        assert (await client.protocol_version())[1] == "fake"
        await client.close()


async def test_writers_and_readers_have_connections_of_their_own() -> None:
    fixture = Fixture()
    async with fake_broker(fixture.script) as broker:
        fixture.broker = broker
        client = PulsarClient(broker.url)
        await client.producer(TOPIC, "w", Events())
        await client.reader(TOPIC, None, Events())
        kinds = [{command.type for command in link.received} & {Type.PRODUCER, Type.SUBSCRIBE} for link in broker.links]
        assert sorted(map(len, kinds)) == [1, 1]
        await client.close()


async def test_receipts_errors_and_the_end_reach_the_producer_they_belong_to() -> None:
    fixture = Fixture()
    async with fake_broker(fixture.script) as broker:
        fixture.broker = broker
        client = PulsarClient(broker.url)
        mine, other = Events(), Events()
        producer = await client.producer(TOPIC, "w", mine)
        await client.producer(TOPIC, "v", other)
        (link,) = (link for link in broker.links if link.of_type(Type.PRODUCER))
        producer_id = link.of_type(Type.PRODUCER)[0].producer.producer_id
        producer.send(7, 3, b"payload")
        await until(lambda: link.of_type(Type.SEND))
        assert link.of_type(Type.SEND)[0].send.num_messages == 3
        link.send(receipt(producer_id, 7, 4, 2))
        await mine.wait()
        assert mine.receipts == [(7, 4, 2)]
        failure = BaseCommand(type=Type.SEND_ERROR)
        failure.send_error.producer_id = producer_id
        failure.send_error.sequence_id = 8
        failure.send_error.error = 9
        failure.send_error.message = "checksum"
        link.send(failure)
        await mine.wait()
        assert mine.errors == [(8, 9)]
        closing = BaseCommand(type=Type.CLOSE_PRODUCER)
        closing.close_producer.producer_id = producer_id
        closing.close_producer.request_id = 2**64 - 1
        link.send(closing)
        await mine.wait()
        assert mine.ended[0].retriable
        link.send(receipt(producer_id, 9, 4, 3))  # for a producer that is gone: nobody's
        link.cut()
        await other.wait()
        assert len(mine.ended) == len(other.ended) == 1
        assert other.receipts == []
        with pytest.raises(Unavailable):
            producer.send(9, 1, b"too late")
        await client.close()


async def test_a_producer_that_waits_for_exclusive_access_gets_two_answers() -> None:
    waiting: list[tuple[BaseCommand, Link]] = []

    def queues(command: BaseCommand, link: Link) -> None:
        if command.type == Type.PRODUCER:
            assert command.producer.producer_access_mode == WAIT_FOR_EXCLUSIVE
            link.send(producer_ready(command, ready=False))
            waiting.append((command, link))
        else:
            serves(command, link, broker)

    async with fake_broker(queues) as broker:
        client = PulsarClient(broker.url)
        opening = asyncio.create_task(client.producer(TOPIC, "w", Events(), access_mode=WAIT_FOR_EXCLUSIVE))
        await until(lambda: waiting)
        await asyncio.sleep(0.05)
        assert not opening.done()
        command, link = waiting[0]
        link.send(producer_ready(command, epoch=5))
        assert (await opening).topic_epoch == 5
        await client.close()


async def test_a_producer_with_an_old_epoch_is_fenced() -> None:
    def fences(command: BaseCommand, link: Link) -> None:
        if command.type == Type.PRODUCER:
            link.send(error(command.producer.request_id, 25, "producer fenced"))
        else:
            serves(command, link, broker)

    async with fake_broker(fences) as broker:
        client = PulsarClient(broker.url)
        with pytest.raises(Fenced):
            await client.producer(TOPIC, "w", Events(), access_mode=EXCLUSIVE_WITH_FENCING, topic_epoch=3)
        await client.close()


async def test_a_failover_consumer_is_told_when_it_is_elected() -> None:
    fixture = Fixture()
    async with fake_broker(fixture.script) as broker:
        fixture.broker = broker
        client = PulsarClient(broker.url)
        events = Events()
        await client.failover(TOPIC, "election", events, {b"address": b"host:9092"})
        (link,) = (link for link in broker.links if link.of_type(Type.SUBSCRIBE))
        subscribe = link.of_type(Type.SUBSCRIBE)[0].subscribe
        assert [(pair.key, pair.value) for pair in subscribe.metadata] == [(b"address", b"host:9092")]
        for active in (True, False):
            change = BaseCommand(type=Type.ACTIVE_CONSUMER_CHANGE)
            change.active_consumer_change.consumer_id = subscribe.consumer_id
            change.active_consumer_change.is_active = active
            link.send(change)
            await events.wait()
        assert events.actives == [True, False]
        await client.close()


def _message(consumer_id: int, *, checksum: bytes | None = None) -> bytes:
    command = BaseCommand(type=Type.MESSAGE)
    command.message.consumer_id = consumer_id
    command.message.message_id.ledger_id = 3
    command.message.message_id.entry_id = 4
    head = command.SerializeToString()
    facts = BrokerEntryMetadata(index=41, broker_timestamp=1_000).SerializeToString()
    metadata = MessageMetadata(producer_name=b"p", sequence_id=1, publish_time=1).SerializeToString()
    rest = b"\x0e\x02" + struct.pack(">I", len(facts)) + facts
    if checksum is not None:
        rest += b"\x0e\x01" + checksum
    rest += struct.pack(">I", len(metadata)) + metadata + b"payload"
    return struct.pack(">II", len(head) + 4 + len(rest), len(head)) + head + rest


async def _reading(broker: FakeBroker, events: Events) -> tuple[PulsarClient, Link, int]:
    client = PulsarClient(broker.url)
    await client.reader(TOPIC, Position(3, 4), events)
    (link,) = (link for link in broker.links if link.of_type(Type.SUBSCRIBE))
    return client, link, link.of_type(Type.SUBSCRIBE)[0].subscribe.consumer_id


async def test_an_entry_arrives_with_its_index_and_time() -> None:
    fixture = Fixture()
    async with fake_broker(fixture.script) as broker:
        fixture.broker = broker
        events = Events()
        client, link, consumer_id = await _reading(broker, events)
        link.send_raw(_message(consumer_id))
        await events.wait()
        entry = events.entries[0]
        assert (entry.position, entry.last_index, entry.broker_timestamp) == (Position(3, 4), 41, 1_000)
        assert bytes(entry.payload) == b"payload"
        await client.close()


async def test_an_entry_with_a_wrong_checksum_ends_the_connection_and_is_not_passed_on() -> None:
    fixture = Fixture()
    async with fake_broker(fixture.script) as broker:
        fixture.broker = broker
        events = Events()
        client, link, consumer_id = await _reading(broker, events)
        link.send_raw(_message(consumer_id, checksum=b"\0\0\0\1"))
        await events.wait()
        assert events.entries == []
        assert events.ended[0].retriable
        await client.close()


@pytest.mark.parametrize("garbage", [b"\x7f\xff\xff\xff", b"\0\0\0\2ab", b"\0\0\0\x08\0\0\0\4\xff\xff\xff\xff"])
async def test_a_broker_that_sends_garbage_is_left(garbage: bytes) -> None:
    fixture = Fixture()
    async with fake_broker(fixture.script) as broker:
        fixture.broker = broker
        events = Events()
        client, link, _ = await _reading(broker, events)
        link.send_raw(garbage)
        await events.wait()
        assert events.ended[0].retriable
        await client.close()


async def test_pings_are_answered_and_a_challenge_too() -> None:
    fixture = Fixture()
    async with fake_broker(fixture.script) as broker:
        fixture.broker = broker
        client, link, _ = await _reading(broker, Events())
        link.send(BaseCommand(type=Type.PING, ping={}))
        challenge = BaseCommand(type=Type.AUTH_CHALLENGE)
        challenge.auth_challenge.challenge.auth_method_name = "none"
        link.send(challenge)
        await until(lambda: link.of_type(Type.PONG) and link.of_type(Type.AUTH_RESPONSE))
        await client.close()


async def test_a_broker_that_answers_no_ping_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_module, "KEEPALIVE_SECONDS", 0.05)
    fixture = Fixture()
    async with fake_broker(fixture.script) as broker:
        fixture.broker = broker
        events = Events()
        client, link, _ = await _reading(broker, events)
        await events.wait()
        assert "did not answer a ping" in str(events.ended[0])
        assert link.of_type(Type.PING)
        await client.close()


async def test_a_broker_that_does_not_shake_hands_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_module, "CONNECT_SECONDS", 0.1)
    async with fake_broker(lambda _command, _link: None) as broker:
        broker.silent_handshake = True
        client = PulsarClient(broker.url)
        with pytest.raises(Unavailable, match="can't connect"):
            await client.protocol_version()
        await client.close()


async def test_a_request_without_an_answer_ends_with_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    async with fake_broker(lambda _command, _link: None) as broker:
        client = PulsarClient(broker.url)
        connection = await client._service_connection()
        command = BaseCommand(type=Type.LOOKUP)
        command.lookup_topic.topic = TOPIC
        command.lookup_topic.request_id = 77
        command.lookup_topic.authoritative = False
        with pytest.raises(Unavailable, match="did not answer"):
            await connection.request(77, command, 0.05)
        await client.close()


async def test_connections_that_nobody_uses_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "IDLE_SECONDS", 0.1)
    fixture = Fixture()
    async with fake_broker(fixture.script) as broker:
        fixture.broker = broker
        client = PulsarClient(broker.url)
        client.start()
        producer = await client.producer(TOPIC, "w", Events())
        await asyncio.sleep(0.4)
        assert len(client._connections) == 1, "the lookup's connection goes, the producer's stays"
        producer.close()
        await asyncio.sleep(0.4)
        assert not client._connections
        await client.close()


async def test_an_unsupported_schema_is_refused_for_good() -> None:
    def refuses(command: BaseCommand, link: Link) -> None:
        if command.type == Type.PRODUCER:
            link.send(error(command.producer.request_id, 18, "incompatible schema"))
        else:
            serves(command, link, broker)

    async with fake_broker(refuses) as broker:
        client = PulsarClient(broker.url)
        with pytest.raises(Refused):
            await client.producer(TOPIC, "w", Events())
        await client.close()


async def test_lookups_at_the_same_time_all_find_the_broker_that_is_up() -> None:
    fixture = Fixture()
    async with fake_broker(fixture.script) as broker:
        fixture.broker = broker
        client = PulsarClient("pulsar://127.0.0.1:1," + broker.url.removeprefix("pulsar://"))
        for _ in range(3):
            await asyncio.gather(*(client._service_connection() for _ in range(4)))
        await client.close()


@pytest.mark.parametrize("partitions", [0, 7])
async def test_partitions_are_counted_without_making_the_topic(partitions: int) -> None:
    def counts(command: BaseCommand, link: Link) -> None:
        assert not command.partition_metadata.metadata_auto_creation_enabled
        answer = BaseCommand(type=Type.PARTITIONED_METADATA_RESPONSE)
        answer.partition_metadata_response.request_id = command.partition_metadata.request_id
        answer.partition_metadata_response.response = 0
        answer.partition_metadata_response.partitions = partitions
        link.send(answer)

    async with fake_broker(counts) as broker:
        client = PulsarClient(broker.url)
        assert await client.partition_count("persistent://public/default/t") == partitions
        await client.close()
