"""A producer: whose receipts they are, the exclusive modes, and how it ends."""

from __future__ import annotations

import asyncio

import pytest

from kafka_sidecar.pulsar.client import PulsarClient
from kafka_sidecar.pulsar.errors import Fenced, Refused, Unavailable
from kafka_sidecar.pulsar.frames import encode_command
from kafka_sidecar.pulsar.producer import EXCLUSIVE, WAIT_FOR_EXCLUSIVE
from kafka_sidecar.pulsar.pulsar_api_pb2 import BaseCommand
from tests.support.fake_broker import (
    TOPIC,
    Events,
    Link,
    error,
    fake_broker,
    producer_ready,
    receipt,
    serves,
    serving_broker,
    until,
)

Type = BaseCommand.Type


async def test_receipts_errors_and_the_end_reach_the_producer_they_belong_to() -> None:
    async with serving_broker() as broker:
        client = PulsarClient(broker.url)
        mine, other = Events(), Events()
        producer = await client.producer(TOPIC, "w", mine)
        await client.producer(TOPIC, "v", other)
        (link,) = (link for link in broker.links if link.of_type(Type.PRODUCER))
        producer_id = link.of_type(Type.PRODUCER)[0].producer.producer_id
        producer.send(7, 3, b"", b"payload")
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
            producer.send(9, 1, b"", b"too late")
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


@pytest.mark.parametrize("is_fenced", [False, True])
async def test_both_answers_may_come_at_once(is_fenced: bool) -> None:
    def queues(command: BaseCommand, link: Link) -> None:
        if command.type == Type.PRODUCER:
            second = producer_ready(command, epoch=5)
            if is_fenced:
                second = error(command.producer.request_id, 25, "fenced")
            link.send_raw(encode_command(producer_ready(command, ready=False)) + encode_command(second))
        else:
            serves(command, link, broker)

    async with fake_broker(queues) as broker:
        client = PulsarClient(broker.url)
        async with asyncio.timeout(5):
            if is_fenced:
                with pytest.raises(Fenced):
                    await client.producer(TOPIC, "w", Events(), access_mode=WAIT_FOR_EXCLUSIVE)
            else:
                assert (await client.producer(TOPIC, "w", Events(), access_mode=WAIT_FOR_EXCLUSIVE)).topic_epoch == 5
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
            await client.producer(TOPIC, "w", Events(), access_mode=EXCLUSIVE, topic_epoch=3)
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
