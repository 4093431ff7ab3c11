"""One connection: handshake, keepalive, requests, and brokers that send garbage."""

from __future__ import annotations

import asyncio
import gc
import time

import pytest

from kafka_sidecar.pulsar import client as client_module
from kafka_sidecar.pulsar import connection as connection_module
from kafka_sidecar.pulsar.client import PulsarClient
from kafka_sidecar.pulsar.connection import Keepalive
from kafka_sidecar.pulsar.errors import PulsarError, Unavailable
from kafka_sidecar.pulsar.frames import encode_command
from kafka_sidecar.pulsar.pulsar_api_pb2 import BaseCommand
from tests.support.fake_broker import (
    TOPIC,
    Events,
    fake_broker,
    reading,
    receipt,
    serving_broker,
    until,
)

Type = BaseCommand.Type


async def test_the_handshake_promises_what_the_client_can_do() -> None:
    async with serving_broker() as broker:
        client = PulsarClient(broker.url)
        assert await client.protocol_version() == (21, "fake")
        connect = broker.links[0].connect.connect
        assert connect.protocol_version >= 18
        assert connect.feature_flags.supports_broker_entry_metadata
        await client.close()


@pytest.mark.parametrize("garbage", [b"\x7f\xff\xff\xff", b"\0\0\0\2ab", b"\0\0\0\x08\0\0\0\4\xff\xff\xff\xff"])
async def test_a_broker_that_sends_garbage_is_left(garbage: bytes) -> None:
    async with serving_broker() as broker:
        events = Events()
        client, link, _ = await reading(broker, events)
        link.send_raw(garbage)
        await events.wait()
        assert events.ended[0].retriable
        await client.close()


async def test_pings_are_answered_and_a_challenge_too() -> None:
    async with serving_broker() as broker:
        client, link, _ = await reading(broker, Events())
        link.send(BaseCommand(type=Type.PING, ping={}))
        challenge = BaseCommand(type=Type.AUTH_CHALLENGE)
        challenge.auth_challenge.challenge.auth_method_name = "none"
        link.send(challenge)
        await until(lambda: link.of_type(Type.PONG) and link.of_type(Type.AUTH_RESPONSE))
        await client.close()


async def test_a_broker_that_answers_no_ping_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    # The broker has half a second to hear the ping: what is not read by then is lost with the connection.
    monkeypatch.setitem(client_module.KEEPALIVE, "read", Keepalive(0.05, 0.5))
    async with serving_broker() as broker:
        events = Events()
        client, link, _ = await reading(broker, events)
        await events.wait()
        assert "did not answer a ping" in str(events.ended[0])
        assert link.of_type(Type.PING)
        await client.close()


async def test_a_late_answer_to_a_ping_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(client_module.KEEPALIVE, "read", Keepalive(0.05, 0.5))
    async with serving_broker() as broker:
        events = Events()
        client, link, _ = await reading(broker, events)
        for _ in range(4):
            await asyncio.sleep(0.3)
            assert link.of_type(Type.PING)
            link.send(BaseCommand(type=Type.PONG, pong={}))
        assert not events.ended
        await client.close()


async def test_what_has_come_counts_also_when_the_timer_is_first() -> None:
    async with serving_broker() as broker:
        events = Events()
        client, _, _ = await reading(broker, events)
        (connection,) = client._connections.values()
        connection._heard_at -= 1_000  # as after a long pause of this process, with a PONG unread in the socket
        connection._keep_alive()
        connection.data_received(b"")
        await asyncio.sleep(0.3)
        assert not events.ended
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


async def test_one_that_fails_at_a_frame_ends_alone() -> None:
    class Failing(Events):
        def on_receipt(self, sequence: int, ledger: int, entry: int) -> None:
            raise ZeroDivisionError

    async with serving_broker() as broker:
        client = PulsarClient(broker.url)
        failing, other = Failing(), Events()
        first = await client.producer(TOPIC, "first", failing)
        second = await client.producer(TOPIC, "second", other)
        (link,) = (link for link in broker.links if link.of_type(Type.PRODUCER))
        for producer in (first, second):
            producer.send(0, 1, b"", b"x")
            link.send(receipt(producer._id, 0, 1, 0))
        await failing.wait()
        assert failing.ended[0].retriable
        await other.wait()
        assert other.receipts == [(0, 1, 0)]
        assert not other.ended
        await until(lambda: link.of_type(Type.CLOSE_PRODUCER))
        assert [closed.close_producer.producer_id for closed in link.of_type(Type.CLOSE_PRODUCER)] == [first._id]
        await client.close()


async def test_an_end_that_fails_for_one_is_told_to_the_others() -> None:
    class Failing(Events):
        def on_end(self, reason: PulsarError) -> None:
            raise ZeroDivisionError

    async with serving_broker() as broker:
        client = PulsarClient(broker.url)
        other = Events()
        await client.producer(TOPIC, "first", Failing())
        await client.producer(TOPIC, "second", other)
        (link,) = (link for link in broker.links if link.of_type(Type.PRODUCER))
        link.cut()
        await other.wait()
        assert other.ended
        await client.close()


async def test_a_handshake_that_is_cut_leaves_no_complaint(caplog: pytest.LogCaptureFixture) -> None:
    async with fake_broker(lambda _command, _link: None) as broker:
        broker.silent_handshake = True
        client = PulsarClient(broker.url)
        asking = asyncio.create_task(client.protocol_version())
        await until(lambda: broker.links)
        asking.cancel()
        broker.links[0].cut()
        await until(lambda: not len(client._opening))
        await client.close()
    del asking
    gc.collect()
    assert "never retrieved" not in caplog.text


async def test_many_frames_at_once_do_not_hold_the_loop_and_keep_their_order() -> None:
    """As entries of a partition that is opened."""

    class Slow(Events):
        def on_active(self, active: bool) -> None:
            until_ = time.thread_time() + 0.0001
            while time.thread_time() < until_:
                pass
            super().on_active(active)

    async with serving_broker() as broker:
        events = Slow()
        client, link, consumer_id = await reading(broker, events)
        frames = []
        for number in range(1_000):  # 0.1 s of work
            change = BaseCommand(type=Type.ACTIVE_CONSUMER_CHANGE)
            change.active_consumer_change.consumer_id = consumer_id
            change.active_consumer_change.is_active = number % 3 == 0
            frames.append(encode_command(change))
        gc.collect()
        gc.freeze()  # what the tests have loaded is not to be looked through
        longest, last = 0.0, time.thread_time()
        began = last
        link.send_raw(b"".join(frames))
        while len(events.actives) < 1_000:
            await asyncio.sleep(0)
            longest, last = max(longest, time.thread_time() - last), time.thread_time()
        gc.unfreeze()
        assert events.actives == [number % 3 == 0 for number in range(1_000)]
        assert longest < (last - began) / 10, "of processor time: a busy machine slows the part and the whole alike"
        await client.close()
