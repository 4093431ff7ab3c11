"""Connections in memory, between clients and sidecars. What is sent takes a while, and arrives in its order."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable, Sequence
from contextvars import Context, copy_context
from typing import Any, Final, TypeVar

from kafka_sidecar.wire.headers import request_header
from kafka_sidecar.wire.message import Message
from kafka_sidecar.wire.varint import skip_tagged_fields
from tests.model.conduct import NOBODYS
from tests.simulation.loop import PROCESS, Process, SimulatedLoop

Address = tuple[str, int]
R = TypeVar("R", bound=Message)
_SIZE: Final = struct.Struct(">i")
_CORRELATION: Final = struct.Struct(">i")


class Network:
    def __init__(self, loop: SimulatedLoop, delay: Callable[[], float]) -> None:
        self.loop = loop
        self.delay = delay
        self._listening: dict[Address, _Server] = {}
        self._connections: dict[ClientEnd, None] = {}
        self._opened = 0

    def listen(self, factory: Callable[[], asyncio.Protocol], host: str, port: int) -> _Server:
        server = self._listening[host, port] = _Server(self, factory, (host, port))
        return server

    def unlisten(self, server: _Server) -> None:
        if self._listening.get(server.address) is server:
            del self._listening[server.address]

    async def connect(self, address: Address) -> ClientEnd:
        """Raises ConnectionRefusedError."""
        await asyncio.sleep(self.delay())
        server = self._listening.get(address)
        if server is None:
            await asyncio.sleep(self.delay())
            raise ConnectionRefusedError(f"nobody listens at {address}")
        self._opened += 1
        end = ClientEnd(self, server, ("client", self._opened))
        self._connections[end] = None
        await asyncio.sleep(self.delay())
        return end

    def forget(self, end: ClientEnd) -> None:
        self._connections.pop(end, None)

    def vanish(self, process: Process) -> None:
        """A process was killed: the system ends what it had open."""
        for server in [one for one in self._listening.values() if one.process is process]:
            self.unlisten(server)
        for end in [one for one in self._connections if one.server.process is process]:
            end.lose_later()

    def cut(self, process: Process, chosen: Callable[[], bool]) -> None:
        """Some connections of a process end, for both sides."""
        for end in [one for one in self._connections if one.server.process is process and chosen()]:
            end.lose_later()
            end.transport.lose_later()


class _Server:
    """As `asyncio.Server`."""

    def __init__(self, network: Network, factory: Callable[[], asyncio.Protocol], address: Address) -> None:
        self.network = network
        self.address = address
        self.context: Context = copy_context()
        self.process = self.context.get(PROCESS)
        self.factory = factory
        self.sockets = [self]

    def getsockname(self) -> Address:
        return self.address

    def close(self) -> None:
        self.network.unlisten(self)


class _Way:
    """One direction."""

    def __init__(self, network: Network, context: Context) -> None:
        self._network = network
        self._context = context
        self._at = 0.0

    def send(self, arrive: Callable[..., object], *arguments: object) -> None:
        loop = self._network.loop
        self._at = max(self._at + 1e-6, loop.time() + self._network.delay())
        loop.call_at(self._at, arrive, *arguments, context=self._context)


class ServerTransport(asyncio.Transport):
    """The sidecar's side."""

    def __init__(self, network: Network, server: _Server, client: ClientEnd) -> None:
        super().__init__({"peername": client.name, "sockname": server.address})
        self._network = network
        self._server = server
        self._client = client
        self._down = _Way(network, NOBODYS)
        self._is_closing = self._is_paused = False
        self._held: list[bytes | None] = []  # None: the end
        self._protocol: asyncio.Protocol | None = None

    def connected(self) -> None:
        self._protocol = self._server.factory()
        self._protocol.connection_made(self)

    def arrive(self, data: bytes | None) -> None:
        if self._is_closing or self._protocol is None:
            return
        if self._is_paused:
            self._held.append(data)
        elif data is not None:
            self._protocol.data_received(data)
        elif not self._protocol.eof_received():
            self.close()

    def pause_reading(self) -> None:
        self._is_paused = True

    def resume_reading(self) -> None:
        self._is_paused = False
        if self._held:
            self._network.loop.call_soon(self._read_on)

    def _read_on(self) -> None:
        while self._held and not self._is_paused:
            self.arrive(self._held.pop(0))

    def write(self, data: Any) -> None:
        if not self._is_closing:
            self._down.send(self._client.arrive, bytes(data))

    def writelines(self, list_of_data: Any) -> None:
        self.write(b"".join(list_of_data))

    def write_eof(self) -> None:
        self._down.send(self._client.lose)

    def can_write_eof(self) -> bool:
        return True

    def get_write_buffer_size(self) -> int:
        return 0

    def is_closing(self) -> bool:
        return self._is_closing

    def close(self) -> None:
        if not self._is_closing:
            self._is_closing = True
            self._down.send(self._client.lose)
            self._network.loop.call_soon(self._lost)

    abort = close

    def lose_later(self) -> None:
        self._network.loop.call_later(self._network.delay(), self.close, context=self._server.context)

    def _lost(self) -> None:
        if self._protocol is not None:
            self._protocol.connection_lost(None)


class ClientEnd:
    """The client's side, which asks typed questions."""

    def __init__(self, network: Network, server: _Server, name: Address) -> None:
        self.name = name
        self.server = server
        self.is_open = True
        self._network = network
        self._up = _Way(network, server.context)
        self.transport = ServerTransport(network, server, self)
        self._up.send(self.transport.connected)
        self._received = bytearray()
        self._asked = 0
        self._waiting: dict[int, asyncio.Future[bytes]] = {}

    async def ask(self, request: Message, response: type[R], version: int) -> R:
        """Raises ConnectionError where the connection ends before the answer comes."""
        if not self.is_open:
            raise ConnectionResetError("the connection has ended")
        self._asked += 1
        answer: asyncio.Future[bytes] = self._network.loop.create_future()
        self._waiting[self._asked] = answer
        frame = request_header(type(request), version, self._asked, "simulated") + b"".join(
            request.write_pieces(version, bytearray())
        )
        self._up.send(self.transport.arrive, _SIZE.pack(len(frame)) + frame)
        body = memoryview(await answer)
        at = _CORRELATION.size
        if response.is_flexible(version):
            at = skip_tagged_fields(body, at)
        return response.read(version, body[at:], max_elements=len(body))

    def arrive(self, data: bytes) -> None:
        self._received += data
        while len(self._received) >= _SIZE.size:
            (size,) = _SIZE.unpack_from(self._received)
            if len(self._received) < _SIZE.size + size:
                return
            frame = bytes(self._received[_SIZE.size : _SIZE.size + size])
            del self._received[: _SIZE.size + size]
            answer = self._waiting.pop(_CORRELATION.unpack_from(frame)[0], None)
            if answer is not None and not answer.done():
                answer.set_result(frame)

    def lose_later(self) -> None:
        self._network.loop.call_later(self._network.delay(), self.lose, context=NOBODYS)

    def lose(self) -> None:
        self.is_open = False
        self._network.forget(self)
        waiting, self._waiting = self._waiting, {}
        for answer in waiting.values():
            if not answer.done():
                answer.set_exception(ConnectionResetError("the connection has ended"))

    def close(self) -> None:
        if self.is_open:
            self.lose()
            self._up.send(self.transport.arrive, None)


def addresses(texts: Sequence[str]) -> list[Address]:
    return [(host, int(port)) for host, _, port in (text.rpartition(":") for text in texts)]
