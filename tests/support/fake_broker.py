"""A broker that says what a test tells it to, over a real socket. For scripted faults only."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from kafka_sidecar.pulsar.client import PulsarClient
from kafka_sidecar.pulsar.entry import Position, RawEntry
from kafka_sidecar.pulsar.errors import PulsarError
from kafka_sidecar.pulsar.frames import encode_command
from kafka_sidecar.pulsar.pulsar_api_pb2 import BaseCommand

Type = BaseCommand.Type
# Takes a command and the broker's link to its client.
Script = Callable[[BaseCommand, "Link"], None]


class Link:
    """One client's connection as the broker sees it."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self.connect = BaseCommand()
        self.received: list[BaseCommand] = []

    def send(self, command: BaseCommand) -> None:
        self._writer.write(encode_command(command))

    def send_raw(self, data: bytes) -> None:
        self._writer.write(data)

    def cut(self) -> None:
        self._writer.transport.abort()

    def of_type(self, kind: int) -> list[BaseCommand]:
        return [command for command in self.received if command.type == kind]


class FakeBroker:
    """Shakes hands by itself; everything else is up to the script."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self.links: list[Link] = []
        self.url = ""
        self.silent_handshake = False

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        link = Link(writer)
        self.links.append(link)
        try:
            while True:
                (total,) = struct.unpack(">I", await reader.readexactly(4))
                frame = await reader.readexactly(total)
                (size,) = struct.unpack_from(">I", frame)
                command = BaseCommand.FromString(frame[4 : 4 + size])
                link.received.append(command)
                if command.type != Type.CONNECT:
                    self._script(command, link)
                elif not self.silent_handshake:
                    link.connect = command
                    answer = BaseCommand(type=Type.CONNECTED)
                    answer.connected.server_version = "fake"
                    answer.connected.protocol_version = 21
                    answer.connected.max_message_size = 1_000_000
                    link.send(answer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def fake_broker(script: Script) -> AsyncIterator[FakeBroker]:
    broker = FakeBroker(script)
    server = await asyncio.start_server(broker._serve, "127.0.0.1", 0)
    broker.url = f"pulsar://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield broker
    finally:
        server.close()
        for link in broker.links:
            link.cut()


def looked_up(
    command: BaseCommand,
    url: str,
    *,
    redirect: bool = False,
    authoritative: bool = False,
    through_service: bool = False,
) -> BaseCommand:
    answer = BaseCommand(type=Type.LOOKUP_RESPONSE)
    told = answer.lookup_topic_response
    told.request_id = command.lookup_topic.request_id
    told.response = 0 if redirect else 1
    told.broker_service_url = url
    told.authoritative = authoritative
    told.proxy_through_service_url = through_service
    return answer


def lookup_failed(command: BaseCommand, code: int, message: str) -> BaseCommand:
    answer = BaseCommand(type=Type.LOOKUP_RESPONSE)
    answer.lookup_topic_response.request_id = command.lookup_topic.request_id
    answer.lookup_topic_response.response = 2
    answer.lookup_topic_response.error = code
    answer.lookup_topic_response.message = message
    return answer


def producer_ready(command: BaseCommand, *, ready: bool = True, epoch: int | None = None) -> BaseCommand:
    answer = BaseCommand(type=Type.PRODUCER_SUCCESS)
    answer.producer_success.request_id = command.producer.request_id
    answer.producer_success.producer_name = command.producer.producer_name
    answer.producer_success.producer_ready = ready
    if epoch is not None:
        answer.producer_success.topic_epoch = epoch
    return answer


def success(request_id: int) -> BaseCommand:
    answer = BaseCommand(type=Type.SUCCESS)
    answer.success.request_id = request_id
    return answer


def error(request_id: int, code: int, message: str) -> BaseCommand:
    answer = BaseCommand(type=Type.ERROR)
    answer.error.request_id = request_id
    answer.error.error = code
    answer.error.message = message
    return answer


def receipt(producer_id: int, sequence: int, ledger: int, entry: int) -> BaseCommand:
    answer = BaseCommand(type=Type.SEND_RECEIPT)
    answer.send_receipt.producer_id = producer_id
    answer.send_receipt.sequence_id = sequence
    answer.send_receipt.message_id.ledger_id = ledger
    answer.send_receipt.message_id.entry_id = entry
    return answer


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


def serves(command: BaseCommand, link: Link, broker: FakeBroker) -> None:
    """The ordinary answers of a broker that owns every topic; what else comes is left to the test."""
    match command.type:
        case Type.LOOKUP:
            link.send(looked_up(command, broker.url))
        case Type.PRODUCER:
            link.send(producer_ready(command))
        case Type.SUBSCRIBE:
            link.send(success(command.subscribe.request_id))


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(5):
        while not condition():  # noqa: ASYNC110 - what is waited for happens in the broker's code
            await asyncio.sleep(0.01)


@asynccontextmanager
async def serving_broker() -> AsyncIterator[FakeBroker]:
    """A broker that owns every topic and grants what it is asked for."""
    async with fake_broker(lambda command, link: serves(command, link, broker)) as broker:
        yield broker


async def reading(broker: FakeBroker, events: Events) -> tuple[PulsarClient, Link, int]:
    client = PulsarClient(broker.url)
    await client.reader(TOPIC, Position(3, 4), events)
    (link,) = (link for link in broker.links if link.of_type(Type.SUBSCRIBE))
    return client, link, link.of_type(Type.SUBSCRIBE)[0].subscribe.consumer_id
