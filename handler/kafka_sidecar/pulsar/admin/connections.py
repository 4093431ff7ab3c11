"""HTTP/1.1 over kept connections, as much of it as Pulsar's admin API needs. httptools parses, in C."""

from __future__ import annotations

import asyncio
import json
import ssl
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, cast
from urllib.parse import SplitResult, unquote, urlsplit

import httptools

from kafka_sidecar import __version__

# A Kafka client gives up a request after 30 s (request.timeout.ms) and retries it.
TIMEOUT_SECONDS: Final = 30.0
# After 5 s without a connection the next broker is tried.
CONNECT_SECONDS: Final = 5.0
# Limit for the body of a response: the names of a million topics. Most responses have a few kilobytes.
MAX_BODY: Final = 64 * 1024 * 1024
MAX_HEADERS: Final = 256
_NO_BODY: Final = b""


JSON: Final = "application/json"


class NotConnected(Exception):
    """Nobody has heard the request."""


class NoAnswer(Exception):
    """It was sent, and may have been heard."""


class _Closed(NoAnswer):
    """The connection ended before anything of the answer had come."""


@dataclass(frozen=True, slots=True)
class Response:
    status: int
    headers: Mapping[str, str]  # header names are in lower case
    body: bytes

    def json(self) -> Any:
        """May raise ValueError."""
        return json.loads(self.body)

    @property
    def text(self) -> str:
        return self.body.decode("utf-8", "replace")


class _Origin(NamedTuple):
    scheme: str
    host: str
    port: int


class _Channel(asyncio.Protocol):
    """One connection. It has one exchange at a time."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._answer: asyncio.Future[Response] | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._headers: dict[str, str] = {}
        self._body = bytearray()
        self._is_begun = False
        self._has_headers = False
        self.is_open = True

    async def exchange(self, request: bytes) -> Response:
        if self._transport is None or not self.is_open:
            raise _Closed("the connection was closed")
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        try:
            return await self._answer
        except BaseException:
            self.close()
            raise
        finally:
            self._answer = None

    @property
    def is_reusable(self) -> bool:
        """Whether another exchange may follow: nothing has come behind the answer."""
        return self.is_open and not self._is_begun

    def close(self) -> None:
        self.is_open = False
        if self._transport is not None:
            self._transport.abort()

    # --- asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        if self._answer is None or self._answer.done():
            self.close()  # bytes without a request must not be taken for the next response
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._fail(NoAnswer(f"an answer that can't be read: {error}"))

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_open = False
        if (
            exc is None
            and self._has_headers
            and "content-length" not in self._headers
            and "transfer-encoding" not in self._headers
        ):
            self.on_message_complete()  # a response without a length ends with its connection
            return
        kind = NoAnswer if self._is_begun else _Closed
        self._fail(kind(str(exc or "the connection was closed")))

    def _fail(self, failure: Exception) -> None:
        self.close()
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(failure)

    # --- from the parser

    def on_message_begin(self) -> None:
        self._is_begun = True

    def on_header(self, name: bytes, value: bytes) -> None:
        if len(self._headers) >= MAX_HEADERS:
            self._fail(NoAnswer(f"an answer of more than {MAX_HEADERS} headers"))
            return
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        self._has_headers = True

    def on_body(self, part: bytes) -> None:
        if len(self._body) + len(part) > MAX_BODY:
            self._fail(NoAnswer(f"an answer of more than {MAX_BODY} bytes"))
            return
        self._body += part

    def on_message_complete(self) -> None:
        status = self._parser.get_status_code()
        if not self._parser.should_keep_alive():
            self.is_open = False
        response = Response(status, self._headers, bytes(self._body) if self._body else _NO_BODY)
        self._headers, self._body, self._is_begun, self._has_headers = {}, bytearray(), False, False
        if status >= 200 and self._answer is not None and not self._answer.done():
            self._answer.set_result(response)


class HttpConnections:
    """So many exchanges at a time, others wait; and no more connections than that are kept between them."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._slots = asyncio.Semaphore(most)
        self._idle: list[tuple[_Origin, _Channel]] = []  # idle connections, the most recently used one last
        self._is_closed = False
        self._tls: ssl.SSLContext | None = None

    async def request(self, method: str, url: str, body: bytes | None = None, content_type: str = JSON) -> Response:
        """Raises NotConnected, NoAnswer, or ValueError where the URL is none."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or parts.hostname is None:
            raise ValueError(f"{url} is no address of a broker")
        origin = _Origin(parts.scheme, parts.hostname, parts.port or (443 if parts.scheme == "https" else 80))
        request = _encoded(method, parts, body, content_type)
        is_sent = False
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS), self._slots:
                channel = self._idle_channel(origin)
                if channel is not None:
                    is_sent = True
                    try:
                        return await self._over(channel, origin, request)
                    # Servers close idle connections; only a GET is retried, because the server may have executed a
                    # change.
                    except _Closed:
                        if method != "GET":
                            raise
                channel = await self._connected(origin)
                is_sent = True
                return await self._over(channel, origin, request)
        except TimeoutError as error:
            failure = NoAnswer if is_sent else NotConnected
            raise failure(f"no answer within {TIMEOUT_SECONDS:.0f} s") from error

    def _idle_channel(self, origin: _Origin) -> _Channel | None:
        self._idle = [(known, channel) for known, channel in self._idle if channel.is_open]
        for at in range(len(self._idle) - 1, -1, -1):
            if self._idle[at][0] == origin:
                return self._idle.pop(at)[1]
        return None

    async def _over(self, channel: _Channel, origin: _Origin, request: bytes) -> Response:
        response = await channel.exchange(request)
        if not channel.is_reusable or self._is_closed:
            channel.close()
            return response
        self._idle.append((origin, channel))
        if len(self._idle) > self._most:
            self._idle.pop(0)[1].close()
        return response

    async def _connected(self, origin: _Origin) -> _Channel:
        if origin.scheme == "https" and self._tls is None:
            self._tls = ssl.create_default_context()  # once, because reading the CA certificates takes 20 ms
        tls = self._tls if origin.scheme == "https" else None
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                _, channel = await asyncio.get_running_loop().create_connection(
                    _Channel, origin.host, origin.port, ssl=tls
                )
        except (OSError, TimeoutError) as error:
            raise NotConnected(str(error) or "no connection in time") from error
        return channel

    def close(self) -> None:
        self._is_closed = True
        for _, channel in self._idle:
            channel.close()
        self._idle.clear()


def _encoded(method: str, parts: SplitResult, body: bytes | None, content_type: str) -> bytes:
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    host = parts.netloc.rpartition("@")[2]
    head = f"{method} {path} HTTP/1.1\r\nHost: {host}\r\nAccept: */*\r\nUser-Agent: kafka-sidecar/{__version__}\r\n"
    if parts.username is not None:
        user = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        head += f"Authorization: Basic {b64encode(user.encode()).decode()}\r\n"
    if body is None:
        length = "" if method == "GET" else "Content-Length: 0\r\n"
        return (head + length + "\r\n").encode("ascii")
    return (head + f"Content-Type: {content_type}\r\nContent-Length: {len(body)}\r\n\r\n").encode("ascii") + body
