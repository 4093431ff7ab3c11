"""Readers and Failover consumers: entries with their index, checksums, elections."""

from __future__ import annotations

import struct

from kafka_sidecar.pulsar.client import PulsarClient
from kafka_sidecar.pulsar.entry import Position
from kafka_sidecar.pulsar.pulsar_api_pb2 import BaseCommand, BrokerEntryMetadata, MessageMetadata
from tests.support.fake_broker import (
    TOPIC,
    Events,
    reading,
    serving_broker,
)

Type = BaseCommand.Type


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


async def test_a_failover_consumer_is_told_when_it_is_elected() -> None:
    async with serving_broker() as broker:
        client = PulsarClient(broker.url)
        events = Events()
        await client.candidate(TOPIC, "election", "me", 7, events, {b"address": b"host:9092"})
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


async def test_an_entry_arrives_with_its_index_and_time() -> None:
    async with serving_broker() as broker:
        events = Events()
        client, link, consumer_id = await reading(broker, events)
        link.send_raw(_message(consumer_id))
        await events.wait()
        entry = events.entries[0]
        assert (entry.position, entry.last_index, entry.broker_timestamp) == (Position(3, 4), 41, 1_000)
        assert bytes(entry.payload) == b"payload"
        await client.close()


async def test_an_entry_with_a_wrong_checksum_ends_the_connection_and_is_not_passed_on() -> None:
    async with serving_broker() as broker:
        events = Events()
        client, link, consumer_id = await reading(broker, events)
        link.send_raw(_message(consumer_id, checksum=b"\0\0\0\1"))
        await events.wait()
        assert events.entries == []
        assert events.ended[0].retriable
        await client.close()
