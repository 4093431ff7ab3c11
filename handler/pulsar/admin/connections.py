"""HTTP/1.1 over kept connections, as much of it as Pulsar's admin API needs. httptools parses, in C."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, cast
from urllib.parse import urlsplit

import httptools

from handler import __version__

# A Kafka client gives a request up after 30 s (request.timeout.ms), and asks again.
TIMEOUT_SECONDS: Final = 30.0
# The names of a million topics. A broker's answer is mostly a few kilobytes.
MAX_BODY: Final = 64 * 1024 * 1024
MAX_HEADERS: Final = 256
_NO_BODY: Final = b""


class NotConnected(Exception):
    """Nobody has heard the request."""


class NoAnswer(Exception):
    """It was sent, and may have been heard."""


class _Closed(NoAnswer):
    """The connection ended before anything of the answer had come."""


@dataclass(frozen=True, slots=True)
class Response:
    status: int
    headers: Mapping[str, str]  # names in small letters
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

    def close(self) -> None:
        self.is_open = False
        if self._transport is not None:
            self._transport.abort()

    # --- asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, _TooLarge) as error:
            self._fail(NoAnswer(f"an answer that can't be read: {error}"))

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_open = False
        if self._is_begun and "content-length" not in self._headers and "transfer-encoding" not in self._headers:
            self.on_message_complete()  # its end is that of the connection
            return
        kind = NoAnswer if self._is_begun else _Closed
        self._fail(kind(str(exc or "the connection was closed")))

    def _fail(self, failure: Exception) -> None:
        self.close()
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(failure)

    # --- from the parser

    def on_header(self, name: bytes, value: bytes) -> None:
        if len(self._headers) >= MAX_HEADERS:
            raise _TooLarge(f"more than {MAX_HEADERS} headers")
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        self._is_begun = True

    def on_body(self, part: bytes) -> None:
        self._body += part
        if len(self._body) > MAX_BODY:
            raise _TooLarge(f"more than {MAX_BODY} bytes")

    def on_message_complete(self) -> None:
        status = self._parser.get_status_code()
        if not self._parser.should_keep_alive():
            self.is_open = False
        response = Response(status, self._headers, bytes(self._body) if self._body else _NO_BODY)
        self._headers, self._body, self._is_begun = {}, bytearray(), False
        if status >= 200 and self._answer is not None and not self._answer.done():
            self._answer.set_result(response)


class _TooLarge(Exception):
    """More than anybody would send who means it."""


class HttpConnections:
    """As many exchanges at a time as there may be connections; more wait."""

    def __init__(self, most: int) -> None:
        self._slots = asyncio.Semaphore(most)
        self._idle: dict[_Origin, list[_Channel]] = {}
        self._is_closed = False

    async def request(self, method: str, url: str, body: bytes | None = None) -> Response:
        """Raises NotConnected, NoAnswer, or ValueError where the URL is none."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or parts.hostname is None:
            raise ValueError(f"{url} is no address of a broker")
        origin = _Origin(parts.scheme, parts.hostname, parts.port or (443 if parts.scheme == "https" else 80))
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        request = _encoded(method, path, parts.netloc.rpartition("@")[2], body)
        async with self._slots:
            try:
                async with asyncio.timeout(TIMEOUT_SECONDS):
                    return await self._exchange(origin, request, is_question=method == "GET")
            except TimeoutError as error:
                raise NoAnswer(f"no answer within {TIMEOUT_SECONDS:.0f} s") from error

    async def _exchange(self, origin: _Origin, request: bytes, is_question: bool) -> Response:
        idle = self._idle.setdefault(origin, [])
        while idle:
            kept = idle.pop()
            if not kept.is_open:
                continue
            try:
                return await self._over(kept, origin, request)
            except _Closed:  # a server closes what is idle, maybe just now; a change may have been heard
                if not is_question:
                    raise
        return await self._over(await _connected(origin), origin, request)

    async def _over(self, channel: _Channel, origin: _Origin, request: bytes) -> Response:
        response = await channel.exchange(request)
        if channel.is_open and not self._is_closed:
            self._idle.setdefault(origin, []).append(channel)
        else:
            channel.close()
        return response

    def close(self) -> None:
        self._is_closed = True
        for channels in self._idle.values():
            for channel in channels:
                channel.close()
        self._idle.clear()


async def _connected(origin: _Origin) -> _Channel:
    tls = ssl.create_default_context() if origin.scheme == "https" else None
    try:
        _, channel = await asyncio.get_running_loop().create_connection(_Channel, origin.host, origin.port, ssl=tls)
    except OSError as error:
        raise NotConnected(str(error) or type(error).__name__) from error
    return channel


def _encoded(method: str, path: str, host: str, body: bytes | None) -> bytes:
    head = f"{method} {path} HTTP/1.1\r\nHost: {host}\r\nAccept: */*\r\nUser-Agent: kafka-sidecar/{__version__}\r\n"
    if body is None:
        length = "" if method == "GET" else "Content-Length: 0\r\n"
        return (head + length + "\r\n").encode("ascii")
    return (head + f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n").encode("ascii") + body
