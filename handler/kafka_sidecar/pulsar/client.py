"""Lookup, and the pool of connections.

Producers and readers do not share a connection: a broker that has too many SENDs of a connection
in flight stops reading it, and a reader's Flow or a lookup behind them would wait as well.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import Final, Literal

from kafka_sidecar.loop.single_flight import SingleFlight
from kafka_sidecar.loop.supervised import every
from kafka_sidecar.pulsar.connection import Connection, Keepalive
from kafka_sidecar.pulsar.entry import Position
from kafka_sidecar.pulsar.errors import Unavailable, from_code
from kafka_sidecar.pulsar.events import ConsumerEvents, ProducerEvents
from kafka_sidecar.pulsar.producer import SHARED, Producer
from kafka_sidecar.pulsar.pulsar_api_pb2 import BaseCommand, CommandLookupTopicResponse
from kafka_sidecar.pulsar.reader import Reader

log = logging.getLogger(__name__)

MAX_REDIRECTS: Final = 20  # Pulsar's maxLookupRedirects
LOOKUP_ATTEMPTS: Final = 6
IDLE_SECONDS: Final = 60.0

_REDIRECT: Final = 0
_FAILED: Final = 2

# Connections are separate by purpose. A broker that fences a producer closes its whole connection, and it does not read
# a connection with too many SENDs in flight. Other traffic must not suffer from that. Nor should the log of a term be
# read behind the fetches of all clients.
Purpose = Literal["write", "read", "lead", "load"]
# A leader must notice sooner than others that its broker is gone. But a broker that has just restarted on a busy
# machine may take 4 s or more to answer a PING. Giving up its connection ends every term that is led over it, and
# delays the next terms. No acknowledgement depends on this: only the one exclusive producer can store anything.
KEEPALIVE: Final[dict[Purpose, Keepalive]] = {
    "write": Keepalive(),
    "read": Keepalive(),
    "lead": Keepalive(4.0, 12.0),
    "load": Keepalive(4.0, 12.0),
}


class PulsarClient:
    def __init__(self, service_url: str, listener_name: str | None = None) -> None:
        self._service_urls = [url.removeprefix("pulsar://").rstrip("/") for url in service_url.split(",")]
        self._listener_name = listener_name
        self._connections: dict[tuple[str, str | None, Purpose], Connection] = {}
        self._opening: SingleFlight[tuple[str, str | None, Purpose], Connection] = SingleFlight()
        self._current = 0  # index of the service URL that answered last
        self._sweeper = every(IDLE_SECONDS / 4, "idle_connections", self._close_idle)

    # --- connections

    def start(self) -> None:
        self._sweeper.start()

    async def close(self) -> None:
        await self._sweeper.stopped()
        await self._opening.close()
        for connection in list(self._connections.values()):
            connection.close()

    async def _connection(self, url: str, purpose: Purpose, proxy_to: str | None = None) -> Connection:
        key = (url, proxy_to, purpose)
        connection = self._connections.get(key)
        if connection is not None and connection.alive:
            connection.last_used = asyncio.get_running_loop().time()
            return connection
        return await self._opening.call(key, partial(self._open, key))

    async def _open(self, key: tuple[str, str | None, Purpose]) -> Connection:
        connection = await Connection.open(key[0], self._forget, key[1], keepalive=KEEPALIVE[key[2]])
        connection.last_used = asyncio.get_running_loop().time()
        self._connections[key] = connection
        return connection

    def _forget(self, lost: Connection) -> None:
        for key, connection in list(self._connections.items()):
            if connection is lost:
                del self._connections[key]

    def _close_idle(self) -> None:
        now = asyncio.get_running_loop().time()
        for connection in list(self._connections.values()):
            if connection.idle and now - connection.last_used > IDLE_SECONDS:
                connection.close()

    async def _service_connection(self) -> Connection:
        """Any broker of the service URL: the one that answered last, or the next that does."""
        failure: Unavailable | None = None
        for address in (*self._service_urls[self._current :], *self._service_urls[: self._current]):
            try:
                connection = await self._connection(f"pulsar://{address}", "read")
            except Unavailable as error:
                failure = error
            else:
                self._current = self._service_urls.index(address)
                return connection
        assert failure is not None
        raise failure

    # --- lookup

    async def _owner(self, topic: str, purpose: Purpose) -> Connection:
        """A connection to the broker that serves `topic`."""
        delay = 0.1
        for attempt in range(LOOKUP_ATTEMPTS):
            try:
                return await self._look_up(topic, purpose)
            except Unavailable as error:
                if attempt == LOOKUP_ATTEMPTS - 1:
                    raise
                log.debug("lookup of %s: %s", topic, error)
            await asyncio.sleep(delay)
            delay = min(delay * 2, 1.0)
        raise AssertionError("unreachable")

    async def _look_up(self, topic: str, purpose: Purpose) -> Connection:
        connection = await self._service_connection()
        authoritative = False
        for _ in range(MAX_REDIRECTS):
            answer = await self._ask(connection, topic, authoritative)
            if answer.response == _FAILED:
                raise from_code(answer.error, answer.message)
            url = answer.broker_service_url
            through_service = answer.proxy_through_service_url
            if answer.response != _REDIRECT:
                if through_service:
                    return await self._connection(connection.url, purpose, url.removeprefix("pulsar://"))
                return await self._connection(url, purpose)
            authoritative = answer.authoritative
            connection = (
                await self._connection(connection.url, "read", url.removeprefix("pulsar://"))
                if through_service
                else await self._connection(url, "read")
            )
        raise Unavailable(f"lookup of {topic} was redirected {MAX_REDIRECTS} times")

    async def _ask(self, connection: Connection, topic: str, authoritative: bool) -> CommandLookupTopicResponse:
        command = BaseCommand(type=BaseCommand.Type.LOOKUP)
        command.lookup_topic.topic = topic
        command.lookup_topic.request_id = request_id = connection.new_id()
        command.lookup_topic.authoritative = authoritative
        if self._listener_name is not None:
            command.lookup_topic.advertised_listener_name = self._listener_name
        return (await connection.request(request_id, command)).lookup_topic_response

    # --- what is opened on a topic

    async def producer(
        self,
        topic: str,
        name: str,
        events: ProducerEvents,
        *,
        access_mode: int = SHARED,
        topic_epoch: int | None = None,
        wait_seconds: float | None = None,
        purpose: Purpose = "write",
    ) -> Producer:
        connection = await self._owner(topic, purpose)
        return await Producer.open(
            connection,
            topic,
            name,
            events,
            access_mode=access_mode,
            topic_epoch=topic_epoch,
            wait_seconds=wait_seconds,
        )

    async def reader(
        self,
        topic: str,
        start: Position | None,
        events: ConsumerEvents,
        *,
        compacted: bool = False,
        purpose: Purpose = "read",
    ) -> Reader:
        return await Reader.open(await self._owner(topic, purpose), topic, start, events, compacted=compacted)

    async def candidate(
        self,
        topic: str,
        subscription: str,
        name: str,
        priority: int,
        events: ConsumerEvents,
        metadata: dict[bytes, bytes],
    ) -> Reader:
        """A Failover consumer; the one with the lowest priority number is the active one."""
        return await Reader.join(
            await self._owner(topic, "lead"), topic, subscription, name, priority, events, metadata
        )

    async def version_of_owner(self, topic: str) -> str | None:
        """What the broker that serves `topic` says it is; None behind a Pulsar proxy, which says what itself is."""
        connection = await self._owner(topic, "lead")
        return None if connection.is_behind_proxy else connection.server_version

    async def reach(self, topic: str) -> None:
        """Find and connect to the broker that would serve `topic`, whether the topic exists or not."""
        await self._look_up(topic, "read")

    async def protocol_version(self) -> tuple[int, str]:
        """Protocol version and server version of a broker, for the doctor."""
        connection = await self._service_connection()
        return connection.protocol_version, connection.server_version
