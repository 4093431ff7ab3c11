"""Lookup and the pool of connections, against a broker that follows a script."""

from __future__ import annotations

import asyncio

import pytest

from kafka_sidecar.pulsar import client as client_module
from kafka_sidecar.pulsar.client import PulsarClient
from kafka_sidecar.pulsar.errors import NotPermitted, PulsarError, TopicMissing, Unavailable
from kafka_sidecar.pulsar.pulsar_api_pb2 import BaseCommand
from tests.support.fake_broker import (
    TOPIC,
    Events,
    Link,
    fake_broker,
    looked_up,
    lookup_failed,
    serves,
    serving_broker,
)

Type = BaseCommand.Type


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
        assert await client.version_of_owner(TOPIC) is None, "it is the proxy that answers"
        await client.close()


async def test_a_standalone_broker_is_reached_through_itself_and_says_what_it_is() -> None:
    def stands_alone(command: BaseCommand, link: Link) -> None:
        if command.type == Type.LOOKUP:
            link.send(looked_up(command, broker.url, through_service=True))
        else:
            serves(command, link, broker)

    async with fake_broker(stands_alone) as broker:
        client = PulsarClient(broker.url)
        assert await client.version_of_owner(TOPIC) == "fake"
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
    ("code", "message", "kind"),
    [(11, "", TopicMissing), (4, "no", NotPermitted), (0, "Topic not found: t", TopicMissing)],
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
    async with serving_broker() as broker:
        client = PulsarClient("pulsar://127.0.0.1:1," + broker.url.removeprefix("pulsar://"))
        assert (await client.protocol_version())[1] == "fake"
        await client.close()


async def test_writers_and_readers_have_connections_of_their_own() -> None:
    async with serving_broker() as broker:
        client = PulsarClient(broker.url)
        await client.producer(TOPIC, "w", Events())
        await client.reader(TOPIC, None, Events())
        kinds = [{command.type for command in link.received} & {Type.PRODUCER, Type.SUBSCRIBE} for link in broker.links]
        assert sorted(map(len, kinds)) == [1, 1]
        await client.close()


async def test_connections_that_nobody_uses_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "IDLE_SECONDS", 0.1)
    async with serving_broker() as broker:
        client = PulsarClient(broker.url)
        client.start()
        producer = await client.producer(TOPIC, "w", Events())
        await asyncio.sleep(0.4)
        assert len(client._connections) == 1, "the lookup's connection goes, the producer's stays"
        producer.close()
        await asyncio.sleep(0.4)
        assert not client._connections
        await client.close()


async def test_lookups_at_the_same_time_all_find_the_broker_that_is_up() -> None:
    async with serving_broker() as broker:
        client = PulsarClient("pulsar://127.0.0.1:1," + broker.url.removeprefix("pulsar://"))
        for _ in range(3):
            await asyncio.gather(*(client._service_connection() for _ in range(4)))
        await client.close()
