"""The listening sockets and everyone connected through them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import Final, cast

from kafka_sidecar.apis.api import Services
from kafka_sidecar.apis.state.answer_share import AnswerShare
from kafka_sidecar.errors import ConfigError
from kafka_sidecar.loop.awake import BEAT_SECONDS, Awake
from kafka_sidecar.loop.clock import awake
from kafka_sidecar.loop.supervised import SupervisedTask, every
from kafka_sidecar.server.budget import ByteBudget
from kafka_sidecar.server.connection import Dispatch, KafkaConnection
from kafka_sidecar.telemetry import metrics
from kafka_sidecar.telemetry.limits import RateLimitedLog

log = logging.getLogger(__name__)
limited = RateLimitedLog(log)

# Length of the accept queue (listen backlog): all clients reconnect at once when a sidecar restarts.
BACKLOG: Final = 1_024
# When a drain times out, the log names at most 10 of the connections that are cut.
MOST_NAMED: Final = 10
# While requests or fetches wait for memory, connections are checked for stalled and idle clients every second.
# Otherwise they are checked every 30 s, for idle clients only.
SWEEP_SECONDS: Final = 1.0
IDLE_SWEEP_SECONDS: Final = 30.0
# Pause between two connections that are closed because their clients' Metadata lacks a node. They reconnect and request
# Metadata again.
TELL_SECONDS: Final = 0.005


class Listener:
    def __init__(
        self,
        services: Services,
        dispatch: Dispatch,
        budget: ByteBudget,
        answers: AnswerShare,
        *,
        max_request: int,
        max_connections: int,
        idle_seconds: float,
        others_serve: Callable[[], bool],
        awake_clock: Callable[[], float] = awake,
    ) -> None:
        """`others_serve`: whether clients would go elsewhere while this process stands still."""
        self._services = services
        self._dispatch = dispatch
        self._budget = budget
        self._answers = answers
        self._max_request = max_request
        self._max_connections = max_connections
        self._idle_seconds = idle_seconds
        self._connections: dict[KafkaConnection, None] = {}  # a dict keeps the order of connections
        # Id of the node that the client's last Metadata response lacked.
        self._to_hear_of_a_node: dict[KafkaConnection, int] = {}
        self._telling = SupervisedTask("tell_again", "this sidecar", self._tell_again)
        self._look_for_idle_at = 0.0
        self._servers: list[asyncio.Server] = []
        self._sweeper = every(min(SWEEP_SECONDS, idle_seconds / 2), "idle_clients", self._sweep)
        self._empty = asyncio.Event()
        self._awake = Awake(others_serve, awake_clock)
        self._beating = every(BEAT_SECONDS, "awake", self._beat)

    async def start(self, host: str, port: int) -> int:
        """Listen; returns the port, for when 0 was asked for."""
        port = await self._listen("kafka.listen", host, port, is_external=False)
        self._sweeper.start()
        self._awake.beat()
        self._beating.start()
        return port

    async def start_external(self, host: str, port: int) -> int:
        """Listen for clients that find the sidecars at other addresses."""
        return await self._listen("kafka.external_listen", host, port, is_external=True)

    async def _listen(self, setting: str, host: str, port: int, is_external: bool) -> int:
        loop = asyncio.get_running_loop()
        try:
            server = await loop.create_server(partial(self._accept, is_external), host, port, backlog=BACKLOG)
        except OSError as error:
            where = f"{host}:{port} ({error.strerror})"
            raise ConfigError(f"can't listen on {where}: set {setting} to a free address of this machine") from error
        self._servers.append(server)
        return int(server.sockets[0].getsockname()[1])

    def _accept(self, is_external: bool) -> asyncio.Protocol:
        if self._awake.stood_still():
            self._stood_still()
        if self._awake.has_just_woken():
            return _Refusal()
        if len(self._connections) >= self._max_connections:
            limited.warning("refused a connection: max_connections (%d) are open", self._max_connections)
            return _Refusal()
        connection = KafkaConnection(
            self._services,
            self._dispatch,
            self._budget,
            self._answers,
            self._max_request,
            self._lost,
            self._awake,
            self._stood_still,
            is_external,
        )
        self._connections[connection] = None
        return connection

    def _lost(self, connection: KafkaConnection) -> None:
        self._connections.pop(connection, None)
        self._to_hear_of_a_node.pop(connection, None)
        if not self._connections:
            self._empty.set()

    def _beat(self) -> None:
        if self._awake.stood_still():  # after a pause of the process this timer may run before sockets are read
            self._stood_still()
        self._awake.beat()

    def _stood_still(self) -> None:
        log.warning(
            "this process has stood still: its %d connections are ended, their clients ask again",
            len(self._connections),
        )
        self._awake.wake()
        for connection in list(self._connections):
            # Requests in flight are answered; requests not read yet are dropped, and clients send them again.
            connection.drain()

    def tell_again(self, node_id: int) -> None:
        """A node is there again. Clients that got Metadata meanwhile hear of it when they connect again."""
        self._to_hear_of_a_node.update(
            (one, node_id) for one in self._connections if _knows_too_few_nodes(one, node_id)
        )
        self._telling.start()

    async def _tell_again(self) -> None:
        while self._to_hear_of_a_node:
            connection, node_id = self._to_hear_of_a_node.popitem()
            if _knows_too_few_nodes(connection, node_id):
                connection.drain()
                await asyncio.sleep(TELL_SECONDS)

    def _sweep(self) -> None:
        now = asyncio.get_running_loop().time()
        wanted = self._budget.is_wanted or self._answers.is_wanted
        if not wanted and now < self._look_for_idle_at:
            return
        self._look_for_idle_at = now + min(IDLE_SWEEP_SECONDS, self._idle_seconds / 2)
        for connection in list(self._connections):
            stalled = wanted and connection.has_stalled(now)
            if stalled:
                metrics.STALLED.inc()
                limited.warning(
                    "closing the connection of %s: it holds bytes that others wait for, and does not move",
                    connection.peer,
                )
            if stalled or now - connection.last_active > self._idle_seconds:
                connection.abort()  # close() would wait for the write buffer of a client that no longer reads

    async def drain(self, seconds: float) -> bool:
        """Stop accepting, let everyone finish; True when all did in time."""
        for server in self._servers:
            server.close()
        await self._sweeper.stopped()
        await self._beating.stopped()
        await self._telling.stopped()
        self._empty.clear()
        for connection in list(self._connections):
            connection.drain()
        if not self._connections:
            return True
        try:
            async with asyncio.timeout(seconds):
                await self._empty.wait()
        except TimeoutError:
            left = list(self._connections)
            log.warning("connections are cut after %.0f s: %s", seconds, "; ".join(map(str, left[:MOST_NAMED])))
            for connection in left:
                connection.abort()
            return False
        return True


def _knows_too_few_nodes(connection: KafkaConnection, node_id: int) -> bool:
    return connection.last_metadata is not None and not connection.last_metadata.has(node_id)


class _Refusal(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        cast(asyncio.Transport, transport).abort()
